"""The wire types: dumps, JSON encoding and defaults."""

import copy
import json
import pickle
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from untemplate.messages import (
    ChatCompletionRequest,
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    Diagnostic,
    ExtractedToolCallInformation,
    FunctionCall,
    Item,
    ParsedOutput,
    ResponsesRequest,
    Span,
    ToolCall,
)


def call(**fields: Any) -> ToolCall:
    return ToolCall(id="call_1", function=FunctionCall(name="f", arguments='{"x":1}'), **fields)


CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}


class TestDeltas:
    first = DeltaMessage(
        tool_calls=[DeltaToolCall(index=0, id="call_1", type="function", function=DeltaFunctionCall(name="f"))]
    )

    def test_dump_has_every_field(self) -> None:
        assert self.first.model_dump() == {
            "role": None,
            "content": None,
            "reasoning": None,
            "tool_calls": [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": None}}
            ],
        }

    @pytest.mark.parametrize("exclude", ["exclude_none", "exclude_unset"])
    def test_dump_without_nulls_reaches_the_nested(self, exclude: str) -> None:
        assert self.first.model_dump(**{exclude: True}) == {
            "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f"}}]
        }

    def test_fast_encoding_is_the_dump_without_nulls(self) -> None:
        expected = '{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f"}}]}'
        assert msgspec.json.encode(self.first).decode() == expected
        assert self.first.model_dump_json(exclude_none=True) == expected

    def test_empty(self) -> None:
        assert msgspec.json.encode(DeltaMessage()) == b"{}"
        assert DeltaMessage().model_dump_json() == '{"role":null,"content":null,"reasoning":null,"tool_calls":null}'

    def test_empty_text_is_not_nothing(self) -> None:
        assert msgspec.json.encode(DeltaMessage(role="assistant", content="")) == b'{"role":"assistant","content":""}'

    def test_reasoning_content_is_reasoning(self) -> None:
        delta = DeltaMessage(reasoning="a")
        assert delta.reasoning_content == "a"
        delta.reasoning_content = "b"
        assert delta == DeltaMessage(reasoning="b")
        assert delta.model_dump(exclude_none=True) == {"reasoning": "b"}

    def test_argument_delta(self) -> None:
        delta = DeltaToolCall(index=3, function=DeltaFunctionCall(arguments='{"'))
        assert delta.model_dump(exclude_unset=True) == {"index": 3, "function": {"arguments": '{"'}}

    def test_deltas_can_be_merged_in_place(self) -> None:
        function = DeltaFunctionCall(name="f", arguments="{")
        function.arguments = (function.arguments or "") + "}"
        assert function == DeltaFunctionCall(name="f", arguments="{}")

    def test_text_of_any_kind(self) -> None:
        text = '\0 é 👩‍💻 \u2028 </think> "\\'
        assert json.loads(DeltaMessage(content=text).model_dump_json(exclude_none=True)) == {"content": text}

    def test_lone_surrogate_is_escaped(self) -> None:
        encoded = DeltaMessage(content="é\ud800").model_dump_json(exclude_none=True)
        assert encoded == '{"content":"\\u00e9\\ud800"}'
        assert json.loads(encoded) == {"content": "é\ud800"}

    def test_copy_pickle_and_repr(self) -> None:
        assert copy.deepcopy(self.first) == self.first
        assert pickle.loads(pickle.dumps(self.first)) == self.first
        assert repr(DeltaMessage(content="x")) == "DeltaMessage(content='x')"


class TestCalls:
    @pytest.mark.parametrize("exclude_none", [False, True])
    def test_wire_has_id_type_and_function_only(self, exclude_none: bool) -> None:
        assert call(status="incomplete", model_id="m").model_dump(exclude_none=exclude_none) == CALL

    def test_type_is_never_omitted(self) -> None:
        assert call().model_dump(exclude_unset=True) == CALL
        assert msgspec.json.decode(msgspec.json.encode(call())) == CALL

    def test_extensions(self) -> None:
        assert call().model_dump(extensions=True) == {
            **CALL,
            "status": "ok",
            "model_id": None,
            "repairs": [],
            "reason": None,
        }
        assert call(status="incomplete").model_dump(extensions=True, exclude_none=True) == {
            **CALL,
            "status": "incomplete",
            "repairs": [],
        }

    def test_id_of_a_function_call_is_there_only_when_set(self) -> None:
        assert FunctionCall(name="f", arguments="{}").model_dump() == {"name": "f", "arguments": "{}"}
        assert FunctionCall(id="call_1", name="f", arguments="{}").model_dump(exclude_unset=True) == {
            "name": "f",
            "arguments": "{}",
            "id": "call_1",
        }

    def test_extracted(self) -> None:
        assert ExtractedToolCallInformation(tools_called=True, tool_calls=[call()]).model_dump() == {
            "tools_called": True,
            "tool_calls": [CALL],
            "content": None,
        }

    def test_decodes_from_the_wire(self) -> None:
        assert msgspec.convert(CALL, ToolCall) == call()


class TestParsedOutput:
    def test_the_older_name_of_reasoning(self):
        made = ParsedOutput(reasoning_content="why", content="a")
        assert (made.reasoning, made.reasoning_content, made.content) == ("why", "why", "a")

    def test_defaults_are_fresh(self) -> None:
        ParsedOutput().tool_calls.append(call())
        assert ParsedOutput().model_dump() == {
            "reasoning": None,
            "content": None,
            "tool_calls": [],
            "tools_called": False,
            "finish_reason": "stop",
            "items": [],
            "diagnostics": [],
            "spans": [],
        }

    def test_dump(self) -> None:
        parsed = ParsedOutput(
            content="hi",
            tool_calls=[call(status="incomplete")],
            tools_called=True,
            finish_reason="length",
            items=[Item("content", "hi"), Item("tool_call", call=call())],
            diagnostics=[Diagnostic("incomplete_call", "the output ends inside a call", 2, 9)],
            spans=[Span("content", 0, 2), Span("arguments", 2, 9, call=0)],
        )
        assert parsed.model_dump(exclude_none=True) == {
            "content": "hi",
            "tool_calls": [CALL],
            "tools_called": True,
            "finish_reason": "length",
            "items": [{"type": "content", "text": "hi"}, {"type": "tool_call", "call": CALL}],
            "diagnostics": [
                {
                    "code": "incomplete_call",
                    "message": "the output ends inside a call",
                    "start": 2,
                    "end": 9,
                    "text": "",
                }
            ],
            "spans": [
                {"kind": "content", "start": 0, "end": 2},
                {"kind": "arguments", "start": 2, "end": 9, "call": 0},
            ],
        }
        assert parsed.model_dump(extensions=True)["tool_calls"] == [
            {**CALL, "status": "incomplete", "model_id": None, "repairs": [], "reason": None}
        ]

    def test_reasoning_is_reasoning_content(self) -> None:
        parsed = ParsedOutput(reasoning="a")
        assert parsed.reasoning_content == "a"
        parsed.reasoning_content = "b"
        assert parsed == ParsedOutput(reasoning="b")

    @pytest.mark.parametrize(
        ("parsed", "message"),
        [
            (ParsedOutput(), {"role": "assistant", "content": None}),
            (ParsedOutput(content=""), {"role": "assistant", "content": ""}),
            (
                ParsedOutput(reasoning="r", content="c"),
                {"role": "assistant", "content": "c", "reasoning": "r"},
            ),
            (
                ParsedOutput(content="", tool_calls=[call(status="incomplete", model_id="m")], tools_called=True),
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
            ),
            (
                ParsedOutput(content="c", tool_calls=[call()], tools_called=True),
                {"role": "assistant", "content": "c", "tool_calls": [CALL]},
            ),
        ],
    )
    def test_message(self, parsed: ParsedOutput, message: dict[str, Any]) -> None:
        assert parsed.message() == message

    @pytest.mark.parametrize(
        ("field", "named"),
        [
            ("reasoning", {"reasoning": "r"}),
            ("reasoning_content", {"reasoning_content": "r"}),
            ("both", {"reasoning": "r", "reasoning_content": "r"}),
        ],
    )
    def test_the_policy_names_the_field_of_reasoning(self, field: str, named: dict[str, str]) -> None:
        parsed = ParsedOutput(reasoning="r", content="c", reasoning_field=field)
        assert parsed.message() == {"role": "assistant", "content": "c", **named}
        assert parsed.model_dump(exclude_defaults=True) == {"content": "c", **named}
        assert parsed.message(reasoning_field="reasoning") == {"role": "assistant", "content": "c", "reasoning": "r"}

    def test_message_has_the_key_order_of_the_api(self) -> None:
        assert json.dumps(ParsedOutput(tool_calls=[call()]).message()["tool_calls"][0]) == json.dumps(CALL)


class TestKeywordsOfPydantic:
    delta = DeltaMessage(content="é", tool_calls=[DeltaToolCall(index=0, function=DeltaFunctionCall(arguments="{"))])

    def test_include_and_exclude(self) -> None:
        assert self.delta.model_dump(include={"content", "role"}) == {"role": None, "content": "é"}
        assert self.delta.model_dump(exclude={"tool_calls"}, exclude_none=True) == {"content": "é"}
        assert self.delta.model_dump(include=["content", "role"], exclude=["role"]) == {"content": "é"}

    def test_json(self) -> None:
        assert self.delta.model_dump_json(include={"content"}, indent=2) == '{\n  "content": "é"\n}'
        assert self.delta.model_dump_json(exclude={"tool_calls"}, exclude_defaults=True) == '{"content":"é"}'
        broken = DeltaMessage(content="\ud800").model_dump_json(exclude_none=True, indent=2)
        assert broken == '{\n  "content": "\\ud800"\n}'

    def test_without_effect(self) -> None:
        plain = self.delta.model_dump()
        assert self.delta.model_dump(mode="json", by_alias=True) == self.delta.model_dump(by_alias=False) == plain

    def test_misuse(self) -> None:
        with pytest.raises(ValueError, match=r"^mode: 'yaml' is not one of: 'python', 'json'$"):
            self.delta.model_dump(mode="yaml")  # type: ignore[arg-type]
        with pytest.raises(
            ValueError, match=r"^include: Item has no field 'txt'; its fields are 'type', 'text', 'call'$"
        ):
            Item("content", "a").model_dump(include={"txt"})
        with pytest.raises(TypeError, match=r"^exclude: expected a set of field names, got 'content'$"):
            self.delta.model_dump(exclude="content")


class TestRequests:
    def test_chat_defaults(self) -> None:
        assert ChatCompletionRequest().model_dump() == {
            "model": "",
            "messages": [],
            "tools": None,
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "stream": False,
            "stop": None,
            "response_format": None,
            "reasoning_effort": None,
            "include_reasoning": True,
            "skip_special_tokens": True,
            "continue_final_message": False,
            "chat_template_kwargs": None,
        }

    def test_responses_defaults(self) -> None:
        assert ResponsesRequest().model_dump() == {
            "model": "",
            "input": "",
            "instructions": None,
            "tools": None,
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "stream": False,
            "text": None,
            "reasoning": None,
            "include_reasoning": True,
            "skip_special_tokens": True,
            "chat_template_kwargs": None,
        }

    def test_only_what_was_set(self) -> None:
        request = ChatCompletionRequest(model="m", tools=[], skip_special_tokens=False)
        assert request.model_dump(exclude_unset=True) == {"model": "m", "tools": [], "skip_special_tokens": False}

    def test_null_in_the_callers_schema_stays(self) -> None:
        tools = [{"type": "function", "name": "f", "parameters": {"properties": {"x": {"default": None}}}}]
        assert ResponsesRequest(tools=tools).model_dump(exclude_none=True)["tools"] == tools

    def test_the_callers_own_objects_become_builtins(self) -> None:
        class Model:
            def model_dump(self, *, exclude_none: bool, exclude_unset: bool) -> dict[str, Any]:
                return {"role": "user", "exclude_none": exclude_none, "exclude_unset": exclude_unset}

        class Struct(msgspec.Struct):
            role: str

        @dataclass
        class Data:
            role: str

        request = ChatCompletionRequest(messages=[Model(), Struct("a"), Data("b"), DeltaMessage(role="c"), ("d", 1.5)])
        assert request.model_dump(exclude_none=True)["messages"] == [
            {"role": "user", "exclude_none": True, "exclude_unset": False},
            {"role": "a"},
            {"role": "b"},
            {"role": "c"},
            ["d", 1.5],
        ]

    def test_an_object_that_is_no_data(self) -> None:
        with pytest.raises(TypeError, match=r"^Encoding objects of type object is unsupported$"):
            ChatCompletionRequest(messages=[object()]).model_dump()

    def test_defaults_are_fresh(self) -> None:
        ChatCompletionRequest().messages.append({})
        assert ChatCompletionRequest().messages == []
