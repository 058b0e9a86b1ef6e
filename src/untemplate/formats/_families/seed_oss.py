"""Seed-OSS: Qwen3-Coder's tags in ``<seed:tool_call>``, values on the line of their tags; ``<seed:think>``.

The template of ByteDance-Seed-OSS shows both (lines 2-10, the assistant branches).
"""

from __future__ import annotations

from ...format import Format, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, template, turn

TURN = turn("<seed:bos>assistant\n", "<seed:eos>")

REASONING = Format(
    name="seed_oss",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<seed:think>"), close=Marker("</seed:think>\n")),
    special_tokens=("<seed:eos>", "<seed:think>", "</seed:think>"),
)

SEED_OSS = Format(
    name="seed_oss",
    turn=TURN,
    tools=(
        Tools(
            call_open=Marker("<seed:tool_call>\n"),
            body=NamedBody(
                name_open=Marker("<function="),
                name_close=Marker(">\n"),
                arguments=TaggedArguments(
                    key_open=Marker("<parameter="),
                    key_close=Marker(">"),
                    value_close=Marker("</parameter>\n"),
                ),
                arguments_close=Marker("</function>\n"),
            ),
            call_close=Marker("</seed:tool_call>"),
            separator=Marker("\n"),
            optional=("call",),
        ),
    ),
    special_tokens=("<seed:eos>", "<seed:tool_call>", "</seed:tool_call>"),
)

ENTRIES = (
    Entry(
        name="seed_oss",
        kind="reasoning",
        format=REASONING,
        models=("ByteDance-Seed/Seed-OSS-36B-Instruct",),
        engines=("vllm",),
        evidence=(template("ByteDance-Seed-OSS.jinja"),),
    ),
    Entry(
        name="seed_oss",
        kind="tool",
        format=SEED_OSS,
        models=("ByteDance-Seed/Seed-OSS-36B-Instruct",),
        headers=("<seed:bos>assistant",),
        engines=("vllm", "llama.cpp"),
        evidence=(template("ByteDance-Seed-OSS.jinja"),),
    ),
)
