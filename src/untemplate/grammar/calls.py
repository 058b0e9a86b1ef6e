"""Calls, as a Format's canonical way writes them: ``Tools`` + the tools of a request → nodes.

Rules of this module:

* Only canonical spellings are written; white space at the outer edge of a marker may be left out, as the parser allows.
* A name or key that this Format cannot write so that it reads back is a :class:`~.rules.GrammarError`.
* A string in tags may hold anything but a spelling of what closes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..errors import GrammarError
from ..format import (
    Arguments,
    ElementArguments,
    Format,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
    Tools,
)
from ..format.markers import spellings_of, text_of
from ..format.spelling import argument_text, escape, hidden, in_section, json_text, literal_text
from ..machine.call_syntax import CallSyntax
from ..machine.free_text import LONE_NAME
from ..machine.tagged.body import TaggedBody
from ..machine.tagged.compiler import CLOSE_TAG
from ..machine.tagged.program import TaggedSyntax
from .choose import Tool
from .elements import Elements
from .reading import SchemaDocument, closed, closed_note
from .rules import (
    EMPTY,
    WS,
    Chars,
    Json,
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
)
from .schema import frozen
from .values import DIGIT, Syntax, Values, word_except
from .variants import constants, variants, with_definitions

__all__ = ["ANY_OBJECT", "Calls", "Spelling", "spaces"]

_LETTERS: Final = (("0", "9"), ("A", "Z"), ("a", "z"))
ANY_OBJECT: Final = frozen({"type": "object"}, "")
_KEY: Final = re.compile(r"[^\s=:,()\[\]{}\"'<]+")
_BARE_KEY: Final = re.compile(r"[^\W\d][\w.\-]*")
"""Without a marker before the call, only arguments with such names make it one."""
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_ESCAPES: Final = "'\"\\nrtbf"
"""Characters that may follow a backslash in a string of Python."""
_BRACKETS: Final = {"object": "{", "array": "["}
_WEAK_TEXT: Final = ("pattern", "format", "minLength", "maxLength")
_TYPES: Final = ("number", "boolean", "object", "array", "null")
"""Types that a tag can give to a value that is not a string."""


def spaces(text: str) -> Node:
    """Return the rules for white space of a marker: as written, or left out."""
    return maybe(text)


@dataclass(slots=True)
class Spelling:
    """How text is written: literals, and special tokens by id where the vocabulary is known."""

    tokens: Mapping[str, int]
    spelled: bool = False
    """True to write the special tokens as text, although their ids are known."""
    _pattern: re.Pattern[str] = field(init=False)
    _nodes: dict[str, Node] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        longest = () if self.spelled else sorted(self.tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest)) or "(?!)")

    def pieces(self, text: str) -> list[str | Token]:
        """Literals and tokens in their order."""
        result: list[str | Token] = []
        at = 0
        for found in self._pattern.finditer(text):
            if found.start() > at:
                result.append(text[at : found.start()])
            result.append(Token(found.group(), self.tokens[found.group()]))
            at = found.end()
        if at < len(text):
            result.append(text[at:])
        return result

    def node(self, text: str) -> Node:
        known = self._nodes.get(text)
        if known is None:
            known = self._nodes[text] = seq(*self.pieces(text))
        return known

    def stop(self, marker_text: str, then: Node | None = None, *, keep_lead: bool = False) -> tuple[str | Token, Node]:
        """A marker that ends free text: what is looked for, and what follows it. White space before the marker is the
        text's, unless it must be there (``keep_lead``)."""
        core = marker_text.strip(WS) or marker_text
        lead = marker_text[: marker_text.index(core)]
        tail = marker_text[marker_text.index(core) + len(core) :]
        lead = lead if keep_lead else ""
        first, *rest = self.pieces(core)
        if isinstance(first, Token):
            first = replace(first, lead=lead)
        elif rest and isinstance(token := rest[0], Token):
            first, rest = replace(token, lead=lead + first), rest[1:]
        else:
            first = lead + first
        return first, seq(*rest, tail, then)


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


class Calls:
    """The calls of one request in one way of writing them."""

    def __init__(
        self, fmt: Format, way: Tools, syntax: CallSyntax, tools: Sequence[Tool], parallel: bool, spelling: Spelling,
        rules: Rules,
    ) -> None:  # fmt: skip
        self.fmt: Format = fmt
        self.way: Tools = way
        self.syntax: CallSyntax = syntax
        self.tools: Sequence[Tool] = tools
        self.parallel: bool = parallel
        self.spelling: Spelling = spelling
        self.rules: Rules = rules
        rules.budget.offer(len(tools), tools[-1].name if tools else "", "", "name")
        self._literals: Values | None = None
        self._python: Values | None = None
        self._texts: dict[str, Node] = {}

    def _tagged_syntax(self) -> TaggedSyntax:
        """Return the syntax of arguments in tags."""
        body = self.syntax.body
        assert isinstance(body, TaggedBody)
        return body.syntax

    def opener(self) -> Marker | None:
        """Return the marker that calls begin with; ``None`` if they have none."""
        body = self.way.body
        name_open = body.name_open if isinstance(body, NamedBody) else None
        return self.way.section_open or self.way.call_open or name_open

    def after_opener(self) -> Node:
        """Return the rules for all calls after the opener; for calls without a marker, from their first character."""
        way = self.way
        body = way.body
        name_open = body.name_open if isinstance(body, NamedBody) else None
        first = text_of(way.section_open, way.list_open, way.call_open, name_open)
        opener = self.opener()
        if opener is not None:
            core = opener.text.strip(WS)
            first = first[first.index(core) + len(core) :]
        separator = text_of(way.separator) or (", " if way.list_open is not None else "")
        again = separator + text_of(way.call_open, name_open)
        self.rules.rules["call"] = choice(*(self._call(tool) for tool in self.tools))
        more = star(self.spelling.node(again), Ref("call")) if self.parallel else EMPTY
        end = text_of(way.list_close, way.section_close)
        return seq(self.spelling.node(first), Ref("call"), more, self._end(end))

    def message(self, tool: Tool) -> Node:
        """Return the rules for one call of a tool, as the text of a message."""
        way = self.way
        name_open = way.body.name_open if isinstance(way.body, NamedBody) else None
        first = text_of(way.section_open, way.list_open, way.call_open, name_open)
        end = text_of(way.list_close, way.section_close)
        return seq(self.spelling.node(first), self._call(tool), self._end(end))

    def _end(self, text: str) -> Node:
        core = text.rstrip(WS)
        return seq(self.spelling.node(core), spaces(text[len(core) :]))

    def _call(self, tool: Tool) -> Node:
        body = self.way.body
        inner = self._json_body(tool, body) if isinstance(body, JsonBody) else self._named_body(tool, body)
        close = text_of(self.way.call_close)
        core = close.rstrip(WS)
        tail = close[len(core) :]
        last = self.way.section_close is None and self.way.list_close is None
        return seq(inner, self.spelling.node(core), spaces(tail) if last else tail)

    # -- JSON objects -------------------------------------------------------------------------------------------

    def _json_body(self, tool: Tool, body: JsonBody) -> Node:
        arguments = Json(tool.schema if tool.strict else ANY_OBJECT, tool.name)
        name = json.dumps(tool.name, ensure_ascii=False)
        if body.name_is_key:
            return seq("{" + name + ": ", arguments, "}")
        inner = seq(f"{_quoted(body.name_key)}: {name}, {_quoted(body.arguments_key)}: ", arguments)
        constants = "".join(f"{_quoted(key)}: {_quoted(value)}, " for key, value in body.constants)
        outer: Node = inner
        if body.nested_key is not None:
            outer = seq(f"{_quoted(body.nested_key)}: {{", inner, "}")
        if body.id_key is None:
            return seq("{" + constants, outer, "}")
        member = seq(f'{_quoted(body.id_key)}: "', self._id(), '"')
        if "{" in self.fmt.ids:
            return seq("{" + constants, member, ", ", outer, "}")
        return seq("{" + constants, outer, maybe(", ", member), "}")

    def _id(self) -> Node:
        if self.fmt.ids == "alphanumeric9":
            return Repeat(Chars(_LETTERS), 9, 9)
        if self.fmt.ids == "{index}":
            return Repeat(DIGIT, 1, 6)
        return Repeat(Chars((*_LETTERS, ("_", "_"), ("-", "-"), (".", "."), (":", ":"))), 1, 64)

    # -- names in markers ---------------------------------------------------------------------------------------

    def _named_body(self, tool: Tool, body: NamedBody) -> Node:
        name = self._written_name(tool, body)
        parts: list[Node | str | None] = []
        for i, piece in enumerate(_VARIABLE.split(body.name)):
            if not i % 2:
                parts.append(piece)
            elif piece == "name":
                parts.append(name)
            elif piece == "index":
                parts.append(Repeat(DIGIT, 1, 4))
            else:
                parts.append(self._id())
        if body.id_open is not None:
            parts.append(maybe(self.spelling.node(body.id_open.text), self._id()))
        if body.name_close is not None:
            parts.append(self.spelling.node(body.name_close.text))
        close = self.spelling.node(text_of(body.arguments_close))
        return seq(*parts, self._arguments(tool, body.arguments), close)

    def _written_name(self, tool: Tool, body: NamedBody) -> str:
        """Return a tool's name as it is written.

        Raises:
            GrammarError: the name is not read back.
        """
        frame = self.syntax
        syntax = frame.name
        assert syntax is not None
        name = escape(tool.name, body.escape)
        around = _VARIABLE.sub(lambda part: name if part[1] == "name" else "0", body.name)
        wrong = None
        bad = syntax.illegal.search(name) or syntax.ends.find(name, 0)
        if bad is not None:
            wrong = bad.group()
        elif name != name.strip(WS) or syntax.pattern.split(around)["name"] != name:
            wrong = name
        elif not (frame.lists or frame.opens or frame.name_opens or frame.section_closes):
            wrong = None if LONE_NAME.fullmatch(name) else LONE_NAME.sub("", name)[0]
        if wrong is not None:
            raise GrammarError(f"tool {tool.name!r}: {wrong!r} in a name cannot be written in format {self.fmt.name!r}")
        return name

    def _arguments(self, tool: Tool, arguments: Arguments) -> Node:
        if isinstance(arguments, JsonArguments):
            return Json(tool.schema if tool.strict else ANY_OBJECT, tool.name)
        if isinstance(arguments, TaggedArguments):
            return self._tagged(tool, arguments)
        if isinstance(arguments, ElementArguments):
            return self._elements(tool, arguments)
        return self._literal(tool, arguments)

    def _elements(self, tool: Tool, arguments: ElementArguments) -> Node:
        way = self.way
        name_open = way.body.name_open if isinstance(way.body, NamedBody) else None
        arguments_close = way.body.arguments_close if isinstance(way.body, NamedBody) else None
        around = (arguments_close, way.call_close, way.section_close, way.call_open, way.section_open, name_open)
        markers = spellings_of(*around, self.fmt.turn.end)
        properties, required, more = self._members(tool)
        writer = Elements(arguments, markers, self.rules, tool, self.fmt.name)
        if more is not False:
            writer.note("additionalProperties", "an element is written only if its name is known")
        return writer.top(properties, required, self.rules.document(tool.schema, tool.name))

    # -- arguments in tags --------------------------------------------------------------------------------------

    def _tagged(self, tool: Tool, arguments: TaggedArguments) -> Node:
        if not tool.strict:
            key = seq(Chars((*_LETTERS, ("_", "_"))), Repeat(Chars((*_LETTERS, ("_", "_"), ("-", "-"))), 0, 63))
            return star(self._argument(arguments, key, True, tool, None))
        properties, required, more = self._members(tool)
        fields = [
            (self._argument(arguments, self._tag_key(tool, key, arguments), schema, tool, key), key in required)
            for key, schema in properties.items()
        ]
        extra = None
        if more is not False:
            extra = self._argument(arguments, word_except(properties), more, tool, None)
        return seq(
            *(node if needed else maybe(node) for node, needed in fields), None if extra is None else star(extra)
        )

    def _members(self, tool: Tool) -> tuple[dict[str, Any], frozenset[str], Any]:
        """Properties, required ones and others of the parameters, references and ``allOf`` at the top resolved."""
        document = self.rules.document(tool.schema, tool.name)
        flat = [s for s in variants(tool.schema.value, document) if s is not False]
        objects = [s for s in flat if isinstance(s, Mapping) and s.get("type", "object") == "object"]
        if flat and flat[0] is True:
            return {}, frozenset(), True
        if len(objects) != 1:
            raise GrammarError(f"tool {tool.name!r}: 'anyOf' at the top of the parameters cannot be written in tags")
        for word in objects[0]:
            if word in _TOP_WEAK:
                self.rules.notes.append(f"tool {tool.name!r}: '{word}' is not enforced")
        if closed(objects[0]):
            self.rules.notes.append(closed_note(tool.name))
        properties, required, more = document.members(objects[0])
        document.offer("", "properties", len(properties))
        return properties, required, more

    def _tag_key(self, tool: Tool, key: str, arguments: TaggedArguments) -> Node:
        syntax = self._tagged_syntax()
        written = escape(key, arguments.escape_of_keys)
        text = arguments.key.replace("{key}", written)
        ends = syntax.key_ends.find(text, 0) or self.syntax.stops.find(text, 0)
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

    def _argument(self, arguments: TaggedArguments, key: Node, schema: Any, tool: Tool, name: str | None) -> Node:
        """Return the rules for one argument in its tags; one alternative per type where a tag has the type."""
        ways: list[Node] = []
        plain, others, begins_not = self._value_ways(schema, tool, name)
        attributes = [v for v in _VARIABLE.findall(arguments.key) if v != "key"]
        if arguments.type_open is not None and arguments.type_written:
            attributes.append("type")
        if plain is not None:
            text = self._value(arguments, plain, begins_not if not attributes else "")
            ways.append(seq(self._key_tag(arguments, key, {"string": "true", "type": "string"}), text))
        if others:
            groups: dict[str, list[Node]] = {}
            for kind, node in others:
                groups.setdefault(kind if "type" in attributes else "", []).append(node)
            for kind, nodes in groups.items():
                tag = self._key_tag(arguments, key, {"string": "false", "type": kind})
                ways.append(seq(tag, self._value(arguments, choice(*nodes), "")))
        return choice(*ways)

    def _key_tag(self, arguments: TaggedArguments, key: Node, said: Mapping[str, str]) -> Node:
        parts: list[Node | str] = [self.spelling.node(arguments.key_open.text)]
        for i, piece in enumerate(_VARIABLE.split(arguments.key)):
            parts.append(piece if not i % 2 else key if piece == "key" else said.get(piece, ""))
        parts.append(self.spelling.node(arguments.key_close.text))
        if arguments.type_open is not None and arguments.type_written:
            ends = (arguments.type_open, arguments.type_close)
            before, after = (self.spelling.node(text_of(marker)) for marker in ends)
            parts += [before, said["type"], after]
        if arguments.value_open is not None:
            parts.append(self.spelling.node(arguments.value_open.text))
        return seq(*parts)

    def _value(self, arguments: TaggedArguments, value: Node | None, begins_not: str) -> Node:
        close = arguments.value_close
        if isinstance(value, Scan):
            # Free text: up to the close, and holding no spelling of it.
            text = self._texts.get(begins_not)
            if text is None:
                stop = self.spelling.stop(close.text, keep_lead=True)
                closes = self._value_ends()
                text = Scan(closes, (stop,), begins_not=begins_not)
                if arguments.escape == "cdata":
                    end = self.spelling.stop("]]>", self.spelling.node(close.text))
                    section = seq("<![CDATA[", Scan(("]]>",), (end,), begins_not=begins_not))
                    text = choice(replace(text, excludes=(*closes, "<![CDATA[")), section)
                self._texts[begins_not] = text
            return text
        return seq(value, self.spelling.node(close.text))

    def _value_ends(self) -> tuple[str, ...]:
        """Return the literals that no value in tags may hold."""
        body, channels = self.way.body, self.fmt.channels
        assert isinstance(body, NamedBody)
        assert isinstance(body.arguments, TaggedArguments)
        # The close of a message ends a value as well, if a token id proves it.
        ends = () if channels is None else (channels.close, channels.call_close)
        # A call that the value quotes would take the next close, and another argument would end the value.
        opener = body.name_open or self.way.call_open or self.way.section_open
        key = body.arguments.key_open if len(body.arguments.key_open.text.strip(WS)) > 1 else None
        texts = spellings_of(body.arguments.value_close, *ends, opener, key)
        # Models write the close of a key in place of the value's.
        wrong = filter(CLOSE_TAG.fullmatch, body.arguments.key_close.spellings)
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
        assert isinstance(self.way.body, NamedBody)
        assert isinstance(self.way.body.arguments, TaggedArguments)
        # A quote ends a string of JSON, so a literal with one could begin in a string and go on after it.
        closes = tuple(dict.fromkeys(text.partition('"')[0] or text for text in self._value_ends()))
        return (*closes, "&", "<", ">") if self.way.body.arguments.escape == "xml" else closes

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
            found.begins_not += _BRACKETS.get(str(kind), "")

    def _word(self, word: str, tool: Tool) -> Node:
        arguments = self.way.body.arguments if isinstance(self.way.body, NamedBody) else None
        assert isinstance(arguments, TaggedArguments)
        section = arguments.escape == "cdata" and in_section(word) != word
        written = in_section(word) if section else escape(word, arguments.escape)
        if "]]>" in word if section else self._tagged_syntax().value_ends.find(written, 0) is not None:
            raise GrammarError(f"tool {tool.name!r}: 'enum' holds {word!r}, which closes the value")
        return Lit(written)

    # -- arguments as literals ----------------------------------------------------------------------------------

    def _literal(self, tool: Tool, arguments: LiteralArguments) -> Node:
        values = self._literal_values(arguments)
        separator = Lit(arguments.separator)
        open_, close = arguments.open, arguments.close
        key = word_except(values.syntax.not_keys)
        if not tool.strict:
            member = seq(key, arguments.assign, values.string() if arguments.quoted == "all" else values.any())
            return seq(open_, maybe(member, star(separator, member)), close)
        properties, required, more = self._members(tool)
        fields = []
        for name, schema in properties.items():
            legal = _BARE_KEY if self.way.bare else _KEY
            if legal.fullmatch(name) is None or name in values.syntax.not_keys:
                raise GrammarError(
                    f"tool {tool.name!r}: the parameter name {name!r} cannot be written in format {self.fmt.name!r}"
                )
            value = self._literal_value(arguments, schema, tool, f"/{name}")
            fields.append((values.share(seq(name, arguments.assign, value)), name in required))
        extra = None
        if more is not False:
            key = word_except((*values.syntax.not_keys, *properties))
            extra = seq(key, arguments.assign, self._literal_value(arguments, more, tool, "/*"))
        return seq(open_, values.separated(fields, separator, extra), close)

    def _literal_value(self, arguments: LiteralArguments, schema: Any, tool: Tool, path: str) -> Node:
        document = self.rules.document(tool.schema, tool.name)
        values = self._literal_values(arguments)
        if arguments.quoted != "all":
            return values.value(schema, document, path)
        parts = [{"type": "string"} if part is True else part for part in variants(schema, document) if part]
        begins_not = "".join(_BRACKETS.get(str(part.get("type")), "") for part in parts)
        ways: list[Node] = []
        for part in parts:
            listed = constants(part)
            if listed is not None:
                ways += [self.spelling.node(argument_text(value, arguments)) for value in listed]
            elif part["type"] != "string":
                ways.append(self._quoted(arguments, part, document, path))
            else:
                ways.append(values.string(begins_not=begins_not) if begins_not else values.value(part, document, path))
        return choice(*ways)

    def _quoted(
        self, arguments: LiteralArguments, part: Mapping[str, Any], document: SchemaDocument, path: str
    ) -> Node:
        """Return the rules for a value in quotes that is not a string, as ``text_in_quotes`` writes it."""
        quote = arguments.quotes[0]
        container = part["type"] in ("object", "array")
        if container and (arguments.escapes if len(quote) == 1 else quote == '"'):
            raise document.error(path, f"'type' {part['type']!r} cannot be written in quotes with escapes")
        if quote != '"':
            mark = self.spelling.node(quote)
            return seq(mark, Json(with_definitions(part, document), document.tool, (quote,)), mark)
        if self._python is None:
            python = LiteralArguments()
            syntax = Syntax("python", "'", _ESCAPES, python.words, excludes=(quote,))
            self._python = Values(syntax, self.rules, spell=lambda value: literal_text(value, python))
        return seq(quote, self._python.value(part, document, path), quote)

    def _literal_values(self, arguments: LiteralArguments) -> Values:
        if self._literals is None:
            quote = arguments.quotes[0]
            escapes = _ESCAPES if arguments.escapes and len(quote) == 1 else ""
            # A marker that is a key and its colon (Gemma 4's bare ``call:``) ends the call wherever a key may be.
            markers = [t[:-1] for t in self.syntax.stops.tags if t[-1:] in ":=" and t[:-1].isidentifier()]
            turn = self.fmt.turn
            ends = (self.way.call_close, self.way.section_close, None if turn is None else turn.end)
            closes = () if escapes else ends
            syntax = Syntax(
                "literal",
                quote,
                escapes,
                arguments.words,
                arguments.quoted_keys,
                tuple(markers),
                hexadecimal=True,
                # The end of the call would end a string whose own close is missing.
                excludes=tuple(text.strip(WS) for text in spellings_of(*closes)),
            )
            self._literals = Values(
                syntax, self.rules, self.spelling.node, lambda value: literal_text(value, arguments)
            )
        return self._literals


_TOP_WEAK: Final = frozenset(
    ("minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas",
     "dependencies", "not", "if", "then", "else", "unevaluatedProperties")
)  # fmt: skip


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "array" if isinstance(value, list | tuple) else "object"
