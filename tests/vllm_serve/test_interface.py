"""vLLM's parser classes and ours, side by side, where vLLM is installed: names, parameters and defaults."""

from __future__ import annotations

import importlib
import inspect
from functools import cached_property
from typing import Any

import pytest

from untemplate import vllm_api

pytest.importorskip("vllm")

PLACES = {
    "Parser": "vllm.parser.abstract_parser",
    "DelegatingParser": "vllm.parser.abstract_parser",
    "ParserEngine": "vllm.parser.engine.parser_engine",
    "StreamingParserEngine": "vllm.parser.engine.streaming_parser_engine",
    "ParserEngineConfig": "vllm.parser.engine.parser_engine_config",
    "Transition": "vllm.parser.engine.parser_engine_config",
    "ParserState": "vllm.parser.engine.parser_engine_config",
    "EventType": "vllm.parser.engine.events",
    "SemanticEvent": "vllm.parser.engine.events",
    "ToolCallSlot": "vllm.parser.engine.parser_engine",
    "ReasoningParser": "vllm.reasoning",
    "ReasoningParserManager": "vllm.reasoning",
    "ToolParser": "vllm.tool_parsers",
    "ToolParserManager": "vllm.tool_parsers",
    "ParserManager": "vllm.parser.parser_manager",
}
NEWER = {
    "Parser": "always_adjust_request tool_strict_level",
    "DelegatingParser": "always_adjust_request finalize_generation tool_strict_level",
    "ParserEngine": "always_adjust_request find_reasoning_end reasoning_end_token_ids skip_reasoning_parsing "
    "tool_strict_level",
    "StreamingParserEngine": "reasoning_token_count",
    "ParserEngineConfig": "lexer_shape terminal_defs ",
    "SemanticEvent": "token_count",
    "ReasoningParser": "prepare_structured_tag",
    "ReasoningParserManager": "import_reasoning_parser lazy_parsers reasoning_parsers register_lazy_module",
    "ToolParser": "default_tool_strict_level get_structural_tag",
    "ToolParserManager": "import_tool_parser lazy_parsers register_lazy_module tool_parsers",
    "ParserManager": "validate_parser_tokenizer",
}
"""Names of vLLM's classes that its documented interface does not have; docs/vllm.md says so."""


def theirs(name: str) -> Any:
    return getattr(importlib.import_module(PLACES[name]), name)


@pytest.mark.parametrize("name", sorted(PLACES))
def test_names(name: str) -> None:
    own = getattr(vllm_api, name)
    missing = {one for one in dir(theirs(name)) if not one.startswith("_") and not hasattr(own, one)}
    fields = getattr(own, "__dataclass_fields__", {})
    missing -= set(fields) | set(getattr(own, "__annotations__", {}))
    assert missing == set(NEWER.get(name, "").split())


CALLABLES = [
    (name, method)
    for name in (
        "Parser",
        "DelegatingParser",
        "ParserEngine",
        "StreamingParserEngine",
        "ReasoningParser",
        "ToolParser",
        "ParserManager",
        "ReasoningParserManager",
        "ToolParserManager",
    )
    for method, value in inspect.getmembers(theirs(name), inspect.isroutine)
    if not isinstance(value, cached_property)
    if not method.startswith("_") and hasattr(getattr(vllm_api, name), method)
]


@pytest.mark.parametrize(("name", "method"), CALLABLES)
def test_parameters(name: str, method: str) -> None:
    """Whatever can be called on vLLM's class can be called in the same way on ours.

    One default differs: registering a name that is taken is an error (``force``).
    """
    wanted = inspect.signature(getattr(theirs(name), method)).parameters
    found = inspect.signature(getattr(getattr(vllm_api, name), method)).parameters
    kept = [parameter for parameter in wanted if parameter in found]
    assert kept == list(wanted)
    assert [parameter for parameter in found if parameter in wanted] == kept
    for parameter in found.values():
        if parameter.name not in wanted:
            assert parameter.default is not inspect.Parameter.empty, parameter
    for parameter in wanted.values():
        if parameter.default is not inspect.Parameter.empty and (method, parameter.name) != (
            "register_module",
            "force",
        ):
            assert found[parameter.name].default == parameter.default


def test_defaults_of_a_config() -> None:
    own, other = vllm_api.ParserEngineConfig(name="x"), theirs("ParserEngineConfig")(name="x")
    for field in ("stream_arg_deltas", "tool_args_json", "arg_structural_chars", "preserve_tokens",
                  "strip_trailing_reasoning_whitespace", "drop_whitespace_only_content_before_tools",
                  "strip_content_whitespace_with_tools", "validate_tool_names"):  # fmt: skip
        assert getattr(own, field) == getattr(other, field), field
    assert own.initial_state.name == other.initial_state.name
