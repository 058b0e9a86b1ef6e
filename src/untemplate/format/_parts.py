"""The parts of a Format, and its fields."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .._internal.record import Record, record
from ..errors import FormatError
from ._calls import (
    Arguments,
    Body,
    ElementArguments,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    NamedBody,
    TaggedArguments,
    Tools,
)
from ._markers import Escape, Marker

__all__ = [
    "FORMAT_VERSION",
    "Arguments",
    "Body",
    "Channels",
    "Content",
    "ElementArguments",
    "Escape",
    "FormatError",
    "FormatFields",
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


@record()
class Turn(Record):
    """Start and end of the assistant's turn."""

    start: Marker | None = None
    """Turn header: text in the prompt after which the assistant's turn begins. The text after the last one decides the
    parser's start state. Default: ``None``, the format has none. Example: ``Marker("<|im_start|>assistant\\n")``."""
    end: Marker | None = None
    """End-of-turn token. Spelled as text it counts only at the end of the output; proven by a token id it counts
    everywhere. Default: ``None``, no token ends the turn. Example: ``Marker("<|im_end|>")``."""
    in_output: bool = False
    """True if some prompts lack the start, so that an output may begin with it. There it is a marker; the renderer does
    not write it. Default: ``False``. Example: ``True`` for a template without a generation prompt."""


@record()
class Reasoning(Record):
    """Reasoning between two markers. Content follows the close."""

    open: Marker | None = None
    """Marker before reasoning. Default: ``None``, reasoning begins with the output and only its close is marked.
    Example: ``Marker("<think>\\n")``."""
    close: Marker
    """Marker after reasoning. Required. Example: ``Marker("\\n</think>\\n\\n")``."""
    start: Literal["closed", "open"] = "closed"
    """State in which an output begins if no prompt is known. Default: ``"closed"``, in content. Example: ``"open"`` for
    DeepSeek-R1, whose prompt ends with ``<think>``."""
    inline: bool = False
    """True if the reasoning stays in the content as it was written, with its markers, unless a policy asks for it in a
    field. An output that begins inside reasoning gets the open marker first. Default: ``False``. Example: ``True`` for
    vLLM's ``minimax_m2_append_think``."""
    repeats: bool = False
    """True if reasoning may open again directly after content, in the middle of a line. A token id or the start of a
    line opens it again in any format. Default: ``False``. Example: ``True`` for Gemma 4's channel."""


@record()
class Content(Record):
    """Markers around content. The parser accepts content without them as well."""

    open: Marker
    """Marker before content. Required. Example: ``Marker("<response>")``."""
    close: Marker
    """Marker after content. Required. Example: ``Marker("</response>")``."""
    written: Literal["always", "with_reasoning"] = "always"
    """Turns in which the renderer writes the markers. Default: ``"always"``. Example: ``"with_reasoning"`` for Granite
    3.3, which marks content only after reasoning."""


@record()
class Channels(Record):
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
    def calls_together(self) -> bool:
        """True if all calls of a turn are written in one message, whose header names none of them."""
        return not self.call_name

    @property
    def has_reasoning(self) -> bool:
        """True if a message can be reasoning."""
        return bool(self.reasoning) or self.reasoning_body is not None


@record()
class FormatFields(Record):
    """The fields of a `Format`, for the modules that check, write and read one."""

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
    Example: ``"marker"`` for a model that spells its markers although its vocabulary has them."""
    version: int = FORMAT_VERSION
    """Version of the Format language. Default, and only valid value: ``1``."""
