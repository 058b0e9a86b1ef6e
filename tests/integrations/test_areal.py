"""AReaL's own module for calls with untemplate's parsers in SGLang: ``make test-integrations``.

AReaL's package starts its trainers, so only this module of its wheel is imported.
"""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import Any

import pytest

from .helper import TOOLS, modules_only, shows

pytest.importorskip("sglang", reason="needs SGLang")
modules_only("areal", "areal", "areal.utils", "areal.experimental", "areal.experimental.openai")
_logging: Any = ModuleType("areal.utils.logging")
_logging.getLogger = logging.getLogger
sys.modules["areal.utils.logging"] = _logging
sys.modules["areal.utils"].logging = _logging  # type: ignore[attr-defined]

from areal.experimental.openai.tool_call_parser import process_tool_calls  # noqa: E402

import untemplate.integrations.sglang  # noqa: E402, F401
from untemplate import OutputParser  # noqa: E402

CALL = {"id": "x", "type": "function", "function": {"name": "find", "arguments": {"q": "tea, or coffee"}}}


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "kimi_k2", "deepseek_v31", "minimax_m2", "mistral"])
def test_calls_of_areal(name: str):
    text = OutputParser.named(name).render(
        {"content": "One moment.", "tool_calls": [{**CALL, "id": "functions.find:0"}]}
    )
    calls, rest, reason = process_tool_calls(text, TOOLS, f"untemplate:{name}", "untemplate:qwen3", "stop")
    assert [(call.function.name, call.function.arguments) for call in calls] == [("find", '{"q": "tea, or coffee"}')]
    assert rest.strip().endswith("One moment.")
    assert reason == "tool_calls"


def test_the_example_of_areal(capsys: pytest.CaptureFixture[str]):
    assert shows("areal_parsers.py", capsys)
