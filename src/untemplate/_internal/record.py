"""Frozen dataclasses whose methods are written once.

``dataclass`` compiles the source of its methods anew for each class, which took a fifth of the time that it takes to
import the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, make_dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from inspect import Signature

__all__ = ["Record", "dataclass_fields", "record"]

_Class = TypeVar("_Class", bound="type[Record]")
_set = object.__setattr__


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(*, kw_only: bool = True) -> Callable[[_Class], _Class]:
    """Return a decorator that makes a subclass of Record a dataclass with slots, which cannot be changed."""
    decorate: Any = dataclass(slots=True, kw_only=kw_only, init=False, eq=False, repr=False)
    return cast("Callable[[_Class], _Class]", decorate)


class _SignatureOfRecord:
    """The signature of a class of records, which help texts and editors show."""

    def __get__(self, _: object, cls: Any) -> Signature:
        from inspect import Parameter, Signature

        return Signature(
            [
                Parameter(
                    one.name,
                    Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                    default=_defaults(cls).get(one.name, Parameter.empty),
                    annotation=one.type,
                )
                for one in getattr(cls, "__dataclass_fields__", {}).values()
            ]
        )


class Record:
    """Base of the classes that are made with ``record``. Its methods do what those of a frozen dataclass do."""

    __slots__ = ()
    __signature__: ClassVar[Any] = _SignatureOfRecord()

    def __init__(self, *given: Any, **named: Any) -> None:
        cls: Any = type(self)
        placed = dict(zip(cls.__match_args__, given, strict=False))
        values = {**_defaults(cls), **placed, **named}
        doubled = len(placed) < len(given) or (placed and not named.keys().isdisjoint(placed))
        if doubled or values.keys() != cls.__dataclass_fields__.keys():
            raise _misuse(cls, given, named)
        for name, value in values.items():
            _set(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the values."""

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> Any:
        return list(_values(self))

    def __setstate__(self, state: Any) -> None:
        cls: Any = type(self)
        for name, value in zip(_names(cls), state, strict=True):
            _set(self, name, value)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(_values(self) == _values(other))

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        cls: Any = type(self)
        return f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in _names(cls))})"


def _misuse(cls: Any, given: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    """Return the error of arguments that do not fit the fields of a class."""
    try:
        cls.__signature__.bind(*given, **named)
    except TypeError as error:
        return TypeError(f"{cls.__name__}.__init__() {error}")
    raise AssertionError  # they fit


@cache
def _defaults(cls: Any) -> Mapping[str, Any]:
    """Return the default of each field that has one. Records cannot change, so all share those of factories."""
    return {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(cls)
        if one.default is not MISSING or one.default_factory is not MISSING
    }


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(cls))


def _values(of: object) -> tuple[Any, ...]:
    cls: Any = type(of)
    return _getter(cls)(of)


@cache
def _getter(cls: Any) -> Callable[[object], tuple[Any, ...]]:
    """Return the function that returns an object's values."""
    names = _names(cls)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda of: tuple(getattr(of, name) for name in names)


def dataclass_fields(*names: str) -> dict[str, Any]:
    """Return the ``__dataclass_fields__`` with which another class works with ``asdict`` and ``replace``."""
    made = make_dataclass("Fields", names, init=False, repr=False, eq=False, namespace={"__doc__": "Fields."})
    found: dict[str, Any] = vars(made)["__dataclass_fields__"]
    return found
