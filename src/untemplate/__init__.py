"""untemplate: a chat template turns messages into text, untemplate turns the text back into messages.

>>> from untemplate import OutputParser
>>> parser = OutputParser.named("hermes")
>>> parser.parse('<tool_call>{"name": "f", "arguments": {}}</tool_call>').tool_calls[0].function.name
'f'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .format import Format, FormatError
    from .messages import DeltaMessage, ParsedOutput
    from .output_parser import OutputParser
    from .policy import Policy
    from .stream import Stream

__all__ = ["DeltaMessage", "Format", "FormatError", "OutputParser", "ParsedOutput", "Policy", "Stream", "__version__"]

__version__ = "0.1.0"

_HOME = {
    "DeltaMessage": "messages",
    "Format": "format",
    "FormatError": "format",
    "OutputParser": "output_parser",
    "ParsedOutput": "messages",
    "Policy": "policy",
    "Stream": "stream",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
