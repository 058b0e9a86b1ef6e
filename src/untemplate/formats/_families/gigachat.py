"""GigaChat 3 and 3.5.

* GigaChat 3 writes a message of the role ``function call`` that holds one JSON object. The template of
  GigaChat3-10B-A1.8B shows it (macro ``render_function_call``, namespace ``add_tokens``). The model ends its own
  message and opens the next one. GigaChat 3.1 writes ``<|function_call|>`` instead (its template).
* GigaChat 3.5 writes the DSML of DeepSeek V4 with ``GCML`` in its tags. The prompt of the reasoning models ends with
  ``<think>`` (template of GigaChat3.5, the assistant branch and the generation prompt).
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, sglang, template, turn, vllm

GIGACHAT3 = Format(
    name="gigachat3",
    turn=turn("assistant<|role_sep|>\n", "<|message_sep|>\n\n", "</s>"),
    tools=(
        Tools(
            call_open=Marker(
                "<|message_sep|>\n\nfunction call<|role_sep|>\n",
                # The second is GigaChat 3.1's.
                ("function call<|role_sep|>", "<|function_call|>"),
            ),
            body=JsonBody(),
        ),
    ),
    special_tokens=("</s>", "<|message_sep|>", "<|role_sep|>"),
)

GIGACHAT35_TURN = turn("assistant<|role_sep|>\n", "<|message_sep|>\n\n", "</s>")

GIGACHAT35_REASONING = Format(
    name="gigachat35",
    turn=GIGACHAT35_TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>\n\n"), start="open"),
    special_tokens=("</s>", "<|message_sep|>", "<think>", "</think>"),
)

GIGACHAT35 = Format(
    name="gigachat35",
    turn=GIGACHAT35_TURN,
    tools=(
        Tools(
            section_open=Marker("\n\n<｜GCML｜tool_calls>\n"),
            section_close=Marker("</｜GCML｜tool_calls>"),
            call_open=Marker('<｜GCML｜invoke name="'),
            body=NamedBody(
                name_close=Marker('">\n'),
                arguments=TaggedArguments(
                    key_open=Marker('<｜GCML｜parameter name="'),
                    key='{key}" string="{string}',
                    key_close=Marker('">'),
                    value_close=Marker("</｜GCML｜parameter>\n"),
                ),
            ),
            call_close=Marker("</｜GCML｜invoke>\n"),
        ),
    ),
    special_tokens=("</s>", "<|message_sep|>"),
)

ENTRIES = (
    Entry(
        name="gigachat3",
        kind="tool",
        format=GIGACHAT3,
        models=("ai-sage/GigaChat3-*",),
        headers=("assistant<|role_sep|>",),
        engines=("vllm", "sglang", "llama.cpp"),
        evidence=(
            template("GigaChat3-10B-A1.8B.jinja"),
            template("GigaChat3.1-10B-A1.8B.jinja"),
            vllm("vllm/tool_parsers/gigachat3_tool_parser.py", "reads both openers"),
        ),
    ),
    Entry(
        name="gigachat35",
        kind="reasoning",
        format=GIGACHAT35_REASONING,
        models=("ai-sage/GigaChat3.5-*-Reasoning",),
        engines=("sglang",),
        evidence=(
            template("GigaChat3.5.jinja"),
            sglang("parser/reasoning_parser.py", "gigachat35 is DeepSeekR1Detector"),
        ),
    ),
    Entry(
        name="gigachat35",
        kind="tool",
        format=GIGACHAT35,
        models=("ai-sage/GigaChat3.5-*",),
        engines=("sglang",),
        evidence=(
            template("GigaChat3.5.jinja"),
            sglang("function_call/gigachat35_detector.py"),
        ),
    ),
)
