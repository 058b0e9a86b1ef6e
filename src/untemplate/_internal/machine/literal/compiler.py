"""Compiles arguments as literals."""

from __future__ import annotations

import re
from typing import Final

from ....format import LiteralArguments, NamedBody
from ..call_syntax import CallSyntax
from ..lexer import WS, literal_set
from .body import LiteralBody
from .program import LiteralSyntax

# Before the first value of Python-style arguments: a key and its assignment, or nothing; and the beginning of that.
_KEY: Final = r"[ \t\r\n]*(?:[^\W\d][\w.\-]*[ \t\r\n]*[=:][ \t\r\n]*)?"
_KEY_BEGUN: Final = r"[ \t\r\n]*(?:[^\W\d][\w.\-]*[ \t\r\n]*)?"
_TO_ESCAPE: Final = re.compile("[\"']")
"""Characters that are escaped in a string."""


def compile_literal(frame: CallSyntax, body: NamedBody, arguments: LiteralArguments) -> LiteralBody:
    """Compile arguments as literals."""
    syntax = LiteralSyntax(frame)
    syntax.open = arguments.open
    syntax.close = arguments.close
    syntax.assign = arguments.assign.strip(WS)
    syntax.on_lines = arguments.on_lines
    syntax.spaced = body.name_close is not None and body.name_close.text.endswith(tuple(WS))
    syntax.quotes = literal_set(*arguments.quotes)
    # A quote without such a character is the same in an escaped copy.
    heads = [_TO_ESCAPE.split(quote, maxsplit=1)[0] for quote in arguments.quotes if _TO_ESCAPE.search(quote)]
    syntax.escaped = re.compile(rf"{_KEY}(?:{'|'.join(map(re.escape, heads)) or '(?!)'})\\")
    begun = {re.escape(head[:i]) for head in heads for i in range(len(head) + 1)}
    syntax.beginning = re.compile(rf"(?s:.)(?:{_KEY_BEGUN}|{_KEY}(?:{'|'.join(sorted(begun))}))\Z")
    syntax.quoted = arguments.quoted
    syntax.watched = _watched(frame, arguments)
    raw = () if arguments.escapes else arguments.quotes[:1]
    syntax.escaping = tuple(quote for quote in ("'", '"') if quote not in raw)
    return LiteralBody(syntax)


def _watched(frame: CallSyntax, arguments: LiteralArguments) -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    """Return `LiteralSyntax.watched`."""
    markers = "".join({quote[0] for quote in arguments.quotes}.difference("'\""))
    patterns = {}
    for closer in ("", arguments.close, ")", "]", "}"):
        ends = re.escape(closer + frame.stops.first_characters + markers)
        patterns[closer] = (re.compile(f"[{ends}]"), re.compile(f"[,{ends}]"))
    return patterns
