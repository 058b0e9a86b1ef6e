"""Parsers with vLLM's interface as backends of OutputParser.

Importing ``untemplate.vllm_api`` registers :func:`find_registered`: from then on ``OutputParser`` knows the names that
have been registered with the managers. What such a parser does not report (spans, statuses, diagnostics) stays empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from .._internal.backends.format import FormatBackend
from .._internal.backends.interface import BackendFactory, OutputContext, ParserBackend
from .._internal.backends.requests import adjusted
from .._internal.backends.stream import StreamBackend
from .._internal.deltas import finish_reason_of
from .._internal.jsontext.scanner import BROKEN, ENDED, JsonScanner
from .._internal.machine.ids import IdFactory
from ..format import Format
from ..formats import Kind, half, named
from ..messages import ChatCompletionRequest, DeltaMessage, FunctionCall, Item, ParsedOutput, ToolCall
from ..policy import Policy
from ._delegating import DelegatingParser
from ._format_parsers import reasoning_class, tool_class
from ._managers import ParserManager, ReasoningParserManager, ToolParserManager

__all__ = ["DeltaParser", "HalvesBackend", "ParserStream", "RegisteredBackend", "find_registered", "half_of"]


class DeltaParser(Protocol):
    """The method of vLLM's ``Parser`` interface that parses one output while it arrives."""

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: list[int],
        request: Any = None,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None: ...


class ParserStream(StreamBackend):
    """One output, parsed by a parser with vLLM's interface.

    Args:
        parser: fresh; it parses this output only.
        request: handed to the parser with each delta.
        prompt_token_ids: the prompt, if it is known.
    """

    def __init__(self, parser: DeltaParser, request: Any = None, prompt_token_ids: Sequence[int] | None = None) -> None:
        self._parser = parser
        self._request = request
        self._prompt = prompt_token_ids
        self._has_calls = False
        self._in_reasoning = False
        self._last_call = -1
        self._arguments = _Arguments()

    def feed(self, text: str, token_ids: Sequence[int]) -> list[DeltaMessage]:
        return self._parse(text, token_ids, finished=False)

    def finish(self, finish_reason: str | None) -> list[DeltaMessage]:
        return self._parse("", (), finished=True)

    def _parse(self, text: str, token_ids: Sequence[int], *, finished: bool) -> list[DeltaMessage]:
        delta = self._parser.parse_delta(text, list(token_ids), self._request, self._prompt, finished=finished)
        if delta is None:
            return []
        self._has_calls = self._has_calls or bool(delta.tool_calls)
        self._in_reasoning = delta.content is None and not delta.tool_calls
        for part in delta.tool_calls or ():
            if part.index != self._last_call:
                self._last_call = part.index
                self._arguments = _Arguments()
            if part.function is not None and part.function.arguments:
                self._arguments.add(part.function.arguments)
        return [delta]

    @property
    def has_calls(self) -> bool:
        return self._has_calls

    @property
    def ends_in_cut_call(self) -> bool:
        """True if the arguments of the last call are the beginning of a JSON value."""
        return self._has_calls and self._arguments.cut

    @property
    def in_reasoning(self) -> bool:
        """True if the last delta was reasoning."""
        return self._in_reasoning


class RegisteredBackend(FormatBackend):
    """Parses outputs with a registered parser; the Format is that of the names which are the catalogue's."""

    def __init__(
        self,
        parser_class: type[Any],
        format: Format,
        tokenizer: Any,
        *,
        policy: Policy,
        special_text: str,
        make_id: IdFactory | None,
    ) -> None:
        super().__init__(format, tokenizer, policy=policy, special_text=special_text, make_id=make_id)
        self._class = parser_class

    def _parser(self) -> Any:
        return self._class(_NoTokenizer() if self.tokenizer is None else self.tokenizer)

    @property
    def has_reasoning(self) -> bool:
        return super().has_reasoning or self.reasoning_parser is not None

    @property
    def has_tools(self) -> bool:
        return super().has_tools or self.tool_parser is not None

    @property
    def reasoning_parser(self) -> Any:
        """A new reasoning parser; ``None`` if this has only tools."""
        return getattr(self._parser(), "reasoning_parser", None)

    @property
    def tool_parser(self) -> Any:
        """A new tool parser; ``None`` if this has only reasoning."""
        return getattr(self._parser(), "tool_parser", None)

    def adjust_request(self, request: Any) -> Any:
        """Return a copy of the request as the parser wants it, which keeps special tokens in the text."""
        return self._parser().adjust_request(adjusted(request, skip_special_tokens=False))

    def _opened(self, context: OutputContext) -> tuple[Any, Any]:
        """Return (a parser for one output, its request)."""
        return self._parser(), _request(context)

    def _prompt_ids(self, context: OutputContext) -> Sequence[int] | None:
        encode = getattr(self.tokenizer, "encode", None)
        if context.prompt_token_ids is not None or context.prompt is None or encode is None:
            return context.prompt_token_ids
        encoded = encode(context.prompt, add_special_tokens=False)
        return list(getattr(encoded, "ids", encoded))

    def open(self, context: OutputContext) -> StreamBackend:  # type: ignore[override]
        if context.on_event is not None:
            raise ValueError("on_event: a registered parser reports no events")
        return ParserStream(*self._opened(context), self._prompt_ids(context))

    def parse(
        self, text: str, token_ids: Sequence[int], finish_reason: str | None, context: OutputContext
    ) -> ParsedOutput:
        """Return what the parser's method for whole outputs finds, which may be more than it finds in a stream."""
        parser, request = self._opened(context)
        prompt = self._prompt_ids(context)
        if prompt is not None and hasattr(parser, "set_prompt_token_ids"):
            parser.set_prompt_token_ids(prompt)
        found: tuple[str | None, str | None, list[FunctionCall] | None]
        found = parser.parse(context.prefill + text, request, True, list(token_ids))
        reasoning, content, calls = found
        made = [
            ToolCall(
                id=getattr(call, "id", None) or "", function=FunctionCall(name=call.name, arguments=call.arguments)
            )
            for call in calls or ()
        ]
        items = [Item(type="reasoning", text=reasoning)] if reasoning else []
        items += [Item(type="content", text=content)] if content else []
        items += [Item(type="tool_call", call=call) for call in made]
        return ParsedOutput(
            reasoning=reasoning or None,
            content=content or None,
            tool_calls=made,
            tools_called=any(not _Arguments(call.function.arguments).cut for call in made),
            finish_reason=finish_reason_of(
                finish_reason, bool(made) and not _Arguments(made[-1].function.arguments).cut
            ),
            items=items,
        )


class HalvesBackend(RegisteredBackend):
    """Parses outputs with a reasoning parser and a tool parser that exist already, one output at a time.

    Args:
        format: the Format that grammars and rendering use.
        tokenizer, policy: as for `OutputParser`.
        halves: parsers with vLLM's interface, or ``None``.
    """

    def __init__(self, format: Format, tokenizer: Any, *, policy: Policy, halves: Mapping[Kind, Any]) -> None:
        super().__init__(DelegatingParser, format, tokenizer, policy=policy, special_text="kept", make_id=None)
        self._halves = (halves["reasoning"], halves["tool"])

    def _parser(self) -> Any:
        parser = super()._parser()
        parser.reasoning_parser, parser.tool_parser = self._halves
        return parser

    @property
    def has_reasoning(self) -> bool:
        return self._halves[0] is not None

    @property
    def has_tools(self) -> bool:
        return self._halves[1] is not None


class _Arguments:
    """Follows the arguments of one call."""

    def __init__(self, text: str = "") -> None:
        self._scanner = JsonScanner()
        self.add(text)

    def add(self, text: str) -> None:
        if self._scanner.state not in (ENDED, BROKEN):
            self._scanner.scan(text, 0)

    @property
    def cut(self) -> bool:
        """True if they are the beginning of a JSON value."""
        return self._scanner.state not in (ENDED, BROKEN)


class _NoTokenizer:
    """An empty vocabulary, for parsers that expect a tokenizer."""

    def get_vocab(self) -> dict[str, int]:
        return {}


def find_registered(reasoning: str | None, tools: str | None) -> BackendFactory | None:
    """Return the backend for names of which at least one is registered; ``None``: both are the catalogue's."""
    if not ParserManager.is_registered(tools, reasoning):
        return None
    parser_class = ParserManager.get_parser(tools, reasoning)
    assert parser_class is not None
    tools_registered = ToolParserManager.registered(tools) or ParserManager.registered(tools)
    known_tools = None if tools_registered else tools
    known_reasoning = None if ReasoningParserManager.registered(reasoning) else reasoning
    if known_tools is not None:
        fmt = named(known_tools, reasoning=known_reasoning, files=True)
    elif known_reasoning is not None:
        fmt = half("reasoning", known_reasoning, files=True)
    else:
        fmt = named("passthrough")
    return partial(RegisteredBackend, parser_class, fmt)


def half_of(backend: ParserBackend, kind: Kind, name: str | None) -> Any:
    """Return a new half of a parser, with vLLM's interface; ``None`` without such a part.

    Args:
        backend: what parses its outputs.
        kind: which half.
        name: the Format of this half, if the parser was made of two names.
    """
    if isinstance(backend, RegisteredBackend) or not isinstance(backend, FormatBackend):
        return getattr(backend, f"{kind}_parser", None)
    if not (backend.has_reasoning if kind == "reasoning" else backend.has_tools):
        return None
    fmt = backend.format if name is None else half(kind, name, files=True)
    return (reasoning_class if kind == "reasoning" else tool_class)(fmt)(backend.tokenizer)


def _request(context: OutputContext) -> Any:
    """Return the request with what was given next to it."""
    tools, tool_choice, messages = context.tools, context.tool_choice, context.messages
    if context.request is None:
        return ChatCompletionRequest(
            messages=list(messages or ()),
            tools=None if tools is None else list(tools),
            tool_choice=tool_choice or "auto",
        )
    given = {"tools": tools, "tool_choice": tool_choice, "messages": messages}
    return adjusted(context.request, **{name: value for name, value in given.items() if value is not None})
