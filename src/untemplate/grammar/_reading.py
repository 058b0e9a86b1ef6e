"""Reading a JSON schema for a grammar: members of objects, references, and ``allOf`` merged into one schema.

Every walk over a schema spends steps of the grammar's :class:`~._limits.Budget`, because a short schema may describe an
exponentially large one. Whatever cannot be read is a :class:`GrammarError` that names the tool and the
keyword.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from ..errors import GrammarError
from ._limits import MAX_DEPTH, STEP_CHARACTERS, Budget
from ._places import at, whose

__all__ = ["ANNOTATIONS", "SchemaDocument", "closed", "closed_note", "fits", "types_of"]

ANNOTATIONS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema",
     "$id", "$defs", "definitions", "strict")
)  # fmt: skip
_LARGER: Final = frozenset(("minLength", "minItems", "minimum", "minProperties"))
_SMALLER: Final = frozenset(("maxLength", "maxItems", "maximum", "maxProperties"))
_MAX_REFERENCES: Final = 32  # in a row


def closed(schema: Mapping[str, Any]) -> bool:
    """True if an object that lists properties does not mention others: it is taken to have no others."""
    return bool(schema.get("properties")) and "additionalProperties" not in schema


def types_of(schema: Mapping[str, Any]) -> list[str] | None:
    """Return the types of a schema, ``null`` for ``nullable`` included. Without ``type``, its keywords imply one;
    ``None`` if they imply none."""
    types = schema.get("type")
    if types is None:
        types = "object" if "properties" in schema else "array" if "items" in schema else None
        if types is None:
            return None
    listed = [types] if isinstance(types, str) else list(dict.fromkeys(types))
    if schema.get("nullable") is True and "null" not in listed:
        listed.append("null")
    return listed


def closed_note(tool: str) -> str:
    return f"{whose(tool)}: 'additionalProperties' is taken to be false where it is not given"


@final
class SchemaDocument:
    """One schema of a request, which its references point into.

    Attributes:
        root: the whole schema.
        tool: the name of its tool; empty for ``response_format``.
    """

    def __init__(self, root: Any, tool: str, budget: Budget) -> None:
        self.root: Any = root
        self.tool: str = tool
        self.budget: Budget = budget
        # By identity; the schema is kept with its result, so that the identity stays valid.
        self._merged: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
        self._merging: set[int] = set()

    def error(self, path: str, problem: str) -> GrammarError:
        return GrammarError(f"{whose(self.tool)}{at(path)}: {problem}")

    def step(self, path: str, keyword: str, count: int = 1) -> None:
        """Spend steps of the budget."""
        self.budget.step(count, self.tool, path, keyword)

    def offer(self, path: str, keyword: str, count: int) -> None:
        """Add alternatives to the grammar."""
        self.budget.offer(count, self.tool, path, keyword)

    def allow(self, path: str, keyword: str, value: Any) -> None:
        """Add the values of ``enum`` or ``const`` to the grammar."""
        self.offer(path, keyword, len(value) if keyword == "enum" else 1)
        self.measure(value, path, keyword)

    def descend(self, path: str, depth: int) -> None:
        """Check the depth of a walk.

        Raises:
            GrammarError: the schema is nested deeper than ``MAX_DEPTH``.
        """
        if depth > MAX_DEPTH:
            raise self.error(
                path,
                f"nested deeper than {MAX_DEPTH} schemas, or '$ref' with keywords next to it leads back to itself",
            )

    def measure(self, part: Any, path: str, keyword: str) -> None:
        """Spend steps for the size of ``part`` as text. Schemas share parts, so the text may be very large."""
        waiting = [part]
        while waiting:
            here = waiting.pop()
            self.step(path, keyword, 1 + (len(here) // STEP_CHARACTERS if isinstance(here, str) else 0))
            if isinstance(here, Mapping):
                waiting.extend(here)
                waiting.extend(here.values())
            elif isinstance(here, list | tuple):
                waiting.extend(here)

    def members(self, schema: Mapping[str, Any], path: str = "") -> tuple[dict[str, Any], frozenset[str], Any]:
        """Return (properties, required, additionalProperties) of an object schema.

        An object that lists properties and does not mention others has no others.
        """
        properties = schema.get("properties") or {}
        if not isinstance(properties, Mapping):
            raise self.error(path, "'properties' is not an object")
        required = [r for r in schema.get("required") or () if isinstance(r, str)]
        self.measure((*properties, *required), path, "properties")
        more = not closed(schema) and schema.get("additionalProperties", True)
        found = dict(properties)
        for key in required:
            if key not in found:
                if more is False:
                    raise self.error(path, f"'required' names {key!r}, which is not in 'properties'")
                found[key] = more
        return found, frozenset(required), more

    def resolve(self, ref: Any, path: str) -> Any:
        """Return the schema that a local reference points at."""
        part = self.root
        if isinstance(ref, str) and (ref == "#" or ref.startswith("#/")):
            keys = ref[2:].split("/") if len(ref) > 1 else []
            self.step(path, "$ref", 1 + len(keys))
            for key in keys:
                key = key.replace("~1", "/").replace("~0", "~")
                if isinstance(part, Mapping) and key in part:
                    part = part[key]
                elif isinstance(part, Sequence) and not isinstance(part, str) and _is_index(key, len(part)):
                    part = part[int(key)]
                else:
                    part = None
                    break
            if isinstance(part, Mapping | bool):
                return part
        raise self.error(path, f"'$ref' {ref!r} points at nothing in its schema")

    # -- allOf --------------------------------------------------------------------------------------------------

    def merge(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return one schema for a schema with ``allOf``. Each schema is merged once, whatever refers to it."""
        known = self._merged.get(id(schema))
        if known is not None:
            return known[1]
        if id(schema) in self._merging:
            raise self.error(path, "'$ref' points at itself")
        self.descend(path, len(self._merging))
        self._merging.add(id(schema))
        try:
            parts = schema.get("allOf") or ()
            self.step(path, "allOf", 1 + len(schema) + len(parts))
            result: dict[str, Any] = {k: v for k, v in schema.items() if k != "allOf"}
            for part in parts:
                self._add(result, part, path)
        finally:
            self._merging.discard(id(schema))
        self._merged[id(schema)] = schema, result
        return result

    def narrowed(self, schema: Mapping[str, Any], keyword: str, part: Any, path: str) -> dict[str, Any]:
        """Return ``schema`` with ``part`` in ``allOf`` in place of ``keyword``."""
        self.step(path, keyword, len(schema))
        rest = {k: v for k, v in schema.items() if k not in (keyword, "allOf")}
        return {**rest, "allOf": [*(schema.get("allOf") or ()), part]}

    def _add(self, result: dict[str, Any], part: Any, path: str) -> None:
        """Add one schema of ``allOf`` to ``result``."""
        part = self._followed(part, path)
        if part is True:
            return
        if not isinstance(part, Mapping):
            raise self.error(path, "'allOf' holds something that is not a schema")
        if "allOf" in part:
            part = self.merge(part, path)
        self.step(path, "allOf", 1 + len(part))
        for key, value in part.items():
            if key in ANNOTATIONS or key not in result:
                result.setdefault(key, value)
            elif not self._same(result[key], value, path):
                result[key] = self._both(key, result[key], value, path)

    def _followed(self, part: Any, path: str) -> Any:
        """Follow the references of one schema of ``allOf``."""
        seen = 0
        while isinstance(part, Mapping) and "$ref" in part:
            target = self.resolve(part["$ref"], path)
            alone = len(part) == 1 or not isinstance(target, Mapping)
            part = target if alone else self.narrowed(part, "$ref", target, path)
            seen += 1
            if seen > _MAX_REFERENCES:
                raise self.error(path, "'$ref' points at itself")
        return part

    def _both(self, key: str, mine: Any, theirs: Any, path: str) -> Any:
        """Return the value of a keyword that two schemas of ``allOf`` have with different values."""
        if key == "properties":
            self.step(path, "allOf", len(mine) + len(theirs))
            both = dict(mine)
            for name, inner in theirs.items():
                both[name] = {"allOf": [both[name], inner]} if name in both else inner
            return both
        if key == "required":
            self.step(path, "allOf", len(mine) + len(theirs))
            return list(dict.fromkeys((*mine, *theirs)))
        if key in _LARGER:
            return max(mine, theirs)
        if key in _SMALLER:
            return min(mine, theirs)
        if key == "enum":
            return self._common(mine, theirs, path)
        if key == "type":
            types = _common_types(mine, theirs)
            if not types:
                raise self.error(path, "'allOf' allows no type")
            return types
        if key == "additionalProperties" and isinstance(mine, bool) and isinstance(theirs, bool):
            return mine and theirs
        raise self.error(path, f"'allOf' says {key!r} twice")

    def _common(self, mine: Sequence[Any], theirs: Sequence[Any], path: str) -> list[Any]:
        """Return the values of ``mine`` that are in ``theirs``."""
        texts = {value for value in theirs if isinstance(value, str)}
        others = [value for value in theirs if not isinstance(value, str)]
        compared = sum(not isinstance(value, str) for value in mine) * len(others)
        self.step(path, "enum", len(mine) + len(theirs) + compared)
        return [value for value in mine if value in (texts if isinstance(value, str) else others)]

    def _same(self, mine: Any, theirs: Any, path: str) -> bool:
        """True if two values are equal. Comparing merged schemas as Python does could take exponential time."""
        waiting = [(mine, theirs)]
        while waiting:
            a, b = waiting.pop()
            if a is b:
                continue
            self.step(path, "allOf")
            if isinstance(a, Mapping) and isinstance(b, Mapping):
                if a.keys() != b.keys():
                    return False
                waiting.extend((a[key], b[key]) for key in a)
            elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
                if len(a) != len(b):
                    return False
                waiting.extend(zip(a, b, strict=True))
            elif a != b:
                return False
        return True


def _common_types(mine: Any, theirs: Any) -> list[str]:
    """Return the JSON types in both; an integer is a number."""
    first, second = ([t] if isinstance(t, str) else list(dict.fromkeys(t)) for t in (mine, theirs))
    there = frozenset(second)
    found = [t for t in first if t in there or (t == "integer" and "number" in there)]
    if "integer" in there and "number" in first and "integer" not in found:
        found.append("integer")
    return found


def _is_index(key: str, length: int) -> bool:
    return key.isdecimal() and len(key) < 10 and int(key) < length


def fits(value: Any, types: Any) -> bool:
    """True if a value of ``enum`` has one of the ``types`` of the same schema."""
    if types is None:
        return True
    listed = (types,) if isinstance(types, str) else types
    if value is None:
        return "null" in listed
    if isinstance(value, bool):
        return "boolean" in listed
    if isinstance(value, int):
        return "integer" in listed or "number" in listed
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (float, "number"), (str, "string"), (Mapping, "object"), ((list, tuple), "array")
    )  # fmt: skip
    return any(isinstance(value, kind) and word in listed for kind, word in kinds)
