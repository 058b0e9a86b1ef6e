"""A conversation as text, exactly as the chat template renders it, and as token ids with the learned ones marked.

* ``render`` repeats the template in Python, because a million conversations are rendered. A test compares the two.
* The model learns what it would write after a generation prompt: the last turn, and earlier turns with reasoning.
"""

from __future__ import annotations

import json
from typing import Any

from conversations import Conversation

START, END = "<|im_start|>", "<|im_end|>"
SILENT = "<think>\n\n</think>\n\n"


def turn(message: dict[str, Any]) -> str:
    """Return the assistant's text for a message, without the end of the turn."""
    text = f"<think>\n{message['reasoning_content']}\n</think>\n\n" if message.get("reasoning_content") else ""
    text += message["content"]
    for i, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        text += "\n" if i or message["content"] else ""
        text += (
            f'<tool_call>\n{{"name": "{function["name"]}", "arguments": {dumps(function["arguments"])}}}\n</tool_call>'
        )
    return text


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def pieces(conversation: Conversation) -> list[tuple[str, bool]]:
    """Return the text in pieces, in order; True for pieces that are learned."""
    out: list[tuple[str, bool]] = []
    messages = conversation.messages
    first = messages[0] if messages[0]["role"] == "system" else None
    tools = conversation.tools
    if first or tools:
        text = first["content"] if first else ""
        text += "\n\n" if first and tools else ""
        if tools:
            text += "<tools>\n" + "".join(dumps(t["function"]) + "\n" for t in tools) + "</tools>"
        out.append((f"{START}system\n{text}{END}\n", False))
    last = len(messages) - 1
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            if i or not first:
                out.append((f"{START}{message['role']}\n{message['content']}{END}\n", False))
            continue
        silent = i == last and not conversation.thinking
        out.append((f"{START}assistant\n" + (SILENT if silent else ""), False))
        if silent:
            message = {**message, "reasoning_content": ""}
        out.append((turn(message) + END, bool(message.get("reasoning_content")) or i == last))
        out.append(("\n", False))
    return out


def prompt(conversation: Conversation) -> str:
    """Return everything before the last part that the model writes."""
    return "".join(text for text, _ in pieces(conversation)[:-2])


def render(conversation: Conversation) -> str:
    """Return the whole text."""
    return "".join(text for text, _ in pieces(conversation))


def encode(tokenizer: Any, conversation: Conversation) -> tuple[list[int], list[bool]]:
    """Return the ids, and a list that is True for each learned id. Pieces meet at special tokens or newlines, so that
    each can be encoded alone.
    """
    ids: list[int] = []
    learned: list[bool] = []
    for text, learn in pieces(conversation)[:-1]:
        part = tokenizer.encode(text, add_special_tokens=False).ids
        ids += part
        learned += [learn] * len(part)
    return ids, learned
