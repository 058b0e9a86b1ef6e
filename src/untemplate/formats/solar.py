"""Upstage Solar Open 2: a name, then one ``<|tool_arg:start|>`` line per argument, in ``<|tool_call:start|>``.

The prompt ends with ``<|think:start|>``, or with an empty block if the reasoning effort is low.
"""

from __future__ import annotations

from ..format import Format, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .family import Entry, turn, vllm

TURN = turn("<|im:start|>assistant<|im:content|>", "<|im:end|>")
TOKENS = (
    "<|tool_call:start|>",
    "<|tool_call:end|>",
    "<|tool_arg:start|>",
    "<|tool_arg:value|>",
    "<|tool_arg:end|>",
)

REASONING = Format(
    name="solar_open2",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<|think:start|>"), close=Marker("<|think:end|>"), start="open"),
    special_tokens=("<|im:end|>", "<|think:start|>", "<|think:end|>"),
)

TOOLS = Format(
    name="solar_open2",
    turn=TURN,
    tools=(
        Tools(
            call_open=Marker("<|tool_call:start|>"),
            body=NamedBody(
                name_close=Marker("\n"),
                arguments=TaggedArguments(
                    key_open=Marker("<|tool_arg:start|>"),
                    key_close=Marker("<|tool_arg:value|>"),
                    value_close=Marker("<|tool_arg:end|>\n"),
                ),
            ),
            call_close=Marker("<|tool_call:end|>"),
            separator=Marker("\n"),
        ),
    ),
    special_tokens=("<|im:end|>", *TOKENS),
)

ENTRIES = (
    Entry(
        name="solar_open2",
        kind="reasoning",
        format=REASONING,
        models=("upstage/Solar-Open2-*", "upstage/Solar-Pro-4*"),
        evidence=(vllm("vllm/reasoning/solar_open2_reasoning_parser.py", "not merged (#51129)"),),
    ),
    Entry(
        name="solar_open2",
        kind="tool",
        format=TOOLS,
        models=("upstage/Solar-Open2-*", "upstage/Solar-Pro-4*"),
        model_types=("solar_open2",),
        headers=("<|im:start|>assistant<|im:content|>",),
        evidence=(vllm("vllm/tool_parsers/solar_open2_tool_parser.py", "not merged (#51129)"),),
    ),
)
