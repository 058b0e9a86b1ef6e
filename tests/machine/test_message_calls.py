"""Calls that are the text of a message: the header names the tool, and the text may name it again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from untemplate import OutputParser, Policy
from untemplate.format import Channels, Format, FormatError, Marker, Tools
from untemplate.formats import named
from untemplate.testing import check

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("search", "ping")]
SEARCH = """<atem:function_calls>
<atem:invoke name="search">
<atem:parameter name="q">a < b</atem:parameter>
</atem:invoke>
</atem:function_calls>"""
MUSE = [
    (f" to=search<|message|>{SEARCH}<|eom|>", [("search", {"q": "a < b"})]),
    (f"<|message|>{SEARCH}<|eom|>", [("search", {"q": "a < b"})]),
    (f" to=muse<|message|>{SEARCH}<|eom|>", [("search", {"q": "a < b"})]),
    (f" to=search<|message|>{SEARCH}", [("search", {"q": "a < b"})]),
    (' to=search<|message|>{"q": "x"}<|eom|>', [("search", {"q": "x"})]),
]
CALL = '{"name": "search", "args": {"q": "x"}}'


@pytest.mark.parametrize(("raw", "calls"), MUSE)
def test_tagged_calls(raw: str, calls: list[tuple[str, dict[str, str]]]) -> None:
    check("muse", raw, {"tool_calls": calls, "finish_reason": "tool_calls"}, tools=TOOLS)


def test_a_turn_of_messages() -> None:
    raw = (
        f" to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>Wait.<|eom|>"
        f"<|start|>assistant to=search<|message|>{SEARCH}<|eom|><|start|>assistant to=ping<|message|>"
        f'<atem:function_calls>\n<atem:invoke name="ping">\n</atem:invoke>\n</atem:function_calls><|eot|>'
    )
    expected = {
        "reasoning": "hm",
        "content": "Wait.",
        "tool_calls": [("search", {"q": "a < b"}), ("ping", {})],
        "finish_reason": "tool_calls",
    }
    check("muse", raw, expected, tools=TOOLS)


def test_markup_in_a_message_to_the_user_is_text() -> None:
    check("muse", f" to=user<|message|>{SEARCH}<|eot|>", {"content": SEARCH}, tools=TOOLS)


@pytest.mark.parametrize("name", ["", "search"])
def test_json_calls(name: str) -> None:
    raw = (
        f"<|content_thinking|>hm<|end_message|><|message_model|>{name}<|content_invoke_tool_json|>{CALL}<|end_message|>"
        "<|message_model|><|content_text|>Done.<|end_message|><|content_model_end_sampling|>"
    )
    expected = {
        "reasoning": "hm",
        "content": "Done.",
        "tool_calls": [("search", {"q": "x"})],
        "finish_reason": "tool_calls",
    }
    check("inkling", raw, expected, tools=TOOLS)


def test_the_body_names_an_unknown_tool() -> None:
    raw = '<|content_invoke_tool_json|>{"name": "other", "args": {}}<|end_message|>'
    expected = {"tool_calls": [("other", {}, "unknown_tool")], "finish_reason": "tool_calls"}
    check("inkling", raw, expected, tools=TOOLS)


def test_a_body_of_calls_needs_tools() -> None:
    channels = Channels(open=Marker("<m>"), body=Marker("<t>"), call_body=Marker("<c>"))
    with pytest.raises(FormatError) as error:
        Format(name="x", channels=channels)
    assert str(error.value) == "tools: is empty: a message after channels.call_body holds a whole call"
    assert Format(name="x", channels=channels, tools=(Tools(),)).tools == (Tools(),)


def test_a_header_without_a_name_needs_a_body_of_calls() -> None:
    with pytest.raises(FormatError) as error:
        Format(name="x", channels=Channels(open=Marker("<m>"), body=Marker("<t>"), content=("a",), call_name=False))
    expected = "channels.call_name: is false, but nothing else marks calls: channels.call_body is missing"
    assert str(error.value) == expected


@pytest.mark.parametrize("call_id", ["a1", ""])
def test_solar_open_writes_the_name_and_the_id_in_the_call_only(call_id: str) -> None:
    function = {"name": "search", "arguments": '{"q": "x"}'}
    parser = OutputParser.named("solar_open")
    text = parser.render(
        {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
    )
    assert text == (
        f"<|tool_calls|><|tool_call:begin|>{call_id or '0'}<|tool_call:name|>search<|tool_call:args|>"
        '{"q": "x"}<|tool_call:end|>'
    )


@pytest.mark.parametrize("word", ['">', "a<b", "f(x) > 1"])
@pytest.mark.parametrize("head", ["<|start|>{} to=user", "<|start|>assistant to=user {}"])
def test_other_words_of_a_header_are_no_part_of_the_message(head: str, word: str) -> None:
    raw = f"{head.format(word)}<|message|>Hi"
    check("muse", raw, {"content": "Hi"}, tools=TOOLS)
    check("muse", f"{head.format(word)}\n<|message|>Hi", {"content": "Hi"}, tools=TOOLS)
    text = f"{head.format(word)}\nand <|message|>Hi"
    assert OutputParser.named("muse").parse(text).content == text


def test_a_header_after_a_stray_close_may_begin_with_its_recipient() -> None:
    check("gpt-oss", "x<|call|> to=user<|message|>Hi", {"content": "x\nHi"})


def test_a_header_in_a_sentence_is_text_unless_an_object_follows() -> None:
    header = "<|channel|>commentary to=functions.search <|constrain|>json<|message|>"
    text = f"A header like {header} is produced token by token."
    check("gpt-oss", text, {"content": text}, tools=TOOLS, roundtrip=False)
    called = {"content": "Now:", "tool_calls": [("search", {"q": "x"}, "ok")]}
    check("gpt-oss", f'Now: {header}{{"q": "x"}}', called, tools=TOOLS)
    cut = {"content": "Now:", "tool_calls": [("search", "print(1)", "incomplete")]}
    check("gpt-oss", f"Now:\n{header}print(1)", cut, tools=TOOLS, roundtrip=False)


@pytest.mark.parametrize("join", ["\n", "", " | "])
def test_messages_of_one_kind_are_joined_as_the_format_says(join: str) -> None:
    fmt = named("gpt-oss")
    assert fmt.channels is not None
    fmt = fmt.extend(channels=replace(fmt.channels, join=join))
    raw = (
        "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>analysis<|message|>Two.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Three."
    )
    check(fmt, raw, {"reasoning": f"One.{join}Two.", "content": "Three."}, roundtrip=False)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [('{"args": {"q": "x"}}', {"q": "x"}), ('{"q": "x"}', {"q": "x"}), ("{}", {}), ('{"args": "x"}', None)],
)
def test_json_that_leaves_the_name_to_the_header(text: str, arguments: dict[str, str] | None) -> None:
    raw = f"<|message_model|>search<|content_invoke_tool_json|>{text}<|end_message|>"
    status = "ok" if arguments is not None else "invalid_json"
    expected = {"tool_calls": [("search", "x" if arguments is None else arguments, status)]}
    check("inkling", raw, expected, tools=TOOLS, exhaustive=True, roundtrip=False)
    check("inkling", raw, expected, exhaustive=True, roundtrip=False)
    nameless = raw.replace("search", "")
    assert OutputParser.named("inkling").parse(nameless).tool_calls == []


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("inkling", f"<|message_model|>search<|content_invoke_tool_json|>{CALL}<|end_message|>"),
        ("muse", f"<|start|>assistant to=search<|message|>{SEARCH}<|eom|>"),
    ],
)
def test_a_message_in_inline_code_is_a_quotation(name: str, call: str) -> None:
    start = " to=user<|message|>" if name == "muse" else "<|content_text|>"
    expected = {"content": f"Write `{call}` to search."}
    check(name, f"{start}Write `{call}` to search.", expected, tools=TOOLS, exhaustive=True, roundtrip=False)
    assert len(OutputParser.named(name).parse(f"{start}I write `{call}").tool_calls) == 1


def test_a_section_that_became_text_says_nothing_about_the_next_message():
    parser = OutputParser.named("glimmer")
    tools = [{"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {}}}}]
    call = '<atem:function_calls>\n<atem:invoke name="{0}">\n</atem:invoke>\n</atem:function_calls>'
    unknown, known = (f" to={name}<|message|>{call.format(name)}" for name in ("put", "get"))
    parsed = parser.parse(
        unknown + "<|eom|><|start|>assistant" + known, tools=tools, policy=Policy(unknown_tools="content")
    )
    assert [tool_call.function.name for tool_call in parsed.tool_calls] == ["get"]
    assert parsed.content == unknown
    assert parsed.diagnostics == []
