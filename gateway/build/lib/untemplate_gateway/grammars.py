"""Compiles grammars without blocking the event loop.

A small schema without references takes a few milliseconds at most, and is compiled at once. All others are compiled in
a worker process. It is ended when a grammar takes too long, when its client leaves, or when the gateway closes. The
library bounds the work for one grammar (`untemplate.grammar._limits`); the process is the second line of defence.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from untemplate._internal.output_parser import OutputParser
from untemplate.errors import GrammarError
from untemplate.format import Format
from untemplate.grammar import Grammar, make_grammar

from .processes import Workers, serve
from .threads import for_process

AT_ONCE: Final = 4096
"""Bytes of tools and response format that are compiled in this process: under 5 ms, measured."""
_CACHED: Final = 256


class GrammarOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a grammar; the fields are the arguments of `OutputParser.grammar`."""

    tools: list[dict[str, Any]] | None
    tool_choice: Any
    parallel_tool_calls: bool
    dialect: str
    reasoning: str
    response_format: Any


class _Job(msgspec.Struct):
    format: str
    tokens: dict[str, int]
    order: GrammarOrder


class _Answer(msgspec.Struct):
    kind: Literal["grammar", "refused", "failed"]
    text: str = ""
    grammar: Grammar | None = None


class GrammarCompiler:
    """Compiles the grammars of one gateway.

    Args:
        timeout: seconds that one grammar may take.
    """

    def __init__(self, timeout: float = 10.0) -> None:
        self._timeout = timeout
        self.workers = Workers(_PROGRAM)
        self._cache: dict[bytes, Grammar] = {}
        """The grammars that were used last, the newest last."""

    async def compile(self, parser: OutputParser, order: GrammarOrder) -> Grammar:
        """Return a grammar.

        Raises:
            GrammarError: the grammar cannot be written in this dialect, or takes too long.
        """
        try:
            schemas = msgspec.json.encode((order.tools, order.response_format))
            job = b"" if _is_cheap(schemas) else msgspec.msgpack.encode(_Job(*_format_of(parser), order))
        except OverflowError:
            raise GrammarError("a number has more than 64 bits") from None
        if not job:
            return parser.grammar(
                order.tools,
                order.tool_choice,
                parallel_tool_calls=order.parallel_tool_calls,
                dialect=order.dialect,
                reasoning=order.reasoning,
                response_format=order.response_format,
            )
        key = hashlib.sha256(job).digest()
        found = self._cache.pop(key, None) or await self._compiled(job)
        self._cache[key] = found
        if len(self._cache) > _CACHED:
            del self._cache[next(iter(self._cache))]
        return found

    async def _compiled(self, job: bytes) -> Grammar:
        try:
            data = await for_process(self.workers.ask, job, self._timeout)
        except TimeoutError:
            raise GrammarError(f"the grammar takes longer than {self._timeout:g} seconds") from None
        answer = msgspec.msgpack.decode(data, type=_Answer)
        if answer.kind == "refused":
            raise GrammarError(answer.text)
        if answer.grammar is None:
            raise RuntimeError(f"the grammar worker failed: {answer.text}")
        return answer.grammar


def _is_cheap(schemas: bytes) -> bool:
    """True if grammars for these schemas can be compiled on the event loop."""
    return len(schemas) <= AT_ONCE and b'"$ref"' not in schemas


def _format_of(parser: OutputParser) -> tuple[str, dict[str, int]]:
    """Return a parser's Format as JSON, and the ids of its special tokens."""
    fmt = parser.format
    ids = {token: parser.token_id(token) for token in fmt.special_tokens}
    return _format_text(fmt), {token: i for token, i in ids.items() if i is not None}


@lru_cache(64)
def _format_text(fmt: Format) -> str:
    return fmt.to_json(indent=None)


# -- In the worker process -----------------------------------------------------------------------------------------

_PROGRAM: Final = "from untemplate_gateway.grammars import work; work()"
_JOBS: Final = msgspec.msgpack.Decoder(_Job)


def work() -> None:
    """Compile grammars: the program of a worker process."""
    serve(lambda data: msgspec.msgpack.encode(_answer(_JOBS.decode(data))))


def _answer(job: _Job) -> _Answer:
    order = job.order
    try:
        grammar = make_grammar(
            Format.from_json(job.format),
            order.tools,
            order.tool_choice,
            parallel_tool_calls=order.parallel_tool_calls,
            dialect=order.dialect,
            reasoning=order.reasoning,
            response_format=order.response_format,
            tokens=job.tokens or None,
        )
    except GrammarError as error:
        return _Answer("refused", str(error))
    except (RecursionError, MemoryError):
        return _Answer("refused", "a schema is too complex")
    except Exception as error:
        return _Answer("failed", f"{type(error).__name__}: {error}")
    return _Answer("grammar", grammar=grammar)
