"""The one decision on a call's status."""

from __future__ import annotations

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.backends.filters import call_policy
from untemplate._internal.backends.markup_in_values import MarkupInValues
from untemplate._internal.backends.unread_markers import UnreadMarkers
from untemplate._internal.machine.call_state import CUT, VALID, WHOLE, CallState, call_status
from untemplate.tools import ToolSet

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def call(
    name: str = "f", whole: bool = True, repairs: tuple[str, ...] = (), recovered: bool = False, valid: bool = False
) -> CallState:
    state = CallState(0, "call_0", name)
    state.repairs = repairs
    state.recovered = recovered
    state.ending = CUT if not whole else VALID if valid else WHOLE
    return state


def no_markup(name: str, arguments: str, tools: ToolSet) -> str:
    return ""


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
        (call(recovered=True), "{}", [], "recovered"),
        (call(recovered=True), "{}", ["missing"], "invalid_arguments"),
        (call("g", recovered=True), "{}", [], "unknown_tool"),
        (call(whole=False, recovered=True), "{", [], "incomplete"),
        (call(recovered=True, repairs=("quotes",)), "{}", [], "repaired"),
        (call(), "NaN", [], "invalid_json"),
        (call(valid=True), "4", [], "invalid_json"),
        (call(valid=True), " [1]", [], "invalid_json"),
        (call(valid=True), '\n{"a": 1}', [], "ok"),
    ],
)
def test_the_first_that_applies(state: CallState, arguments: str, problems: list[str], status: str):
    assert call_status(state, arguments, ToolSet(TOOLS), no_markup, lambda: problems) == status


def test_any_tool_is_offered_where_the_tools_are_not_known():
    assert call_status(call("g"), "{}", ToolSet(None), no_markup) == "ok"


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


@pytest.mark.parametrize("policy", [Policy(), Policy(parallel_calls="first"), Policy(unknown_tools="content")])
@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize("arguments", ["NaN", "Infinity", "-Infinity", "4", "[1]", '"x"', '{"a": NaN}'])
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("hermes", '<tool_call>{"name": "f", "arguments": ARGUMENTS}</tool_call>'),
        ("gpt-oss", "<|channel|>commentary to=functions.f<|message|>ARGUMENTS<|call|>"),
        ("mistral", "[TOOL_CALLS]f[ARGS]ARGUMENTS"),
    ],
)
def test_only_an_object_is_ok(
    name: str, written: str, arguments: str, tools: list[dict[str, object]] | None, policy: Policy
):
    parsed = OutputParser.named(name, policy=policy).parse(written.replace("ARGUMENTS", arguments), tools=tools)
    assert [call.status for call in parsed.tool_calls] in ([], ["invalid_json"])


def test_strict_keeps_a_recovered_call_if_its_arguments_validate():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    parser = OutputParser.named("hermes", policy=Policy(strict=True))
    kept = parser.parse('<tool_call>{"name": "f", "arguments": {"a": 1}}}</tool_call>', tools=tools)
    assert [(call.function.arguments, call.status) for call in kept.tool_calls] == [('{"a": 1}', "recovered")]
    dropped = parser.parse('<tool_call>{"name": "f", "arguments": {"a": "x"}}}</tool_call>', tools=tools)
    assert dropped.tool_calls == []
    assert [d.code for d in dropped.diagnostics] == ["dropped_call", "stray_text"]


def test_a_policy_that_holds_a_call_knows_of_markup_in_its_values():
    fmt = OutputParser.named("qwen3_coder").format
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}}
    policy = call_policy(
        Policy(cut_calls="drop"),
        ToolSet([{"type": "function", "function": tool}]),
        MarkupInValues(fmt, UnreadMarkers(fmt)),
    )
    assert policy is not None
    state = call()
    policy.decide(state, '{"a": "x\\nb>\\ny"}', 0)
    assert (state.status, state.markup) == ("recovered", "b")


def test_a_close_that_stays_content_lowers_a_call_that_a_policy_has_kept():
    raw = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\nText, then </tool_call> again.'
    for policy in (Policy(), Policy(cut_calls="drop"), Policy(strict=True)):
        parsed = OutputParser.named("hermes").parse(raw, tools=TOOLS, policy=policy)
        assert [one.status for one in parsed.tool_calls] == ["recovered"]
