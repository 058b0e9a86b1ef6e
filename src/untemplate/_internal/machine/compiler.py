"""Compiles a Format to a Program.

Everything in a Format that concerns parsing is decided here and in the modules that this one calls, once. The machine
never sees a Format.
"""

from __future__ import annotations

import re

from ...format import Format, Reasoning
from . import rules, tags
from .frame_compiler import compile_tools
from .header_compiler import compile_channels
from .lexer import Literals
from .marker_tags import spellings, tagged
from .program import IN_CONTENT, IN_REASONING, Program, TextState
from .rules import MarkerRule
from .state_compiler import (
    add_call_texts,
    add_calls,
    add_end_tokens,
    add_reasoning,
    add_turn_starts,
    add_wrap,
    lone_calls,
    rule_of,
)


def compile_format(fmt: Format, *, tools: bool = True, special: frozenset[str] = frozenset()) -> Program:
    """Return the Program of a Format. ``tools=False``: calls are text. ``special``: special tokens of the vocabulary
    that are not the Format's.

    Raises:
        FormatError: the Format contradicts itself. The error names the field.
    """
    program = Program(fmt.name)
    program.ids = fmt.ids
    program.turn_end = Literals(tagged((fmt.turn.end, tags.TURN_END)))
    ends = sorted(special)
    program.turn_starts = () if fmt.turn.start is None else fmt.turn.start.spellings
    program.start_in_output = fmt.turn.in_output
    if fmt.channels is not None:
        compile_channels(program, fmt, fmt.channels, tools, ends)
        return program
    if tools:
        program.call_syntaxes = [compile_tools(t, f"tools[{i}]", fmt.turn.end) for i, t in enumerate(fmt.tools)]
        _compile_empty_calls(program, fmt)
    content: dict[str, MarkerRule] = {}
    thinking: dict[str, MarkerRule] = {}
    if fmt.reasoning is not None:
        add_reasoning(fmt.reasoning, content, thinking)
    if fmt.content is not None:
        add_wrap(fmt.content, fmt.special_tokens, content, thinking)
    if tools:
        add_calls(program, fmt, content, thinking)
    else:
        add_call_texts(content, fmt)
    add_turn_starts(content, fmt)
    for text in spellings(fmt.turn.end):
        content.setdefault(text, rule_of(rules.END_TURN, fmt.turn.end))
        thinking.setdefault(text, rule_of(rules.END_TURN, fmt.turn.end))
    add_end_tokens(program, ends, content, thinking)
    program.states = [TextState("content", IN_CONTENT, content, True)]
    if tools:
        program.states[0].lone_calls = lone_calls(program, fmt)
    if fmt.reasoning is not None:
        program.states.append(TextState("reasoning", IN_REASONING, thinking, True))
        _compile_starts_of_reasoning(program, fmt.reasoning)
    return program


def _compile_starts_of_reasoning(program: Program, reasoning: Reasoning) -> None:
    """Compile where an output begins in reasoning."""
    program.repeats = reasoning.repeats
    program.reasoning = 1
    if reasoning.open is None:
        program.after_turn_start = 1
    program.start_without_prompt = 1 if reasoning.start == "open" or reasoning.open is None else 0
    program.opened = spellings(reasoning.open)
    program.closed = reasoning.close.spellings


def _compile_empty_calls(program: Program, fmt: Format) -> None:
    """Compile the markers by which calls without a call are recognised."""
    opens: list[str] = []
    closes: list[str] = []
    for way in fmt.tools:
        if way.section_open is None and way.call_open is None:
            continue
        opens += [text for m in (way.section_open, way.call_open, way.list_open) for text in spellings(m)]
        closes += [text for m in (way.section_close, way.call_close, way.list_close) for text in spellings(m)]
    sections = {text for way in fmt.tools for text in spellings(way.section_open)}
    program.section_opens = frozenset(sections.difference(*(spellings(way.call_open) for way in fmt.tools)))
    program.call_closes = Literals({text: 0 for text in closes if text not in program.turn_end.tags})
    markers = "|".join(map(re.escape, sorted(opens, key=len, reverse=True)))
    program.call_markers = re.compile(f"(?:{markers or '(?!)'}|[ \\t\\r\\n])*")
