"""An OpenAI-compatible server as the engine: its ``/v1/completions``, or its chat completions in the fixing proxy.

* `upstream` connects to the server; this module writes its requests and reads its answers.
* Nothing that a server parses itself is lost: the parsed parts are passed on unchanged (`EngineChunk.delta`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final

from untemplate.messages import DeltaMessage

from ..generation import Generation, TokenLogprob
from . import llamacpp_wire
from .base import EngineChunk, EngineError, Job, Takes
from .chunks import ServerDelta, ended, ended_early, logprobs_of, parsed_by_server, read_chunk, reason_of, usage_of
from .servers import constrained
from .upstream import Upstream

_log: Final = logging.getLogger("untemplate.gateway.engines")
_SOME: Final = 4096
"""Most tokens of an output if the room for it is unknown."""


class OpenAIEngine(Upstream):
    """A server's ``/v1/completions``, or llama.cpp's own ``/completion``, which has token ids and grammars.

    llama.cpp returns the text of special tokens only if it gets their names (from its Format), or runs with
    ``--special``. Servers other than vLLM, SGLang and llama.cpp must honour ``skip_special_tokens``; otherwise markers
    that are special tokens are lost.

    Args:
        url: URL of the server, with or without ``/v1``.
        model: name of the model at the server; may be empty if the server has only one.
        api_key: sent as ``Authorization: Bearer``.
        connect_timeout: connection timeout in seconds.
        read_timeout: seconds that the server may be silent; 0 for no limit.
        retries: further attempts after a failed connection, 429, 502 or 503.
        concurrency: requests that the server gets at a time; further ones wait, and owners take turns; 0: no limit.
    """

    def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        return self._native(job) if self.server == "llama.cpp" else self._completions(job)

    async def _completions(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        fields = {
            "model": self.model,
            "prompt": job.prompt,
            "stream": True,
            **job.sampling.given(),
            "max_tokens": await self._room(job) if job.max_tokens is None else job.max_tokens,
            **({} if job.logprobs is None else {"logprobs": job.logprobs}),
            **({"echo": True} if job.echo else {}),
            **({} if job.grammar is None else job.grammar.request(self.server)),
            **constrained(job.constraint, self._kind),
        }
        ours = self._ours
        if self.server == "vllm" and not job.raw:
            ours = {**ours, "add_special_tokens": False}
        last: EngineChunk | None = None
        async with (
            self._opened("/v1/completions", fields, ours, job) as (response, turn),
            aclosing(self._events(response)) as events,
        ):
            async for event in events:
                chunk = read_chunk(event)
                usage = None if chunk.usage is None else usage_of(chunk.usage)
                for choice in chunk.choices or ():
                    ids = choice.token_ids or ()
                    text = choice.text or ""
                    turn.add(len(ids) or 1)
                    likely = None if job.logprobs is None else logprobs_of(choice.logprobs, job.logprobs)
                    if choice.finish_reason is None:
                        yield EngineChunk(text, ids, None, likely)
                    else:
                        last = EngineChunk(text, ids, reason_of(choice.finish_reason), likely)
                if last is not None and usage is not None:
                    last.usage = usage
                    turn.cost = usage.total_tokens or turn.cost
        yield ended(last)

    async def _native(self, job: Job, tokens: int = 0) -> AsyncGenerator[EngineChunk, None]:
        """Generate through llama.cpp's own API an output that may need so many tokens of the context."""
        fields = llamacpp_wire.completion(job, self._bos)
        if self.format is not None and "preserved_tokens" not in fields:
            fields["preserved_tokens"] = list(self.format.special_tokens)
        held: EngineChunk | None = None  # has an end token; sent when the next event shows if it was the end
        async with (
            self._opened("/completion", fields, {}, job, tokens) as (response, turn),
            aclosing(self._events(response)) as events,
        ):
            async for event in events:
                piece = llamacpp_wire.piece_of(event, job.logprobs)
                turn.add(len(piece.token_ids) or 1)
                if piece.usage is not None:
                    turn.cost = piece.usage.total_tokens or turn.cost
                if held is not None:
                    if piece.finish_reason == "stop":
                        held.text = held.text.removesuffix(self._ends[held.token_ids[-1]])
                    yield held
                    held = None
                if piece.finish_reason is not None:
                    await response.rest()
                    yield piece
                    return
                if self._ends and piece.token_ids and piece.token_ids[-1] in self._ends:
                    held = piece
                else:
                    yield piece
        raise ended_early()

    async def _room(self, job: Job) -> int | None:
        """Return the number of tokens that fit after the prompt: without ``max_tokens``, completions end after 16
        tokens."""
        if self.server == "vllm":
            return None  # vLLM computes the room itself
        if self.context_length is None:
            return _SOME
        if isinstance(job.prompt, list):
            used = len(job.prompt)
        else:
            try:
                used = len(await self.tokenize(job.prompt)) + 1
            except NotImplementedError:
                used = len(job.prompt.encode()) // 2
        return max(1, self.context_length - used)


class OpenAIChatEngine(Upstream):
    """The fixing proxy: a server's ``/v1/chat/completions``, whose content is parsed again. The server renders the
    messages; images and fields that the gateway does not know pass through.

    The server's own parsers should be off: vLLM without ``--tool-call-parser`` and ``--reasoning-parser`` (with them it
    drops text that looks like a call, vllm-project/vllm#55080) and without ``--exclude-tools-when-tool-choice-none``,
    SGLang without ``--tool-call-parser``, llama.cpp with ``--skip-chat-parsing --special``. Requests switch off what
    they can: vLLM gets ``tool_choice: none``, with which it still shows the tools to the model, and a structural tag
    where a call is forced. Parts that a server parses anyway are passed on unchanged.

    Args: as `OpenAIEngine`.
    """

    takes = Takes(logprobs=True, messages=True, tool_choice=True)
    _has_warned = False

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        request = job.request
        if request is None:
            raise EngineError("a chat upstream takes messages, not prompts", status=500)
        fields = self._body(job, request)
        last: EngineChunk | None = None
        answer = _HalfParsed(self, closed=not job.in_reasoning)
        async with (
            self._opened("/v1/chat/completions", fields, self._ours, job) as (response, turn),
            aclosing(self._events(response)) as events,
        ):
            async for event in events:
                chunk = read_chunk(event)
                for choice in chunk.choices or ():
                    delta = choice.delta or choice.message or ServerDelta()
                    turn.add(len(choice.token_ids or ()) or 1)
                    likely = None if job.logprobs is None else logprobs_of(choice.logprobs, job.logprobs)
                    for part in answer.chunks(delta, choice.token_ids or (), likely):
                        yield part
                    if choice.finish_reason is not None:
                        if choice.finish_reason == "tool_calls" and not answer.begun:
                            self.warn("ends with tool_calls and sent none, so its parser read calls and lost them")
                        last = EngineChunk(finish_reason=reason_of(choice.finish_reason))
                if last is not None and chunk.usage is not None:
                    last.usage = usage_of(chunk.usage)
                    turn.cost = last.usage.total_tokens or turn.cost
        yield ended(last)

    def warn(self, what: str) -> None:
        """Log once that the server parses: what its parser breaks or drops cannot be mended here."""
        if not self._has_warned:
            self._has_warned = True
            said = "upstream %s, model %r: %s; what its parser breaks stays broken: %s"
            _log.warning(said, self.url, self.model, what, self._kind.parsers_off)

    def close_of_reasoning(self) -> str:
        """Return the marker that closes reasoning: the server removed it after reasoning that the prompt had opened."""
        reasoning = None if self.format is None else self.format.reasoning
        return "" if reasoning is None else reasoning.close.text

    def _body(self, job: Job, request: Generation) -> dict[str, Any]:
        fields: dict[str, Any] = {
            **request.extra,
            "model": self.model,
            "messages": request.messages,
            "stream": True,
            **job.sampling.given(),
        }
        if request.tools:
            fields["tools"] = request.tools
            choice = request.tool_choice
            if self.server == "vllm" and choice in (None, "auto"):
                # Without a parser vLLM refuses "auto". With "none" it still shows the tools to the model.
                fields["tool_choice"] = "none"
            elif self.server == "vllm" and choice == "none":
                del fields["tools"]
            elif job.grammar is not None:
                # Without a parser vLLM refuses to force a call, so a grammar forces it.
                fields |= {"tool_choice": "none", **job.grammar.request(self.server)}
            elif choice is not None:
                fields["tool_choice"] = choice
            if not request.parallel_tool_calls:
                fields["parallel_tool_calls"] = False
        if job.max_tokens is not None:
            fields["max_tokens"] = job.max_tokens
        if request.response_format is not None and job.grammar is None:
            fields["response_format"] = request.response_format
        fields |= constrained(job.constraint, self._kind)
        if request.documents is not None:
            fields["documents"] = request.documents
        if job.logprobs is not None:
            fields["logprobs"] = True
            if job.logprobs:
                fields["top_logprobs"] = job.logprobs
        thinking = request.thinking
        if thinking.effort is not None:
            fields["reasoning_effort"] = thinking.effort
        template = dict(request.template_kwargs)
        if thinking.enabled is not None:
            template = {"enable_thinking": thinking.enabled, "thinking": thinking.enabled, **template}
        if template:
            fields["chat_template_kwargs"] = template
        if request.continue_final_message:
            fields |= {"continue_final_message": True, "add_generation_prompt": False}
        return fields


class _HalfParsed:
    """One answer of a server that may parse some of it."""

    def __init__(self, engine: OpenAIChatEngine, *, closed: bool) -> None:
        self._engine = engine
        self._parsed = False
        self._closed = closed
        self.begun: set[int] = set()
        """The calls whose name was sent."""

    def chunks(
        self, delta: ServerDelta, ids: Sequence[int], likely: list[TokenLogprob] | None
    ) -> Iterator[EngineChunk]:
        """Yield what a delta, or a whole message, adds: reasoning, text and calls, in this order."""
        called = bool(self.begun)
        parts = parsed_by_server(delta, self.begun)
        # Ids prove which markers are tokens; parsed parts contain no markers.
        ids = () if self._parsed or parts else ids
        if parts:
            self._parsed = True
            self._engine.warn(f"sends {'calls' if self.begun else 'reasoning'} that it parsed itself")
        yield from (EngineChunk(delta=part) for part in parts if part.tool_calls is None)
        if called and delta.content:  # after calls that the server parsed, text is not parsed for more
            yield EngineChunk(delta=DeltaMessage(content=delta.content))
        elif delta.content or ids:
            if self._parsed and not self._closed:
                self._closed = True
                yield EngineChunk(self._engine.close_of_reasoning())
            yield EngineChunk(delta.content or "", ids, None, likely)
        yield from (EngineChunk(delta=part) for part in parts if part.tool_calls is not None)
