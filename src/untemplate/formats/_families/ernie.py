"""ERNIE 4.5 (thinking): Hermes calls, reasoning in ``<think>``, the answer in ``<response>``.

The prompt of the thinking models ends with ``<think>\\n``.
"""

from __future__ import annotations

from ...format import Content, Format, JsonBody, Marker, Reasoning, Tools
from .._family import Entry, turn, vllm

TURN = turn("<|im_start|>assistant\n", "<|im_end|>", "</s>")
CONTENT = Content(open=Marker("<response>\n"), close=Marker("\n</response>\n"), written="with_reasoning")
CONTENT_TOKENS = ("<response>", "</response>")

REASONING = Format(
    name="ernie45",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n\n"), start="open"),
    content=CONTENT,
    special_tokens=("</s>", "<think>", "</think>", *CONTENT_TOKENS),
)

ERNIE45 = Format(
    name="ernie45",
    turn=TURN,
    content=CONTENT,
    tools=(
        Tools(
            call_open=Marker("\n<tool_call>\n"),
            call_close=Marker("\n</tool_call>\n"),
            body=JsonBody(),
        ),
    ),
    special_tokens=("</s>", "<tool_call>", "</tool_call>", *CONTENT_TOKENS),
)

ENTRIES = (
    Entry(
        name="ernie45",
        kind="reasoning",
        format=REASONING,
        models=("baidu/ERNIE-4.5-*-Thinking",),
        engines=("vllm",),
        evidence=(vllm("vllm/reasoning/ernie45_reasoning_parser.py"),),
    ),
    Entry(
        name="ernie45",
        kind="tool",
        format=ERNIE45,
        models=("baidu/ERNIE-4.5-*-Thinking",),
        engines=("vllm",),
        evidence=(vllm("vllm/tool_parsers/ernie45_tool_parser.py"),),
    ),
)
