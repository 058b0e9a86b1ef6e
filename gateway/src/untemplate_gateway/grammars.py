"""The grammar of a request: tools, forced calls and formats of the answer, in the dialect of the engine.

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

from .errors import bad_request
from .generation import Generation
from .manager.model import Model
from .processes import Workers, packed

AT_ONCE: Final = 4096
"""Bytes of tools and response format that are compiled in this process: under 5 ms, measured."""
_CACHED: Final = 256


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

    async def compile(self, parser: OutputParser, **order: Any) -> Grammar:
        """Return a grammar. ``order`` are the arguments of `OutputParser.grammar`.

        Raises:
            GrammarError: the grammar cannot be written in this dialect, or takes too long.
        """
        if _is_cheap(msgspec.json.encode((order["tools"], order["response_format"]))):
            return parser.grammar(**order)
        job = packed(_made, parser.format, _ids_of(parser) or None, **order)
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

    async def of(self, model: Model, request: Generation, reasoning: str) -> Grammar | None:
        """Return the grammar that a request needs; ``None`` if it needs none or the engine takes none.

        Args:
            reasoning: as for `OutputParser.grammar`.

        Raises:
            ApiError: it cannot be written.
        """
        dialect, form, tools = model.engine.takes.grammar, request.response_format, request.tools or None
        if dialect is None or request.constraint is not None:
            return None
        forced = request.tool_choice not in (None, "auto", "none")
        if model.engine.takes.messages and not forced:
            return None  # the server enforces the rest
        implied = bool(tools) and request.tool_choice != "none" and (forced or model.generic_tools)
        strict = any(tool["function"].get("strict") is True for tool in tools or ())
        if not (implied or strict or forced or form is not None):
            return None
        order = {
            "tools": tools,
            "tool_choice": request.tool_choice or "auto",
            "parallel_tool_calls": request.parallel_tool_calls,
            "dialect": dialect,
            "reasoning": reasoning,
            "response_format": form,
        }
        if implied and (followed := [_implied(tool) for tool in tools or ()]) != tools:
            try:
                return await self.compile(model.parser, **{**order, "tools": followed})
            except (GrammarError, RecursionError) as error:
                request.notes.add(f"tools: their schemas are not enforced: {error}")
        grammar = await self._made(model.parser, order)
        for note in grammar.notes:
            request.notes.add(f"grammar: {note}")
        return grammar

    async def _made(self, parser: OutputParser, order: dict[str, Any]) -> Grammar:
        try:
            return await self.compile(parser, **order)
        except GrammarError as error:
            field, message = "tools" if order["tools"] else "response_format", str(error)
            if message.startswith("response_format"):  # the error adds the field again
                field, message = "response_format", message.removeprefix("response_format").lstrip(": ")
            raise bad_request(field, message) from None
        except RecursionError:
            field = "response_format" if order["response_format"] is not None else "tools"
            raise bad_request(field, "a schema refers to itself without end") from None


def _made(format: Format, tokens: dict[str, int] | None, /, **order: Any) -> Grammar:
    return make_grammar(format, tokens=tokens, **order)


def _is_cheap(schemas: bytes) -> bool:
    """True if grammars for these schemas can be compiled on the event loop."""
    return len(schemas) <= AT_ONCE and b'"$ref"' not in schemas


def _ids_of(parser: OutputParser) -> dict[str, int]:
    """Return the ids of a parser's special tokens."""
    ids = {token: parser.token_id(token) for token in parser.format.special_tokens}
    return {token: i for token, i in ids.items() if i is not None}


def _implied(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool whose calls follow its schema, unless it has ``strict: false``."""
    function = tool["function"]
    return tool if function.get("strict") is not None else {**tool, "function": {**function, "strict": True}}
