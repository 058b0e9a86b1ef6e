"""Agent templates for ms-swift that read calls with untemplate.

>>> from untemplate.integrations.ms_swift import register       # doctest: +SKIP
>>> register()                                                  # doctest: +SKIP

Each agent template of ms-swift whose name the catalogue knows, and whose calls that Format reads, gets another one:
``--agent_template untemplate:hermes`` writes prompts as ``hermes`` does, and reads outputs with untemplate. A call
without whole arguments is left out.

Source: ``swift/agent_template/base.py`` and ``mapping.py`` of ms-swift 4.6.
"""

from __future__ import annotations

from typing import Any, Final, cast

from .._internal.output_parser import OutputParser
from ..errors import UnknownFormatError
from ._partner import partner

__all__ = ["register"]

_LEAST: Final = "4.6"
_CALL: Final = {"role": "tool_call", "content": '{"name": "find", "arguments": {"q": "tea"}}'}
_CUT: Final = ("incomplete", "invalid_json")


def register() -> None:
    """Add ``untemplate:NAME`` to ms-swift's table for each of its agent templates that the catalogue knows."""
    table: dict[str, Any] = partner("swift.agent_template.mapping", "ms-swift", _LEAST).agent_template_map
    function = partner("swift.infer_engine", "ms-swift", _LEAST).Function
    for name, theirs in list(table.items()):
        try:
            parser = OutputParser.named(name)
        except UnknownFormatError:
            continue
        if _reads(theirs, parser):
            table[f"untemplate:{name}"] = _reading(theirs, parser, function)


def _reads(theirs: type, parser: OutputParser) -> bool:
    """True if a parser reads a call as an agent template writes it in the history."""
    written = cast(Any, theirs)()._format_tool_calls([_CALL])
    return [call.function.name for call in parser.parse(written).tool_calls] == ["find"]


def _reading(theirs: type, parser: OutputParser, function: Any) -> type:
    """Return an agent template that reads calls with a parser, and is like another one in everything else."""

    def get_toolcall(self: Any, response: str, tools: Any = None) -> list[Any]:
        """Return the calls of an output."""
        calls = parser.parse(response, tools=tools).tool_calls
        return [function(name=c.function.name, arguments=c.function.arguments) for c in calls if c.status not in _CUT]

    made = {"get_toolcall": get_toolcall, "supports_tool_schema": True, "__module__": __name__}
    return type(f"Untemplate{theirs.__name__}", (theirs,), made)
