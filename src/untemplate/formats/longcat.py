"""Meituan LongCat-Flash: the format of Hermes with other tags.

The docstring of SGLang's detector shows the calls with their newlines.
"""

from __future__ import annotations

from ..format import Format, JsonBody, Marker, Tools
from .family import Entry, sglang, turn, vllm

LONGCAT = Format(
    name="longcat",
    turn=turn(" ASSISTANT:", "</longcat_s>"),
    tools=(
        Tools(
            call_open=Marker("<longcat_tool_call>\n"),
            call_close=Marker("\n</longcat_tool_call>"),
            body=JsonBody(),
        ),
    ),
    special_tokens=("</longcat_s>", "<longcat_tool_call>", "</longcat_tool_call>"),
)

ENTRIES = (
    Entry(
        name="longcat",
        kind="tool",
        format=LONGCAT,
        models=("meituan-longcat/LongCat-Flash-*",),
        engines=("vllm", "sglang"),
        evidence=(
            sglang("function_call/longcat_detector.py"),
            vllm("vllm/tool_parsers/longcat_tool_parser.py"),
        ),
    ),
)
