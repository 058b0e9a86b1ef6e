"""Olmo 3: Python calls, one per line, in ``<function_calls>``, with JSON's words and double quotes.

The prompt of the thinking models ends with ``<think>``.
"""

from __future__ import annotations

from ...format import Format, LiteralArguments, Marker, NamedBody, Reasoning, Tools
from .._family import Entry, turn, vllm

TURN = turn("<|im_start|>assistant\n", "<|im_end|>")

REASONING = Format(
    name="olmo3",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>\n"), start="open"),
    special_tokens=("<|im_end|>",),
)

OLMO3 = Format(
    name="olmo3",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("<function_calls>\n"),
            section_close=Marker("\n</function_calls>"),
            separator=Marker("\n"),
            body=NamedBody(arguments=LiteralArguments(quotes=('"', "'"), words=("true", "false", "null"))),
        ),
    ),
    special_tokens=("<|im_end|>",),
)

ENTRIES = (
    Entry(
        name="olmo3",
        kind="reasoning",
        format=REASONING,
        aliases=("olmo3-think",),
        models=("allenai/Olmo-3-*-Think",),
        engines=("vllm", "ollama"),
        evidence=(vllm("vllm/reasoning/olmo3_reasoning_parser.py"),),
    ),
    Entry(
        name="olmo3",
        kind="tool",
        format=OLMO3,
        models=("allenai/Olmo-3-*-Instruct",),
        engines=("vllm", "ollama"),
        evidence=(vllm("vllm/tool_parsers/olmo3_tool_parser.py"),),
    ),
)
