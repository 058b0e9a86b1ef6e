"""Calls, as a Format's canonical way writes them: ``Tools`` + the tools of a request → nodes.

Rules of this module:

* Only canonical spellings are written; white space at the outer edge of a marker may be left out, as the parser allows.
* A name or key that this Format cannot write so that it reads back is a :class:`~untemplate.errors.GrammarError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .._internal.machine.call_syntax import CallSyntax
from .._internal.machine.free_text import LONE_NAME
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
from ..format._markers import spellings_of, text_of
from ..format._spelling import argument_text, escape, literal_text
from ._choose import Tool
from ._elements import Elements
from ._reading import SchemaDocument, closed, closed_note
from ._rules import (
    EMPTY,
    WS,
    Chars,
    Json,
    Lit,
    Node,
    Ref,
    Repeat,
    Rules,
    choice,
    maybe,
    seq,
    star,
)
from ._schema import frozen
from ._spelling import LETTERS, VARIABLE, Spelling, spaces
from ._tagged import Tagged
from ._values import DIGIT, Syntax, Values, word_except
from ._variants import BRACKETS, constants, variants, with_definitions

__all__ = ["ANY_OBJECT", "Calls"]

ANY_OBJECT: Final = frozen({"type": "object"}, "")
_KEY: Final = re.compile(r"[^\s=:,()\[\]{}\"'<]+")
_BARE_KEY: Final = re.compile(r"[^\W\d][\w.\-]*")
"""Without a marker before the call, only arguments with such names make it one."""
_ESCAPES: Final = "'\"\\nrtbf"
"""Characters that may follow a backslash in a string of Python."""


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
        self._in_tags: Tagged | None = None

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
            return Repeat(Chars(LETTERS), 9, 9)
        if self.fmt.ids == "{index}":
            return Repeat(DIGIT, 1, 6)
        return Repeat(Chars((*LETTERS, ("_", "_"), ("-", "-"), (".", "."), (":", ":"))), 1, 64)

    # -- names in markers ---------------------------------------------------------------------------------------

    def _named_body(self, tool: Tool, body: NamedBody) -> Node:
        name = self._written_name(tool, body)
        parts: list[Node | str | None] = []
        for i, piece in enumerate(VARIABLE.split(body.name)):
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
        around = VARIABLE.sub(lambda part: name if part[1] == "name" else "0", body.name)
        wrong = None
        bad = syntax.illegal.search(name) or syntax.ends.pattern.search(name, 0)
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
            return self._tagged(tool)
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

    def _tagged(self, tool: Tool) -> Node:
        if self._in_tags is None:
            self._in_tags = Tagged(self.fmt, self.way, self.syntax, self.spelling, self.rules)
        if not tool.strict:
            return self._in_tags.any(tool)
        return self._in_tags.members(tool, *self._members(tool))

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
        begins_not = "".join(BRACKETS.get(str(part.get("type")), "") for part in parts)
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
