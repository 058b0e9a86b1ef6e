"""Formats as parsers with vLLM's interface.

* A parser class consists of its Format. The managers make such classes; so can a subclass with ``format = …``.
* A streaming method continues the output that it has read so far. If the earlier text is another one, it begins a new
  output: it reads the earlier text silently first.
* A cut call is never a call to run: it is content of a whole output, and of a stream whose end would not show the cut.
  Other streams send calls while they are written; what of a cut call has not been sent then is not sent.
* Each half works alone. Together in a DelegatingParser they become one parser of the merged Format, which parses
  reasoning and calls in one pass, unless a subclass has changed how one of them parses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

from .._internal.backends.format import FormatBackend
from .._internal.backends.format_stream import FormatStream
from .._internal.backends.interface import OutputContext
from .._internal.backends.requests import get
from .._internal.backends.stream import StreamBackend
from .._internal.deltas import merge_deltas
from .._internal.machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, ID_TEXT, NAME_TEXT, REASONING_TEXT
from .._internal.stream import Stream
from .._internal.tokens.decoding import Vocabulary, vocabulary_of
from ..format import Channels, Format
from ..format._markers import spellings_of
from ..formats import IncompatibleFormatsError, merge
from ..messages import DeltaMessage, ExtractedToolCallInformation, FunctionCall
from ..policy import STREAMED_CALLS, WHOLE_CALLS, Policy
from ._abstract import Parser, Piece, ReasoningParser, ToolParser, _of_calls, _of_reasoning
from ._delegating import DelegatingParser
from ._marks import Marks
from ._pipeline import with_id
from ._requests import hides_cuts

__all__ = [
    "FormatParser",
    "FormatReasoningParser",
    "FormatToolParser",
    "one_pass",
    "parser_class",
    "reasoning_class",
    "tool_class",
]

_P = TypeVar("_P")

# vLLM's interface has no policies, so that of the environment does not count either.
_WHOLE: Final = replace(WHOLE_CALLS, strict=False)
_STREAMED: Final = replace(STREAMED_CALLS, strict=False)


class _HalfStream:
    """The output that a half is reading, and how much of it."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self._taken = 0

    def feed(self, make: Callable[[], Stream], piece: Piece, continues: bool) -> DeltaMessage | None:
        """Return the next delta. ``continues``: the text before the piece is known."""
        stream = self.stream
        if stream is None or not (continues or self._follows(piece.previous_text, piece.previous_token_ids)):
            stream = self.stream = make()
            self._taken = 0
            if not continues and (piece.previous_text or len(piece.previous_token_ids)):
                stream.feed(piece.previous_text, piece.previous_token_ids)
                self._taken = len(piece.previous_text)
        self._taken += len(piece.delta_text)
        return merge_deltas(stream.feed(piece.delta_text, piece.delta_token_ids))

    def _follows(self, text: str, token_ids: Sequence[int]) -> bool:
        return len(text) == self._taken and (self._taken > 0 or len(token_ids) > 0)

    def finish(self) -> DeltaMessage | None:
        """End the output; return the rest."""
        return None if self.stream is None else merge_deltas(self.stream.finish())


class FormatReasoningParser(ReasoningParser):
    """Parses the reasoning of a Format.

    If a turn consists of messages with channels, the streaming method returns calls too, because they are messages of
    their own. The method for whole outputs leaves them in the content as written.

    Args:
        tokenizer: the model's.
        format: the Format of the parser; by default that of its class.
    """

    format: Format
    reads_prompts = True

    def __init__(self, tokenizer: Any, *args: Any, format: Format | None = None, **kwargs: Any) -> None:
        ReasoningParser.__init__(self, tokenizer, *args, **kwargs)
        _set_format(self, format)
        known = vocabulary_of(tokenizer)
        self._backend = _backend_of(self.format, known)
        self._marks, self._count_marks = _marks(self.format, known)
        self._opened = self._backend.begins_in_reasoning or self.format.channels is not None
        self._prompt: str | None = None
        self._output = _HalfStream()
        self._reasoned = False
        self._ended = False

    @property
    def reasoning_start_str(self) -> str | None:
        reasoning = self.format.reasoning
        return None if reasoning is None or reasoning.open is None else reasoning.open.spellings[0]

    @property
    def reasoning_end_str(self) -> str | None:
        reasoning = self.format.reasoning
        return None if reasoning is None else reasoning.close.spellings[0]

    def _new_stream(self, *, whole: bool = False) -> Stream:
        channels = self.format.channels is not None
        return self._backend.stream(
            _context(
                _WHOLE if whole else _STREAMED,
                calls=channels,
                prompt=self._prompt,
                collect=whole,
                spans=whole and channels,
            )
        )

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt of the outputs that follow, whole or streamed; it is read from its last turn start on."""
        self._prompt = self._backend.turn_tail(prompt_token_ids)
        opened = self._marks.opened_by(prompt_token_ids)
        if opened is not None:
            self._opened = opened
        self._output = _HalfStream()

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        channels = self.format.channels
        stream = self._new_stream(whole=True)
        stream.feed(model_output)
        stream.finish()
        found = stream.result()
        if channels is not None and found.tool_calls:
            return found.reasoning, _with_calls(channels, model_output, stream.marked) or None
        return found.reasoning, found.content

    @_of_reasoning
    def extract_reasoning_streaming(self, piece: Piece) -> DeltaMessage | None:
        delta = self._output.feed(self._new_stream, piece, self.engine_based_streaming)
        stream = self._output.stream
        reasons = stream is not None and stream.in_reasoning
        content = delta is not None and bool(delta.content or delta.tool_calls)
        self._ended = self._ended or content or (self._reasoned and not reasons)
        self._reasoned = reasons
        return delta

    @property
    def opened(self) -> bool:
        """True if outputs begin inside reasoning."""
        return self._opened

    def has_engine_confirmed_reasoning_end(self) -> bool:
        return self._ended

    def finish_streaming(self) -> DeltaMessage | None:
        return self._output.finish()

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """True if the last marker of reasoning in the turn closes it, or there is no reasoning at all.

        False without a marker: reasoning may still begin.
        """
        return not self._backend.has_reasoning or self._marks.is_end(input_ids)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Sequence[int]) -> bool:
        if not _untouched(self, FormatReasoningParser, "is_reasoning_end"):
            return self.is_reasoning_end(input_ids)
        return self._marks.ends_in(input_ids, len(delta_ids))

    def extract_content_ids(self, input_ids: Sequence[int]) -> list[int]:
        return self._marks.content(input_ids, self._opened)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._count_marks.count(token_ids, self._opened and self.format.channels is None)

    def both(self, tool_parser: Any) -> Parser | None:
        if not _untouched(self, FormatReasoningParser, "extract_reasoning", "extract_reasoning_streaming"):
            return None
        if tool_parser is not None and not (isinstance(tool_parser, FormatToolParser) and tool_parser.untouched):
            return None
        return one_pass(self, tool_parser)


class FormatToolParser(ToolParser):
    """Parses the tool calls of a Format. Reasoning is text, except in messages with channels.

    Args:
        tokenizer: the model's.
        tools: the tools on offer, unless a request has its own.
        format: the Format of the parser; by default that of its class.
    """

    format: Format
    supports_required_and_named = False

    def __init__(
        self,
        tokenizer: Any,
        tools: Sequence[Any] | None = None,
        *args: Any,
        format: Format | None = None,
        **kwargs: Any,
    ) -> None:
        ToolParser.__init__(self, tokenizer, tools, *args, **kwargs)
        _set_format(self, format)
        self._backend = _backend_of(_calls_only(self.format), vocabulary_of(tokenizer))
        self._output = _HalfStream()

    @property
    def untouched(self) -> bool:
        """True if no subclass has changed how it parses."""
        return _untouched(self, FormatToolParser, "extract_tool_calls", "extract_tool_calls_streaming")

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        context = _context(_WHOLE, tools=self.tools, request=request, collect=True)
        found = self._backend.parse(model_output, (), "stop", context)
        return ExtractedToolCallInformation(
            tools_called=found.tools_called, tool_calls=found.tool_calls, content=found.content
        )

    @_of_calls
    def extract_tool_calls_streaming(self, piece: Piece) -> DeltaMessage | None:
        return self._output.feed(partial(self._new_stream, piece.request), piece, self.engine_based_streaming)

    def _new_stream(self, request: Any) -> Stream:
        return self._backend.stream(_context(_policy_of(request), tools=self.tools, request=request))

    def finish_streaming(self) -> DeltaMessage | None:
        return self._output.finish()

    def both(self) -> Parser | None:
        return one_pass(None, self) if self.untouched else None


class FormatParser(DelegatingParser):
    """Parses reasoning and tool calls of a Format in one pass.

    Args:
        tokenizer: the model's.
        tools: the tools on offer, unless a request has its own.
        format: the Format of the parser; by default that of its class.

    Raises:
        TypeError: there is no Format.
    """

    format: Format

    def __init__(
        self,
        tokenizer: Any,
        tools: Sequence[Any] | None = None,
        *args: Any,
        format: Format | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        _set_format(self, format)
        self._backend = _backend_of(self.format, vocabulary_of(tokenizer))
        self._tools = tools
        self._prompt: str | None = None
        self._output: FormatStream | None = None
        fmt = self.format
        if fmt.reasoning is not None or (fmt.channels is not None and fmt.channels.has_reasoning):
            self._reasoning_parser = reasoning_class(fmt)(tokenizer)
        if fmt.tools or fmt.channels is not None:
            self._tool_parser = tool_class(fmt)(tokenizer, tools)

    @property
    def output(self) -> StreamBackend | None:
        """The output that is being streamed, once it has begun."""
        return self._output

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt of the outputs that follow, whole or streamed."""
        self.set_prompt(self._backend.turn_tail(prompt_token_ids))
        super().adjust_initial_state_from_prompt(prompt_token_ids)

    def set_prompt(self, prompt: str) -> None:
        """Set the text of the prompt; its last turn is enough."""
        self._prompt = prompt

    def parse(
        self,
        model_output: str,
        request: Any = None,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        context = _context(_WHOLE, tools=self._tools, request=request, prompt=self._prompt, collect=True)
        found = self._backend.parse(model_output, model_output_token_ids, "stop", context)
        return found.reasoning, found.content, [with_id(call) for call in found.tool_calls] or None

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any = None,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None:
        state = self._stream_state
        if state.finished:
            raise RuntimeError("parse_delta() after finished=True: a parser serves one output; make another")
        if self._output is None:
            if prompt_token_ids is not None:
                self.adjust_initial_state_from_prompt(prompt_token_ids)
            context = _context(_policy_of(request), tools=self._tools, request=request, prompt=self._prompt)
            self._output = self._backend.open(context)
        deltas = self._output.feed(delta_text, delta_token_ids)
        if finished:
            state.finished = True
            deltas = deltas + self._output.finish("stop")
        return merge_deltas(deltas)

    def _as_one(self) -> Parser | None:
        return None


def one_pass(
    reasoning: FormatReasoningParser | None, calls: FormatToolParser | None, tools: Sequence[Any] | None = None
) -> FormatParser | None:
    """Return a parser that does in one pass what two halves do; ``None`` if their Formats cannot be merged.

    Without one of the halves its part is text, except calls in messages with channels.
    """
    half = calls if reasoning is None else reasoning
    assert half is not None
    if reasoning is None:
        fmt = _calls_only(half.format)
    elif calls is None:
        # In messages with channels a call is a message of its own, whose header has its name: it is no text.
        fmt = half.format if half.format.channels is not None else _without_calls(half.format)
    else:
        try:
            fmt = half.format if half.format is calls.format else _merged(half.format, calls.format)
        except IncompatibleFormatsError:
            return None
    offered = calls.tools if tools is None and calls is not None else tools
    return FormatParser(half.model_tokenizer, offered, format=fmt)


def _set_format(parser: Any, fmt: Format | None) -> None:
    if fmt is not None:
        parser.format = fmt
    elif not isinstance(getattr(parser, "format", None), Format):
        raise TypeError(f"{type(parser).__name__} has no Format: give one as format=")


def reasoning_class(fmt: Format) -> type[FormatReasoningParser]:
    """Return the class of a Format's reasoning parser."""
    return _class(FormatReasoningParser, fmt)


def tool_class(fmt: Format) -> type[FormatToolParser]:
    """Return the class of a Format's tool parser."""
    return _class(FormatToolParser, fmt)


def parser_class(fmt: Format) -> type[FormatParser]:
    """Return the class of a Format's parser."""
    return _class(FormatParser, fmt)


@lru_cache(maxsize=512)
def _class(base: type[_P], fmt: Format) -> type[_P]:
    name = "".join(part.capitalize() for part in re.split(r"\W+|_", fmt.name))
    docs = f"``{fmt.name}`` of the catalogue."
    return type(name + base.__name__, (base,), {"format": fmt, "__module__": base.__module__, "__doc__": docs})


@lru_cache(maxsize=256)
def _merged(reasoning: Format, tools: Format) -> Format:
    return merge(reasoning, tools)


@lru_cache(maxsize=256)
def _without_calls(fmt: Format) -> Format:
    return fmt.extend(tools=())


@lru_cache(maxsize=256)
def _calls_only(fmt: Format) -> Format:
    return fmt if fmt.reasoning is None else fmt.extend(reasoning=None)


def _untouched(parser: object, base: type[Any], *methods: str) -> bool:
    return all(getattr(type(parser), name) is getattr(base, name) for name in methods)


def _policy_of(request: Any) -> Policy:
    """Return the policy for a stream."""
    return _WHOLE if hides_cuts(request) else _STREAMED


def _context(
    policy: Policy,
    *,
    tools: Sequence[Any] | None = None,
    request: Any = None,
    calls: bool = True,
    prompt: str | None = None,
    collect: bool = False,
    spans: bool = False,
) -> OutputContext:
    """Return the context of one output. The request's tools replace ``tools``; without ``calls`` calls are text."""
    offered = get(request, "tools")
    return OutputContext(
        policy=policy,
        tools=tools if offered is None else offered,
        tool_choice=get(request, "tool_choice") if calls else "none",
        messages=get(request, "messages"),
        prompt=prompt,
        collect=collect,
        spans=spans,
    )


@lru_cache(maxsize=16)
def _backend_of(fmt: Format, known: Vocabulary) -> FormatBackend:
    """Return the backend of a Format and a vocabulary, which all requests share: vLLM makes a parser for each."""
    return FormatBackend(fmt, known, policy=_STREAMED)


@lru_cache(maxsize=16)
def _marks(fmt: Format, known: Vocabulary) -> tuple[Marks, Marks]:
    """Return (the markers that decide whether reasoning is over, the markers for counting its tokens)."""
    turn_starts = spellings_of(fmt.turn.start)
    special = fmt.special_tokens
    channels = fmt.channels
    if channels is not None:
        # In a turn of messages, reasoning is over where a message of another kind begins.
        words = spellings_of(channels.channel or channels.recipient)
        over = [mark + word for mark in words for word in channels.content]
        opens = [
            mark + word + body for mark in words for word in channels.reasoning for body in channels.body.spellings
        ]
        if channels.reasoning_body is not None:
            over = list(spellings_of(channels.body, channels.call_body))
            opens = list(channels.reasoning_body.spellings)
        ends = [
            text
            for marker in (channels.close, channels.call_close, channels.open)
            if marker
            for text in marker.spellings
        ]
        decides = Marks(known, closes=over, turn_starts=turn_starts, special=special, turn_opens=True)
        return decides, Marks(known, opens=opens, closes=ends, turn_starts=turn_starts, special=special, repeats=True)
    reasoning = fmt.reasoning
    if reasoning is None:
        marks = Marks(known, turn_starts=turn_starts, special=special)
        return marks, marks
    marks = Marks(
        known,
        opens=spellings_of(reasoning.open),
        closes=reasoning.close.spellings,
        turn_starts=turn_starts,
        special=special,
        turn_opens=reasoning.open is None,
        repeats=reasoning.repeats or all(text in known.ids for text in spellings_of(reasoning.open)),
    )
    return marks, marks


def _with_calls(channels: Channels, text: str, spans: Sequence[tuple[int, int, int]]) -> str:
    """Return an output without its reasoning: content as text, calls as written, with their headers."""
    closes = spellings_of(channels.call_close, channels.close)
    parts: list[str] = []
    done = 0
    in_call = False
    for kind, start, end in spans:
        if kind in (CONTENT_TEXT, REASONING_TEXT):
            if kind == CONTENT_TEXT:
                parts.append(text[start:end])
            done, in_call = end, False
        elif kind in (NAME_TEXT, ARGUMENT_TEXT, ID_TEXT):
            header = text[done:start]
            if not in_call:
                for close in closes:
                    header = header.removeprefix(close)
            parts += (header, text[start:end])
            done, in_call = end, True
        elif in_call:
            close = next((close for close in closes if text.startswith(close, start)), "")
            if close:
                parts.append(close)
                done, in_call = start + len(close), False
    if in_call:  # The output ends without the close of its last call.
        parts.append(text[done:])
    return "".join(parts)
