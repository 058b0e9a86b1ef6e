"""Several servers with the same model as one engine.

* A job goes to the healthy replica with the fewest running jobs.
* A replica that fails before the first chunk of an answer is left alone for a while, and the job goes to the next one.
  After the first chunk, the failure is the answer's.
* A replica that was left alone takes jobs again when it answers its health check.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeVar

from untemplate.format import Format

from ..errors import ApiError
from ..request_context import current
from .base import Embeddings, Engine, EngineChunk, EngineError, Health, Job, Scores, Takes
from .upstream import Upstream

_log: Final = logging.getLogger("untemplate.gateway.engines")
_CHECK: Final = 2.0
"""Seconds between two health checks of a replica that failed."""
_ELSEWHERE: Final = frozenset((429, 500, 502, 503, 504))
"""Statuses of errors that another replica may not have."""

_T = TypeVar("_T")


class _Replica:
    __slots__ = ("engine", "healthy", "running", "started")

    def __init__(self, engine: Upstream) -> None:
        self.engine = engine
        self.started = False
        self.healthy = True
        self.running = 0


class Replicas(Engine):
    """One engine over several upstreams.

    Args:
        engines: the upstreams, not started yet. Abilities, template and tokenizer are those of the first that starts.
    """

    kind = "openai"

    def __init__(self, engines: Sequence[Upstream]) -> None:
        self._replicas = [_Replica(engine) for engine in engines]
        self.takes: Takes = engines[0].takes
        self.model = ""
        self.context_length: int | None = None
        self._format: Format | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        results = await asyncio.gather(*(self._start(one) for one in self._replicas), return_exceptions=True)
        started = [one for one in self._replicas if one.started]
        for one, error in zip(self._replicas, results, strict=True):
            if isinstance(error, EngineError):
                if not started or error.code == "bad_setting":
                    await self.close()
                    raise error
                one.healthy = False
                _log.warning("replica %s: not available: %s", one.engine.url, error.detail or error.message)
            elif isinstance(error, BaseException):
                await self.close()
                raise error
        first = started[0].engine
        self.takes, self.model, self.context_length = first.takes, first.model, first.context_length
        for one in started[1:]:
            self._compare(one)
        self._watch = asyncio.get_running_loop().create_task(self._check())

    async def _start(self, replica: _Replica) -> None:
        await replica.engine.start()
        replica.started = True
        if self._format is not None:
            replica.engine.expect(self._format)

    def _compare(self, replica: _Replica) -> None:
        """Warn about a replica that cannot do what the others can."""
        if replica.engine.takes != self.takes:
            _log.warning("replica %s: has other abilities than the first one; it takes no jobs", replica.engine.url)
            replica.started = False
            replica.healthy = True  # so that it is not started again and again

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
            self._watch = None
        for one in self._replicas:
            await one.engine.close()

    def expect(self, format: Format) -> None:
        self._format = format
        for one in self._replicas:
            one.engine.expect(format)

    async def health(self) -> Health:
        """Return the health: healthy while any replica is; the detail names those that are not."""
        found = await asyncio.gather(*(one.engine.health() for one in self._replicas if one.started))
        bad = len(self._replicas) - sum(one.ok for one in found)
        detail = f"{bad} of {len(self._replicas)} replicas are not available" if bad else ""
        return Health(any(one.ok for one in found), detail)

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(_CHECK)
            for one in self._replicas:
                if not one.healthy:
                    await self._look(one)

    async def _look(self, replica: _Replica) -> None:
        """Let a replica that failed take jobs again, if it answers."""
        try:
            if not replica.started:
                await self._start(replica)
                self._compare(replica)
            health = await replica.engine.health()
        except EngineError as error:
            _log.debug("replica %s: %s", replica.engine.url, error.message)
            return
        if health.ok and replica.started:
            replica.healthy = True
            _log.info("replica %s: available again", replica.engine.url)

    # -- Jobs ----------------------------------------------------------------------------------------------------

    def _next(self, tried: Sequence[_Replica]) -> _Replica | None:
        """Return the replica for the next attempt: a healthy one if there is any; ``None`` if all were tried."""
        left = [one for one in self._replicas if one.started and one not in tried]
        return min(left, key=lambda one: (not one.healthy, one.running), default=None)

    def _failed(self, replica: _Replica, error: ApiError) -> None:
        if replica.healthy and error.status != 429:
            replica.healthy = False
            _log.warning("replica %s: takes no jobs for now: %s", replica.engine.url, error.detail or error.message)

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        tried: list[_Replica] = []
        while True:
            replica = self._next(tried)
            assert replica is not None
            tried.append(replica)
            begun = False
            replica.running += 1
            try:
                async with aclosing(replica.engine.generate(job)) as chunks:
                    async for chunk in chunks:
                        begun = True
                        yield chunk
                return
            except ApiError as error:
                if error.status not in _ELSEWHERE:
                    raise
                self._failed(replica, error)
                if begun or self._next(tried) is None:
                    raise
                if (context := current.get()) is not None:
                    context.retries += 1
            finally:
                replica.running -= 1

    async def _ask(self, ask: Callable[[Upstream], Awaitable[_T]]) -> _T:
        """Return the answer of the first replica that gives one."""
        tried: list[_Replica] = []
        while True:
            replica = self._next(tried)
            assert replica is not None
            tried.append(replica)
            try:
                return await ask(replica.engine)
            except ApiError as error:
                if error.status not in _ELSEWHERE or self._next(tried) is None:
                    raise
                self._failed(replica, error)

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        return await self._ask(lambda engine: engine.tokenize(text, special=special))

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        return await self._ask(lambda engine: engine.detokenize(token_ids))

    async def embed(self, inputs: Sequence[str | list[int]], dimensions: int | None = None) -> Embeddings:
        return await self._ask(lambda engine: engine.embed(inputs, dimensions))

    async def rerank(self, query: str, documents: Sequence[str]) -> Scores:
        return await self._ask(lambda engine: engine.rerank(query, documents))

    def _started(self) -> Iterator[Upstream]:
        return (one.engine for one in self._replicas if one.started)

    def vocabulary(self) -> Any:
        return next((found for engine in self._started() if (found := engine.vocabulary()) is not None), None)

    def template(self) -> Any:
        return next((found for engine in self._started() if (found := engine.template()) is not None), None)
