"""``untemplate.integrations.verl`` in verl's own registry: ``make test-integrations``."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

theirs = pytest.importorskip("verl.experimental.agent_loop.tool_parser", reason="needs verl")
schemas = pytest.importorskip("verl.tools.schemas")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))
import trl_grpo  # noqa: E402

import untemplate.integrations.verl  # noqa: E402, F401
from untemplate.formats import named  # noqa: E402

TOOL = schemas.OpenAIFunctionToolSchema.model_validate(
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    }
)
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'


def extract(name: str, text: str, tools: list[Any] | None) -> tuple[str, list[tuple[str, str]]]:
    tokenizer = trl_grpo.tokenizer()
    parser = theirs.ToolParser.get_tool_parser(name, tokenizer)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    content, calls = asyncio.run(parser.extract_tool_calls(ids, tools))
    assert all(isinstance(call, theirs.FunctionCall) for call in calls)
    return content, [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize("name", ["untemplate", "untemplate:hermes", "hermes"])
def test_calls_and_content(name: str):
    content, calls = extract(name, f"One moment.\n{CALL}\n{CALL}", [TOOL])
    assert content.strip() == "One moment."
    assert [(tool, arguments.replace(" ", "")) for tool, arguments in calls] == [("add", '{"a":2,"b":3}')] * 2


def test_reasoning_remains_in_the_text():
    reasoning = "<think>\nTwo and three.\n</think>\n\n"
    call = (
        "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n"
        "<parameter=b>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    assert extract("untemplate:nanbeige", reasoning + call, [TOOL]) == (reasoning, [("add", '{"a": 2, "b": 3}')])


def test_two_names_and_files(tmp_path: Path):
    file = tmp_path / "mine.json"
    file.write_text(named("hermes+qwen3").to_json())
    for name in ("hermes+qwen3", str(file)):
        content, calls = extract(f"untemplate:{name}", f"<think>\nHm.\n</think>\n\n{CALL}", [TOOL])
        assert (content, [tool for tool, _ in calls]) == ("<think>\nHm.\n</think>\n\n", ["add"])
    with pytest.raises(ValueError, match=r"^unknown format 'hermess'; did you mean 'hermes'\?"):
        extract("untemplate:hermess", CALL, [TOOL])
    with pytest.raises(ValueError, match=r"^Unknown tool parser: hermess$"):
        extract("hermess", CALL, [TOOL])


def test_a_cut_call_is_text():
    assert extract("untemplate", CALL[:40], [TOOL]) == (CALL[:40], [])


def test_the_end_of_a_turn_stops_generation():
    tokenizer = trl_grpo.tokenizer()
    parser = theirs.ToolParser.get_tool_parser("untemplate", tokenizer)
    assert parser.stop_token_ids == [tokenizer.convert_tokens_to_ids("<|im_end|>")]


def test_verl_loads_the_module_that_its_variable_names():
    code = "import verl.experimental.agent_loop.tool_parser as t; print('untemplate' in t.ToolParser._registry)"
    environ = os.environ | {
        "VERL_USE_EXTERNAL_MODULES": "untemplate.integrations.verl", "PYTHONPATH": str(ROOT / "src")
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False)
    assert done.stdout.splitlines()[-1] == "True", done.stderr
