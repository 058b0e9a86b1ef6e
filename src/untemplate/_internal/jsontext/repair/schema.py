"""Repair of arguments that are JSON but do not fit the schema.

* Only values that do not fit are changed, and only if they fit then.
  :func:`~untemplate._internal.schemas.validation.failures`
  finds them and the part of the schema that they do not fit.
* A key is renamed only if that supplies a required key or removes a forbidden one.
* Edits are spliced into the text, so everything else keeps its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final

from ...schemas.reading import extract_types_from_schema
from ...schemas.validation import Failure, Path, failures, read_json
from ..coercion import Param
from ..lexical import WS, after_spaces, json_escape
from .base import BARE, MAX_LENGTH, Repair, is_object
from .names import nearest_name

_MAX_PASSES: Final = 8
"""Arguments that need more passes are not repaired: the repairs do not converge."""
_MAX_LEVELS: Final = 2
"""Changes to one value on top of each other, such as a string read as a number and put in a list."""
_MAX_FAILURES: Final = 1_000
"""A value with more failures than this is not repaired."""
# Names in an object that are compared with each other.
_MAX_STRANGERS: Final = 8
_MAX_ABSENT: Final = 64

_DECODER: Final = json.JSONDecoder()


def repair_schema(arguments: str, schema: Any, *, names: Iterable[str] | None = None) -> Repair | None:
    """Return ``arguments`` with the slips that the schema shows corrected; None if it shows none, or if the arguments
    are not a JSON object.

    Other problems may remain. ``names``: the only names that keys may be given (default: those of the schema; ``()``:
    keys are not renamed).

    Steps: ``coerced_string`` (``"3"`` is 3; a string that holds the list or object that is wanted), ``made_string`` (3
    is ``"3"``), ``wrapped_in_list``, ``unwrapped_item``, ``renamed_key``.
    """
    if len(arguments) > MAX_LENGTH or not isinstance(schema, Mapping) or not is_object(arguments):
        return None
    mender = _Mender(schema, None if names is None else frozenset(names))
    steps: dict[str, None] = {}
    text, _, settled = mender.fit(arguments, schema, 0, steps)
    return Repair(text, tuple(steps)) if settled and steps else None


@final
class _Mender:
    """Repairs values against one schema."""

    def __init__(self, root: Any, names: frozenset[str] | None) -> None:
        self.root = root
        self.names = names

    def fit(self, text: str, schema: Any, level: int, steps: dict[str, None]) -> tuple[str, list[Failure], bool]:
        """Repair ``text`` (a JSON value) as far as possible. Return it, the failures that are left, and True if the
        repairs have converged."""
        for _ in range(_MAX_PASSES):
            value = read_json(text)
            left = failures(value, schema, self.root)
            places = _Places(text) if 0 < len(left) <= _MAX_FAILURES else None
            if places is None or not places.complete:
                return text, left, True
            edits = sorted(self._edits(value, left, places, level, steps))
            if not edits:
                return text, left, True
            pieces: list[str] = []
            done = 0
            for start, end, new in edits:
                if start >= done:
                    pieces += (text[done:start], new)
                    done = end
            text = "".join(pieces) + text[done:]
        return text, left, False

    def _edits(
        self, value: Any, left: list[Failure], places: _Places, level: int, steps: dict[str, None]
    ) -> Iterator[tuple[int, int, str]]:
        objects: dict[Path, list[Failure]] = {}
        wrong: dict[Path, Failure] = {}
        for failure in left:
            if failure.slug in ("missing", "extra"):
                objects.setdefault(failure.path[:-1], []).append(failure)
            elif failure.path in places.values:
                wrong.setdefault(failure.path, failure)
        for path, failure in wrong.items():
            start, end = places.values[path]
            new = self._fitting(places.text[start:end], failure.schema, level, steps)
            if new is not None:
                yield start, end, new
        for path, failed in objects.items():
            for old, name in self._renames(_at(value, path), failed):
                start, end = places.keys[*path, old]
                steps["renamed_key"] = None
                yield start, end, f'"{json_escape(name)}"'

    def _fitting(self, text: str, schema: Any, level: int, steps: dict[str, None]) -> str | None:
        """Return the first reading of ``text`` that fits. Where the text itself is a list or an object in a string, its
        content may still be wrong; where the list was added here, it may not."""
        if level >= _MAX_LEVELS:
            return None
        for slug, candidate in _readings(text, extract_types_from_schema(schema, root=self.root)):
            inner: dict[str, None] = {}
            new, left, settled = self.fit(candidate, schema, level + 1, inner)
            if settled and (not left or (slug == "coerced_string" and all(f.path for f in left))):
                steps.update({slug: None, **inner})
                return new
        return None

    def _renames(self, value: dict[str, Any], failed: list[Failure]) -> Iterator[tuple[str, str]]:
        """Yield the keys that are near exactly one absent property, when no other key is."""
        schema = failed[0].schema
        # Where keys are data, they are not misspelt.
        if "patternProperties" in schema or isinstance(schema.get("additionalProperties"), Mapping):
            return
        properties = schema.get("properties")
        missing = {f.path[-1] for f in failed if f.slug == "missing"}
        forbidden = {f.path[-1] for f in failed if f.slug == "extra"}
        known = {*(properties if isinstance(properties, Mapping) else ()), *missing}
        absent = [k for k in known if isinstance(k, str) and k not in value and (self.names is None or k in self.names)]
        strangers = [key for key in value if key not in known]
        if len(absent) > _MAX_ABSENT or len(strangers) > _MAX_STRANGERS:
            return
        near = [(old, nearest_name(old, absent)) for old in strangers]
        for old, name in near:
            if name is not None and (name in missing or old in forbidden) and [n for _, n in near].count(name) == 1:
                yield old, name


def _readings(text: str, types: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the values that may have been meant by one that does not fit, as JSON, each with the step's slug."""
    value = read_json(text)
    if isinstance(value, str):
        coerced = Param(types).encode(value)
        if not coerced.startswith('"'):
            yield "coerced_string", coerced
    elif isinstance(value, list):
        if len(value) == 1:
            yield "unwrapped_item", text[1:-1].strip(WS)
        return
    elif not isinstance(value, dict) and value is not None and "string" in types:
        yield "made_string", f'"{text}"'
    if "array" in types and value is not None:
        yield "wrapped_in_list", f"[{text}]"


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


@final
class _Places:
    """The places of the values and keys in a JSON text. If a key occurs twice, the last one counts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.values: dict[Path, tuple[int, int]] = {}
        self.keys: dict[Path, tuple[int, int]] = {}
        self.complete = True
        try:
            self._value(after_spaces(text, 0), ())
        except RecursionError:
            self.complete = False

    def _value(self, start: int, path: Path) -> int:
        text = self.text
        if text[start] in "{[":
            pos = after_spaces(text, start + 1)
            i = 0
            while text[pos] not in "]}":
                key: str | int = i
                if text[start] == "{":
                    key, end = _DECODER.raw_decode(text, pos)
                    self.keys[*path, key] = pos, end
                    pos = after_spaces(text, after_spaces(text, end) + 1)
                pos = after_spaces(text, self._value(pos, (*path, key)))
                if text[pos] == ",":
                    pos = after_spaces(text, pos + 1)
                i += 1
            pos += 1
        elif text[start] == '"':
            pos = _DECODER.raw_decode(text, start)[1]
        else:
            found = BARE.match(text, start)
            pos = start if found is None else found.end()
        self.values[path] = start, pos
        return pos
