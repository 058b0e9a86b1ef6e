"""Rows and files for the tests of many outputs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "ping",
            "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        },
    }
]


def output(arguments: str = '{"x": 1}') -> str:
    return f'Hi.\n<tool_call>\n{{"name": "ping", "arguments": {arguments}}}\n</tool_call>'


def answer(text: str, reason: str = "stop") -> dict[str, Any]:
    """Return an answer of Chat Completions whose content is a raw output."""
    message = {"role": "assistant", "content": text}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": i, "output": output(f'{{"x": {i}}}'), "tools": TOOLS} for i in range(count)]


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., str]:
    """Write rows as lines of a file; bytes are written as they are."""

    def write(lines: list[Any], name: str = "rows.jsonl") -> str:
        data = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return write


def read(path: str | Path) -> list[dict[str, Any]]:
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rb") as file:
        return [json.loads(line) for line in file]
