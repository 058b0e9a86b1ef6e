"""The Messages dialect, against anthropic's own types and accumulator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from untemplate_gateway.errors import ApiError
from untemplate_gateway.generation import Generation, Sampling, Thinking
from untemplate_gateway.notes import Notes
from untemplate_gateway.protocols.anthropic import MESSAGES
from untemplate_gateway.protocols.anthropic.request import read_count_tokens
from untemplate_gateway.protocols.anthropic.response import models

from .stories import ERROR, Story, call, events, every_cut, every_story, play, whole

# -- Responses ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def typed() -> Any:
    types = pytest.importorskip("anthropic.types")
    from pydantic import TypeAdapter

    return TypeAdapter(types.RawMessageStreamEvent)


def put_together(found: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the message of the events; the input of calls is the text that was written."""
    message = dict(found[0][1]["message"])
    blocks: list[dict[str, Any]] = []
    opened: list[int] = []
    for name, one in found[1:]:
        if name == "content_block_start":
            assert not opened
            assert one["index"] == len(blocks)
            opened.append(one["index"])
            blocks.append(dict(one["content_block"]))
            if blocks[-1]["type"] == "tool_use":
                blocks[-1]["input"] = ""
        elif name == "content_block_delta":
            assert opened == [one["index"]]
            delta = one["delta"]
            block = blocks[-1]
            field = {"partial_json": "input"}
            for key, text in delta.items():
                if key != "type":
                    block[field.get(key, key)] += text
        elif name == "content_block_stop":
            assert opened.pop() == one["index"]
        elif name == "message_delta":
            message |= one["delta"]
            message["usage"] |= one["usage"]
            message |= {"untemplate": one["untemplate"]} if "untemplate" in one else {}
    assert not opened
    return {**message, "content": blocks}


@every_cut
@every_story
def test_streamed_is_whole(story: Story, cut: int):
    data, ended = play(story, cut, MESSAGES)
    found = events(data)
    assert all(name == one["type"] for name, one in found)
    assert [name for name, _ in found[:2]] == ["message_start", "ping"]
    assert [name for name, _ in found[-2:]] == ["message_delta", "message_stop"]
    told = put_together(found)
    expected = whole(MESSAGES, story, ended)
    calls = iter(ended.parsed.tool_calls)
    for block, one in zip(expected["content"], told["content"], strict=True):
        if block["type"] != "tool_use":
            continue
        arguments = next(calls).function.arguments
        if one["input"] == arguments:
            block["input"] = arguments
        else:  # they broke on the way
            assert block["input"] == {"INVALID_JSON": arguments}
            assert json.loads(one["input"])["INVALID_JSON"] == arguments
            one["input"] = block["input"]
    assert told == expected


@every_story
def test_clients_understand_it(typed: Any, story: Story):
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import Message

    data, ended = play(story, 3, MESSAGES)
    if b"\\ud" in data:
        return  # pydantic takes no lone surrogates
    expected = Message.model_validate(whole(MESSAGES, story, ended))
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for name, one in events(data):
        if name != "ping":
            event = typed.validate_python(one)
            snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    assert snapshot.stop_reason == expected.stop_reason
    assert snapshot.usage == expected.usage
    for one, other in zip(snapshot.content, expected.content, strict=True):
        if other.type == "tool_use" and "INVALID_JSON" in other.input:
            # A cut input is the beginning that was written; broken input has the member INVALID_JSON.
            assert other.input.items() <= one.input.items() or "INVALID_JSON" not in one.input
            continue
        assert one.model_dump(exclude_none=True) == other.model_dump(exclude_none=True)


def test_every_event_of_a_story():
    story = Story("", "<think>\nHm.\n</think>\n\nYes." + call("f", '{"x": 1}'))
    data, ended = play(story, 10**6, MESSAGES)

    def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}

    def start(index: int, **block: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    call_id = ended.parsed.tool_calls[0].id
    assert [one for _, one in events(data)] == [
        {
            "type": "message_start",
            "message": {
                "id": "msg_0123456789abcdef",
                "type": "message",
                "role": "assistant",
                "model": "acme-1",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {
                    "input_tokens": 22,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 8,
                    "output_tokens": 0,
                    "output_tokens_details": {"thinking_tokens": 0},
                },
            },
        },
        {"type": "ping"},
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Hm."),
        delta(0, "signature_delta", signature=""),
        {"type": "content_block_stop", "index": 0},
        start(1, type="text", text=""),
        delta(1, "text_delta", text="Yes."),
        {"type": "content_block_stop", "index": 1},
        start(2, type="tool_use", id=call_id, name="f", input={}),
        delta(2, "input_json_delta", partial_json='{"x": 1'),
        delta(2, "input_json_delta", partial_json="}"),
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {
                "input_tokens": 22,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 8,
                "output_tokens": 12,
                "output_tokens_details": {"thinking_tokens": 5},
            },
        },
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize(
    ("story", "reason", "stop"),
    [
        (Story("", "A."), "end_turn", None),
        (Story("", "A.", finish_reason="length"), "max_tokens", None),
        (Story("", "A.", finish_reason="content_filter"), "refusal", None),
        (Story("", call("f", "{}")), "tool_use", None),
        (Story("", "A. STOP B.", request={"stop": ("STOP",)}), "stop_sequence", "STOP"),
        (Story("", call("f", "{}") + "STOP", request={"stop": ("STOP",)}), "tool_use", None),
    ],
    ids=lambda value: "",
)
def test_why_it_stopped(story: Story, reason: str, stop: str | None):
    data, ended = play(story, 2, MESSAGES)
    message = whole(MESSAGES, story, ended)
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, stop)
    assert events(data)[-2][1]["delta"] == {"stop_reason": reason, "stop_sequence": stop}


def test_arguments_that_are_no_object_are_kept():
    story = Story("", '<tool_call>\n{"name": "f", "arguments": {"path": "/tm', finish_reason="length")
    _, ended = play(story, 3, MESSAGES)
    (block,) = whole(MESSAGES, story, ended)["content"]
    assert block["input"] == {"INVALID_JSON": '{"path": "/tm'}
    # Sent back, they are the text of the model.
    message = {"role": "assistant", "content": [block]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": block["id"]}]}
    read = MESSAGES.read({"max_tokens": 1, "messages": [message, result]})
    assert read.messages is not None
    assert read.messages[0]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"path": "/tm'}


def test_an_engine_that_dies():
    data, _ = play(Story("", "<think>\nOnce upon"), 4, MESSAGES, error=ERROR)
    error = {"type": "error", "error": {"type": "api_error", "message": "the upstream closed the connection"}}
    found = events(data)
    assert found[-1] == ("error", error)
    assert found[-2] == ("content_block_stop", {"type": "content_block_stop", "index": 0})
    assert MESSAGES.error(ERROR) == error


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (405, "invalid_request_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
    ],
)
def test_types_of_errors(status: int, kind: str):
    assert MESSAGES.error(ApiError(status, "x: y")) == {"type": "error", "error": {"type": kind, "message": "x: y"}}


def test_models():
    shown = models([{"id": "acme-1", "object": "model", "created": 1_700_000_000}])
    assert shown == {
        "data": [
            {"type": "model", "id": "acme-1", "display_name": "acme-1", "created_at": "2023-11-14T22:13:20Z"},
        ],
        "has_more": False,
        "first_id": "acme-1",
        "last_id": "acme-1",
    }
    assert models([]) == {"data": [], "has_more": False, "first_id": None, "last_id": None}


# -- Requests ----------------------------------------------------------------------------------------------------


def test_a_whole_request():
    schema = {"type": "object"}
    cached = {"cache_control": {"type": "ephemeral"}}
    body = {
        "model": "acme-1",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", **cached}, {"type": "text", "text": "Be kind."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                    {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": ""},
                    {"type": "redacted_thinking", "data": "xyz"},
                    {"type": "text", "text": "One moment."},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": "ü"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one", **cached},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": [{"type": "text", "text": "no such file"}],
                        "is_error": True,
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
            {"role": "assistant", "content": "It is a"},
        ],
        "tools": [{"name": "f", "description": "F.", "input_schema": schema, **cached}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": schema}},
        "stop_sequences": ["STOP", "", "STOP"],
        "temperature": 1,
        "top_p": 0.9,
        "top_k": 40,
        "metadata": {"user_id": "u1"},
        "service_tier": "auto",
        "stream": True,
        "untemplate": {"raw": True},
        "mcp_servers": [],
        "context_management": {"edits": []},
        "mood": "glad",
    }
    assert MESSAGES.read(body) == Generation(
        model="acme-1",
        messages=[
            {"role": "system", "content": "Be brief.\nBe kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                    {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
                ],
            },
            {
                "role": "assistant",
                "content": "One moment.",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": '{"x": "ü"}'}},
                    {"id": "toolu_2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "toolu_1", "content": "one"},
            {"role": "tool", "tool_call_id": "toolu_2", "content": "Error: no such file"},
            {"role": "user", "content": "And now?"},
            {"role": "assistant", "content": "It is a"},
        ],
        tools=[{"type": "function", "function": {"name": "f", "description": "F.", "parameters": schema}}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=False,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "response", "schema": schema, "strict": True},
        },
        stop=("STOP",),
        max_tokens=100,
        sampling=Sampling(temperature=1.0, top_p=0.9, top_k=40),
        thinking=Thinking(enabled=True, effort="high", budget=1024),
        continue_final_message=True,
        stream=True,
        raw=True,
        extra={"mood": "glad"},
    )


HELLO = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(
    ("thinking", "expected", "shown"),
    [
        ({"type": "disabled"}, Thinking(enabled=False), True),
        ({"type": "adaptive"}, Thinking(), True),
        ({"type": "adaptive", "display": "omitted"}, Thinking(), False),
        ({"type": "enabled", "budget_tokens": 2000}, Thinking(enabled=True, budget=2000), True),
    ],
)
def test_thinking(thinking: dict[str, Any], expected: Thinking, shown: bool):
    read = MESSAGES.read({**HELLO, "thinking": thinking})
    assert (read.thinking, read.include_reasoning) == (expected, shown)


@pytest.mark.parametrize(("kind", "choice"), [("auto", "auto"), ("any", "required"), ("none", "none")])
def test_tool_choice(kind: str, choice: str):
    assert MESSAGES.read({**HELLO, "tool_choice": {"type": kind}}).tool_choice == choice


def test_count_tokens():
    read = read_count_tokens({"model": "acme-1", "messages": HELLO["messages"], "system": "Be brief."})
    assert read == Generation(
        model="acme-1",
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    )


def user(*blocks: Any) -> dict[str, Any]:
    return {"max_tokens": 9, "messages": [{"role": "user", "content": list(blocks)}]}


WRONG = [
    ({}, "max_tokens: is required"),
    ({"max_tokens": 9}, "messages: is required"),
    ({"max_tokens": 9, "messages": []}, "messages: must not be empty"),
    ({**HELLO, "max_tokens": 0}, "max_tokens: must be an integer from 1, got 0"),
    ({**HELLO, "max_tokens": True}, "max_tokens: must be an integer from 1, got a boolean"),
    (user(), "messages[0].content: must not be empty"),
    (user("x"), "messages[0].content[0]: must be an object, got a string"),
    (user({"type": "text"}), "messages[0].content[0].text: is required"),
    (
        user({"type": "video"}),
        "messages[0].content[0].type: must be one of text, image, document, tool_use, tool_result,"
        " thinking, redacted_thinking, got 'video'",
    ),
    (
        user({"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
        "messages[0].content[0].source.type: must be one of base64, url, got 'file'",
    ),
    (
        user({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text"}]}),
        "messages[0].content[0].content[0].text: is required",
    ),
    (
        {"max_tokens": 9, "messages": [{"role": "tool", "content": "x"}]},
        "messages[0].role: must be one of user, assistant, system, got 'tool'",
    ),
    (
        {
            "max_tokens": 9,
            "messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": "x"}]}
            ],
        },
        "messages[0].content[0].input: must be an object, got a string",
    ),
    (
        {
            "max_tokens": 9,
            "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}],
        },
        "messages: the last message calls tools: their results must follow it",
    ),
    ({**HELLO, "system": 7}, "system: must be a string or a list of text blocks, got a number"),
    (
        {**HELLO, "tools": [{"type": "telepathy_20250305", "name": "t"}]},
        "tools[0].type: tools that the server runs ('telepathy_20250305') are not supported, only custom ones",
    ),
    ({**HELLO, "tools": [{"name": "f"}]}, "tools[0].input_schema: is required"),
    ({**HELLO, "tool_choice": {"type": "tool", "name": "g"}}, "tool_choice.name: 'g' is not among the tools"),
    ({**HELLO, "tool_choice": "auto"}, "tool_choice: must be an object, got a string"),
    ({**HELLO, "thinking": {"type": "enabled"}}, "thinking.budget_tokens: is required"),
    ({**HELLO, "stop_sequences": "STOP"}, "stop_sequences: must be a list of strings, got a string"),
    ({**HELLO, "stop_sequences": [7]}, "stop_sequences[0]: must be a string, got a number"),
    (
        {**HELLO, "output_config": {"effort": "huge"}},
        "output_config.effort: must be one of low, medium, high, xhigh, max, got 'huge'",
    ),
    ({**HELLO, "container": "c1"}, "container: is not supported"),
    ({**HELLO, "mcp_servers": [{"url": "x"}]}, "mcp_servers: is not supported"),
    ({**HELLO, "untemplate": True}, "untemplate: must be an object, got a boolean"),
]


@pytest.mark.parametrize(("body", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_refused(body: dict[str, Any], message: str):
    with pytest.raises(ApiError) as caught:
        MESSAGES.read(body)
    assert (caught.value.status, caught.value.message) == (400, message)
    assert caught.value.param == message.partition(": ")[0]


def test_count_tokens_has_no_place_for_unknown_fields():
    with pytest.raises(ApiError) as caught:
        read_count_tokens({"messages": HELLO["messages"], "mood": "glad"})
    assert caught.value.message == "mood: is not supported"


def test_tools_of_anthropic_and_their_blocks():
    notes = Notes()
    messages = [
        {"role": "user", "content": [{"type": "search_result", "title": "T", "source": "S", "content": [
            {"type": "text", "text": "Found."}]}]},
        {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
            {"type": "text", "text": "It is so."}]},
        {"role": "user", "content": "Go on."},
    ]  # fmt: skip
    tools = [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10},
        {"type": "memory_20250818", "name": "memory"},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    read = MESSAGES.read({"max_tokens": 5, "messages": messages, "tools": tools}, notes)
    assert read.tools is not None
    assert [tool["function"]["name"] for tool in read.tools] == ["bash", "str_replace_based_edit_tool", "memory"]
    assert read.tools[1]["function"]["parameters"]["required"] == ["command", "path"]
    assert read.messages == [
        {"role": "user", "content": "T\nS\nFound."},
        {"role": "assistant", "content": "It is so."},
        {"role": "user", "content": "Go on."},
    ]
    assert notes.texts == [
        "tools[3]: tools of type web_search_20250305 are not available here; left out",
        "messages[1].content[0]: blocks of type server_tool_use are not known to the model; left out",
        "messages[1].content[1]: blocks of type web_search_tool_result are not known to the model; left out",
    ]


@pytest.mark.parametrize(
    "source",
    [
        {"type": "text", "media_type": "text/plain", "data": "one\ntwo"},
        {"type": "content", "content": "one\ntwo"},
        {"type": "content", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
    ],
)
def test_documents_are_text_with_their_title(source: dict[str, Any]):
    block = {"type": "document", "source": source, "title": "Numbers"}
    request = MESSAGES.read(user(block, {"type": "text", "text": "Count."}))
    assert request.messages is not None
    assert request.messages[0]["content"] == [
        {"type": "text", "text": "Numbers\none\ntwo"}, {"type": "text", "text": "Count."}
    ]  # fmt: skip
