"""Parts shared by the dialects, and two properties of all: any JSON is read or refused, any output can be written."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate_gateway.errors import ApiError
from untemplate_gateway.generation import Generation
from untemplate_gateway.protocols import dialects
from untemplate_gateway.protocols.anthropic.request import read_count_tokens
from untemplate_gateway.protocols.arguments import arguments_object, arguments_text
from untemplate_gateway.protocols.encoding import encode, encode_text, event, timestamp
from untemplate_gateway.protocols.objects import token_bytes
from untemplate_gateway.protocols.ollama.request import load_of

from .stories import META, USAGE, Story, play, request

# -- JSON --------------------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.characters()) | st.text(alphabet='a\u2028\u2029\x85\ud800\udfff\n\r\x0b\x1c“é😀\\"'))
def test_text_is_json_in_one_line(text: str):
    for data in (encode_text(text), encode(text)):
        # Two adjacent halves of a character are the character.
        assert json.loads(data) == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        assert len(data.decode().splitlines()) == 1


def test_events():
    assert event("ping", {"type": "p\u2028ing"}) == b'event: ping\ndata: {"type":"p\\u2028ing"}\n\n'


def test_bytes_of_tokens():
    assert token_bytes("é") == [0xC3, 0xA9]
    assert token_bytes("\udcc3") == [0xC3]  # half a character, as Python's surrogateescape reads it
    assert token_bytes("\ud800") == [0xED, 0xA0, 0x80]


def test_timestamps():
    assert timestamp(1_700_000_000) == "2023-11-14T22:13:20Z"


# -- Arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ("{}", {}),
        (' {"a": [1, null]} ', {"a": [1, None]}),
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ('{"a": 1', {"INVALID_JSON": '{"a": 1'}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ('{"a": NaN}', {"INVALID_JSON": '{"a": NaN}'}),
        ('{"a": 1e999}', {"INVALID_JSON": '{"a": 1e999}'}),
        ("{'a': 1}", {"INVALID_JSON": "{'a': 1}"}),
        ('{"a": ' * 100_000, {"INVALID_JSON": '{"a": ' * 100_000}),
        ('{"INVALID_JSON": "x"}', {"INVALID_JSON": "x"}),
    ],
    ids=range(11),
)
def test_arguments_as_an_object(arguments: str, expected: dict[str, Any]):
    assert arguments_object(arguments) == expected
    if list(expected) == ["INVALID_JSON"] and arguments != '{"INVALID_JSON": "x"}':
        assert arguments_text(expected, "input") == arguments


def test_arguments_that_are_too_deep():
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ApiError) as caught:
        arguments_text({"a": deep}, "messages[0].input")
    assert caught.value.message == "messages[0].input: is nested too deeply"


# -- Every dialect -----------------------------------------------------------------------------------------------

READERS = {**{path: dialect.read for path, dialect in dialects().items()}, "/count_tokens": read_count_tokens}

TEXTS = st.text(max_size=5) | st.sampled_from(
    ["user", "assistant", "tool", "function", "json_schema", "auto", "text", "x", "\ud800", "0", "5m", "tool_use"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x"}]},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "y"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "stream": True,
        "stream_options": {"include_usage": True},
        "logit_bias": {"1": 2},
        "stop": ["x"],
    },
    "/v1/completions": {"prompt": "x", "stream": True, "stop": "y", "logprobs": 1, "n": 1},
    "/inference/v1/generate": {
        "token_ids": [1, 2],
        "sampling_params": {"n": 1, "logprobs": 1, "stop": ["x"], "structured_outputs": {"regex": "x"}},
        "output_mode": "text",
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
    },
    "/v1/responses": {
        "input": [
            {"role": "user", "content": [{"type": "input_image", "image_url": "x"}]},
            {"type": "reasoning", "summary": [{"text": "x"}], "content": [{"text": "x"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
        ],
        "tools": [{"type": "function", "name": "f"}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "reasoning": {"effort": "low"},
        "include": ["message.output_text.logprobs"],
        "metadata": {"a": "b"},
        "untemplate": {"raw": True},
    },
    "/v1/messages": {
        "max_tokens": 9,
        "system": [{"type": "text", "text": "x"}],
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "x", "signature": ""},
                    {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}]},
                    {"type": "image", "source": {"type": "url", "url": "x"}},
                    {"type": "document", "source": {"type": "text", "data": "x"}},
                ],
            },
        ],
        "tools": [{"name": "f", "input_schema": {}}],
        "tool_choice": {"type": "tool", "name": "f"},
        "thinking": {"type": "enabled", "budget_tokens": 5},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
        "stop_sequences": ["x"],
    },
    "/api/chat": {
        "messages": [
            {"role": "user", "content": "x", "images": ["x"]},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
            {"role": "tool", "tool_name": "f", "content": "y"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "options": {"temperature": 1, "stop": ["x"], "mirostat": 0},
        "format": {"type": "object"},
        "keep_alive": "5m",
        "think": "low",
    },
    "/api/generate": {"prompt": "x", "system": "y", "images": ["z"], "options": {"seed": 1}},
}
BODIES["/count_tokens"] = BODIES["/v1/messages"]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return every path in a JSON value."""
    found = [path] if path else []
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        found += places(item, (*path, key))
    return found


@st.composite
def bent(draw: st.DrawFn, path: str) -> dict[str, Any]:
    """Return a valid body with a few parts replaced, removed or duplicated."""
    body = copy.deepcopy(BODIES[path])
    for _ in range(draw(st.integers(0, 3))):
        *way, last = draw(st.sampled_from(places(body)))
        at: Any = body
        for key in way:
            at = at[key]
        what = draw(st.sampled_from(["other", "gone", "new"]))
        if what == "gone":
            del at[last]
        elif what == "new" and isinstance(at, dict):
            at[draw(TEXTS)] = draw(JSON)
        else:
            at[last] = draw(JSON)
        if not body:
            break
    return body


@pytest.mark.parametrize("path", BODIES)
def test_good_bodies_are_read(path: str):
    read = READERS[path](BODIES[path])
    assert isinstance(read, Generation)
    assert read.extra == {}


@pytest.mark.parametrize("path", BODIES)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_body_is_read_or_refused(path: str, data: st.DataObject):
    body = data.draw(bent(path) | st.dictionaries(TEXTS | st.sampled_from(sorted(BODIES[path])), JSON, max_size=4))
    read: Any = None
    refused: list[ApiError] = []
    try:
        if path.startswith("/api/"):
            load_of(body, chat=path == "/api/chat")
        read = READERS[path](body)
    except ApiError as error:
        refused.append(error)
    for problem in refused:
        assert problem.status == 400
        assert encode({"error": problem.message})
        return
    assert isinstance(read, Generation)
    assert read.messages or read.prompt is not None
    dialect = dialects().get(path)
    if dialect is not None:  # what was read can be answered
        assert isinstance(dialect.writer(read, META).begin(USAGE), bytes)


OUTPUTS = st.lists(
    st.sampled_from(
        [
            *("<think>\n", "\n</think>\n\n", "<tool_call>\n", '{"name": "f", "arguments": ', '{"a": 1}'),
            *("}\n</tool_call>", '{"a": "', "\ud800", "\u2028", "x", "\n", '"', "é", "STOP"),
        ]
    )
    | st.text(max_size=4),
    max_size=12,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("path", [path for path in BODIES if path in dialects()])
@settings(max_examples=40, deadline=None)
@given(raw=OUTPUTS, cut=st.integers(1, 9))
def test_any_output_is_told(path: str, raw: str, cut: int):
    dialect = dialects()[path]
    tools = [] if path == "/api/generate" else None
    story = Story("", raw, tools=tools, request={"stop": ("STOP",), "diagnostics": True})
    data, ended = play(story, cut, dialect)
    assert data.endswith(b"\n")
    assert len(data.decode().splitlines()) == data.count(b"\n")
    assert encode(dialect.respond(request(story), [ended], USAGE, META))
