"""Rendering: whole turns of many families, every reason why a message cannot be written, and the round trip.

For every format of the catalogue, a message that is expressible must parse back unchanged. The rates of messages that
are not expressible are recorded in ``tests/data/expressible.json``: the share of a fixed set of awkward messages, per
format. A number may fall, never rise; ``UNTEMPLATE_RECORD=1`` records lower ones.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from untemplate._internal.output_parser import OutputParser
from untemplate._internal.render import REASONS, Inexpressible, expressible, render
from untemplate.format import Format, JsonBody, Marker, Tools
from untemplate.formats import entries, named
from untemplate.messages import FunctionCall, ParsedOutput, ToolCall

RATCHET = Path(__file__).parent / "data" / "expressible.json"


def call(name: str, arguments: Any, call_id: str = "") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(name: str, /, **types: Any) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in types.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


# -- Whole turns --------------------------------------------------------------------------------------------------

# Every kind of value: text, text that looks like a number, a number, a flag, an object, text with quotes and newline.
FIND = call("find", {"q": 'say "hi"\n<now>', "zip": "04109", "limit": 3, "deep": {"on": [True, None]}})
TIME = call("time", {})
BOTH = {"reasoning": "Look it up.", "content": "One moment.", "tool_calls": [FIND, TIME]}
JSON_FIND = '{"q": "say \\"hi\\"\\n<now>", "zip": "04109", "limit": 3, "deep": {"on": [true, null]}}'
TOOLS = [tool("find", q="string", zip="string", limit="integer", deep="object"), tool("time")]

TURNS = {
    ("hermes", "qwen3"): (
        "<think>\nLook it up.\n</think>\n\nOne moment.\n"
        f'<tool_call>\n{{"name": "find", "arguments": {JSON_FIND}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'
    ),
    ("qwen3_coder", "qwen3"): (
        "<think>\nLook it up.\n</think>\n\nOne moment.\n"
        "<tool_call>\n<function=find>\n"
        '<parameter=q>\nsay "hi"\n<now>\n</parameter>\n<parameter=zip>\n04109\n</parameter>\n'
        '<parameter=limit>\n3\n</parameter>\n<parameter=deep>\n{"on": [true, null]}\n</parameter>\n'
        "</function>\n</tool_call>\n"
        "<tool_call>\n<function=time>\n</function>\n</tool_call>"
    ),
    ("deepseek_v3", "deepseek_r1"): (
        "<think>\nLook it up.\n</think>\n\nOne moment."
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n"
        f"```json\n{JSON_FIND}\n```<｜tool▁call▁end｜>\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    ("deepseek_v31", None): (
        "<think>Look it up.</think>One moment."
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{JSON_FIND}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    ("deepseek_v32", None): (
        "<think>Look it up.</think>One moment.\n\n"
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="find">\n'
        '<｜DSML｜parameter name="q" string="true">say "hi"\n<now></｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="zip" string="true">04109</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="limit" string="false">3</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="deep" string="false">{"on": [true, null]}</｜DSML｜parameter>\n'
        '</｜DSML｜invoke>\n<｜DSML｜invoke name="time">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>'
    ),
    ("mistral", None): (
        f"[THINK]Look it up.[/THINK]One moment.[TOOL_CALLS]find[ARGS]{JSON_FIND}[TOOL_CALLS]time[ARGS]{{}}"
    ),
    ("mistral_v3", None): (
        f'One moment.[TOOL_CALLS][{{"name": "find", "arguments": {JSON_FIND}}}, {{"name": "time", "arguments": {{}}}}]'
    ),
    ("kimi_k2", None): (
        "<think>Look it up.</think>One moment.<|tool_calls_section_begin|>"
        f"<|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{JSON_FIND}<|tool_call_end|>"
        "<|tool_call_begin|>functions.time:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>"
    ),
    ("glm45", None): (
        "\n<think>Look it up.</think>\nOne moment.\n<tool_call>find\n"
        '<arg_key>q</arg_key>\n<arg_value>say "hi"\n<now></arg_value>\n'
        "<arg_key>zip</arg_key>\n<arg_value>04109</arg_value>\n"
        "<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n"
        '<arg_key>deep</arg_key>\n<arg_value>{"on": [true, null]}</arg_value>\n'
        "</tool_call>\n<tool_call>time\n</tool_call>"
    ),
    ("minimax_m2", None): (
        "<think>\nLook it up.\n</think>\n\nOne moment.\n<minimax:tool_call>\n"
        '<invoke name="find">\n<parameter name="q">say "hi"\n<now></parameter>\n'
        '<parameter name="zip">04109</parameter>\n<parameter name="limit">3</parameter>\n'
        '<parameter name="deep">{"on": [true, null]}</parameter>\n</invoke>\n'
        '<invoke name="time">\n</invoke>\n</minimax:tool_call>'
    ),
    ("granite", None): (
        "Here is my thought process:\n\nLook it up.\n\nHere is my response:\n\nOne moment.<|tool_call|>"
        f'[{{"name": "find", "arguments": {JSON_FIND}}}, {{"name": "time", "arguments": {{}}}}]'
    ),
    ("cohere_command3", None): (
        "<|START_THINKING|>Look it up.<|END_THINKING|><|START_RESPONSE|>One moment.<|END_RESPONSE|>"
        f'<|START_ACTION|>[\n    {{"tool_call_id": "0", "tool_name": "find", "parameters": {JSON_FIND}}},\n'
        '    {"tool_call_id": "1", "tool_name": "time", "parameters": {}}\n]<|END_ACTION|>'
    ),
    ("functionary_v3.1", None): f"One moment.<function=find>{JSON_FIND}</function><function=time>{{}}</function>",
    ("functionary_v3.2", None): f"all\nOne moment.>>>find\n{JSON_FIND}>>>time\n{{}}",
    ("gpt-oss", None): (
        "<|channel|>analysis<|message|>Look it up.<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.find <|constrain|>json"
        f"<|message|>{JSON_FIND}<|call|>"
        "<|start|>assistant<|channel|>commentary to=functions.time <|constrain|>json<|message|>{}"
    ),
    ("gemma4", None): (
        "<|channel>thought\nLook it up.\n<channel|>One moment."
        '<|tool_call>call:find{q:<|"|>say "hi"\n<now><|"|>,zip:<|"|>04109<|"|>,limit:3,deep:{on:[true,null]}}'
        "<tool_call|><|tool_call>call:time{}<tool_call|>"
    ),
    ("apertus", None): (
        "<|inner_prefix|>Look it up.<|inner_suffix|>One moment."
        f'<|tools_prefix|>[{{"find": {JSON_FIND}}}, {{"time": {{}}}}]<|tools_suffix|>'
    ),
    ("kimi_k3", None): (
        "<|open|>think<|sep|>Look it up.<|close|>think<|sep|>"
        "<|open|>response<|sep|>One moment.<|close|>response<|sep|><|open|>tools<|sep|>"
        '<|open|>call tool="find" index="1"<|sep|>'
        '<|open|>argument key="q" type="string"<|sep|>say "hi"\n<now><|close|>argument<|sep|>'
        '<|open|>argument key="zip" type="string"<|sep|>04109<|close|>argument<|sep|>'
        '<|open|>argument key="limit" type="number"<|sep|>3<|close|>argument<|sep|>'
        '<|open|>argument key="deep" type="object"<|sep|>{"on": [true, null]}<|close|>argument<|sep|>'
        '<|close|>call<|sep|><|open|>call tool="time" index="2"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    ),
    # Bare calls cannot follow content.
    ("llama3_json", "bare"): f'{{"name": "find", "parameters": {JSON_FIND}}}; {{"name": "time", "parameters": {{}}}}',
    ("xlam", "bare"): f'[{{"name": "find", "arguments": {JSON_FIND}}}, {{"name": "time", "arguments": {{}}}}]',
    ("pythonic", "bare"): ("[find(q='say \"hi\"\\n<now>', zip='04109', limit=3, deep={'on': [True, None]}), time()]"),
}


@pytest.mark.parametrize(("name", "reasoning"), TURNS, ids=[name for name, _ in TURNS])
def test_whole_turns(name: str, reasoning: str | None):
    bare = reasoning == "bare"
    fmt = named(name, reasoning=None if bare else reasoning)
    message = {"tool_calls": BOTH["tool_calls"]} if bare else dict(BOTH)
    if fmt.reasoning is None and (fmt.channels is None or not fmt.channels.reasoning):
        message.pop("reasoning", None)
    text = TURNS[name, reasoning]
    assert render(fmt, message) == text
    assert expressible(fmt, message, TOOLS) is None
    assert said(OutputParser.from_format(fmt).parse(text, tools=TOOLS)) == said(message)


@pytest.mark.parametrize(
    ("name", "message", "text"),
    [
        ("hermes", {"content": "Hello."}, "Hello."),
        ("hermes", {"tool_calls": [TIME]}, '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'),
        ("passthrough", {"content": " as it comes\n"}, " as it comes\n"),
        ("gpt-oss", {"content": "Hello."}, "<|channel|>final<|message|>Hello."),
        ("functionary_v3.2", {"content": "Hello."}, "all\nHello."),
        ("granite33", {"content": "Hello."}, "Hello."),
        ("granite33", {"reasoning": "Hm.", "content": "Hi."}, "<think>Hm.</think><response>Hi.</response>"),
        ("glm45", {"reasoning": "Hm.", "content": ""}, "\n<think>Hm.</think>\n"),
        ("hermes", {}, ""),
    ],
)  # fmt: skip
def test_parts_that_are_missing(name: str, message: dict[str, Any], text: str):
    assert render(named(name), message) == text


# -- Types of messages --------------------------------------------------------------------------------------------


@dataclass
class Function:
    name: str
    arguments: str


@dataclass
class Called:
    function: Function
    id: str | None = None


@dataclass
class Said:
    content: str | None
    reasoning_content: str | None = None
    tool_calls: list[Called] = field(default_factory=list)


def test_messages_of_any_type():
    arguments = '{"q":1}'
    objects = [
        {"reasoning": "Hm.", "content": "Hi.", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]},
        {"reasoning_content": "Hm.", "content": [{"type": "text", "text": "Hi."}],
         "tool_calls": [{"name": "f", "arguments": {"q": 1}}]},
        Said("Hi.", "Hm.", [Called(Function("f", arguments))]),
        ParsedOutput(reasoning="Hm.", content="Hi.", tool_calls=[
            ToolCall(id="x", function=FunctionCall(name="f", arguments=arguments))]),
        SimpleNamespace(reasoning=None, reasoning_content="Hm.", content="Hi.", tool_calls=(
            SimpleNamespace(function=SimpleNamespace(name="f", arguments={"q": 1})),)),
    ]  # fmt: skip
    fmt = named("deepseek_v31")
    texts = {render(fmt, message).replace(": 1", ":1") for message in objects}
    assert texts == {
        "<think>Hm.</think>Hi.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
        '{"q":1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    }


def test_json_passes_through_as_given():
    text = '{"b":1.50,  "a":"\\u00e9"}'
    assert f'"arguments": {text}}}' in render(named("hermes"), {"tool_calls": [call("f", text)]})
    # No arguments, in every form that clients send.
    for empty in ("", None, {}, "{}"):
        assert '"arguments": {}}' in render(named("hermes"), {"tool_calls": [call("f", empty)]})


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"content": 3}, "content: expected text, got int"),
        ({"tool_calls": [{"function": {}}]}, "tool_calls[0].function.name: expected text, got NoneType"),
        (
            {"tool_calls": [call("f", [1])]},
            "tool_calls[0].function.arguments: expected JSON text or a mapping, got list",
        ),
    ],
)
def test_values_that_are_not_messages(message: dict[str, Any], error: str):
    with pytest.raises(TypeError) as caught:
        render(named("hermes"), message)
    assert str(caught.value) == error


def test_a_part_without_a_place_is_an_error():
    with pytest.raises(ValueError, match="no_reasoning: hermes has no place for reasoning"):
        render(named("hermes"), {"reasoning": "Hm."})
    with pytest.raises(ValueError, match="no_calls: passthrough has no calls"):
        render(named("passthrough"), {"tool_calls": [TIME]})
    with pytest.raises(ValueError, match="is not an object"):
        render(named("hermes"), {"tool_calls": [call("f", "[1]")]})


# -- The prompt, ids and numbers ----------------------------------------------------------------------------------


def test_reasoning_that_the_prompt_opened():
    fmt = named("deepseek_v3", reasoning="deepseek_r1")
    message = {"reasoning": "Hm.", "content": "Hi."}
    assert render(fmt, message) == "<think>\nHm.\n</think>\n\nHi."
    assert render(fmt, message, prompt_opened=True) == "Hm.\n</think>\n\nHi."
    # This model always reasons: an answer without reasoning closes an empty block, unless the prompt has closed it.
    assert render(fmt, {"content": "Hi."}) == "<think>\n\n</think>\n\nHi."
    assert render(fmt, {"content": "Hi."}, prompt_opened=True) == "\n</think>\n\nHi."
    assert render(fmt, {"content": "Hi."}, prompt_opened=False) == "Hi."


def test_indices_continue_from_the_history():
    fmt = named("kimi_k2")
    message = {"tool_calls": [call("f", {}, "call_abc"), call("g", {})]}
    text = render(fmt, message, start_index=4)
    assert "functions.f:4<" in text
    assert "functions.g:5<" in text
    # An id that follows the format's pattern is written back unchanged.
    assert "functions.f:9<" in render(fmt, {"tool_calls": [call("f", {}, "functions.f:9")]})
    # K3 numbers the calls of each turn from 1.
    assert 'index="1"' in render(named("kimi_k3"), {"tool_calls": [TIME]}, start_index=4)
    assert '"tool_call_id": "7"' in render(named("cohere_command3"), {"tool_calls": [TIME]}, start_index=7)


def test_ids_are_written_if_the_format_has_a_place_for_them():
    message = {"tool_calls": [call("f", {}, "abcdef123")]}
    assert render(named("mistral"), message) == "[TOOL_CALLS]f[CALL_ID]abcdef123[ARGS]{}"
    assert render(named("mistral_v3"), message) == '[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "abcdef123"}]'
    assert "abcdef123" not in render(named("hermes"), message)


def test_json_bodies_of_other_shapes():
    body = JsonBody(nested_key="function", constants=(("type", "function"),), id_key="id")
    fmt = Format(name="x", tools=(Tools(call_open=Marker("<c>"), call_close=Marker("</c>"), body=body),))
    message = {"tool_calls": [call("f", {"a": 1}, "i")]}
    text = '<c>{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}, "id": "i"}</c>'
    assert render(fmt, message) == text
    assert said(OutputParser.from_format(fmt).parse(text)) == said(message)


# -- Reasons ------------------------------------------------------------------------------------------------------

ONE_CALL = Format(name="one", tools=(Tools(body=JsonBody()),))

CANNOT = [
    ("no_reasoning", "hermes", {"reasoning": "Hm."}, None),
    ("no_calls", "passthrough", {"tool_calls": [TIME]}, None),
    ("no_calls", "hermes", {"tool_calls": [TIME]}, []),
    ("unknown_tool", "llama3_json", {"tool_calls": [TIME]}, [tool("find")]),
    ("parallel_calls", ONE_CALL, {"tool_calls": [TIME, TIME]}, None),
    ("content_with_calls", "pythonic", {"content": "Hi.", "tool_calls": [TIME]}, None),
    ("outer_white_space", "qwen3", {"reasoning": "Hm.\n"}, None),
    ("outer_white_space", "hermes", {"content": "Hi. ", "tool_calls": [TIME]}, None),
    ("outer_white_space", "hermes", {"content": " Hi."}, None),
    ("marker_in_reasoning", "qwen3", {"reasoning": "It ends with </think>, see?"}, None),
    ("marker_in_reasoning", "gpt-oss", {"reasoning": "<|end|> it"}, None),
    ("marker_in_content", "hermes", {"content": 'Say <tool_call>{"name": "f"}'}, None),
    ("marker_in_content", "deepseek_r1", {"content": "a </think> b"}, None),
    ("marker_in_content", "hermes", {"content": "It ends in <|im_end|>"}, None),
    ("marker_in_content", "functionary_v3.2", {"content": "a >>>b\n"}, None),
    # The output ends after an opener, which is dropped as the beginning of a call.
    ("marker_in_content", "functionary_v3.2", {"content": "a >>>"}, None),
    ("marker_in_content", "hermes", {"content": "a <tool_call>"}, None),
    ("marker_in_content", "glm45", {"content": "a <tool_call>f"}, None),
    ("marker_in_reasoning", "ernie45", {"reasoning": "<response>a"}, None),
    ("looks_like_a_call", "llama3_json", {"content": '{"name": "find", "parameters": {}}'}, None),
    ("looks_like_a_call", "pythonic", {"content": "[find(q=1)]"}, None),
    ("name_characters", "qwen3_coder", {"tool_calls": [call("a>b", {})]}, None),
    ("name_characters", "kimi_k2", {"tool_calls": [call("a:b", {})]}, None),
    ("name_characters", "minimax_m2", {"tool_calls": [call("\\", {})]}, None),
    ("unknown_tool", "glm45", {"tool_calls": [call("g", {})]}, [tool("f")]),
    ("name_characters", "functionary_v3.2", {"tool_calls": [call("all", {})]}, None),
    ("name_characters", "hermes", {"tool_calls": [call("", {})]}, None),
    ("id_characters", "mistral", {"tool_calls": [call("f", {}, "[ARGS]")]}, None),
    ("not_an_object", "hermes", {"tool_calls": [call("f", "[1]")]}, None),
    ("not_an_object", "hermes", {"tool_calls": [call("f", '{"a":')]}, None),
    ("not_an_object", "hermes", {"tool_calls": [call("f", '{"a": NaN}')]}, None),
    ("key_characters", "qwen3_coder", {"tool_calls": [call("f", {"a>": "x"})]}, None),
    ("key_characters", "pythonic", {"tool_calls": [call("f", {"a b": 1})]}, None),
    ("key_characters", "gemma4", {"tool_calls": [call("f", {"a": {"b:c": 1}})]}, None),
    ("marker_in_value", "minimax_m2", {"tool_calls": [call("f", {"a": "</parameter>\n</invoke>"})]}, None),
    ("marker_in_value", "minimax_m2", {"tool_calls": [call("f", {"a": "</parameter>"})]}, None),
    ("marker_in_value", "minimax_m2", {"tool_calls": [call("f", {"a": 'x\n<parameter name="b">y'})]}, None),
    ("marker_in_value", "gemma4", {"tool_calls": [call("f", {"a": 'a <|"|> b'})]}, None),
    ("value_newlines", "qwen3_coder", {"tool_calls": [call("f", {"a": "x\r"})]}, None),
    ("value_type", "qwen3_coder", {"tool_calls": [call("f", {"a": 1})]}, None),
    ("value_type", "qwen3_coder", {"tool_calls": [call("f", {"a": "1"})]}, [tool("f", a="integer")]),
    ("value_type", "pythonic", {"tool_calls": [call("f", {"a": 1})]}, [tool("f", a="string")]),
]


@pytest.mark.parametrize(("reason", "fmt", "message", "tools"), CANNOT)
def test_every_reason(reason: str, fmt: str | Format, message: dict[str, Any], tools: Any):
    assert expressible(named(fmt) if isinstance(fmt, str) else fmt, message, tools) == reason


def test_the_list_is_closed_and_explained():
    assert set(Inexpressible) == set(REASONS)
    assert {reason for reason, *_ in CANNOT} == set(Inexpressible) - {
        "uncertified"
    }  # a parser's reason, not a Format's
    assert Inexpressible.NO_CALLS.sentence == "the format has no calls, or no tools are offered"


CAN = [
    # Prose that names a marker, or shows half of a call.
    ("hermes", {"content": "Calls go in <tool_call> tags: <tool_call>."}, None),
    ("qwen3", {"content": "Reason in <think> first."}, None),
    ("hermes", {"content": 'Say <tool_call>{"name": "f"}'}, []),
    ("hermes", {"content": "It ends in <|im_end|>, always."}, None),
    ("functionary_v3.2", {"content": ">>> print(1)\n1"}, None),
    ("llama3_json", {"content": '{"answer": 42}'}, None),
    ("pythonic", {"content": "[see](https://example.org)"}, None),
    # JSON can hold any text.
    ("hermes", {"tool_calls": [call("a b", {"</tool_call>": "\n</tool_call>"})]}, None),
    # A close tag without a text after it that can follow one.
    ("minimax_m2", {"tool_calls": [call("f", {"a": "x</parameter> y", "b": "</param"})]}, None),
    ("qwen3_coder", {"tool_calls": [call("f", {"a": "\n\nx\n", "b": ""})]}, None),
    ("deepseek_v32", {"tool_calls": [call("f", {"a": 1, "b": "1", "c": None})]}, None),
    ("qwen3_coder", {"tool_calls": [call("f", {"a": 1, "b": None})]}, [tool("f", a="integer", b=["string", "null"])]),
]


@pytest.mark.parametrize(("name", "message", "tools"), CAN)
def test_expressible_messages(name: str, message: dict[str, Any], tools: Any):
    fmt = named(name)
    assert expressible(fmt, message, tools) is None
    assert said(OutputParser.from_format(fmt).parse(render(fmt, message), tools=tools)) == said(message)


def test_the_parser_offers_both():
    parser = OutputParser.named("hermes")
    assert parser.render({"content": "Hi."}) == "Hi."
    assert parser.expressible({"reasoning": "Hm."}) == "no_reasoning"


# -- The law ------------------------------------------------------------------------------------------------------


def said(message: Any) -> dict[str, Any]:
    """Return the parts of a message to compare: exact texts, arguments as JSON values, no ids."""
    plain = message.message() if isinstance(message, ParsedOutput) else message
    return {
        "reasoning": plain.get("reasoning") or "",
        "content": plain.get("content") or "",
        "calls": [
            (c["function"]["name"], json.dumps(_value(c["function"]["arguments"]), sort_keys=True))
            for c in plain.get("tool_calls") or ()
        ],
    }


def _value(arguments: Any) -> Any:
    return json.loads(arguments or "{}") if isinstance(arguments, str) else arguments


@cache
def catalogue() -> dict[str, Format]:
    """Return every format of the catalogue: each entry alone, both kinds of a name merged, and a few pairs.

    Of formats that differ only in their name, one is kept.
    """
    found: dict[str, Format] = {}
    for entry in entries():
        found[f"{entry.kind} {entry.name}"] = entry.format
        found[entry.name] = named(entry.name)
    for reasoning, tools in (("qwen3", "hermes"), ("deepseek_r1", "llama3_json"), ("granite33", "granite")):
        found[f"{reasoning}+{tools}"] = named(tools, reasoning=reasoning)
    first: dict[str, str] = {}
    for name, fmt in found.items():
        first.setdefault(fmt.extend(name="x").to_json(), name)
    return {name: found[name] for name in first.values()}


def _markers(part: Any) -> list[str]:
    if isinstance(part, Marker):
        return [part.text, *part.spellings]
    if isinstance(part, tuple):
        return [text for item in part for text in _markers(item)]
    if is_dataclass(part):
        return [text for f in fields(part) if f.name != "unknown" for text in _markers(getattr(part, f.name))]
    return []


@cache
def _words(fmt: Format) -> tuple[str, ...]:
    """Return a format's own markers, without the headers of other families."""
    others = set() if fmt.turn.start is None else set(fmt.turn.start.accepted)
    return tuple(dict.fromkeys(text for text in _markers(fmt) if text not in others))


PROSE = (
    "Hi", "3 < 5", " ", "\n", "\n\n", "\t", "\r\n", "\r", "{", "}", "[", "]", "(", ")", "a=1", '"', "'", "\\", "</",
    "<", ">", "`", "```json\n", ",", ";", ":", "=", "null", "7", "true", "f", "call:", "name", "&amp;", "&", "é", "😀",
    "e\u0301",
    "\u00a0", "\ud800", "\x00", '{"name": "f", "arguments": {}}', '{"name": "f", "parameters": {"a": 1}}', "f(a=1)",
    "[f(a=1)]", "def f(x):\n    return x",
)  # fmt: skip
KEYS = ("a", "b", "city", "k1", "x_y", "call", "from", "type", "a-b", "a b", "é", "", "1", 'a"b')
NAMES = ("f", "get_weather", "a.b", "g-h", "ns.fn_1", "all", "a b", "a:1", "1f", "é", "functions.f", "to=x")
VALUES = (0, 1, -5, 7, 10**20, 3.5, 1e30, -0.0, 1.0, 1e-7, True, False, None)


class Messages:
    """Generator of awkward messages: whole and cut markers among prose that looks like code."""

    def __init__(self, random: Random, words: tuple[str, ...]) -> None:
        self._random = random
        self._words = words

    def message(self) -> dict[str, Any]:
        random = self._random
        message: dict[str, Any] = {}
        if random.random() < 0.5:
            message["reasoning"] = self._text(6)
        if random.random() < 0.6:
            message["content"] = self._text(6)
        if random.random() < 0.6:
            message["tool_calls"] = [self._call() for _ in range(random.choice((1, 1, 1, 2, 2, 3)))]
        return message

    def tools(self, message: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return tools: mostly some that fit the message, else unknown ones or none."""
        chance = self._random.random()
        if chance < 0.3:
            return None
        if chance < 0.35:
            return []
        offered: dict[str, dict[str, Any]] = {"f": {}, "get_weather": {}}
        for c in message.get("tool_calls", ()):
            if c["function"]["name"] and self._random.random() < 0.95:
                types = offered.setdefault(c["function"]["name"], {})
                for key, value in _value(c["function"]["arguments"]).items():
                    if self._random.random() < 0.8:
                        types[key] = self._type(value)
        return [tool(name, **types) for name, types in offered.items()]

    def _type(self, value: Any) -> Any:
        if self._random.random() < 0.2:
            return self._random.choice(("string", ["string", "null"], "integer", ["integer", "string"], "object"))
        kinds = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array"))
        return "null" if value is None else next((word for kind, word in kinds if isinstance(value, kind)), "object")

    def _text(self, most: int) -> str:
        return "".join(self._piece() for _ in range(self._random.randint(0, most)))

    def _piece(self) -> str:
        random = self._random
        if not self._words or random.random() < 0.7:
            return random.choice(PROSE)
        word = random.choice(self._words)
        chance = random.random()
        if chance < 0.7:
            return word
        cut = random.randint(0, len(word))
        return word[:cut] if chance < 0.85 else word[cut:]

    def _call(self) -> dict[str, Any]:
        random = self._random
        arguments: Any = {self._key(): self._value(0) for _ in range(random.randint(0, 3))}
        if random.random() < 0.5:
            arguments = json.dumps(arguments, ensure_ascii=random.random() < 0.5)
        name = self._text(2) if random.random() < 0.03 else random.choice(NAMES[: 5 if random.random() < 0.9 else None])
        return call(name, arguments, random.choice(("", "call_1", "functions.f:7", "3")))

    def _key(self) -> str:
        chance = self._random.random()
        return self._text(2) if chance < 0.04 else self._random.choice(KEYS[: 5 if chance < 0.9 else None])

    def _value(self, depth: int) -> Any:
        random = self._random
        chance = random.random()
        if chance < 0.6 or depth > 2:
            return self._text(4)
        if chance < 0.8:
            return random.choice(VALUES)
        if chance < 0.9:
            return [self._value(depth + 1) for _ in range(random.randint(0, 3))]
        return {self._key(): self._value(depth + 1) for _ in range(random.randint(0, 3))}


def holds(name: str, random: Random) -> None:
    """Check the law for one message: if it is expressible, it parses back, without and after a generation prompt."""
    fmt = catalogue()[name]
    source = Messages(random, _words(fmt))
    message = source.message()
    tools = source.tools(message)
    if expressible(fmt, message, tools) is not None:
        return
    parser = OutputParser.from_format(fmt)
    raw = render(fmt, message)
    assert said(parser.parse(raw, tools=tools)) == said(message), f"rendered {raw!r}, tools {tools}"
    if fmt.turn.start is None:
        return
    prompt = "Hi" + fmt.turn.start.text
    if fmt.channels is not None and fmt.channels.recipient is None:
        prompt += fmt.channels.open.text
    opened = fmt.reasoning is not None and fmt.reasoning.open is not None and random.random() < 0.5
    if opened:
        prompt += fmt.reasoning.open.text
    raw = render(fmt, message, prompt_opened=opened or None)
    assert said(parser.parse(raw, tools=tools, prompt=prompt)) == said(message), f"prompt {prompt!r}, rendered {raw!r}"


def test_calls_of_one_message_where_its_header_names_no_tool():
    call = "<|tool_call:begin|>c{0}<|tool_call:name|>f<|tool_call:args|>{{}}<|tool_call:end|>"
    calls = [{"id": f"c{i}", "function": {"name": "f", "arguments": {}}} for i in (1, 2)]
    raw = "<|content|>Hi<|end|><|begin|>assistant<|tool_calls|>" + call.format(1) + call.format(2)
    assert render(named("solar_open"), {"content": "Hi", "tool_calls": calls}) == raw
    parsed = OutputParser.named("solar_open").parse(raw)
    assert [(c.id, c.function.name) for c in parsed.tool_calls] == [("c1", "f"), ("c2", "f")]


@pytest.mark.parametrize("seeds", [25, pytest.param(20_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", catalogue())
def test_expressible_messages_parse_back(name: str, seeds: int):
    """Messages of a plain random source, which makes four in the time of one of a strategy that can shrink it."""
    failed = []
    for seed in range(seeds):
        try:
            holds(name, Random(seed))
        except AssertionError as error:
            failed.append(f"seed {seed}: {error}")
    assert min(failed, key=len, default="") == ""


# -- Recorded rates -----------------------------------------------------------------------------------------------

SAMPLES = 200
COMMON = (
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_call>\n", "\n</tool_call>", "</parameter>\n",
    "</function>", "[TOOL_CALLS]", "<|im_end|>", "<|end|>", "<|start|>", "</s>", "functools[", ">>>",
    "<function=", '<invoke name="',
)  # fmt: skip
"""Markers of many families, so that the samples do not change when a format accepts another spelling."""


@cache
def samples() -> tuple[tuple[dict[str, Any], Any], ...]:
    drawn = []
    for seed in range(SAMPLES):
        source = Messages(Random(seed), COMMON)
        message = source.message()
        drawn.append((message, source.tools(message)))
    return tuple(drawn)


def test_the_rate_of_inexpressible_messages_does_not_rise(capsys: pytest.CaptureFixture[str]):
    """Rates per format, over 200 messages. Messages with a part that the format lacks do not count."""
    absent = {Inexpressible.NO_REASONING, Inexpressible.NO_CALLS}
    counts: dict[str, int] = {}
    reasons: Counter[str] = Counter()
    for name, fmt in catalogue().items():
        found = [expressible(fmt, message, tools) for message, tools in samples()]
        counts[name] = sum(reason is not None and reason not in absent for reason in found)
        reasons.update(reason for reason in found if reason is not None)
    recorded: dict[str, int] = json.loads(RATCHET.read_text()) if RATCHET.exists() else {}
    if os.environ.get("UNTEMPLATE_RECORD"):
        RATCHET.write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n")
    with capsys.disabled():
        row = [f"{name} {count * 100 // SAMPLES}%" for name, count in sorted(counts.items(), key=lambda pair: -pair[1])]
        print("\nnot expressible, per format:", ", ".join(row))
        print("why:", ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()))
    risen = {name: (recorded[name], count) for name, count in counts.items() if count > recorded.get(name, SAMPLES)}
    assert not risen, "more messages cannot be said than before (name: before, now); if that is right, record it"
