"""Formats as parsers with vLLM's interface.

* A parser class consists of its Format. The managers make such classes; so can a subclass with ``format = …``.
* A streaming method that is given no earlier text begins a new output.
* Each half works alone. Together in a DelegatingParser they become one parser of the merged Format, which parses
  reasoning and calls in one pass, unless a subclass has changed how one of them parses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from ..backend import OutputContext
from ..deltas import merge_deltas
from ..format import Channels, Format, Marker
from ..format_backend import FormatBackend, FormatStream
from ..formats import IncompatibleFormatsError, merge
from ..machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, ID_TEXT, NAME_TEXT, REASONING_TEXT
from ..messages import DeltaMessage, ExtractedToolCallInformation, FunctionCall
from ..policy import Policy
from ..requests import get
from ..stream import Stream
from ..tokens import Vocabulary, vocabulary_of
from ._marks import Marks
from ._pipeline import with_id
from .abstract import Parser, ReasoningParser, ToolParser
from .delegating import DelegatingParser

__all__ = [
    "FormatParser",
    "FormatReasoningParser",
    "FormatToolParser",
    "parser_class",
    "reasoning_class",
    "tool_class",
]

_P = TypeVar("_P")

_POLICY = Policy(strict=False)
"""vLLM's interface has no policies."""


class FormatReasoningParser(ReasoningParser):
    """Parses the reasoning of a Format.

    If a turn consists of messages with channels, the streaming method returns calls too, because they are messages of
    their own. The method for whole outputs leaves them in the content as written.
    """

    format: ClassVar[Format]

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        known = vocabulary_of(tokenizer)
        self._backend = FormatBackend(self.format, known, policy=_POLICY)
        self._marks, self._count_marks = _marks(self.format, known)
        self._opened = self._backend.begins_in_reasoning or self.format.channels is not None
        self._prompt: str | None = None
        self._stream: Stream | None = None

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
            _context(calls=channels, prompt=self._prompt, collect=whole, spans=whole and channels)
        )

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt of the outputs that follow; it is read from its last turn start on."""
        self._prompt = self._backend.turn_tail(prompt_token_ids)
        opened = self._marks.opened_by(prompt_token_ids)
        if opened is not None:
            self._opened = opened
        self._stream = None

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        channels = self.format.channels
        stream = self._new_stream(whole=True)
        stream.feed(model_output)
        stream.finish()
        found = stream.result()
        if channels is not None and found.tool_calls:
            return found.reasoning, _with_calls(channels, model_output, stream.marked) or None
        return found.reasoning, found.content

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        if self._stream is None or not (previous_text or len(previous_token_ids)):
            self._stream = self._new_stream()
        return merge_deltas(self._stream.feed(delta_text, delta_token_ids))

    def finish_streaming(self) -> DeltaMessage | None:
        return None if self._stream is None else merge_deltas(self._stream.finish())

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return self._marks.is_end(input_ids, self._opened)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Sequence[int]) -> bool:
        return self._marks.ends_in(input_ids, len(delta_ids))

    def extract_content_ids(self, input_ids: Sequence[int]) -> list[int]:
        return self._marks.content(input_ids, self._opened)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._count_marks.count(token_ids, self._opened and self.format.channels is None)

    def both(self, tool_parser: Any) -> Parser | None:
        if not _untouched(self, FormatReasoningParser, "extract_reasoning", "extract_reasoning_streaming"):
            return None
        if tool_parser is None:
            if self.format.channels is not None:
                return None
            return FormatParser(self.model_tokenizer, format=_without_calls(self.format))
        if not isinstance(tool_parser, FormatToolParser) or not tool_parser.untouched:
            return None
        try:
            merged = _merged(self.format, tool_parser.format)
        except IncompatibleFormatsError:
            return None
        return FormatParser(self.model_tokenizer, format=merged, tools=tool_parser.tools)


class FormatToolParser(ToolParser):
    """Parses the tool calls of a Format. Reasoning is text, except in messages with channels."""

    format: ClassVar[Format]

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)
        self._calls_only = _calls_only(self.format)
        self._backend = FormatBackend(self._calls_only, vocabulary_of(tokenizer), policy=_POLICY)
        self._stream: Stream | None = None

    @property
    def untouched(self) -> bool:
        """True if no subclass has changed how it parses."""
        return _untouched(self, FormatToolParser, "extract_tool_calls", "extract_tool_calls_streaming")

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        context = _context(tools=self.tools, request=request, collect=True)
        found = self._backend.parse(model_output, (), "stop", context)
        return ExtractedToolCallInformation(
            tools_called=found.tools_called, tool_calls=found.tool_calls, content=found.content
        )

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        if self._stream is None or not (previous_text or len(previous_token_ids)):
            self._stream = self._backend.stream(_context(tools=self.tools, request=request))
        return merge_deltas(self._stream.feed(delta_text, delta_token_ids))

    def finish_streaming(self) -> DeltaMessage | None:
        return None if self._stream is None else merge_deltas(self._stream.finish())

    def both(self) -> Parser | None:
        if not self.untouched:
            return None
        return FormatParser(self.model_tokenizer, format=self._calls_only, tools=self.tools)


class FormatParser(DelegatingParser):
    """Parses reasoning and tool calls of a Format in one pass.

    Args:
        tokenizer: the model's.
        tools: the tools on offer, unless a request has its own.
        format: the Format, if the class has none.

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
        if format is not None:
            self.format = format
        elif not isinstance(getattr(self, "format", None), Format):
            raise TypeError(f"{type(self).__name__} has no Format: give one as format=")
        self._backend = FormatBackend(self.format, vocabulary_of(tokenizer), policy=_POLICY)
        self._tools = tools
        self._output: FormatStream | None = None
        fmt = self.format
        if fmt.reasoning is not None or (fmt.channels is not None and fmt.channels.reasoning):
            self._reasoning_parser = reasoning_class(fmt)(tokenizer)
        if fmt.tools or fmt.channels is not None:
            self._tool_parser = tool_class(fmt)(tokenizer, tools)

    def parse(
        self,
        model_output: str,
        request: Any = None,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        context = _context(tools=self._tools, request=request, collect=True)
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
            prompt = None
            if prompt_token_ids is not None:
                prompt = self._backend.turn_tail(prompt_token_ids)
                self.adjust_initial_state_from_prompt(prompt_token_ids)
            context = _context(tools=self._tools, request=request, prompt=prompt)
            self._output = self._backend.open(context)
        deltas = self._output.feed(delta_text, delta_token_ids)
        if finished:
            state.finished = True
            deltas = deltas + self._output.finish("stop")
        return merge_deltas(deltas)

    def _as_one(self) -> Parser | None:
        return None


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


def _context(
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
        policy=_POLICY,
        tools=tools if offered is None else offered,
        tool_choice=get(request, "tool_choice") if calls else "none",
        messages=get(request, "messages"),
        prompt=prompt,
        collect=collect,
        spans=spans,
    )


def _marks(fmt: Format, known: Vocabulary) -> tuple[Marks, Marks]:
    """Return (the markers that decide whether reasoning is over, the markers for counting its tokens)."""
    turn_starts = _spellings(fmt.turn.start)
    special = fmt.special_tokens
    channels = fmt.channels
    if channels is not None:
        # In a turn of messages, reasoning is over where a message of another kind begins.
        words = () if channels.channel is None else channels.channel.spellings
        over = [mark + word for mark in words for word in channels.content]
        opens = [
            mark + word + body for mark in words for word in channels.reasoning for body in channels.body.spellings
        ]
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
        opens=_spellings(reasoning.open),
        closes=reasoning.close.spellings,
        turn_starts=turn_starts,
        special=special,
        turn_opens=reasoning.open is None,
        repeats=reasoning.repeats or all(text in known.ids for text in _spellings(reasoning.open)),
    )
    return marks, marks


def _spellings(*markers: Marker | None) -> list[str]:
    return [text for marker in markers if marker is not None for text in marker.spellings]


def _with_calls(channels: Channels, text: str, spans: Sequence[tuple[int, int, int]]) -> str:
    """Return an output without its reasoning: content as text, calls as written, with their headers."""
    closes = _spellings(channels.call_close, channels.close)
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
            for close in closes:
                if text.startswith(close, start):
                    parts.append(close)
                    done, in_call = start + len(close), False
                    break
    return "".join(parts)
