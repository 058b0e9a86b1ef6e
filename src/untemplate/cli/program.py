"""Describe a compiled Program for people: states, rules and call syntaxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ..machine import program as p
from ..machine.lexer import Literals

if TYPE_CHECKING:
    from ..machine.program import CallSyntax, HeaderSyntax, MarkerRule, Program, TextState

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
    p.OPEN_REASONING: "opens reasoning",
    p.CLOSE_REASONING: "closes reasoning",
    p.OPEN_WRAP: "opens wrapped content",
    p.CLOSE_WRAP: "closes wrapped content",
    p.END_TURN: "ends the turn",
    p.CLOSE_SECTION: "closes a section of calls (alone: a stray close)",
    p.CLOSE_CALL: "closes a call (alone: a stray close)",
    p.OPEN_HEADER: "begins a message header",
    p.CLOSE_MESSAGE: "closes a message",
    p.CALL_TEXT: "a marker of a call that is text",
}
_ENTRIES: Final = {
    p.AT_SECTION: "a section of calls",
    p.AT_CALL: "a call",
    p.AT_NAME: "a call, at its name",
    p.AT_BARE: "a call without a marker, at the start of content",
}
_BODIES: Final = {
    p.JSON_BODY: "a JSON object with name and arguments",
    p.NAMED_JSON: "a name, then JSON",
    p.NAMED_TAGGED: "a name, then tagged arguments",
    p.NAMED_LITERAL: "a name, then Python-style arguments",
    p.NAMED_ELEMENTS: "a name and arguments in elements named after them",
}
_TAGS: Final = {
    p.IS_SECTION_CLOSE: "section closes",
    p.IS_LIST_OPEN: "list opens",
    p.IS_LIST_CLOSE: "list closes",
    p.IS_CALL_OPEN: "call opens",
    p.IS_CALL_CLOSE: "call closes",
    p.IS_NAME_OPEN: "name opens",
    p.IS_SEPARATOR: "separator",
    p.IS_NAME_CLOSE: "name closes",
    p.IS_ID_OPEN: "id opens",
    p.IS_ARGUMENTS_CLOSE: "arguments close",
    p.IS_KEY_OPEN: "arguments open",
    p.IS_KEY_CLOSE: "key closes",
    p.IS_VALUE_OPEN: "value opens",
    p.IS_VALUE_CLOSE: "value closes",
    p.IS_SECTION_OPEN: "section opens",
    p.IS_TURN_END: "turn ends",
}
_HEADER_TAGS: Final = {
    p.IS_HEADER_OPEN: "header opens",
    p.IS_HEADER_PART: "part of the header",
    p.IS_HEADER_CLOSE: "message closes",
    p.IS_HEADER_BODY: "header ends, text begins",
}


def shown(program: Program) -> Iterator[Row]:
    """Yield the program as labelled rows; a row without text is a title."""
    yield f"program {program.name}", ""
    yield "begins in", _name(program, program.content) + " if the prompt opens nothing"
    yield "", _name(program, program.start_without_prompt) + " without a prompt"
    if program.after_turn_start != program.content:
        yield "", _name(program, program.after_turn_start) + ", right after the start of the turn"
    if program.header_first:
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
    if rule.kind == p.ENTER_STATE:
        yield f"-> {_name(program, rule.target)}"
    elif rule.kind in (p.OPEN_CALLS, p.OPEN_BARE_CALLS):
        only = " (only in an open section)" if rule.in_section_only else ""
        for syntax, entry in rule.entries:
            yield f"opens {_ENTRIES[entry]} -> {syntax.path}{only}"
    elif rule.kind == p.OPEN_WRAP:
        yield _RULES[rule.kind] + (" anywhere" if rule.anywhere else " at the start")
    else:
        yield _RULES[rule.kind]


def _header(header: HeaderSyntax) -> Iterator[Row]:
    yield "message header", ""
    for text, tag in header.literals.tags.items():
        yield repr(text), _HEADER_TAGS[tag]
    if header.bare:
        yield "is", "one word, the recipient"
    for label, words in (("reasoning", header.reasoning), ("content", header.content)):
        if words:
            yield label, "channel " + " or ".join(map(repr, sorted(words)))
    if header.namespace:
        yield "namespace", f"{header.namespace!r}, left out of names"


def _syntax(syntax: CallSyntax) -> Iterator[Row]:
    yield f"call syntax {syntax.path}", ""
    yield "a call is", _BODIES[syntax.body]
    if syntax.body == p.JSON_BODY:
        yield from _json(syntax)
    else:
        yield "name", repr(syntax.name.pattern)
        if syntax.body == p.NAMED_TAGGED:
            yield "key", repr(syntax.key.pattern)
        if syntax.body == p.NAMED_ELEMENTS:
            yield "array", f"elements {syntax.item!r}"
        if syntax.body == p.NAMED_LITERAL:
            quotes = " ".join(map(repr, syntax.quotes.tags))
            yield (
                "arguments",
                f"{syntax.bracket_open!r} key {syntax.assign!r} value {syntax.bracket_close!r}, quotes {quotes}",
            )
    flags = [
        ("bare", "may have no marker at the start of content"),
        ("list_optional", "its list may be left out"),
        ("call_optional", "its call marker may be left out"),
        ("separated", "calls may follow one another after a separator"),
    ]
    yield from (("", said) for name, said in flags if getattr(syntax, name))
    for label, literals in (
        ("between", syntax.between),
        ("before it", syntax.before_body),
        ("name ends", syntax.name_ends),
        ("id ends", syntax.id_ends),
        ("arguments", syntax.tags),
        ("key ends", syntax.key_ends),
        ("value opens", syntax.value_opens),
        ("value ends", syntax.value_ends),
        ("after it", syntax.after),
        ("resumes at", syntax.call_stops),
    ):
        yield from _literals(label, literals)


def _json(syntax: CallSyntax) -> Iterator[Row]:
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
