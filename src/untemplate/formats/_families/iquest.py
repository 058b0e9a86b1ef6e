"""IQuest Q1: the calls of GLM 4.7 in ``<iquest_tool_call>``; reasoning in ``<think>``.

The prompt ends with ``<think>``, or with ``<think></think>`` if reasoning is off.
"""

from __future__ import annotations

from ...format import Format, Marker, Reasoning
from .._family import Entry, sglang, turn
from . import glm

TURN = turn("<|iquest_assistant|>", "<|iquest_end|>")
MODELS = ("IQuestLab/IQuest-Q1*",)

REASONING = Format(
    name="iquest_q1",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>"), start="open"),
    special_tokens=("<|iquest_end|>", "<think>", "</think>"),
)

IQUEST_Q1 = glm.GLM47.extend(name="iquest_q1", turn=TURN, tools=glm.GLM47.tools[:1]).extend(
    tools__0__call_open=Marker("<iquest_tool_call>"),
    tools__0__call_close=Marker("</iquest_tool_call>"),
    special_tokens=("<|iquest_end|>", "<iquest_tool_call>", "</iquest_tool_call>"),
)

ENTRIES = (
    Entry(
        name="iquest_q1",
        kind="reasoning",
        format=REASONING,
        models=MODELS,
        engines=("sglang",),
        evidence=(sglang("parser/reasoning_parser.py", "IQuestQ1ReasoningDetector"),),
    ),
    Entry(
        name="iquest_q1",
        kind="tool",
        format=IQUEST_Q1,
        models=MODELS,
        headers=("<|iquest_assistant|>",),
        engines=("sglang",),
        evidence=(sglang("function_call/iquest_q1_detector.py"),),
    ),
)
