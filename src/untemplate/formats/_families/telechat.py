"""China Telecom TeleChat 4 and Xing 4.0: a name, then ``<param_key>`` and ``<param_value>`` pairs, in ``<tool_call>``.

ms-swift's template for Xing4.0-29B-A4B shows the pairs without white space. TensorRT-LLM's parsers read a JSON object
in place of name and pairs as well. The prompt ends with ``<think>``, or with ``</think>`` if reasoning is off.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, Evidence, report, turn, vllm

TURN = turn("<_bot>", "<_end>")
MODELS = ("XingChen-AGI/Xing4.0-*", "Tele-AI/TeleChat4*")
TENSORRT = "NVIDIA/TensorRT-LLM tensorrt_llm/serve/tool_parser"

REASONING = Format(
    name="telechat4",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>"), start="open"),
    special_tokens=("<_end>", "<think>", "</think>"),
)

PAIRS = Tools(
    call_open=Marker("<tool_call>"),
    body=NamedBody(
        arguments=TaggedArguments(
            key_open=Marker("<param_key>"),
            key_close=Marker("</param_key>"),
            value_open=Marker("<param_value>"),
            value_close=Marker("</param_value>"),
        ),
    ),
    call_close=Marker("</tool_call>"),
)

TELECHAT4 = Format(
    name="telechat4",
    turn=TURN,
    tools=(PAIRS, Tools(call_open=PAIRS.call_open, body=JsonBody(), call_close=PAIRS.call_close)),
    special_tokens=("<_end>", "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="telechat4",
        kind="reasoning",
        format=REASONING,
        aliases=("xing4_0",),
        models=MODELS,
        evidence=(vllm("vllm/reasoning/telechat4_reasoning_parser.py", "not merged"),),
    ),
    Entry(
        name="telechat4",
        kind="tool",
        format=TELECHAT4,
        aliases=("xing4_0",),
        models=(*MODELS, "Tele-AI/TeleChat2-*", "Tele-AI/TeleChat2.5-*"),
        headers=("<_bot>",),
        engines=("tensorrt-llm",),
        evidence=(
            Evidence("engine", f"{TENSORRT}/xing4_0_parser.py", "2026-11-22", "of pull request #19283"),
            Evidence("engine", f"{TENSORRT}/telechat4_parser.py", "2026-11-22", "of pull request #17997, not merged"),
            report("sgl-project/sglang#39793", "a call without white space"),
            Evidence("template", "Tele-AI/TeleChat2-7B tokenizer_config.json", "2026-11-28", "JSON in <tool_call>"),
        ),
    ),
)
