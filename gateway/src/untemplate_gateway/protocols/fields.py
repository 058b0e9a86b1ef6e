"""Typed request bodies: every request is a msgspec struct that declares each of its fields once.

The struct is the only description of a request. `read_as` converts a JSON body to it, ``/openapi.json`` and the table
of fields in the documentation are generated from it, descriptions included.

* ``null`` means the same as an absent field.
* A body is either read or refused with an `ApiError` that names the field by its path
  (``messages[0].content[1].text``). msgspec converts; only when it refuses does `_Fitting` walk through the body, to
  find the path and the allowed values.
* An `Open` struct leaves fields that it does not declare to its reader; `unknown` lists them. In a `Closed` struct they
  have no effect: they are noted or refused, as the operator has set (`Notes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from ..errors import ApiError, bad_request, unsupported
from ..notes import Notes

T = TypeVar("T", bound="Open")


def about(description: str, *, expected: str = "", refused: str = "") -> msgspec.Meta:
    """Describe a field.

    Args:
        description: the meaning, for ``/openapi.json`` and the documentation.
        expected: the allowed values in words, where the type's own description would be clumsy.
        refused: why other values are refused; ``{got}`` stands for the value. Such errors have the code
            ``unsupported_parameter``.
    """
    return msgspec.Meta(description=description, extra={"expected": expected, "refused": refused})


Ignored = Annotated[Any, msgspec.Meta(description="Accepted and ignored.", extra={"ignored": True})]
"""A field that changes nothing here, and whose absence harms nobody."""
Refused = Annotated[None, about("Not supported.", refused="is not supported")]
"""A field that would change the output, and cannot be followed."""


class _Declared(msgspec.StructMeta):
    """Declares the fields that a struct takes without a meaning of their own, named by its head."""

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        ignored: str = "",
        refused: str = "",
        **config: Any,
    ) -> Any:
        for kind, names in ((Ignored, ignored), (Refused, refused)):
            for field in names.split():
                namespace.setdefault("__annotations__", {})[field] = kind
                namespace[field] = None
        return super().__new__(mcs, name, bases, namespace, **config)


class Open(msgspec.Struct, metaclass=_Declared):
    """A JSON object that may hold further fields.

    A subclass may name fields in its head: ``ignored="…"`` takes them without effect, ``refused="…"`` refuses them,
    unless their value is an empty text or list, zero or false.
    """


class Closed(Open, forbid_unknown_fields=True):
    """A JSON object whose fields are all declared."""


def read_as(kind: type[T], value: Any, notes: Notes | None = None) -> T:
    """Convert a JSON value to a struct.

    Args:
        notes: receives the unknown fields; ``None`` to refuse them.

    Raises:
        ApiError: a field is missing or wrong.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):
        fitted = _fit_struct(kind, value, "", notes or Notes())
    try:
        return msgspec.convert(fitted, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # a number beyond 64 bits, half a character
        message, _, place = str(error).partition(" - at `$")
        raise bad_request(place.strip("`.") or "body", message) from None


def unknown(kind: type[Open], body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of ``body`` that the struct does not declare and that are not null."""
    known = _names(kind)
    if body.keys() <= known:
        return {}
    return {name: value for name, value in body.items() if name not in known and value is not None}


@cache
def _names(kind: type[Open]) -> frozenset[str]:
    return frozenset(kind.__struct_encode_fields__)


@cache
def fields_of(kind: type[Open]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a struct with their types."""
    return msgspec.structs.fields(kind)


_LONGEST_NAME: Final = 64


def at(path: str, name: str) -> str:
    """Return the path of a field of the object at ``path``."""
    short = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…"
    return f"{path}.{short}" if path else short


# -- Types in words ----------------------------------------------------------------------------------------------

_UNBOUNDED: Final = 1 << 31
_WORDS: Final[dict[Any, str]] = {str: "a string", bool: "true or false", Any: "anything", NoneType: "null"}


def _bare(kind: Any) -> tuple[Any, list[msgspec.Meta]]:
    """Return a type without its annotations, and the annotations."""
    if get_origin(kind) is Annotated:
        return kind.__origin__, [meta for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta)]
    return kind, []


def _extra(metas: Sequence[msgspec.Meta], name: str) -> str:
    return next((str(meta.extra[name]) for meta in metas if meta.extra and meta.extra.get(name)), "")


def _bound(metas: Sequence[msgspec.Meta], name: str) -> Any:
    return next((value for meta in metas if (value := getattr(meta, name)) is not None), None)


def _options(kind: Any) -> list[Any]:
    """Return the members of a union, or the type itself."""
    return list(get_args(kind)) if get_origin(kind) in (Union, UnionType) else [kind]


def description(kind: Any) -> str:
    """Return the description of a field."""
    _, metas = _bare(kind)
    return next((meta.description for meta in metas if meta.description), "")


def nested(kind: Any) -> type[Open] | None:
    """Return the struct that a field holds, if it can hold no other."""
    options = [option for option in _options(_bare(kind)[0]) if option is not NoneType]
    only = options[0] if len(options) == 1 else None
    return only if isinstance(only, type) and issubclass(only, Open) else None


def describe(kind: Any) -> str:
    """Return the values that a type allows, in words; null is not mentioned."""
    kind, metas = _bare(kind)
    if words := _extra(metas, "expected"):
        return words
    options = [option for option in _options(kind) if option is not NoneType]
    if len(options) > 1:
        return " or ".join(dict.fromkeys(describe(option) for option in options))
    if not options:
        return "null"
    kind, more = _bare(options[0])
    if words := _extra(more, "expected"):
        return words
    metas = metas + more
    if get_origin(kind) is Literal:
        return _one_of(get_args(kind))
    if kind in (int, float):
        return _range("an integer" if kind is int else "a number", _bound(metas, "ge"), _bound(metas, "le"))
    if get_origin(kind) is list:
        (item,) = get_args(kind)
        if _is_object(item):
            return "a list of objects"
        return "a list of strings" if _bare(item)[0] is str else "a list"
    return _WORDS.get(kind, "an object")


def _is_object(kind: Any) -> bool:
    kind, _ = _bare(kind)
    return all(get_origin(o) is dict or (isinstance(o, type) and issubclass(o, Open)) for o in _options(kind))


def _range(noun: str, low: float | None, high: float | None) -> str:
    if low is not None and low == high:
        return f"{low:g}"
    if low is not None:
        noun += f" from {low}" if isinstance(low, int) else f" from {low:g}"
    if high is not None and high < _UNBOUNDED:
        noun += f" to {high}" if isinstance(high, int) else f" to {high:g}"
    return noun


def _one_of(values: Sequence[Any]) -> str:
    words = [str(value) for value in values if value != ""]
    return "one of " + ", ".join(words) if len(words) > 1 else (words or ["empty"])[0]


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


def shown(value: Any) -> str:
    """Return a scalar for an error message, shortened."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number beyond 64 bits"
    if isinstance(value, str) and len(value) > _LONGEST_NAME:
        return repr(value[:_LONGEST_NAME]) + "…"
    return repr(value) if isinstance(value, (str, bool, int, float)) else _kind(value)


# -- Bodies that msgspec refuses ---------------------------------------------------------------------------------
#
# Each `_fit…` function returns the value as msgspec takes it (whole numbers as integers, unknown null members left
# out), or raises the error for the first field that is wrong.


def _fit_struct(kind: type[Open], value: Any, path: str, notes: Notes) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise bad_request(path or "body", f"must be an object, got {_kind(value)}")
    found: dict[str, Any] = {}
    for field in fields_of(kind):
        given = value.get(field.encode_name)
        if given is not None:
            found[field.encode_name] = _fit(field.type, given, at(path, field.encode_name), notes)
    for field in fields_of(kind):
        if field.required and field.encode_name not in found:
            raise bad_request(at(path, field.encode_name), "is required")
    config = kind.__struct_config__
    if config.tag_field is not None:
        found[config.tag_field] = _tagged([kind], value, path).__struct_config__.tag
    if config.forbid_unknown_fields:
        for name, given in value.items():
            if given is not None and name not in found:
                notes.unknown(at(path, name), given)
    return found


def _fit(kind: Any, value: Any, path: str, notes: Notes) -> Any:
    bare, metas = _bare(kind)
    options = _options(bare)
    if bare is Any or (value is None and NoneType in options):
        return value
    if options == [NoneType] and not value and not isinstance(value, dict):
        return None
    structs = [option for option in options if isinstance(option, type) and issubclass(option, Open)]
    if structs and isinstance(value, dict):
        return _fit_struct(_tagged(structs, value, path) if len(structs) > 1 else structs[0], value, path, notes)
    for option in options:
        one, more = _bare(option)
        if _is_json_type(one, value):
            return _fit_plain(one, value, path, metas + more, kind, notes)
    message = f"must be {describe(kind)}, got {_kind(value)}"
    raise bad_request(path, message) if options != [NoneType] else _wrong(metas, path, message, value)


def _tagged(structs: Sequence[type[Open]], value: dict[str, Any], path: str) -> type[Open]:
    """Return the struct whose tag the object has."""
    field = structs[0].__struct_config__.tag_field
    assert field is not None
    given = value.get(field)
    if given is None:
        raise bad_request(at(path, field), "is required")
    for struct in structs:
        if struct.__struct_config__.tag == given:
            return struct
    message = f"must be {_one_of([struct.__struct_config__.tag for struct in structs])}, got {shown(given)}"
    raise (unsupported if isinstance(given, str) else bad_request)(at(path, field), message)


def _is_json_type(kind: Any, value: Any) -> bool:
    origin = get_origin(kind)
    if kind in (int, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if origin is Literal or kind is str:
        return isinstance(value, str)
    return kind is Any or isinstance(value, origin or kind)


def _fit_plain(kind: Any, value: Any, path: str, metas: list[msgspec.Meta], whole: Any, notes: Notes) -> Any:
    origin = get_origin(kind)
    if origin is list:
        return _fit_list(get_args(kind)[0], value, path, metas, notes)
    if origin is dict:
        return {name: _fit(get_args(kind)[1], given, at(path, name), notes) for name, given in value.items()}
    if origin is Literal and value not in get_args(kind):
        raise _wrong(metas, path, f"must be {describe(whole)}, got {shown(value)}", value)
    if kind is str and not value and _bound(metas, "min_length"):
        raise _wrong(metas, path, "must not be empty", value)
    if kind in (int, float):
        low, high = _bound(metas, "ge"), _bound(metas, "le")
        outside = (low is not None and not low <= value) or (high is not None and not value <= high)
        if outside or (kind is int and isinstance(value, float) and not value.is_integer()):
            raise _wrong(metas, path, f"must be {describe(whole)}, got {shown(value)}", value)
        return int(value) if kind is int else value
    return value


def _fit_list(item: Any, value: list[Any], path: str, metas: list[msgspec.Meta], notes: Notes) -> list[Any]:
    most = _bound(metas, "max_length")
    if most is not None and len(value) > most:
        raise _wrong(metas, path, f"must have at most {most} items, got {len(value)}", value)
    if not value and _bound(metas, "min_length"):
        raise _wrong(metas, path, "must not be empty", value)
    return [_fit(item, one, f"{path}[{i}]", notes) for i, one in enumerate(value)]


def _wrong(metas: Sequence[msgspec.Meta], path: str, message: str, value: Any) -> ApiError:
    if why := _extra(metas, "refused"):
        return unsupported(path, why.replace("{got}", shown(value)))
    return bad_request(path, message)
