"""Compiles arguments in tags."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ....format import Marker, NamedBody, TaggedArguments, Tools
from .. import tags
from ..call_syntax import WRITTEN, CallSyntax, NameSyntax
from ..lexer import WS, Literals
from ..marker_tags import around, tagged
from .body import TaggedBody
from .fast import compile_fast
from .program import TaggedSyntax

CLOSE_TAG: Final = re.compile(r"</[^<>]+>")
_NAMED_TAG: Final = re.compile(r"(</(?:[^<>]*\W)?)\w+>")


def compile_tagged(
    frame: CallSyntax, name: NameSyntax, tools: Tools, body: NamedBody, arguments: TaggedArguments,
    turn_end: Marker | None,
) -> TaggedBody:  # fmt: skip
    """Compile arguments in tags."""
    syntax = TaggedSyntax(frame, name, arguments.key)
    name_open = body.name_open if frame.opens != WRITTEN else None
    enclosing = around(tools, body, turn_end) | tagged((name_open, tags.NAME_OPEN))
    syntax.tags = Literals({**tagged((arguments.key_open, tags.KEY_OPEN)), **enclosing})
    # A value's opener ends the key even if key_close is missing.
    syntax.separators = Literals({t: k for t, k in frame.between.tags.items() if k == tags.SEPARATOR})
    opens = tagged((arguments.value_open, tags.VALUE_OPEN), (arguments.type_open, tags.TYPE_OPEN))
    closes = tagged((arguments.key_close, tags.KEY_CLOSE))
    if arguments.value_open is not None:
        opens |= _spaced(arguments.value_open, tags.VALUE_OPEN)
    else:
        closes |= _spaced(arguments.key_close, tags.KEY_CLOSE)
    syntax.key_ends = Literals({**opens, **closes})
    syntax.value_opens = Literals(opens)
    before = closes if arguments.value_open is None else opens
    syntax.doubled_opens = Literals({text: tag for text, tag in before.items() if len(text.strip(WS)) > 1})
    value_close = tagged((arguments.value_close, tags.VALUE_CLOSE))
    syntax.value_ends = Literals(value_close | _spaced(arguments.value_close, tags.VALUE_CLOSE))
    _compile_value_ends(syntax, arguments)
    syntax.trim, syntax.trim_after = arguments.trims
    # A key's opener is written at the start of a line.
    on_line = arguments.value_close.text.endswith("\n") or arguments.key_open.text.startswith("\n")
    syntax.holds_after = max(syntax.trim_after, int(on_line))
    syntax.escape = arguments.escape
    syntax.escape_of_keys = arguments.escape_of_keys
    compile_fast(syntax)
    if arguments.escape == "cdata":
        section = compile_tagged(frame, name, tools, body, _in_section(arguments), turn_end).syntax
        # A value that ends regularly does not leave its section, so what follows is read with the other syntax.
        section.fast.ends = {}
        syntax.cdata = section
    return TaggedBody(syntax)


def _spaced(marker: Marker, tag: int) -> dict[str, int]:
    """Return the spellings of a marker next to a value with the white space on the value's side, which is not the
    value's. Newlines alone are for ``trim``."""
    found = {}
    for text in (marker.text, *marker.accepted):
        spelling = text.lstrip(WS) if tag != tags.VALUE_CLOSE else text.rstrip(WS)
        if spelling and spelling.strip("\r\n") != spelling.strip(WS):
            found[spelling] = tag
    return found


def _compile_value_ends(syntax: TaggedSyntax, arguments: TaggedArguments) -> None:
    """Compile where a tagged value may end, with its own close and without."""
    successors = {t: k for t, k in syntax.tags.tags.items() if k not in tags.OPENERS}
    syntax.value_successors = Literals({**syntax.value_ends.tags, **successors})
    stems = {text[:-1]: tags.VALUE_STEM for text in syntax.value_ends.tags if CLOSE_TAG.fullmatch(text)}
    others = {text: tags.OTHER_CLOSE for text in arguments.key_close.spellings if CLOSE_TAG.fullmatch(text)}
    opens = syntax.value_opens.tags if syntax.has_value_open else {}
    named = _NAMED_TAG.fullmatch(arguments.value_close.text.strip(WS))
    syntax.close_head = "" if named is None else named.group(1)
    syntax.value_stops = Literals({**opens, **others, **stems, **syntax.tags.tags, **syntax.value_ends.tags})
    unopened = {**syntax.tags.tags, **syntax.value_opens.tags, **syntax.value_ends.tags}
    syntax.unopened = Literals(unopened)
    if arguments.type_close is not None:
        syntax.type_ends = Literals({**tagged((arguments.type_close, tags.KEY_CLOSE)), **unopened})


def _in_section(arguments: TaggedArguments) -> TaggedArguments:
    """Return the arguments as they are in CDATA sections: all text is the value's, up to the closes of section and
    value."""
    closes = [f"]]>{space}{text}" for text in arguments.value_close.spellings for space in ("", "\n")]
    return replace(arguments, escape="none", value_close=Marker(closes[0], tuple(closes[1:])), trim=0, trim_after=0)
