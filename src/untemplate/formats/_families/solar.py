"""Upstage Solar Open and Solar Open 2.

* Solar Open writes a turn as messages: ``<|think|>`` … ``<|end|><|begin|>assistant<|content|>`` … ``<|flush|>``. A
  message after ``<|tool_calls|>`` holds the calls, each with an id, a name and a JSON object.
* Solar Open 2 writes a name, then one ``<|tool_arg:start|>`` line per argument, in ``<|tool_call:start|>``. The prompt
  ends with ``<|think:start|>``, or with an empty block if the reasoning effort is low.
"""

from __future__ import annotations

from ...format import Channels, Format, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, Evidence, template, turn, vllm

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

SOLAR_OPEN = Format(
    name="solar_open",
    turn=turn("<|begin|>assistant", "<|flush|>"),
    channels=Channels(
        open=Marker("<|begin|>"),
        role="assistant",
        body=Marker("<|content|>"),
        reasoning_body=Marker("<|think|>"),
        call_body=Marker("<|tool_calls|>"),
        call_name=False,
        close=Marker("<|end|>"),
        call_close=Marker("<|calls|>"),
    ),
    tools=(
        Tools(
            call_open=Marker("<|tool_call:begin|>"),
            body=NamedBody(name="{id}<|tool_call:name|>{name}", name_close=Marker("<|tool_call:args|>")),
            call_close=Marker("<|tool_call:end|>"),
        ),
    ),
    special_tokens=(
        "<|begin|>",
        "<|end|>",
        "<|think|>",
        "<|content|>",
        "<|flush|>",
        "<|calls|>",
        "<|tool_calls|>",
        "<|tool_call:begin|>",
        "<|tool_call:name|>",
        "<|tool_call:args|>",
        "<|tool_call:end|>",
    ),
)

ENTRIES = (
    Entry(
        name="solar_open",
        kind="reasoning",
        format=SOLAR_OPEN,
        models=("upstage/Solar-Open-100B",),
        evidence=(
            Evidence("engine", "UpstageAI/vllm vllm/reasoning/solar_open_reasoning_parser.py", note="by the makers"),
        ),
    ),
    Entry(
        name="solar_open",
        kind="tool",
        format=SOLAR_OPEN,
        models=("upstage/Solar-Open-100B",),
        headers=("<|begin|>assistant",),
        evidence=(
            template("upstage-Solar-Open-100B.jinja"),
            Evidence("engine", "UpstageAI/vllm vllm/tool_parsers/solar_open_tool_parser.py", note="by the makers"),
        ),
    ),
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
