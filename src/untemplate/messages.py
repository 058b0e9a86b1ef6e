"""The types of OpenAI's API, and the results that are made of them.

Everything here has the shape that a client receives, and no behaviour except dumping itself. Nothing here parses.

There are two ways to dump. ``msgspec.json.encode(delta)`` is the fast one: it leaves out fields at their default, which
for deltas means exactly "no nulls". ``model_dump`` and ``model_dump_json`` take the keywords of pydantic's methods of
the same names; they also leave out fields that OpenAI does not define, such as `ToolCall.status`, and can write lone
surrogates.

Sources: OpenAI's API reference, "Chat Completions" and "Responses"; vLLM's ``DeltaMessage`` and its relatives for
``reasoning`` and for the names.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection
from typing import Any, ClassVar, Literal

import msgspec

from ._internal.reasoning_field import name_reasoning
from ._internal.record import dataclass_fields

__all__ = [
    "CallStatus",
    "ChatCompletionRequest",
    "DeltaFunctionCall",
    "DeltaMessage",
    "DeltaToolCall",
    "Diagnostic",
    "ExtractedToolCallInformation",
    "FunctionCall",
    "Item",
    "ItemType",
    "OldNames",
    "ParsedOutput",
    "ResponsesRequest",
    "Span",
    "SpanKind",
    "ToolCall",
    "WireModel",
]

CallStatus = Literal["ok", "recovered", "repaired", "incomplete", "invalid_json", "unknown_tool", "invalid_arguments"]
"""How a call ended."""

SpanKind = Literal["reasoning", "content", "name", "id", "arguments", "markup", "dropped"]
"""The kinds of text in an output."""

ItemType = Literal["reasoning", "content", "tool_call"]
"""The kinds of parts of a message."""

_ALWAYS_SET = object()


class WireModel(msgspec.Struct, omit_defaults=True, repr_omit_defaults=True):
    """A struct with the dump methods of a pydantic model."""

    # The results that vLLM's interface has as dataclasses work with `dataclasses.asdict` and `dataclasses.replace`.
    __dataclass_fields__: ClassVar[dict[str, Any]]

    # Fields that OpenAI does not define: dumped only on request.
    _extensions: ClassVar[frozenset[str]] = frozenset()

    def model_dump(
        self,
        *,
        mode: Literal["python", "json"] = "python",
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        by_alias: bool | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
        extensions: bool = False,
    ) -> dict[str, Any]:
        """Return this value as a dict of plain builtins, nested models included.

        Args:
            mode: both modes return the same, as every value is valid JSON.
            include, exclude: names of fields of this value to keep or to leave out.
            by_alias: without effect; no field has an alias.
            exclude_unset, exclude_defaults: leave out fields at their default. (Structs do not record which fields were
                given, so both mean the same.)
            exclude_none: leave out fields that are None. Dicts given by the caller keep theirs: in a JSON schema null
                has a meaning.
            extensions: include the fields that OpenAI does not define.

        Raises:
            ValueError: an unknown mode, or ``include`` or ``exclude`` names a field that does not exist.
            TypeError: a field of type Any holds an object that is neither a builtin nor a model.
        """
        if mode not in ("python", "json"):
            raise ValueError(f"mode: {mode!r} is not one of: 'python', 'json'")
        dump = self._dump(exclude_none, exclude_unset or exclude_defaults, extensions)
        if include is not None:
            wanted = self._fields("include", include)
            dump = {name: value for name, value in dump.items() if name in wanted}
        if exclude is not None:
            unwanted = self._fields("exclude", exclude)
            dump = {name: value for name, value in dump.items() if name not in unwanted}
        return dump

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        by_alias: bool | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
        extensions: bool = False,
    ) -> str:
        """Return `model_dump` as JSON, compact unless ``indent`` is given.

        Lone surrogates, which UTF-8 cannot hold, are written as escapes (``\\ud800``).
        """
        dump = self.model_dump(
            include=include,
            exclude=exclude,
            exclude_unset=exclude_unset,
            exclude_defaults=exclude_defaults,
            exclude_none=exclude_none,
            extensions=extensions,
        )
        try:
            encoded = msgspec.json.encode(dump)
        except UnicodeEncodeError:
            return json.dumps(dump, indent=indent, separators=(",", ":" if indent is None else ": "))
        return (encoded if indent is None else msgspec.json.format(encoded, indent=indent)).decode()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from ._internal.pydantic_schema import core_schema

        return core_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        from ._internal.pydantic_schema import json_schema

        return json_schema(cls)

    def _dump(self, exclude_none: bool, exclude_defaults: bool, extensions: bool) -> dict[str, Any]:
        hidden = () if extensions else self._extensions
        dump: dict[str, Any] = {}
        for name, default in _defaults(type(self)):
            value = getattr(self, name)
            if name in hidden or (exclude_none and value is None) or (exclude_defaults and value == default):
                continue
            dump[name] = _plain(value, exclude_none, exclude_defaults, extensions)
        return dump

    def _fields(self, argument: str, names: Collection[str]) -> frozenset[str]:
        """Check names of fields. ``reasoning`` and ``reasoning_content`` are names of the same field."""
        if isinstance(names, (str, dict)):
            raise TypeError(f"{argument}: expected a set of field names, got {names!r}")
        known = {*self.__struct_fields__, *_REASONING_NAMES}
        for name in names:
            if name not in known:
                valid = ", ".join(map(repr, self.__struct_fields__))
                raise ValueError(f"{argument}: {type(self).__name__} has no field {name!r}; its fields are {valid}")
        return frozenset(names)


_REASONING_NAMES = ("reasoning", "reasoning_content")


@functools.cache
def _defaults(cls: type[WireModel]) -> tuple[tuple[str, object], ...]:
    """Return the fields of ``cls`` with their defaults, in order."""

    def default(field: msgspec.structs.FieldInfo) -> object:
        if field.default is not msgspec.NODEFAULT:
            return field.default
        return [] if field.default_factory is list else _ALWAYS_SET

    return tuple((field.name, default(field)) for field in msgspec.structs.fields(cls))


def _plain(value: Any, exclude_none: bool, exclude_defaults: bool, extensions: bool) -> Any:
    """Return ``value`` in plain builtins."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, WireModel):
        return value._dump(exclude_none, exclude_defaults, extensions)
    if isinstance(value, dict):
        return {key: _plain(item, exclude_none, exclude_defaults, extensions) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, exclude_none, exclude_defaults, extensions) for item in value]
    if hasattr(value, "model_dump"):  # the caller's own pydantic models
        return value.model_dump(exclude_none=exclude_none, exclude_unset=exclude_defaults)
    return msgspec.to_builtins(value)


def _function() -> str:
    return "function"


# gc=False below: these hold strings, numbers and lists of each other, so they cannot be part of a cycle.


class DeltaFunctionCall(WireModel, gc=False):
    """The part of a call that this delta adds.

    ``name`` comes whole and once, in the first delta of the call; ``arguments`` is JSON text to append.
    """

    name: str | None = None
    arguments: str | None = None


class DeltaToolCall(WireModel, gc=False):
    """The part of a delta that adds to call number ``index`` (from 0) of the message.

    ``id`` and ``type`` come once, in the first delta of the call.
    """

    index: int
    id: str | None = None
    type: str | None = None
    function: DeltaFunctionCall | None = None


class DeltaMessage(WireModel, gc=False):
    """A part of the message: text to append, calls to begin or to continue. None means "nothing"."""

    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[DeltaToolCall] | None = None

    @property
    def reasoning_content(self) -> str | None:
        """``reasoning`` under its older name, which is DeepSeek's."""
        return self.reasoning

    @reasoning_content.setter
    def reasoning_content(self, value: str | None) -> None:
        self.reasoning = value


class FunctionCall(WireModel, gc=False):
    """A function and its arguments.

    ``arguments`` is JSON text as the client receives it: whole for a closed call, a prefix for one that was cut. ``id``
    is set, and dumped, only where there is no `ToolCall` around it (vLLM's ``Parser.parse``).
    """

    name: str
    arguments: str
    id: str | None = None

    def _dump(self, exclude_none: bool, exclude_defaults: bool, extensions: bool) -> dict[str, Any]:
        """Leave out an ``id`` that is None: OpenAI's function object has no such field."""
        dump = super()._dump(exclude_none, exclude_defaults, extensions)
        if self.id is None:
            dump.pop("id", None)
        return dump


class ToolCall(WireModel, gc=False):
    """One call of the message.

    ``status`` is how the call ended, such as "ok", "incomplete" or "invalid_json". "recovered" means that a part of it
    was ended, dropped or read again, or that an object of its arguments has a key twice.
    ``model_id`` is the id that the model wrote, if it came too late to become ``id``. ``repairs`` are the steps by
    which a policy repaired the arguments. ``reason`` is why an invalid call must not run as it is. OpenAI does
    not define these four: they are dumped only with ``extensions=True``.
    """

    _extensions: ClassVar[frozenset[str]] = frozenset({"status", "reason", "model_id", "repairs"})

    id: str
    function: FunctionCall
    type: str = msgspec.field(default_factory=_function)  # a factory: clients need the key, omit_defaults would drop it
    status: CallStatus = "ok"
    model_id: str | None = None
    repairs: list[str] = []
    reason: str | None = None


class ExtractedToolCallInformation(WireModel, gc=False):
    """The result of vLLM's ``ToolParser.extract_tool_calls``: the calls, and the content that is left."""

    tools_called: bool
    tool_calls: list[ToolCall]
    content: str | None = None


class Diagnostic(WireModel, gc=False):
    """A part of the output that does not follow the Format.

    ``code`` is a stable slug (``docs/diagnostics.md`` lists them), ``message`` is for people. ``start`` and ``end``
    (exclusive) are offsets in characters of the output; ``text`` is the output between them, at most 200 characters.
    """

    code: str
    message: str
    start: int
    end: int
    text: str = ""


class Span(WireModel, gc=False):
    """A part of the output, and what it became.

    ``start`` and ``end`` (exclusive) are offsets in characters of the output. ``call`` is the index of the call that a
    name, an id or arguments belong to.
    """

    kind: SpanKind
    start: int
    end: int
    call: int | None = None


class Item(WireModel, gc=False):
    """One part of the message, in the order of the output.

    ``type`` is "reasoning" or "content", with ``text``, or "tool_call", with ``call``.
    """

    type: ItemType
    text: str | None = None
    call: ToolCall | None = None


class OldNames(msgspec.StructMeta):
    """Accepts ``reasoning_content``, DeepSeek's name of ``reasoning``, when a value is made."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        if "reasoning_content" in fields:
            fields.setdefault("reasoning", fields.pop("reasoning_content"))
        return super().__call__(*args, **fields)


class ParsedOutput(WireModel, metaclass=OldNames, gc=False):
    """A whole output as a message.

    ``tools_called`` is True if a call is whole: one that was cut is not a call to run. ``finish_reason`` is the
    engine's, except that "tool_calls" replaces "stop" when there are calls and the last one is whole. ``items`` holds
    the same message in order; ``diagnostics`` lists what did not follow the Format, ``spans`` what each part of the
    output became. ``reasoning_field`` is the policy's: the field that dumps use for reasoning. It is not dumped itself.
    """

    reasoning: str | None = None
    content: str | None = None
    tool_calls: list[ToolCall] = []
    tools_called: bool = False
    finish_reason: str = "stop"
    items: list[Item] = []
    diagnostics: list[Diagnostic] = []
    spans: list[Span] = []
    reasoning_field: str = "reasoning"

    @property
    def reasoning_content(self) -> str | None:
        """``reasoning`` under its older name, which is DeepSeek's."""
        return self.reasoning

    @reasoning_content.setter
    def reasoning_content(self, value: str | None) -> None:
        self.reasoning = value

    def _dump(self, exclude_none: bool, exclude_defaults: bool, extensions: bool) -> dict[str, Any]:
        dump = super()._dump(exclude_none, exclude_defaults, extensions)
        dump.pop("reasoning_field", None)
        return name_reasoning(dump, self.reasoning_field)

    def message(self, *, reasoning_field: str | None = None) -> dict[str, Any]:
        """Return the assistant message of a Chat Completions response.

        ``role`` and ``content`` are always there (``content`` is None if it is empty and there are calls),
        ``reasoning`` and ``tool_calls`` only if the output has them. ``reasoning_field`` replaces that of the policy.
        """
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning is not None:
            message["reasoning"] = self.reasoning
            name_reasoning(message, reasoning_field or self.reasoning_field)
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


for _cls in (ExtractedToolCallInformation, ParsedOutput):
    _names = ["reasoning_content" if name == "reasoning" else name for name in _cls.__struct_fields__]
    _cls.__dataclass_fields__ = dataclass_fields(*_names)


# Requests hold objects of the caller, so the garbage collector must track them.


class ChatCompletionRequest(WireModel):
    """The fields of a Chat Completions request that a parser reads.

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
    """The fields of a Responses request that a parser reads.

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
