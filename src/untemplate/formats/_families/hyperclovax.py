"""NAVER HyperCLOVA X SEED Think: the calls of GLM 4.5; reasoning up to ``</think>``.

The prompt opens reasoning, or closes it if reasoning is off.
"""

from __future__ import annotations

from ...format import Format, Marker, Reasoning
from .._family import Entry, turn, vllm
from . import glm

TURN = turn("<|im_start|>assistant\n", "<|im_end|>")
MODELS = ("naver-hyperclovax/HyperCLOVAX-SEED-Think-*",)

REASONING = Format(
    name="hyperclovax_seed_think",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("</think>\n\n"), start="open"),
    special_tokens=("<|im_end|>", "<think>", "</think>"),
)

TOOLS = glm.GLM45.extend(
    name="hyperclovax_seed_think",
    turn=TURN,
    tools=glm.GLM45.tools[:1],
    special_tokens=("<|im_end|>", "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="hyperclovax_seed_think",
        kind="reasoning",
        format=REASONING,
        models=MODELS,
        evidence=(vllm("vllm/tool_parsers/hyperclovax_seed_think_tool_parser.py", "not merged"),),
    ),
    Entry(
        name="hyperclovax_seed_think",
        kind="tool",
        format=TOOLS,
        models=MODELS,
        evidence=(vllm("vllm/tool_parsers/hyperclovax_seed_think_tool_parser.py", "not merged"),),
    ),
)
