"""What the dialects share: fields of a request, JSON and frames of a response, the ``untemplate`` extension.

Rules of this module:

* Any JSON whatever is read or refused: the only exception is an `ApiError` that names the field by its path
  (``messages[0].content[1].text``). ``null`` is as good as an absent field.
* What is encoded fits in one line, for every way that clients have of finding lines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ...messages import Item, ParsedOutput
from ..errors import ApiError, bad_request, unsupported
from ..generation import Ended, Generation

__all__ = [
    "EVENT_STREAM",
    "Fields",
    "arguments_object",
    "arguments_text",
    "encode",
    "encode_text",
    "event",
    "function_tool",
    "merged_items",
    "timestamp",
    "token_bytes",
    "untemplate_asked",
    "untemplate_of",
]

EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
"""The media type of server-sent events."""

# -- JSON and frames ---------------------------------------------------------------------------------------------

_encode: Final = msgspec.json.Encoder().encode
_LINE_ENDS: Final = (
    (b"\xc2\x85", rb"\u0085"),
    (b"\xe2\x80\xa8", rb"\u2028"),
    (b"\xe2\x80\xa9", rb"\u2029"),
)
"""Characters that JSON leaves as they are and at which ``str.splitlines`` (httpx's ``iter_lines``) breaks a line."""


def encode(value: Any) -> bytes:
    """JSON in one line. What has no UTF-8 (lone surrogates) comes out as escapes."""
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
    return data if data.isascii() else _one_line(data)


def encode_text(text: str) -> bytes:
    """`encode`, for a string: the quick way, for deltas."""
    try:
        data = _encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode()
    return data if text.isascii() else _one_line(data)


def _one_line(data: bytes) -> bytes:
    for end, escaped in _LINE_ENDS:
        if end in data:
            data = data.replace(end, escaped)
    return data


def event(name: str, data: Any) -> bytes:
    """A server-sent event that has a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(data))


def timestamp(seconds: int) -> str:
    """Seconds since the epoch in RFC 3339, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def token_bytes(text: str) -> list[int]:
    """The bytes of a token's text, for ``bytes`` in log probabilities. Half a character is what its surrogates say."""
    try:
        return list(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return list(text.encode("utf-8", "surrogatepass"))


# -- Requests ----------------------------------------------------------------------------------------------------

_LONGEST_NAME: Final = 64


class Fields:
    """One JSON object of a request, read field by field. What nobody has read at the end is `rest`.

    Args:
        value: the object.
        path: where it stands in the body: ``tools[0].function``; ``""`` for the body itself.

    Raises:
        ApiError: it is no object. So does every method, for a field that is not as it says.
    """

    __slots__ = ("_read", "path", "value")

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise bad_request(path or "body", f"must be an object, got {_kind(value)}")
        self.value: dict[str, Any] = value
        self.path = path
        self._read: set[str] = set()

    def at(self, name: str) -> str:
        """The path of a field."""
        short = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…"
        return f"{self.path}.{short}" if self.path else short

    def wrong(self, name: str, message: str) -> ApiError:
        """The error for a field that is wrong."""
        return bad_request(self.at(name), message)

    def refused(self, name: str, why: str = "is not supported") -> ApiError:
        """The error for a field that cannot be obeyed."""
        return unsupported(self.at(name), why)

    def take(self, name: str, required: bool = False) -> Any:
        """The field, whatever it is; ``None`` if it is not there."""
        self._read.add(name)
        value = self.value.get(name)
        if value is None and required:
            raise self.wrong(name, "is required")
        return value

    def text(self, name: str, *, required: bool = False, of: Sequence[str] = ()) -> str | None:
        """A string; ``of``: one of these."""
        value = self.take(name, required)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.wrong(name, f"must be {_one_of(of) if of else 'a string'}, got {_kind(value)}")
        if of and value not in of:
            raise self.wrong(name, f"must be {_one_of(of)}, got {_shown(value)}")
        return value

    def string(self, name: str) -> str:
        """A string that must be there."""
        value = self.text(name, required=True)
        assert value is not None
        return value

    def filled(self, name: str) -> str:
        """A string that must be there and not be empty."""
        value = self.string(name)
        if not value:
            raise self.wrong(name, "must not be empty")
        return value

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, got {_kind(value)}")
        return value

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number from ``low`` to ``high``."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(name, f"must be a number from {low:g} to {high:g}, got {_kind(value)}")
        if not low <= value <= high:
            raise self.wrong(name, f"must be a number from {low:g} to {high:g}, got {_shown(value)}")
        return float(value)

    def integer(self, name: str, low: int, high: int = 1 << 31, *, required: bool = False) -> int | None:
        """A whole number from ``low`` to ``high``; ``1.0`` is one."""
        value = self.take(name, required)
        if value is None:
            return None
        allowed = f"an integer from {low}" + (f" to {high}" if high < 1 << 31 else "")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(name, f"must be {allowed}, got {_kind(value)}")
        if not low <= value <= high or (isinstance(value, float) and not value.is_integer()):
            raise self.wrong(name, f"must be {allowed}, got {_shown(value)}")
        return int(value)

    def items(self, name: str, *, required: bool = False) -> list[Any] | None:
        """A list of anything."""
        value = self.take(name, required)
        if value is not None and not isinstance(value, list):
            raise self.wrong(name, f"must be a list, got {_kind(value)}")
        return value

    def objects(self, name: str, *, required: bool = False) -> list[Fields]:
        """A list of objects; empty if it is not there."""
        found = self.items(name, required=required)
        return [Fields(item, f"{self.at(name)}[{i}]") for i, item in enumerate(found or ())]

    def texts(self, name: str, *, most: int | None = None) -> tuple[str, ...]:
        """A list of strings; empty if it is not there."""
        found = self.items(name) or []
        for i, item in enumerate(found):
            if not isinstance(item, str):
                raise bad_request(f"{self.at(name)}[{i}]", f"must be a string, got {_kind(item)}")
        if most is not None and len(found) > most:
            raise self.wrong(name, f"must be at most {most} strings, got {len(found)}")
        return tuple(found)

    def object(self, name: str, *, required: bool = False) -> Fields | None:
        """An object, to be read field by field."""
        value = self.take(name, required)
        return None if value is None else Fields(value, self.at(name))

    def mapping(self, name: str, *, required: bool = False) -> dict[str, Any] | None:
        """An object as it is: a JSON schema, say."""
        value = self.take(name, required)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(name, f"must be an object, got {_kind(value)}")
        return value

    def skip(self, names: Iterable[str]) -> None:
        """Fields that change nothing, and harm nobody."""
        self._read.update(names)

    def rest(self) -> dict[str, Any]:
        """The fields that nobody has read, and that are not null."""
        return {name: v for name, v in self.value.items() if name not in self._read and v is not None}

    def done(self) -> None:
        """Refuses the first field that nobody has read."""
        for name in self.rest():
            raise self.refused(name)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def _shown(value: Any) -> str:
    """A value in an error: short, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number beyond 64 bits"
    shown = repr(value[:_LONGEST_NAME]) if isinstance(value, str) else repr(value)
    return shown if not isinstance(value, str) or len(value) <= _LONGEST_NAME else shown + "…"


def _one_of(values: Sequence[str]) -> str:
    return "one of " + ", ".join(values) if len(values) > 1 else values[0]


def function_tool(fields: Fields, schema: str = "parameters", *, required: bool = False) -> dict[str, Any]:
    """A tool as Chat Completions has it, from the fields with its name; ``schema`` is the key of its parameters."""
    function: dict[str, Any] = {"name": fields.filled("name")}
    description, parameters = fields.text("description"), fields.mapping(schema, required=required)
    strict = fields.flag("strict")
    if description is not None:
        function["description"] = description
    function["parameters"] = {"type": "object", "properties": {}} if parameters is None else parameters
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


# -- Arguments ---------------------------------------------------------------------------------------------------

INVALID_JSON: Final = "INVALID_JSON"
"""The member that holds arguments which are no object."""


def arguments_object(arguments: str) -> dict[str, Any]:
    """Arguments for a dialect that has them as an object only.

    What is no object (the output was cut in it; it is not JSON) is kept whole, as ``{"INVALID_JSON": "…"}``: the
    wrapping that Anthropic recommends ("Fine-grained tool streaming"). A prefix is never completed: half a path is
    another path.
    """
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return {INVALID_JSON: arguments}
    return value if isinstance(value, dict) else {INVALID_JSON: arguments}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):  # written as null otherwise
        raise ValueError(f"{number} is too large")
    return value


def arguments_text(value: dict[str, Any], path: str) -> str:
    """The other way round: an object as JSON text, in which `arguments_object`'s wrapping is undone.

    Raises:
        ApiError: it is nested too deeply.
    """
    if len(value) == 1 and isinstance(raw := value.get(INVALID_JSON), str):
        return raw
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        raise bad_request(path, "is nested too deeply") from None


# -- Messages ----------------------------------------------------------------------------------------------------


def merged_items(parsed: ParsedOutput) -> list[Item]:
    """The parts of a message, neighbours of one kind put together: as a stream tells them, whatever was left out
    between two of them."""
    items: list[Item] = []
    for item in parsed.items:
        if item.call is None and items and items[-1].type == item.type:
            items[-1] = Item(type=item.type, text=(items[-1].text or "") + (item.text or ""))
        else:
            items.append(item)
    return items


# -- The extension -----------------------------------------------------------------------------------------------


def untemplate_asked(fields: Fields) -> dict[str, Any]:
    """``"untemplate": {"diagnostics": true, "raw": true}``, as arguments of a `Generation`."""
    asked = fields.object("untemplate")
    if asked is None:
        return {}
    found = {"diagnostics": asked.flag("diagnostics") or False, "raw": asked.flag("raw") or False}
    asked.done()
    return found


def untemplate_of(request: Generation, ended: Ended) -> dict[str, Any] | None:
    """What the response says about a choice on request: statuses of its calls, what was odd, the raw output."""
    if not (request.diagnostics or request.raw):
        return None
    shown: dict[str, Any] = {}
    if request.diagnostics:
        shown["diagnostics"] = [diagnostic.model_dump() for diagnostic in ended.parsed.diagnostics]
        shown["calls"] = [
            {
                "index": index,
                "name": call.function.name,
                "status": call.status,
                "model_id": call.model_id,
                "repairs": call.repairs,
            }
            for index, call in enumerate(ended.parsed.tool_calls)
        ]
    if request.raw:
        shown["raw"] = ended.raw
    return shown
