"""Compiles a Format to a Program.

* Everything in a Format that concerns parsing is decided here, once. The machine never sees a Format.
* A literal with two meanings in one state is an error of the Format. Only ways to write calls may share an opener,
  because the text after it decides between them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...format import (
    Channels,
    Content,
    ElementArguments,
    Format,
    FormatError,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
)
from . import tags
from .call_syntax import (
    ENTRY_BARE,
    ENTRY_CALL,
    ENTRY_NAME,
    ENTRY_SECTION,
    OPTIONAL,
    SHORT_WORD,
    UNWRITTEN,
    WRITTEN,
    Body,
    CallSyntax,
    NameSyntax,
)
from .json.compiler import compile_json, compile_object
from .lexer import WS, GoesOn, Literals
from .marker_tags import spellings as _spellings
from .marker_tags import tagged as _tags
from .program import (
    ANYWHERE,
    AT_START,
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
    IN_HEADER,
    IN_REASONING,
    IN_SECTION,
    ON_ANY_LINE,
    ON_ITS_LINE,
    OPEN_BARE_CALLS,
    OPEN_CALLS,
    OPEN_HEADER,
    OPEN_REASONING,
    OPEN_TURN,
    OPEN_WRAP,
    HeaderSyntax,
    MarkerRule,
    Program,
    TextState,
)

if TYPE_CHECKING:
    from .tagged.body import TaggedBody

# A backslash is the sign of a call that was copied into a string, with escapes.
_ILLEGAL_IN_NAMES: Final = "".join(map(chr, range(33))) + "<>{}()[]\"'`,;=\\"
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
    program.turn_end = Literals(_tags((fmt.turn.end, tags.TURN_END)))
    ends = sorted(special)
    program.turn_starts = () if fmt.turn.start is None else fmt.turn.start.spellings
    program.start_in_output = fmt.turn.in_output
    if fmt.channels is not None:
        _compile_channels(program, fmt, fmt.channels, tools, ends)
        return program
    if tools:
        program.call_syntaxes = [_compile_tools(t, f"tools[{i}]", fmt.turn.end) for i, t in enumerate(fmt.tools)]
        _compile_empty_calls(program, fmt)
    content: dict[str, MarkerRule] = {}
    thinking: dict[str, MarkerRule] = {}
    if fmt.reasoning is not None:
        _add_reasoning(fmt.reasoning, content, thinking)
    if fmt.content is not None:
        _add_wrap(fmt.content, fmt.special_tokens, content, thinking)
    if tools:
        _add_calls(program, fmt, content, thinking)
    else:
        _add_call_texts(content, fmt)
    _add_turn_starts(content, fmt)
    for text in _spellings(fmt.turn.end):
        content.setdefault(text, _rule(END_TURN, fmt.turn.end))
        thinking.setdefault(text, _rule(END_TURN, fmt.turn.end))
    _add_end_tokens(program, ends, content, thinking)
    program.states = [TextState("content", IN_CONTENT, content, True)]
    if tools:
        program.states[0].lone_calls = _lone_calls(program, fmt)
    if fmt.reasoning is not None:
        program.states.append(TextState("reasoning", IN_REASONING, thinking, True))
        _compile_starts_of_reasoning(program, fmt.reasoning)
    return program


def _add_reasoning(reasoning: Reasoning, content: dict[str, MarkerRule], thinking: dict[str, MarkerRule]) -> None:
    """Add the markers of reasoning to the states of content and of reasoning."""
    for text in _spellings(reasoning.open):
        content[text] = _rule(OPEN_REASONING, reasoning.open)
        thinking[text] = _rule(OPEN_REASONING, reasoning.open)
    for text in reasoning.close.spellings:
        content[text] = _rule(CLOSE_REASONING, reasoning.close)
        content[text].place = ANYWHERE if _SENTENCE.fullmatch(text) is None else AT_START
        thinking[text] = _rule(CLOSE_REASONING, reasoning.close)


def _add_wrap(
    wrap: Content, special_tokens: tuple[str, ...], content: dict[str, MarkerRule], thinking: dict[str, MarkerRule]
) -> None:
    """Add the markers around content."""
    for text in wrap.open.spellings:
        content[text] = _rule(OPEN_WRAP, wrap.open)
        content[text].place = ANYWHERE if text in special_tokens else AT_START
        # An answer without thoughts, where the prompt has opened reasoning.
        thinking[text] = _rule(OPEN_WRAP, wrap.open)
        thinking[text].place = AT_START
    for text in wrap.close.spellings:
        content[text] = _rule(CLOSE_WRAP, wrap.close)


def _add_calls(program: Program, fmt: Format, content: dict[str, MarkerRule], thinking: dict[str, MarkerRule]) -> None:
    """Add the openers of calls, and the closes that are dropped in content."""
    for syntax, way in zip(program.call_syntaxes, fmt.tools, strict=True):
        _add_call_openers(content, syntax, way)
        _add_call_openers(thinking, syntax, way, marked_only=True)
        _note_left_out((content, thinking), way, fmt.special_tokens)
    for way in fmt.tools:
        for text in _spellings(way.section_close):
            content.setdefault(text, MarkerRule(CLOSE_SECTION))
        for text in (*_spellings(way.call_close), *way.stray_closes):
            content.setdefault(text, MarkerRule(CLOSE_CALL))


def _lone_calls(program: Program, fmt: Format) -> MarkerRule | None:
    """Return the rule of calls without any marker; None if all have one."""
    lone = [i for i, way in enumerate(fmt.tools) if way.alone]
    if not lone:
        return None
    rule = MarkerRule(OPEN_BARE_CALLS)
    rule.place = ON_ANY_LINE if any(fmt.tools[i].one_a_line for i in lone) else ON_ITS_LINE
    rule.entries = [(program.call_syntaxes[i], ENTRY_BARE) for i in lone]
    return rule


def _compile_starts_of_reasoning(program: Program, reasoning: Reasoning) -> None:
    """Compile where an output begins in reasoning."""
    program.repeats = reasoning.repeats
    program.reasoning = 1
    if reasoning.open is None:
        program.after_turn_start = 1
    program.start_without_prompt = 1 if reasoning.start == "open" or reasoning.open is None else 0
    program.opened = _spellings(reasoning.open)
    program.closed = reasoning.close.spellings


def _add_turn_starts(content: dict[str, MarkerRule], fmt: Format) -> None:
    """Add the starts of the turn with which an output may begin."""
    for text in _spellings(fmt.turn.start) if fmt.turn.in_output else ():
        rule = content.setdefault(text.strip(WS), _rule(OPEN_TURN, fmt.turn.start))
        rule.place = AT_START


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
        syntax.message_opens = Literals(_tags((channels.open, tags.HEADER_OPEN)))
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
    rule.space_before = lead + text[: len(text) - len(text.lstrip(WS))]
    rule.space_after = text[len(text.rstrip(WS)) :]
    return rule


_WS: Final = r"[ \t\r\n]*"
_MARKED: Final = re.compile(r"[<>\[\]|]")
"""Characters that make a literal more than a word."""


def _accepted(tools: Tools) -> tuple[str, ...]:
    """Return the spellings of openers that models are known to write, but that the renderer does not write."""
    markers = (tools.section_open, tools.call_open)
    return tuple(text for marker in markers for text in _spellings(marker)[1:])


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
    openers = [(t, m, entry, needs, OPEN_CALLS) for m, entry, needs in marked for t in _spellings(m)]
    if tools.bare and not marked_only:
        first = list(_spellings(tools.list_open))
        if isinstance(body, JsonBody) and (tools.list_open is None or tools.list_optional):
            first.append("{")
        openers += [(t, None, ENTRY_BARE, False, OPEN_BARE_CALLS) for t in first]
    return openers


def _add_call_openers(
    rules: dict[str, MarkerRule], syntax: CallSyntax, tools: Tools, *, marked_only: bool = False
) -> None:
    """Add the literals with which calls of one syntax begin."""
    # Of several spellings the longest: white space is compared with its end.
    lead = max((s for s in _spellings(tools.separator) if tools.lead and not s.strip(WS)), key=len, default="")
    words = [text for text in _accepted(tools) if not _MARKED.search(text)]
    for text, marker, entry, needs_section, kind in _openers(tools, marked_only=marked_only):
        rule = rules.get(text)
        if rule is None:
            rule = rules[text] = _rule(kind, marker, lead)
            rule.place = IN_SECTION if needs_section else ANYWHERE
        elif rule.kind not in (OPEN_CALLS, OPEN_BARE_CALLS):
            raise FormatError(syntax.path, f"{text!r} already has another meaning where calls begin")
        if not needs_section:
            rule.place = ANYWHERE
        rule.ambiguous = rule.ambiguous or (kind == OPEN_CALLS and text in words)
        rule.entries.append((syntax, entry))


def _note_left_out(states: tuple[dict[str, MarkerRule], ...], tools: Tools, special_tokens: tuple[str, ...]) -> None:
    """Note which section, with a special token, the openers of calls lack that have no such token themselves."""
    section = tools.section_open
    if section is None or "section" not in tools.optional or not any(t in section.text for t in special_tokens):
        return
    for text in _spellings(tools.call_open):
        if not any(token in text for token in special_tokens):
            for rules in states:
                rules[text].missing_section = section.text.strip(WS)


def _add_call_texts(rules: dict[str, MarkerRule], fmt: Format) -> None:
    """Add the markers of calls that are text, if the closer or a part of it has another meaning in content."""
    for tools in fmt.tools:
        for opener, closer in ((tools.section_open, tools.section_close), (tools.call_open, tools.call_close)):
            for text in _spellings(closer):
                if text in rules:
                    for opening in _spellings(opener):
                        rules.setdefault(opening, MarkerRule(CALL_TEXT, closers=1))
                elif any(literal in text for literal in rules):
                    rules[text] = MarkerRule(CALL_TEXT)


def _compile_tools(tools: Tools, path: str, turn_end: Marker | None) -> CallSyntax:
    """Compile one way to write calls. ``turn_end``: the end of the turn, or of the message that holds the call."""
    body = tools.body
    syntax = CallSyntax(path, Body())
    _compile_frame(syntax, tools, turn_end)
    if isinstance(body, JsonBody):
        syntax.body = compile_object(syntax, body)
    else:
        _compile_named_body(syntax, tools, body, turn_end)
    _compile_starts(syntax, tools)
    return syntax


def _compile_frame(syntax: CallSyntax, tools: Tools, turn_end: Marker | None) -> None:
    """Compile what is written around the body of a call."""
    body = tools.body
    named = body if isinstance(body, NamedBody) else None
    name_open = named.name_open if named is not None else None
    syntax.bare = tools.bare
    syntax.lists = UNWRITTEN if tools.list_open is None else OPTIONAL if tools.list_optional else WRITTEN
    syntax.section_end = Literals(_tags((tools.section_close, tags.SECTION_CLOSE)))
    syntax.opens = UNWRITTEN if tools.call_open is None else OPTIONAL if "call" in tools.optional else WRITTEN
    separators = [s for s in _spellings(tools.separator) if s.strip()]
    if tools.list_open is not None:
        separators.append(",")
    if tools.list_optional or (tools.list_open is None and tools.section_open is None):
        syntax.separators = tuple(separators)
    arguments_close = named.arguments_close if named is not None else None
    syntax.innermost = tags.CALL_CLOSE if arguments_close is None else tags.ARGUMENTS_CLOSE
    syntax.between = Literals(
        _tags(
            (tools.section_close, tags.SECTION_CLOSE),
            (tools.list_open, tags.LIST_OPEN),
            (tools.list_close, tags.LIST_CLOSE),
            (tools.call_open, tags.CALL_OPEN),
            (name_open if syntax.opens != WRITTEN else None, tags.NAME_OPEN),
            (tools.section_open, tags.SECTION_OPEN),
            *((s, tags.SEPARATOR) for s in separators),
        )
    )
    syntax.after = Literals(_tags((arguments_close, tags.ARGUMENTS_CLOSE), (tools.call_close, tags.CALL_CLOSE)))
    syntax.before_body = Literals(_tags((name_open, tags.NAME_OPEN)))
    syntax.starts = Literals(
        _tags((tools.section_open, tags.SECTION_OPEN), (tools.call_open, tags.CALL_OPEN), (name_open, tags.NAME_OPEN))
    )
    stops = _tags(
        (tools.call_close, tags.CALL_CLOSE),
        (arguments_close, tags.ARGUMENTS_CLOSE),
        (tools.section_close, tags.SECTION_CLOSE),
        (tools.section_open, tags.SECTION_OPEN),
        (tools.call_open, tags.CALL_OPEN),
        (turn_end, tags.TURN_END),
    )
    words = [text for text in _accepted(tools) if not _MARKED.search(text)]
    syntax.stops = Literals({text: tag for text, tag in stops.items() if text not in words})
    syntax.variants = _variants(tools)
    syntax.plain_close = _plain_close(syntax)


def _plain_close(syntax: CallSyntax) -> re.Pattern[str]:
    """Return the pattern of the closes of a call that the renderer writes, and that no longer literal begins with."""
    others = syntax.variants | syntax.after.prefixes
    closes = [text for text, tag in syntax.after.tags.items() if tag == tags.CALL_CLOSE and text not in others]
    inner = [text for text, tag in syntax.after.tags.items() if tag == tags.ARGUMENTS_CLOSE and text not in others]
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


def _compile_named_body(syntax: CallSyntax, tools: Tools, body: NamedBody, turn_end: Marker | None) -> None:
    """Compile a name and the arguments after it."""
    # The rooms of arguments are loaded if a Format has them: each is a tenth of the time of a start.
    arguments = body.arguments
    name = syntax.name = NameSyntax(body.name)
    name.in_tag = body.name_in_tag
    name.escape = body.escape
    ends: list[tuple[Marker | str | None, int]] = [
        (body.name_close, tags.NAME_CLOSE),
        (body.empty_close, tags.EMPTY_CLOSE),
        (body.id_open, tags.ID_OPEN),
        (tools.call_close, tags.CALL_CLOSE),
    ]
    close = body.arguments_close
    if close is None or body.name_close is None or not body.name_close.text.startswith(close.text):
        # Otherwise it is the beginning of what opens the arguments, and the output may be cut there.
        ends.append((close, tags.ARGUMENTS_CLOSE))
    if isinstance(arguments, TaggedArguments):
        ends.append((arguments.key_open, tags.KEY_OPEN))
        if arguments.value_open is not None:
            # If key_open is missing, the name and the first key are one word.
            ends.append((arguments.key_close, tags.KEY_CLOSE))
        from .tagged.compiler import compile_fast, compile_tagged

        tagged_body = compile_tagged(syntax, name, tools, body, arguments, turn_end)
        if arguments.escape == "cdata":
            _compile_cdata(tagged_body, tools, body, arguments, turn_end)
        syntax.body = tagged_body
        compile_fast(tagged_body.syntax)
    elif isinstance(arguments, ElementArguments):
        ends.append((arguments.open, tags.KEY_OPEN))
        from .elements.compiler import compile_elements

        syntax.body = compile_elements(syntax, name, tools, body, arguments, turn_end)
    elif isinstance(arguments, LiteralArguments):
        if not _is_word(body.name_close) and not arguments.on_lines:
            ends += [(arguments.open, tags.KEY_OPEN), ("(", tags.KEY_OPEN), ("{", tags.KEY_OPEN)]
        from .literal.compiler import compile_literal

        syntax.body = compile_literal(syntax, body, arguments)
    else:
        assert isinstance(arguments, JsonArguments)
        ends.append(("{", tags.KEY_OPEN))
        syntax.body = compile_json(syntax, body.name_close)
    if body.name_close is not None and body.name_close.text.strip(WS):
        in_tags = isinstance(arguments, TaggedArguments | ElementArguments)
        name.damaged_ends = (*((tags.KEY_OPEN,) if in_tags else ()), tags.ARGUMENTS_CLOSE, tags.CALL_CLOSE)
    _compile_name(name, Literals(_tags(*ends)))
    name.id_ends = Literals(_tags((body.name_close, tags.NAME_CLOSE)))
    if name.ends.word_goes_on and name.pattern.plain:
        follows = syntax.body.opening(name.ends)
        if follows:
            name.opening = re.compile(rf"{name.open.pattern}|{SHORT_WORD}{follows}")
        syntax.opening = _opening_after(syntax, name)


def _opening_after(syntax: CallSyntax, name: NameSyntax) -> GoesOn:
    """Return the test for text after the call's opener that does not decide how its arguments begin."""
    opens = "|".join(map(re.escape, syntax.before_body.tags))
    begun = "|".join(map(re.escape, sorted(syntax.before_body.prefixes)))
    return re.compile(rf"{_WS}+(?:(?:{begun})?\Z|(?:{opens})(?:{name.opening.pattern}|\Z))").match


def _is_word(marker: Marker | None) -> bool:
    """True if a marker is like a word (``.call``), so that only it shows that this is a call."""
    return marker is not None and marker.text.strip(WS) != "" and not _MARKED.search(marker.text)


def _compile_cdata(
    body: TaggedBody, tools: Tools, named: NamedBody, arguments: TaggedArguments, turn_end: Marker | None
) -> None:
    """Compile the values in CDATA sections of a tagged body."""
    from .tagged.body import TaggedBody
    from .tagged.compiler import cdata_closes

    closes = cdata_closes(arguments)
    whole = replace(arguments, escape="none", value_close=Marker(closes[0], tuple(closes[1:])), trim=0, trim_after=0)
    frame = _compile_tools(replace(tools, body=replace(named, arguments=whole)), body.syntax.frame.path, turn_end)
    frame.variants = frame.variants.difference(closes)
    section = frame.body
    assert isinstance(section, TaggedBody)
    section.syntax.fast.ends = {}  # What follows the section is read with the other syntax.
    body.syntax.cdata = section.syntax


def _compile_name(name: NameSyntax, ends: Literals) -> None:
    """Compile where a name ends, and the name as it is written where nothing is unusual about it."""
    pattern = name.pattern
    name.ends = ends
    illegal = set(_ILLEGAL_IN_NAMES) - pattern.legal
    name.illegal = re.compile("[" + re.escape("".join(sorted(illegal))) + "]")
    not_open = re.escape("".join(sorted({*illegal, *ends.first_characters, "&"})))
    name.open = name.opening = re.compile(rf"[^{not_open}]{{1,64}}\Z")
    numbered = "index" in pattern.variables and "name" in pattern.variables
    name.is_id = numbered and "." in pattern.pattern
    if ends.word_goes_on and (pattern.plain or sorted(pattern.variables) == ["index", "name"]):
        words = {"name": f"(?P<name>{SHORT_WORD})", "index": "[0-9]{1,64}+"}
        pieces = zip(pattern.literals, [*map(words.__getitem__, pattern.variables), ""], strict=True)
        text = "".join(re.escape(literal) + variable for literal, variable in pieces)
        name.simple = re.compile(f"{text}(?P<end>{ends.pattern.pattern})")


def _compile_starts(syntax: CallSyntax, tools: Tools) -> None:
    """Compile what may follow each opener, for syntaxes that share one."""
    body = tools.body
    if isinstance(body, JsonBody):
        first = Literals({"{": 0})
    elif body.name_open is not None:
        first = syntax.before_body
    else:
        first = Literals({})
    lists = [] if tools.list_open is None else [[Literals(_tags((tools.list_open, tags.LIST_OPEN)))]]
    if tools.list_open is None or tools.list_optional:
        lists.append([])
    calls = [] if tools.call_open is None else [[Literals(_tags((tools.call_open, tags.CALL_OPEN))), first]]
    if tools.call_open is None or "call" in tools.optional:
        calls.append([first])
    syntax.after_call = [[first]]
    syntax.after_section = [opened + call for opened in lists for call in calls]
    syntax.bare_start = [[*opened, first] for opened in lists]


def _texts(markers: tuple[Marker | None, ...]) -> list[str]:
    return [text for marker in markers for text in _spellings(marker)]


def _end_of_header(parts: list[str]) -> str:
    """Return the pattern of a newline after which a header does not go on: no part of it follows, nor the beginning of
    one that the text ends in."""
    texts = sorted({text.strip(WS) for text in parts}, key=len, reverse=True)
    begun = sorted({text[:size] for text in texts for size in range(len(text))}, key=len, reverse=True)
    follows = "|".join(map(re.escape, texts))
    return rf"\n(?![ \t\r\n]*(?:{follows}|(?:{'|'.join(map(re.escape, begun))})\Z))"


def _compile_channels(program: Program, fmt: Format, channels: Channels, tools: bool, ends: list[str]) -> None:
    header = HeaderSyntax()
    bare = channels.recipient is None
    bodies = (channels.body, channels.reasoning_body, channels.call_body)
    kinds = [body for body in bodies[1:] if body is not None]
    closes = _tags(
        (channels.close, tags.HEADER_CLOSE), (channels.call_close, tags.HEADER_CLOSE), (fmt.turn.end, tags.HEADER_CLOSE)
    )
    parts = () if bare else (channels.channel, channels.recipient, channels.constraint)
    header.literals = Literals(
        {
            **_tags((channels.open, tags.HEADER_OPEN), *((p, tags.HEADER_PART) for p in parts)),
            **(_tags(*((b, tags.HEADER_BODY) for b in (bodies if not bare or kinds else ())))),
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
    header.role = channels.role
    header.marks = re.compile("|".join(["<", *(re.escape(t) for t in header.literals.tags if t.strip() == t)]))
    header.namespace = channels.namespace
    header.join = channels.join
    header.closes = Literals({text: tags.HEADER_CLOSE for text in closes if text not in program.turn_end.tags})
    header.only_text = frozenset((*channels.reasoning, *channels.content[:1]))
    header.reasoning = frozenset(channels.reasoning)
    header.content = frozenset(channels.content)
    if bare:
        header.illegal = re.compile(f"[{re.escape(_ILLEGAL_IN_NAMES.replace(chr(10), ''))}]")
    else:
        stops = "|".join(map(re.escape, (*closes, *header.opens)))
        header.illegal = re.compile(f"{stops}|{_end_of_header([*header.body.tags, *(_texts(parts))])}")
    header.decides = re.compile(f"{header.illegal.pattern}|{header.body.pattern.pattern}")
    program.header = header
    content: dict[str, MarkerRule] = {text: MarkerRule(OPEN_HEADER) for text in channels.open.spellings}
    for text in (*header.channel, *(_texts((*kinds, channels.body)) if kinds else ())):
        content.setdefault(text, MarkerRule(OPEN_HEADER, place=IN_HEADER))
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
        syntax = _compile_channel_calls(fmt, channels)
        program.call_syntaxes = [syntax]
        _add_message_calls(program, header, fmt, channels, closes)


def _compile_channel_calls(fmt: Format, channels: Channels) -> CallSyntax:
    """Compile the calls that headers name."""
    syntax = CallSyntax("channels", Body())
    closes = (*_spellings(channels.call_close), *_spellings(channels.close))
    syntax.after = Literals(dict.fromkeys(closes, tags.CALL_CLOSE))
    syntax.plain_close = _plain_close(syntax)
    headers = (*channels.open.spellings, *_spellings(channels.channel))
    stops = (*syntax.after.tags, *headers, *_spellings(fmt.turn.end))
    syntax.stops = Literals(dict.fromkeys(stops, tags.CALL_CLOSE))
    syntax.name = NameSyntax("{name}")
    syntax.body = compile_json(syntax)
    return syntax
