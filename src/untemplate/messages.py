"""The OpenAI wire types, and the results that are made of them.

The rule: what is here has the shape that a client sees, and no behaviour beyond dumping itself. Nothing here parses,
and nothing here knows a model.

Two ways out. ``msgspec.json.encode(delta)`` is the fast one: fields at their default are left out, which for the
delta types means exactly "no nulls". ``model_dump`` and ``model_dump_json`` behave as they do on pydantic models, for
callers who come from there; they also leave out what OpenAI does not define (`ToolCall.status`) and survive lone
surrogates.

Sources: OpenAI API reference, "Chat Completions" and "Responses"; vLLM's ``DeltaMessage`` and its relatives for
``reasoning`` and the names (spec 1-3).
"""

from __future__ import annotations

import functools
import json
from typing import Any, ClassVar

import msgspec

__all__ = [
    "ChatCompletionRequest",
    "DeltaFunctionCall",
    "DeltaMessage",
    "DeltaToolCall",
    "Diagnostic",
    "ExtractedToolCallInformation",
    "FunctionCall",
    "Item",
    "ParsedOutput",
    "ResponsesRequest",
    "Span",
    "ToolCall",
    "WireModel",
]

_ALWAYS_SET = object()


class WireModel(msgspec.Struct, omit_defaults=True, repr_omit_defaults=True):
    """A struct that dumps itself as a pydantic model would."""

    # Fields that OpenAI does not define: dumped only on request.
    _extensions: ClassVar[frozenset[str]] = frozenset()

    def model_dump(
        self, *, exclude_none: bool = False, exclude_unset: bool = False, extensions: bool = False
    ) -> dict[str, Any]:
        """This value as a dict of plain builtins, nested models included.

        Args:
            exclude_none: leave out fields that are None. Dicts given by the caller keep theirs: in a JSON schema null
                means something.
            exclude_unset: leave out fields at their default. (Structs do not remember which fields were given.)
            extensions: include the fields that OpenAI does not define.

        Raises:
            TypeError: a field of type Any holds an object that is neither a builtin nor a model.
        """
        hidden = () if extensions else self._extensions
        dump: dict[str, Any] = {}
        for name, default in _defaults(type(self)):
            value = getattr(self, name)
            if name in hidden or (exclude_none and value is None) or (exclude_unset and value == default):
                continue
            dump[name] = _plain(value, exclude_none, exclude_unset, extensions)
        return dump

    def model_dump_json(
        self, *, exclude_none: bool = False, exclude_unset: bool = False, extensions: bool = False
    ) -> str:
        """`model_dump` as compact JSON. Lone surrogates, which have no UTF-8, come out as escapes (``\\ud800``)."""
        dump = self.model_dump(exclude_none=exclude_none, exclude_unset=exclude_unset, extensions=extensions)
        try:
            return msgspec.json.encode(dump).decode()
        except UnicodeEncodeError:
            return json.dumps(dump, separators=(",", ":"))


@functools.cache
def _defaults(cls: type[WireModel]) -> tuple[tuple[str, object], ...]:
    """The fields of `cls` with their defaults, in order."""

    def default(field: msgspec.structs.FieldInfo) -> object:
        if field.default is not msgspec.NODEFAULT:
            return field.default
        return [] if field.default_factory is list else _ALWAYS_SET

    return tuple((field.name, default(field)) for field in msgspec.structs.fields(cls))


def _plain(value: Any, exclude_none: bool, exclude_unset: bool, extensions: bool) -> Any:
    """`value` in plain builtins."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, WireModel):
        return value.model_dump(exclude_none=exclude_none, exclude_unset=exclude_unset, extensions=extensions)
    if isinstance(value, dict):
        return {key: _plain(item, exclude_none, exclude_unset, extensions) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, exclude_none, exclude_unset, extensions) for item in value]
    if hasattr(value, "model_dump"):  # the caller's own pydantic models
        return value.model_dump(exclude_none=exclude_none, exclude_unset=exclude_unset)
    return msgspec.to_builtins(value)


def name_reasoning(dump: dict[str, Any], field: str) -> dict[str, Any]:
    """Puts the dump's ``reasoning`` under the name that a policy wants: ``reasoning``, ``reasoning_content`` or
    ``both``. Changes the dump, and returns it."""
    if field in ("reasoning_content", "both") and "reasoning" in dump:
        dump["reasoning_content"] = dump["reasoning"] if field == "both" else dump.pop("reasoning")
    return dump


def _function() -> str:
    return "function"


# gc=False below: these hold strings, numbers and lists of each other, so no cycle can need the collector.


class DeltaFunctionCall(WireModel, gc=False):
    """The part of a call that this delta adds.

    ``name`` comes whole and once, in the first delta of the call; ``arguments`` is JSON text to append.
    """

    name: str | None = None
    arguments: str | None = None


class DeltaToolCall(WireModel, gc=False):
    """What a delta adds to the call number ``index`` (from 0) of the message.

    ``id`` and ``type`` come once, in the first delta of the call.
    """

    index: int
    id: str | None = None
    type: str | None = None
    function: DeltaFunctionCall | None = None


class DeltaMessage(WireModel, gc=False):
    """What a stream adds to the message: text to append, calls to begin or to continue. None is "nothing"."""

    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[DeltaToolCall] | None = None

    @property
    def reasoning_content(self) -> str | None:
        """``reasoning`` under its older name (DeepSeek's API, spec 1)."""
        return self.reasoning

    @reasoning_content.setter
    def reasoning_content(self, value: str | None) -> None:
        self.reasoning = value


class FunctionCall(WireModel, gc=False):
    """A function and its arguments.

    ``arguments`` is JSON text as the client gets it: whole for a closed call, a prefix for one that was cut. ``id``
    is set only where the call travels without its `ToolCall` (spec 3, ``parse``), and is on the wire only then.
    """

    name: str
    arguments: str
    id: str | None = None

    def model_dump(
        self, *, exclude_none: bool = False, exclude_unset: bool = False, extensions: bool = False
    ) -> dict[str, Any]:
        """As `WireModel.model_dump`, but ``id`` is never null: OpenAI's function object has no such key."""
        dump = super().model_dump(exclude_none=exclude_none, exclude_unset=exclude_unset, extensions=extensions)
        if self.id is None:
            dump.pop("id", None)
        return dump


class ToolCall(WireModel, gc=False):
    """One call of the message.

    ``status`` says how the call ended: "ok", "incomplete" (the output was cut inside it), "invalid_json", …
    ``model_id`` is the id that the model wrote, where that could not become ``id``. Both are ours, and dumped only
    with ``extensions=True``.
    """

    _extensions: ClassVar[frozenset[str]] = frozenset({"status", "model_id", "repairs"})

    id: str
    function: FunctionCall
    type: str = msgspec.field(default_factory=_function)  # a factory: clients need the key, omit_defaults would drop it
    status: str = "ok"
    model_id: str | None = None
    repairs: list[str] = []


class ExtractedToolCallInformation(WireModel, gc=False):
    """What `ToolParser.extract_tool_calls` found: the calls, and the content that is left (spec 1)."""

    tools_called: bool
    tool_calls: list[ToolCall]
    content: str | None = None


class Diagnostic(WireModel, gc=False):
    """Something in the output that is not as the format has it.

    ``code`` is a stable slug, ``message`` is for people; ``start`` and ``end`` (exclusive) are offsets in characters
    of the output; ``text`` is what stood there, where it helps.
    """

    code: str
    message: str
    start: int
    end: int
    text: str = ""


class Span(WireModel, gc=False):
    """Where a piece of the output went.

    ``kind`` is "reasoning", "content", "name", "id", "arguments", "markup" or "dropped". ``start`` and ``end``
    (exclusive) are offsets in characters of the output; ``token_start`` and ``token_end`` the same in tokens, where
    ids were given. ``call`` is the index of the call it belongs to.
    """

    kind: str
    start: int
    end: int
    token_start: int | None = None
    token_end: int | None = None
    call: int | None = None


class Item(WireModel, gc=False):
    """One part of the message, in the order of the output.

    ``type`` is "reasoning" or "content", with ``text``, or "tool_call", with ``call``.
    """

    type: str
    text: str | None = None
    call: ToolCall | None = None


class ParsedOutput(WireModel, gc=False):
    """A whole output as a message.

    ``finish_reason`` is the engine's, except that "tool_calls" replaces "stop" when there are calls. ``items`` holds
    the same message in order; ``diagnostics`` and ``spans`` say what was odd and where everything went.
    """

    reasoning_content: str | None = None
    content: str | None = None
    tool_calls: list[ToolCall] = []
    tools_called: bool = False
    finish_reason: str = "stop"
    items: list[Item] = []
    diagnostics: list[Diagnostic] = []
    spans: list[Span] = []

    @property
    def reasoning(self) -> str | None:
        """``reasoning_content`` under its newer name."""
        return self.reasoning_content

    @reasoning.setter
    def reasoning(self, value: str | None) -> None:
        self.reasoning_content = value

    def message(self, *, reasoning_field: str = "reasoning") -> dict[str, Any]:
        """The assistant message of a Chat Completions response.

        ``role`` and ``content`` are always there (``content`` is None when it is empty and there are calls),
        ``reasoning`` and ``tool_calls`` only when the output has them. ``reasoning_field`` is the policy's.
        """
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning_content is not None:
            message["reasoning"] = self.reasoning_content
            name_reasoning(message, reasoning_field)
        if self.tool_calls:
            message["content"] = self.content or None
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": call.type,
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in self.tool_calls
            ]
        return message


# Requests hold whatever the caller has, so these stay with the collector.


class ChatCompletionRequest(WireModel):
    """What a parser reads of a Chat Completions request.

    ``messages`` and ``tools`` may hold dicts, pydantic models, structs or any object with the same attributes.
    ``tools=None`` means "unknown", ``[]`` means "none". Source: OpenAI, "Create chat completion";
    ``skip_special_tokens``, ``include_reasoning``, ``chat_template_kwargs`` and ``continue_final_message`` are
    vLLM's.
    """

    model: str = ""
    messages: list[Any] = []
    tools: list[Any] | None = None
    tool_choice: Any = "auto"
    parallel_tool_calls: bool = True
    stream: bool = False
    stop: str | list[str] | None = None
    response_format: Any = None
    reasoning_effort: str | None = None
    include_reasoning: bool = True
    skip_special_tokens: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None


class ResponsesRequest(WireModel):
    """What a parser reads of a Responses request.

    ``input`` is text or a list of items; ``tools`` are flat (``{"type": "function", "name": …, "parameters": …}``);
    ``text`` holds the response format. Source: OpenAI, "Create a model response"; ``skip_special_tokens``,
    ``include_reasoning`` and ``chat_template_kwargs`` are vLLM's.
    """

    model: str = ""
    input: Any = ""
    instructions: str | None = None
    tools: list[Any] | None = None
    tool_choice: Any = "auto"
    parallel_tool_calls: bool = True
    stream: bool = False
    text: Any = None
    reasoning: Any = None
    include_reasoning: bool = True
    skip_special_tokens: bool = True
    chat_template_kwargs: dict[str, Any] | None = None
