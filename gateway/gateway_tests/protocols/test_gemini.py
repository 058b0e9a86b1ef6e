"""Google's Gemini API: its requests, its responses, and its endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from untemplate_gateway.errors import ApiError
from untemplate_gateway.generation import Sampling, Thinking
from untemplate_gateway.protocols.gemini import GEMINI, GEMINI_ARRAY
from untemplate_gateway.protocols.gemini.request import read_count_tokens

from ..scripted import Scripted, scripted
from ..server import LONG, Running, running
from .stories import ERROR, Story, call, every_cut, every_story, play, whole

HI = [{"parts": [{"text": "Hi"}]}]


def read(**fields: Any) -> Any:
    return GEMINI.read({"model": "m", "contents": HI, **fields})


def problem(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(ApiError) as caught:
        read(**fields)
    assert caught.value.status == 400
    return caught.value.message, caught.value.param


# -- Responses ---------------------------------------------------------------------------------------------------


def put_together(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the response of the chunks of one candidate."""
    parts: list[dict[str, Any]] = []
    for chunk in chunks:
        (candidate,) = chunk["candidates"]
        for part in candidate["content"]["parts"]:
            if parts and "text" in part and "text" in parts[-1] and part.get("thought") == parts[-1].get("thought"):
                parts[-1] = {**part, "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
    last = json.loads(json.dumps(chunks[-1]))
    last["candidates"][0]["content"]["parts"] = parts
    return last


def events(data: bytes) -> list[Any]:
    assert data.endswith(b"\r\n\r\n")
    blocks = data.decode().removesuffix("\r\n\r\n").split("\r\n\r\n")
    assert all(block.startswith("data: ") and len(block.splitlines()) == 1 for block in blocks)
    return [json.loads(block[6:]) for block in blocks]


@every_cut
@every_story
def test_streamed_is_whole(story: Story, cut: int):
    data, ended = play(story, cut, GEMINI)
    assert put_together(events(data)) == whole(GEMINI, story, ended)
    data, ended = play(story, cut, GEMINI_ARRAY)
    assert put_together(json.loads(data)) == whole(GEMINI, story, ended)


def test_a_whole_response():
    story = Story("", "<think>\nHm.\n</think>\n\nYes." + call("f", '{"x": 1}'))
    _, ended = play(story, 10**6, GEMINI)
    shown = whole(GEMINI, story, ended)
    id = ended.parsed.tool_calls[0].id
    assert shown == {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"text": "Yes."},
                        {"functionCall": {"id": id, "name": "f", "args": {"x": 1}}},
                    ],
                    "role": "model",
                },
                "index": 0,
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 30,
            "candidatesTokenCount": 7,
            "totalTokenCount": 42,
            "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 8,
        },
        "modelVersion": "acme-1",
        "responseId": "0123456789abcdef",
    }


def test_a_call_is_one_part_and_a_cut_one_is_marked():
    story = Story("", 'A.<tool_call>\n{"name": "f", "arguments": {"path": "/tm', finish_reason="length")
    data, _ = play(story, 3, GEMINI)
    calls = [p for chunk in events(data) for p in chunk["candidates"][0]["content"]["parts"] if "functionCall" in p]
    assert [one["functionCall"]["args"] for one in calls] == [{"INVALID_JSON": '{"path": "/tm'}]
    assert events(data)[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_an_error_in_the_middle():
    error = {"code": 502, "message": "the upstream closed the connection", "status": "INTERNAL"}
    assert events(play(Story("", "Hello"), 3, GEMINI, error=ERROR)[0])[-1] == {"error": error}
    assert json.loads(play(Story("", "Hello"), 3, GEMINI_ARRAY, error=ERROR)[0])[-1] == {"error": error}


# -- Requests ----------------------------------------------------------------------------------------------------


def test_a_conversation():
    contents = [
        {"role": "user", "parts": [{"text": "Weather?"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True, "thoughtSignature": "x"},
                {"functionCall": {"name": "f", "args": {"a": 1}}},
                {"functionCall": {"name": "f", "id": "given"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "id": "given", "response": {"output": "two"}}},
                {"functionResponse": {"name": "f", "response": {"one": 1}}},
                {"text": "Well"},
                {"text": "?"},
            ],
        },
    ]
    request = read(contents=contents, system_instruction={"parts": [{"text": "Be"}, {"text": "brief"}]})
    assert request.messages == [
        {"role": "system", "content": "Be\nbrief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Weather?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"id": "call_1_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
                {"id": "given", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "given", "content": "two"},
        {"role": "tool", "tool_call_id": "call_1_1", "content": '{"one": 1}'},
        {"role": "user", "content": "Well?"},
    ]


def test_calls_of_several_turns_have_ids_of_their_own():
    call = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]}
    messages = read(contents=[{"parts": [{"text": "Go"}]}, call, result, call, result]).messages or []
    asked = [message["tool_calls"][0]["id"] for message in messages if message.get("tool_calls")]
    assert asked == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(asked)) == 2


def test_settings():
    schema = {
        "type": "OBJECT",
        "properties": {"n": {"type": "INTEGER", "nullable": True, "format": "int32"}},
        "propertyOrdering": ["n"],
        "required": ["n"],
    }
    right = {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}, "required": ["n"]}
    request = read(
        tools=[{"functionDeclarations": [{"name": "f", "description": "F", "parameters": schema}, {"name": "g"}]}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        generation_config={
            "temperature": 0.5, "top_p": 0.9, "top_k": 40, "seed": 7, "maxOutputTokens": 9, "stopSequences": ["X"],
            "candidateCount": 2, "responseSchema": schema, "responseMimeType": "application/json",
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 5, "thinkingLevel": "LOW"},
        },
    )  # fmt: skip
    assert [tool["function"] for tool in request.tools] == [
        {"name": "f", "description": "F", "parameters": right},
        {"name": "g", "parameters": {"type": "object", "properties": {}}},
    ]
    assert request.tool_choice == {"type": "function", "function": {"name": "f"}}
    assert request.response_format["json_schema"]["schema"] == right
    assert request.sampling == Sampling(temperature=0.5, top_p=0.9, top_k=40, seed=7)
    assert (request.max_tokens, request.stop, request.n, request.include_reasoning) == (9, ("X",), 2, True)
    assert request.thinking == Thinking(enabled=True, effort="low", budget=5)
    assert read(generationConfig={"thinkingConfig": {"thinkingBudget": 0}}).thinking == Thinking(enabled=False)
    assert not read().include_reasoning
    assert read(generationConfig={"responseMimeType": "application/json"}).response_format == {"type": "json_object"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"contents": []}, "contents: must not be empty"),
        ({"contents": [{"parts": []}]}, "contents[0].parts: must not be empty"),
        ({"contents": [{"parts": [{"fileData": {"fileUri": "x"}}]}]},
         "contents[0].parts[0].fileData: is not supported"),
        ({"contents": [{"parts": [{"inlineData": {"mimeType": "audio/wav", "data": "AA"}}]}]},
         "contents[0].parts[0].inlineData.mimeType: only images and text are supported, got 'audio/wav'"),
        ({"tools": [{"googleSearch": {}}]}, "tools[0].googleSearch: is not supported"),
        ({"cachedContent": "x"}, "cachedContent: is not supported"),
        ({"generationConfig": {"speechConfig": {}}}, "generationConfig.speechConfig: is not supported"),
        ({"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}},
         "toolConfig.functionCallingConfig.allowedFunctionNames[0]: 'f' is not among the tools"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(fields: dict[str, Any], message: str):
    assert problem(**fields)[0] == message


def test_counting_takes_contents_or_a_whole_request():
    for body in ({"contents": HI}, {"generateContentRequest": {"model": "models/other", "contents": HI}}):
        request = read_count_tokens({**body, "model": "m"})
        assert (request.model, request.messages) == ("m", [{"role": "user", "content": "Hi"}])


# -- Endpoints ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running([scripted("<think>\nHm.\n</think>\n\nYes.")], api_keys=("s3cret",)) as found:
        yield found


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_a_client(gateway: Running, version: str):
    base, key = f"{gateway.url}/{version}/models", {"x-goog-api-key": "s3cret", "x-goog-api-client": "test"}
    shown = {
        "name": "models/scripted",
        "displayName": "scripted",
        "version": "001",
        "supportedGenerationMethods": ["generateContent", "countTokens", "embedContent"],
    }
    assert httpx.get(base, headers=key, timeout=LONG).json() == {"models": [shown]}
    assert httpx.get(f"{base}/scripted", headers=key, timeout=LONG).json() == shown

    def post(method: str, **more: Any) -> httpx.Response:
        return httpx.post(f"{base}/scripted:{method}", json={"contents": HI}, timeout=LONG, **{"headers": key, **more})

    def text(response: Any) -> str:
        return "".join(part["text"] for part in response["candidates"][0]["content"]["parts"])

    assert text(post("generateContent").json()) == "Yes."
    streamed = post("streamGenerateContent")
    assert streamed.headers["content-type"] == "application/json"
    assert "".join(map(text, streamed.json())) == "Yes."
    streamed = post("streamGenerateContent", params={"alt": "sse"})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert "".join(map(text, events(streamed.content))) == "Yes."
    assert post("countTokens").json() == {"totalTokens": len("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")}
    refused = post("frobnicate")
    assert (refused.status_code, refused.json()["error"]["status"]) == (404, "NOT_FOUND")
    assert refused.json()["error"]["message"] == (
        "there is no method 'frobnicate'; valid ones: generateContent, streamGenerateContent, countTokens, "
        "embedContent, batchEmbedContents"
    )


def test_the_key_may_come_in_the_url_and_is_not_logged(gateway: Running, caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    url = f"{gateway.url}/v1beta/models/scripted:generateContent"
    assert httpx.post(url, params={"key": "s3cret"}, json={"contents": HI}, timeout=LONG).status_code == 200
    refused = httpx.post(url, params={"key": "wrong"}, json={"contents": HI}, timeout=LONG)
    assert refused.json() == {
        "error": {
            "code": 401,
            "message": "no valid API key: send it as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'",
            "status": "UNAUTHENTICATED",
        }
    }
    others = f"{gateway.url}/v1/chat/completions?key=s3cret"
    assert httpx.post(others, json={}, timeout=LONG).status_code == 401
    assert all(
        "s3cret" not in str(record.__dict__) for record in caplog.records if record.name.startswith("untemplate")
    )


def test_embeddings():
    class Embedding(Scripted):
        async def embed(self, inputs: Any, dimensions: int | None = None) -> Any:
            from untemplate_gateway.engines.base import Embeddings

            return Embeddings([[float(len(one))] for one in inputs], 3)

    model = scripted("x")
    model.engine.__class__ = Embedding
    with running([model]) as gateway:
        base = f"{gateway.url}/v1beta/models/scripted"
        one = {"content": {"parts": [{"text": "abc"}]}}
        assert httpx.post(f"{base}:embedContent", json=one, timeout=LONG).json() == {"embedding": {"values": [3.0]}}
        both = {"requests": [one, {"content": {"parts": [{"text": "a"}]}}]}
        found = httpx.post(f"{base}:batchEmbedContents", json=both, timeout=LONG).json()
        assert found == {"embeddings": [{"values": [3.0]}, {"values": [1.0]}]}
