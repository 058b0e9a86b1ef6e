"""JSON schema → rules for one value, written as JSON or in the literals of another language.

Rules of this module:

* Dialects with a JSON-schema engine use that. This is for the others: GBNF's JSON, and arguments written as Python's or
  Gemma's literals, which no engine knows.
* What is written always validates, except for the keywords named in a note: those are weaker here, never different.
  What cannot even be weakened is a :class:`~untemplate.errors.GrammarError` that names tool and keyword.
* Properties are in the order of the schema; optional ones may be left out; others may follow where the schema has
  ``additionalProperties``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from ..format._spelling import hidden, json_text
from ._places import whose
from ._reading import ANNOTATIONS, SchemaDocument, closed, closed_note, fits, types_of
from ._rules import (
    EMPTY,
    Alternatives,
    Chars,
    Lit,
    Node,
    Ref,
    Repeat,
    Rules,
    Scan,
    Token,
    choice,
    maybe,
    seq,
    star,
    walk,
)

__all__ = ["JSON", "Syntax", "Values", "word_except"]

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
    """The spelling of values in one language."""

    name: str
    quote: str = '"'
    escapes: str = '"\\/bfnrt'
    """Characters that may follow a backslash; empty: strings have no escapes, and end only at their quote."""
    words: tuple[str, str, str] = ("true", "false", "null")
    quoted_keys: bool = True
    not_keys: tuple[str, ...] = ()
    """Words that cannot be bare keys."""
    hexadecimal: bool = False
    r"""True if ``\x0b`` is an escape."""
    excludes: tuple[str, ...] = ()
    """Literals that strings may not hold unescaped."""


JSON: Final = Syntax("json")
_LONGEST_KEY: Final = 128
_LONGEST_WORD: Final = 64
_IDENTIFIER: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{_LONGEST_WORD - 1}}}")
_LARGE: Final = 64  # nodes
_CONTROLS: Final = tuple(map(chr, (*range(32), 127)))


class Values:
    """Writes the values of one grammar. Named rules are put into ``rules`` and shared by all tools."""

    def __init__(
        self,
        syntax: Syntax,
        rules: Rules,
        write: Callable[[str], Node] = Lit,
        spell: Callable[[Any], str] = json_text,
    ) -> None:
        """``write``: returns the rules for a text; special tokens in it may be named by id. ``spell``: returns the text
        of a value, as the renderer writes it."""
        self.syntax: Syntax = syntax
        self.spell: Callable[[Any], str] = spell
        self.write: Callable[[str], Node] = write
        self.rules: Rules = rules
        self._weak: dict[tuple[str, str], None] = {}
        self._references: dict[int, str] = {}
        self._shared: dict[Node, str] = {}
        self._within: dict[tuple[str, ...], Values] = {}
        self._waiting: list[tuple[str, Any, SchemaDocument, str]] = []
        """Rules still to be written: name, schema, its document, the reference. A long chain of them needs no stack."""

    def any(self) -> Node:
        """Return the rules for any value."""
        name = f"{self.syntax.name}-value"
        if name not in self.rules.rules:
            self.rules.rules[name] = EMPTY
            self.rules.rules[name] = choice(
                self.any_object(), self.any_array(), self.string(), NUMBER, *(Lit(w) for w in self.syntax.words)
            )
        return Ref(name)

    def any_object(self) -> Node:
        """Return the rules for any object."""
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

    def string(self, least: int = 0, most: int | None = None, tool: str = "", begins_not: str = "") -> Node:
        """Any string, between its quotes. ``tool``: for the note, if its length is not enforced. ``begins_not``:
        characters that a string without escapes may not begin with."""
        syntax = self.syntax
        if not syntax.escapes:
            self._unbounded(least, most, tool)
            quote = self.write(syntax.quote)
            stop = quote if isinstance(quote, Token) else syntax.quote
            excludes = (syntax.quote, *syntax.excludes) if isinstance(stop, Token) else syntax.excludes
            return seq(quote, Scan(excludes, ((stop, EMPTY),), begins_not=begins_not))
        if syntax.excludes:
            self._unbounded(least, most, tool)
        return seq(syntax.quote, self._characters(least, most))

    def _characters(self, least: int = 0, most: int | None = None) -> Node:
        """Return the rules for the rest of a string with escapes, with its quote."""
        syntax = self.syntax
        simple = Chars(tuple((c, c) for c in syntax.escapes))
        if syntax.excludes:
            escape = choice(simple, seq("u", _unicode()))
            return Scan((*syntax.excludes, *_CONTROLS), ((syntax.quote, EMPTY),), escape=escape)
        name = f"{syntax.name}-char"
        if name not in self.rules.rules:
            escape = choice(simple, seq("u", _unicode()), *((seq("x", HEX, HEX),) if syntax.hexadecimal else ()))
            self.rules.rules[name] = choice(Chars(self._forbidden(), negated=True), seq("\\", escape))
        return seq(Repeat(Ref(name), least, most), syntax.quote)

    def any_key(self, properties: Iterable[str] = ()) -> Node:
        """Return the rules for a key other than ``properties``."""
        syntax, names = self.syntax, tuple(properties)
        if not syntax.quoted_keys:
            return word_except((*syntax.not_keys, *names))
        if names:
            return self.share(self._string_except(names))
        # The parser takes a long string before a colon for no key of a literal.
        literal = syntax.name == "literal" and syntax.escapes
        return self.share(self.string(0, _LONGEST_KEY)) if literal else self.string()

    def _string_except(self, words: tuple[str, ...]) -> Node:
        """Return the rules for a string other than ``words``. It holds no escape where it may still become one."""
        syntax = self.syntax
        if not syntax.escapes:
            quote = self.write(syntax.quote)
            return seq(quote, word_except(words), quote)
        rest = self._characters(0, _LONGEST_KEY if syntax.name == "literal" else None)
        # Words are compared up to their first escape.
        quoted = [node.text for node in map(self.constant, words) if isinstance(node, Lit)]
        plain = [text[len(syntax.quote) : -len(syntax.quote)].partition("\\")[0] for text in quoted]
        none = (*self._forbidden(), *((text[0], text[0]) for text in syntax.excludes))

        def another(heads: list[str], _: int) -> Node:
            return seq(Chars((*none, *((c, c) for c in heads)), negated=True), rest)

        short = [text for text in plain if len(text) <= _LONGEST_KEY]
        return seq(syntax.quote, _except(short, another, Lit(syntax.quote)))

    def _forbidden(self) -> tuple[tuple[str, str], ...]:
        """Return the characters that a string holds only as escapes."""
        return (self.syntax.quote, self.syntax.quote), ("\\", "\\"), ("\x00", "\x1f"), ("\x7f", "\x7f")

    def share(self, node: Node) -> Node:
        """A reference to a rule that is this node; one rule for equal nodes."""
        if isinstance(node, Ref | Lit):
            return node
        name = self._shared.get(node)
        if name is None:
            name = self._shared[node] = f"{self.syntax.name}-{len(self._shared)}"
            self.rules.rules[name] = node
        return Ref(name)

    def _repeated(self, node: Node) -> Node:
        """Return ``node`` for use in several places: as a rule of its own if it is large. Otherwise the text of nested
        arrays would double with each level."""
        return self.share(node) if sum(1 for _ in islice(walk(node), _LARGE)) == _LARGE else node

    def separated(self, fields: Sequence[tuple[Node, bool]], separator: Node, extra: Node | None) -> Node:
        """Return the rules for members in their order, then any number of ``extra``. Optional members have False."""
        # tail: what may follow once something has been written. first: nothing has been written yet.
        tail: Node = star(separator, extra) if extra is not None else EMPTY
        first: list[Node] = [] if extra is None else [seq(extra, tail)]
        empty = True
        for node, needed in reversed(fields):
            starts = seq(node, tail)
            if needed:
                first, empty = [starts], False
                tail = seq(separator, node, tail)
            else:
                first.append(starts)
                tail = seq(maybe(separator, node), tail)
                if len(fields) > 2 and tail != EMPTY:
                    tail = self.share(tail)
        if not first:
            return EMPTY
        node = choice(*reversed(first))
        return maybe(node) if empty else node

    def within(self, excludes: tuple[str, ...]) -> Values:
        """The same for JSON inside tags: its strings hold none of ``excludes``, what closes the tag."""
        if not excludes:
            return self
        if excludes not in self._within:
            syntax = replace(self.syntax, name=f"{self.syntax.name}-within-{len(self._within)}", excludes=excludes)
            self._within[excludes] = Values(syntax, self.rules, spell=self.spell)
        return self._within[excludes]

    # -- by schema ----------------------------------------------------------------------------------------------

    def value(self, schema: Any, document: SchemaDocument, path: str = "") -> Node:
        """Return the rules for a value that ``schema``, a part of ``document``, allows.

        Raises:
            GrammarError: names the tool and the keyword.
        """
        node = self._value(schema, document, path, 0)
        while self._waiting:
            name, target, its_document, reference = self._waiting.pop()
            self.rules.rules[name] = self._value(target, its_document, reference, 0)
        return node

    def _value(self, schema: Any, document: SchemaDocument, path: str, depth: int) -> Node:
        if schema is True or schema == {} or schema is None:
            return self.any()
        if schema is False:
            raise document.error(path, "the schema 'false' allows nothing")
        if not isinstance(schema, Mapping):
            raise document.error(path, f"{type(schema).__name__} is not a schema")
        document.descend(path, depth)
        document.step(path, next(iter(schema)), len(schema))
        self._weaken(document.tool, schema, _WEAK_ANY)
        if "$ref" in schema:
            return self._reference(schema, document, path, depth)
        if "const" in schema:
            document.allow(path, "const", schema["const"])
            return self.constant(schema["const"])
        if "enum" in schema:
            return self._enum(schema, document, path)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._alternatives(schema, word, document, path, depth)
        if "allOf" in schema:
            return self._value(document.merge(schema, path), document, path, depth + 1)
        listed = types_of(schema)
        if listed is None:
            self._weaken(document.tool, schema, tuple(w for w in schema if w in WEAK and w not in _WEAK_ANY))
            return self.any()
        return choice(*(self._typed(t, schema, document, path, depth) for t in listed))

    def _enum(self, schema: Mapping[str, Any], document: SchemaDocument, path: str) -> Node:
        values, types = schema["enum"], schema.get("type")
        if not isinstance(values, Sequence) or not values:
            raise document.error(path, "'enum' is not a list of values")
        document.allow(path, "enum", values)
        listed = types if types is None or isinstance(types, str) else frozenset(types)
        return choice(*(self.constant(v) for v in values if fits(v, listed)))

    def _typed(self, kind: str, schema: Mapping[str, Any], document: SchemaDocument, path: str, depth: int) -> Node:
        tool = document.tool
        document.step(path, "type")
        if kind == "string":
            self._weaken(tool, schema, _WEAK_STRING)
            least, most = self._bounds(schema, "minLength", "maxLength", tool)
            return self.string(least, most, tool)
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
            return self._typed_array(schema, document, path, depth)
        if kind == "object":
            return self._typed_object(schema, document, path, depth)
        raise document.error(path, f"'type' {kind!r} is not a JSON type")

    def _typed_array(self, schema: Mapping[str, Any], document: SchemaDocument, path: str, depth: int) -> Node:
        self._weaken(document.tool, schema, _WEAK_ARRAY)
        least, most = self._bounds(schema, "minItems", "maxItems", document.tool)
        prefix = schema.get("prefixItems")
        items = schema.get("items", True)
        if isinstance(items, Sequence) and not isinstance(items, str):
            prefix, items = items, schema.get("additionalItems", True)
        if prefix:
            # Exactly the listed items, unless fewer are asked for: longer arrays are only left out, not wrong.
            nodes = [self._value(s, document, f"{path}/prefixItems/{i}", depth + 1) for i, s in enumerate(prefix)]
            if least > len(nodes):
                more = self._repeated(self._value(items, document, f"{path}/items", depth + 1))
                document.step(path, "minItems", least)
                nodes += [more] * (least - len(nodes))
            parts: list[Node | str] = []
            for i, node in enumerate(nodes):
                parts += [node] if not i else [SPACE, ",", SPACE, node]
            return seq("[", SPACE, *parts, SPACE, "]")
        if items is False or (most is not None and most == 0):
            return seq("[", SPACE, "]")
        return self._array(self._value(items, document, f"{path}/items", depth + 1), least, most)

    def _array(self, item: Node, least: int, most: int | None) -> Node:
        item = self._repeated(item)
        rest = Repeat(seq(SPACE, ",", SPACE, item), max(least - 1, 0), None if most is None else max(most - 1, 0))
        inner = seq(item, rest, SPACE)
        return seq("[", SPACE, inner if least else maybe(inner), "]")

    def _typed_object(self, schema: Mapping[str, Any], document: SchemaDocument, path: str, depth: int) -> Node:
        self._weaken(document.tool, schema, _WEAK_OBJECT)
        if closed(schema):
            self.rules.notes.append(closed_note(document.tool))
        properties, required, more = document.members(schema, path)
        document.offer(path, "properties", len(properties))
        if not properties and more is True:
            return self.any_object()
        fields = []
        for key, inner in properties.items():
            value = self._value(inner, document, f"{path}/{key}", depth + 1)
            fields.append((self.share(seq(self._key(key), SPACE, ":", SPACE, value)), key in required))
        extra: Node | None = None
        if more is not False:
            value = self._value(more, document, f"{path}/*", depth + 1)
            extra = self._repeated(seq(self.any_key(properties), SPACE, ":", SPACE, value))
        return seq("{", SPACE, self.separated(fields, seq(SPACE, ",", SPACE), extra), SPACE, "}")

    def _key(self, key: str) -> Node:
        if self.syntax.quoted_keys or not key.isidentifier() or key in self.syntax.not_keys:
            return self.constant(key)
        return Lit(key)

    def _alternatives(
        self, schema: Mapping[str, Any], word: str, document: SchemaDocument, path: str, depth: int
    ) -> Node:
        parts = schema[word]
        if not isinstance(parts, Sequence) or not parts:
            raise document.error(path, f"{word!r} is not a list of schemas")
        if word == "oneOf" and len(parts) > 1:
            self._note(document.tool, "oneOf", "more than one of its schemas may fit")
        plain = {k: v for k, v in schema.items() if k not in ANNOTATIONS}
        document.offer(path, word, len(parts))
        ways = []
        for i, part in enumerate(parts):
            whole = document.merge(document.narrowed(plain, word, part, path), path) if len(plain) > 1 else part
            ways.append(self._value(whole, document, f"{path}/{word}/{i}", depth + 1))
        node = choice(*ways)
        document.step(path, word, len(node.items) if isinstance(node, Alternatives) else 1)
        return node

    def _reference(self, schema: Mapping[str, Any], document: SchemaDocument, path: str, depth: int) -> Node:
        target = document.resolve(schema["$ref"], path)
        plain = {k: v for k, v in schema.items() if k not in ANNOTATIONS}
        if len(plain) > 1:
            whole = document.merge(document.narrowed(plain, "$ref", target, path), path)
            return self._value(whole, document, path, depth + 1)
        if isinstance(target, bool):
            return self._value(target, document, path, depth + 1)
        name = self._references.get(id(target))
        if name is None:
            name = self._references[id(target)] = f"{self.syntax.name}-ref-{len(self.rules.rules)}"
            self.rules.rules[name] = EMPTY
            self._waiting.append((name, target, document, str(schema["$ref"])))
        return Ref(name)

    def constant(self, value: Any) -> Node:
        """Return the rules for exactly this value."""
        return self.write(hidden(self.spell(value), self.syntax.excludes if self.syntax.escapes else ()))

    def _bounds(self, schema: Mapping[str, Any], low: str, high: str, tool: str) -> tuple[int, int | None]:
        least, most = int(schema.get(low, 0)), schema.get(high)
        if least > MAX_REPEAT:
            self._note(tool, low, f"beyond {MAX_REPEAT}")
            least = MAX_REPEAT
        if most is not None and most > MAX_REPEAT:
            self._note(tool, high, f"beyond {MAX_REPEAT}")
            most = None
        return least, None if most is None else int(most)

    def _unbounded(self, least: int, most: int | None, tool: str) -> None:
        if least:
            self._note(tool, "minLength")
        if most is not None:
            self._note(tool, "maxLength")

    def _weaken(self, tool: str, schema: Mapping[str, Any], words: tuple[str, ...]) -> None:
        for word in words:
            if word in schema:
                self._note(tool, word)

    def _note(self, tool: str, word: str, why: str = "") -> None:
        if (tool, word) not in self._weak:
            self._weak[tool, word] = None
            self.rules.notes.append(f"{whose(tool)}: '{word}' is not enforced{f' ({why})' if why else ''}")


def _unicode() -> Node:
    """Four hex digits that are no surrogate: half a pair is no text."""
    low = Chars((("0", "9"), ("a", "c"), ("A", "C"), ("e", "f"), ("E", "F")))
    return choice(seq(low, HEX, HEX, HEX), seq(Chars((("d", "d"), ("D", "D"))), Chars((("0", "7"),)), HEX, HEX))


def word_except(words: Iterable[str]) -> Node:
    """Return the rules for an identifier of at most 64 characters other than ``words``."""
    letters = (("A", "Z"), ("a", "z"), ("_", "_"))

    def another(heads: list[str], depth: int) -> Node | None:
        some = (*letters, ("0", "9")) if depth else letters
        left = _LONGEST_WORD - depth - 1
        return None if left < 0 else seq(_minus(some, heads), Repeat(Chars((*letters, ("0", "9"))), 0, left))

    return _except([word for word in words if _IDENTIFIER.fullmatch(word)], another)


def _except(
    words: list[str], another: Callable[[list[str], int], Node | None], end: Node = EMPTY, depth: int = 0
) -> Node:
    """Return the rules for texts other than ``words``, each with its ``end``. ``another`` makes the rest of a text that
    begins with none of some characters; ``None``: there is no such text.
    """
    heads = sorted({word[0] for word in words if word})
    ways: list[Node] = [end] if depth and "" not in words else []
    other = another(heads, depth)
    if other is not None:
        ways.append(other)
    ways += [seq(head, _except([w[1:] for w in words if w[:1] == head], another, end, depth + 1)) for head in heads]
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
