"""A stream over any parser of spec 2: what OutputParser hands out for parsers that are registered and not its own.

Rules of this module:

* It is used as ``untemplate.stream.Stream`` is, and knows nothing of how the parser works.
* What a foreign parser does not say (spans, how a call ended, diagnostics) is not made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..messages import DeltaMessage, FunctionCall, Item, ParsedOutput, ToolCall
from .abstract import Parser

__all__ = ["DelegatingStream", "parsed_of"]


class DelegatingStream:
    """Parses one output as it comes.

    Args:
        parser: fresh; it serves this output only.
        request: what the parser is told of the request.
        prompt_token_ids: the prompt, if it is known.
        collect: keep what :meth:`result` needs.
    """

    def __init__(
        self,
        parser: Parser,
        request: Any = None,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        collect: bool = False,
    ) -> None:
        self._parser = parser
        self._request = request
        self._prompt = prompt_token_ids
        self._collected: list[DeltaMessage] | None = [] if collect else None
        self._finished = False
        self._reason: str | None = None
        self._called = False
        self._reasons = False
        self._pending: list[DeltaMessage] = []

    def begin(self, prefill: str) -> None:
        """Text of the message that stands in the prompt: parsed as the beginning of the output, told with the first
        delta."""
        self._pending = self._take(prefill, (), finished=False)

    def feed(self, text: str, token_ids: Sequence[int] = ()) -> list[DeltaMessage]:
        """The next piece of the output, and the token ids that have come with it.

        Raises:
            RuntimeError: after ``finish``.
        """
        if self._finished:
            raise RuntimeError("feed() after finish(): a stream parses one output; open a new one with parser.stream()")
        pending, self._pending = self._pending, []
        return pending + self._take(text, token_ids, finished=False)

    def finish(self, finish_reason: str | None = "stop") -> list[DeltaMessage]:
        """The output has ended: says what was still open. Later calls do nothing and return nothing."""
        if self._finished:
            return []
        self._finished = True
        self._reason = finish_reason
        pending, self._pending = self._pending, []
        return pending + self._take("", (), finished=True)

    def _take(self, text: str, ids: Sequence[int], *, finished: bool) -> list[DeltaMessage]:
        delta = self._parser.parse_delta(text, list(ids), self._request, self._prompt, finished=finished)
        if delta is None:
            return []
        self._called = self._called or bool(delta.tool_calls)
        self._reasons = delta.content is None and not delta.tool_calls
        if self._collected is not None:
            self._collected.append(delta)
        return [delta]

    @property
    def finish_reason(self) -> str:
        """The engine's, with ``tool_calls`` in place of ``stop`` where there are calls."""
        reason = self._reason or "stop"
        return "tool_calls" if reason == "stop" and self._called else reason

    def dump(self, delta: DeltaMessage) -> dict[str, Any]:
        """A delta as it goes on the wire: without what is None."""
        return delta.model_dump(exclude_none=True)

    @property
    def in_reasoning(self) -> bool:
        """Whether what has been said last is reasoning."""
        return self._reasons

    def result(self) -> ParsedOutput:
        """The whole message.

        Raises:
            RuntimeError: the stream does not collect, or has not been finished.
        """
        if self._collected is None:
            raise RuntimeError("result() needs parser.stream(collect=True)")
        if not self._finished:
            raise RuntimeError("result() before finish()")
        items: list[Item] = []
        calls: dict[int, ToolCall] = {}
        for delta in self._collected:
            _add(items, "reasoning", delta.reasoning)
            _add(items, "content", delta.content)
            for piece in delta.tool_calls or ():
                call = calls.get(piece.index)
                if call is None:
                    call = calls[piece.index] = ToolCall(id="", function=FunctionCall(name="", arguments=""))
                    items.append(Item(type="tool_call", call=call))
                call.id = call.id or piece.id or ""
                if piece.function is not None:
                    call.function.name = call.function.name or piece.function.name or ""
                    call.function.arguments += piece.function.arguments or ""
        return ParsedOutput(
            reasoning_content="".join(item.text or "" for item in items if item.type == "reasoning") or None,
            content="".join(item.text or "" for item in items if item.type == "content") or None,
            tool_calls=list(calls.values()),
            tools_called=bool(calls),
            finish_reason=self.finish_reason,
            items=items,
        )


def parsed_of(
    found: tuple[str | None, str | None, list[FunctionCall] | None], finish_reason: str | None
) -> ParsedOutput:
    """What :meth:`Parser.parse` says, as OutputParser says it."""
    reasoning, content, calls = found
    items: list[Item] = []
    _add(items, "reasoning", reasoning)
    _add(items, "content", content)
    made = [
        ToolCall(id=getattr(call, "id", None) or "", function=FunctionCall(name=call.name, arguments=call.arguments))
        for call in calls or ()
    ]
    items += [Item(type="tool_call", call=call) for call in made]
    reason = finish_reason or "stop"
    return ParsedOutput(
        reasoning_content=reasoning or None,
        content=content or None,
        tool_calls=made,
        tools_called=bool(made),
        finish_reason="tool_calls" if reason == "stop" and made else reason,
        items=items,
    )


def _add(items: list[Item], kind: str, text: str | None) -> None:
    if not text:
        return
    if items and items[-1].type == kind:
        items[-1].text = (items[-1].text or "") + text
    else:
        items.append(Item(type=kind, text=text))
