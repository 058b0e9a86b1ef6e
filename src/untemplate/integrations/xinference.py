"""Tool parsers for Xinference, one for each name of the catalogue.

>>> from untemplate.integrations.xinference import register     # doctest: +SKIP
>>> register()                                                  # doctest: +SKIP

A model's ``tool_parser`` then names one: ``untemplate:hermes``. Reasoning stays with Xinference, which reads it first.
Xinference passes whole calls on. A call that is cut or has no JSON object as arguments stays content, as in its own
parsers. It does not say when a stream ends. So a call that ends with the output (gpt-oss), or whose last marker may go
on (Gemma 4), needs the token after it in a stream.

Source: ``xinference/model/llm/tool_parsers/`` of Xinference 4.1.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._internal.output_parser import OutputParser
from ..formats import names
from ..policy import Policy
from ._partner import Theirs, partner

__all__ = ["UntemplateToolParser", "register"]

_MODULE: Final = "xinference.model.llm.tool_parsers"
_LEAST: Final = "4.1"
_theirs: Final = partner(f"{_MODULE}.abstract_tool_parser", "xinference", _LEAST)
_WHOLE: Final = Policy(cut_calls="content", malformed_arguments="content")

_Event = tuple[str | None, str | None, dict[str, Any] | None]


if TYPE_CHECKING:
    _ToolParser = Theirs
else:
    _ToolParser = _theirs.ToolParser


class UntemplateToolParser(_ToolParser):
    """Reads the calls of one Format. One object serves all requests, so it keeps nothing between them."""

    format_name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        fmt = OutputParser.named(self.format_name).format
        if fmt.reasoning is not None:
            fmt = fmt.extend(reasoning=None)
        self._parser = OutputParser.from_format(fmt, policy=_WHOLE)

    def extract_tool_calls(self, model_output: str) -> list[_Event]:
        """Return the content, if there is any, and the calls of a whole output."""
        parsed = self._parser.parse(model_output, tools=_tools())
        content: list[_Event] = [(parsed.content, None, None)] if parsed.content or not parsed.tool_calls else []
        return [*content, *((None, c.function.name, json.loads(c.function.arguments)) for c in parsed.tool_calls)]

    def extract_tool_calls_streaming(
        self, previous_text: list[str], current_text: str, delta_text: str
    ) -> list[tuple[Any, ...]] | None:
        """Return what a piece adds: content, and calls that it closes, each with its index."""
        content, calls = self._read(current_text)
        before, known = self._read(current_text[: len(current_text) - len(delta_text)])
        events: list[tuple[Any, ...]] = [(None, *call, len(known) + i) for i, call in enumerate(calls[len(known) :])]
        if len(content) > len(before):
            events.insert(0, (content[len(before) :], None, None))
        return events or None

    def _read(self, text: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """Return the content and the whole calls of the beginning of an output."""
        content: list[str] = []
        calls: dict[int, list[str]] = {}
        for delta in self._parser.stream(tools=_tools()).feed(text):
            content.append(delta.content or "")
            for call in delta.tool_calls or ():
                name, arguments = calls.setdefault(call.index, ["", ""])
                if call.function is not None:
                    calls[call.index] = [name + (call.function.name or ""), arguments + (call.function.arguments or "")]
        return "".join(content), [(name, json.loads(arguments)) for name, arguments in calls.values()]


def _tools() -> Any:
    """Return the tools of the request that is being answered."""
    return _theirs.request_tools_var.get()


def register() -> None:
    """Add ``untemplate:NAME`` for each name of the catalogue to Xinference's table of tool parsers."""
    package = partner(_MODULE, "xinference", _LEAST)
    for name in names("tool"):
        made = type("UntemplateToolParser", (UntemplateToolParser,), {"format_name": name, "__module__": __name__})
        package.register_tool_parser(f"untemplate:{name}")(made)
