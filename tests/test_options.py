"""Parameters that several public methods share: they stand once, and signatures show them one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from untemplate import OutputParser
from untemplate._internal.backends.interface import OutputContext
from untemplate._internal.options import OutputOptions, ParserOptions, StreamOptions, WholeOptions
from untemplate.batch import parse_many, settings_for
from untemplate.batch._many import BatchOptions

PARSER = OutputParser.named("hermes")


def names(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_options_are_what_is_known_about_an_output():
    assert set(StreamOptions.__annotations__) == {field.name for field in msgspec.structs.fields(OutputContext)}


def test_the_options_are_parameters_of_the_constructor():
    parameters = inspect.signature(OutputParser.__init__).parameters
    for make in (OutputParser.named, OutputParser.from_format, OutputParser.from_template, OutputParser.for_model):
        shared = [
            one for one in inspect.signature(make).parameters.values() if one.name in ParserOptions.__annotations__
        ]
        assert [one.name for one in shared] == list(ParserOptions.__annotations__)
        assert [(one.default, one.annotation) for one in shared] == [
            (parameters[one.name].default, parameters[one.name].annotation) for one in shared
        ]


def test_signatures_show_the_options_one_by_one():
    whole = ["model_output", "request", "finish_reason", "token_ids", *WholeOptions.__annotations__]
    assert names(PARSER.parse) == whole
    assert names(PARSER.parse_complete_with_fallback) == whole
    assert names(PARSER.parse_tokens) == ["token_ids", "request", "finish_reason", *OutputOptions.__annotations__]
    assert names(PARSER.stream) == list(StreamOptions.__annotations__)
    assert names(settings_for) == ["format", "keep", *BatchOptions.__annotations__]
    assert names(parse_many) == ["rows", "format", "keep", "processes", *BatchOptions.__annotations__]


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("named", lambda: OutputParser.named("hermes", spans=True)),  # type: ignore[call-arg]
        ("from_format", lambda: OutputParser.from_format(PARSER.format, spans=True)),  # type: ignore[call-arg]
        ("from_template", lambda: OutputParser.from_template("{{ messages }}", spans=True)),  # type: ignore[call-arg]
        ("for_model", lambda: OutputParser.for_model("m", spans=True)),  # type: ignore[call-arg]
        ("parse", lambda: PARSER.parse("x", collect=True)),  # type: ignore[call-arg]
        ("parse", lambda: PARSER.parse_complete_with_fallback("x", collect=True)),  # type: ignore[call-arg]
        ("parse_tokens", lambda: PARSER.parse_tokens([], collect=True)),  # type: ignore[call-arg]
        ("stream", lambda: PARSER.stream(token_ids=[])),  # type: ignore[call-arg]
        ("settings_for", lambda: settings_for("hermes", seed=1)),  # type: ignore[call-arg]
        ("parse_many", lambda: parse_many([], "hermes", seed=1)),  # type: ignore[call-arg]
    ],
)
def test_an_option_of_another_method_is_refused(method: str, call: Callable[[], object]):
    with pytest.raises(
        TypeError, match=rf"^{method}\(\) got an unexpected keyword argument '(spans|collect|token_ids|seed)'$"
    ):
        call()
