"""untemplate: a chat template turns messages into text, untemplate turns the text back into messages.

>>> from untemplate import OutputParser
>>> parser = OutputParser.named("hermes")
>>> parser.parse('<tool_call>{"name": "f", "arguments": {}}</tool_call>').tool_calls[0].function.name
'f'

The names in ``__all__`` are loaded from their modules when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    COMPILED: bool
    """True if the engine is compiled; see docs/benchmarks.md."""
    from ._internal.deltas import assemble
    from ._internal.output_parser import OutputParser
    from ._internal.stream import Stream
    from .analysis import Certificate
    from .errors import (
        AnalysisError,
        FormatError,
        GrammarError,
        IncompatibleFormatsError,
        TemplateError,
        UnknownFormatError,
        UntemplateError,
    )
    from .format import Format
    from .messages import DeltaMessage, Diagnostic, Item, ParsedOutput, Span, ToolCall
    from .policy import Policy
    from .templates import ChatTemplate

__all__ = [
    "COMPILED",
    "AnalysisError",
    "Certificate",
    "ChatTemplate",
    "DeltaMessage",
    "Diagnostic",
    "Format",
    "FormatError",
    "GrammarError",
    "IncompatibleFormatsError",
    "Item",
    "OutputParser",
    "ParsedOutput",
    "Policy",
    "Span",
    "Stream",
    "TemplateError",
    "ToolCall",
    "UnknownFormatError",
    "UntemplateError",
    "__version__",
    "assemble",
]

__version__ = "0.1.0"

_MODULE_OF = {
    "AnalysisError": "errors",
    "Certificate": "analysis",
    "ChatTemplate": "templates",
    "DeltaMessage": "messages",
    "Diagnostic": "messages",
    "Format": "format",
    "FormatError": "errors",
    "GrammarError": "errors",
    "IncompatibleFormatsError": "errors",
    "Item": "messages",
    "OutputParser": "_internal.output_parser",
    "ParsedOutput": "messages",
    "Policy": "policy",
    "Span": "messages",
    "Stream": "_internal.stream",
    "TemplateError": "errors",
    "ToolCall": "messages",
    "UnknownFormatError": "errors",
    "UntemplateError": "errors",
    "assemble": "_internal.deltas",
}


def __getattr__(name: str) -> Any:
    if name == "COMPILED":
        from importlib.util import find_spec  # the import takes longer than that of the other names here

        origin = find_spec("._internal.machine.machine", __name__)
        return origin is not None and not str(origin.origin).endswith(".py")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
