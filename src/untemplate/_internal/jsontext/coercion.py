"""Coercion: the JSON value that a piece of text becomes, given the types that its schema allows.

* Text that does not fit its type stays text, unchanged. Nothing is guessed, nothing raises, nothing is evaluated.
* Valid JSON of a wanted type is passed on as written, to the byte; only what is not JSON is written anew.
* Where the schema allows a string besides other types, only exact spellings become something else: ``7`` is a number
  there, ``007`` and ``" 7"`` are text. Where it does not, white space and sloppy numbers (``+7``, ``.5``) are accepted.

The types and their order (null, integer, number, boolean, object, array, string) are those of vLLM's
``vllm/tool_parsers/utils.py``.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, final

from .lexical import INTEGER, NUMBER, WS, json_escape, without_surrogates
from .well_formed import is_deep, is_json

# Other spellings than JSON's come from templates that print Python values, which models imitate.
_NULLS: Final = frozenset({"null", "Null", "NULL", "None"})
_BOOLEANS: Final[dict[str, str]] = {
    "true": "true",
    "True": "true",
    "TRUE": "true",
    "false": "false",
    "False": "false",
    "FALSE": "false",
}
_BITS: Final[dict[str, str]] = {"1": "true", "0": "false"}

TYPES: Final = frozenset({"null", "integer", "number", "boolean", "object", "array", "string"})
# Other words for JSON Schema's types that occur in schemas.
_ALIASES: Final[dict[str, str]] = {
    "none": "null",
    "nonetype": "null",
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "uint": "integer",
    "long": "integer",
    "float": "number",
    "float32": "number",
    "float64": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "sequence": "array",
    "str": "string",
    "text": "string",
    "enum": "string",
}

_INTEGER: Final = re.compile(INTEGER)
_NUMBER: Final = re.compile(NUMBER)
_SLOPPY_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_SLOPPY_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_MAX_LITERAL: Final = 65_536
"""Characters. A Python-style object longer than this stays text."""
_MAX_LITERAL_DEPTH: Final = 32
"""Levels of a Python-style object. Python reads them recursively, so the limit is far below the stack's."""
# Only escapes that Python knows: others make its parser warn on stderr.
_LITERAL_ESCAPES: Final = re.compile(r"""[^\\]*(?:\\[\\'"abfnrtvxuUN0\n][^\\]*)*""")
_MAX_INTEGER_BITS: Final = 8_192
"""Python refuses to print integers of more than 4300 digits."""


def coerce_to_schema_type(value: str, types: str | Iterable[str]) -> object:
    """Return ``value`` converted to the first of ``types`` that it fits, in the order null, integer, number, boolean,
    object, array, string; ``value`` itself if it fits none.

    * null: ``null`` ``Null`` ``NULL`` ``None``
    * boolean: ``true`` ``True`` ``TRUE``, and ``1`` ``0`` where no string is allowed
    * integer: also ``3.0``, where neither number nor string is allowed
    * object, array: JSON of up to 256 levels, else a Python literal of up to 32 levels and 65536 characters (read,
      never evaluated)

    NaN and Infinity are not JSON, so they are text.
    """
    words = [types] if isinstance(types, str) else types
    text = _to_json(value, frozenset(canonical_type(t) for t in words))
    try:
        return value if text is None else json.loads(text)
    except RecursionError:  # the caller has left next to no stack
        return value


def _to_json(value: str, types: frozenset[str]) -> str | None:
    """Return the JSON text of ``value`` as the first fitting type; None if it is a string."""
    text = value.strip(WS)
    exact = "string" in types
    # Where a string is possible, white space counts: a streaming parser cannot retract it.
    scalar = value if exact else text
    if "null" in types and scalar in _NULLS:
        return "null"
    number = "number" in types
    if number or "integer" in types:
        result = _number(scalar, exact, number)
        if result is not None:
            return result
    if "boolean" in types:
        word = _BOOLEANS.get(scalar)
        if word is None and not exact:
            word = _BITS.get(scalar)
        if word is not None:
            return word
    if ("object" in types and text.startswith("{")) or ("array" in types and text.startswith("[")):
        return _container(text)
    return None


def _number(text: str, exact: bool, number: bool) -> str | None:
    """Return ``text`` as a JSON number: as written if it is one, or else its value; None if it is not a number."""
    try:
        if _INTEGER.fullmatch(text):
            int(text)  # more digits than Python reads are text
            return text
        if not exact and _SLOPPY_INTEGER.fullmatch(text):
            return str(int(text))
        if number:
            if _NUMBER.fullmatch(text):
                return text if math.isfinite(float(text)) else None
            if not exact and _SLOPPY_NUMBER.fullmatch(text):
                value = float(text)
                return repr(value) if math.isfinite(value) else None
        elif not exact and _SLOPPY_NUMBER.fullmatch(text):
            value = float(text)
            # Beyond 2**53 several integers are the same float.
            if value.is_integer() and abs(value) <= 9007199254740992.0:
                return str(int(value))
    except ValueError:
        pass
    return None


def _container(text: str) -> str | None:
    """Return ``text``, which begins with a brace or a bracket, as JSON: as written if it is JSON, or else as a
    Python literal written anew; None if it is neither."""
    if is_deep(text):
        return None
    if is_json(text, finite=True):
        return without_surrogates(text)
    if len(text) > _MAX_LITERAL or is_deep(text, _MAX_LITERAL_DEPTH) or not _LITERAL_ESCAPES.fullmatch(text):
        return None
    try:
        literal = ast.literal_eval(text)
        if not isinstance(literal, dict if text.startswith("{") else list):
            return None
        return without_surrogates(json.dumps(_plain(literal), ensure_ascii=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _plain(value: object) -> object:
    """Return a literal with its tuples as lists.

    Raises:
        ValueError: the literal holds something that JSON does not have (bytes, sets, NaN, …).
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise ValueError("an integer too long to print")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not finite")
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        result: dict[str, object] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError("a key that is not a string")
            result[key] = _plain(item)
        return result
    raise ValueError("not JSON")


def canonical_type(word: str) -> str:
    word = word.strip().lower()
    return _ALIASES.get(word, word)


@final
class Param:
    """One parameter of a tool: what its text can become.

    Attributes:
        types: the JSON types that its schema allows, in the order of their appearance.
        streams: its text can only become a string, so it may be sent as it comes.
        may_be_string: its schema allows a string.
        nullable: string or null, nothing else: it may be sent once its first character is not ``n`` or ``N``.
    """

    types: tuple[str, ...]
    streams: bool
    may_be_string: bool
    nullable: bool
    _set: frozenset[str]
    _strings: frozenset[str]

    def __init__(self, types: Sequence[str], strings: Iterable[str] = ()) -> None:
        """``strings`` are those that the schema lists (``enum``, ``const``): text that is one of them stays one."""
        self.types = tuple(types)
        self._set = frozenset(self.types)
        self._strings = frozenset(strings)
        self.streams = self._set == {"string"}
        self.may_be_string = not self._set or "string" in self._set
        self.nullable = self._set == {"string", "null"}

    def encode(self, text: str) -> str:
        """``text`` as a JSON value, coerced as :func:`coerce_to_schema_type` does; what is JSON already stays as
        written, without the white space around it."""
        result = None if self.streams or text in self._strings else _to_json(text, self._set)
        return f'"{json_escape(text)}"' if result is None else result
