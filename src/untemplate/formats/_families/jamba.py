"""Jamba 1.5 and later: a JSON list in ``<tool_calls>``, one call per line."""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Tools
from .._family import Entry, turn, vllm

JAMBA = Format(
    name="jamba",
    turn=turn("<|bom|><|assistant|> ", "<|eom|>"),
    tools=(
        Tools(
            section_open=Marker("<tool_calls>"),
            section_close=Marker("</tool_calls>"),
            list_open=Marker("[\n    "),
            list_close=Marker("\n]"),
            separator=Marker(",\n    "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|eom|>", "<tool_calls>", "</tool_calls>"),
)

ENTRIES = (
    Entry(
        name="jamba",
        kind="tool",
        format=JAMBA,
        models=("ai21labs/AI21-Jamba-*",),
        engines=("vllm", "dynamo"),
        evidence=(
            vllm("vllm/tool_parsers/jamba_tool_parser.py"),
            vllm("tests/tool_parsers/test_jamba_tool_parser.py", "one call per line"),
        ),
    ),
)
