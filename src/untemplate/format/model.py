"""Format: the output of one model family, described as data.

* A Format holds no code and no state: frozen dataclasses of strings, tuples and flags. The parser, the renderer and the
  decoding grammar are derived from it and from nothing else.
* Every marker has one canonical spelling, which the renderer and the grammar write, white space included. It may have
  further spellings that the parser accepts as well. The parser ignores white space around a spelling, unless the marker
  consists of white space only.
* A Format that cannot work cannot be constructed: `FormatError` names the field.

Every field has a docstring with its meaning, its default and an example. ``docs/format.md`` is made from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from ..errors import FormatError

__all__ = [
    "FORMAT_VERSION",
    "Arguments",
    "Body",
    "Channels",
    "Content",
    "ElementArguments",
    "Escape",
    "Format",
    "FormatError",
    "JsonArguments",
    "JsonBody",
    "LiteralArguments",
    "Marker",
    "NamedBody",
    "Reasoning",
    "TaggedArguments",
    "Tools",
    "Turn",
]

FORMAT_VERSION = 1
"""Version of the Format language and of its JSON form."""

Escape = Literal["none", "xml"]
"""Escaping of text between tags. ``xml``: ``&amp;`` ``&lt;`` ``&gt;`` ``&quot;`` ``&apos;``."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A literal that opens, closes or separates a region.

    In JSON a marker without further spellings is a plain string.
    """

    text: str
    """Canonical spelling: the renderer writes it exactly, white space included. Required. Example: ``"<think>\\n"``."""
    accepted: tuple[str, ...] = ()
    """Other spellings that models are known to write. They are parsed and never written. Default: none. Example:
    ``("<thinking>",)``."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings that the parser finds, without their outer white space, the canonical one first."""
        return tuple(dict.fromkeys(s.strip(" \t\r\n") or s for s in (self.text, *self.accepted)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Start and end of the assistant's turn."""

    start: Marker | None = None
    """Turn header: text in the prompt after which the assistant's turn begins. The text after the last one decides the
    parser's start state. Default: ``None``, the format has none. Example: ``Marker("<|im_start|>assistant\\n")``."""
    end: Marker | None = None
    """End-of-turn token. Spelled as text it counts only at the end of the output; proven by a token id it counts
    everywhere. Default: ``None``, no token ends the turn. Example: ``Marker("<|im_end|>")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Reasoning between two markers. Content follows the close."""

    open: Marker | None = None
    """Marker before reasoning. Default: ``None``, reasoning begins with the output and only its close is marked.
    Example: ``Marker("<think>\\n")``."""
    close: Marker
    """Marker after reasoning. Required. Example: ``Marker("\\n</think>\\n\\n")``."""
    start: Literal["closed", "open"] = "closed"
    """State in which an output begins if no prompt is known. Default: ``"closed"``, in content. Example: ``"open"`` for
    DeepSeek-R1, whose prompt ends with ``<think>``."""
    repeats: bool = False
    """True if reasoning may open again directly after content, in the middle of a line. A token id or the start of a
    line opens it again in any format. Default: ``False``. Example: ``True`` for Gemma 4's channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Markers around content. The parser accepts content without them as well."""

    open: Marker
    """Marker before content. Required. Example: ``Marker("<response>")``."""
    close: Marker
    """Marker after content. Required. Example: ``Marker("</response>")``."""
    written: Literal["always", "with_reasoning"] = "always"
    """Turns in which the renderer writes the markers. Default: ``"always"``. Example: ``"with_reasoning"`` for Granite
    3.3, which marks content only after reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonArguments:
    """Arguments as one JSON object, passed through as the model wrote it: ``{"city": "Paris"}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedArguments:
    """Arguments in tags of their own: ``key_open`` key ``key_close`` [``value_open``] value ``value_close``."""

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
    """Most newlines on each side of a value that belong to the markup and are removed. Default: ``0``. Example: ``1``
    for Qwen3-Coder, which writes each value on lines of its own."""
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
    def writes_types(self) -> bool:
        """True if the markup declares the type of each value."""
        return "{string}" in self.key or "{type}" in self.key or (self.type_open is not None and self.type_written)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementArguments:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralArguments:
    """Arguments as literals of a language: Python's ``(a='x', b=[1])``, Gemma 4's ``{a:<|"|>x<|"|>,b:[1]}``."""

    open: str = "("
    """Character before the arguments. Default: ``"("``. Example: ``"{"``."""
    close: str = ")"
    """Character after the arguments. Default: ``")"``. Example: ``"}"``."""
    assign: str = "="
    """Character between a top-level name and its value; inside objects it is always ``:``. Default: ``"="``. Example:
    ``":"``."""
    separator: str = ", "
    """Text between arguments, as it is written. Default: ``", "``. Example: ``","``."""
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


Arguments = JsonArguments | TaggedArguments | ElementArguments | LiteralArguments
"""Arguments of a call. In JSON ``kind`` is ``json``, ``tagged``, ``element`` or ``literal``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBody:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedBody:
    """A call whose name is written between markers, outside its arguments."""

    name_open: Marker | None = None
    """Marker before the name. Default: ``None``, the name follows the opening of the call. Example:
    ``Marker("<function=")``."""
    name: str = "{name}"
    """Pattern of the text between ``name_open`` and ``name_close``. It contains ``{name}`` once, and may contain
    ``{index}`` and ``{id}`` once each: the number of the call and its id. Text that does not fit the pattern is read as
    the name. Default: ``"{name}"``. Example: ``"functions.{name}:{index}"``."""
    name_close: Marker | None = None
    """Marker after the name. If a model leaves it out, the opening of the arguments ends the name. Default: ``None``,
    only that opening ends it, as in ``get_weather(``. Example: ``Marker(">\\n")``."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
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
    """Text between two calls. Inside a list or a section the parser skips its spellings. Default: ``None``. Example:
    ``Marker(", ")``."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """A turn as messages with message headers: [``open`` role] [``recipient`` name] [``channel`` name] [``constraint``]
    ``body``.

    The parts of a header may come in any order. gpt-oss has all of them. The header of Functionary 3.2 (``>>>name\\n``)
    is one bare word, the recipient: ``recipient`` and ``channel`` are ``None``.
    """

    open: Marker
    """Marker before a message. Required. Example: ``Marker("<|start|>")``."""
    role: str = ""
    """Role after ``open``. Default: ``""``, none is written. Example: ``"assistant"``."""
    channel: Marker | None = None
    """Marker before the name of a channel. Default: ``None``. Example: ``Marker("<|channel|>")``."""
    recipient: Marker | None = None
    """Marker before a recipient; a message to a tool is a call. Default: ``None``. Example: ``Marker(" to=")``."""
    constraint: Marker | None = None
    """Marker before the type of the text. Default: ``None``. Example: ``Marker(" <|constrain|>")``."""
    body: Marker
    """Marker between header and text. Required. Example: ``Marker("<|message|>")``."""
    reasoning_body: Marker | None = None
    """Marker in place of ``body`` before reasoning, whatever the header says. Default: ``None``, reasoning has none of
    its own. Example: ``Marker("<|content_thinking|>")``."""
    call_body: Marker | None = None
    """Marker in place of ``body`` before a call, whatever the header says. Default: ``None``, calls have none of their
    own. Example: ``Marker("<|content_invoke_tool_json|>")``."""
    call_name: bool = True
    """``False``: the header of a call does not name the tool, its text does. Default: ``True``. Example: ``False``."""
    close: Marker | None = None
    """Marker after a message, accepted after any kind of message. Default: ``None``, the next ``open`` ends a message.
    Example: ``Marker("<|end|>")``."""
    call_close: Marker | None = None
    """Marker after a call. Default: ``None``, the same as ``close``. Example: ``Marker("<|call|>")``."""
    namespace: str = ""
    """Prefix of a tool's name in the recipient; the parser removes it. Default: ``""``. Example: ``"functions."``."""
    reasoning: tuple[str, ...] = ()
    """Channels whose text is reasoning, the canonical one first; without ``channel``: recipients. Default: none.
    Example: ``("analysis",)``."""
    content: tuple[str, ...] = ()
    """Channels whose text is content, the canonical one first; without ``channel``: recipients. Required: at least one,
    unless calls have a ``call_body``. Example: ``("final", "commentary")``."""
    join: str = "\n"
    """Text that the parser puts between the texts of two messages of the same kind. Default: a newline. Example:
    ``""``."""
    preamble: str | None = None
    """Channel of content that precedes a call in the same turn. Default: ``None``, the first of ``content``. Example:
    ``"commentary"``."""
    call_channel: str | None = None
    """Channel that the renderer writes in the header of a call. Default: ``None``. Example: ``"commentary"``."""
    call_constraint: str | None = None
    """Constraint that the renderer writes in the header of a call. Default: ``None``. Example: ``"json"``."""

    @property
    def has_reasoning(self) -> bool:
        """True if a message can be reasoning."""
        return bool(self.reasoning) or self.reasoning_body is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The output of one model family."""

    name: str
    """Name in messages and logs. Required. Example: ``"hermes"``."""
    turn: Turn = field(default_factory=Turn)
    """Start and end of the assistant's turn. Default: ``Turn()``. Example: ``Turn(end=Marker("<|im_end|>"))``."""
    reasoning: Reasoning | None = None
    """Reasoning. Default: ``None``, the models mark none. Example: ``Reasoning(close=Marker("</think>"))``."""
    content: Content | None = None
    """Markers around content. Default: ``None``, content has none. Example:
    ``Content(open=Marker("<answer>"), close=Marker("</answer>"))``."""
    tools: tuple[Tools, ...] = ()
    """Ways to write calls. The renderer and the grammar use the first, the parser accepts all. Default: none, the
    models write no calls. Example: ``(Tools(call_open=Marker("<tool_call>"), call_close=Marker("</tool_call>")),)``."""
    channels: Channels | None = None
    """A turn as messages with headers. A message to a tool is a call: its text is the arguments as JSON or, if there
    are ``tools``, a call as they write it, which names the tool again. Default: ``None``. Example: gpt-oss."""
    ids: str = "random"
    """Ids of calls: ``"random"`` (``call_`` and 24 hex digits), ``"alphanumeric9"`` (nine letters or digits), or a
    pattern of ``{name}`` and ``{index}``. The index continues from the calls in the history. Default: ``"random"``.
    Example: ``"functions.{name}:{index}"``."""
    special_tokens: tuple[str, ...] = ()
    """Markers that are one token in the models' vocabulary and must survive detokenization. Default: none. Example:
    ``("<|im_end|>", "<tool_call>")``."""
    spelled_markers: Literal["text", "marker"] = "text"
    """Meaning of a special token that was spelled with ordinary tokens, unless a policy decides. Default: ``"text"``.
    Example: ``"marker"`` for MiniMax-M3, which spells ``<mm:think>`` although its vocabulary has it."""
    version: int = FORMAT_VERSION
    """Version of the Format language. Default, and only valid value: ``1``."""

    def __post_init__(self) -> None:
        from .checks import check

        check(self)

    def extend(self, **changes: Any) -> Format:
        """Return a variant with the given fields replaced. ``__`` separates the names of nested fields.

        >>> hermes = Format(name="hermes", tools=(Tools(call_open=Marker("<tool_call>")),))
        >>> hermes.extend(name="x", tools__0__call_open=Marker("<call>")).tools[0].call_open
        Marker(text='<call>', accepted=())

        Raises:
            TypeError: a field does not exist; the message lists the valid ones.
            FormatError: the result cannot work.
        """
        result: Format = _extended(self, {tuple(k.split("__")): v for k, v in changes.items()}, "Format")
        return result

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the Format as JSON, on one line if ``indent`` is ``None``. Fields at their default are left out."""
        from .serialization import to_json

        return to_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Format:
        """Return the Format that `to_json` wrote.

        Raises:
            FormatError: an unknown version, a wrong type, a missing or unknown key, or an invalid value; ``path`` names
                the field.
        """
        from .serialization import from_json

        return from_json(text)

    @classmethod
    def from_response_template(cls, template: dict[str, Any], *, name: str = "response_template") -> Format:
        """Return the Format for the ``response_template`` of a checkpoint's ``tokenizer_config.json``.

        transformers reads such a template (version 1) to parse outputs.

        Raises:
            FormatError: a part of the template cannot be expressed as a Format; ``path`` names the first one.
        """
        from .response_template import from_response_template

        return from_response_template(template, name=name)

    def to_response_template(self, reader: str = "transformers") -> dict[str, Any]:
        """Return the Format as a ``response_template`` for a checkpoint's ``tokenizer_config.json``.

        transformers (5.13 and later) parses outputs with it. ``untemplate export`` also lists what only unusual outputs
        need and the template cannot hold. Its patterns look ahead, so `from_response_template` cannot read it.

        Args:
            reader: ``transformers`` (TRL reads the same), or ``engine``: vLLM and SGLang have other rules for fields.

        Raises:
            FormatError: the template cannot describe how calls are written; ``path`` names the part.
            ValueError: another ``reader``.
        """
        from .response_template.export import export

        return export(self, reader).template


def _extended(part: Any, changes: dict[tuple[str, ...], Any], path: str) -> Any:
    """Return ``part`` with every nested change applied; each level is rebuilt once."""
    grouped: dict[str, dict[tuple[str, ...], Any]] = {}
    for keys, value in changes.items():
        grouped.setdefault(keys[0], {})[keys[1:]] = value
    new: dict[str, Any] = {}
    is_tuple = isinstance(part, tuple)
    if not is_tuple and not is_dataclass(part):
        raise TypeError(f"{path} is {part!r}: nothing in it to change")
    valid = [str(i) for i in range(len(part))] if is_tuple else [f.name for f in fields(part)]
    for key, inner in grouped.items():
        if key not in valid:
            raise TypeError(f"{path} has no field {key!r}; it has: {', '.join(valid)}")
        old = part[int(key)] if is_tuple else getattr(part, key)
        new[key] = inner[()] if () in inner else _extended(old, inner, f"{path}.{key}")
    if is_tuple:
        return tuple(new.get(str(i), x) for i, x in enumerate(part))
    return replace(part, **new)
