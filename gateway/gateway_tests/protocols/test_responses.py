"""The Responses dialect, against openai's own types and accumulator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from untemplate_gateway.errors import ApiError
from untemplate_gateway.generation import Generation, Sampling, Thinking
from untemplate_gateway.notes import Notes
from untemplate_gateway.protocols.responses import RESPONSES

from .stories import ERROR, META, USAGE, Story, call, events, every_cut, every_story, letter, play, request, whole

# -- Responses ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def typed() -> Any:
    responses = pytest.importorskip("openai.types.responses")
    from pydantic import TypeAdapter

    return TypeAdapter(responses.ResponseStreamEvent)


@every_cut
@every_story
def test_streamed_is_whole(story: Story, cut: int):
    data, ended = play(story, cut, RESPONSES)
    found = events(data)
    expected = whole(RESPONSES, story, ended)
    assert [one["sequence_number"] for _, one in found] == list(range(len(found)))
    assert all(name == one["type"] for name, one in found)
    assert found[-1] == (
        f"response.{expected['status']}",
        {"type": f"response.{expected['status']}", "response": expected, "sequence_number": len(found) - 1},
    )
    assert [one["item"] for name, one in found if name == "response.output_item.done"] == expected["output"]


@every_story
def test_clients_understand_it(typed: Any, story: Story):
    from openai import omit
    from openai.lib.streaming.responses._responses import ResponseStreamState
    from openai.types.responses import Response

    data, ended = play(story, 3, RESPONSES)
    if b"\\ud" in data:
        return  # pydantic takes no lone surrogates
    expected = whole(RESPONSES, story, ended)
    assert Response.model_validate(expected).output_text == (ended.parsed.content or "")
    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    for _, one in events(data):
        state.handle_event(typed.validate_python(one))
    snapshot = state._ResponseStreamState__current_snapshot
    told = {item.id: item for item in snapshot.output}
    assert [item["id"] for item in expected["output"]] == list(told)
    for item in expected["output"]:
        if item["type"] == "message":
            assert told[item["id"]].content[0].text == item["content"][0]["text"]
        elif item["type"] == "function_call":
            assert told[item["id"]].arguments == item["arguments"]


@every_cut
def test_log_probabilities(typed: Any, cut: int):
    story = Story("", "<think>\nHm.\n</think>\n\nYes" + call("f", "{}"), request={"logprobs": 1})
    data, ended = play(story, cut, RESPONSES)
    found = events(data)
    for _, one in found:
        typed.validate_python(one)
    assert found[-1][1]["response"] == whole(RESPONSES, story, ended)
    letters = [letter(c) for c in "Yes"]
    assert found[-1][1]["response"]["output"][1]["content"][0]["logprobs"] == letters
    assert [t for name, one in found if name == "response.output_text.delta" for t in one["logprobs"]] == letters


RESPONSE = {
    "id": "resp_0123456789abcdef",
    "object": "response",
    "created_at": 1_700_000_000,
    "conversation": None,
    "status": "in_progress",
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "model": "acme-1",
    "output": [],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": None,
    "top_p": None,
    "truncation": "disabled",
    "usage": None,
    "user": None,
    "metadata": {},
}
SPENT = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 42,
}


def test_every_event_of_a_story():
    story = Story("", "<think>\nHm.\n</think>\n\nYes." + call("f", '{"x": 1}'))
    data, ended = play(story, 10**6, RESPONSES, asked=RESPONSES.read({"input": "x"}))
    thought = {"item_id": "rs_0123456789abcdef_0", "output_index": 0, "content_index": 0}
    text = {"item_id": "msg_0123456789abcdef_1", "output_index": 1, "content_index": 0}
    calling = {"item_id": "fc_0123456789abcdef_2", "output_index": 2}
    call_id = ended.parsed.tool_calls[0].id
    items: list[dict[str, Any]] = [
        {
            "id": "rs_0123456789abcdef_0",
            "type": "reasoning",
            "status": "completed",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        {
            "id": "msg_0123456789abcdef_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}],
        },
        {
            "id": "fc_0123456789abcdef_2",
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": "f",
            "arguments": '{"x": 1}',
        },
    ]
    begun = {"status": "in_progress"}
    expected: list[dict[str, Any]] = [
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.in_progress", "response": RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": {**items[0], **begun, "content": []}},
        {"type": "response.content_part.added", **thought, "part": {"type": "reasoning_text", "text": ""}},
        {"type": "response.reasoning_text.delta", **thought, "delta": "Hm."},
        {"type": "response.reasoning_text.done", **thought, "text": "Hm."},
        {"type": "response.content_part.done", **thought, "part": items[0]["content"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": items[0]},
        {"type": "response.output_item.added", "output_index": 1, "item": {**items[1], **begun, "content": []}},
        {"type": "response.content_part.added", **text, "part": {**items[1]["content"][0], "text": ""}},
        {"type": "response.output_text.delta", **text, "delta": "Yes.", "logprobs": []},
        {"type": "response.output_text.done", **text, "text": "Yes.", "logprobs": []},
        {"type": "response.content_part.done", **text, "part": items[1]["content"][0]},
        {"type": "response.output_item.done", "output_index": 1, "item": items[1]},
        {"type": "response.output_item.added", "output_index": 2, "item": {**items[2], **begun, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", **calling, "delta": '{"x": 1}'},
        {"type": "response.function_call_arguments.done", **calling, "name": "f", "arguments": '{"x": 1}'},
        {"type": "response.output_item.done", "output_index": 2, "item": items[2]},
        {
            "type": "response.completed",
            "response": {**RESPONSE, "status": "completed", "output": items, "usage": SPENT},
        },
    ]
    assert [one for _, one in events(data)] == [{**one, "sequence_number": i} for i, one in enumerate(expected)]


def test_an_engine_that_dies(typed: Any):
    story = Story("", "Once upon")
    data, _ = play(story, 4, RESPONSES, asked=RESPONSES.read({"input": "x"}), error=ERROR)
    found = events(data)
    for _, one in found:
        typed.validate_python(one)
    message = {
        "id": "msg_0123456789abcdef_0",
        "type": "message",
        "status": "incomplete",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Once upon", "annotations": [], "logprobs": []}],
    }
    assert [name for name, _ in found[-5:]] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.failed",
        "error",
    ]
    assert found[-2][1]["response"] == {
        **RESPONSE,
        "status": "failed",
        "error": {"code": "server_error", "message": "the upstream closed the connection"},
        "output": [message],
        "usage": found[-2][1]["response"]["usage"],
    }
    assert found[-1][1] == {
        "type": "error",
        "code": "engine_error",
        "message": "the upstream closed the connection",
        "param": None,
        "sequence_number": len(found) - 1,
    }


def test_what_cut_it_short():
    _, ended = play(Story("", "Well", finish_reason="content_filter"), 1, RESPONSES)
    assert whole(RESPONSES, Story("", ""), ended)["incomplete_details"] == {"reason": "content_filter"}
    _, ended = play(Story("", "Well", finish_reason="length"), 1, RESPONSES)
    assert whole(RESPONSES, Story("", ""), ended)["incomplete_details"] == {"reason": "max_output_tokens"}


def test_what_was_asked_for_inside():
    story = Story("", "A." + call("f", '{"x": 1}'), request={"diagnostics": True, "raw": True})
    data, _ = play(story, 5, RESPONSES)
    assert events(data)[-1][1]["response"]["untemplate"] == {
        "diagnostics": [],
        "calls": [{"index": 0, "name": "f", "status": "ok", "model_id": None, "repairs": []}],
        "raw": story.raw,
    }


def test_an_error_before_it_began():
    assert RESPONSES.error(ERROR) == {
        "error": {
            "message": "the upstream closed the connection",
            "type": "server_error",
            "param": None,
            "code": "engine_error",
        }
    }


# -- Requests ----------------------------------------------------------------------------------------------------

TOOL = {"type": "function", "name": "f", "description": "F.", "parameters": {"type": "object"}, "strict": True}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "F.", "parameters": {"type": "object"}, "strict": True},
}


def test_a_whole_request():
    schema = {"type": "object"}
    body = {
        "model": "acme-1",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Look."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "This:"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "One moment.", "annotations": []}],
            },
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"x": 1}'},
            {"type": "function_call", "call_id": "call_2", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "one"},
            {
                "type": "function_call_output",
                "call_id": "call_2",
                "output": [{"type": "input_text", "text": "two"}],
            },
            {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "Ah."}]},
            {"type": "message", "role": "assistant", "content": "A cat."},
            {"type": "message", "role": "developer", "content": "Stay brief."},
        ],
        "tools": [TOOL],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "text": {"format": {"type": "json_schema", "name": "cat", "schema": schema, "strict": True}},
        "reasoning": {"effort": "low"},
        "max_output_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "top_logprobs": 2,
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
        "metadata": {"order": "7"},
        "store": False,
        "stream": True,
        "truncation": "disabled",
        "user": "u1",
        "untemplate": {"diagnostics": True},
        "moderation": {"model": "m"},
    }
    read = RESPONSES.read(body)
    assert read == Generation(
        model="acme-1",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "This:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                ],
            },
            {
                "role": "assistant",
                "content": "One moment.",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "one"},
            {"role": "tool", "tool_call_id": "call_2", "content": "two"},
            {"role": "assistant", "content": "A cat.", "reasoning_content": "Ah."},
            {"role": "developer", "content": "Stay brief."},
        ],
        tools=[CHAT_TOOL],
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "cat", "schema": schema, "strict": True}},
        max_tokens=100,
        sampling=Sampling(temperature=0.5, top_p=0.9, top_k=40),
        logprobs=2,
        thinking=Thinking(effort="low"),
        stream=True,
        diagnostics=True,
        repeated={
            "instructions": "Be brief.",
            "metadata": {"order": "7"},
            "user": "u1",
            "safety_identifier": None,
            "prompt_cache_key": None,
            "reasoning": {"effort": "low", "summary": None},
            "tools": [TOOL],
            "previous_response_id": None,
            "background": False,
            "conversation": None,
            "given": {},
            "text": {"format": {"type": "json_schema", "name": "cat", "schema": schema, "strict": True}},
            "tool_choice": {"type": "function", "name": "f"},
            "top_logprobs": 2,
        },
        extra={"moderation": {"model": "m"}},
    )
    _, ended = play(Story("", "Yes."), 1, RESPONSES)
    assert RESPONSES.respond(read, [ended], USAGE, META) == {
        **RESPONSE,
        "status": "completed",
        "instructions": "Be brief.",
        "max_output_tokens": 100,
        "output": [
            {
                "id": "msg_0123456789abcdef_0",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}],
            }
        ],
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low", "summary": None},
        "temperature": 0.5,
        "text": {"format": {"type": "json_schema", "name": "cat", "schema": schema, "strict": True}},
        "tool_choice": {"type": "function", "name": "f"},
        "tools": [TOOL],
        "top_logprobs": 2,
        "top_p": 0.9,
        "usage": SPENT,
        "user": "u1",
        "metadata": {"order": "7"},
        "untemplate": {"diagnostics": [], "calls": []},
    }


def test_output_goes_back_in():
    """The output of a response, sent back as history, means the same."""
    story = Story("", "<think>\nHm.\n</think>\n\nYes." + call("f", '{"x": 1}') + call("g", "{}"))
    _, ended = play(story, 3, RESPONSES)
    output = whole(RESPONSES, story, ended)["output"]
    first, second = ended.parsed.tool_calls
    assert RESPONSES.read({"input": output}).messages == [
        {
            "role": "assistant",
            "content": "Yes.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"id": first.id, "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                {"id": second.id, "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        }
    ]


def test_two_messages_in_a_row_are_two_turns():
    said = {"role": "assistant", "content": "A."}
    assert RESPONSES.read({"input": [said, said]}).messages == [said, said]


def test_allowed_tools():
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}
    assert RESPONSES.read({"input": "x", "tools": [TOOL], "tool_choice": choice}).tool_choice == {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
    }


WRONG = [
    ({}, "input: is required", None),
    ({"input": 7}, "input: must be a string or a list of items, got a number", None),
    ({"input": []}, "input: must not be empty", None),
    ({"input": ["x"]}, "input[0]: must be an object, got a string", None),
    ({"input": "x", "model": 7}, "model: must be a string, got a number", None),
    ({"input": "x", "conversation": 7}, "conversation: must be a string or an object, got a number", None),
    ({"input": "x", "background": "yes"}, "background: must be true or false, got a string", None),
    (
        {"input": "x", "prompt": {"id": "pmpt_1"}},
        "prompt: the gateway stores no prompt templates: send instructions and input",
        "unsupported_parameter",
    ),
    (
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        "input[0].id: no item 'msg_1' is stored here",
        None,
    ),
    ({"input": [{"type": "web_search_call", "id": "ws_1"}]}, "input: must not be empty", None),
    (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]},
        "input[0].content[0].file_id: the gateway stores and fetches no files: send the image as image_url,"
        " a text as file_data",
        "unsupported_parameter",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "input[0].content[0].text: is required",
        None,
    ),
    (
        {"input": [{"role": "robot", "content": "x"}]},
        "input[0].role: must be one of user, assistant, system, developer, got 'robot'",
        None,
    ),
    (
        {"input": [{"role": "user", "content": "x", "mood": "glad"}]},
        "input[0].mood: is not supported",
        "unsupported_parameter",
    ),
    (
        {"input": "x", "tools": [{"type": "telepathy"}]},
        "tools[0].type: must be one of function, custom, local_shell, namespace, got 'telepathy'",
        "unsupported_parameter",
    ),
    (
        {"input": "x", "tools": [{"type": "custom", "name": "f"}, {"type": "custom", "name": "f"}]},
        "tools[1].name: 'f' is the name of another tool, too",
        None,
    ),
    ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name: is required", None),
    ({"input": "x", "temperature": 11}, "temperature: must be a number from 0 to 10, got 11", None),
    ({"input": "x", "temperature": "hot"}, "temperature: must be a number from 0 to 10, got a string", None),
    (
        {"input": "x", "max_output_tokens": 0},
        "max_output_tokens: must be an integer from 1, or -1 for no limit, got 0",
        None,
    ),
    ({"input": "x", "top_logprobs": 2.5}, "top_logprobs: must be an integer from 0 to 20, got 2.5", None),
    (
        {"input": "x", "text": {"format": {"type": "json_schema", "name": "n"}}},
        "text.format.schema: is required",
        None,
    ),
    (
        {"input": "x", "reasoning": {"effort": "huge"}},
        "reasoning.effort: must be one of none, minimal, low, medium, high, xhigh, max, got 'huge'",
        None,
    ),
    ({"input": "x", "untemplate": {"spans": True}}, "untemplate.spans: is not supported", "unsupported_parameter"),
    ({"input": "x", "metadata": {"n": 1}}, "metadata.n: must be a string, got a number", None),
]


@pytest.mark.parametrize(("body", "message", "code"), WRONG, ids=lambda value: str(value)[:40])
def test_what_is_refused(body: dict[str, Any], message: str, code: str | None):
    with pytest.raises(ApiError) as caught:
        RESPONSES.read(body)
    error = caught.value
    assert (error.status, error.message, error.code) == (400, message, code)
    assert error.param == message.partition(": ")[0]


# -- Tools and items of Codex -----------------------------------------------------------------------------------------

CODEX_TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "custom", "name": "apply_patch", "description": "Patch.", "format": {"type": "grammar", "syntax": "lark",
                                                                                  "definition": "start: X"}},
    {"type": "local_shell"},
    {"type": "namespace", "name": "mcp__maps__", "tools": [{"type": "function", "name": "find"}]},
    {"type": "web_search", "external_web_access": True},
    {"type": "tool_search"},
]  # fmt: skip
CODEX = {
    "instructions": "Be brief.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
        {"type": "local_shell_call", "call_id": "c2", "status": "completed",
         "action": {"type": "exec", "command": ["ls"], "timeout_ms": None, "env": {}}},
        {"type": "function_call", "call_id": "c3", "name": "find", "namespace": "mcp__maps__", "arguments": "{}"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."},
        {"type": "local_shell_call_output", "id": "c2", "output": "a.txt"},
        {"type": "function_call_output", "call_id": "c3", "output": "Ulm"},
    ],
    "tools": CODEX_TOOLS,
    "client_metadata": {"x": "y"},
    "store": False,
    "stream": True,
}  # fmt: skip


def test_a_request_of_codex():
    notes = Notes()
    read = RESPONSES.read(CODEX, notes)
    assert notes.texts == [
        "tools[4]: tools of type web_search are not available here; left out",
        "tools[5]: tools of type tool_search are not available here; left out",
        "input[1]: items of type web_search_call are not known to the model; left out",
    ]
    assert read.tools is not None
    names = [tool["function"]["name"] for tool in read.tools]
    assert names == ["f", "apply_patch", "local_shell", "mcp__maps__find"]
    patch = read.tools[1]["function"]
    assert patch["description"] == "Patch.\nThe input must follow this lark grammar:\nstart: X"
    assert patch["parameters"]["required"] == ["input"]
    assert read.messages is not None
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in read.messages[2]["tool_calls"]]
    assert calls == [
        ("apply_patch", '{"input": "*** Begin"}'),
        ("local_shell", '{"command": ["ls"]}'),
        ("mcp__maps__find", "{}"),
    ]
    assert [(m["tool_call_id"], m["content"]) for m in read.messages[3:]] == [
        ("c1", "Done."), ("c2", "a.txt"), ("c3", "Ulm"),
    ]  # fmt: skip


CODEX_CALLS = (
    '<tool_call>\n{"name": "apply_patch", "arguments": {"input": "*** A\\n"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "local_shell", "arguments": {"command": ["ls", "-l"]}}\n</tool_call>\n'
    '<tool_call>\n{"name": "mcp__maps__find", "arguments": {"q": 1}}\n</tool_call>'
)


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_calls_as_codex_expects_them(cut: int):
    asked = RESPONSES.read(CODEX, Notes())
    story = Story("", CODEX_CALLS, tools=asked.tools, request={"repeated": asked.repeated})
    data, ended = play(story, cut, RESPONSES)
    whole = RESPONSES.respond(request(story), [ended], USAGE, META)
    shown = [{k: v for k, v in item.items() if k not in ("id", "call_id")} for item in whole["output"]]
    assert shown == [
        {"type": "custom_tool_call", "status": "completed", "name": "apply_patch", "input": "*** A\n"},
        {
            "type": "local_shell_call",
            "status": "completed",
            "action": {"type": "exec", "env": {}, "command": ["ls", "-l"]},
        },
        {
            "type": "function_call",
            "status": "completed",
            "name": "find",
            "arguments": '{"q": 1}',
            "namespace": "mcp__maps__",
        },
    ]
    events = [json.loads(line[6:]) for line in data.decode().split("\n") if line.startswith("data: ")]
    assert events[-1]["response"]["output"] == whole["output"]
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[2:9] == [
        "output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done",
        "output_item.added", "output_item.done", "output_item.added",
    ]  # fmt: skip


def test_reasoning_as_a_summary():
    asked = RESPONSES.read({"input": "x", "reasoning": {"summary": "auto"}}, Notes())
    story = Story("", "<think>\nHm.\n</think>\n\nYes.", request={"repeated": asked.repeated})
    data, ended = play(story, 3, RESPONSES)
    whole = RESPONSES.respond(request(story), [ended], USAGE, META)
    assert whole["output"][0]["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert whole["output"][0]["content"] == []
    events = [json.loads(line[6:]) for line in data.decode().split("\n") if line.startswith("data: ")]
    assert events[-1]["response"]["output"] == whole["output"]
    kinds = [e["type"] for e in events if "summary" in e["type"]]
    assert (kinds[0], kinds[-2:]) == (
        "response.reasoning_summary_part.added",
        ["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"],
    )
    assert "".join(e["delta"] for e in events if e["type"] == "response.reasoning_summary_text.delta") == "Hm."
