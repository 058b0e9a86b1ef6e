from dataclasses import dataclass, field
from typing import Any


@dataclass
class ChatCompletionRequest:
    model: str
    messages: list[Any]
    tools: list[Any] | None = None
    tool_choice: Any = None


@dataclass
class DeltaFunctionCall:
    name: str | None = None
    arguments: str | None = None


@dataclass
class DeltaToolCall:
    index: int
    id: str | None = None
    type: str | None = "function"
    function: DeltaFunctionCall | None = None


@dataclass
class DeltaMessage:
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[DeltaToolCall] = field(default_factory=list)
