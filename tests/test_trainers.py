"""``docs/trainers.json`` records what trainers ask of parsers. These expressions are evaluated with our classes.

The trainers themselves were not run. Their calls of SGLang's classes are in ``tests/integrations/test_sglang.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.errors import UnknownFormatError
from untemplate.formats import lookup
from untemplate.vllm_api import ReasoningParserManager, ToolParserManager

RECORD = json.loads((Path(__file__).parents[1] / "docs" / "trainers.json").read_text("utf-8"))
PROJECTS: dict[str, Any] = RECORD["projects"]
NAMES = [
    (record, kind, name) for record in PROJECTS.values() for kind, names in record["names"].items() for name in names
]
CALLS = [
    pytest.param(one["call"], id=f"{name} {one['file']}")
    for name, record in PROJECTS.items()
    if record["engine"] == "vllm"
    for one in record["calls"]
]
TEXT = '<think>\nHm.\n</think>\n\nSo.\n<tool_call>\n{"name": "find", "arguments": {"q": "tea"}}\n</tool_call>'


@pytest.mark.parametrize("name", PROJECTS)
def test_a_record_has_its_source_and_a_date(name: str):
    record = PROJECTS[name]
    assert record["repository"].count("/") == 1
    assert len(record.get("commit", "")) == 40 or record["package"]
    assert date.fromisoformat(record["read"])
    assert record["engine"] in ("sglang", "vllm", "own")


@pytest.mark.parametrize(("record", "kind", "name"), NAMES)
def test_the_names_of_trainers_are_known(record: Any, kind: Any, name: str):
    if name in record.get("unknown", ()):
        with pytest.raises(UnknownFormatError):
            lookup(kind, name)
    else:
        assert lookup(kind, record.get("renamed", {}).get(name, name)).kind == kind


@pytest.mark.parametrize("call", CALLS)
def test_what_they_ask_of_vllm_s_managers(call: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ReasoningParserManager, "_registered", {})
    offered = {"ToolParserManager": ToolParserManager, "ReasoningParserManager": ReasoningParserManager}
    assert callable(eval(call, offered, {"tool": "hermes"}))


def test_the_class_for_rllm():
    """The code on the page, with the interface that was recorded: a registry, and a class with two methods."""

    @dataclass
    class ToolCall:
        name: str
        arguments: dict[str, Any]

    class ToolParser: ...

    class QwenToolParser(ToolParser):
        def get_tool_prompt(self, tools_schema: str) -> str:
            return tools_schema

    record = PROJECTS["rLLM"]
    registry: dict[str, Any] = {}
    offered = {"OutputParser": OutputParser, "json": json, "PARSER_REGISTRY": registry}
    exec(record["code"], offered | {"ToolCall": ToolCall, "ToolParser": ToolParser, "QwenToolParser": QwenToolParser})
    made = {"PARSER_REGISTRY": registry, "name": "untemplate", "text": TEXT}
    assert eval(record["calls"][0]["call"], made) == [ToolCall("find", {"q": "tea"})]
    assert registry["untemplate"]().get_tool_prompt("[]") == "[]"
