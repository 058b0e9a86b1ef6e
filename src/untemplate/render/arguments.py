"""Arguments → text, one writer per syntax that a Format can state.

Rules of this module:

* JSON that comes as text is passed through as given; everything else is written in one way, the canonical one.
* A writer writes; whether its text reads back is :mod:`.expressible`'s question.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from ..format import Arguments, JsonArguments, LiteralArguments, TaggedArguments
from .message import Call

__all__ = ["arguments_text", "escape", "json_text", "key_text", "literal_text", "value_text"]

_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")
# What a string between one-character quotes escapes, besides the quote itself.
_ESCAPED: Final = re.compile(r"[\\\x00-\x1f\x7f]")
_SHORT: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def arguments_text(call: Call, arguments: Arguments) -> str:
    """The arguments of a call, with all that opens and closes them but for ``NamedBody.arguments_close``.

    Raises:
        ValueError: the call's arguments are not a JSON object.
    """
    if isinstance(arguments, JsonArguments):
        return json_arguments(call)
    members = call.object()
    if isinstance(arguments, LiteralArguments):
        pairs = (f"{key}{arguments.assign}{literal_text(value, arguments)}" for key, value in members.items())
        return arguments.open + arguments.separator.join(pairs) + arguments.close
    value_open = "" if arguments.value_open is None else arguments.value_open.text
    return "".join(
        f"{arguments.key_open.text}{key_text(key, value, arguments)}{arguments.key_close.text}"
        f"{value_open}{value_text(value, arguments)}{arguments.value_close.text}"
        for key, value in members.items()
    )


def json_arguments(call: Call) -> str:
    """The arguments as a JSON object: text as given, a mapping on one line."""
    members = call.object()
    text = call.arguments.strip() if isinstance(call.arguments, str) else json_text(members)
    return text or "{}"


def json_text(value: Any) -> str:
    """One line of JSON, as ``tojson`` in chat templates writes it; lone surrogates as escapes.

    Raises:
        ValueError: a number that JSON cannot say.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isascii() else _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


# -- Tags ---------------------------------------------------------------------------------------------------------

_TYPES: Final = ((bool, "boolean"), (str, "string"), (int, "number"), (float, "number"), (Mapping, "object"))


def key_text(key: str, value: Any, arguments: TaggedArguments) -> str:
    """What stands between ``key_open`` and ``key_close``: the key, and what its pattern says of the value."""
    variables = {
        "key": escape(key, arguments.escape),
        "string": "true" if isinstance(value, str) else "false",
        "type": _type_name(value),
    }
    return re.sub(r"\{(\w+)\}", lambda found: variables.get(found.group(1), found.group()), arguments.key)


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "array")


def value_text(value: Any, arguments: TaggedArguments) -> str:
    """A value between its tags: a string as it is, anything else as JSON."""
    return escape(value if isinstance(value, str) else json_text(value), arguments.escape)


def escape(text: str, how: str) -> str:
    """``text`` as a Format's ``escape`` wants it."""
    return html.escape(text).replace("&#x27;", "&apos;") if how == "xml" else text


# -- Literals -----------------------------------------------------------------------------------------------------


def literal_text(value: Any, arguments: LiteralArguments) -> str:
    """A value in the words and quotes of the format's language."""
    if isinstance(value, str):
        return _quoted(value, arguments)
    if value is None:
        return arguments.words[2]
    if isinstance(value, bool):
        return arguments.words[0] if value else arguments.words[1]
    if isinstance(value, Mapping):
        # Where nothing stands behind a separator at the top, nothing stands behind a colon either.
        colon = ": " if arguments.separator.endswith(" ") else ":"
        pairs = (f"{_literal_key(key, arguments)}{colon}{literal_text(v, arguments)}" for key, v in value.items())
        return "{" + arguments.separator.join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + arguments.separator.join(literal_text(v, arguments) for v in value) + "]"
    return json_text(value)


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
