"""JSON schema → rules for one value, written as JSON or in the literals of another language.

Rules of this module:

* Dialects with a JSON-schema engine use that. This is for the others: GBNF's JSON, and arguments written as Python's or
  Gemma's literals, which no engine knows.
* What is written always validates, except for the keywords named in a note: those are weaker here, never different.
  What cannot even be weakened is a :class:`~.rules.GrammarError` that names tool and keyword.
* Properties stand in the order of the schema; optional ones may be left out; others may follow where the schema has
  ``additionalProperties``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .rules import EMPTY, Chars, GrammarError, Lit, Node, Ref, Repeat, Rules, Scan, Token, choice, maybe, seq, star

__all__ = ["JSON", "Syntax", "Values", "members", "merged", "resolve", "word_except"]

DIGIT: Final = Chars((("0", "9"),))
HEX: Final = Chars((("0", "9"), ("a", "f"), ("A", "F")))
INTEGER: Final = seq(maybe("-"), choice(Lit("0"), seq(Chars((("1", "9"),)), Repeat(DIGIT, 0, 15))))
NUMBER: Final = seq(
    INTEGER,
    maybe(".", Repeat(DIGIT, 1, 16)),
    maybe(Chars((("e", "e"), ("E", "E"))), Repeat(Chars((("+", "+"), ("-", "-"))), 0, 1), Repeat(DIGIT, 1, 2)),
)
# Bounded, so that a model at a low temperature does not write white space for ever.
SPACE: Final = Repeat(Chars(((" ", " "), ("\n", "\n"), ("\t", "\t"))), 0, 20)
MAX_REPEAT: Final = 1024  # bounds beyond this are not enforced: engines unroll them

_WEAK_STRING: Final = ("pattern", "format", "contentEncoding", "contentMediaType")
_WEAK_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_WEAK_ARRAY: Final = ("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems")
_WEAK_OBJECT: Final = (
    "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas",
    "dependencies", "unevaluatedProperties",
)  # fmt: skip
_WEAK_ANY: Final = ("not", "if", "then", "else")
WEAK: Final = frozenset((*_WEAK_STRING, *_WEAK_NUMBER, *_WEAK_ARRAY, *_WEAK_OBJECT, *_WEAK_ANY))
"""Keywords that are not enforced by the rules of this module."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """How values are written."""

    name: str
    quote: str = '"'
    escapes: str = '"\\/bfnrt'
    """What may stand behind a backslash; empty: strings have no escapes, and end only at their quote."""
    words: tuple[str, str, str] = ("true", "false", "null")
    quoted_keys: bool = True
    not_keys: tuple[str, ...] = ()
    """Words that cannot be bare keys."""
    hexadecimal: bool = False
    r"""Whether ``\x0b`` is an escape."""


JSON: Final = Syntax("json")


class Values:
    """Writes the values of one grammar. Named rules are put into ``rules`` and shared by all tools."""

    def __init__(self, syntax: Syntax, rules: Rules, write: Callable[[str], Node] = Lit) -> None:
        """``write``: how text is written; special tokens in it may be named by id."""
        self.syntax: Syntax = syntax
        self.write: Callable[[str], Node] = write
        self.rules: Rules = rules
        self._weak: dict[tuple[str, str], None] = {}
        self._references: dict[int, str] = {}
        self._shared: dict[Node, str] = {}

    def any(self) -> Node:
        """Any value."""
        name = f"{self.syntax.name}-value"
        if name not in self.rules.rules:
            self.rules.rules[name] = EMPTY
            self.rules.rules[name] = choice(
                self.any_object(), self.any_array(), self.string(), NUMBER, *(Lit(w) for w in self.syntax.words)
            )
        return Ref(name)

    def any_object(self) -> Node:
        """Any object."""
        name = f"{self.syntax.name}-object"
        if name not in self.rules.rules:
            self.rules.rules[name] = EMPTY
            member = seq(self.any_key(), SPACE, ":", SPACE, self.any())
            self.rules.rules[name] = seq("{", SPACE, maybe(member, star(SPACE, ",", SPACE, member), SPACE), "}")
        return Ref(name)

    def any_array(self) -> Node:
        name = f"{self.syntax.name}-array"
        if name not in self.rules.rules:
            self.rules.rules[name] = EMPTY
            self.rules.rules[name] = self._array(self.any(), 0, None)
        return Ref(name)

    def string(self, least: int = 0, most: int | None = None) -> Node:
        """Any string, between its quotes."""
        syntax = self.syntax
        if not syntax.escapes:
            if least or most is not None:
                self._note("", "minLength/maxLength")
            quote = self.write(syntax.quote)
            stop = quote if isinstance(quote, Token) else syntax.quote
            return seq(quote, Scan((syntax.quote,) if isinstance(stop, Token) else (), ((stop, EMPTY),)))
        name = f"{syntax.name}-char"
        if name not in self.rules.rules:
            forbidden = ((syntax.quote, syntax.quote), ("\\", "\\"), ("\x00", "\x1f"), ("\x7f", "\x7f"))
            simple = Chars(tuple((c, c) for c in syntax.escapes))
            escape = choice(simple, seq("u", _unicode()), *((seq("x", HEX, HEX),) if syntax.hexadecimal else ()))
            self.rules.rules[name] = choice(Chars(forbidden, negated=True), seq("\\", escape))
        return seq(syntax.quote, Repeat(Ref(name), least, most), syntax.quote)

    def any_key(self) -> Node:
        if self.syntax.quoted_keys:
            return self.string()
        return word_except(self.syntax.not_keys)

    def share(self, node: Node) -> Node:
        """A reference to a rule that is this node; one rule for equal nodes."""
        if isinstance(node, Ref | Lit):
            return node
        name = self._shared.get(node)
        if name is None:
            name = self._shared[node] = f"{self.syntax.name}-{len(self._shared)}"
            self.rules.rules[name] = node
        return Ref(name)

    def separated(self, fields: Sequence[tuple[Node, bool]], separator: Node, extra: Node | None) -> Node:
        """Members in their order, the optional ones (False) left out at will, ``extra`` any number of times behind."""
        # tail: what may follow once something has been written. first: nothing has been written yet.
        tail: Node = star(separator, extra) if extra is not None else EMPTY
        first: Node | None = seq(extra, tail) if extra is not None else None
        empty = True
        for node, needed in reversed(fields):
            starts = seq(node, tail)
            if needed:
                first, empty = starts, False
                tail = seq(separator, node, tail)
            else:
                first = starts if first is None else choice(starts, first)
                tail = seq(maybe(separator, node), tail)
                if len(fields) > 2 and tail != EMPTY:
                    tail = self.share(tail)
        if first is None:
            return EMPTY
        return maybe(first) if empty else first

    # -- by schema ----------------------------------------------------------------------------------------------

    def value(self, schema: Any, root: Any, tool: str, path: str = "") -> Node:
        """A value that ``schema`` allows. ``root``: the document that ``$ref`` points into.

        Raises:
            GrammarError: names the tool and the keyword.
        """
        if schema is True or schema == {} or schema is None:
            return self.any()
        if schema is False:
            raise GrammarError(f"tool {tool!r}{_at(path)}: the schema 'false' allows nothing")
        if not isinstance(schema, Mapping):
            raise GrammarError(f"tool {tool!r}{_at(path)}: {type(schema).__name__} is not a schema")
        for word in _WEAK_ANY:
            if word in schema:
                self._note(tool, word)
        if "$ref" in schema:
            return self._reference(schema, root, tool, path)
        if "const" in schema:
            return self.constant(schema["const"])
        if "enum" in schema:
            values = schema["enum"]
            if not isinstance(values, Sequence) or not values:
                raise GrammarError(f"tool {tool!r}{_at(path)}: 'enum' is not a list of values")
            return choice(*(self.constant(v) for v in values if _fits(v, schema.get("type"))))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._alternatives(schema, word, root, tool, path)
        if "allOf" in schema:
            return self.value(merged(schema, root, tool, path), root, tool, path)
        types = schema.get("type")
        if types is None:
            types = "object" if "properties" in schema else "array" if "items" in schema else None
            if types is None:
                for word in schema:
                    if word in WEAK and word not in _WEAK_ANY:
                        self._note(tool, word)
                return self.any()
        listed = [types] if isinstance(types, str) else list(types)
        if schema.get("nullable") is True and "null" not in listed:
            listed.append("null")
        return choice(*(self._typed(t, schema, root, tool, path) for t in listed))

    def _typed(self, kind: str, schema: Mapping[str, Any], root: Any, tool: str, path: str) -> Node:
        if kind == "string":
            self._weaken(tool, schema, _WEAK_STRING)
            least, most = self._bounds(schema, "minLength", "maxLength", tool)
            return self.string(least, most)
        if kind == "integer":
            if "minimum" in schema and schema["minimum"] in (0, 1) and "exclusiveMinimum" not in schema:
                self._weaken(tool, schema, tuple(w for w in _WEAK_NUMBER if w != "minimum"))
                positive = seq(Chars((("1", "9"),)), Repeat(DIGIT, 0, 15))
                return positive if schema["minimum"] == 1 else choice(Lit("0"), positive)
            self._weaken(tool, schema, _WEAK_NUMBER)
            return INTEGER
        if kind == "number":
            self._weaken(tool, schema, _WEAK_NUMBER)
            return NUMBER
        if kind == "boolean":
            return choice(Lit(self.syntax.words[0]), Lit(self.syntax.words[1]))
        if kind == "null":
            return Lit(self.syntax.words[2])
        if kind == "array":
            return self._typed_array(schema, root, tool, path)
        if kind == "object":
            return self._typed_object(schema, root, tool, path)
        raise GrammarError(f"tool {tool!r}{_at(path)}: 'type' {kind!r} is not a JSON type")

    def _typed_array(self, schema: Mapping[str, Any], root: Any, tool: str, path: str) -> Node:
        self._weaken(tool, schema, _WEAK_ARRAY)
        least, most = self._bounds(schema, "minItems", "maxItems", tool)
        prefix = schema.get("prefixItems")
        items = schema.get("items", True)
        if isinstance(items, Sequence) and not isinstance(items, str):
            prefix, items = items, schema.get("additionalItems", True)
        if prefix:
            # Exactly the listed items, unless fewer are asked for: longer arrays are only left out, not wrong.
            nodes = [self.value(s, root, tool, f"{path}/prefixItems/{i}") for i, s in enumerate(prefix)]
            if least > len(nodes):
                more = self.value(items, root, tool, f"{path}/items")
                nodes += [more] * (least - len(nodes))
            parts: list[Node | str] = []
            for i, node in enumerate(nodes):
                parts += [node] if not i else [SPACE, ",", SPACE, node]
            return seq("[", SPACE, *parts, SPACE, "]")
        if items is False or (most is not None and most == 0):
            return seq("[", SPACE, "]")
        return self._array(self.value(items, root, tool, f"{path}/items"), least, most)

    def _array(self, item: Node, least: int, most: int | None) -> Node:
        rest = Repeat(seq(SPACE, ",", SPACE, item), max(least - 1, 0), None if most is None else max(most - 1, 0))
        inner = seq(item, rest, SPACE)
        return seq("[", SPACE, inner if least else maybe(inner), "]")

    def _typed_object(self, schema: Mapping[str, Any], root: Any, tool: str, path: str) -> Node:
        self._weaken(tool, schema, _WEAK_OBJECT)
        properties, required, more = members(schema, tool, path)
        if not properties and more is True:
            return self.any_object()
        fields = [
            (
                self.share(seq(self._key(key), SPACE, ":", SPACE, self.value(s, root, tool, f"{path}/{key}"))),
                key in required,
            )
            for key, s in properties.items()
        ]
        extra: Node | None = None
        if more is not False:
            extra = seq(self.any_key(), SPACE, ":", SPACE, self.value(more, root, tool, f"{path}/*"))
        return seq("{", SPACE, self.separated(fields, seq(SPACE, ",", SPACE), extra), SPACE, "}")

    def _key(self, key: str) -> Node:
        if self.syntax.quoted_keys or not key.isidentifier() or key in self.syntax.not_keys:
            return self.constant(key)
        return Lit(key)

    def _alternatives(self, schema: Mapping[str, Any], word: str, root: Any, tool: str, path: str) -> Node:
        parts = schema[word]
        if not isinstance(parts, Sequence) or not parts:
            raise GrammarError(f"tool {tool!r}{_at(path)}: {word!r} is not a list of schemas")
        if word == "oneOf" and len(parts) > 1:
            self._note(tool, "oneOf", "more than one of its schemas may fit")
        base = {k: v for k, v in schema.items() if k != word and k not in _ANNOTATIONS}
        ways = []
        for i, part in enumerate(parts):
            whole = merged({**base, "allOf": [part]}, root, tool, path) if base else part
            ways.append(self.value(whole, root, tool, f"{path}/{word}/{i}"))
        return choice(*ways)

    def _reference(self, schema: Mapping[str, Any], root: Any, tool: str, path: str) -> Node:
        others = {k: v for k, v in schema.items() if k != "$ref" and k not in _ANNOTATIONS}
        target = resolve(schema["$ref"], root, tool, path)
        if others:
            return self.value(merged({**others, "allOf": [target]}, root, tool, path), root, tool, path)
        if isinstance(target, bool):
            return self.value(target, root, tool, path)
        name = self._references.get(id(target))
        if name is None:
            name = self._references[id(target)] = f"{self.syntax.name}-ref-{len(self.rules.rules)}"
            self.rules.rules[name] = EMPTY
            self.rules.rules[name] = self.value(target, root, tool, str(schema["$ref"]))
        return Ref(name)

    def constant(self, value: Any) -> Node:
        """Exactly this value."""
        return self.write(self.spell(value))

    def spell(self, value: Any) -> str:
        """A value as it is written."""
        syntax = self.syntax
        if value is None:
            return syntax.words[2]
        if isinstance(value, bool):
            return syntax.words[0 if value else 1]
        if isinstance(value, str):
            if not syntax.escapes:
                return f"{syntax.quote}{value}{syntax.quote}"
            body = json.dumps(value, ensure_ascii=False)[1:-1]
            if syntax.quote != '"':
                body = body.replace('\\"', '"').replace(syntax.quote, "\\" + syntax.quote)
            return f"{syntax.quote}{body}{syntax.quote}"
        if isinstance(value, Mapping):
            keys = (self.spell(k) if syntax.quoted_keys or not k.isidentifier() else k for k in value)
            return "{" + ", ".join(f"{k}: {self.spell(v)}" for k, v in zip(keys, value.values(), strict=True)) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(self.spell(v) for v in value) + "]"
        return json.dumps(value)

    def _bounds(self, schema: Mapping[str, Any], low: str, high: str, tool: str) -> tuple[int, int | None]:
        least, most = int(schema.get(low, 0)), schema.get(high)
        if least > MAX_REPEAT:
            self._note(tool, low, f"beyond {MAX_REPEAT}")
            least = MAX_REPEAT
        if most is not None and most > MAX_REPEAT:
            self._note(tool, high, f"beyond {MAX_REPEAT}")
            most = None
        return least, None if most is None else int(most)

    def _weaken(self, tool: str, schema: Mapping[str, Any], words: tuple[str, ...]) -> None:
        for word in words:
            if word in schema:
                self._note(tool, word)

    def _note(self, tool: str, word: str, why: str = "") -> None:
        if (tool, word) not in self._weak:
            self._weak[tool, word] = None
            where = f"tool {tool!r}: " if tool else ""
            self.rules.notes.append(f"{where}'{word}' is not enforced{f' ({why})' if why else ''}")


def _unicode() -> Node:
    """Four hex digits that are no surrogate: half a pair is no text."""
    low = Chars((("0", "9"), ("a", "c"), ("A", "C"), ("e", "f"), ("E", "F")))
    return choice(seq(low, HEX, HEX, HEX), seq(Chars((("d", "d"), ("D", "D"))), Chars((("0", "7"),)), HEX, HEX))


def word_except(words: Sequence[str]) -> Node:
    """An identifier that is none of ``words``."""
    letters = (("A", "Z"), ("a", "z"), ("_", "_"))
    first, other = Chars(letters), Chars((*letters, ("0", "9")))
    if not words:
        return seq(first, Repeat(other, 0, 63))
    heads = sorted({word[0] for word in words})
    ways: list[Node] = [seq(_minus(letters, heads), Repeat(other, 0, 63))]
    for head in heads:
        rests = [word[1:] for word in words if word[0] == head]
        ways.append(seq(head, _rest_except(rests, (*letters, ("0", "9")))))
    return choice(*ways)


def _rest_except(words: list[str], letters: tuple[tuple[str, str], ...]) -> Node:
    """Identifier characters, or none, that are none of ``words``."""
    heads = sorted({word[0] for word in words if word})
    ways: list[Node] = [] if "" in words else [EMPTY]
    ways.append(seq(_minus(letters, heads), Repeat(Chars(letters), 0, 63)))
    ways += [seq(head, _rest_except([w[1:] for w in words if w[:1] == head], letters)) for head in heads]
    return choice(*ways)


def _minus(ranges: tuple[tuple[str, str], ...], without: Sequence[str]) -> Chars:
    """A character class without some characters."""
    kept: list[tuple[str, str]] = []
    for low, high in ranges:
        start = low
        for c in without:
            if start <= c <= high:
                if start < c:
                    kept.append((start, chr(ord(c) - 1)))
                start = chr(ord(c) + 1)
        if start <= high:
            kept.append((start, high))
    return Chars(tuple(kept))


def members(schema: Mapping[str, Any], tool: str, path: str = "") -> tuple[dict[str, Any], frozenset[str], Any]:
    """(properties, required, additionalProperties) of an object schema. With properties and no word on others, there
    are no others."""
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise GrammarError(f"tool {tool!r}{_at(path)}: 'properties' is not an object")
    listed = schema.get("required") or ()
    if not isinstance(listed, list | tuple):
        raise GrammarError(f"tool {tool!r}{_at(path)}: 'required' is not a list")
    required = [r for r in listed if isinstance(r, str)]
    more = schema.get("additionalProperties", not properties)
    found = dict(properties)
    for key in required:
        if key not in found:
            if more is False:
                raise GrammarError(f"tool {tool!r}{_at(path)}: 'required' names {key!r}, which is not in 'properties'")
            found[key] = more
    return found, frozenset(required), more


_ANNOTATIONS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema",
     "$id", "$defs", "definitions", "strict")
)  # fmt: skip


def resolve(ref: Any, root: Any, tool: str, path: str) -> Any:
    """What a local reference points at."""
    part = root
    if isinstance(ref, str) and (ref == "#" or ref.startswith("#/")):
        for key in ref[2:].split("/") if len(ref) > 1 else ():
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(part, Mapping) and key in part:
                part = part[key]
            elif isinstance(part, Sequence) and not isinstance(part, str) and key.isdecimal() and int(key) < len(part):
                part = part[int(key)]
            else:
                part = None
                break
        if isinstance(part, Mapping | bool):
            return part
    raise GrammarError(f"tool {tool!r}{_at(path)}: '$ref' {ref!r} points at nothing in the tool's parameters")


def merged(schema: Mapping[str, Any], root: Any, tool: str, path: str) -> dict[str, Any]:
    """One schema for a schema with ``allOf``."""
    result: dict[str, Any] = {k: v for k, v in schema.items() if k != "allOf"}
    for part in schema.get("allOf") or ():
        seen = 0
        while isinstance(part, Mapping) and "$ref" in part:
            target = resolve(part["$ref"], root, tool, path)
            rest = {k: v for k, v in part.items() if k != "$ref"}
            part = {"allOf": [target], **rest} if rest and isinstance(target, Mapping) else target
            seen += 1
            if seen > 32:
                raise GrammarError(f"tool {tool!r}{_at(path)}: '$ref' points at itself")
        if part is True:
            continue
        if not isinstance(part, Mapping):
            raise GrammarError(f"tool {tool!r}{_at(path)}: 'allOf' holds something that is not a schema")
        part = merged(part, root, tool, path) if "allOf" in part else part
        for key, value in part.items():
            if key in _ANNOTATIONS or key not in result or result[key] == value:
                result.setdefault(key, value)
            elif key == "properties":
                both = dict(result[key])
                for name, inner in value.items():
                    both[name] = {"allOf": [both[name], inner]} if name in both else inner
                result[key] = both
            elif key == "required":
                result[key] = list(dict.fromkeys((*result[key], *value)))
            elif key in ("minLength", "minItems", "minimum", "minProperties"):
                result[key] = max(result[key], value)
            elif key in ("maxLength", "maxItems", "maximum", "maxProperties"):
                result[key] = min(result[key], value)
            elif key == "enum":
                result[key] = [v for v in result[key] if v in value]
            elif key == "type":
                mine, theirs = ([t] if isinstance(t, str) else list(t) for t in (result[key], value))
                both_types = [t for t in mine if t in theirs or (t == "integer" and "number" in theirs)]
                both_types += [t for t in theirs if t == "integer" and "number" in mine and t not in both_types]
                result[key] = both_types
                if not both_types:
                    raise GrammarError(f"tool {tool!r}{_at(path)}: 'allOf' allows no type")
            elif key == "additionalProperties" and isinstance(value, bool) and isinstance(result[key], bool):
                result[key] = result[key] and value
            else:
                raise GrammarError(f"tool {tool!r}{_at(path)}: 'allOf' says {key!r} twice")
    return result


def _fits(value: Any, types: Any) -> bool:
    """Whether an ``enum`` value is of the types beside it."""
    if types is None:
        return True
    listed = (types,) if isinstance(types, str) else tuple(types)
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


def _at(path: str) -> str:
    return f" at {path}" if path else ""
