"""Compiles grammars without blocking the event loop.

A small schema without references takes a few milliseconds at most, and is compiled at once. All others are compiled in
a worker process. It is ended when a grammar takes too long, when its client leaves, or when the gateway closes. The
library bounds the work for one grammar (`untemplate.grammar._limits`); the process is the second line of defence.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from untemplate._internal.output_parser import OutputParser
from untemplate.errors import GrammarError
from untemplate.format import Format
from untemplate.grammar import Grammar, make_grammar

from .processes import Workers, packed

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


class GrammarCompiler:
    """Compiles the grammars of one gateway.

    Args:
        timeout: seconds that one grammar may take.
    """

    def __init__(self, timeout: float = 10.0) -> None:
        self._timeout = timeout
        self.workers = Workers()
        self._cache: dict[bytes, Grammar] = {}
        """The grammars that were used last, the newest last."""

    async def compile(self, parser: OutputParser, order: GrammarOrder) -> Grammar:
        """Return a grammar.

        Raises:
            GrammarError: the grammar cannot be written in this dialect, or takes too long.
        """
        schemas = msgspec.json.encode((order.tools, order.response_format))
        if _is_cheap(schemas):
            return parser.grammar(**msgspec.structs.asdict(order))
        job = packed(_made, parser.format, _ids_of(parser) or None, **msgspec.structs.asdict(order))
        key = hashlib.sha256(job).digest()
        found = self._cache.pop(key, None) or await self._compiled(job)
        self._cache[key] = found
        if len(self._cache) > _CACHED:
            del self._cache[next(iter(self._cache))]
        return found

    async def _compiled(self, job: bytes) -> Grammar:
        try:
            grammar: Grammar = await self.workers.run(job, Grammar, self._timeout)
        except TimeoutError:
            raise GrammarError(f"the grammar takes longer than {self._timeout:g} seconds") from None
        except (RecursionError, MemoryError):
            raise GrammarError("a schema is too complex") from None
        return grammar


def _made(format: Format, tokens: dict[str, int] | None, /, **order: Any) -> Grammar:
    return make_grammar(format, tokens=tokens, **order)


def _is_cheap(schemas: bytes) -> bool:
    """True if grammars for these schemas can be compiled on the event loop."""
    return len(schemas) <= AT_ONCE and b'"$ref"' not in schemas


def _ids_of(parser: OutputParser) -> dict[str, int]:
    """Return the ids of a parser's special tokens."""
    ids = {token: parser.token_id(token) for token in parser.format.special_tokens}
    return {token: i for token, i in ids.items() if i is not None}
