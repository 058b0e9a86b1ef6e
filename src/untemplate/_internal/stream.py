"""Stream: one output, parsed while it arrives.

* A stream belongs to one request and one thread. It keeps what is open, not the output, unless ``collect`` is set.
* ``feed`` accepts the text cut anywhere. ``finish`` must be called, and may be called again.
* A :class:`StreamBackend` does the parsing; the stream checks its use, collects deltas and makes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..messages import DeltaMessage, ParsedOutput, ToolCall
from ..policy import Policy
from .backends.stream import StreamBackend
from .deltas import REASONS, Collected, finish_reason_of
from .machine.snapshot import Snapshot
from .reasoning_field import name_reasoning
from .tokens.decoding import Detokenizer, TokenTable
from .tokens.spans import ParsedTokens

__all__ = ["Stream"]

_FEED_AFTER_FINISH: Final = "feed() after finish(): a stream parses one output; open a new one with parser.stream()"


class Stream:
    """Parses one output while it arrives. :meth:`OutputParser.stream` makes it.

    Args:
        backend: fresh; it parses this output only.
        policy: names the field of reasoning in dumps, and the finish reason of cut outputs.
        collect: keep what :meth:`result` needs.
        prefill: text of the message that is in the prompt: parsed as the beginning of the output, and returned with
            the first delta.
        tokens: the text of each token id, for :meth:`feed_tokens`.
    """

    __slots__ = (
        "_backend",
        "_collected",
        "_detokenizer",
        "_finish_reason",
        "_finished",
        "_pending",
        "_plain",
        "_policy",
        "_prefill",
        "_tokens",
    )

    def __init__(
        self,
        backend: StreamBackend,
        policy: Policy | None = None,
        collect: bool = False,
        prefill: str = "",
        tokens: TokenTable | None = None,
    ) -> None:
        self._backend = backend
        self._policy = Policy() if policy is None else policy
        self._collected = Collected() if collect else None
        self._pending: list[DeltaMessage] | None = (backend.feed(prefill, ()) or None) if prefill else None
        self._plain = not (collect or self._pending)
        """True while deltas go out as they come: none waits, none is collected, and the stream is open."""
        self._finished = False
        self._finish_reason: str | None = None
        self._prefill = prefill
        self._tokens = tokens
        self._detokenizer: Detokenizer | None = None

    def feed(self, text: str, token_ids: Sequence[int] = ()) -> list[DeltaMessage]:
        """Take the next part of the output, with the token ids that have come with it.

        Returns:
            The deltas that it completes, in order; often one, often none.

        Raises:
            RuntimeError: after ``finish``.
            TypeError: ``text`` is not a str.
        """
        if not isinstance(text, str):
            raise TypeError(f"feed() text: expected str, got {type(text).__name__}: {text!r:.200}")
        if self._plain:
            return self._backend.feed(text, token_ids)
        if self._finished:
            raise RuntimeError(_FEED_AFTER_FINISH)
        deltas = self._backend.feed(text, token_ids)
        if self._pending is not None or self._collected is None:
            return self._taken(deltas)
        if deltas:
            self._collected.add(deltas)
        return deltas

    def feed_tokens(self, token_ids: Sequence[int]) -> list[DeltaMessage]:
        """Take the next token ids of the output; their text is read from the parser's tokenizer.

        A stream takes either ids or text, not both. Bytes of an unfinished character wait for the next ids.

        Args:
            token_ids: a list, or an array with ``tolist()``.

        Returns:
            The deltas that they complete, as :meth:`feed` does.

        Raises:
            ValueError: an id is not in the vocabulary, or the parser has no tokenizer.
            TypeError: an id is not an integer.
            RuntimeError: after ``finish``.
        """
        if self._finished:
            raise RuntimeError(_FEED_AFTER_FINISH)
        if self._detokenizer is None:
            if not self._tokens:
                raise ValueError("feed_tokens() needs a parser with a tokenizer")
            self._detokenizer = Detokenizer(self._tokens, offsets=self._collected is not None)
        ids = token_ids.tolist() if hasattr(token_ids, "tolist") else token_ids
        text, places = self._detokenizer.feed(ids)
        return self._taken(self._backend.feed_tokens(text, ids, places))

    def accept(self, delta: DeltaMessage) -> list[DeltaMessage]:
        """Take a part of the message that somebody else has parsed, such as a server with a parser of its own.

        It becomes part of the message unchanged, but its calls are numbered after those that came before. A call that
        is being parsed ends first.

        Returns:
            The deltas that can be sent now.

        Raises:
            RuntimeError: after ``finish``.
        """
        if self._finished:
            raise RuntimeError("accept() after finish(): a stream parses one output; open a new one")
        return self._taken(self._backend.accept(delta))

    def finish(self, finish_reason: str | None = "stop") -> list[DeltaMessage]:
        """End the output and return the deltas of what was still open. Later calls return nothing.

        Args:
            finish_reason: the engine's; see :attr:`finish_reason`. Words of Messages, Responses and Gemini become those
                of Chat Completions.

        Raises:
            TypeError: ``finish_reason`` is neither a str nor None.
        """
        if finish_reason is not None and not isinstance(finish_reason, str):
            raise TypeError(
                f"finish_reason: expected str or None, got {type(finish_reason).__name__}: {finish_reason!r:.200}"
            )
        if self._finished:
            return []
        rest = self._detokenizer.finish() if self._detokenizer is not None else ""
        deltas = self._taken(self._backend.feed_tokens(rest, (), ())) if rest else []
        self._finished = True
        self._finish_reason = reason = REASONS.get(finish_reason or "", finish_reason)
        deltas = deltas + self._taken(self._backend.finish(reason))
        self._plain = False
        return deltas

    def _taken(self, deltas: list[DeltaMessage]) -> list[DeltaMessage]:
        """Add what is waiting to these deltas, and keep them for the result."""
        if self._pending is not None:
            deltas = self._pending + deltas
            self._pending = None
            self._plain = self._collected is None
        if self._collected is not None:
            self._collected.add(deltas)
        return deltas

    @property
    def finish_reason(self) -> str:
        """The engine's finish reason, with ``tool_calls`` in place of ``stop`` where there are calls.

        Never ``tool_calls`` if the last call was cut: a client must not run it.
        """
        reason = finish_reason_of(self._finish_reason, self._backend.has_calls)
        if self._backend.ends_in_cut_call:
            return "stop" if reason == "tool_calls" else reason
        if reason == "length" and self._policy.length_with_calls == "tool_calls" and self._backend.has_whole_calls:
            return "tool_calls"
        return reason

    def dump(self, delta: DeltaMessage) -> dict[str, Any]:
        """Return a delta as it is sent: without nulls, reasoning in the field that the policy names."""
        return name_reasoning(delta.model_dump(exclude_none=True), self._policy.reasoning_field)

    @property
    def in_reasoning(self) -> bool:
        """True while the output is inside reasoning."""
        return self._backend.in_reasoning

    @property
    def begins_call(self) -> bool:
        """True if the output so far has a call, or is inside what may be one."""
        return self._backend.has_calls or self._backend.in_call

    def calls(self) -> list[ToolCall]:
        """Return the calls of the deltas so far, where they are collected."""
        return [] if self._collected is None else self._collected.message().tool_calls

    @property
    def marked(self) -> Sequence[tuple[int, int, int]]:
        """(kind, start, end) of each stretch of the output so far, where spans are kept. Kinds are those of
        ``untemplate._internal.machine.ledger``. What comes after the text of the deltas so far may still change."""
        return self._backend.marked

    @property
    def snapshot(self) -> Snapshot | None:
        """The place in the output, and what is held back and why; ``None`` for the parsers of others."""
        return self._backend.snapshot

    def result(self) -> ParsedOutput:
        """Return the whole message.

        Raises:
            RuntimeError: the stream does not collect, or has not been finished.
        """
        if self._collected is None:
            raise RuntimeError("result() needs parser.stream(collect=True)")
        if not self._finished:
            raise RuntimeError("result() before finish()")
        result = self._collected.message(self._finish_reason)
        result.reasoning_field = self._policy.reasoning_field
        backend = self._backend
        backend.complete(result)
        if result.tools_called:
            result.tools_called = backend.has_whole_calls or not backend.ends_in_cut_call
        result.finish_reason = self.finish_reason
        return result

    def token_result(self) -> ParsedTokens:
        """Return the whole message with the tokens of each part; made with ``collect`` and ``spans``, it has them all.

        Raises:
            RuntimeError: as :meth:`result`.
        """
        result = self.result()
        detokenizer = self._detokenizer
        ids = [] if detokenizer is None else detokenizer.ids
        shift = len(self._prefill)
        offsets = [(start + shift, end + shift) for start, end in ([] if detokenizer is None else detokenizer.offsets)]
        return ParsedTokens(result, ids, offsets)

    def __repr__(self) -> str:
        state = "finished" if self._finished else "in reasoning" if self.in_reasoning else "open"
        return f"<Stream over {type(self._backend).__name__}, {state}{', collecting' * (self._collected is not None)}>"
