"""``adjust_request`` sets the request itself where it can, as code for vLLM expects, else a copy of its type."""

import copy
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import msgspec
import pytest

from untemplate import vllm_api
from untemplate.messages import ChatCompletionRequest, DeltaMessage, ResponsesRequest
from untemplate.vllm_api import ParserEngine, ReasoningParserManager, ToolParserManager
from untemplate.vllm_api._requests import delta_of, hides_cuts

from .parser_examples import Tokenizer, hermes

PARSERS = {
    "reasoning": lambda: ReasoningParserManager.get_reasoning_parser("qwen3")(Tokenizer()),
    "tools": lambda: ToolParserManager.get_tool_parser("hermes")(Tokenizer()),
    "engine": lambda: ParserEngine(Tokenizer(), parser_engine_config=hermes()),
}


@dataclass
class Data:
    messages: list[Any]
    skip_special_tokens: bool = True


@dataclass(frozen=True)
class Frozen:
    skip_special_tokens: bool = True


@dataclass(frozen=True, slots=True)
class Slots:
    skip_special_tokens: bool = True


class Struct(msgspec.Struct, frozen=True):
    skip_special_tokens: bool = True


class Tuple(NamedTuple):
    skip_special_tokens: bool = True


class Model:
    """As pydantic's: knows how to copy itself, and does not want to be changed."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __setattr__(self, name, value):
        raise ValueError("frozen")

    def __eq__(self, other):
        return self.__dict__ == other.__dict__

    __hash__ = None

    def model_copy(self, *, update):
        return Model(**{**self.__dict__, **update})


REQUESTS = [
    {"messages": [{}], "skip_special_tokens": True},
    {"messages": [{}]},
    ChatCompletionRequest(model="m"),
    ResponsesRequest(model="m"),
    Data([{}]),
    Frozen(),
    Slots(),
    Struct(),
    Tuple(),
    SimpleNamespace(model="m"),
    Model(messages=[{}]),
]


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_the_request_itself_or_a_copy_of_the_same_type(parser, request_):
    request_ = copy.deepcopy(request_)
    before = copy.deepcopy(request_)
    adjusted = PARSERS[parser]().adjust_request(request_)
    assert type(adjusted) is type(request_)
    if isinstance(request_, ChatCompletionRequest | ResponsesRequest | Data | SimpleNamespace):
        assert adjusted is request_
    else:
        assert adjusted is not request_
        assert request_ == before
    value = adjusted["skip_special_tokens"] if isinstance(adjusted, dict) else adjusted.skip_special_tokens
    assert value is False


def test_nothing_else_changes():
    request = Data([{"role": "user"}])
    adjusted = PARSERS["tools"]().adjust_request(request)
    assert adjusted == request == Data([{"role": "user"}], skip_special_tokens=False)


def test_no_request():
    assert PARSERS["tools"]().adjust_request(None) is None


class NoPlace:
    __slots__ = ()


@pytest.mark.parametrize("request_", [NoPlace(), msgspec.defstruct("Empty", [])()])
def test_a_request_without_a_place_for_it(request_):
    with pytest.raises(TypeError, match=rf"^{type(request_).__name__} has no field 'skip_special_tokens'"):
        PARSERS["tools"]().adjust_request(request_)


def test_a_mapping_that_cannot_be_set():
    class Mine(dict):
        pass

    assert type(PARSERS["tools"]().adjust_request(Mine(a=1))) is Mine
    adjusted = PARSERS["tools"]().adjust_request(MappingProxyType({"a": 1}))
    assert dict(adjusted) == {"a": 1, "skip_special_tokens": False}


def test_a_delta_as_code_for_vllm_makes_it():
    delta = vllm_api.DeltaMessage(reasoning_content="why")
    assert (delta.reasoning, delta.reasoning_content, len(delta.tool_calls)) == ("why", "why", 0)
    assert delta_of(delta) == DeltaMessage(reasoning="why")
    assert delta.model_dump(exclude_none=True) == {"reasoning": "why", "tool_calls": []}
    assert vllm_api.DeltaMessage("assistant", "text") == vllm_api.DeltaMessage(role="assistant", content="text")


def test_only_texts_and_lists_of_a_request_hide_a_cut() -> None:
    """An object that has any attribute, such as a mock, has no stop string."""
    assert [hides_cuts(one) for one in (None, {"stop": ""}, {"stop": []}, {"input": None}, MagicMock())] == [False] * 5
    given = ({"stop": "x"}, {"stop": ["x"]}, {"stop_token_ids": [1]}, {"input": "x"}, {"input": []})
    assert [hides_cuts(one) for one in given] == [True] * 5
