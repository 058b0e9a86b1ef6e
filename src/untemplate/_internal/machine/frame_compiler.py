"""Compiles one way to write calls: what is written around their bodies, and their names.

The bodies are compiled in their own folders.
"""

from __future__ import annotations

import re
from typing import Final

from ...format import (
    ElementArguments,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
    Tools,
)
from . import tags
from .call_syntax import OPTIONAL, SHORT_WORD, UNWRITTEN, WRITTEN, Body, CallSyntax, NameSyntax
from .json.compiler import compile_json, compile_object
from .lexer import GAP, WS, GoesOn, Literals
from .marker_tags import spellings, tagged

# A backslash is the sign of a call that was copied into a string, with escapes.
ILLEGAL_IN_NAMES: Final = "".join(map(chr, range(33))) + "<>{}()[]\"'`,;=\\"
MARKED: Final = re.compile(r"[<>\[\]|]")
"""Characters that make a literal more than a word."""


def accepted(tools: Tools) -> tuple[str, ...]:
    """Return the spellings of openers that models are known to write, but that the renderer does not write."""
    markers = (tools.section_open, tools.call_open)
    return tuple(text for marker in markers for text in spellings(marker)[1:])


def compile_tools(tools: Tools, path: str, turn_end: Marker | None) -> CallSyntax:
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
    syntax.section_end = Literals(tagged((tools.section_close, tags.SECTION_CLOSE)))
    syntax.opens = UNWRITTEN if tools.call_open is None else OPTIONAL if "call" in tools.optional else WRITTEN
    separators = [s for s in spellings(tools.separator) if s.strip()]
    if tools.list_open is not None:
        separators.append(",")
    if tools.list_optional or (tools.list_open is None and tools.section_open is None):
        syntax.separators = tuple(separators)
    arguments_close = named.arguments_close if named is not None else None
    syntax.innermost = tags.CALL_CLOSE if arguments_close is None else tags.ARGUMENTS_CLOSE
    syntax.between = Literals(
        tagged(
            (tools.section_close, tags.SECTION_CLOSE),
            (tools.list_open, tags.LIST_OPEN),
            (tools.list_close, tags.LIST_CLOSE),
            (tools.call_open, tags.CALL_OPEN),
            (name_open if syntax.opens != WRITTEN else None, tags.NAME_OPEN),
            (tools.section_open, tags.SECTION_OPEN),
            *((s, tags.SEPARATOR) for s in separators),
        )
    )
    syntax.after = Literals(tagged((arguments_close, tags.ARGUMENTS_CLOSE), (tools.call_close, tags.CALL_CLOSE)))
    syntax.before_body = Literals(tagged((name_open, tags.NAME_OPEN)))
    syntax.starts = Literals(
        tagged((tools.section_open, tags.SECTION_OPEN), (tools.call_open, tags.CALL_OPEN), (name_open, tags.NAME_OPEN))
    )
    stops = tagged(
        (tools.call_close, tags.CALL_CLOSE),
        (arguments_close, tags.ARGUMENTS_CLOSE),
        (tools.section_close, tags.SECTION_CLOSE),
        (tools.section_open, tags.SECTION_OPEN),
        (tools.call_open, tags.CALL_OPEN),
        (turn_end, tags.TURN_END),
    )
    words = [text for text in accepted(tools) if not MARKED.search(text)]
    syntax.stops = Literals({text: tag for text, tag in stops.items() if text not in words})
    syntax.variants = _variants(tools)
    syntax.plain_close = plain_close(syntax)


def plain_close(syntax: CallSyntax) -> re.Pattern[str]:
    """Return the pattern of the closes of a call that the renderer writes, and that no longer literal begins with."""
    others = syntax.variants | syntax.after.prefixes
    closes = [text for text, tag in syntax.after.tags.items() if tag == tags.CALL_CLOSE and text not in others]
    inner = [text for text, tag in syntax.after.tags.items() if tag == tags.ARGUMENTS_CLOSE and text not in others]
    close = "|".join(map(re.escape, closes)) or "(?!)"
    arguments = rf"(?:(?:{'|'.join(map(re.escape, inner))})[ \t\r\n]?)?" if inner else ""
    return re.compile(rf"{GAP}({arguments}(?:{close}))")


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
        others.update(spellings(body.empty_close))
        if isinstance(body.arguments, TaggedArguments):
            arguments = body.arguments
            markers += [arguments.key_open, arguments.key_close, arguments.value_open, arguments.value_close]
    written = {text for marker in markers for text in spellings(marker)[:1]}
    return frozenset(others.union(*(spellings(marker)[1:] for marker in markers)) - written)


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
        from .tagged.compiler import compile_tagged

        syntax.body = compile_tagged(syntax, name, tools, body, arguments, turn_end)
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
    _compile_name(name, Literals(tagged(*ends)))
    name.id_ends = Literals(tagged((body.name_close, tags.NAME_CLOSE)))
    if name.ends.word_goes_on and name.pattern.plain:
        follows = syntax.body.opening(name.ends)
        if follows:
            name.opening = re.compile(rf"{name.open.pattern}|{SHORT_WORD}{follows}")
        syntax.opening = _opening_after(syntax, name)


def _opening_after(syntax: CallSyntax, name: NameSyntax) -> GoesOn:
    """Return the test for text after the call's opener that does not decide how its arguments begin."""
    opens = "|".join(map(re.escape, syntax.before_body.tags))
    begun = "|".join(map(re.escape, sorted(syntax.before_body.prefixes)))
    return re.compile(rf"{GAP}(?:(?:{begun})?\Z|(?:{opens})(?:{name.opening.pattern}|\Z))").match


def _is_word(marker: Marker | None) -> bool:
    """True if a marker is like a word (``.call``), so that only it shows that this is a call."""
    return marker is not None and marker.text.strip(WS) != "" and not MARKED.search(marker.text)


def _compile_name(name: NameSyntax, ends: Literals) -> None:
    """Compile where a name ends, and the name as it is written where nothing is unusual about it."""
    pattern = name.pattern
    name.ends = ends
    illegal = set(ILLEGAL_IN_NAMES) - pattern.legal
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
    lists = [] if tools.list_open is None else [[Literals(tagged((tools.list_open, tags.LIST_OPEN)))]]
    if tools.list_open is None or tools.list_optional:
        lists.append([])
    calls = [] if tools.call_open is None else [[Literals(tagged((tools.call_open, tags.CALL_OPEN))), first]]
    if tools.call_open is None or "call" in tools.optional:
        calls.append([first])
    syntax.after_call = [[first]]
    syntax.after_section = [opened + call for opened in lists for call in calls]
    syntax.bare_start = [[*opened, first] for opened in lists]
