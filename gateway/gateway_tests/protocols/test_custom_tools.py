"""Custom tools of Chat Completions: free text for the client, a function with one argument for the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from untemplate_gateway.errors import ApiError
from untemplate_gateway.notes import Notes
from untemplate_gateway.protocols.chat import CHAT

from .stories import META, USAGE, Story, play, request

GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}
ASKED: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "Mend it."},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": '*** "é"'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Done."},
    ],
    "tools": [
        {"type": "custom", "custom": {"name": "apply_patch", "description": "Patch.", "format": GRAMMAR}},
        {"type": "function", "function": {"name": "find"}},
    ],
    "tool_choice": {"type": "custom", "custom": {"name": "apply_patch"}},
}
CALLS = (
    '<tool_call>\n{"name": "apply_patch", "arguments": {"input": "*** A\\n"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "find", "arguments": {"q": 1}}\n</tool_call>\n'
    '<tool_call>\n{"name": "apply_patch", "arguments": {"text": 5}}\n</tool_call>'
)


def test_the_model_is_offered_a_function() -> None:
    read = CHAT.read(ASKED, Notes())
    assert read.tools is not None
    assert read.messages is not None
    assert read.tools[0]["function"] == {
        "name": "apply_patch",
        "description": "Patch.\nThe input must follow this lark grammar:\nstart: X",
        "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
    }
    assert read.messages[1]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "apply_patch", "arguments": '{"input": "*** \\"é\\""}'}}
    ]
    assert read.tool_choice == {"type": "function", "function": {"name": "apply_patch"}}


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_the_client_gets_the_text(cut: int) -> None:
    """Whole and streamed. Arguments that are not the text of the tool are passed on as they are."""
    asked = CHAT.read(ASKED, Notes())
    story = Story("", CALLS, tools=asked.tools, request={"repeated": asked.repeated})
    data, ended = play(story, cut, CHAT)
    whole = CHAT.respond(request(story), [ended], USAGE, META)["choices"][0]["message"]["tool_calls"]
    assert [{key: value for key, value in call.items() if key != "id"} for call in whole] == [
        {"type": "custom", "custom": {"name": "apply_patch", "input": "*** A\n"}},
        {"type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}},
        {"type": "custom", "custom": {"name": "apply_patch", "input": '{"text": 5}'}},
    ]
    streamed: dict[int, dict[str, Any]] = {}
    for line in data.decode().split("\n"):
        for choice in json.loads(line[6:])["choices"] if line.startswith("data: {") else ():
            for call in choice["delta"].get("tool_calls") or ():
                known = streamed.setdefault(call.pop("index"), call)
                if known is not call:
                    function = known["function"]
                    function["arguments"] = function.get("arguments", "") + call["function"]["arguments"]
    assert [streamed[i] for i in range(len(whole))] == whole


def called(**call: Any) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "tool_calls": [call]}]}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"tools": ASKED["tools"] * 2}, "tools[2].custom.name: 'apply_patch' is the name of another tool, too"),
        ({"tools": [{"type": "custom"}]}, "tools[0].custom: is required"),
        ({"tools": [{"type": "magic"}]}, "tools[0].type: must be one of function, custom, got 'magic'"),
        (
            {"tool_choice": {"type": "custom", "custom": {"name": "g"}}},
            "tool_choice.custom.name: 'g' is not among the tools",
        ),
        (called(type="custom"), "messages[0].tool_calls[0].custom: is required"),
        (called(id="c"), "messages[0].tool_calls[0].function: is required"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ApiError) as caught:
        CHAT.read({**ASKED, **fields}, Notes())
    assert (caught.value.status, caught.value.message) == (400, problem)
