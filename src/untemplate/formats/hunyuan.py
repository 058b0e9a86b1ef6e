"""Hunyuan A13B: a JSON list in ``<tool_calls>``, inside the ``<answer>`` that follows ``<think>``.

Rests on the cases.
"""

from __future__ import annotations

from ..format import Content, Format, JsonBody, Marker, Reasoning, Tools
from ._common import turn
from .registry import Entry

TURN = turn("<|extra_0|>", "<|eos|>")
CONTENT = Content(open=Marker("<answer>\n"), close=Marker("\n</answer>"), written="with_reasoning")

REASONING = Format(
    name="hunyuan_a13b",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n")),
    content=CONTENT,
    special_tokens=("<|eos|>",),
)

HUNYUAN_A13B = Format(
    name="hunyuan_a13b",
    turn=TURN,
    content=CONTENT,
    tools=(
        Tools(
            section_open=Marker("<tool_calls>"),
            section_close=Marker("</tool_calls>"),
            list_open=Marker("["),
            list_close=Marker("]"),
            separator=Marker(", "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|eos|>",),
)

ENTRIES = (
    Entry(
        name="hunyuan_a13b",
        kind="reasoning",
        format=REASONING,
        aliases=("hunyuan",),
        models=("tencent/Hunyuan-A13B-Instruct",),
        engines=("vllm", "sglang"),
        evidence=("case",),
    ),
    Entry(
        name="hunyuan_a13b",
        kind="tool",
        format=HUNYUAN_A13B,
        aliases=("hunyuan",),
        models=("tencent/Hunyuan-A13B-Instruct",),
        engines=("vllm", "sglang"),
        evidence=("case",),
    ),
)
