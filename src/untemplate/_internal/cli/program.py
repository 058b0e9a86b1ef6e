"""Describe a compiled Program for people: states, rules and call syntaxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ..machine import call_syntax as c
from ..machine import program as p
from ..machine import rules, tags
from ..machine.elements.body import ElementsBody
from ..machine.json.body import ObjectBody
from ..machine.lexer import Literals
from ..machine.literal.body import LiteralBody
from ..machine.tagged.body import TaggedBody

if TYPE_CHECKING:
    from ..machine.call_syntax import CallSyntax
    from ..machine.json.program import ObjectSyntax
    from ..machine.program import HeaderSyntax, Program, TextState
    from ..machine.rules import MarkerRule

Row = tuple[str, str]
"""(label, text); a title has no text."""

_REGIONS: Final = {
    p.IN_CONTENT: "content",
    p.IN_REASONING: "reasoning",
    p.IN_NAME: "a call's name",
    p.IN_ARGUMENTS: "arguments",
    p.IN_SILENT: "dropped",
}
_RULES: Final = {
    rules.OPEN_REASONING: "opens reasoning",
    rules.CLOSE_REASONING: "closes reasoning",
    rules.OPEN_WRAP: "opens wrapped content",
    rules.CLOSE_WRAP: "closes wrapped content",
    rules.END_TURN: "ends the turn",
    rules.CLOSE_SECTION: "closes a section of calls (alone: a stray close)",
    rules.CLOSE_CALL: "closes a call (alone: a stray close)",
    rules.OPEN_HEADER: "begins a message header",
    rules.CLOSE_MESSAGE: "closes a message",
    rules.CALL_TEXT: "a marker of a call that is text",
}
_ENTRIES: Final = {
    c.ENTRY_SECTION: "a section of calls",
    c.ENTRY_CALL: "a call",
    c.ENTRY_NAME: "a call, at its name",
    c.ENTRY_BARE: "a call without a marker, at the start of content",
}
_TAGS: Final = {
    tags.SECTION_CLOSE: "section closes",
    tags.LIST_OPEN: "list opens",
    tags.LIST_CLOSE: "list closes",
    tags.CALL_OPEN: "call opens",
    tags.CALL_CLOSE: "call closes",
    tags.NAME_OPEN: "name opens",
    tags.SEPARATOR: "separator",
    tags.NAME_CLOSE: "name closes",
    tags.ID_OPEN: "id opens",
    tags.ARGUMENTS_CLOSE: "arguments close",
    tags.KEY_OPEN: "arguments open",
    tags.KEY_CLOSE: "key closes",
    tags.VALUE_OPEN: "value opens",
    tags.VALUE_CLOSE: "value closes",
    tags.SECTION_OPEN: "section opens",
    tags.TURN_END: "turn ends",
}
_HEADER_TAGS: Final = {
    tags.HEADER_OPEN: "header opens",
    tags.HEADER_PART: "part of the header",
    tags.HEADER_CLOSE: "message closes",
    tags.HEADER_BODY: "header ends, text begins",
}


def shown(program: Program) -> Iterator[Row]:
    """Yield the program as labelled rows; a row without text is a title."""
    yield f"program {program.name}", ""
    yield "begins in", _name(program, program.content) + " if the prompt opens nothing"
    yield "", _name(program, program.start_without_prompt) + " without a prompt"
    if program.after_turn_start != program.content:
        yield "", _name(program, program.after_turn_start) + ", right after the start of the turn"
    if program.header is not None:
        yield "", "a message header, unless the prompt has begun one"
    for label, texts in (
        ("turn starts", program.turn_starts),
        ("turn ends", tuple(program.turn_end.tags)),
        ("opened by", program.opened),
        ("closed by", program.closed),
    ):
        if texts:
            yield label, " ".join(map(repr, texts))
    if program.reasoning >= 0:
        yield "reasoning", "may open again" if program.repeats else "opens once"
    yield "ids", program.ids
    for state in program.states:
        yield from _state(program, state)
    if program.header is not None:
        yield from _header(program.header)
    for syntax in program.call_syntaxes:
        yield from _syntax(syntax)


def _name(program: Program, state: int) -> str:
    return program.states[state].name


def _state(program: Program, state: TextState) -> Iterator[Row]:
    trims = "; white space at its markers is dropped" if state.trims else ""
    yield f"state {state.name}", ""
    yield "text is", _REGIONS[state.region] + trims
    for text, index in state.literals.tags.items():
        label = repr(text)
        for effect in _effects(program, state.rules[index]):
            yield label, effect
            label = ""


def _effects(program: Program, rule: MarkerRule) -> Iterator[str]:
    if rule.kind == rules.ENTER_STATE:
        yield f"-> {_name(program, rule.next_state)}"
    elif rule.kind in (rules.OPEN_CALLS, rules.OPEN_BARE_CALLS):
        only = " (only in an open section)" if rule.place == rules.IN_SECTION else ""
        for syntax, entry in rule.entries:
            yield f"opens {_ENTRIES[entry]} -> {syntax.path}{only}"
    elif rule.kind == rules.OPEN_WRAP:
        yield _RULES[rule.kind] + (" anywhere" if rule.place == rules.ANYWHERE else " at the start")
    else:
        yield _RULES[rule.kind]


def _header(header: HeaderSyntax) -> Iterator[Row]:
    yield "message header", ""
    for text, tag in header.literals.tags.items():
        yield repr(text), _HEADER_TAGS[tag]
    if header.is_one_word:
        yield "is", "one word, the recipient"
    for label, words in (("reasoning", header.reasoning), ("content", header.content)):
        if words:
            yield label, "channel " + " or ".join(map(repr, sorted(words)))
    if header.namespace:
        yield "namespace", f"{header.namespace!r}, left out of names"


def _syntax(syntax: CallSyntax) -> Iterator[Row]:
    body, name = syntax.body, syntax.name
    yield f"call syntax {syntax.path}", ""
    yield "a call is", body.kind
    if name is not None:
        yield "name", repr(name.pattern.pattern)
    yield from _body(body)
    flags = [
        (syntax.bare, "may have no marker at the start of content"),
        (syntax.lists == c.OPTIONAL, "its list may be left out"),
        (syntax.opens == c.OPTIONAL, "its call marker may be left out"),
        (bool(syntax.separators), "calls may follow one another after a separator"),
    ]
    yield from (("", said) for flag, said in flags if flag)
    yield from _literals("between", syntax.between)
    yield from _literals("before it", syntax.before_body)
    if name is not None:
        yield from _literals("name ends", name.ends)
        yield from _literals("id ends", name.id_ends)
    if isinstance(body, TaggedBody):
        yield from _literals("arguments", body.syntax.tags)
        yield from _literals("key ends", body.syntax.key_ends)
        yield from _literals("value opens", body.syntax.value_opens)
        yield from _literals("value ends", body.syntax.value_ends)
    elif isinstance(body, ElementsBody):
        yield from _literals("arguments", body.syntax.tags)
    yield from _literals("after it", syntax.after)
    yield from _literals("resumes at", syntax.stops)


def _body(body: c.Body) -> Iterator[Row]:
    if isinstance(body, ObjectBody):
        yield from _json(body.syntax)
    elif isinstance(body, TaggedBody):
        yield "key", repr(body.syntax.key.pattern)
    elif isinstance(body, ElementsBody):
        yield "array", f"elements {body.syntax.item!r}"
    elif isinstance(body, LiteralBody):
        syntax = body.syntax
        quotes = " ".join(map(repr, syntax.quotes.tags))
        yield "arguments", f"{syntax.open!r} key {syntax.assign!r} value {syntax.close!r}, quotes {quotes}"


def _json(syntax: ObjectSyntax) -> Iterator[Row]:
    if syntax.name_is_key:
        yield "name", "the object's only key"
    for label, keys in (
        ("name", () if syntax.name_is_key else sorted(syntax.name_keys)),
        ("arguments", () if syntax.name_is_key else sorted(syntax.arguments_keys)),
        ("id", filter(None, [syntax.id_key])),
        ("inside", filter(None, [syntax.nested_key])),
        ("constant", sorted(syntax.constant_keys)),
    ):
        if joined := _joined(keys):
            yield label, f"key {joined}"


def _joined(keys: Iterable[str]) -> str:
    return " or ".join(map(repr, keys))


def _literals(label: str, literals: Literals) -> Iterator[Row]:
    for text, tag in literals.tags.items():
        yield label, f"{text!r}  {_TAGS.get(tag, '')}".rstrip()
        label = ""
