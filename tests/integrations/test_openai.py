"""``untemplate.integrations.openai`` on the official package, and the message types in pydantic and FastAPI."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionMessage

from untemplate import DeltaMessage, OutputParser, ParsedOutput, ToolCall
from untemplate.integrations import _partner as partner_module
from untemplate.integrations._partner import partner
from untemplate.integrations.openai import ChatChunks, to_openai

PARSER = OutputParser.named("hermes", reasoning="qwen3")
OUTPUT = (
    "<think>\nLook it up.\n</think>\n\nOne moment.\n"
    '<tool_call>\n{"name": "find", "arguments": {"q": "tea"}}\n</tool_call>'
)


def test_a_message():
    message = to_openai(PARSER.parse(OUTPUT, seed=1))
    assert type(message) is ChatCompletionMessage
    dump = message.model_dump(exclude_unset=True)
    call_id = dump["tool_calls"][0].pop("id")
    assert call_id.startswith("call_")
    assert dump == {
        "role": "assistant",
        "content": "One moment.",
        "reasoning": "Look it up.",
        "tool_calls": [{"type": "function", "function": {"name": "find", "arguments": '{"q": "tea"}'}}],
    }


def chunks(output: str, size: int, finish: str = "stop", **settings: Any) -> list[dict[str, Any]]:
    made = ChatChunks(PARSER.stream(seed=1), model="m", id="chatcmpl-1", created=7, **settings)
    found = [chunk for i in range(0, len(output), size) for chunk in made.feed(output[i : i + size])]
    found += made.finish(finish, CompletionUsage(prompt_tokens=1, completion_tokens=2, total_tokens=3))
    return [chunk.model_dump(exclude_unset=True) for chunk in found]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_of_a_stream(size: int):
    first, *middle, last, usage = chunks(OUTPUT, size)
    head = {"id": "chatcmpl-1", "created": 7, "model": "m", "object": "chat.completion.chunk"}
    assert first == {**head, "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
    assert last == {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    assert usage == {
        **head,
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
    deltas = [chunk["choices"][0]["delta"] for chunk in middle]
    assert "".join(delta.get("reasoning", "") for delta in deltas) == "Look it up."
    assert "".join(delta.get("content", "") for delta in deltas) == "One moment."
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert "".join(call["function"].get("arguments", "") for call in calls) == '{"q": "tea"}'
    assert [call["function"]["name"] for call in calls if "name" in call["function"]] == ["find"]


def test_an_empty_output_has_a_role_and_a_finish_reason():
    first, last, _ = chunks("", 1, "length")
    assert first["choices"][0]["delta"] == {"role": "assistant"}
    assert last["choices"][0]["finish_reason"] == "length"


def test_the_field_of_reasoning_and_the_index():
    found = chunks("<think>\na\n</think>\n\nb", 1000, reasoning_field="reasoning_content", index=2)
    assert [chunk["choices"][0]["delta"] for chunk in found[:-1]] == [
        {"role": "assistant"},
        {"reasoning_content": "a", "content": "b"},
        {},
    ]
    assert {chunk["choices"][0]["index"] for chunk in found[:-1]} == {2}


# -- pydantic and FastAPI -----------------------------------------------------------------------------------------


class Row(pydantic.BaseModel):
    parsed: ParsedOutput
    calls: list[ToolCall] = []


def test_our_types_are_fields_of_a_pydantic_model():
    parsed = PARSER.parse(OUTPUT)
    row = Row(parsed=parsed, calls=parsed.tool_calls)
    assert row.parsed is parsed
    assert row.model_dump()["parsed"] == parsed.model_dump()
    again = Row.model_validate_json(row.model_dump_json())
    assert again.parsed.message() == parsed.message()
    assert again.calls == parsed.tool_calls


def test_a_dump_under_the_older_name_of_reasoning_is_read():
    row = Row.model_validate({"parsed": {"reasoning_content": "a", "content": "b"}})
    assert row.parsed == ParsedOutput(reasoning="a", content="b")


def test_a_wrong_field_is_pydantics_error_with_the_path():
    with pytest.raises(pydantic.ValidationError) as error:
        Row.model_validate({"parsed": {"content": 3}})
    assert error.value.errors()[0]["loc"] == ("parsed",)
    assert error.value.errors()[0]["msg"] == "Value error, Expected `str | null`, got `int` - at `$.content`"


def test_a_response_model_of_fastapi():
    app = FastAPI()

    @app.get("/delta", response_model=DeltaMessage, response_model_exclude_none=True)
    def delta() -> DeltaMessage:
        return DeltaMessage(content="Hi.")

    @app.post("/parse", response_model=ParsedOutput)
    def parse(output: str) -> ParsedOutput:
        return PARSER.parse(output)

    client = TestClient(app)
    assert client.get("/delta").json() == {"content": "Hi."}
    assert client.post("/parse", params={"output": OUTPUT}).json()["tool_calls"][0]["function"]["name"] == "find"
    schema = client.get("/openapi.json").json()
    delta_schema = schema["paths"]["/delta"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert "$ref" not in json.dumps(delta_schema)
    assert set(delta_schema["properties"]) == {"role", "content", "reasoning", "tool_calls"}


# -- Errors -------------------------------------------------------------------------------------------------------


def test_a_missing_package():
    with pytest.raises(ImportError) as error:
        partner("nowhere", "untemplate-nowhere", "1.2")
    assert str(error.value) == "needs untemplate-nowhere >= 1.2: pip install 'untemplate-nowhere>=1.2'"


@pytest.mark.parametrize(("found", "old"), [("1.99.9", True), ("1.100", False), ("2.0.0rc1", False), ("0.9", True)])
def test_a_package_that_is_too_old(found: str, old: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(partner_module, "version", lambda package: found)
    if not old:
        assert partner("openai.types.chat", "openai", "1.100").__name__ == "openai.types.chat"
        return
    with pytest.raises(ImportError) as error:
        partner("openai.types.chat", "openai", "1.100")
    assert str(error.value) == (f"needs openai >= 1.100, and {found} is installed: pip install 'openai>=1.100'")


def test_a_package_without_the_module():
    with pytest.raises(ImportError, match=r"openai [\d.]+ cannot be used: No module named 'openai.nowhere'"):
        partner("openai.nowhere", "openai", "1.100")
