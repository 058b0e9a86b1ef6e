"""Apertus: ``<|tools_prefix|>[{"name": {…}}]<|tools_suffix|>``, where a call's name is its key.

Reasoning is in ``<|inner_prefix|>``. Both are in the template of Apertus-8B-Instruct, lines 147-152 and the assistant
branch.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Reasoning, Tools
from .._family import Entry, template, turn

TURN = turn("<|assistant_start|>", "<|assistant_end|>")

REASONING = Format(
    name="apertus",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<|inner_prefix|>"), close=Marker("<|inner_suffix|>"), repeats=True),
    special_tokens=("<|assistant_end|>", "<|inner_prefix|>", "<|inner_suffix|>"),
)

APERTUS = Format(
    name="apertus",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("<|tools_prefix|>"),
            section_close=Marker("<|tools_suffix|>"),
            list_open=Marker("["),
            list_close=Marker("]"),
            separator=Marker(", "),
            body=JsonBody(name_is_key=True),
        ),
    ),
    special_tokens=("<|assistant_end|>", "<|tools_prefix|>", "<|tools_suffix|>"),
)

ENTRIES = (
    Entry(
        name="apertus",
        kind="reasoning",
        format=REASONING,
        aliases=("apertus2509",),
        models=("swiss-ai/Apertus-*-Instruct-2509",),
        engines=("sglang",),
        evidence=(template("Apertus-8B-Instruct.jinja"),),
    ),
    Entry(
        name="apertus",
        kind="tool",
        format=APERTUS,
        aliases=("apertus2509",),
        models=("swiss-ai/Apertus-*-Instruct-2509",),
        headers=("<|assistant_start|>",),
        engines=("vllm", "sglang"),
        evidence=(template("Apertus-8B-Instruct.jinja"),),
    ),
)
