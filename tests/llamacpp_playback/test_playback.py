"""The playback writes what it is given, and the server reads it. In a process of its own: its threads outlive it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for package in ("xllamacpp", "gguf", "numpy"):
    pytest.importorskip(package)

TEMPLATE = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": "y"}}\n</tool_call>'
OUTPUTS = ["Hello.", "naïve 漢字, \U0001f600.", CALL, f"I write `{CALL}` to call."]
PROGRAM = """
import json, os, sys
from tests.llamacpp_playback import Playback
template, outputs, tools = json.load(sys.stdin)
playback = Playback(template, outputs)
for output in outputs:
    for fields in ({}, {"tools": tools}):
        answer = playback.ask([{"role": "user", "content": "Hi"}], output, **fields)
        print(json.dumps([answer.message, answer.exact, answer.finish_reason, answer.problem]), flush=True)
os._exit(0)
"""
TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}},
    }
]


@pytest.fixture(scope="module")
def answers() -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps([TEMPLATE, OUTPUTS, TOOLS]), capture_output=True, text=True,
        check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.count("\n") == 2 * len(OUTPUTS), done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_outputs_without_tools(answers: list[Any]) -> None:
    for output, (message, exact, reason, problem) in zip(OUTPUTS, answers[::2], strict=True):
        assert (message, exact, reason, problem) == ({"role": "assistant", "content": output}, True, "stop", "")


def test_outputs_with_tools(answers: list[Any]) -> None:
    plain, letters, call, quoted = answers[1::2]
    assert plain[0]["content"] == OUTPUTS[0]
    assert letters[:2] == [{"role": "assistant", "content": OUTPUTS[1]}, True]
    (called,) = call[0]["tool_calls"]
    assert (called["function"], call[1:]) == ({"name": "f", "arguments": '{"x": "y"}'}, [True, "tool_calls", ""])
    # The grammar begins at the marker: what the model would write after the quoted call is forbidden.
    assert quoted[1] is False
    assert quoted[0]["content"] == "I write `"
    assert len(quoted[0]["tool_calls"]) == 1
