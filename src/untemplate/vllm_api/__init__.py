"""vLLM's parser interface over the same machine: parsers by name, by subclassing, by config.

Importing this package lets ``OutputParser`` find the names that are registered with its managers.

>>> from untemplate.vllm_api import ToolParserManager, make_parser_request
>>> parser = ToolParserManager.get_tool_parser("hermes")(None)
>>> request = make_parser_request("m", [], [{"type": "function", "function": {"name": "f"}}])
>>> found = parser.extract_tool_calls('<tool_call>{"name": "f", "arguments": {}}</tool_call>', request)
>>> found.tool_calls[0].function.name
'f'
"""

from .._internal.backends.interface import register_lookup
from .._internal.jsontext.coercion import coerce_to_schema_type
from .._internal.machine.events import EventType, SemanticEvent
from .._internal.schemas.reading import extract_types_from_schema
from ._abstract import Parser, ReasoningParser, ToolParser
from ._backend import find_registered
from ._config import ParserEngineConfig, ParserState, Transition
from ._delegating import DelegatingParser, _WrappedParser
from ._format_parsers import FormatParser, FormatReasoningParser, FormatToolParser
from ._managers import ParserManager, ReasoningParserManager, ToolParserManager
from ._parser_engine import ParserEngine, StreamState, ToolCallSlot, make_parser_request, make_tool_call_id
from ._requests import DeltaMessage
from ._streaming_engine import StreamingParserEngine
from ._tools import find_tool_name, find_tool_properties

__all__ = [
    "DelegatingParser",
    "DeltaMessage",
    "EventType",
    "FormatParser",
    "FormatReasoningParser",
    "FormatToolParser",
    "Parser",
    "ParserEngine",
    "ParserEngineConfig",
    "ParserManager",
    "ParserState",
    "ReasoningParser",
    "ReasoningParserManager",
    "SemanticEvent",
    "StreamState",
    "StreamingParserEngine",
    "ToolCallSlot",
    "ToolParser",
    "ToolParserManager",
    "Transition",
    "_WrappedParser",
    "coerce_to_schema_type",
    "extract_types_from_schema",
    "find_tool_name",
    "find_tool_properties",
    "make_parser_request",
    "make_tool_call_id",
]

register_lookup(find_registered)
