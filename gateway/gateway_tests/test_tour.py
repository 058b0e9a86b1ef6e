"""The tour of a served model: its questions and its printed text."""

from __future__ import annotations

import asyncio
import contextlib
import io

import pytest

from untemplate_gateway import tour as module
from untemplate_gateway.engines.wire import WireError
from untemplate_gateway.tour import tour

from .scripted import scripted
from .server import running

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@pytest.fixture(autouse=True)
def one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUESTIONS", ("How is it in Oslo?",))


def toured(outputs: list[str], model: str = "scripted") -> str:
    with running([scripted(outputs)]) as gateway, contextlib.redirect_stdout(io.StringIO()) as out:
        asyncio.run(tour(gateway.url, model))
    return out.getvalue()


def test_a_call_and_its_result() -> None:
    assert toured([f"<think>\nI look.\nNow.\n</think>\n\nWait.\n{CALL}", "Clear \x1b skies."]) == (
        "    user  How is it in Oslo?\n"
        "  thinks  I look.\n"
        "Now.\n"
        "    says  Wait.\n"
        '   calls  get_weather {"city": "Oslo"}\n'
        '    tool  {"temperature": 17, "condition": "cloudy"}\n'
        "    says  Clear \\x1b skies.\n"
        "\n"
    )


def test_a_model_that_calls_what_is_not_there_and_an_engine_that_breaks() -> None:
    shown = toured([CALL.replace("get_weather", "get_tide"), "Well \0"])
    assert shown.endswith("    says  Well \n   error  the engine broke\n\n")


def test_a_gateway_that_refuses() -> None:
    assert "the model 'nobody' does not exist (models: scripted)" in toured(["x"], "nobody")


def test_a_gateway_that_is_not_there() -> None:
    with pytest.raises(WireError):
        asyncio.run(tour("http://127.0.0.1:9", "m"))
