"""The part of a Format that describes how tool calls are written: arguments, one call, and the markup around calls."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .._internal.record import Record, record
from ._markers import Escape, Marker

__all__ = [
    "Arguments",
    "Body",
    "ElementArguments",
    "JsonArguments",
    "JsonBody",
    "LiteralArguments",
    "NamedBody",
    "TaggedArguments",
    "Tools",
]


@record()
class JsonArguments(Record):
    """Arguments as one JSON object, passed through as the model wrote it: ``{"city": "Paris"}``."""


@record()
class TaggedArguments(Record):
    """Arguments in tags of their own: ``key_open`` key ``key_close`` [``value_open``] value ``value_close``.

    Spaces and tabs of the marker before or after a value are not a part of it; ``trim`` counts newlines.
    """

    key_open: Marker
    """Marker before a key. Required. Example: ``Marker("<parameter=")``."""
    key: str = "{key}"
    """Pattern of the text between ``key_open`` and ``key_close``. It contains ``{key}`` once. It may contain
    ``{string}`` (``true`` if the value is a string) or ``{type}`` (the JSON type of the value). Default: ``"{key}"``.
    Example: ``'{key}" string="{string}'``."""
    key_close: Marker
    """Marker after a key. Required. Example: ``Marker(">\\n")``."""
    type_open: Marker | None = None
    """Marker before the type of a value, between ``key_close`` and ``value_open``; models may leave the type out. The
    word is a type of JSON Schema, and any other word leaves the type to the tool's schema. Default: ``None``. Example:
    ``Marker("<arg_type>")``."""
    type_close: Marker | None = None
    """Marker after the type; goes with ``type_open``. Default: ``None``. Example: ``Marker("</arg_type>")``."""
    type_written: bool = True
    """True if the renderer writes the type, where there is a ``type_open``. Default: ``True``. Example: ``False`` for
    K2 Horizon, which writes it only on request."""
    value_open: Marker | None = None
    """Marker before a value. Default: ``None``, the value follows ``key_close``. Example: ``Marker("<arg_value>")``."""
    value_close: Marker
    """Marker after a value. Required. Example: ``Marker("\\n</parameter>\\n")``."""
    trim: int = 0
    """Most newlines on each side of a value that belong to the markup and are removed; at least those of the markers
    next to it. Default: ``0``. Example: ``1`` for Qwen3-Coder, which writes each value on lines of its own."""
    trim_after: int | None = None
    """The same after a value, if it is another number than before it. Default: ``None``, as ``trim``. Example: ``1``
    for ``<x>VALUE\\n</x>``, with a ``trim`` of 0."""
    escape: Literal["none", "xml", "cdata"] = "none"
    """Escaping of keys and values. ``"cdata"``: a value may be inside ``<![CDATA[`` and ``]]>``, and one with special
    characters is. Default: ``"none"``. Example: ``"cdata"`` for MiniCPM 5."""
    key_escape: Escape = "none"
    """Escaping of keys alone, where only attributes are escaped. Default: ``"none"``. Example: ``"xml"`` for Kimi
    K3."""

    @property
    def escape_of_keys(self) -> Escape:
        """Escaping of keys: their own, or that of keys and values."""
        return "xml" if "xml" in (self.escape, self.key_escape) else "none"

    @property
    def trims(self) -> tuple[int, int]:
        """Most newlines that are removed before and after a value."""
        return self.trim, self.trim if self.trim_after is None else self.trim_after

    @property
    def newlines(self) -> tuple[int, int]:
        """Number of newlines that the markers next to a value have on its side, without other white space."""
        before = self.key_close if self.value_open is None else self.value_open
        close = self.value_close.text
        sides = (before.text[len(before.text.rstrip()) :], close[: len(close) - len(close.lstrip())])
        counts = [0 if side.strip("\r\n") else side.count("\n") for side in sides]
        return counts[0] * bool(before.text.strip()), counts[1] * bool(close.strip())

    @property
    def writes_types(self) -> bool:
        """True if the markup declares the type of each value."""
        return "{string}" in self.key or "{type}" in self.key or (self.type_open is not None and self.type_written)


@record()
class ElementArguments(Record):
    """Arguments as elements named after them: ``<city>Paris</city>``.

    Objects are elements inside elements, and arrays are one element ``item`` for each value. The schema decides the
    type of a text, and if an element may hold elements. Without a schema, text is a string, and elements are an array
    if the first one is an ``item``, or else an object.
    """

    open: Marker = Marker("<")
    """Marker before the name of an element. The elements inside an element are written with the same spelling. Default:
    ``Marker("<")``. Example: ``Marker("<arg:")``."""
    close: Marker = Marker("</")
    """Marker before the name of an element that ends. Default: ``Marker("</")``. Example: ``Marker("</arg:")``."""
    name_close: str = ">"
    """Text after a name, in both tags. Default: ``">"``. Example: ``"|>"``."""
    separator: str = ""
    """White space after an element, as the renderer writes it. Default: none. Example: ``"\\n"``."""
    item: str = "item"
    """Name of the elements of an array. Default: ``"item"``. Example: ``"li"``."""


@record()
class LiteralArguments(Record):
    """Arguments as literals of a language: Python's ``(a='x', b=[1])``, Gemma 4's ``{a:<|"|>x<|"|>,b:[1]}``; or each on
    a line of its own, as in YAML."""

    open: str = "("
    """Character before the arguments. Empty, as is ``close``: each argument is on a line of its own, up to what closes
    the call. Default: ``"("``. Example: ``"{"``."""
    close: str = ")"
    """Character after the arguments. Default: ``")"``. Example: ``"}"``."""
    assign: str = "="
    """Character between a top-level name and its value, with the white space that is written around it; inside objects
    it is always ``:``. Default: ``"="``. Example: ``": "``."""
    separator: str = ", "
    """Comma between arguments, with the white space that is written around it; between lines white space that begins
    with a newline. Default: ``", "``. Example: ``","``."""
    quotes: tuple[str, ...] = ("'", '"')
    """Quotes accepted around strings, the canonical one first. Default: ``("'", '"')``. Example: ``('<|"|>', '"')``."""
    quoted: Literal["strings", "all", "optional"] = "strings"
    """Values of arguments that are written in quotes. ``"all"``: the text between the quotes is a string only if the
    schema allows no other type; values without quotes are parsed too. ``"optional"``: a value that is no literal is a
    string without quotes, as of templates that insert values as they are; the renderer writes the quotes. Default:
    ``"strings"``. Example: ``"all"`` for ``count="3"``, ``"optional"`` for ``city=Rome``."""
    escapes: bool = True
    """True if a backslash escapes inside strings. Other accepted quotes than the canonical one always have escapes if
    they are one character, and never if they are longer. Default: ``True``. Example: ``False`` for Gemma 4."""
    words: tuple[str, str, str] = ("True", "False", "None")
    """Words for true, false and null; JSON's own words are always accepted. Default: Python's. Example:
    ``("true", "false", "null")``."""
    quoted_keys: bool = True
    """True if keys of nested objects are written in quotes; the parser accepts both. Default: ``True``."""

    @property
    def on_lines(self) -> bool:
        """True if each argument is on a line of its own."""
        return self.open == ""


Arguments = JsonArguments | TaggedArguments | ElementArguments | LiteralArguments
"""Arguments of a call. In JSON ``kind`` is ``json``, ``tagged``, ``element`` or ``literal``."""


@record()
class JsonBody(Record):
    """A call as one JSON object that holds its name and its arguments."""

    name_key: str = "name"
    """Key of the name. Default: ``"name"``. Example: ``"tool_name"``."""
    arguments_key: str = "arguments"
    """Key of the arguments. Default: ``"arguments"``. Example: ``"parameters"``."""
    accepted_name_keys: tuple[str, ...] = ()
    """Other keys of the name that are parsed. Default: none. Example: ``("function",)``."""
    accepted_arguments_keys: tuple[str, ...] = ("parameters",)
    """Other keys of the arguments that are parsed. Default: ``("parameters",)``. Example: ``("args",)``."""
    id_key: str | None = None
    """Key of the call's id. Default: ``None``, the object holds no id. Example: ``"tool_call_id"``."""
    nested_key: str | None = None
    """Key of an inner object that holds name and arguments. Default: ``None``, there is no inner object. Example:
    ``"function"``."""
    name_is_key: bool = False
    """True if the name is the object's only key and the arguments are its value: ``{"get_weather": {…}}``. Default:
    ``False``."""
    constants: tuple[tuple[str, str], ...] = ()
    """Further members, written before the name. Default: none. Example: ``(("type", "function"),)``."""


@record()
class NamedBody(Record):
    """A call whose name is written between markers, outside its arguments.

    No field expresses a close that repeats the name, such as ``<</get_weather>>``.
    """

    name_open: Marker | None = None
    """Marker before the name. Default: ``None``, the name follows the opening of the call. Example:
    ``Marker("<function=")``."""
    name: str = "{name}"
    """Pattern of the text between ``name_open`` and ``name_close``. It contains ``{name}`` once, and may contain
    ``{index}`` and ``{id}`` once each: the number of the call and its id. Text that does not fit the pattern is read as
    the name. Default: ``"{name}"``. Example: ``"functions.{name}:{index}"``."""
    name_close: Marker | None = None
    """Marker after the name. If a model leaves it out, the opening of the arguments ends the name, unless the marker is
    a word (``.call``). Default: ``None``, only that opening ends it, as in ``get_weather(``. Example:
    ``Marker(">\\n")``."""
    empty_close: Marker | None = None
    """Marker after the name of a call that ends there, without arguments. It is parsed and never written. Default:
    ``None``. Example: ``Marker('"/>')`` for DeepSeek's DSML."""
    id_open: Marker | None = None
    """Marker before the call's id, between the name and ``name_close``. Default: ``None``, there is no id. Example:
    ``Marker("[CALL_ID]")``."""
    arguments: Arguments = field(default_factory=JsonArguments)
    """Syntax of the arguments. Default: ``JsonArguments()``. Example: ``LiteralArguments()``."""
    arguments_close: Marker | None = None
    """Marker after the arguments. Default: ``None``, the arguments end by themselves or with the call. Example:
    ``Marker("</function>\\n")``."""
    escape: Escape = "none"
    """Escaping of the name. Default: ``"none"``. Example: ``"xml"``."""
    index_base: int = 0
    """First value of ``{index}``. Default: ``0``. Example: ``1`` for Kimi K3."""

    @property
    def name_in_tag(self) -> bool:
        """True if a marker of its own, besides white space, is written before or after the name."""
        return self.name_open is not None or (self.name_close is not None and self.name_close.text.strip() != "")


Body = JsonBody | NamedBody
"""One call. In JSON ``kind`` is ``json`` or ``named``."""


@record()
class Tools(Record):
    """One way to write tool calls: [section [list [call, …]]]. Without any marker the calls are *bare*."""

    body: Body = field(default_factory=JsonBody)
    """Syntax of one call. Default: ``JsonBody()``. Example: ``NamedBody(name_close=Marker("]]"))``."""
    section_open: Marker | None = None
    """Marker before all calls. Default: ``None``. Example: ``Marker("<tool_calls>")``."""
    section_close: Marker | None = None
    """Marker after all calls. Default: ``None``. Example: ``Marker("</tool_calls>")``."""
    list_open: Marker | None = None
    """Marker before a list of calls; goes with ``list_close``. Default: ``None``, no list. Example: ``Marker("[")``."""
    list_close: Marker | None = None
    """Marker after a list of calls; goes with ``list_open``. Default: ``None``, no list. Example: ``Marker("]")``."""
    list_optional: bool = False
    """True if a single call may be written without the list. Default: ``False``."""
    call_open: Marker | None = None
    """Marker before each call. Default: ``None``. Example: ``Marker("<tool_call>\\n")``."""
    call_close: Marker | None = None
    """Marker after each call. Default: ``None``. Example: ``Marker("\\n</tool_call>")``."""
    separator: Marker | None = None
    """Text between two calls. Inside a list or a section the parser skips its spellings. Python calls with nothing
    around them follow one another if it is a newline. Default: ``None``. Example: ``Marker(", ")``."""
    stray_closes: tuple[str, ...] = ()
    """Closers that models write after a call although the format has none there. They are dropped and reported.
    Default: none. Example: ``("}", "]")`` for a bare JSON object with one brace too many."""
    optional: tuple[Literal["section", "call"], ...] = ()
    """Openings that models are known to leave out: the next opening inside then opens them as well. Default: none.
    Example: ``("section",)``."""

    @property
    def lead(self) -> str:
        """Text between content and the first call: the white space that separates calls without a section."""
        if self.separator is None or self.section_open is not None or self.list_open is not None:
            return ""
        return "" if self.separator.text.strip() else self.separator.text

    @property
    def bare(self) -> bool:
        """True if calls begin with no marker of their own."""
        named = isinstance(self.body, NamedBody) and self.body.name_open is not None
        return self.section_open is None and self.call_open is None and not named

    @property
    def alone(self) -> bool:
        """True if calls are Python calls with nothing around them: ``f(x=1)``."""
        literal = isinstance(self.body, NamedBody) and isinstance(self.body.arguments, LiteralArguments)
        return literal and self.bare and self.list_open is None

    @property
    def one_a_line(self) -> bool:
        """True if such calls may follow one another, each on a line of its own."""
        return self.alone and self.separator is not None and self.separator.text == "\n"
