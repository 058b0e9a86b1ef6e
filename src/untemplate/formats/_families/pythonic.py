"""Pythonic: a bare list of Python calls, ``[get_weather(city='Paris'), ping()]``.

A line is such a list only if it begins with ``[``, an offered name and ``(``.
"""

from __future__ import annotations

from ...format import Format, LiteralArguments, Marker, NamedBody, Tools
from .._family import TURN_ENDS, Entry, turn, vllm

TOOLS = Tools(
    body=NamedBody(arguments=LiteralArguments()),
    list_open=Marker("["),
    list_close=Marker("]"),
    separator=Marker(", "),
)

PYTHONIC = Format(
    name="pythonic",
    turn=turn("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>"),
    tools=(TOOLS,),
    special_tokens=(*TURN_ENDS, "<end_of_turn>"),
)

ENTRIES = (
    Entry(
        name="pythonic",
        kind="tool",
        format=PYTHONIC,
        aliases=("gemma3",),
        models=(
            "meta-llama/Llama-3.2-*",
            "Team-ACE/ToolACE-8B",
            "fixie-ai/ultravox-v0_4-ToolACE-8B",
            "google/gemma-3-*",
        ),
        model_types=("gemma3_text",),
        architectures=(("gemma3", "gemma3_text"),),
        engines=("vllm", "sglang", "vllm.rs", "dynamo"),
        evidence=(vllm("vllm/tool_parsers/pythonic_tool_parser.py"),),
    ),
)
