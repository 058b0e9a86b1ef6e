"""Salesforce xLAM: a bare JSON list of calls.

vLLM's parser also accepts the list after ``[TOOL_CALLS]``, in ``<tool_call>`` tags and in a fence.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Tools
from .._family import Entry, turn, vllm
from . import plain

LIST_OPEN, LIST_CLOSE, SEPARATOR = Marker("["), Marker("]"), Marker(", ")

XLAM = Format(
    name="xlam",
    turn=turn("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
    tools=(
        Tools(
            body=JsonBody(),
            list_open=LIST_OPEN,
            list_close=LIST_CLOSE,
            list_optional=True,
            separator=SEPARATOR,
            stray_closes=plain.SURPLUS,
        ),
        Tools(
            section_open=Marker("[TOOL_CALLS]"),
            body=JsonBody(),
            list_open=LIST_OPEN,
            list_close=LIST_CLOSE,
            list_optional=True,
            separator=SEPARATOR,
        ),
        Tools(
            section_open=Marker("<tool_call>"),
            section_close=Marker("</tool_call>"),
            body=JsonBody(),
            list_open=LIST_OPEN,
            list_close=LIST_CLOSE,
            list_optional=True,
            separator=SEPARATOR,
        ),
        plain.FENCED,
    ),
    special_tokens=("<|eot_id|>",),
)

ENTRIES = (
    Entry(
        name="xlam",
        kind="tool",
        format=XLAM,
        models=("Salesforce/Llama-xLAM-2-*", "Salesforce/xLAM-*"),
        engines=("vllm",),
        evidence=(vllm("vllm/tool_parsers/xlam_tool_parser.py"),),
    ),
)
