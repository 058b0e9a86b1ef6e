"""IBM Granite 3 and 4.

* Granite 3 writes ``<|tool_call|>`` and a JSON list (template of granite-3.3-2B-Instruct, the system message).
  Reasoning begins and ends with a sentence in 3.2; 3.3 has ``<think>`` and ``<response>`` tags.
* Granite 4 writes the format of Hermes (template of granite-4.0, the tool_calls branch), and Granite 4.2 thinking that
  of Nemotron 3.
* Granite 3.3 and 4.0 H-Small also write Python calls as plain lines, ``f(x=1)``, if the prompt does not ask for JSON
  (vllm#43116). Nothing marks them: they are calls where content begins, if the tools are offered. No template writes
  them, so this is asked for by name (``granite_pythonic``).
* Granite 20B function calling writes ``<function_call> {…}`` without a close.
"""

from __future__ import annotations

from ...format import Content, Format, JsonBody, LiteralArguments, Marker, NamedBody, Reasoning, Tools
from .._family import Entry, report, template, turn, vllm
from . import qwen3_coder

TURN = turn("<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>")

REASONING = Format(
    name="granite",
    turn=TURN,
    reasoning=Reasoning(
        open=Marker("Here is my thought process:\n\n", ("Here's my thought process:",)),
        close=Marker("\n\nHere is my response:\n\n", ("Here's my response:",)),
    ),
    special_tokens=("<|end_of_text|>",),
)

GRANITE = Format(
    name="granite",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("<|tool_call|>", ("<tool_call>",)),
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|end_of_text|>", "<|tool_call|>"),
)

GRANITE4 = Format(
    name="granite4",
    turn=TURN,
    tools=(
        Tools(
            call_open=Marker("<tool_call>\n"),
            call_close=Marker("\n</tool_call>"),
            separator=Marker("\n"),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|end_of_text|>", "<tool_call>", "</tool_call>"),
)

PYTHONIC = Format(
    name="granite_pythonic",
    turn=TURN,
    tools=(Tools(body=NamedBody(arguments=LiteralArguments(quotes=('"', "'"))), separator=Marker("\n")),),
    special_tokens=("<|end_of_text|>",),
)

GRANITE_20B_FC = Format(
    name="granite-20b-fc",
    turn=turn("\nASSISTANT: ", "<|endoftext|>"),
    tools=(Tools(call_open=Marker("<function_call> "), body=JsonBody()),),
    special_tokens=("<|endoftext|>",),
)

THINKING = Format(
    name="granite_thinking_parser",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n"), start="open"),
    special_tokens=("<|end_of_text|>", "<think>", "</think>"),
)

THINKING_TOOLS = Format(
    name="granite_thinking_parser",
    turn=TURN,
    tools=(qwen3_coder.TOOLS,),
    special_tokens=("<|end_of_text|>", "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="granite",
        kind="reasoning",
        format=REASONING,
        models=("ibm-granite/granite-3.2-*",),
        engines=("vllm", "dynamo"),
        evidence=(vllm("vllm/reasoning/granite_reasoning_parser.py"),),
    ),
    Entry(
        name="granite33",
        kind="reasoning",
        format=Format(
            name="granite33",
            turn=TURN,
            reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>")),
            content=Content(open=Marker("<response>"), close=Marker("</response>"), written="with_reasoning"),
            special_tokens=("<|end_of_text|>",),
        ),
        models=("ibm-granite/granite-3.3-*",),
        evidence=(template("ibm-granite-granite-3.3-2B-Instruct.jinja"),),
    ),
    Entry(
        name="granite",
        kind="tool",
        format=GRANITE,
        models=("ibm-granite/granite-3.*",),
        headers=("<|start_of_role|>assistant<|end_of_role|>",),
        engines=("vllm", "llama.cpp"),
        evidence=(template("ibm-granite-granite-3.3-2B-Instruct.jinja"),),
    ),
    Entry(
        name="granite4",
        kind="tool",
        format=GRANITE4,
        models=("ibm-granite/granite-4.*",),
        engines=("vllm",),
        evidence=(template("ibm-granite-granite-4.0.jinja"),),
    ),
    Entry(
        name="granite_pythonic",
        kind="tool",
        format=PYTHONIC,
        models=("ibm-granite/granite-3.3-8b-instruct", "ibm-granite/granite-4.0-h-small"),
        evidence=(
            report("vllm-project/vllm#43116", "outputs of granite-3.3-8b-instruct and granite-4.0-h-small"),
            report("vllm-project/vllm#43113", "the parser granite_pythonic, not merged: one call a line"),
        ),
        verified=False,
    ),
    Entry(
        name="granite-20b-fc",
        kind="tool",
        format=GRANITE_20B_FC,
        models=("ibm-granite/granite-20b-functioncalling",),
        engines=("vllm",),
        evidence=(vllm("examples/tool_chat_template_granite_20b_fc.jinja"),),
    ),
    Entry(
        name="granite_thinking_parser",
        kind="reasoning",
        format=THINKING,
        models=("ibm-granite/granite-4.2-*",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/parser/granite_thinking.py", "4.2 writes what Nemotron 3 writes"),),
    ),
    Entry(
        name="granite_thinking_parser",
        kind="tool",
        format=THINKING_TOOLS,
        models=("ibm-granite/granite-4.2-*",),
        evidence=(vllm("vllm/parser/granite_thinking.py", "4.2 writes what Nemotron 3 writes"),),
    ),
)
