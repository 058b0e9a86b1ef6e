"""The grammar of a request: tools, forced calls and formats of the answer, in the dialect of the engine."""

from __future__ import annotations

from typing import Any

import msgspec

from untemplate.grammar import Grammar, GrammarError

from .errors import bad_request
from .generation import Generation
from .grammars import GrammarCompiler, GrammarOrder
from .manager.model import Model


async def request_grammar(
    model: Model, request: Generation, reasoning: str, compiler: GrammarCompiler
) -> Grammar | None:
    """Return the grammar that a request needs; ``None`` if it needs none or the engine takes none.

    Args:
        reasoning: as for `OutputParser.grammar`.

    Raises:
        ApiError: it cannot be written.
    """
    dialect = model.engine.takes.grammar
    if dialect is None or request.constraint is not None:
        return None
    forced = request.tool_choice not in (None, "auto", "none")
    if model.engine.takes.messages and not forced:
        return None  # the server enforces the rest
    offered = request.tools if request.tool_choice != "none" else None
    implied = bool(offered) and (forced or model.generic_tools)
    strict = any(_strict(tool) for tool in request.tools or ())
    if not (implied or strict or forced or request.response_format is not None):
        return None
    order = GrammarOrder(
        tools=request.tools or None,
        tool_choice=request.tool_choice or "auto",
        parallel_tool_calls=request.parallel_tool_calls,
        dialect=dialect,
        reasoning=reasoning,
        response_format=request.response_format,
    )
    grammar = await _with_schemas(model, request, order, compiler) if implied else None
    if grammar is None:
        grammar = await _compiled(model, order, compiler)
        for note in grammar.notes:
            request.notes.add(f"grammar: {note}")
    return grammar


async def _with_schemas(
    model: Model, request: Generation, order: GrammarOrder, compiler: GrammarCompiler
) -> Grammar | None:
    """Compile a grammar in which calls follow the schemas of all tools that are not ``strict: false``; ``None`` if
    a schema cannot be written as a grammar."""
    tools = [_implied(tool) for tool in order.tools or ()]
    if tools == order.tools:
        return None
    try:
        return await compiler.compile(model.parser, msgspec.structs.replace(order, tools=tools))
    except (GrammarError, RecursionError) as error:
        request.notes.add(f"tools: their schemas are not enforced: {error}")
        return None


async def _compiled(model: Model, order: GrammarOrder, compiler: GrammarCompiler) -> Grammar:
    """Compile the grammar.

    Raises:
        ApiError: it cannot be written.
    """
    try:
        return await compiler.compile(model.parser, order)
    except GrammarError as error:
        field = "tools" if order.tools else "response_format"
        message = str(error)
        if message.startswith("response_format"):
            # The message already names the field, and the error adds it in front.
            field, message = "response_format", message.removeprefix("response_format").lstrip(": ")
        raise bad_request(field, message) from None
    except RecursionError:
        field = "response_format" if order.response_format is not None else "tools"
        raise bad_request(field, "a schema refers to itself without end") from None


def _strict(tool: dict[str, Any]) -> bool:
    function = tool.get("function")
    return isinstance(function, dict) and function.get("strict") is True


def _implied(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool whose calls follow its schema, unless it has ``strict: false``."""
    function = tool.get("function")
    if not isinstance(function, dict) or function.get("strict") is not None:
        return tool
    return {**tool, "function": {**function, "strict": True}}
