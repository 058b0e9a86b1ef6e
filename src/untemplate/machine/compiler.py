"""Compiles a Format to a Program.

* Everything in a Format that concerns parsing is decided here, once. The machine never sees a Format.
* A literal with two meanings in one state is an error of the Format. Only ways to write calls may share an opener,
  because the text after it decides between them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ..format import (
    Channels,
    ElementArguments,
    Format,
    FormatError,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
    Tools,
)
from .lexer import WS, Literals, literal_set
from .program import (
    AT_BARE,
    AT_CALL,
    AT_NAME,
    AT_SECTION,
    CALL_TEXT,
    CLOSE_CALL,
    CLOSE_MESSAGE,
    CLOSE_REASONING,
    CLOSE_SECTION,
    CLOSE_WRAP,
    END_TOKEN,
    END_TURN,
    IN_ARGUMENTS,
    IN_CONTENT,
    IN_REASONING,
    IS_ARGUMENTS_CLOSE,
    IS_CALL_CLOSE,
    IS_CALL_OPEN,
    IS_ELEMENT_CLOSE,
    IS_EMPTY_CLOSE,
    IS_HEADER_BODY,
    IS_HEADER_CLOSE,
    IS_HEADER_OPEN,
    IS_HEADER_PART,
    IS_ID_OPEN,
    IS_KEY_CLOSE,
    IS_KEY_OPEN,
    IS_LIST_CLOSE,
    IS_LIST_OPEN,
    IS_NAME_CLOSE,
    IS_NAME_OPEN,
    IS_OTHER_CLOSE,
    IS_SECTION_CLOSE,
    IS_SECTION_OPEN,
    IS_SEPARATOR,
    IS_TURN_END,
    IS_TYPE_OPEN,
    IS_VALUE_CLOSE,
    IS_VALUE_OPEN,
    IS_VALUE_STEM,
    JSON_BODY,
    NAMED_ELEMENTS,
    NAMED_JSON,
    NAMED_LITERAL,
    NAMED_TAGGED,
    OPEN_BARE_CALLS,
    OPEN_CALLS,
    OPEN_HEADER,
    OPEN_REASONING,
    OPEN_WRAP,
    CallSyntax,
    HeaderSyntax,
    MarkerRule,
    Pattern,
    Program,
    TextState,
)
from .regular import compile_regular_calls

# A backslash is the sign of a call that was copied into a string, with escapes.
_ILLEGAL_IN_NAMES: Final = "".join(map(chr, range(33))) + "<>{}()[]\"'`,;=\\"
# Before the first value of Python-style arguments: a key and its assignment, or nothing; and the beginning of that.
_KEY: Final = r"[ \t\r\n]*(?:[^\W\d][\w.\-]*[ \t\r\n]*[=:][ \t\r\n]*)?"
_KEY_BEGUN: Final = r"[ \t\r\n]*(?:[^\W\d][\w.\-]*[ \t\r\n]*)?"
_TO_ESCAPE: Final = re.compile("[\"']")
"""Characters that are escaped in a string."""
_SENTENCE: Final = re.compile(r"[\w\s',.:;!?-]+")
"""A marker that is a sentence of prose."""


def compile_format(fmt: Format, *, tools: bool = True, special: frozenset[str] = frozenset()) -> Program:
    """Return the Program of a Format. ``tools=False``: calls are text. ``special``: special tokens of the vocabulary
    that are not the Format's.

    Raises:
        FormatError: the Format contradicts itself. The error names the field.
    """
    program = Program(fmt.name)
    program.ids = fmt.ids
    program.turn_end = Literals(_tags((fmt.turn.end, IS_TURN_END)))
    ends = sorted(special)
    program.turn_starts = () if fmt.turn.start is None else fmt.turn.start.spellings
    if fmt.channels is not None:
        _compile_channels(program, fmt, fmt.channels, tools, ends)
        return program
    if tools:
        program.call_syntaxes = [_compile_tools(t, f"tools[{i}]", fmt.turn.end) for i, t in enumerate(fmt.tools)]
    reasoning = fmt.reasoning
    content: dict[str, MarkerRule] = {}
    thinking: dict[str, MarkerRule] = {}
    if reasoning is not None:
        for text in _spellings(reasoning.open):
            content[text] = _rule(OPEN_REASONING, reasoning.open)
            thinking[text] = _rule(OPEN_REASONING, reasoning.open)
        for text in reasoning.close.spellings:
            content[text] = _rule(CLOSE_REASONING, reasoning.close)
            content[text].at_start_only = _SENTENCE.fullmatch(text) is not None
            thinking[text] = _rule(CLOSE_REASONING, reasoning.close)
        program.repeats = reasoning.repeats
    if fmt.content is not None:
        for text in fmt.content.open.spellings:
            content[text] = _rule(OPEN_WRAP, fmt.content.open)
            content[text].anywhere = text in fmt.special_tokens
            # An answer without thoughts, where the prompt has opened reasoning.
            thinking[text] = _rule(OPEN_WRAP, fmt.content.open)
        for text in fmt.content.close.spellings:
            content[text] = _rule(CLOSE_WRAP, fmt.content.close)
    for syntax, way in zip(program.call_syntaxes, fmt.tools, strict=False):
        _add_call_openers(content, syntax, way)
        _add_call_openers(thinking, syntax, way, marked_only=True)
    for way in fmt.tools if tools else ():
        for text in _spellings(way.section_close):
            content.setdefault(text, MarkerRule(CLOSE_SECTION))
        for text in (*_spellings(way.call_close), *way.stray_closes):
            content.setdefault(text, MarkerRule(CLOSE_CALL))
    if not tools:
        _add_call_texts(content, fmt)
    for text in _spellings(fmt.turn.end):
        content.setdefault(text, _rule(END_TURN, fmt.turn.end))
        thinking.setdefault(text, _rule(END_TURN, fmt.turn.end))
    _add_end_tokens(program, ends, content, thinking)
    if tools:
        _compile_empty_calls(program, fmt)
    program.states = [TextState("content", IN_CONTENT, content, True)]
    lone = [i for i, way in enumerate(fmt.tools if tools else ()) if way.alone]
    if lone:
        rule = program.states[0].lone_calls = MarkerRule(OPEN_BARE_CALLS)
        rule.alone = True
        rule.follows = any(fmt.tools[i].one_a_line for i in lone)
        rule.entries = [(program.call_syntaxes[i], AT_BARE) for i in lone]
    if reasoning is not None:
        program.states.append(TextState("reasoning", IN_REASONING, thinking, True))
        program.reasoning = 1
        if reasoning.open is None:
            program.after_turn_start = 1
        program.start_without_prompt = 1 if reasoning.start == "open" or reasoning.open is None else 0
        program.opened = _spellings(reasoning.open)
        program.closed = reasoning.close.spellings
    return program


def _add_end_tokens(program: Program, ends: list[str], *states: dict[str, MarkerRule]) -> None:
    """Add special tokens that are dropped at the end of the output."""
    for rules in states:
        for text in ends:
            rules.setdefault(text, MarkerRule(END_TOKEN))
    program.output_end = Literals({**dict.fromkeys(ends, 0), **program.turn_end.tags})


def _compile_empty_calls(program: Program, fmt: Format) -> None:
    """Compile the markers by which calls without a call are recognised."""
    opens: list[str] = []
    closes: list[str] = []
    for way in fmt.tools:
        if way.section_open is None and way.call_open is None:
            continue
        opens += [text for m in (way.section_open, way.call_open, way.list_open) for text in _spellings(m)]
        closes += [text for m in (way.section_close, way.call_close, way.list_close) for text in _spellings(m)]
    sections = {text for way in fmt.tools for text in _spellings(way.section_open)}
    program.section_opens = frozenset(sections.difference(*(_spellings(way.call_open) for way in fmt.tools)))
    program.call_closes = Literals({text: 0 for text in closes if text not in program.turn_end.tags})
    markers = "|".join(map(re.escape, sorted(opens, key=len, reverse=True)))
    program.call_markers = re.compile(f"(?:{markers or '(?!)'}|[ \\t\\r\\n])*")


def _add_message_calls(
    program: Program, header: HeaderSyntax, fmt: Format, channels: Channels, closes: dict[str, int]
) -> None:
    """Add the syntaxes of calls that are the text of a message. The first syntax stays the one that headers name."""
    end = Marker("".join(list(closes)[:1]) or "\n", tuple(closes))
    rules: dict[str, MarkerRule] = {}
    for i, way in enumerate(fmt.tools, 1):
        if closes and way.call_open is not None and way.section_close is None:
            way = replace(way, section_close=end)  # the message is the section of its calls
        syntax = _compile_tools(way, f"tools[{i - 1}]", end if closes else None)
        syntax.variants = syntax.variants.difference(closes)
        syntax.message_opens = Literals(_tags((channels.open, IS_HEADER_OPEN)))
        # The header marks the call, so no tool has to be known.
        syntax.bare = False
        program.call_syntaxes.append(syntax)
        _add_call_openers(rules, syntax, way)
    header.calls = Literals({text: i for i, text in enumerate(rules)})
    header.call_rules = list(rules.values())


def _rule(kind: int, marker: Marker | None, lead: str = "") -> MarkerRule:
    """Return the rule of a marker. ``lead``: white space that the Format writes before it as well."""
    rule = MarkerRule(kind)
    text = "" if marker is None else marker.text
    rule.before = lead + text[: len(text) - len(text.lstrip(WS))]
    rule.after = text[len(text.rstrip(WS)) :]
    return rule


def _spellings(marker: Marker | None) -> tuple[str, ...]:
    return () if marker is None else marker.spellings


def _tags(*pairs: tuple[Marker | str | None, int]) -> dict[str, int]:
    """Return literal → tag. A literal keeps its first tag."""
    tags: dict[str, int] = {}
    for marker, tag in pairs:
        for text in (marker,) if isinstance(marker, str) else _spellings(marker):
            tags.setdefault(text, tag)
    return tags


_WS: Final = r"[ \t\r\n]*"
_MARKED: Final = re.compile(r"[<>\[\]|]")
"""Characters that make a literal more than a word."""


def _accepted(tools: Tools) -> tuple[str, ...]:
    """Return the spellings of openers that models are known to write, but that the renderer does not write."""
    markers = (tools.section_open, tools.call_open)
    return tuple(text for marker in markers for text in _spellings(marker)[1:])


def _add_call_openers(
    rules: dict[str, MarkerRule], syntax: CallSyntax, tools: Tools, *, marked_only: bool = False
) -> None:
    """Add the literals with which calls of one syntax begin."""
    body = tools.body
    inside = tools.section_open is not None and "section" not in tools.optional
    marked: list[tuple[Marker | None, int, bool]] = [
        (tools.section_open, AT_SECTION, False),
        (tools.call_open, AT_CALL, inside),
    ]
    if isinstance(body, NamedBody) and (tools.call_open is None or "call" in tools.optional):
        marked.append((body.name_open, AT_NAME, inside))
    openers = [(t, m, entry, needs, OPEN_CALLS) for m, entry, needs in marked for t in _spellings(m)]
    if tools.bare and not marked_only:
        first = list(_spellings(tools.list_open))
        if isinstance(body, JsonBody) and (tools.list_open is None or tools.list_optional):
            first.append("{")
        openers += [(t, None, AT_BARE, False, OPEN_BARE_CALLS) for t in first]
    # Of several spellings the longest: white space is compared with its end.
    lead = max((s for s in _spellings(tools.separator) if tools.lead and not s.strip(WS)), key=len, default="")
    for text, marker, entry, needs_section, kind in openers:
        rule = rules.get(text)
        if rule is None:
            rule = rules[text] = _rule(kind, marker, lead)
            rule.in_section_only = needs_section
        elif rule.kind not in (OPEN_CALLS, OPEN_BARE_CALLS):
            raise FormatError(syntax.path, f"{text!r} already has another meaning where calls begin")
        rule.in_section_only = rule.in_section_only and needs_section
        rule.ambiguous = rule.ambiguous or (
            kind == OPEN_CALLS and text in _accepted(tools) and not _MARKED.search(text)
        )
        rule.entries.append((syntax, entry))


def _add_call_texts(rules: dict[str, MarkerRule], fmt: Format) -> None:
    """Add the markers of calls that are text, if the closer or a part of it has another meaning in content."""
    for tools in fmt.tools:
        for opener, closer in ((tools.section_open, tools.section_close), (tools.call_open, tools.call_close)):
            for text in _spellings(closer):
                if text in rules:
                    for opening in _spellings(opener):
                        rules.setdefault(opening, MarkerRule(CALL_TEXT, 1))
                elif any(literal in text for literal in rules):
                    rules[text] = MarkerRule(CALL_TEXT)


def _compile_tools(tools: Tools, path: str, turn_end: Marker | None) -> CallSyntax:
    """Compile one way to write calls. ``turn_end``: the end of the turn, or of the message that holds the call."""
    body = tools.body
    named = body if isinstance(body, NamedBody) else None
    name_open = named.name_open if named is not None else None
    syntax = CallSyntax(_body_kind(tools), path)
    syntax.bare = tools.bare
    syntax.list_opens = tools.list_open is not None
    syntax.list_optional = tools.list_optional
    syntax.section_closes = tools.section_close is not None
    syntax.call_opens = tools.call_open is not None
    syntax.call_optional = "call" in tools.optional
    syntax.name_opens = name_open is not None
    syntax.call_closes = tools.call_close is not None
    separators = [s for s in _spellings(tools.separator) if s.strip()]
    syntax.separated = bool(separators) and tools.list_open is None and tools.section_open is None
    if tools.list_open is not None:
        separators.append(",")
    if tools.list_optional:
        syntax.separated = True
    arguments_close = named.arguments_close if named is not None else None
    syntax.between = Literals(
        _tags(
            (tools.section_close, IS_SECTION_CLOSE),
            (tools.list_open, IS_LIST_OPEN),
            (tools.list_close, IS_LIST_CLOSE),
            (tools.call_open, IS_CALL_OPEN),
            (name_open if not syntax.call_opens or syntax.call_optional else None, IS_NAME_OPEN),
            (tools.section_open, IS_SECTION_OPEN),
            *((s, IS_SEPARATOR) for s in separators),
        )
    )
    syntax.after = Literals(_tags((arguments_close, IS_ARGUMENTS_CLOSE), (tools.call_close, IS_CALL_CLOSE)))
    syntax.before_body = Literals(_tags((name_open, IS_NAME_OPEN)))
    stops = _tags(
        (tools.call_close, IS_CALL_CLOSE),
        (arguments_close, IS_ARGUMENTS_CLOSE),
        (tools.section_close, IS_SECTION_CLOSE),
        (tools.section_open, IS_SECTION_OPEN),
        (tools.call_open, IS_CALL_OPEN),
        (turn_end, IS_TURN_END),
    )
    words = [text for text in _accepted(tools) if not _MARKED.search(text)]
    syntax.call_stops = Literals({text: tag for text, tag in stops.items() if text not in words})
    if isinstance(body, JsonBody):
        _compile_json_body(syntax, body)
    else:
        _compile_named_body(syntax, tools, body, turn_end)
    _compile_starts(syntax, tools)
    syntax.variants = _variants(tools)
    syntax.plain_close = _plain_close(syntax)
    if syntax.body == NAMED_TAGGED:
        compile_regular_calls(syntax)
    return syntax


def _plain_close(syntax: CallSyntax) -> re.Pattern[str]:
    """Return the pattern of the closes of a call that the renderer writes, and that no longer literal begins with."""
    others = syntax.variants | syntax.after.prefixes
    closes = [text for text, tag in syntax.after.tags.items() if tag == IS_CALL_CLOSE and text not in others]
    inner = [text for text, tag in syntax.after.tags.items() if tag == IS_ARGUMENTS_CLOSE and text not in others]
    close = "|".join(map(re.escape, closes)) or "(?!)"
    arguments = rf"(?:(?:{'|'.join(map(re.escape, inner))})[ \t\r\n]?)?" if inner else ""
    return re.compile(rf"{_WS}+({arguments}(?:{close}))")


def _variants(tools: Tools) -> frozenset[str]:
    """Return the markers and keys around the parts of a call that are parsed and never written."""
    body = tools.body
    markers = [tools.section_open, tools.section_close, tools.list_open, tools.list_close]
    markers += [tools.call_open, tools.call_close]
    others: set[str] = set()
    if isinstance(body, JsonBody):
        others.update(body.accepted_name_keys, body.accepted_arguments_keys)
        others -= {body.name_key, body.arguments_key}
    else:
        markers += [body.name_open, body.name_close, body.id_open, body.arguments_close]
        others.update(_spellings(body.empty_close))
        if isinstance(body.arguments, TaggedArguments):
            arguments = body.arguments
            markers += [arguments.key_open, arguments.key_close, arguments.value_open, arguments.value_close]
    written = {text for marker in markers for text in _spellings(marker)[:1]}
    return frozenset(others.union(*(_spellings(marker)[1:] for marker in markers)) - written)


def _body_kind(tools: Tools) -> int:
    body = tools.body
    if isinstance(body, JsonBody):
        return JSON_BODY
    if isinstance(body.arguments, TaggedArguments):
        return NAMED_TAGGED
    if isinstance(body.arguments, ElementArguments):
        return NAMED_ELEMENTS
    return NAMED_LITERAL if isinstance(body.arguments, LiteralArguments) else NAMED_JSON


def _compile_json_body(syntax: CallSyntax, body: JsonBody) -> None:
    syntax.name_keys = frozenset((body.name_key, *body.accepted_name_keys))
    syntax.arguments_keys = frozenset((body.arguments_key, *body.accepted_arguments_keys))
    syntax.id_key = body.id_key or ""
    syntax.nested_key = body.nested_key or ""
    syntax.name_is_key = body.name_is_key
    syntax.constant_keys = frozenset(key for key, _ in body.constants)
    if not body.name_is_key and body.arguments_key != body.nested_key:
        name, arguments = re.escape(body.name_key), re.escape(body.arguments_key)
        follows = rf'{_WS}"{arguments}"{_WS}:{_WS}(?=\{{)'
        known_id = rf'(?:"{re.escape(body.id_key)}"{_WS}:{_WS}"([^"\\]*)"{_WS},{_WS})?' if body.id_key else "()?"
        named = rf'"{name}"{_WS}:{_WS}"([^"\\]+)"{_WS},'
        syntax.object_start = re.compile(rf"\{{{_WS}{known_id}{named}(?:{follows}())?")
        syntax.arguments_start = re.compile(rf'"({arguments})"{_WS}:{_WS}(?=\{{)')


def _compile_named_body(syntax: CallSyntax, tools: Tools, body: NamedBody, turn_end: Marker | None) -> None:
    arguments = body.arguments
    syntax.name = Pattern(body.name)
    syntax.name_in_tag = body.name_in_tag
    syntax.unescape = body.escape == "xml"
    ends: list[tuple[Marker | str | None, int]] = [
        (body.name_close, IS_NAME_CLOSE),
        (body.empty_close, IS_EMPTY_CLOSE),
        (body.id_open, IS_ID_OPEN),
        (body.arguments_close, IS_ARGUMENTS_CLOSE),
        (tools.call_close, IS_CALL_CLOSE),
    ]
    illegal = set(_ILLEGAL_IN_NAMES) - syntax.name.legal
    if isinstance(arguments, JsonArguments):
        ends.append(("{", IS_KEY_OPEN))
    elif isinstance(arguments, TaggedArguments):
        ends.append((arguments.key_open, IS_KEY_OPEN))
        if arguments.value_open is not None:
            # If key_open is missing, the name and the first key are one word.
            ends.append((arguments.key_close, IS_KEY_CLOSE))
        name_open = body.name_open if not syntax.call_opens or syntax.call_optional else None
        around = _around(tools, body, turn_end) | _tags((name_open, IS_NAME_OPEN))
        syntax.tags = Literals({**_tags((arguments.key_open, IS_KEY_OPEN)), **around})
        syntax.key = Pattern(arguments.key)
        # A value's opener ends the key even if key_close is missing.
        opens = ((arguments.value_open, IS_VALUE_OPEN), (arguments.type_open, IS_TYPE_OPEN))
        syntax.key_ends = Literals(_tags((arguments.key_close, IS_KEY_CLOSE), *opens))
        syntax.value_opens = Literals(_tags(*opens))
        syntax.has_value_open = arguments.value_open is not None
        syntax.value_ends = Literals(_tags((arguments.value_close, IS_VALUE_CLOSE)))
        _compile_value_ends(syntax, tools, body, arguments, turn_end)
        syntax.trim, syntax.trim_after = arguments.trims
        syntax.holds_after = max(syntax.trim_after, int(syntax.key_on_line))
        syntax.unescape_values = arguments.escape == "xml"
        syntax.unescape_keys = arguments.escape_of_keys == "xml"
    elif isinstance(arguments, ElementArguments):
        ends.append((arguments.open, IS_KEY_OPEN))
        _compile_elements(syntax, tools, body, arguments, turn_end)
    else:
        ends += [(arguments.open, IS_KEY_OPEN), ("(", IS_KEY_OPEN), ("{", IS_KEY_OPEN)]
        syntax.bracket_open = arguments.open
        syntax.bracket_close = arguments.close
        syntax.assign = arguments.assign
        syntax.quotes = literal_set(*arguments.quotes)
        # A quote without such a character is the same in an escaped copy.
        heads = [_TO_ESCAPE.split(quote, maxsplit=1)[0] for quote in arguments.quotes if _TO_ESCAPE.search(quote)]
        syntax.escaped = re.compile(rf"{_KEY}(?:{'|'.join(map(re.escape, heads)) or '(?!)'})\\")
        begun = {re.escape(head[:i]) for head in heads for i in range(len(head) + 1)}
        syntax.escaped_prefix = re.compile(rf"(?:{_KEY_BEGUN}|{_KEY}(?:{'|'.join(begun)}))\Z")
        syntax.quoted_values = arguments.quoted == "all"
        syntax.quotes_optional = arguments.quoted == "optional"
        watched = re.escape(f")]}}{syntax.call_stops.first_characters}{syntax.quotes.first_characters}")
        syntax.watched = re.compile(f"[,{watched}]")
        syntax.watched_last = re.compile(f"[{watched}]")
        raw = () if arguments.escapes else arguments.quotes[:1]
        syntax.escaping = tuple(quote for quote in ("'", '"') if quote not in raw)
    syntax.name_ends = Literals(_tags(*ends))
    if syntax.body in (NAMED_TAGGED, NAMED_ELEMENTS) and body.name_close is not None and body.name_close.text.strip(WS):
        syntax.damaged_name_ends = (IS_KEY_OPEN, IS_ARGUMENTS_CLOSE, IS_CALL_CLOSE)
    syntax.name_illegal = re.compile("[" + re.escape("".join(sorted(illegal))) + "]")
    not_open = re.escape("".join(sorted({*illegal, *syntax.name_ends.first_characters, "&"})))
    syntax.open_name = re.compile(rf"[^{not_open}]{{1,64}}\Z")
    _compile_name(syntax)
    syntax.id_ends = Literals(_tags((body.name_close, IS_NAME_CLOSE)))


def _compile_name(syntax: CallSyntax) -> None:
    """Compile the name as it is written where nothing is unusual about it."""
    pattern = syntax.name
    numbered = "index" in pattern.variables and "name" in pattern.variables
    syntax.name_is_id = numbered and "." in pattern.pattern
    if syntax.name_ends.word_goes_on and (pattern.plain or sorted(pattern.variables) == ["index", "name"]):
        words = {"name": r"(?P<name>\w{1,64}+)", "index": "[0-9]{1,64}+"}
        pieces = zip(pattern.literals, [*map(words.__getitem__, pattern.variables), ""], strict=True)
        name = "".join(re.escape(literal) + variable for literal, variable in pieces)
        syntax.simple_name = re.compile(f"{name}(?P<end>{syntax.name_ends.pattern.pattern})")


def _around(tools: Tools, body: NamedBody, turn_end: Marker | None) -> dict[str, int]:
    """Return the literals that may follow the arguments."""
    return _tags(
        (body.arguments_close, IS_ARGUMENTS_CLOSE),
        (tools.call_close, IS_CALL_CLOSE),
        (tools.section_close, IS_SECTION_CLOSE),
        (tools.call_open, IS_CALL_OPEN),
        (tools.section_open, IS_SECTION_OPEN),
        (turn_end, IS_TURN_END),
    )


def _compile_elements(
    syntax: CallSyntax, tools: Tools, body: NamedBody, arguments: ElementArguments, turn_end: Marker | None
) -> None:
    name_open = body.name_open if not syntax.call_opens or syntax.call_optional else None
    tags = _around(tools, body, turn_end) | _tags((name_open, IS_NAME_OPEN))
    elements = _tags((arguments.open, IS_KEY_OPEN), (arguments.close, IS_ELEMENT_CLOSE))
    syntax.tags = Literals({**elements, **tags})
    syntax.value_heads = tuple(sorted({text[0] for text in syntax.tags.tags}))
    syntax.element_closes = arguments.close.spellings
    syntax.element_close_of = dict(zip(arguments.open.spellings, arguments.close.spellings, strict=False))
    syntax.tag_end = arguments.name_close
    syntax.tag_ends = Literals({arguments.name_close: 0})
    syntax.item = arguments.item
    syntax.call_starts = _call_starts(tools, body)


def _call_starts(tools: Tools, body: NamedBody) -> Literals:
    return Literals(
        _tags((tools.section_open, IS_SECTION_OPEN), (tools.call_open, IS_CALL_OPEN), (body.name_open, IS_NAME_OPEN))
    )


CLOSE_TAG: Final = re.compile(r"</[^<>]+>")
_NAMED_TAG: Final = re.compile(r"(</(?:[^<>]*\W)?)\w+>")


def _compile_value_ends(
    syntax: CallSyntax, tools: Tools, body: NamedBody, arguments: TaggedArguments, turn_end: Marker | None
) -> None:
    """Compile where a tagged value may end, with its own close and without."""
    openers = (IS_CALL_OPEN, IS_SECTION_OPEN, IS_NAME_OPEN)
    successors = {t: k for t, k in syntax.tags.tags.items() if k not in openers}
    syntax.value_successors = Literals({**syntax.value_ends.tags, **successors})
    stems = {text[:-1]: IS_VALUE_STEM for text in syntax.value_ends.tags if CLOSE_TAG.fullmatch(text)}
    others = {text: IS_OTHER_CLOSE for text in arguments.key_close.spellings if CLOSE_TAG.fullmatch(text)}
    stops = {**others, **stems, **syntax.tags.tags, **syntax.value_ends.tags}
    named = _NAMED_TAG.fullmatch(arguments.value_close.text.strip(WS))
    syntax.close_head = "" if named is None else named.group(1)
    syntax.value_stops = Literals(stops)
    syntax.value_heads = tuple(sorted({text[0] for text in stops}))
    unopened = {**syntax.tags.tags, **syntax.value_opens.tags, **syntax.value_ends.tags}
    syntax.unopened = Literals(unopened)
    if arguments.type_close is not None:
        syntax.type_ends = Literals({**_tags((arguments.type_close, IS_KEY_CLOSE)), **unopened})
    syntax.call_starts = _call_starts(tools, body)
    syntax.innermost = IS_CALL_CLOSE if body.arguments_close is None else IS_ARGUMENTS_CLOSE
    if arguments.value_close.text.endswith("\n") or arguments.key_open.text.startswith("\n"):
        syntax.key_on_line = True
    if arguments.escape == "cdata":
        closes = [f"]]>{space}{text}" for text in arguments.value_close.spellings for space in ("", "\n")]
        whole = replace(
            arguments, escape="none", value_close=Marker(closes[0], tuple(closes[1:])), trim=0, trim_after=0
        )
        section = _compile_tools(replace(tools, body=replace(body, arguments=whole)), syntax.path, turn_end)
        section.variants = section.variants.difference(closes)
        section.regular_ends = {}  # What follows the section is read with the other syntax.
        syntax.section = section


def _compile_starts(syntax: CallSyntax, tools: Tools) -> None:
    """Compile what may follow each opener, for syntaxes that share one."""
    body = tools.body
    if isinstance(body, JsonBody):
        first = Literals({"{": 0})
    elif body.name_open is not None:
        first = syntax.before_body
    else:
        first = Literals({})
    lists = [] if tools.list_open is None else [[Literals(_tags((tools.list_open, IS_LIST_OPEN)))]]
    if tools.list_open is None or tools.list_optional:
        lists.append([])
    calls = [] if tools.call_open is None else [[Literals(_tags((tools.call_open, IS_CALL_OPEN))), first]]
    if tools.call_open is None or syntax.call_optional:
        calls.append([first])
    syntax.after_call = [[first]]
    syntax.after_section = [opened + call for opened in lists for call in calls]
    syntax.bare_start = [[*opened, first] for opened in lists]


def _compile_channels(program: Program, fmt: Format, channels: Channels, tools: bool, ends: list[str]) -> None:
    header = HeaderSyntax()
    bare = channels.recipient is None
    bodies = (channels.body, channels.reasoning_body, channels.call_body)
    kinds = [body for body in bodies[1:] if body is not None]
    closes = _tags(
        (channels.close, IS_HEADER_CLOSE), (channels.call_close, IS_HEADER_CLOSE), (fmt.turn.end, IS_HEADER_CLOSE)
    )
    parts = () if bare else (channels.channel, channels.recipient, channels.constraint)
    header.literals = Literals(
        {
            **_tags((channels.open, IS_HEADER_OPEN), *((p, IS_HEADER_PART) for p in parts)),
            **(_tags(*((b, IS_HEADER_BODY) for b in (bodies if not bare or kinds else ())))),
            **closes,
        }
    )
    header.body = Literals(
        _tags((channels.body, IN_CONTENT), (channels.reasoning_body, IN_REASONING), (channels.call_body, IN_ARGUMENTS))
    )
    header.channel = _spellings(channels.channel)
    header.recipient = _spellings(channels.recipient)
    header.constraint = _spellings(channels.constraint)
    header.opens = channels.open.spellings
    header.bare = bare
    header.marks = re.compile("|".join(["<", *(re.escape(t) for t in header.literals.tags if t.strip() == t)]))
    header.namespace = channels.namespace
    header.join = channels.join
    header.closes = Literals({text: IS_HEADER_CLOSE for text in closes if text not in program.turn_end.tags})
    header.only_text = frozenset((*channels.reasoning, *channels.content[:1]))
    header.names_tools = channels.call_body is None
    header.reasoning = frozenset(channels.reasoning)
    header.content = frozenset(channels.content)
    stops = "|".join(map(re.escape, (*closes, *header.opens)))
    header.illegal = re.compile(f"[{re.escape(_ILLEGAL_IN_NAMES.replace(chr(10), ''))}]" if bare else f"{stops}|\n")
    header.decides = re.compile(f"{header.illegal.pattern}|{header.body.pattern.pattern}")
    program.header = header
    program.header_first = True
    content: dict[str, MarkerRule] = {}
    for text in channels.open.spellings:
        content[text] = MarkerRule(OPEN_HEADER)
    for text in header.channel:
        if text not in content:
            content[text] = MarkerRule(OPEN_HEADER)
            content[text].in_header = True
    for text in (text for body in (*kinds, *(bodies[:1] if kinds else ())) for text in body.spellings):
        content[text] = MarkerRule(OPEN_HEADER)
        content[text].in_header = True
    for text in (*_spellings(channels.close), *_spellings(channels.call_close)):
        content.setdefault(text, MarkerRule(CLOSE_MESSAGE))
    for text in _spellings(fmt.turn.end):
        content.setdefault(text, MarkerRule(END_TURN))
    _add_end_tokens(program, ends, content)
    program.states = [
        TextState("content", IN_CONTENT, content, True),
        TextState("reasoning", IN_REASONING, content, True),
    ]
    program.reasoning = 1
    program.repeats = True
    if tools:
        syntax = CallSyntax(NAMED_JSON, "channels")
        syntax.after = Literals(
            dict.fromkeys((*_spellings(channels.call_close), *_spellings(channels.close)), IS_CALL_CLOSE)
        )
        syntax.call_closes = not syntax.after.empty
        syntax.plain_close = _plain_close(syntax)
        syntax.call_stops = Literals(
            dict.fromkeys((*syntax.after.tags, *channels.open.spellings, *_spellings(fmt.turn.end)), IS_CALL_CLOSE)
        )
        program.call_syntaxes = [syntax]
        _add_message_calls(program, header, fmt, channels, closes)
