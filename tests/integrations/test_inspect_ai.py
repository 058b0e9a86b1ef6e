"""``untemplate.integrations.inspect_ai`` in a real evaluation with a tool: ``make test-integrations``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

inspect_ai = pytest.importorskip("inspect_ai", reason="needs inspect-ai")

from inspect_ai import Task, eval  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ChatCompletionChoice, ModelAPI, ModelOutput, modelapi  # noqa: E402
from inspect_ai.scorer import includes  # noqa: E402
from inspect_ai.solver import generate, use_tools  # noqa: E402
from inspect_ai.tool import ToolInfo, ToolParam, ToolParams, tool  # noqa: E402

from tests.integrations.helper import TEMPLATE, wheel  # noqa: E402
from untemplate._internal.output_parser import OutputParser  # noqa: E402
from untemplate.integrations.inspect_ai import Handler, to_message  # noqa: E402

RECORDED = [
    "<think>\nI add.\n</think>\n\n"
    "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n3\n</parameter>\n</function>\n</tool_call>",
    "It is 5.",
]


@tool
def add():
    async def execute(a: int, b: int):
        """Add two numbers.

        Args:
            a: First number.
            b: Second number.
        """
        return str(a + b)

    return execute


@modelapi(name="recorded")
class Recorded(ModelAPI):
    """Answers with recorded outputs, as a provider of raw text would."""

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        handler = Handler(self.model_name, "nanbeige")
        turn = sum(message.role == "assistant" for message in input)
        message = handler.parse_assistant_response(RECORDED[turn], tools)
        reason = "tool_calls" if message.tool_calls else "stop"
        choice = ChatCompletionChoice(message=message, stop_reason=reason)
        return ModelOutput(model=self.model_name, choices=[choice])


def test_an_evaluation_with_a_tool(tmp_path: Path):
    task = Task([Sample("2 + 3?", target="5")], solver=[use_tools(add()), generate()], scorer=includes())
    (log,) = eval(task, model="recorded/m", log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["accuracy"].value == 1
    messages = log.samples[0].messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1].content[0].reasoning == "I add."
    assert messages[1].tool_calls[0].arguments == {"a": 2, "b": 3}
    assert (messages[2].text, messages[3].text) == ("5", "It is 5.")


def test_a_cut_call_has_an_error():
    parsed = OutputParser.named("hermes").parse('<tool_call>\n{"name": "add", "arguments": {"a": 2')
    message = to_message(parsed, "m")
    assert message.tool_calls[0].arguments == {}
    assert message.tool_calls[0].parse_error == (
        'the arguments of add are not a whole JSON object (incomplete): {"a": 2'
    )


def test_values_get_the_types_of_their_schema():
    info = ToolInfo(name="add", description="Add.", parameters=ToolParams(properties={"a": ToolParam(type="integer")}))
    text = "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n</function>\n</tool_call>"
    message = Handler("m", "qwen3_coder").parse_assistant_response(text, [info])
    assert message.tool_calls[0].arguments == {"a": 2}


TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool


@tool
def add():
    async def execute(a: int, b: int):
        \"\"\"Add two numbers.

        Args:
            a: First number.
            b: Second number.
        \"\"\"
        return str(a + b)

    return execute


@task
def adding():
    solver = [use_tools(add()), generate(tool_calls="none")]
    return Task([Sample("2 + 3? <|script_0|>"), Sample("Hello! <|script_1|>")], solver=solver)
"""
OUTPUTS = [
    '<think>\nI add.\n</think>\n\n<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>',
    "Nothing to add here.",
]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]


def test_the_provider_runs_a_model_by_name(tmp_path: Path):
    """With untemplate installed, ``inspect eval --model untemplate/MODEL`` finds it by its entry point."""
    pytest.importorskip("torch", reason="needs torch and transformers")
    from inspect_ai.log import list_eval_logs, read_eval_log

    from tests.vllm_serve.checkpoint import write_checkpoint

    write_checkpoint(tmp_path / "model", TEMPLATE, SPECIAL, "<|im_end|>", OUTPUTS)
    (tmp_path / "adding.py").write_text(TASK, "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    site = tmp_path / "site"
    subprocess.run([*pip, "--target", str(site), str(wheel(tmp_path))], check=True)
    command = [sys.executable, "-m", "inspect_ai", "eval", "adding.py", "--model", f"untemplate/{tmp_path / 'model'}"]
    options = ["-M", "do_sample=false", "--max-tokens", "200", "--log-dir", str(tmp_path / "logs"), "--display", "none"]
    environ = os.environ | {"PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([*command, *options], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    log = read_eval_log(list_eval_logs(str(tmp_path / "logs"))[0])
    assert log.status == "success", log.error
    called, answered = (sample.output for sample in log.samples)
    assert [part.reasoning for part in called.message.content if part.type == "reasoning"] == ["I add."]
    assert [(call.function, call.arguments) for call in called.message.tool_calls] == [("add", {"a": 2, "b": 3})]
    assert called.choices[0].stop_reason == "tool_calls"
    assert (answered.message.text, answered.message.tool_calls) == ("Nothing to add here.", None)
    assert answered.choices[0].stop_reason == "stop"
