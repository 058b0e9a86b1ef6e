"""Meituan LongCat-Flash: Hermes with tags of its own.

Rests on SGLang function_call/longcat_detector.py, whose docstring shows the calls with their newlines, and on vLLM
vllm/tool_parsers/longcat_tool_parser.py (read 2026-11-21).
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
