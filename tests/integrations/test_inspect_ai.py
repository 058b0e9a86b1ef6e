"""``untemplate.integrations.inspect_ai`` in a real evaluation with a tool: ``make test-integrations``."""

from __future__ import annotations

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

from untemplate.integrations.inspect_ai import Handler, to_message  # noqa: E402
from untemplate.output_parser import OutputParser  # noqa: E402

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
