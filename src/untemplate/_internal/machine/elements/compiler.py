"""Compiles arguments in elements."""

from __future__ import annotations

from ....format import ElementArguments, Marker, NamedBody, Tools
from .. import tags
from ..call_syntax import WRITTEN, CallSyntax, NameSyntax
from ..lexer import Literals
from ..marker_tags import around, tagged
from .body import ElementsBody
from .program import ElementsSyntax


def compile_elements(
    frame: CallSyntax, name: NameSyntax, tools: Tools, body: NamedBody, arguments: ElementArguments,
    turn_end: Marker | None,
) -> ElementsBody:  # fmt: skip
    """Compile arguments in elements."""
    syntax = ElementsSyntax(frame, name)
    name_open = body.name_open if frame.opens != WRITTEN else None
    enclosing = around(tools, body, turn_end) | tagged((name_open, tags.NAME_OPEN))
    elements = tagged((arguments.open, tags.KEY_OPEN), (arguments.close, tags.ELEMENT_CLOSE))
    syntax.tags = Literals({**elements, **enclosing})
    syntax.closes = arguments.close.spellings
    syntax.close_of = dict(zip(arguments.open.spellings, arguments.close.spellings, strict=False))
    syntax.tag_end = arguments.name_close
    syntax.tag_ends = Literals({arguments.name_close: 0})
    syntax.item = arguments.item
    return ElementsBody(syntax)
