"""Arguments in elements named after them → rules.

Rules of this module:

* A close tag must repeat the name of its element, so only names that the schema lists can be written. An object without
  listed properties is written as JSON, which the parser reads as well.
* A text holds no tag at which the parser would end it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

from ..errors import GrammarError
from ..format import ElementArguments
from ._choose import Tool
from ._reading import SchemaDocument, closed, closed_note
from ._rules import EMPTY, Json, Lit, Node, Ref, Repeat, Rules, Scan, choice, maybe, seq
from ._schema import frozen
from ._values import INTEGER, MAX_REPEAT, NUMBER
from ._variants import BRACKETS, constants, variants, with_definitions

__all__ = ["Elements"]

_PLAIN: Final = {
    "integer": INTEGER,
    "number": NUMBER,
    "boolean": choice(Lit("true"), Lit("false")),
    "null": Lit("null"),
}
"""Type → its values, where nothing limits them. Structural tags cannot hold JSON schemas in a recursion."""
_MOST_PLACES: Final = 4
"""Sets of elements around one element of a recursion that have rules of their own. With more, a text holds no close tag
of any element: eight elements that may hold one another would have 256 sets."""
_LIMITS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "not", "if")
_WEAK: Final = ("pattern", "format", "minLength", "maxLength", "uniqueItems", "contains", "minProperties")


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a schema, and the tags that have a meaning there."""

    document: SchemaDocument
    names: tuple[str, ...] = ()
    """Names of the elements around it, the innermost last."""
    siblings: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Names of elements that may be around it as well, where places in a recursion have rules in common."""

    @property
    def path(self) -> str:
        return "".join(f"/{name}" for name in self.names)


@final
class Elements:
    """Writes the arguments of one tool."""

    def __init__(
        self, arguments: ElementArguments, markers: tuple[str, ...], rules: Rules, tool: Tool, format: str
    ) -> None:
        """``markers``: what no text may hold. ``format``: its name, for errors."""
        self.arguments = arguments
        self.markers = markers
        self.rules = rules
        self.tool = tool
        self.format = format
        self._named: dict[tuple[str, str, frozenset[str], tuple[str, ...]], Ref] = {}
        """Elements whose schema has references, which may lead back to it: name, schema, and the tags that count."""
        self._places: dict[tuple[str, str], int] = {}
        """Name and schema of such an element → number of its rules."""

    def members(self, properties: Mapping[str, Any], required: frozenset[str], place: _Place) -> Node:
        """Return the rules for the elements of an object."""
        names = tuple(properties)
        parts = []
        for key, schema in properties.items():
            inner = replace(place, names=(*place.names, key), siblings=names)
            place.document.descend(place.path, len(place.names))
            node = self.element(key, schema, inner)
            parts.append(node if key in required else maybe(node))
        return seq(*parts)

    def top(self, properties: Mapping[str, Any], required: frozenset[str], document: SchemaDocument) -> Node:
        """Return the rules for all arguments."""
        return self.members(properties, required, _Place(document))

    def element(self, name: str, schema: Any, place: _Place) -> Node:
        """Return the rules for one element with a value that the schema allows."""
        key = frozen(schema, self.tool.name).key
        if '"$ref"' not in key:
            return self._element(name, schema, place)
        known = (name, key, frozenset((*place.names, *place.others)), place.siblings)
        if known not in self._named:
            self._places[name, key] = self._places.get((name, key), 0) + 1
            if self._places[name, key] > _MOST_PLACES and not place.others:
                return self.element(name, schema, replace(place, others=self._names()))
            rule = f"element-{len(self.rules.rules)}"
            self._named[known] = Ref(rule)
            self.rules.rules[rule] = EMPTY
            self.rules.rules[rule] = self._element(name, schema, place)
        return self._named[known]

    def _names(self) -> tuple[str, ...]:
        """Return the names of all elements that the tool's arguments may have."""
        names = {self.arguments.item: None}
        waiting: list[Any] = [self.tool.schema.value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Mapping):
                properties = part.get("properties")
                names.update(dict.fromkeys(properties if isinstance(properties, Mapping) else ()))
                waiting += part.values()
            elif isinstance(part, list | tuple):
                waiting += part
        return tuple(names)

    def _element(self, name: str, schema: Any, place: _Place) -> Node:
        arguments = self.arguments
        if not name or any(c in name for c in "<>\r\n") or name != name.strip() or name[0] == "/":
            raise GrammarError(
                f"tool {self.tool.name!r}: the parameter name {name!r} cannot be written in format {self.format!r}"
            )
        opened = f"{arguments.open.text}{name}{arguments.name_close}"
        closed_by = f"{arguments.close.text}{name}{arguments.name_close}"
        parts = variants(schema, place.document)
        kinds = {part.get("type") for part in parts if isinstance(part, Mapping)}
        if {"object", "array"} <= kinds:
            raise place.document.error(place.path, "an array or an object: an empty element could be either")
        ways = [self._way(part, place, kinds, closed_by) for part in parts if part is not False]
        return seq(opened, choice(*ways), arguments.separator)

    def _way(self, part: Any, place: _Place, kinds: set[Any], close: str) -> Node:
        """Return the rules for a value of one plain schema, with its close tag."""
        if part is True:
            return self._text(place, close, "{[" + self.arguments.open.text[0])
        self._weaken(part)
        values = constants(part)
        if values is not None:
            return seq(choice(*(self._constant(value, place) for value in values)), close)
        kind = part.get("type")
        if kind == "string":
            heads = "".join(BRACKETS.get(str(other), "") for other in kinds)
            return self._text(place, close, heads and heads + self.arguments.open.text[0])
        if kind == "array" and not part.get("prefixItems"):
            return seq(self._items(part, place), close)
        if kind == "object" and part.get("properties"):
            return seq(self._object(part, place), close)
        plain = _PLAIN.get(str(kind))
        if plain is not None and not any(word in part for word in _LIMITS):
            return seq(plain, close)
        return seq(Json(with_definitions(part, place.document), self.tool.name, self._stops(place)), close)

    def _object(self, part: Mapping[str, Any], place: _Place) -> Node:
        document = place.document
        properties, required, more = document.members(part, place.path)
        document.offer(place.path, "properties", len(properties))
        if closed(part):
            self.rules.notes.append(closed_note(self.tool.name))
        elif more is not False:
            self.note("additionalProperties", "an element is written only if its name is known")
        return self.members(properties, required, place)

    def _items(self, part: Mapping[str, Any], place: _Place) -> Node:
        item = self.arguments.item
        inner = replace(place, names=(*place.names, item), siblings=(item,))
        place.document.descend(place.path, len(place.names))
        least, most = int(part.get("minItems", 0)), part.get("maxItems")
        if part.get("items", True) is False or most == 0:
            return EMPTY
        most = None if most is None or most > MAX_REPEAT else int(most)
        return Repeat(self.element(item, part.get("items", True), inner), min(least, MAX_REPEAT), most)

    def _constant(self, value: Any, place: _Place) -> Node:
        """Return the rules for exactly this value."""
        if isinstance(value, str) and any(stop in value for stop in self._tags(place)):
            raise place.document.error(place.path, f"{value!r} holds a tag that would end it")
        return Lit(self._spelled(value))

    def _spelled(self, value: Any) -> str:
        """Return what an element with this value holds."""
        if isinstance(value, Mapping):
            return "".join(self._whole(key, item) for key, item in value.items())
        if isinstance(value, list | tuple):
            return "".join(self._whole(self.arguments.item, item) for item in value)
        return value if isinstance(value, str) else json.dumps(value)

    def _whole(self, name: str, value: Any) -> str:
        arguments = self.arguments
        end = arguments.name_close
        inner = self._spelled(value)
        return f"{arguments.open.text}{name}{end}{inner}{arguments.close.text}{name}{end}{arguments.separator}"

    def _text(self, place: _Place, close: str, begins_not: str) -> Node:
        return Scan(self._stops(place), ((close, EMPTY),), begins_not=begins_not)

    def _stops(self, place: _Place) -> tuple[str, ...]:
        """Return the literals that a text may not hold."""
        return tuple(dict.fromkeys((*self.markers, *self._tags(place))))

    def _tags(self, place: _Place) -> tuple[str, ...]:
        """Return the tags that may end a text: of the elements around it, and of those that may follow."""
        arguments = self.arguments
        end = arguments.name_close
        names = (*place.names, *place.others)
        closes = [f"{before}{name}{end}" for name in names for before in arguments.close.spellings]
        opens = [f"{before}{name}{end}" for name in place.siblings for before in arguments.open.spellings]
        return (*closes, *opens)

    def _weaken(self, part: Mapping[str, Any]) -> None:
        for word in _WEAK:
            if word in part:
                self.note(word, "text in elements")

    def note(self, word: str, why: str) -> None:
        """Note that a keyword is not enforced."""
        text = f"tool {self.tool.name!r}: '{word}' is not enforced ({why})"
        if text not in self.rules.notes:
            self.rules.notes.append(text)
