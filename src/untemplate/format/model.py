"""Format: what one model family's output looks like, as data.

Rules of this module:

* A Format holds no code and no state: frozen dataclasses of strings, tuples and flags. The parser, the renderer and
  the grammar are derived from it and from nothing else.
* Every marker has one canonical spelling (``Marker.text``, what the renderer and the grammar write, white space
  included) and any number of accepted ones (what the parser takes besides). White space around a spelling is for
  writing; the parser ignores it, unless the marker is white space only.
* A Format that cannot work does not come into being: construction raises :class:`FormatError`, which names the field.
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
"""Version of the JSON form. A reader keeps keys that it does not know (``Format.unknown``)."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A literal that delimits a region.

    ``text`` is written as it stands, white space included (``"<think>\\n"``). ``accepted`` are other spellings that
    models are known to write; they are parsed and never written.
    """

    text: str
    accepted: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """What the parser looks for: every spelling without its outer white space, the canonical one first."""
        return tuple(dict.fromkeys(s.strip(" \t\r\n") or s for s in (self.text, *self.accepted)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Where the assistant's turn starts in a prompt, and the tokens that end it."""

    start: Marker | None = None
    """``<|im_start|>assistant\\n``. The start state is read from the text after its last occurrence in the prompt."""
    end: Marker | None = None
    """``<|im_end|>``. Found in text it counts only where the output ends; found as a token id it always counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Reasoning between markers. Content follows the close."""

    open: Marker | None = None
    """``None``: reasoning begins with the output and only its close is marked (Apriel 1.6)."""
    close: Marker
    start: Literal["closed", "open"] = "closed"
    """Where an output begins when no prompt is known."""
    repeats: bool = False
    """Whether reasoning may open again after content (interleaved thinking, Gemma 4's channel)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Markers around content (``<response>`` … ``</response>``). The parser takes content without them too."""

    open: Marker
    close: Marker
    written: Literal["always", "with_reasoning"] = "always"
    """When the renderer writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonArguments:
    """Arguments as one JSON object, passed through as the model wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedArguments:
    """Each argument in its own tags: ``key_open`` key ``key_close`` [``value_open``] value ``value_close``."""

    key_open: Marker
    key: str = "{key}"
    """What stands between ``key_open`` and ``key_close``: ``{key}``, and attributes such as
    ``{key}" string="{string}`` (``true`` for strings) or ``{key}" type="{type}`` (a JSON type name)."""
    key_close: Marker
    value_open: Marker | None = None
    value_close: Marker
    trim: int = 0
    """Newlines on each side of a value that belong to the markup; at most this many are removed."""
    escape: Literal["none", "xml"] = "none"
    """``xml``: keys and values are written with ``&amp;`` ``&lt;`` ``&gt;`` ``&quot;`` ``&apos;``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralArguments:
    """Arguments as literals of a language: Python's ``(a='x', b=[1])``, Gemma 4's ``{a:<|"|>x<|"|>,b:[1]}``."""

    open: str = "("
    close: str = ")"
    assign: str = "="
    """Between a top-level name and its value; inside objects it is always ``:``."""
    separator: str = ", "
    quotes: tuple[str, ...] = ("'", '"')
    """Accepted around strings, the canonical one first."""
    escapes: bool = True
    """Whether a backslash escapes inside strings."""
    words: tuple[str, str, str] = ("True", "False", "None")
    """How true, false and null are written; JSON's own words are always accepted."""
    quoted_keys: bool = True
    """Whether keys of nested objects are written in quotes; both are accepted."""


Arguments = JsonArguments | TaggedArguments | LiteralArguments


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBody:
    """A call as one JSON object that holds its name and its arguments."""

    name_key: str = "name"
    arguments_key: str = "arguments"
    accepted_name_keys: tuple[str, ...] = ()
    accepted_arguments_keys: tuple[str, ...] = ("parameters",)
    id_key: str | None = None
    nested_key: str | None = None
    """``"function"``: name and arguments stand in an object under this key."""
    name_is_key: bool = False
    """``{"get_weather": {…}}``: the name is the key, the arguments its value."""
    constants: tuple[tuple[str, str], ...] = ()
    """Further members that are always written, before the name: ``("type", "function")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedBody:
    """A call whose name stands in markers, outside its arguments."""

    name_open: Marker | None = None
    name: str = "{name}"
    """What stands between ``name_open`` and ``name_close``: ``functions.{name}:{index}``,
    ``{name}" index="{index}``. Text that does not fit the pattern is the name as a whole."""
    name_close: Marker | None = None
    """``None`` where the arguments' own opening ends the name (``get_weather(``, ``get_weather<arg_key>``). An opening
    ends it even where ``name_close`` was left out."""
    id_open: Marker | None = None
    """``[CALL_ID]``: an id may stand between this and ``name_close``."""
    arguments: Arguments = field(default_factory=JsonArguments)
    arguments_close: Marker | None = None
    escape: Literal["none", "xml"] = "none"
    index_base: int = 0
    """What ``{index}`` counts from."""


Body = JsonBody | NamedBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """One way to write tool calls: [section [list [call, …]]]. With no marker at all the calls are *bare*."""

    body: Body = field(default_factory=JsonBody)
    section_open: Marker | None = None
    section_close: Marker | None = None
    list_open: Marker | None = None
    """``[``: the calls stand in a list."""
    list_close: Marker | None = None
    list_optional: bool = False
    """Whether a single call may stand without the list."""
    call_open: Marker | None = None
    call_close: Marker | None = None
    separator: Marker | None = None
    """Between calls. Inside a list or section its spellings are skipped."""
    optional: tuple[Literal["section", "call"], ...] = ()
    """Opening markers that models are known to leave out: the next one inside opens as well."""

    @property
    def bare(self) -> bool:
        """Whether calls begin with no marker of their own."""
        named = isinstance(self.body, NamedBody) and self.body.name_open is not None
        return self.section_open is None and self.call_open is None and not named


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """A turn as messages with headers: [``open`` role] [``recipient`` name] [``channel`` name] [``constraint``]
    ``body``.

    The header's parts may stand in any order. gpt-oss has all of them; Functionary 3.2 (``>>>name\\n``) has one bare
    word, which is the recipient (``recipient`` and ``channel`` are ``None``).
    """

    open: Marker
    role: str = ""
    channel: Marker | None = None
    recipient: Marker | None = None
    constraint: Marker | None = None
    body: Marker
    close: Marker | None = None
    """Ends a message; accepted after any kind of message."""
    call_close: Marker | None = None
    """Ends a call (``close`` where ``None``)."""
    namespace: str = ""
    """Written before a tool's name in the recipient, and taken off (``functions.``)."""
    reasoning: tuple[str, ...] = ()
    """Channels whose text is reasoning, the canonical one first."""
    content: tuple[str, ...] = ()
    """Channels (bare: recipients) whose text is content, the canonical one first."""
    preamble: str | None = None
    """Channel of content that precedes a call in the same turn (``None``: the first of ``content``)."""
    call_channel: str | None = None
    call_constraint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One model family's output. ``tools`` holds the canonical way to write calls first, accepted ways after it."""

    name: str
    turn: Turn = field(default_factory=Turn)
    reasoning: Reasoning | None = None
    content: Content | None = None
    tools: tuple[Tools, ...] = ()
    channels: Channels | None = None
    ids: str = "random"
    """Ids of calls: ``random`` (``call_`` + 24 hex digits), ``alphanumeric9`` (Mistral), or a pattern of ``{name}`` and
    ``{index}`` that counts on from the calls in the history (``functions.{name}:{index}``)."""
    special_tokens: tuple[str, ...] = ()
    """Markers that are one token in the models' vocabulary; they must survive detokenization."""
    version: int = FORMAT_VERSION
    unknown: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    """(path, value) of keys from a newer version, kept for writing."""

    def __post_init__(self) -> None:
        check(self)

    def extend(self, **changes: Any) -> Format:
        """A variant: the same Format with the given fields replaced. Nested fields are named with ``__``:
        ``fmt.extend(name="x", reasoning__start="open", tools__0__call_close=None)``.

        Raises:
            TypeError: a field that does not exist; the message lists the valid ones.
            FormatError: the result cannot work.
        """
        result: Format = _extended(self, {tuple(k.split("__")): v for k, v in changes.items()}, "Format")
        return result

    def to_json(self, *, indent: int | None = 2) -> str:
        """The Format as JSON; ``from_json`` gives an equal one back. Fields at their default are left out."""
        from .serialization import to_json

        return to_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Format:
        """Reads what ``to_json`` wrote.

        Raises:
            FormatError: wrong type, missing key or unknown choice; names the path.
        """
        from .serialization import from_json

        return from_json(text)

    @classmethod
    def from_response_template(cls, template: dict[str, Any], *, name: str = "response_template") -> Format:
        """The ``response_template`` of a checkpoint's ``tokenizer_config.json`` (transformers, version 1).

        Raises:
            FormatError: names the path of the first part that has no counterpart here.
        """
        from .response_template import from_response_template

        return from_response_template(template, name=name)


def _extended(part: Any, changes: dict[tuple[str, ...], Any], path: str) -> Any:
    """``part`` with every nested change applied; each level is rebuilt once."""
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


# -- What cannot work ---------------------------------------------------------------------------------------------


def check(fmt: Format) -> None:
    """Raises FormatError for a Format that cannot work: an empty marker, one literal with two meanings in one state, a
    pattern without its variable."""
    if not fmt.name:
        raise FormatError("name", "is empty")
    _check_markers(fmt, "")
    content: dict[str, str] = {}
    if fmt.reasoning is not None:
        _distinct(content, fmt.reasoning.open, "reasoning.open")
        _distinct(content, fmt.reasoning.close, "reasoning.close")
    if fmt.content is not None:
        _distinct(content, fmt.content.open, "content.open")
        _distinct(content, fmt.content.close, "content.close")
    _distinct(content, fmt.turn.end, "turn.end")
    if fmt.channels is not None:
        _check_channels(fmt, content)
    openers: dict[str, str] = dict(content)
    for i, tools in enumerate(fmt.tools):
        _check_tools(tools, f"tools[{i}]", openers)
    if fmt.ids not in ("random", "alphanumeric9") and "{" not in fmt.ids:
        raise FormatError(
            "ids", f"{fmt.ids!r} is not 'random', 'alphanumeric9' or a pattern with {{name}} or {{index}}"
        )


def _check_channels(fmt: Format, seen: dict[str, str]) -> None:
    channels = fmt.channels
    assert channels is not None
    for name in ("open", "close", "call_close"):
        marker: Marker | None = getattr(channels, name)
        if name != "call_close" or marker != channels.close:
            _distinct(seen, marker, f"channels.{name}")
    if not channels.content:
        raise FormatError("channels.content", "is empty: at least one channel must hold content")
    for word in channels.reasoning:
        if word in channels.content:
            raise FormatError("channels.content", f"{word!r} is in channels.reasoning as well")
    if fmt.tools:
        raise FormatError("tools", "must be empty where channels carry the calls")


def _check_tools(tools: Tools, path: str, seen: dict[str, str]) -> None:
    """Openers of two ways to write calls may be shared; what follows tells them apart."""
    for name in ("section_open", "call_open"):
        marker: Marker | None = getattr(tools, name)
        if marker is not None:
            for text in marker.spellings:
                if text in seen:
                    raise FormatError(f"{path}.{name}", f"{text!r} is already {seen[text]}")
    if (tools.list_open is None) != (tools.list_close is None):
        raise FormatError(f"{path}.list_close", "list_open and list_close go together")
    body = tools.body
    if isinstance(body, JsonBody):
        if not body.name_is_key and body.name_key == body.arguments_key:
            raise FormatError(f"{path}.body.arguments_key", f"{body.arguments_key!r} is the name_key as well")
        return
    if "{name}" not in body.name:
        raise FormatError(f"{path}.body.name", f"{body.name!r} does not hold {{name}}")
    arguments = body.arguments
    if isinstance(arguments, TaggedArguments):
        if "{key}" not in arguments.key:
            raise FormatError(f"{path}.body.arguments.key", f"{arguments.key!r} does not hold {{key}}")
        if set(arguments.value_close.spellings) & set(arguments.key_open.spellings):
            raise FormatError(f"{path}.body.arguments.value_close", "is key_open as well")
        if arguments.trim < 0:
            raise FormatError(f"{path}.body.arguments.trim", f"{arguments.trim} is negative")
        if body.arguments_close is None and tools.call_close is None and tools.section_close is None:
            raise FormatError(f"{path}.body.arguments_close", "is missing: nothing ends a call with tagged arguments")
    elif isinstance(arguments, LiteralArguments):
        for name in ("open", "close", "assign"):
            if len(getattr(arguments, name)) != 1:
                raise FormatError(f"{path}.body.arguments.{name}", "must be one character")
        if not arguments.quotes:
            raise FormatError(f"{path}.body.arguments.quotes", "is empty")


def _distinct(seen: dict[str, str], marker: Marker | None, path: str) -> None:
    if marker is None:
        return
    for text in marker.spellings:
        if text in seen:
            raise FormatError(path, f"{text!r} is already {seen[text]}")
        seen[text] = path


def _check_markers(part: Any, path: str) -> None:
    """No empty spelling anywhere."""
    if isinstance(part, Marker):
        if not part.text or "" in part.accepted:
            raise FormatError(path, "is an empty marker")
    elif isinstance(part, tuple):
        for i, item in enumerate(part):
            if isinstance(item, str) and not item and not path.startswith("unknown"):
                raise FormatError(f"{path}[{i}]", "is empty")
            _check_markers(item, f"{path}[{i}]")
    elif is_dataclass(part):
        for f in fields(part):
            if f.name != "unknown":
                _check_markers(getattr(part, f.name), f"{path}.{f.name}" if path else f.name)
