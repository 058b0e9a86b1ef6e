"""openPangu 2.0: a JSON list in ``<|tool_call_start|>`` … ``<|tool_call_end|>``; reasoning in ``<think>``.

The prompt ends with ``<think>``, or with an empty block if reasoning is off.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Reasoning, Tools
from .._family import Entry, Evidence, report, turn

TURN = turn("<|message_start|>assistant\n", "<|message_end|>")
MODELS = ("openpangu/openPangu-2.0-*",)

REASONING = Format(
    name="openpangu_v2",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>"), start="open"),
    special_tokens=("<|message_end|>", "<think>", "</think>"),
)

TOOLS = Format(
    name="openpangu_v2",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("<|tool_call_start|>\n"),
            section_close=Marker("\n<|tool_call_end|>"),
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|message_end|>", "<|tool_call_start|>", "<|tool_call_end|>"),
)

ENTRIES = (
    Entry(
        name="openpangu_v2",
        kind="reasoning",
        format=REASONING,
        models=MODELS,
        evidence=(
            Evidence(
                "report",
                "FiditeNemini/vmlx vmlx_engine/tool_parsers/openpangu_tool_parser.py",
                note="the prompt opens <think>",
            ),
        ),
    ),
    Entry(
        name="openpangu_v2",
        kind="tool",
        format=TOOLS,
        models=MODELS,
        headers=("<|message_start|>assistant",),
        evidence=(report("vllm-project/vllm#47271", "its parser, not merged"),),
    ),
)
