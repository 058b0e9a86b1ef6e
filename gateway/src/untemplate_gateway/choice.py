"""One choice of a response: chunks of an engine's output in, deltas out.

Stop strings, reasoning budgets and log probabilities apply to the parsed output, not to the raw text: a stop string
has no effect in reasoning, markup and arguments. Requests without them take a shorter path (`_feed_plain`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from untemplate._internal.deltas import merge_tool_calls
from untemplate._internal.machine.ledger import CONTENT_TEXT
from untemplate._internal.stream import Stream
from untemplate.messages import DeltaMessage, DeltaToolCall, Item, ParsedOutput

from .engines.base import EngineChunk
from .generation import Ended, Generation, TokenLogprob, Usage
from .prompt import Prompt

Step = tuple[DeltaMessage, list[TokenLogprob] | None] | tuple[DeltaMessage, list[TokenLogprob] | None, list[int]]
"""A delta, the log probabilities of the tokens of its content and, if they are asked for, the ids of the tokens since
the last delta."""


class ChoiceStream:
    """Parses one output.

    Args:
        stream: a stream of the parser with ``collect``, and with ``spans`` if the request asks for logprobs.
        prompt: the prompt that the output answers.
        budget: most tokens of reasoning, after which it is to be closed; ``None`` for no limit.
    """

    def __init__(
        self, index: int, request: Generation, stream: Stream, prompt: Prompt, budget: int | None = None
    ) -> None:
        self.index = index
        self.prompt = prompt
        self.stream = stream
        self.usage = Usage()
        self.raw: list[str] = []
        self.ids: list[int] | None = [] if request.token_ids else None
        """The token ids of the output, if they are asked for."""
        self._ids_sent = 0
        self._by_token = request.by_token
        self._sampled: list[TokenLogprob] = []
        """Log probabilities of all tokens, if the request asks for them by token."""
        self.stopped: str | None = None
        """The stop string that was found; the output ends before it."""
        self._stop_token: int | None = None
        """The stop token that ended the output."""
        self.finish_reason: str | None = None
        self._notes = request.notes
        self._include_reasoning = request.include_reasoning
        self._budget = budget
        self._stops = _Stops(request.stop) if request.stop else None
        self._aligned = _LogprobAligner(stream) if request.logprobs is not None and not self._by_token else None
        self._logprobs: list[TokenLogprob] = []
        self.tokens = 0
        """Number of tokens so far."""
        self._before = 0
        self.closes = 0
        """How often the gateway has closed reasoning."""
        self._ends = frozenset(request.sampling.stop_token_ids or ())
        plain = self._stops is None and self._aligned is None and self._budget is None and request.include_reasoning
        plain = plain and not self._ends
        self._feed: Callable[[EngineChunk], list[Step]] = self._feed_plain if plain else self._feed_all
        self.feed = self._feed if self.ids is None else self._feed_ids
        self._held_calls: list[DeltaToolCall] | None = None
        """Calls that the server parsed, while its content has calls as well: those that are equal are made once."""
        self._passes_calls = False
        self.left = False
        """True if the engine's stream is to be closed: at a stop string, or when the reasoning budget is used up."""

    def _feed_plain(self, chunk: EngineChunk) -> list[Step]:
        deltas = self._parsed(chunk)
        if len(deltas) == 1:
            delta = deltas[0]
            if (delta.reasoning is None) + (delta.content is None) + (delta.tool_calls is None) == 2:
                return [(delta, None)]
        return [(part, None) for delta in deltas for part in _parts(delta)]

    def _feed_ids(self, chunk: EngineChunk) -> list[Step]:
        """Feed a chunk of which the ids are recorded, with all that the parser drops and with the token that stops."""
        if self.ids is not None and self.stopped is None:
            self.ids += chunk.token_ids
            self._sampled += chunk.logprobs or () if self._by_token else ()
        return self._with_ids(self._feed(chunk))

    def _with_ids(self, steps: list[Step]) -> list[Step]:
        """Give the new ids to the first step. Without a step they wait for the next, unless they are asked for by
        token."""
        if self.ids is None or not (steps or (self._by_token and len(self.ids) > self._ids_sent)):
            return steps
        delta, logprobs = steps[0][:2] if steps else (DeltaMessage(), None)
        since, self._ids_sent = self._ids_sent, len(self.ids)
        if self._by_token and self._sampled:
            logprobs = self._sampled[since:]
        return [(delta, logprobs, self.ids[since:]), *steps[1:]]

    def _feed_all(self, chunk: EngineChunk) -> list[Step]:
        if self.stopped is not None:
            return []
        ended = chunk.token_ids and chunk.token_ids[-1] in self._ends
        if ended and chunk.finish_reason is None:
            # The token is not part of the output. Engines that send several tokens at once leave out its text.
            text = chunk.text if len(chunk.token_ids) > 1 else ""
            self._stop_token = chunk.token_ids[-1]
            chunk = EngineChunk(text, chunk.token_ids[:-1], "stop", None, chunk.usage)
        if self._aligned is not None:
            self._aligned.tokens(chunk)
        steps = self._through(self._parsed(chunk))
        self.left = bool(self.stopped is not None or self.over_budget or ended)
        return steps

    def _parsed(self, chunk: EngineChunk) -> list[DeltaMessage]:
        text, ids, stream = chunk.text, chunk.token_ids, self.stream
        self.raw.append(text)
        delta = chunk.delta
        count = len(ids) or (1 if text or delta is not None else 0)
        self.tokens += count
        if stream.in_reasoning if delta is None else delta.reasoning is not None:
            self.usage.reasoning_tokens += count
        if chunk.finish_reason is not None:
            self.finish_reason = chunk.finish_reason
        if chunk.usage is not None:
            # An output whose reasoning was closed has several jobs: completions add up, the prompt is the first job's.
            usage = self.usage
            usage.prompt_tokens = usage.prompt_tokens or chunk.usage.prompt_tokens
            usage.cached_tokens = usage.cached_tokens or chunk.usage.cached_tokens
            usage.prompt_ns = usage.prompt_ns or chunk.usage.prompt_ns
            usage.completion_ns += chunk.usage.completion_ns
            if chunk.usage.completion_tokens:
                self.tokens = self._before + chunk.usage.completion_tokens
        if delta is None:
            return stream.feed(text, ids)
        return stream.accept(delta) if delta.tool_calls is None else self._called(delta)

    def _called(self, delta: DeltaMessage) -> list[DeltaMessage]:
        """Take calls that the server parsed. They wait for the end if its content has calls too."""
        if self._held_calls is None and (self._passes_calls or not self.stream.begins_call):
            self._passes_calls = True
            return self.stream.accept(delta)
        self._held_calls = self._held_calls or []
        self._held_calls += delta.tool_calls or ()
        return []

    def _further_calls(self) -> list[DeltaMessage]:
        """Return those calls that waited and are not in the content. Each call in it counts for one that waited."""
        if not self._held_calls:
            return []
        made = Counter(_meaning(call.function) for call in self.stream.calls())
        deltas: list[DeltaMessage] = []
        for call in merge_tool_calls(self._held_calls):
            meaning = _meaning(call.function)
            if made[meaning]:
                made[meaning] -= 1
                self._notes.add("tool_calls: the upstream parsed a call and left it in the content as well; made once")
            else:
                deltas += self.stream.accept(DeltaMessage(tool_calls=[call]))
        return deltas

    @property
    def over_budget(self) -> bool:
        """True if the reasoning budget is used up and the reasoning is still open."""
        return (
            self._budget is not None
            and self.usage.reasoning_tokens >= self._budget
            and self.stream.in_reasoning
            and self.finish_reason is None
        )

    def force(self, parts: Sequence[tuple[str, Sequence[int]]]) -> list[Step]:
        """Feed text that the gateway writes instead of the model: the close of reasoning. Another job continues.

        Args:
            parts: the text in parts; each special token is a part of its own, with its id if that is known.
        """
        self._before = self.tokens
        self.left = False
        self.closes += 1
        deltas = []
        for text, ids in parts:
            self.raw.append(text)
            if self.ids is not None:
                self.ids += ids
            deltas += self.stream.feed(text, ids)
            if self._aligned is not None:
                self._aligned.skip(len(text))
        return self._with_ids(self._through(deltas))

    def finish(self, reason: str | None = None) -> tuple[list[Step], Ended]:
        """End the output and return its last steps.

        Args:
            reason: finish reason that replaces the engine's (``error``).
        """
        reason = reason or ("stop" if self.stopped is not None else self.finish_reason)
        rest = self._further_calls()
        rest += self.stream.finish(reason or "stop")
        steps = self._through(rest) if self.stopped is None else []
        if self.stopped is None and self._stops is not None:
            steps += self._checked([DeltaMessage(content=text) for text in self._stops.rest()])
        steps = self._with_ids(steps)
        parsed = self.stream.result()
        if self.stopped is not None and self._stops is not None:
            parsed = _cut(parsed, self._stops.sent)
        if not self._include_reasoning:
            parsed.reasoning_content = None
            parsed.items = [item for item in parsed.items if item.type != "reasoning"]
        if self._aligned is not None and not self._aligned.seen and self.tokens:
            self._notes.ignored("logprobs", "the engine reports none")
        usage = self.usage
        usage.completion_tokens = self.tokens
        usage.reasoning_tokens = min(usage.reasoning_tokens, usage.completion_tokens)
        ended = Ended(
            index=self.index,
            finish_reason=parsed.finish_reason,
            parsed=parsed,
            raw="".join(self.raw),
            stop=self.stopped,
            logprobs=self._logprobs if self._aligned is not None and self._aligned.seen else self._sampled or None,
            token_ids=self._reported_ids(),
            stop_token=self._stop_token,
            last_ids=None if self.ids is None else self.ids[self._ids_sent :],
            usage=usage,
        )
        return steps, ended

    def _reported_ids(self) -> list[int] | None:
        """Return the token ids that the request asks for; with a note if the engine reports none."""
        if self.ids is not None and not self.ids and self.tokens:
            self._notes.ignored("return_token_ids", "the engine reports none")
            return None
        return self.ids

    def _through(self, deltas: list[DeltaMessage]) -> list[Step]:
        """Return the deltas up to a stop string, without the parts that the request leaves out, with their logprobs."""
        deltas = [part for delta in deltas for part in _parts(delta)]
        if self._stops is not None:
            deltas = self._stops.feed(deltas)
            self.stopped = self._stops.found
        return self._checked(deltas)

    def _checked(self, deltas: list[DeltaMessage]) -> list[Step]:
        if not self._include_reasoning:
            deltas = [delta for delta in deltas if delta.reasoning is None]
        aligned = self._aligned
        if aligned is None:
            return [(delta, None) for delta in deltas]
        steps: list[Step] = []
        for delta in deltas:
            found = aligned.take(len(delta.content)) if delta.content else None
            if found:
                self._logprobs += found
            steps.append((delta, found))
        return steps


def _number(text: str) -> float:
    """Return a number of JSON, of which servers write ``1.0`` as ``1``."""
    value = float(text)
    return int(value) if value.is_integer() else value


_arguments: Final = msgspec.json.Decoder(float_hook=_number)


def _meaning(function: Any) -> tuple[str, str]:
    """Return the name and the arguments of a call, written in one way where they are JSON."""
    name, arguments = (function.name or "", function.arguments or "") if function is not None else ("", "")
    try:
        return name, msgspec.json.encode(_arguments.decode(arguments), order="sorted").decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return name, arguments


def _parts(delta: DeltaMessage) -> list[DeltaMessage]:
    """Split a delta into deltas of one kind each, in the order of the output."""
    parts = []
    if delta.reasoning is not None:
        parts.append(DeltaMessage(reasoning=delta.reasoning))
    if delta.content is not None:
        parts.append(DeltaMessage(content=delta.content))
    if delta.tool_calls is not None:
        parts.append(DeltaMessage(tool_calls=delta.tool_calls))
    return parts


class _Stops:
    """Finds stop strings in content. Buffers only text that may still become one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._longest = max(map(len, stops))
        self._held = ""
        self.found: str | None = None
        self.sent = 0
        """Number of characters of content that were sent."""

    def feed(self, deltas: list[DeltaMessage]) -> list[DeltaMessage]:
        out: list[DeltaMessage] = []
        for delta in deltas:
            if delta.content is None:
                # A tool call ends the content before it: a stop string cannot continue after it.
                if delta.tool_calls:
                    out += [DeltaMessage(content=text) for text in self.rest()]
                out.append(delta)
                continue
            text = self._feed(delta.content)
            if text:
                out.append(DeltaMessage(content=text))
            if self.found is not None:
                break
        return out

    def _feed(self, text: str) -> str:
        text = self._held + text
        at, found = min(
            ((at, stop) for stop in self._stops if (at := text.find(stop)) >= 0), default=(-1, ""), key=_first_whole
        )
        if found:
            self.found = found
            self._held = ""
            return self._emit(text[:at])
        keep = 0
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            tail = text[-size:]
            if any(stop.startswith(tail) for stop in self._stops if len(stop) > size):
                keep = size
                break
        self._held = text[len(text) - keep :]
        return self._emit(text[: len(text) - keep])

    def _emit(self, text: str) -> str:
        self.sent += len(text)
        return text

    def rest(self) -> list[str]:
        """Return the buffered text, which did not become a stop string."""
        text, self._held = self._held, ""
        return [self._emit(text)] if text else []


def _first_whole(found: tuple[int, str]) -> tuple[int, int]:
    """Return the sort key for stop strings: the one that ends first comes first; of those, the longest.

    The result does not depend on how the output was split into chunks.
    """
    return found[0] + len(found[1]), found[0]


def _cut(parsed: ParsedOutput, size: int) -> ParsedOutput:
    """Cut the message after ``size`` characters of content, where a stop string was found."""
    items: list[Item] = []
    for item in parsed.items:
        if item.type != "content":
            items.append(item)
            continue
        whole = item.text or ""
        text = whole[:size]
        size -= len(text)
        if text:
            items.append(Item(type="content", text=text))
        if len(text) < len(whole):
            break
    calls = [item.call for item in items if item.call is not None]
    parsed.items = items
    parsed.content = "".join(item.text or "" for item in items if item.type == "content") or None
    parsed.tool_calls = calls
    parsed.tools_called = bool(calls)
    parsed.finish_reason = "tool_calls" if calls else "stop"
    return parsed


class _LogprobAligner:
    """Finds the tokens of each part of the content."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.seen = False
        """True if the engine has reported log probabilities."""
        self._waiting: list[tuple[int, int, TokenLogprob]] = []
        """(start, end, token): places in the raw output of the tokens that were not sent yet."""
        self._fed = 0
        self._span = 0
        self._at = 0

    def tokens(self, chunk: EngineChunk) -> None:
        """Add the tokens of a chunk. Their texts give the place of each. If these do not add up to the chunk's text
        (part of a character, a special token without text), each token gets the place of the whole chunk."""
        start, size = self._fed, len(chunk.text)
        self._fed += size
        tokens = chunk.logprobs or ()
        self.seen = self.seen or bool(tokens)
        exact = sum(len(token.token) for token in tokens) == size
        for token in tokens:
            end = start + len(token.token) if exact else self._fed
            self._waiting.append((start, end, token))
            if exact:
                start = end

    def skip(self, size: int) -> None:
        """Skip text that does not come from tokens of the engine."""
        self._fed += size

    def take(self, size: int) -> list[TokenLogprob]:
        """Return the tokens of the next ``size`` characters of content."""
        found: list[TokenLogprob] = []
        spans = self._stream.marked
        while size > 0 and self._span < len(spans):
            kind, start, end = spans[self._span]
            start = max(start, self._at)
            if kind != CONTENT_TEXT or start >= end:
                if self._span + 1 == len(spans):
                    break
                self._span += 1
                continue
            taken = min(end - start, size)
            size -= taken
            self._at = start + taken
            found += self._between(start, self._at)
        return found

    def _between(self, start: int, end: int) -> list[TokenLogprob]:
        found: list[TokenLogprob] = []
        done = 0
        for first, last, token in self._waiting:
            if first >= end:
                break
            done += 1
            if last > start:
                found.append(token)
        del self._waiting[:done]
        return found
