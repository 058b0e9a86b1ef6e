"""Spelling of values: the texts that the renderer writes and the grammar accepts."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ._calls import LiteralArguments

__all__ = ["argument_text", "escape", "hidden", "in_section", "json_text", "literal_text", "text_in_quotes"]

_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")
# Characters that are escaped in a string between one-character quotes, besides the quote itself.
_ESCAPED: Final = re.compile(r"[\\\x00-\x1f\x7f]")
_SHORT: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PYTHON: Final = LiteralArguments()


def json_text(value: Any) -> str:
    """Return one line of JSON, as ``tojson`` in chat templates writes it. Lone surrogates become escapes.

    Raises:
        ValueError: a number that JSON has no form for (NaN, infinity).
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isascii() else _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def escape(text: str, how: str) -> str:
    """Return ``text`` with the escaping that the Format asks for."""
    return html.escape(text).replace("&#x27;", "&apos;") if how == "xml" else text


def hidden(json: str, literals: Iterable[str]) -> str:
    """Return JSON, or the inside of a JSON string, such that its strings hold none of ``literals``."""
    for literal in literals:
        if literal in json:
            json = json.replace(literal, f"\\u{ord(literal[0]):04x}{literal[1:]}")
    return json


def in_section(text: str) -> str:
    """Return text in a CDATA section, if it has several lines or characters that are special in XML."""
    return f"<![CDATA[{text}]]>" if any(c in text for c in "<&\n") else text


def argument_text(value: Any, arguments: LiteralArguments) -> str:
    """Return the value of an argument, in quotes if the format quotes all values."""
    if arguments.quoted != "all" or isinstance(value, str):
        return literal_text(value, arguments)
    return _quoted(text_in_quotes(value, arguments), arguments)


def text_in_quotes(value: Any, arguments: LiteralArguments) -> str:
    """Return the text of a value that is written in quotes: JSON; between JSON's own quotes, a literal of Python."""
    return literal_text(value, _PYTHON) if arguments.quotes[0] == '"' else json_text(value)


def literal_text(value: Any, arguments: LiteralArguments) -> str:
    """Return a value with the words and quotes of the format's language."""
    if isinstance(value, str):
        return _quoted(value, arguments)
    if value is None:
        return arguments.words[2]
    if isinstance(value, bool):
        return arguments.words[0] if value else arguments.words[1]
    separator = _separator(arguments)
    if isinstance(value, Mapping):
        # A separator without a space after it goes with a colon without one.
        colon = ": " if separator.endswith(" ") else ":"
        pairs = (f"{_literal_key(key, arguments)}{colon}{literal_text(v, arguments)}" for key, v in value.items())
        return "{" + separator.join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + separator.join(literal_text(v, arguments) for v in value) + "]"
    return json_text(value)


def _separator(arguments: LiteralArguments) -> str:
    """Return what separates the items of a list or an object: one inside a line is on it as a whole."""
    return ", " if arguments.on_lines else arguments.separator


def _literal_key(key: Any, arguments: LiteralArguments) -> str:
    return _quoted(str(key), arguments) if arguments.quoted_keys else str(key)


def _quoted(text: str, arguments: LiteralArguments) -> str:
    quote = arguments.quotes[0]
    if len(quote) == 1 and arguments.escapes:
        text = _ESCAPED.sub(_backslashed, text).replace(quote, "\\" + quote)
    return quote + text + quote


def _backslashed(found: re.Match[str]) -> str:
    c = found.group()
    return _SHORT.get(c) or f"\\x{ord(c):02x}"
