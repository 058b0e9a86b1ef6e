"""A plugin of pytest: write what another project's parsers return while its own tests run.

``UNTEMPLATE_RECORD`` names the file: one JSON object a line, for each whole output that a parser read in a test that
passed. Only the project's interface for whole outputs is wrapped; nothing else changes.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

_current: list[dict[str, Any]] = []
_found: list[dict[str, Any]] = []


def pytest_configure(config: pytest.Config) -> None:
    for wrap in (_wrap_vllm, _wrap_sglang):
        with contextlib.suppress(ImportError):
            wrap()


def pytest_runtest_setup() -> None:
    _current.clear()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _found.extend({"test": report.nodeid, **one} for one in _current)


def pytest_sessionfinish() -> None:
    with open(os.environ["UNTEMPLATE_RECORD"], "w", encoding="utf-8") as out:
        for one in _found:
            out.write(json.dumps(one, ensure_ascii=False) + "\n")


def _wrapped(
    method: Callable[..., Any], names: dict[type, str], read: Callable[..., dict[str, Any]]
) -> Callable[..., Any]:
    def call(self: Any, output: str, *args: Any, **kwargs: Any) -> Any:
        result = method(self, output, *args, **kwargs)
        with contextlib.suppress(Exception):  # a stand-in of the test that is no request or no text
            one = {"parser": names[type(self)], "output": output, **read(self, result, *args, **kwargs)}
            json.dumps(one)
            _current.append(one)
        return result

    return call


def _wrap_vllm() -> None:
    from vllm.tool_parsers import ToolParserManager

    def read(parser: Any, result: Any, request: Any = None, *args: Any, **kwargs: Any) -> dict[str, Any]:
        offered = getattr(request, "tools", None) or getattr(parser, "tools", None) or ()
        tools = [tool.model_dump() for tool in offered] or None
        calls = [[call.function.name, call.function.arguments] for call in result.tool_calls]
        return {"tools": tools, "content": result.content or "", "calls": calls}

    names: dict[type, str] = {}
    for name in ToolParserManager.list_registered():
        with contextlib.suppress(Exception):  # a parser whose packages are missing
            names.setdefault(ToolParserManager.get_tool_parser(name), name)
    for cls in names:
        if "extract_tool_calls" in vars(cls):
            cls.extract_tool_calls = _wrapped(cls.extract_tool_calls, names, read)
    inherited = {base for cls in names for base in cls.__mro__ if "extract_tool_calls" in vars(base)} - set(names)
    for base in inherited:
        base.extract_tool_calls = _wrapped(base.extract_tool_calls, names, read)


def _wrap_sglang() -> None:
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    def read(parser: Any, result: Any, tools: Any = (), *args: Any, **kwargs: Any) -> dict[str, Any]:
        calls = [[call.name, call.parameters] for call in result.calls]
        offered = [tool.model_dump() for tool in tools] or None
        return {"tools": offered, "content": result.normal_text or "", "calls": calls}

    names: dict[type, str] = {}
    for name, cls in FunctionCallParser.ToolCallParserEnum.items():
        names.setdefault(cls, name)
    for cls in names:
        cls.detect_and_parse = _wrapped(cls.detect_and_parse, names, read)
