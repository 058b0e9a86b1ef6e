"""The output of one request, for every dialect and engine: from the engine's jobs to the frames of a response.

* A session shares nothing with other requests except the model, which does not change.
* To abort a request, stop iterating: every engine stream is closed on the way out.
* If an engine fails in the middle of an output, the parsed part is sent first, then the error.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec

from untemplate.messages import DeltaMessage, Item, ParsedOutput

from .choice import ChoiceStream, Step
from .engines.base import EngineChunk, Job
from .errors import ApiError, EngineError, took_too_long, unsupported
from .generation import Ended, Generation, Meta, Usage
from .grammars import GrammarCompiler
from .json_answers import ATTEMPTS, JsonAnswer, without_fence
from .manager.model import Model
from .preparing import Prepared
from .prompt import Prompt

if TYPE_CHECKING:
    from .protocols.encoding import Writer

_Steps = tuple[int, list[Step]]
"""The index of a choice, and what a chunk adds to it."""
_AHEAD: Final = 8
"""Most steps that are buffered for the client if a request has several choices."""

_LONGEST: Final = 16 << 20
"""Most characters of an output: a broken server may write without end."""
_MAX_CLOSES: Final = 3
"""Most times that the gateway closes reasoning in one output. A model that continues to reason is stopped then."""


class Session:
    """One request.

    Args:
        model: the model that answers.
        request: the request.
        meta: id, time and model name of the response.
        timeout: most seconds for the whole request; ``0`` for no limit.
        grammars: the compiler of grammars, shared with other requests; ``None`` for one of its own.

    Raises:
        ApiError: this model or engine cannot do what a field of the request asks for.
    """

    def __init__(
        self,
        model: Model,
        request: Generation,
        meta: Meta,
        *,
        timeout: float = 0.0,
        grammars: GrammarCompiler | None = None,
    ) -> None:
        self._prepared = Prepared(model, request, meta)
        self.model = model
        self.request = self._prepared.request
        """The request as the model can follow it."""
        self.meta = meta
        self.ended: list[Ended] = []
        self.failed: ApiError | None = None
        """The error that ended an output in the middle."""
        self._timeout = timeout
        self._began = time.perf_counter()
        self._until = time.monotonic() + timeout
        self.first: float | None = None
        """The time of the first chunk of output, by ``time.perf_counter``."""
        self.longest_gap = 0.0
        """Most seconds between two chunks of one choice."""
        self._choices = self._prepared.choices()
        self._jobs: list[Job] = []
        self._earlier = Usage()
        """The tokens of answers that were not the JSON that the request asks for."""
        self._grammars = grammars or GrammarCompiler()

    # -- Before the first token --------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Compile the grammar and make the engine's jobs.

        Raises:
            ApiError: the grammar cannot be compiled.
        """
        grammar = None
        if self._prepared.wanted is not None:
            await self._prepared.wanted.check()
        if self.model.engine.takes.grammar is not None:
            off = self.request.thinking.off and self.model.parser.format.reasoning is not None
            in_reasoning = self._choices[0].stream.in_reasoning
            # The model itself may open reasoning that the prompt has not opened.
            grammar = await self._grammars.of(
                self.model, self.request, "open" if in_reasoning else "off" if off else "closed"
            )
        self._jobs = [self._prepared.job(choice, grammar) for choice in self._choices]
        if grammar is not None and not grammar.by_id:
            self._prepared.spell_markers()
            self._choices = self._prepared.choices()
        if self.request.token_ids:
            self.meta.prompt_ids = [await self._prompt_ids(prompt) for prompt in self._prepared.prompts]

    async def _prompt_ids(self, prompt: Prompt) -> list[int] | None:
        """Return the token ids of a prompt; ``None`` if the engine does not offer its tokenizer."""
        text = prompt.text
        if isinstance(text, list):
            return text
        try:
            return await self.model.engine.tokenize(text) if text else None
        except NotImplementedError:
            self.request.notes.ignored("return_token_ids", "the engine does not report those of the prompt")
            return None

    # -- The output --------------------------------------------------------------------------------------------------

    async def whole(self) -> Usage:
        """Generate the whole output and return the usage. ``ended`` then holds the choices, in order.

        Raises:
            ApiError: the engine failed, or the request cannot be followed.
        """
        await self._begin()
        async with aclosing(self._produced()) as produced:
            async for _ in produced:
                pass
        self.ended.sort(key=lambda ended: ended.index)
        return self.usage

    async def frames(self, writer: Writer) -> AsyncGenerator[bytes, None]:
        """Yield the streamed response, frame by frame. Nothing is yielded before the engine has answered, so that an
        earlier error can still set the status of the response.

        Raises:
            ApiError: the engine failed before its first chunk; later failures are sent in the stream.
        """
        await self._begin()
        begun = False
        try:
            delta = writer.delta
            async with aclosing(self._produced()) as produced:
                async for index, steps in produced:
                    if not begun:
                        begun = True
                        yield writer.begin(self._choices[0].usage)
                    if len(steps) == 1:
                        yield delta(index, *steps[0])
                    elif steps:
                        yield b"".join([delta(index, *step) for step in steps])
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
        # The end stores the response, which may take a storage some time.
        stores = self.request.keep is not None
        yield await asyncio.to_thread(writer.end, self.usage) if stores else writer.end(self.usage)

    @property
    def usage(self) -> Usage:
        """The usage of all choices so far: each prompt once, all completions."""
        usage = msgspec.structs.replace(self._earlier)
        for first in range(0, len(self._choices), self.request.n):
            same = [choice.usage for choice in self._choices[first : first + self.request.n]]
            usage.prompt_tokens += max(one.prompt_tokens for one in same)
            usage.cached_tokens += max(one.cached_tokens for one in same)
        for choice in self._choices:
            usage.completion_tokens += choice.tokens
            usage.reasoning_tokens += min(choice.usage.reasoning_tokens, choice.tokens)
        usage.prompt_ns = max((choice.usage.prompt_ns for choice in self._choices), default=0)
        usage.completion_ns = max((choice.usage.completion_ns for choice in self._choices), default=0)
        if self.first is not None and not usage.completion_ns:  # the engine has not measured it
            usage.prompt_ns = int((self.first - self._began) * 1e9)
            usage.completion_ns = int((time.perf_counter() - self.first) * 1e9)
        return usage

    def _produced(self) -> AsyncGenerator[_Steps, None]:
        """Return the steps of all choices."""
        return self._merged() if len(self._choices) > 1 else self._answer(self._choices[0])

    def _answer(self, choice: ChoiceStream) -> AsyncGenerator[_Steps, None]:
        """Return the steps of one choice, chunk by chunk."""
        wanted = self._prepared.wanted
        return self._steps(choice) if wanted is None else self._json(choice, wanted)

    async def _json(self, choice: ChoiceStream, wanted: JsonAnswer) -> AsyncGenerator[_Steps, None]:
        """Yield the steps of the first answer that is the JSON that was asked for, or of the last attempt."""
        messages, index = self.request.messages or [], choice.index
        for left in reversed(range(ATTEMPTS)):
            steps: list[Step] = []
            try:
                async with aclosing(self._steps(choice)) as produced:
                    async for _, more in produced:
                        steps += more
            except ApiError:
                if steps:
                    yield index, steps
                raise
            ended = self.ended[-1]
            parsed = ended.parsed
            text = without_fence(parsed.content or "")
            whole = ended.finish_reason == "stop" and ended.stop is None
            problem = await wanted.problem(text) if whole else ""
            if problem and left and not self.request.continue_final_message:
                messages = wanted.again(messages, parsed.content or "", problem)
                next_choice = await self._asked_again(choice, messages)
                if next_choice is not None:
                    self.ended.remove(ended)
                    choice = next_choice
                    continue
            if problem:
                self.request.notes.add(f"response_format: the answer is not the JSON that was asked for: {problem}")
            elif whole and text != parsed.content:
                steps = _with_content(parsed, steps, text)
            yield index, steps
            return

    async def _asked_again(self, choice: ChoiceStream, messages: list[dict[str, Any]]) -> ChoiceStream | None:
        """Return the choice that answers further messages instead of another one; ``None`` if they are too long."""
        prompt = await self._prepared.asked_again(messages)
        if prompt is None:
            return None
        earlier, usage = self._earlier, choice.usage
        earlier.prompt_tokens += usage.prompt_tokens
        earlier.completion_tokens += choice.tokens
        earlier.reasoning_tokens += usage.reasoning_tokens
        choice = self._choices[choice.index] = self._prepared.choice(choice.index, prompt)
        self._jobs[choice.index] = self._prepared.job(choice, None)
        return choice

    async def _steps(self, choice: ChoiceStream) -> AsyncGenerator[_Steps, None]:
        """Yield the steps of one choice, chunk by chunk. The first chunk is yielded even without steps."""
        index = choice.index
        job: Job | None = self._jobs[index]
        first = True
        failed: ApiError | None = None
        last = 0.0
        size = 0
        while job is not None:
            here, job = job, None
            try:
                generated = self.model.engine.generate(here)
                async with aclosing(self._timed(generated) if self._timeout else generated) as chunks:
                    async for chunk in chunks:
                        now = time.perf_counter()
                        if now - last > self.longest_gap and not first:
                            self.longest_gap = now - last
                        last = now
                        size += len(chunk.text) if chunk.delta is None else _size(chunk.delta)
                        if size > _LONGEST:
                            raise EngineError(f"the output has more than {_LONGEST} characters", code="output_too_long")
                        steps = choice.feed(chunk)
                        if first:
                            first = False
                            self.first = self.first or now
                            yield index, steps
                        elif steps:
                            yield index, steps
                        if choice.left:
                            break
            except ApiError as error:
                if first:
                    raise
                failed = self.failed = error
            if choice.left:
                await self._count(choice)
            if failed is None and choice.over_budget:
                if choice.closes == _MAX_CLOSES:
                    choice.finish_reason = "length"
                else:
                    yield index, choice.force(self._close())
                    job = await self._continued(here, choice)
        steps, ended = choice.finish("error" if failed is not None else None)
        if steps:
            yield index, steps
        self.ended.append(ended)
        if failed is not None:
            try:
                raise failed
            finally:
                failed = None  # the error refers to this frame

    async def _count(self, choice: ChoiceStream) -> None:
        """Count the tokens of the prompt: an aborted engine no longer reports them."""
        prompt, usage = choice.prompt.text, choice.usage
        if usage.prompt_tokens or self.model.engine.takes.messages:
            return
        with contextlib.suppress(ApiError, NotImplementedError):
            tokens = await self.model.engine.tokenize(prompt) if isinstance(prompt, str) else prompt
            usage.prompt_tokens = len(tokens)

    async def _timed(self, generated: AsyncGenerator[EngineChunk, None]) -> AsyncGenerator[EngineChunk, None]:
        """Yield the chunks until the request has taken too long."""
        async with aclosing(generated):
            while True:
                try:
                    async with asyncio.timeout(self._until - time.monotonic()):
                        chunk = await anext(generated, None)
                except TimeoutError:
                    raise took_too_long(self._timeout) from None
                if chunk is None:
                    return
                yield chunk

    async def _merged(self) -> AsyncGenerator[_Steps, None]:
        """Yield the steps of all choices as they come."""
        queue: asyncio.Queue[_Steps | None] = asyncio.Queue()  # `room` bounds it; its end always has room
        room = asyncio.Semaphore(_AHEAD)

        async def run(choice: ChoiceStream) -> None:
            async with aclosing(self._answer(choice)) as produced:
                async for steps in produced:
                    await room.acquire()
                    queue.put_nowait(steps)

        async def run_all() -> None:
            try:
                async with _group() as tasks:
                    for choice in self._choices:
                        tasks.create_task(run(choice))
            finally:
                queue.put_nowait(None)

        running = asyncio.create_task(run_all())
        try:
            while (item := await queue.get()) is not None:
                room.release()
                yield item
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    # -- Reasoning over budget ---------------------------------------------------------------------------------------

    def _close(self) -> list[tuple[str, list[int]]]:
        """Return the close of reasoning: special tokens with their ids, and the text between them."""
        parser = self.model.parser
        text = parser.reasoning_close
        assert text is not None  # the output is in reasoning
        special = sorted(parser.format.special_tokens, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, special))})", text) if special else [text]
        ids = {part: parser.token_id(part) for part in parts}
        return [(part, [] if (token := ids[part]) is None else [token]) for part in parts if part]

    async def _continued(self, job: Job, choice: ChoiceStream) -> Job | None:
        """Return the job that continues the output so far; ``None`` if the output has its full length."""
        written = "".join(choice.raw)
        left = None if job.max_tokens is None else job.max_tokens - choice.tokens
        if left is not None and left <= 0:
            choice.finish_reason = "length"
            return None
        prompt = choice.prompt.text
        if isinstance(prompt, list):
            raise unsupported("thinking_budget", "needs a prompt that is text")
        grammar = await self._grammars.of(self.model, self.request, "off")
        return msgspec.structs.replace(
            job, prompt=prompt + self._prepared.opening + written, max_tokens=left, grammar=grammar
        )


def _size(delta: DeltaMessage) -> int:
    """Return the characters of a part that the server parsed."""
    size = len(delta.content or "") + len(delta.reasoning or "")
    for call in delta.tool_calls or ():
        if call.function is not None:
            size += len(call.function.name or "") + len(call.function.arguments or "")
    return size


@contextlib.asynccontextmanager
async def _group() -> AsyncGenerator[asyncio.TaskGroup, None]:
    """Open a TaskGroup that raises the first error itself instead of a group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        first = group.exceptions[0]
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


def _with_content(parsed: ParsedOutput, steps: list[Step], content: str) -> list[Step]:
    """Replace the content of an answer, and return its steps with one delta of content."""
    first = next(i for i, item in enumerate(parsed.items) if item.type == "content")
    parsed.content = content
    parsed.items = [item for item in parsed.items if item.type != "content"]
    parsed.items.insert(first, Item(type="content", text=content))
    others = [step for step in steps if step[0].content is None]
    replaced = [step for step in steps if step[0].content is not None]
    delta, logprobs = DeltaMessage(content=content), [one for step in replaced for one in step[1] or ()] or None
    if len(replaced[0]) == 2:
        return [*others, (delta, logprobs)]
    return [*others, (delta, logprobs, [token for step in replaced if len(step) == 3 for token in step[2]])]
