"""The one decision on a call's status."""

from __future__ import annotations

import pytest

from untemplate import OutputParser, Policy
from untemplate.machine.call_state import CallState, call_status
from untemplate.tools import ToolSet

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def call(name: str = "f", whole: bool = True, repairs: tuple[str, ...] = ()) -> CallState:
    state = CallState(0, "call_0", name)
    state.whole = whole
    state.repairs = repairs
    return state


@pytest.mark.parametrize(
    ("state", "arguments", "problems", "status"),
    [
        (call(), "{}", [], "ok"),
        (call(whole=False), "{", [], "incomplete"),
        (call("g", whole=False), "{", [], "incomplete"),
        (call(whole=False, repairs=("closed_brackets",)), "{}", [], "repaired"),
        (call(), "{'a': 1}", ["not_json"], "invalid_json"),
        (call("g"), "{'a': 1}", ["not_json"], "invalid_json"),
        (call("g"), "{}", [], "unknown_tool"),
        (call(), "[1]", ["not_an_object"], "invalid_json"),
        (call(), "{}", ["missing"], "invalid_arguments"),
        (call(repairs=("quotes",)), "{}", [], "repaired"),
        (call(repairs=("quotes",)), "{}", ["missing"], "invalid_arguments"),
    ],
)
def test_the_first_that_applies(state: CallState, arguments: str, problems: list[str], status: str):
    assert call_status(state, arguments, ToolSet(TOOLS), lambda: problems) == status


def test_any_tool_is_offered_where_the_tools_are_not_known():
    assert call_status(call("g"), "{}", ToolSet(None)) == "ok"


@pytest.mark.parametrize(
    "output",
    [
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {"a": 1',
        '<tool_call>\n{"name": "g", "arguments": {"a": 1}}\n</tool_call>',
        '<tool_call>\n{"name": "g", "arguments": {"a": 1',
        '<tool_call>\n{"name": "g", "arguments": {a: 1}}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {a: 1}}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": [1]}\n</tool_call>',
    ],
)
def test_a_call_policy_that_keeps_everything_changes_no_status(output: str):
    def statuses(policy: Policy) -> list[str]:
        return [
            found.status for found in OutputParser.named("hermes", policy=policy).parse(output, tools=TOOLS).tool_calls
        ]

    assert statuses(Policy(parallel_calls="first")) == statuses(Policy()) != []
