"""PLaMo 3: every part of a call has its own markers, ``<|plamo:begin_…:plamo|>`` … ``<|plamo:end_…:plamo|>``.

A marker is several tokens. Reasoning is on unless the request turns it off.
"""

from __future__ import annotations

from ...format import Format, Marker, NamedBody, Reasoning, Tools
from .._family import Entry, report, turn, vllm

TURN = turn("<|im_start|>assistant", "<|plamo:tag|>")

REASONING = Format(
    name="plamo3",
    turn=TURN,
    reasoning=Reasoning(
        open=Marker("<|plamo:begin_think:plamo|>"),
        close=Marker("<|plamo:end_think:plamo|>"),
        start="open",
    ),
    special_tokens=("<|plamo:tag|>",),
)

PLAMO3 = Format(
    name="plamo3",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("<|plamo:begin_tool_requests:plamo|>"),
            section_close=Marker("<|plamo:end_tool_requests:plamo|>"),
            call_open=Marker("<|plamo:begin_tool_request:plamo|>"),
            body=NamedBody(
                name_open=Marker("<|plamo:begin_tool_name:plamo|>"),
                name_close=Marker(
                    "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>"
                    "<|plamo:constrain|>json<|plamo:msg|>"
                ),
                arguments_close=Marker("<|plamo:end_tool_arguments:plamo|>"),
            ),
            call_close=Marker("<|plamo:end_tool_request:plamo|>"),
        ),
    ),
    special_tokens=("<|plamo:tag|>",),
)

ENTRIES = (
    Entry(
        name="plamo3",
        kind="reasoning",
        format=REASONING,
        models=("pfnet/plamo-3-*",),
        engines=("vllm",),
        evidence=(vllm("vllm/parser/plamo3.py"), report("vllm-project/vllm#56575", "shows an output")),
    ),
    Entry(
        name="plamo3",
        kind="tool",
        format=PLAMO3,
        models=("pfnet/plamo-3-*",),
        engines=("vllm",),
        evidence=(vllm("vllm/parser/plamo3.py"), report("vllm-project/vllm#56575", "shows an output")),
    ),
)
