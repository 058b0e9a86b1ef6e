"""Counts the resources that one rendering uses.

* Everything that can loop or grow calls the :class:`Meter` first: each block of statements (``tick``), each value that
  is built (``made``), and each operation whose result can be much larger than its operands (the guards).
* Counting uses no signal, thread or trace function, so the limits hold in every thread. Steps are checked before the
  clock, so a template is stopped at the same place on every machine that is fast enough.
* Sizes are in characters; an element of a container counts as eight. Limits grow with the input, because a long
  conversation makes a long prompt.
* Guards run before the operation. An operation without a known cost is not allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from time import thread_time
from typing import Any, Final, cast

from jinja2.runtime import Undefined
from jinja2.utils import Namespace

from ..errors import TemplateError, TemplateLimitError
from . import _limits as limits
from ._limits import ELEMENT

__all__ = ["CHANGES", "Meter", "filter_guard", "grown", "hash_guard"]

_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_Bytes: Final = (str, bytes)
CHANGES: Final = frozenset(("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort"))
"""Methods that a template may call on a list that it made itself."""
_SCALARS: Final = frozenset((str, int, float, bool, type(None), Undefined))
_SEQUENCES: Final = (list, tuple, set, *_VIEWS)
_TREES: Final = (dict, Namespace, *_SEQUENCES)


def grown(what: str) -> TemplateLimitError:
    """Return the error for a value that grows too large."""
    return TemplateLimitError(f"the template needs too much memory: {what}")


class Meter:
    """The remaining resources of one rendering, and the lists that it must not change."""

    __slots__ = ("deadline", "inputs", "marks", "now", "ran", "size", "steps", "total")

    def __init__(self, inputs: set[int], characters: int, now: Callable[[], datetime], ran: bytearray) -> None:
        self.inputs: set[int] = inputs
        """The ids of the caller's lists, which the template must not change."""
        self.ran: bytearray = ran
        """For each branch of the template, 1 if it has run."""
        self.size: int = limits.SIZE + limits.SIZE_PER * characters
        self.total: int = limits.TOTAL * self.size
        self.steps: int = limits.STEPS + limits.STEPS_PER * characters
        self.now: Callable[[], datetime] = now
        self.marks: bool = False
        """True if the text inside ``{% generation %}`` is marked."""
        self.deadline: float = thread_time() + limits.TIME_LIMIT + limits.TIME_PER * characters

    def tick(self, steps: int) -> bool:
        """Count a block of statements; ``steps`` is the number of nodes in it."""
        self.steps -= steps
        if self.steps < 0:
            raise TemplateLimitError("the template does not end: too many steps")
        if thread_time() > self.deadline:
            raise TemplateLimitError("the template takes too long")
        return True

    def reach(self, branch: int) -> bool:
        """Note that a branch runs. Return True."""
        self.ran[branch] = 1
        return True

    def charge(self, size: int) -> None:
        """Count a new value of this size."""
        if size > self.size:
            raise grown("one value is too large")
        self.total -= size
        if self.total < 0:
            raise grown("its values are too many or too large")
        if size > 50_000:
            self.tick(0)

    def made(self, value: Any) -> Any:
        """Count a value after it was made; its size must be bounded by the operands. Return it."""
        kind = type(value)
        if kind is str:
            self.charge(len(value))
        elif isinstance(value, (list, tuple, dict, set, str, bytes)):
            self.charge(ELEMENT * len(value))
        elif isinstance(value, int) and value.bit_length() > limits.BITS:
            raise grown("a number is too long")
        return value

    def flat(self, value: Any) -> Any:
        """Check a value that is about to be walked as a tree (printed, compared, dumped, hashed). Return it.

        A container may hold the same list twice, and that list another one twice: thirty lists have a billion leaves.
        """
        kind = type(value)
        if kind is str:
            if len(value) > limits.LONG:
                self.tick(len(value) // limits.LONG)
        elif kind not in _SCALARS and isinstance(value, _TREES):
            self.tick(_weight(value, self.size // 4) // ELEMENT)
        return value

    def seen(self, value: Any) -> Any:
        """Count the length of a value that is about to be searched. Return it."""
        if isinstance(value, (str, bytes, list, tuple)) and len(value) > limits.LONG:
            self.tick(len(value) // limits.LONG)
        return value

    def text(self, value: Any) -> str:
        """Return ``str(value)`` if it is small enough."""
        if type(value) is str:
            return value
        self.flat(value)
        return str(value)

    def joined(self, values: Sequence[Any], separator: int = 0) -> None:
        """Count values that are about to be joined by a separator of this length."""
        self.charge(sum(len(v) if isinstance(v, str) else len(self.text(v)) for v in values) + separator * len(values))

    def indent(self, indent: int | str | None) -> None:
        """Check the indentation of JSON that is about to be written."""
        if (len(indent) if isinstance(indent, str) else indent or 0) > limits.INDENT:
            raise grown("JSON is indented too deeply")

    # -- Operators ----------------------------------------------------------------------------------------------

    def multiply(self, left: Any, right: Any) -> None:
        """Check ``left * right`` before it is evaluated."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, int):
                if isinstance(other, int):
                    if one.bit_length() + other.bit_length() > limits.BITS:
                        raise grown("a number is too long")
                elif isinstance(other, (str, bytes, list, tuple)):
                    self.charge(max(one, 0) * len(other) * (1 if isinstance(other, _Bytes) else ELEMENT))
                return

    def power(self, base: Any, exponent: Any) -> None:
        """Check ``base ** exponent`` before it is evaluated."""
        if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > limits.BITS:
            raise grown("a number is too long")

    def percent(self, form: Any, values: Any) -> None:
        """Check ``form % values`` before it is evaluated."""
        if not isinstance(form, _Bytes):
            return
        text = form if isinstance(form, str) else form.decode("latin-1")
        given = values.values() if isinstance(values, Mapping) else values if isinstance(values, tuple) else (values,)
        widest = max((len(self.text(v)) for v in given if not isinstance(v, (int, float))), default=0)
        numbers = [int(n[:9]) for n in re.findall(r"\d+", text)]
        stars = [v for v in given if isinstance(v, int)] if "*" in text else []
        if max(numbers + [abs(v) for v in stars], default=0) > limits.WIDTH:
            raise grown("a column is too wide")
        self.charge((text.count("%") * (widest + 32) + sum(numbers) + text.count("*") * limits.WIDTH) // 4 + len(text))

    # -- Methods of Python's own types ---------------------------------------------------------------------------

    def method(self, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Check a method of a builtin value before it is called. Return the arguments to call it with."""
        if isinstance(owner, list) and name in CHANGES:
            if id(owner) in self.inputs:
                raise TemplateError(f"the template calls {name}() on a list that it did not make")
            if name in ("remove", "sort"):
                self.flat(owner)
            more = args[0] if name == "extend" and args else ()
            if not hasattr(more, "__len__"):
                args = (more := list(more),)
            if len(owner) + len(more) > self.size // ELEMENT:
                raise grown("one value is too large")
            self.charge(ELEMENT * (len(more) + 1))
        elif isinstance(owner, _Bytes):
            self.seen(owner)
            _check_codec(owner, name, args, kwargs)
            args = self._of_text(owner, name, args, kwargs)
        elif isinstance(owner, (list, tuple)) or name in ("to_bytes", "from_bytes"):
            self.flat(owner)
            self._widths(args, kwargs, limits.WIDTH)
        for value in args:
            if isinstance(value, (tuple, list, dict)) and name not in CHANGES:
                self.flat(value)
        return args

    def _of_text(self, owner: str | bytes, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        size = len(owner)
        if name == "join" and args:
            if not isinstance(args[0], (list, tuple, dict)):
                args = (list(args[0]), *args[1:])
            self.joined(list(args[0]), size)
        elif name == "replace" and len(args) > 1 and isinstance(args[0], _Bytes) and isinstance(args[1], _Bytes):
            self.charge(size + _replacements(owner, *args) * max(len(args[1]) - len(args[0]), 0))
        elif name in ("center", "ljust", "rjust", "zfill"):
            self._widths(args, kwargs, self.size)
        elif name == "expandtabs":
            self._widths(args, kwargs, limits.WIDTH)
            tabs = owner.count("\t") if isinstance(owner, str) else owner.count(b"\t")
            self.charge(size + tabs * max((v for v in (*args, *kwargs.values()) if isinstance(v, int)), default=8))
        elif name == "striptags":
            self.charge(_tag_copies(owner))
        elif name in ("split", "rsplit", "splitlines"):
            self.charge(_pieces(owner, name, args, kwargs) * limits.PIECE)
        elif name == "translate" and args:
            table = args[0]
            values = table.values() if isinstance(table, Mapping) else table if isinstance(table, list) else ()
            self.charge(size * max((len(v) for v in values if isinstance(v, str)), default=1))
        return args

    def _widths(self, args: tuple[Any, ...], kwargs: dict[str, Any], most: int) -> None:
        for value in (*args, *kwargs.values()):
            if isinstance(value, int) and abs(value) > most:
                raise grown("a column is too wide")


_LINEAR_CODECS = frozenset(("utf-8", "utf8", "ascii", "latin-1", "latin1", "iso-8859-1", "utf-16", "utf-32"))
"""Codecs for texts of any length. Others, such as ``punycode``, need time that grows with the square of the length."""


def _check_codec(owner: str | bytes, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if name not in ("encode", "decode") or len(owner) <= limits.LONG:
        return
    codec = str(args[0] if args else kwargs.get("encoding", "utf-8"))
    if codec.lower().replace("_", "-") not in _LINEAR_CODECS:
        raise grown(f"a text is too long for the codec {codec!r}")


def _weight(value: Any, most: int) -> int:
    """Return the size of a container printed as a tree; raise if it is more than ``most``."""
    weight = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            weight += len(one)
            continue
        weight += ELEMENT
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, _SEQUENCES):
            waiting += cast("list[Any]", one)
        elif isinstance(one, Namespace):
            waiting.append(object.__getattribute__(one, "_Namespace__attrs"))
        if weight + ELEMENT * len(waiting) > most:
            raise grown("a list is too large, or contains itself")
    return weight


def hash_guard(value: Any) -> None:
    """Check a value that is hashed or printed by code that has no meter."""
    if isinstance(value, _TREES):
        _weight(value, limits.SIZE // 4)


def _replacements(owner: str | bytes, old: Any, new: Any, count: Any = -1) -> int:
    found = owner.count(old) if len(old) else len(owner) + 1
    return min(found, count) if isinstance(count, int) and count >= 0 else found


def _tag_copies(text: Any) -> int:
    return len(text) * (1 + str(text).count("<")) // 64


def _pieces(owner: str | bytes, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the largest number of strings that a split can make."""
    separator = args[0] if args else kwargs.get("sep")
    if name != "splitlines" and isinstance(separator, _Bytes) and len(separator):
        return owner.count(separator) + 1  # type: ignore[arg-type]
    breaks = r"\s+" if name != "splitlines" else r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
    text = owner if isinstance(owner, str) else owner.decode("latin-1")
    return sum(1 for _ in re.finditer(breaks, text)) + 1


# -- Filters ------------------------------------------------------------------------------------------------------


def _walked(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> None:
    meter.flat(value)
    for arg in args:
        meter.flat(arg)


def _bounded(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> None:
    """Check a filter whose numbers are widths, counts or digits."""
    meter.flat(value)
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, int) and abs(arg) > limits.WIDTH:
            raise grown("a filter has too large a number")


def _lines(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> None:
    """Check ``indent`` or ``wordwrap``, which may put text before every line or word."""
    _bounded(meter, value, *args, **kwargs)
    text = meter.text(value)
    given = (*args, *kwargs.values())
    widest = max((len(a) if isinstance(a, str) else abs(a) for a in given if isinstance(a, (str, int))), default=4)
    meter.charge(len(text) + (text.count("\n") + text.count(" ") + 1) * widest)


def _wrapped(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> None:
    """Check ``wordwrap``, which copies a long word for every line of it."""
    _lines(meter, value, *args, **kwargs)
    meter.charge(len(meter.text(value)) ** 2 // 1000)


def _printed(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> None:
    """Check ``pprint``, which writes a line and its indentation for every element."""
    meter.charge(16 * _weight(value, meter.size // 4))


def _tags(meter: Meter, value: Any) -> None:
    """Check ``striptags``, which copies the text for every tag."""
    meter.charge(_tag_copies(meter.text(value)))


def _replace(meter: Meter, s: Any, old: Any, new: Any, count: Any = None) -> None:
    text, old, new = meter.text(s), meter.text(old), meter.text(new)
    meter.charge(len(text) + _replacements(text, old, new, count) * max(len(new) - len(old), 0))


def _format(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> None:
    meter.percent(value if isinstance(value, str) else meter.text(value), kwargs or args)


def _shallow(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> None:
    """Check a filter that reads only the container itself, or passes its elements on one by one."""
    meter.seen(value)


_SHALLOW: Final = (
    "abs", "attr", "count", "d", "default", "first", "items", "last", "length", "list", "map", "reject", "rejectattr",
    "reverse", "select", "selectattr",
)  # fmt: skip
_BOUNDED: Final = ("center", "batch", "slice", "round", "truncate", "int")
_GUARDS: Final[dict[str, Callable[..., None]]] = {
    **dict.fromkeys(_SHALLOW, _shallow),
    **dict.fromkeys(_BOUNDED, _bounded),
    "format": _format,
    "indent": _lines,
    "pprint": _printed,
    "replace": _replace,
    "striptags": _tags,
    "wordwrap": _wrapped,
}


def filter_guard(name: str) -> Callable[..., None]:
    """Return the check that runs before a filter, with the filter's arguments."""
    return _GUARDS.get(name, _walked)
