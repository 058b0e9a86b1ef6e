"""Documents that are text, in each API's own form: the model reads their title and their text."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from untemplate_gateway.errors import ApiError
from untemplate_gateway.protocols.anthropic import MESSAGES
from untemplate_gateway.protocols.chat import CHAT
from untemplate_gateway.protocols.gemini import GEMINI
from untemplate_gateway.protocols.responses import RESPONSES

DATA = base64.b64encode("Schlüssel: 4711".encode()).decode()
URL = f"data:text/plain;base64,{DATA}"
PDF = f"data:application/pdf;base64,{DATA}"


def chat(file: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "file", "file": file}, {"type": "text", "text": "?"}]}]}


def responses(file: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "input_file", **file}, {"type": "input_text", "text": "?"}]
    return {"input": [{"role": "user", "content": content}]}


def anthropic(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    content = [{"type": "document", "source": source, **more}, {"type": "text", "text": "?"}]
    return {"max_tokens": 9, "messages": [{"role": "user", "content": content}]}


def gemini(blob: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"parts": [{"inlineData": blob}, {"text": "?"}]}]}


SHOWN = [{"type": "text", "text": "keys.txt\nSchlüssel: 4711"}, {"type": "text", "text": "?"}]
PARTS = [{"type": "text", "text": "Schlüssel: "}, {"type": "text", "text": "4711"}]


@pytest.mark.parametrize(
    ("dialect", "body", "shown"),
    [
        (CHAT, chat({"file_data": URL, "filename": "keys.txt"}), SHOWN),
        (RESPONSES, responses({"file_data": URL, "filename": "keys.txt"}), SHOWN),
        (
            MESSAGES,
            anthropic({"type": "text", "media_type": "text/plain", "data": "Schlüssel: 4711"}, title="keys.txt"),
            SHOWN,
        ),
        (
            MESSAGES,
            anthropic({"type": "content", "content": PARTS}, title="keys.txt"),
            [{"type": "text", "text": "keys.txt\nSchlüssel: \n4711"}, {"type": "text", "text": "?"}],
        ),
        (GEMINI, gemini({"mimeType": "text/plain", "data": DATA}), "Schlüssel: 4711?"),
        (GEMINI, gemini({"mimeType": "application/json; charset=utf-8", "data": DATA}), "Schlüssel: 4711?"),
    ],
)
def test_the_text_of_a_document_is_a_part_of_the_message(dialect: Any, body: dict[str, Any], shown: Any):
    assert dialect.read(body).messages[0]["content"] == shown


@pytest.mark.parametrize(
    ("dialect", "body", "message"),
    [
        (CHAT, chat({"file_data": "data:text/plain;base64,!"}), "messages[0].content[0].file.file_data: must be text"),
        (
            RESPONSES,
            responses({"file_data": PDF}),
            "input[0].content[0].file_data: only files that are text are supported, got 'application/pdf'",
        ),
        (RESPONSES, responses({"filename": "a"}), "input[0].content[0].file_data: is required"),
        (
            RESPONSES,
            responses({"file_url": "https://example.org/a"}),
            "input[0].content[0].file_url: the gateway stores",
        ),
        (
            MESSAGES,
            anthropic({"type": "base64", "media_type": "application/pdf", "data": DATA}),
            "messages[0].content[0].source.type: must be one of text, content, got 'base64'",
        ),
        (
            GEMINI,
            gemini({"mimeType": "application/pdf", "data": DATA}),
            "contents[0].parts[0].inlineData.mimeType: only",
        ),
        (
            GEMINI,
            gemini({"mimeType": "text/plain", "data": "/w=="}),
            "contents[0].parts[0].inlineData.data: must be text",
        ),
    ],
)
def test_another_document_is_refused_by_its_place(dialect: Any, body: dict[str, Any], message: str):
    with pytest.raises(ApiError) as caught:
        dialect.read(body)
    assert caught.value.status == 400
    assert caught.value.message.startswith(message)


def test_a_chat_file_that_is_no_text_is_left_to_an_engine_that_renders_messages():
    body = chat({"file_data": PDF})
    assert CHAT.read(body).messages == body["messages"]
