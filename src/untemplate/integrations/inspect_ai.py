"""Messages for inspect-ai, for providers that get raw text from a model.

``Handler`` is what inspect-ai's providers for local models call to read an answer (its ``HFHandler`` knows three
families). `to_message` is for a provider of your own, which returns ``ModelOutput`` with the message.

Source: ``inspect_ai/model/_providers/util`` of inspect-ai 0.3.285.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from .._internal.output_parser import OutputParser
from ..messages import ParsedOutput, ToolCall
from ._partner import Theirs, partner

__all__ = ["Handler", "to_message"]

_LEAST: Final = "0.3.200"
_model: Final = partner("inspect_ai.model", "inspect-ai", _LEAST)
_tool: Final = partner("inspect_ai.tool", "inspect-ai", _LEAST)
_util: Final = partner("inspect_ai.model._providers.util", "inspect-ai", _LEAST)


def to_message(parsed: ParsedOutput, model: str) -> Any:
    """Return a parsed output as a ``ChatMessageAssistant``.

    A call whose arguments are no JSON object has a ``parse_error``, which inspect-ai reports to the model.
    """
    content: Any = parsed.content or ""
    if parsed.reasoning:
        text = [_model.ContentText(text=content)] if content else []
        content = [_model.ContentReasoning(reasoning=parsed.reasoning), *text]
    return _model.ChatMessageAssistant(
        content=content, tool_calls=[_call(call) for call in parsed.tool_calls] or None, model=model, source="generate"
    )


def _call(call: ToolCall) -> Any:
    name, written = call.function.name, call.function.arguments
    if call.status in ("incomplete", "invalid_json"):
        error = f"the arguments of {name} are not a whole JSON object ({call.status}): {written:.500}"
        return _tool.ToolCall(id=call.id, function=name, arguments={}, parse_error=error)
    return _tool.ToolCall(id=call.id, function=name, arguments=json.loads(written))


if TYPE_CHECKING:
    _ChatAPIHandler = Theirs
else:
    _ChatAPIHandler = _util.ChatAPIHandler


class Handler(_ChatAPIHandler):
    """Reads the answers of one model.

    Args:
        model: name of the model in messages.
        parser: a name, as for `OutputParser.named`, or a parser.

    Raises:
        UnknownFormatError: the name is not in the catalogue.
    """

    def __init__(self, model: str, parser: str | OutputParser) -> None:
        super().__init__(model)
        self._parser = OutputParser.named(parser) if isinstance(parser, str) else parser

    def parse_assistant_response(self, response: str, tools: Sequence[Any]) -> Any:
        """Return the message of an answer; ``tools`` are inspect-ai's ``ToolInfo``."""
        offered = [tool.model_dump(exclude_none=True) for tool in tools]
        return to_message(self._parser.parse(response, tools=offered), self.model)
