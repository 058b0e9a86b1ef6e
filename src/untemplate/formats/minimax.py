"""MiniMax M2: ``<invoke name="…">`` with one ``<parameter name="…">`` per argument, in ``<minimax:tool_call>``.

Rests on the template of MiniMax-M2 (variables ``toolcall_begin_token``, ``toolcall_end_token``; the assistant branch)
and on the cases. The prompt always ends with ``<think>\\n``. Values are not escaped (vllm#44060).
"""

from __future__ import annotations

from ..format import Format, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from ._common import turn
from .registry import Entry

TURN = turn("]~b]ai\n", "[e~[")

M2_REASONING = Format(
    name="minimax_m2",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n\n"), start="open"),
    special_tokens=("[e~[", "<think>", "</think>"),
)

M2 = Format(
    name="minimax_m2",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("\n<minimax:tool_call>\n"),
            section_close=Marker("</minimax:tool_call>"),
            call_open=Marker('<invoke name="'),
            body=NamedBody(
                name_close=Marker('">\n'),
                arguments=TaggedArguments(
                    key_open=Marker('<parameter name="'),
                    key_close=Marker('">'),
                    value_close=Marker("</parameter>\n"),
                ),
            ),
            call_close=Marker("</invoke>\n"),
        ),
    ),
    special_tokens=("[e~[", "<minimax:tool_call>", "</minimax:tool_call>"),
)

ENTRIES = (
    Entry(
        name="minimax_m2",
        kind="reasoning",
        format=M2_REASONING,
        models=("MiniMaxAI/MiniMax-M2*",),
        engines=("vllm", "sglang", "dynamo"),
        evidence=("template: MiniMax-M2.jinja", "case"),
    ),
    Entry(
        name="minimax_m2",
        kind="tool",
        format=M2,
        aliases=("minimax-m2",),
        models=("MiniMaxAI/MiniMax-M2*",),
        engines=("vllm", "sglang", "vllm.rs", "dynamo"),
        evidence=("template: MiniMax-M2.jinja", "case"),
    ),
)
