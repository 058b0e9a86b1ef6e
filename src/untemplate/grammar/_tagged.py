"""Arguments in tags → rules.

Rules of this module:

* A string may hold anything but a spelling of what closes it.
* Where a tag has the type of a value, there is one way for each type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from .._internal.machine.call_syntax import CallSyntax
from .._internal.machine.tagged.body import TaggedBody
from .._internal.machine.tagged.compiler import CLOSE_TAG
from ..errors import GrammarError
from ..format import Format, NamedBody, TaggedArguments, Tools
from ..format._markers import spellings_of, text_of
from ..format._spelling import escape, hidden, in_section, json_text
from ._choose import Tool
from ._reading import SchemaDocument
from ._rules import WS, Chars, Json, Lit, Node, Repeat, Rules, Scan, choice, maybe, seq, star
from ._schema import frozen
from ._spelling import LETTERS, VARIABLE, Spelling
from ._values import word_except
from ._variants import BRACKETS, constants, variants, with_definitions

__all__ = ["Tagged"]

_WEAK_TEXT: Final = ("pattern", "format", "minLength", "maxLength")
_TYPES: Final = ("number", "boolean", "object", "array", "null")
"""Types that a tag can give to a value that is not a string."""


@dataclass(slots=True)
class _Values:
    """The values in tags that a schema allows."""

    text: bool = False
    """True if any text is one."""
    words: list[str] = field(default_factory=list)
    """Texts that are."""
    others: list[tuple[str, Node]] = field(default_factory=list)
    """Type, and JSON of that type."""
    begins_not: str = ""
    """Characters that a text may not begin with, as JSON does."""

    def add(self, kind: str, node: Node) -> None:
        self.others.append((kind, node))


@final
class Tagged:
    """Writes the arguments of all tools of a request."""

    def __init__(self, fmt: Format, way: Tools, syntax: CallSyntax, spelling: Spelling, rules: Rules) -> None:
        assert isinstance(way.body, NamedBody)
        assert isinstance(way.body.arguments, TaggedArguments)
        assert isinstance(syntax.body, TaggedBody)
        self.fmt = fmt
        self.way = way
        self.body = way.body
        self.arguments = way.body.arguments
        self.syntax = syntax.body.syntax
        self.stops = syntax.stops
        self.spelling = spelling
        self.rules = rules
        self._texts: dict[str, Node] = {}

    def any(self, tool: Tool) -> Node:
        """Return the rules for the arguments of a tool whose schema does not matter."""
        key = seq(Chars((*LETTERS, ("_", "_"))), Repeat(Chars((*LETTERS, ("_", "_"), ("-", "-"))), 0, 63))
        return star(self._argument(key, True, tool, None))

    def members(self, tool: Tool, properties: Mapping[str, Any], required: frozenset[str], more: Any) -> Node:
        """Return the rules for the arguments of a tool, in the order of its schema."""
        fields = [
            (self._argument(self._tag_key(tool, key), schema, tool, key), key in required)
            for key, schema in properties.items()
        ]
        extra = None
        if more is not False:
            extra = self._argument(word_except(properties), more, tool, None)
        return seq(
            *(node if needed else maybe(node) for node, needed in fields), None if extra is None else star(extra)
        )

    def _tag_key(self, tool: Tool, key: str) -> Node:
        arguments, syntax = self.arguments, self.syntax
        written = escape(key, arguments.escape_of_keys)
        text = arguments.key.replace("{key}", written)
        ends = syntax.key_ends.pattern.search(text, 0) or self.stops.pattern.search(text, 0)
        if (
            not key
            or key != key.strip(WS)
            or "\n" in key
            or ends is not None
            or syntax.key.split(text)["key"] != written
        ):
            raise GrammarError(
                f"tool {tool.name!r}: the parameter name {key!r} cannot be written in format {self.fmt.name!r}"
            )
        return Lit(written)

    def _argument(self, key: Node, schema: Any, tool: Tool, name: str | None) -> Node:
        """Return the rules for one argument in its tags; one alternative per type where a tag has the type."""
        arguments = self.arguments
        ways: list[Node] = []
        plain, others, begins_not = self._value_ways(schema, tool, name)
        attributes = [v for v in VARIABLE.findall(arguments.key) if v != "key"]
        if arguments.type_open is not None and arguments.type_written:
            attributes.append("type")
        if plain is not None:
            text = self._value(plain, begins_not if not attributes else "")
            ways.append(seq(self._key_tag(key, {"string": "true", "type": "string"}), text))
        if others:
            groups: dict[str, list[Node]] = {}
            for kind, node in others:
                groups.setdefault(kind if "type" in attributes else "", []).append(node)
            for kind, nodes in groups.items():
                tag = self._key_tag(key, {"string": "false", "type": kind})
                ways.append(seq(tag, self._value(choice(*nodes), "")))
        return choice(*ways)

    def _key_tag(self, key: Node, said: Mapping[str, str]) -> Node:
        arguments = self.arguments
        parts: list[Node | str] = [self.spelling.node(arguments.key_open.text)]
        for i, piece in enumerate(VARIABLE.split(arguments.key)):
            parts.append(piece if not i % 2 else key if piece == "key" else said.get(piece, ""))
        parts.append(self.spelling.node(arguments.key_close.text))
        if arguments.type_open is not None and arguments.type_written:
            ends = (arguments.type_open, arguments.type_close)
            before, after = (self.spelling.node(text_of(marker)) for marker in ends)
            parts += [before, said["type"], after]
        if arguments.value_open is not None:
            parts.append(self.spelling.node(arguments.value_open.text))
        return seq(*parts)

    def _value(self, value: Node | None, begins_not: str) -> Node:
        close = self.arguments.value_close
        if isinstance(value, Scan):
            # Free text: up to the close, and holding no spelling of it.
            text = self._texts.get(begins_not)
            if text is None:
                stop = self.spelling.stop(close.text, keep_lead=True)
                closes = self._value_ends()
                text = Scan(closes, (stop,), begins_not=begins_not)
                if self.arguments.escape == "cdata":
                    end = self.spelling.stop("]]>", self.spelling.node(close.text))
                    section = seq("<![CDATA[", Scan(("]]>",), (end,), begins_not=begins_not))
                    text = choice(replace(text, excludes=(*closes, "<![CDATA[")), section)
                self._texts[begins_not] = text
            return text
        return seq(value, self.spelling.node(close.text))

    def _value_ends(self) -> tuple[str, ...]:
        """Return the literals that no value in tags may hold."""
        arguments, channels = self.arguments, self.fmt.channels
        # The close of a message ends a value as well, if a token id proves it.
        ends = () if channels is None else (channels.close, channels.call_close)
        # A call that the value quotes would take the next close, and another argument would end the value.
        opener = self.body.name_open or self.way.call_open or self.way.section_open
        key = arguments.key_open if len(arguments.key_open.text.strip(WS)) > 1 else None
        texts = spellings_of(arguments.value_close, *ends, opener, key)
        # Models write the close of a key in place of the value's.
        wrong = filter(CLOSE_TAG.fullmatch, arguments.key_close.spellings)
        return tuple(dict.fromkeys((*texts, *wrong)))

    def _value_ways(self, schema: Any, tool: Tool, name: str | None) -> tuple[Node | None, list[tuple[str, Node]], str]:
        """(text, (type, JSON) …, what text may not begin with): how a value of this schema may be written."""
        found = _Values()
        document = self.rules.document(tool.schema, tool.name)
        closes = self._closes_of_json()
        for part in variants(schema, document):
            if part is True:
                found.text = True
                if name is None:
                    # Nothing is known: text, and where the tag has the type, any JSON of that type.
                    for kind in _TYPES:
                        found.add(kind, Json(frozen({"type": kind}, tool.name), tool.name, closes))
            elif part is not False:
                self._add_values(found, part, document, closes)
        plain: Node | None = None
        if found.text:
            plain = Scan()
        elif found.words:
            plain = choice(*(self._word(word, tool) for word in found.words))
        return plain, found.others, found.begins_not

    def _closes_of_json(self) -> tuple[str, ...]:
        """Return the literals that JSON in tags may not hold."""
        # A quote ends a string of JSON, so a literal with one could begin in a string and go on after it.
        closes = tuple(dict.fromkeys(text.partition('"')[0] or text for text in self._value_ends()))
        return (*closes, "&", "<", ">") if self.arguments.escape == "xml" else closes

    def _add_values(
        self, found: _Values, part: Mapping[str, Any], document: SchemaDocument, closes: tuple[str, ...]
    ) -> None:
        """Add the values of one plain schema."""
        listed = constants(part)
        kind = part.get("type")
        if listed is not None:
            for value in listed:
                if isinstance(value, str):
                    found.words.append(value)
                else:
                    found.add(_kind(value), Lit(hidden(json_text(value), closes)))
        elif kind == "string":
            found.text = True
            for word in _WEAK_TEXT:
                if word in part:
                    self.rules.notes.append(f"tool {document.tool!r}: '{word}' is not enforced (text in tags)")
        else:
            found.add(
                "number" if kind == "integer" else str(kind),
                Json(with_definitions(part, document), document.tool, closes),
            )
            found.begins_not += BRACKETS.get(str(kind), "")

    def _word(self, word: str, tool: Tool) -> Node:
        arguments = self.arguments
        section = arguments.escape == "cdata" and in_section(word) != word
        written = in_section(word) if section else escape(word, arguments.escape)
        if "]]>" in word if section else self.syntax.value_ends.pattern.search(written, 0) is not None:
            raise GrammarError(f"tool {tool.name!r}: 'enum' holds {word!r}, which closes the value")
        return Lit(written)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "array" if isinstance(value, list | tuple) else "object"
