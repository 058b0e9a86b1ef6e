"""One request from prompt to response, whatever its dialect and its engine.

Rules of this module:

* All state is the session's. Nothing is shared with other requests but the model, which does not change.
* Who stops iterating has aborted: every engine stream is closed on the way out, however that is left.
* An engine that fails in the middle of an output ends it there: what was parsed is kept and told, then the error.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..grammar import Grammar, GrammarError
from ..output_parser import OutputParser
from ..policy import Policy
from .choice import ChoiceStream, Step
from .engines.base import EngineChunk, Job
from .errors import ApiError, bad_request, unsupported
from .generation import Ended, Generation, Meta, Usage
from .grammars import GrammarCompiler, GrammarOrder
from .manager.model import Model
from .prompt import make_prompt

if TYPE_CHECKING:
    from .protocols.base import Writer

__all__ = ["Session"]

_AHEAD: Final = 8
"""Steps that a choice may be ahead of the client, where there are several."""


class Session:
    """One request.

    Args:
        model: what answers it.
        request: what it asks for.
        meta: what identifies the response.
        on_first: called once, when the first piece of output has come.
        timeout: seconds that all of it may take; ``0``: any time.
        grammars: the compiler of grammars, shared with other requests; ``None``: one of its own.

    Raises:
        ApiError: what the request asks for cannot be done by this model and engine; names the field.
    """

    def __init__(
        self,
        model: Model,
        request: Generation,
        meta: Meta,
        *,
        on_first: Callable[[], None] | None = None,
        timeout: float = 0.0,
        grammars: GrammarCompiler | None = None,
    ) -> None:
        self.model = model
        self.request = request
        self.meta = meta
        self.ended: list[Ended] = []
        self.notes: tuple[str, ...] = ()
        """What of the request's grammar is weaker than asked for."""
        self.failed: ApiError | None = None
        """What ended an output in the middle."""
        self._on_first = on_first
        self._timeout = timeout
        self._until = time.monotonic() + timeout
        self._began = time.monotonic_ns()
        self._first = 0
        request.reasoning_field = model.parser.policy.reasoning_field
        _check(model, request)
        self.prompt = make_prompt(model, request)
        self._policy = _policy(model.parser.policy, request) if request.parse else None
        self._choices = [self._choice(i) for i in range(request.n)]
        self._jobs: list[Job] = []
        self._grammars = grammars

    # -- Before the first token --------------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        """Compile the grammar and make the engine's jobs.

        Raises:
            ApiError: there can be no such grammar.
        """
        request = self.request
        in_reasoning = self._choices[0].stream.in_reasoning
        grammar = await self._grammar("open" if in_reasoning else self._reasoning_ahead())
        self._jobs = [self._job(choice, grammar) for choice in self._choices]
        if grammar is not None and not grammar.by_id:
            # Such a grammar lets markers be spelled by ordinary tokens: they are meant as markers all the same.
            self._policy = replace(self._policy or self.model.parser.policy, spelled_markers="marker")
            self._choices = [self._choice(i) for i in range(request.n)]

    def _choice(self, index: int) -> ChoiceStream:
        request = self.request
        offered: list[dict[str, Any]] | None = request.tools or []
        parser = self.model.parser if request.parse else _raw()
        try:
            stream = parser.stream(
                tools=offered,
                tool_choice="none" if request.tool_choice == "none" else None,
                prompt=self.prompt.known,
                prompt_token_ids=self.prompt.text if isinstance(self.prompt.text, list) else None,
                messages=request.messages,
                policy=self._policy,
                collect=True,
                spans=request.logprobs is not None,
                seed=f"{self.meta.id}/{index}",
            )
        except ValueError as error:  # a tool whose parameters are no schema
            raise bad_request("tools", str(error)) from None
        # Where no one text closes reasoning, a budget of 0 is only what the template makes of it.
        budget = None if self.model.parser.reasoning_close is None else request.thinking.budget
        return ChoiceStream(index, request, stream, budget)

    def _job(self, choice: ChoiceStream, grammar: Grammar | None) -> Job:
        request = self.request
        sampling = request.sampling
        if choice.index and sampling.seed is not None:
            sampling = msgspec.structs.replace(sampling, seed=sampling.seed + choice.index)
        return Job(
            id=f"{self.meta.id}-{choice.index}",
            model=self.model.name,
            prompt=self.prompt.text,
            max_tokens=request.max_tokens,
            sampling=sampling,
            logprobs=request.logprobs,
            in_reasoning=choice.stream.in_reasoning,
            raw=request.prompt is not None,
            grammar=grammar,
            request=request if self.model.engine.takes.messages or self.model.engine.takes.tool_choice else None,
        )

    def _reasoning_ahead(self) -> str:
        """Whether the model may open reasoning, for a grammar: a channel is chosen by the model, not by the prompt."""
        return "off" if self.request.thinking.off and self.model.parser.format.reasoning is not None else "closed"

    async def _grammar(self, reasoning: str) -> Grammar | None:
        """The grammar that the request calls for, in the engine's dialect."""
        request = self.request
        dialect = self.model.engine.takes.grammar
        forced = request.tool_choice not in (None, "auto", "none")
        strict = any(_strict(tool) for tool in request.tools or ())
        if dialect is None or not (forced or strict or request.response_format is not None):
            return None
        try:
            grammar = await self._compiler().compile(
                self.model.parser,
                GrammarOrder(
                    tools=request.tools or None,
                    tool_choice=request.tool_choice or "auto",
                    parallel_tool_calls=request.parallel_tool_calls,
                    dialect=dialect,
                    reasoning=reasoning,
                    response_format=request.response_format,
                ),
            )
        except GrammarError as error:
            field = "tools" if request.tools else "response_format"
            message = str(error)
            if message.startswith("response_format"):
                # It names its place already; the answer puts the field in front.
                field, message = "response_format", message.removeprefix("response_format").lstrip(": ")
            raise bad_request(field, message) from None
        except RecursionError:
            field = "response_format" if request.response_format is not None else "tools"
            raise bad_request(field, "a schema in it contains itself with nothing between") from None
        self.notes = grammar.notes
        return grammar

    def _compiler(self) -> GrammarCompiler:
        if self._grammars is None:
            self._grammars = GrammarCompiler()
        return self._grammars

    # -- The output --------------------------------------------------------------------------------------------------

    async def whole(self) -> Usage:
        """Generates everything; ``ended`` then holds the choices, in order. Returns the usage.

        Raises:
            ApiError: the engine failed, or the request cannot be followed.
        """
        await self._prepare()
        if len(self._choices) == 1:
            async with aclosing(self._steps(self._choices[0])) as steps:
                async for _ in steps:
                    pass
        else:
            async with _group() as tasks:
                for choice in self._choices:
                    tasks.create_task(_drained(self._steps(choice)))
        self.ended.sort(key=lambda ended: ended.index)
        return self.usage

    async def frames(self, writer: Writer) -> AsyncGenerator[bytes, None]:
        """The streamed response, frame by frame. Nothing is yielded before the engine has answered, so that an error
        up to there can still be a status of its own.

        Raises:
            ApiError: the engine failed before its first piece; later failures are in the stream.
        """
        await self._prepare()
        begun = False
        try:
            if len(self._choices) == 1:
                choice = self._choices[0]
                delta = writer.delta
                async with aclosing(self._steps(choice)) as produced:
                    async for steps in produced:
                        if not begun:
                            begun = True
                            yield writer.begin(choice.usage)
                        if len(steps) == 1:
                            yield delta(0, *steps[0])
                        elif steps:
                            yield b"".join([delta(0, *step) for step in steps])
            else:
                async with aclosing(self._merged()) as merged:
                    async for index, steps in merged:
                        if not begun:
                            begun = True
                            yield writer.begin(self._choices[0].usage)
                        yield b"".join([writer.delta(index, *step) for step in steps])
        except ApiError as error:
            if not begun:
                raise
            for ended in sorted(self.ended, key=lambda e: e.index):
                yield writer.finish(ended)
            yield writer.error(error)
            return
        if not begun:
            yield writer.begin(self.usage)
        for ended in sorted(self.ended, key=lambda e: e.index):
            yield writer.finish(ended)
        yield writer.end(self.usage)

    @property
    def usage(self) -> Usage:
        """Of all choices, as far as they have come: one prompt, all completions."""
        usage = Usage()
        for choice in self._choices:
            usage.prompt_tokens = max(usage.prompt_tokens, choice.usage.prompt_tokens)
            usage.cached_tokens = max(usage.cached_tokens, choice.usage.cached_tokens)
            usage.completion_tokens += choice.tokens
            usage.reasoning_tokens += min(choice.usage.reasoning_tokens, choice.tokens)
        if self._first:
            usage.prompt_ns = self._first - self._began
            usage.completion_ns = time.monotonic_ns() - self._first
        return usage

    def _came(self) -> None:
        """The first piece of a choice has come."""
        if self._first:
            return
        self._first = time.monotonic_ns()
        if self._on_first is not None:
            self._on_first()

    async def _steps(self, choice: ChoiceStream) -> AsyncGenerator[list[Step], None]:
        """One choice: what each piece of output completes. The first is yielded even if it is empty."""
        job: Job | None = self._jobs[choice.index]
        first = True
        failed: ApiError | None = None
        while job is not None:
            here, job = job, None
            try:
                generated = self.model.engine.generate(here)
                async with aclosing(self._timed(generated) if self._timeout else generated) as pieces:
                    async for piece in pieces:
                        steps = choice.feed(piece)
                        if first:
                            first = False
                            self._came()
                            yield steps
                        elif steps:
                            yield steps
                        if choice.left:
                            break
            except ApiError as error:
                if first:
                    raise
                failed = self.failed = error
            if choice.left:
                await self._count(choice)
            if failed is None and choice.over_budget:
                yield choice.force(self._close())
                job = await self._continued(here, choice)
        steps, ended = choice.finish("error" if failed is not None else None)
        if steps:
            yield steps
        self.ended.append(ended)
        if failed is not None:
            raise failed

    async def _count(self, choice: ChoiceStream) -> None:
        """An engine that is left does not say any more how long the prompt was."""
        prompt, usage = self.prompt.text, choice.usage
        if usage.prompt_tokens or self.model.engine.takes.messages:
            return
        with contextlib.suppress(ApiError, NotImplementedError):
            tokens = await self.model.engine.tokenize(prompt) if isinstance(prompt, str) else prompt
            usage.prompt_tokens = len(tokens)

    async def _timed(self, generated: AsyncGenerator[EngineChunk, None]) -> AsyncGenerator[EngineChunk, None]:
        """The pieces, as long as the request may take."""
        async with aclosing(generated):
            while True:
                try:
                    async with asyncio.timeout(self._until - time.monotonic()):
                        piece = await anext(generated, None)
                except TimeoutError:
                    raise ApiError(
                        504, f"the request took longer than {self._timeout:g} seconds", type="server_error",
                        code="timeout",
                    ) from None  # fmt: skip
                if piece is None:
                    return
                yield piece

    async def _merged(self) -> AsyncGenerator[tuple[int, list[Step]], None]:
        """All choices, as their steps come."""
        queue: asyncio.Queue[tuple[int, list[Step]] | None] = asyncio.Queue(_AHEAD)

        async def run(choice: ChoiceStream) -> None:
            async with aclosing(self._steps(choice)) as produced:
                async for steps in produced:
                    await queue.put((choice.index, steps))

        async def run_all() -> None:
            try:
                async with _group() as tasks:
                    for choice in self._choices:
                        tasks.create_task(run(choice))
            finally:
                await queue.put(None)

        running = asyncio.create_task(run_all())
        try:
            while (item := await queue.get()) is not None:
                yield item
            await running
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError, ApiError):
                # The queue is read no more: what waits to be put must not block the way out.
                while not running.done():
                    while not queue.empty():
                        queue.get_nowait()
                    await asyncio.wait([running], timeout=0.01)

    # -- Thinking that has to end ------------------------------------------------------------------------------------

    def _close(self) -> list[tuple[str, list[int]]]:
        """What ends reasoning: special tokens with their ids, and the text between them."""
        parser = self.model.parser
        text = parser.reasoning_close
        assert text is not None  # the output is in reasoning
        special = sorted(parser.format.special_tokens, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, special))})", text) if special else [text]
        ids = {part: parser.token_id(part) for part in parts}
        return [(part, [] if (token := ids[part]) is None else [token]) for part in parts if part]

    async def _continued(self, job: Job, choice: ChoiceStream) -> Job | None:
        """The job that goes on behind what was written so far; ``None`` where nothing may be written any more."""
        written = "".join(choice.raw)
        left = None if job.max_tokens is None else job.max_tokens - choice.tokens
        if left is not None and left <= 0:
            choice.finish_reason = "length"
            return None
        prompt = self.prompt.text
        if isinstance(prompt, list):
            raise unsupported("thinking_budget", "needs a prompt that is text")
        return msgspec.structs.replace(
            job, prompt=prompt + written, max_tokens=left, grammar=await self._grammar("off")
        )


async def _drained(steps: AsyncGenerator[list[Step], None]) -> None:
    async with aclosing(steps):
        async for _ in steps:
            pass


@contextlib.asynccontextmanager
async def _group() -> AsyncGenerator[asyncio.TaskGroup, None]:
    """A TaskGroup that fails with the first error itself."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        first = group.exceptions[0]
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


@cache
def _raw() -> OutputParser:
    """Takes nothing for markup."""
    return OutputParser.named("passthrough")


def _strict(tool: dict[str, Any]) -> bool:
    function = tool.get("function")
    return isinstance(function, dict) and function.get("strict") is True


def _policy(policy: Policy, request: Generation) -> Policy | None:
    """The request's policy, where it is not the parser's."""
    if not request.parallel_tool_calls and policy.parallel_calls == "all":
        return replace(policy, parallel_calls="first")
    return None


def _check(model: Model, request: Generation) -> None:
    """What the engine cannot do is refused, and named."""
    takes = model.engine.takes
    if request.extra and not takes.messages:
        name = min(request.extra)
        raise unsupported(name)
    if takes.messages:
        if request.prompt is not None:
            raise unsupported("prompt", "needs an upstream that completes raw prompts (--upstream)")
        if request.thinking.budget:
            raise unsupported("thinking_budget", "needs an upstream that completes raw prompts (--upstream)")
        return
    choice = request.tool_choice
    if choice not in (None, "auto", "none") and takes.grammar is None and not takes.tool_choice:
        raise unsupported("tool_choice", "only auto and none: this engine takes no grammar")
    if choice not in (None, "auto", "none") and not request.tools:
        raise bad_request("tool_choice", "needs tools")
    if request.response_format is not None and takes.grammar is None:
        raise unsupported("response_format", "only text: this engine takes no grammar")
    if request.logprobs is not None and not takes.logprobs:
        raise unsupported("logprobs", "this engine gives none")
    if request.thinking.budget and model.parser.reasoning_close is None:
        raise unsupported("thinking_budget", "this model's format has no reasoning that could be closed")
