"""Firefunction v2: a JSON list after the word ``functools``.

The template's system message and its tool_calls branch show it.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Tools
from .._family import Entry, template, turn

FIREFUNCTION_V2 = Format(
    name="firefunction_v2",
    turn=turn("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
    tools=(
        Tools(
            section_open=Marker(" functools"),
            list_open=Marker("["),
            list_close=Marker("]"),
            separator=Marker(", "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|eot_id|>",),
)

ENTRIES = (
    Entry(
        name="firefunction_v2",
        kind="tool",
        format=FIREFUNCTION_V2,
        models=("fireworks-ai/llama-3-firefunction-v2",),
        engines=("llama.cpp",),
        evidence=(template("fireworks-ai-llama-3-firefunction-v2.jinja"),),
    ),
)
