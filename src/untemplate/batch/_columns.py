"""The columns of a row: a line of JSON or a mapping, what each may hold, and where its output is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from .._internal.saved import OUTPUT, Output, answer_of, failure_of

__all__ = [
    "ENCODER",
    "RESULT_COLUMNS",
    "JsonRow",
    "MappingRow",
    "Refused",
    "columns_of",
    "ids_of",
    "lacks_output",
    "names_of",
    "output_of",
    "prompt_of",
    "text_of",
    "with_surrogates",
]

_SPLIT: Final = ": jq -c '.choices[] as $one | .choices = [$one]' makes a row of each"
_OTHER_NAMES: Final = ("text", "completion", "generated_text")
"""Names that other programs give the column of outputs."""
RESULT_COLUMNS: Final = frozenset(
    ("row", "file", "format", "message", "finish_reason", "statuses", "reasons", "diagnostics", "spans", "tokens",
     "straddling", "error")
)  # fmt: skip
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of reading JSON."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_RAWS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
ENCODER: Final = msgspec.json.Encoder()


class Refused(Exception):
    """A row that cannot be parsed. The arguments are those of `RowError`."""

    def __init__(self, code: str, column: str, problem: str) -> None:
        super().__init__(problem)
        self.code: str = code
        self.column: str = column
        self.problem: str = problem


def columns_of(values: Any) -> JsonRow | MappingRow:
    """Return the columns of a row: a line of JSON (bytes), or a mapping.

    Raises:
        Refused: it is neither.
    """
    if isinstance(values, Mapping):
        return MappingRow(values)
    if not isinstance(values, bytes):
        raise Refused("json", "", f"expected a mapping of columns, got {_kind(values)}")
    try:
        return JsonRow(_RAWS.decode(values))
    except msgspec.ValidationError as error:
        raise Refused("json", "", f"not a JSON object: {error}") from None
    except _NOT_JSON as error:
        value = with_surrogates(values)
        if isinstance(value, dict):
            return MappingRow(value)
        raise Refused("json", "", f"not JSON: {error}") from None


def with_surrogates(data: bytes) -> Any:
    """Return a JSON value that has half a character as an escape, which msgspec refuses; ``None`` if it is not one."""
    if not _SURROGATE.search(data):
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def names_of(values: Any) -> tuple[str, ...]:
    """Return the names of a row's columns; none if it is not a row."""
    try:
        return columns_of(values).names()
    except Refused:
        return ()


class JsonRow:
    """Columns of a JSON object, decoded when they are read."""

    __slots__ = ("_raws",)

    def __init__(self, raws: dict[str, msgspec.Raw]) -> None:
        self._raws = raws

    def names(self) -> tuple[str, ...]:
        return tuple(self._raws)

    def has(self, name: str) -> bool:
        return name in self._raws

    def get(self, name: str) -> Any:
        raw = self._raws.get(name)
        try:
            return None if raw is None else msgspec.json.decode(raw)
        except _NOT_JSON as error:
            value = with_surrogates(bytes(raw or b""))
            if value is not None:
                return value
            raise Refused("json", name, f"not JSON: {error}") from None

    def key(self, name: str) -> bytes | None:
        """Return a key for the value, if it is not null."""
        raw = self._raws.get(name)
        return None if raw is None or (key := bytes(raw)) == b"null" else key

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        names = [name for name in self._raws if name not in RESULT_COLUMNS] if "*" in names else names
        for name in names:
            self.get(name)  # raises here, not in a reader of the results
        return {name: self._raws[name] for name in names if name in self._raws}


class MappingRow:
    """Columns of a mapping. Arrays become lists."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def has(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> Any:
        value: Any = self._values.get(name)
        return value.tolist() if hasattr(value, "tolist") else value

    def key(self, name: str) -> str | bytes | None:
        value = self.get(name)
        if value is None or isinstance(value, str):
            return value
        try:
            return ENCODER.encode(value)
        except (TypeError, ValueError, UnicodeEncodeError) as error:
            raise Refused("type", name, f"expected a list of tools or JSON text: {error}") from None

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        names = [name for name in self._values if name not in RESULT_COLUMNS] if "*" in names else names
        return {name: self.get(name) for name in names if name in self._values}


def _value(values: JsonRow | MappingRow, column: str | None, usual: str) -> Any:
    name = column or usual
    if column is not None and not values.has(name):
        raise Refused("missing", name, f"the row has no column {name!r}")
    return values.get(name)


def text_of(values: JsonRow | MappingRow, column: str | None, usual: str, default: str | None) -> Any:
    """Return a column of text. Without a default it must be there."""
    value = _value(values, column, usual)
    if isinstance(value, str):
        return value
    name = column or usual
    if value is not None:
        raise Refused("type", name, f"expected text, got {_kind(value)}")
    if default is None:
        raise Refused("missing", name, f"the row has no column {name!r}" if not values.has(name) else "is null")
    return default


def output_of(values: JsonRow | MappingRow, column: str | None) -> Output:
    """Return the raw output of a row: its column, or if that is not named, what is in the answer that the row is."""
    try:
        return Output(text_of(values, column, OUTPUT, None))
    except Refused:
        if column is not None:
            raise
        row = {name: values.get(name) for name in values.names()}
        answer = answer_of(row)
        if answer is None:
            _explain_missing(row)
            raise
    if problem := answer.problem("the row"):
        raise Refused("value", OUTPUT, problem)
    if (count := len(answer.outputs)) > 1:
        raise Refused("value", OUTPUT, f"the row is {answer.what} with {count} choices; a row has one{_SPLIT}")
    return answer.outputs[0]


def _explain_missing(row: Mapping[str, Any]) -> None:
    """Refuse a row without an output, if it shows why.

    Raises:
        Refused: its request failed, or a column with another name has the output.
    """
    if failure := failure_of(row):
        raise Refused("failed", OUTPUT, failure) from None
    for name in _OTHER_NAMES:
        if OUTPUT not in row and isinstance(row.get(name), str):
            hint = f"; {name!r} has text (--output-column {name})"
            raise Refused("missing", OUTPUT, f"the row has no column {OUTPUT!r}{hint}") from None


def lacks_output(values: Any, column: str | None) -> str:
    """Return the reason why a row has no raw output, for an error about all rows; empty if it has one."""
    names = names_of(values)
    if not names:
        return "rows are JSON objects, one in each line"
    try:
        output_of(columns_of(values), column)
    except Refused as refused:
        if refused.code in ("value", "failed"):
            return refused.problem
        return f"its columns: {', '.join(names)}; --output-column names one"
    return ""


def ids_of(values: JsonRow | MappingRow, name: str) -> list[int]:
    """Return a column of token ids.

    Raises:
        Refused: it is missing, or of another type.
    """
    value = _value(values, name, name)
    if not isinstance(value, list):
        raise Refused("type", name, f"expected a list of token ids, got {_kind(value)}")
    if bool in map(type, value):
        at = [type(i) for i in value].index(bool)
        raise Refused("value", name, f"token_ids[{at}]: expected a token id (int), got bool: {value[at]}")
    return value


def prompt_of(values: JsonRow | MappingRow, column: str | None) -> tuple[str | None, list[int] | None]:
    """Return the prompt as text, or as token ids."""
    value = _value(values, column, "prompt")
    if value is None or isinstance(value, str):
        return value, None
    if isinstance(value, list) and all(type(i) is int for i in value):
        return None, value
    raise Refused("type", column or "prompt", f"expected text or a list of token ids, got {_kind(value)}")


def _kind(value: Any) -> str:
    """Return the kind of a value in the words of JSON."""
    kinds = {dict: "an object", list: "a list", bool: "a boolean", int: "a number", float: "a number", str: "text"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)
