"""Meituan LongCat: calls in ``<longcat_tool_call>``, reasoning in ``<longcat_think>``.

* LongCat-Flash-Chat writes JSON objects, with a newline on each side (dynamo#5424).
* LongCat-Flash-Thinking-2601 and all later models write a name, then ``<longcat_arg_key>`` and ``<longcat_arg_value>``
  pairs (mlx-lm#810), as LongCat-Flash-Lite and LongCat 2.0 do.

A parser of either reads both.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, Evidence, report, turn, vllm

TURN = turn(" ASSISTANT:", "</longcat_s>")
TOKENS = ("</longcat_s>", "<longcat_tool_call>", "</longcat_tool_call>")
PAIR_TOKENS = ("<longcat_arg_key>", "</longcat_arg_key>", "<longcat_arg_value>", "</longcat_arg_value>")

REASONING = Format(
    name="longcat",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<longcat_think>"), close=Marker("</longcat_think>")),
    special_tokens=("</longcat_s>", "<longcat_think>", "</longcat_think>"),
)

OBJECTS = Tools(
    call_open=Marker("<longcat_tool_call>\n"),
    call_close=Marker("\n</longcat_tool_call>"),
    body=JsonBody(),
)

PAIRS = Tools(
    call_open=Marker("<longcat_tool_call>"),
    body=NamedBody(
        name_close=Marker("\n"),
        arguments=TaggedArguments(
            key_open=Marker("<longcat_arg_key>"),
            key_close=Marker("</longcat_arg_key>\n"),
            value_open=Marker("<longcat_arg_value>"),
            value_close=Marker("</longcat_arg_value>\n"),
        ),
    ),
    call_close=Marker("</longcat_tool_call>"),
)

LONGCAT = Format(name="longcat", turn=TURN, tools=(OBJECTS, PAIRS), special_tokens=(*TOKENS, *PAIR_TOKENS))
LONGCAT_2601 = LONGCAT.extend(name="longcat_2601", tools=(PAIRS, OBJECTS))

ENTRIES = (
    Entry(
        name="longcat",
        kind="reasoning",
        format=REASONING,
        aliases=("longcat_2601",),
        models=("meituan-longcat/LongCat-Flash-Thinking*", "meituan-longcat/LongCat-2*"),
        evidence=(vllm("vllm/reasoning/longcat_reasoning_parser.py", "not merged"),),
    ),
    Entry(
        name="longcat",
        kind="tool",
        format=LONGCAT,
        models=("meituan-longcat/LongCat-Flash-*",),
        engines=("vllm",),
        evidence=(
            vllm("vllm/tool_parsers/longcat_tool_parser.py"),
            report("ai-dynamo/dynamo#5424", "newlines inside the tags"),
        ),
    ),
    Entry(
        name="longcat_2601",
        kind="tool",
        format=LONGCAT_2601,
        models=(
            "meituan-longcat/LongCat-Flash-Thinking-2601",
            "meituan-longcat/LongCat-Flash-Thinking-ZigZag",
            "meituan-longcat/LongCat-Flash-Lite",
            "meituan-longcat/LongCat-2*",
        ),
        evidence=(
            Evidence("engine", "ml-explore/mlx-lm mlx_lm/tool_parsers/longcat.py", "2026-11-22"),
            report("ml-explore/mlx-lm#810", "which models write pairs"),
        ),
    ),
)
