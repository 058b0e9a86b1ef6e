"""Compiles the states of free text: the rule of each marker in them.

A literal with two meanings in one state is an error of the Format. Only ways to write calls may share an opener: the
text after it decides between them.
"""

from __future__ import annotations

import re
from typing import Final

from ...format import Content, Format, FormatError, JsonBody, Marker, NamedBody, Reasoning, Tools
from . import rules
from .call_syntax import ENTRY_BARE, ENTRY_CALL, ENTRY_NAME, ENTRY_SECTION, CallSyntax
from .frame_compiler import MARKED, accepted
from .lexer import WS, Literals
from .marker_tags import spellings
from .program import Program
from .rules import MarkerRule

_SENTENCE: Final = re.compile(r"[\w\s',.:;!?-]+")
"""A marker that is a sentence of prose."""


def add_reasoning(reasoning: Reasoning, content: dict[str, MarkerRule], thinking: dict[str, MarkerRule]) -> None:
    """Add the markers of reasoning to the states of content and of reasoning."""
    for text in spellings(reasoning.open):
        content[text] = rule_of(rules.OPEN_REASONING, reasoning.open)
        thinking[text] = rule_of(rules.OPEN_REASONING, reasoning.open)
    for text in reasoning.close.spellings:
        content[text] = rule_of(rules.CLOSE_REASONING, reasoning.close)
        content[text].place = rules.ANYWHERE if _SENTENCE.fullmatch(text) is None else rules.AT_START
        thinking[text] = rule_of(rules.CLOSE_REASONING, reasoning.close)


def add_wrap(
    wrap: Content, special_tokens: tuple[str, ...], content: dict[str, MarkerRule], thinking: dict[str, MarkerRule]
) -> None:
    """Add the markers around content."""
    for text in wrap.open.spellings:
        content[text] = rule_of(rules.OPEN_WRAP, wrap.open)
        content[text].place = rules.ANYWHERE if text in special_tokens else rules.AT_START
        # An answer without thoughts, where the prompt has opened reasoning.
        thinking[text] = rule_of(rules.OPEN_WRAP, wrap.open)
        thinking[text].place = rules.AT_START
    for text in wrap.close.spellings:
        content[text] = rule_of(rules.CLOSE_WRAP, wrap.close)


def add_calls(program: Program, fmt: Format, content: dict[str, MarkerRule], thinking: dict[str, MarkerRule]) -> None:
    """Add the openers of calls, and the closes that are dropped in content."""
    for syntax, way in zip(program.call_syntaxes, fmt.tools, strict=True):
        add_call_openers(content, syntax, way)
        add_call_openers(thinking, syntax, way, marked_only=True)
        _note_left_out((content, thinking), way, fmt.special_tokens)
    for way in fmt.tools:
        for text in spellings(way.section_close):
            content.setdefault(text, MarkerRule(rules.CLOSE_SECTION))
        for text in (*spellings(way.call_close), *way.stray_closes):
            content.setdefault(text, MarkerRule(rules.CLOSE_CALL))


def _openers(tools: Tools, *, marked_only: bool) -> list[tuple[str, Marker | None, int, bool, int]]:
    """Return the literals with which calls of one syntax begin: text, marker, entry, True if it counts in an open
    section only, and the kind of its rule."""
    body = tools.body
    inside = tools.section_open is not None and "section" not in tools.optional
    marked: list[tuple[Marker | None, int, bool]] = [
        (tools.section_open, ENTRY_SECTION, False),
        (tools.call_open, ENTRY_CALL, inside),
    ]
    if isinstance(body, NamedBody) and (tools.call_open is None or "call" in tools.optional):
        marked.append((body.name_open, ENTRY_NAME, inside))
    openers = [(t, m, entry, needs, rules.OPEN_CALLS) for m, entry, needs in marked for t in spellings(m)]
    if tools.bare and not marked_only:
        first = list(spellings(tools.list_open))
        if isinstance(body, JsonBody) and (tools.list_open is None or tools.list_optional):
            first.append("{")
        openers += [(t, None, ENTRY_BARE, False, rules.OPEN_BARE_CALLS) for t in first]
    return openers


def add_call_openers(
    markers: dict[str, MarkerRule], syntax: CallSyntax, tools: Tools, *, marked_only: bool = False
) -> None:
    """Add the literals with which calls of one syntax begin."""
    # Of several spellings the longest: white space is compared with its end.
    lead = max((s for s in spellings(tools.separator) if tools.lead and not s.strip(WS)), key=len, default="")
    words = [text for text in accepted(tools) if not MARKED.search(text)]
    for text, marker, entry, needs_section, kind in _openers(tools, marked_only=marked_only):
        rule = markers.get(text)
        if rule is None:
            rule = markers[text] = rule_of(kind, marker, lead)
            rule.place = rules.IN_SECTION if needs_section else rules.ANYWHERE
        elif rule.kind not in (rules.OPEN_CALLS, rules.OPEN_BARE_CALLS):
            raise FormatError(syntax.path, f"{text!r} already has another meaning where calls begin")
        if not needs_section:
            rule.place = rules.ANYWHERE
        rule.ambiguous = rule.ambiguous or (kind == rules.OPEN_CALLS and text in words)
        rule.entries.append((syntax, entry))


def _note_left_out(states: tuple[dict[str, MarkerRule], ...], tools: Tools, special_tokens: tuple[str, ...]) -> None:
    """Note which section, with a special token, the openers of calls lack that have no such token themselves."""
    section = tools.section_open
    if section is None or "section" not in tools.optional or not any(t in section.text for t in special_tokens):
        return
    for text in spellings(tools.call_open):
        if not any(token in text for token in special_tokens):
            for markers in states:
                markers[text].missing_section = section.text.strip(WS)


def add_call_texts(markers: dict[str, MarkerRule], fmt: Format) -> None:
    """Add the markers of calls that are text, if the closer or a part of it has another meaning in content."""
    for tools in fmt.tools:
        for opener, closer in ((tools.section_open, tools.section_close), (tools.call_open, tools.call_close)):
            for text in spellings(closer):
                if text in markers:
                    for opening in spellings(opener):
                        markers.setdefault(opening, MarkerRule(rules.CALL_TEXT, closers=1))
                elif any(literal in text for literal in markers):
                    markers[text] = MarkerRule(rules.CALL_TEXT)


def lone_calls(program: Program, fmt: Format) -> MarkerRule | None:
    """Return the rule of calls without any marker; None if all have one."""
    lone = [i for i, way in enumerate(fmt.tools) if way.alone]
    if not lone:
        return None
    rule = MarkerRule(rules.OPEN_BARE_CALLS)
    rule.place = rules.ON_ANY_LINE if any(fmt.tools[i].one_a_line for i in lone) else rules.ON_ITS_LINE
    rule.entries = [(program.call_syntaxes[i], ENTRY_BARE) for i in lone]
    return rule


def add_turn_starts(content: dict[str, MarkerRule], fmt: Format) -> None:
    """Add the starts of the turn with which an output may begin."""
    for text in spellings(fmt.turn.start) if fmt.turn.in_output else ():
        rule = content.setdefault(text.strip(WS), rule_of(rules.OPEN_TURN, fmt.turn.start))
        rule.place = rules.AT_START


def add_end_tokens(program: Program, ends: list[str], *states: dict[str, MarkerRule]) -> None:
    """Add special tokens that are dropped at the end of the output."""
    for markers in states:
        for text in ends:
            markers.setdefault(text, MarkerRule(rules.END_TOKEN))
    program.output_end = Literals({**dict.fromkeys(ends, 0), **program.turn_end.tags})


def rule_of(kind: int, marker: Marker | None, lead: str = "") -> MarkerRule:
    """Return the rule of a marker. ``lead``: white space that the Format writes before it as well."""
    rule = MarkerRule(kind)
    text = "" if marker is None else marker.text
    rule.space_before = lead + text[: len(text) - len(text.lstrip(WS))]
    rule.space_after = text[len(text.rstrip(WS)) :]
    return rule
