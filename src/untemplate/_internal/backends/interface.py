"""Interfaces between OutputParser and whatever parses its outputs.

The core has one implementation, :class:`untemplate._internal.backends.format.FormatBackend`. Others register a
:data:`BackendLookup`: ``untemplate.vllm_api`` does so for parsers that are registered by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from ...format import Format
from ...messages import ParsedOutput
from ...policy import Policy
from ..machine.events import SemanticEvent
from ..machine.ids import IdFactory
from ..stream import Stream
from ..tokens.decoding import Tokenizer
from .stream import StreamBackend

__all__ = [
    "BackendFactory",
    "BackendLookup",
    "OutputContext",
    "ParserBackend",
    "check_context",
    "find_backend",
    "prompt_of",
    "register_lookup",
]


class OutputContext(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one output before it begins; the fields are the parameters of :meth:`OutputParser.stream`."""

    policy: Policy
    """Resolved."""
    tools: Sequence[Any] | None = None
    tool_choice: Any = None
    prompt: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    prefill: str = ""
    messages: Sequence[Any] | None = None
    request: Any = None
    collect: bool = False
    spans: bool = False
    seed: int | str | bytes | None = None
    on_event: Callable[[SemanticEvent], None] | None = None


_SCALARS: Final = (str, bytes, int, float)
_CHOICES: Final = ("auto", "none", "required", "any")
"""Values of ``tool_choice``; ``any`` is what Mistral and Anthropic call ``required``."""


def prompt_of(prompt: str | Sequence[int] | None, ids: Sequence[int] | None) -> dict[str, Any]:
    """Return the fields of a context for a prompt that may be text or token ids.

    Raises:
        TypeError, ValueError: the prompt is something else, or both are token ids.
    """
    if prompt is None or isinstance(prompt, str):
        return {"prompt": prompt, "prompt_token_ids": ids}
    if isinstance(prompt, _SCALARS) or not hasattr(prompt, "__len__") or not _are_ids(prompt):
        raise _wrong("prompt", "str, or a list of token ids", prompt)
    if ids is not None:
        raise ValueError("prompt, prompt_token_ids: both are token ids: give one of them")
    return {"prompt": None, "prompt_token_ids": prompt}


def check_context(context: OutputContext) -> None:
    """Check the arguments that describe an output. Tools are checked when they are read.

    Raises:
        TypeError, ValueError: an argument that cannot be meant; names it.
    """
    if not isinstance(context.prefill, str):
        raise _wrong("prefill", "str", context.prefill)
    if context.seed is not None and not isinstance(context.seed, (int, str, bytes)):
        raise _wrong("seed", "int, str or bytes", context.seed)
    if context.on_event is not None and not callable(context.on_event):
        raise _wrong("on_event", "a function", context.on_event)
    if context.prompt_token_ids is not None:
        _check_ids(context.prompt_token_ids)
    if context.request is not None or context.messages is not None or context.tool_choice is not None:
        _check_request(context)


def _check_ids(ids: Sequence[int]) -> None:
    if isinstance(ids, _SCALARS) or not _are_ids(ids):
        raise _wrong("prompt_token_ids", "a list of token ids", ids)


def _are_ids(ids: Sequence[Any]) -> bool:
    return not len(ids) or hasattr(ids[-1], "__index__")


def _check_request(context: OutputContext) -> None:
    """Check the request and the parts of it that are given by themselves."""
    if isinstance(context.request, (*_SCALARS, list, tuple)):
        raise _wrong("request", "a request (a dict, or an object with its fields)", context.request)
    if isinstance(context.messages, (*_SCALARS, Mapping)):
        raise _wrong("messages", "a list of messages", context.messages)
    choice = context.tool_choice
    if isinstance(choice, _SCALARS) and choice not in _CHOICES:
        valid = ", ".join(map(repr, _CHOICES))
        raise ValueError(f"tool_choice: {choice!r:.200} is not one of: {valid}, or an object that names a tool")


def _wrong(name: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{name}: expected {expected}, got {type(value).__name__}: {value!r:.200}")


class ParserBackend(ABC):
    """Parses the outputs of one model for an :class:`OutputParser`. Immutable, shared by all requests."""

    format: Format
    """The Format that grammars and rendering use."""

    @property
    @abstractmethod
    def has_reasoning(self) -> bool:
        """True if outputs can have reasoning."""

    @property
    @abstractmethod
    def has_tools(self) -> bool:
        """True if outputs can have tool calls."""

    @abstractmethod
    def open(self, context: OutputContext) -> StreamBackend:
        """Return a parser for one output."""

    def stream(self, context: OutputContext) -> Stream:
        """Return a stream for one output."""
        return Stream(self.open(context), context.policy, context.collect, context.prefill)

    def parse(
        self, text: str, token_ids: Sequence[int], finish_reason: str | None, context: OutputContext
    ) -> ParsedOutput:
        """Return the message of a whole output."""
        stream = self.stream(context)
        stream.feed(text, token_ids)
        stream.finish(finish_reason)
        return stream.result()


class BackendFactory(Protocol):
    """Makes a backend from the settings of an :class:`OutputParser`."""

    def __call__(
        self, tokenizer: Tokenizer | None, *, policy: Policy, special_text: str, make_id: IdFactory | None
    ) -> ParserBackend: ...


BackendLookup = Callable[[str | None, str | None], BackendFactory | None]
"""(reasoning parser's name, tool parser's name) → the backend for them; ``None`` if it knows neither."""

_LOOKUPS: list[BackendLookup] = []


def register_lookup(lookup: BackendLookup) -> None:
    """Ask ``lookup`` for a backend whenever an OutputParser is made from names; it comes before the catalogue."""
    if lookup not in _LOOKUPS:
        _LOOKUPS.append(lookup)


def find_backend(reasoning: str | None, tools: str | None) -> BackendFactory | None:
    """Return the backend that a registered lookup has for these names; ``None``: they are the catalogue's."""
    for lookup in _LOOKUPS:
        found = lookup(reasoning, tools)
        if found is not None:
            return found
    return None
