"""A damaged marker is read, or it is reported: in other letters, with swapped neighbours, with a sign too many."""

from __future__ import annotations

import json
from typing import Any

import pytest

from untemplate import OutputParser

STRING = {"type": "string"}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": schema}}}
    for name, schema in {"get_weather": {"city": STRING, "unit": STRING}, "ping": {}}.items()
]
NS = "]<]minimax[>["


def read(name: str, raw: str, tools: Any = TOOLS) -> tuple[list[tuple[str, str, str]], list[tuple[str, str]], Any]:
    parsed = OutputParser.named(name).parse(raw, tools=tools)
    calls = [(call.function.name, call.function.arguments, call.status) for call in parsed.tool_calls]
    return calls, [(d.code, d.text) for d in parsed.diagnostics], parsed.content


@pytest.mark.parametrize(
    "marker", ["<TOOL_CALL>", "<Tool_Call>", "<tool_clal>", "<toolc_all>", "<tool_call", "<tool_ca\n", "tool_call>"]
)
def test_a_damaged_opener_in_content_is_reported(marker: str) -> None:
    raw = f"I look.\n{marker}\n<function=ping>\n</function>\n</tool_call>"
    calls, diagnostics, content = read("qwen3_coder", raw)
    assert calls == [("ping", "{}", "ok")]
    assert diagnostics == [("unread_marker", marker.strip())]
    assert content == f"I look.\n{marker.strip()}"


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        ('<<tool_call>{"name": "ping", "arguments": {}}</tool_call>', "<"),
        ('<tool_call>{"name": "ping", "arguments": {}}</tool_call>>', ">"),
    ],
)
def test_a_sign_too_many_is_reported(raw: str, content: str) -> None:
    marker = "<<tool_call>" if content == "<" else "</tool_call>>"
    assert read("hermes", raw) == ([("ping", "{}", "ok")], [("unread_marker", marker)], content)


def test_a_key_with_markup_is_the_parameter_before_it() -> None:
    raw = "<tool_call>get_weather<arg_key>city<</arg_key><arg_value>Oslo</arg_value></tool_call>"
    assert read("glm-4.7", raw) == ([("get_weather", '{"city": "Oslo"}', "recovered")], [("broken_key", "<")], None)
    calls, diagnostics, _ = read("glm-4.7", raw, None)
    assert calls == [("get_weather", '{"city<": "Oslo"}', "recovered")]
    assert diagnostics == [("broken_key", "city<")]


@pytest.mark.parametrize("damaged", ["]<]MINIMAX[>[", "]<]miniamx[>[", "]<]minimax>[["])
def test_an_element_ends_at_a_close_with_a_damaged_beginning(damaged: str) -> None:
    raw = f'{NS}<tool_call>\n{NS}<invoke name="get_weather">{NS}<city>Oslo{damaged}</city>{NS}<unit>c{NS}</unit>'
    calls, diagnostics, _ = read("minimax_m3", f"{raw}{NS}</invoke>\n{NS}</tool_call>")
    assert [code for code, _ in diagnostics] == ["misspelled_close"]
    assert [status for _, _, status in calls] == ["recovered"]


def test_a_name_before_an_object_is_like_a_call() -> None:
    raw = "all\nLooking.ping\n{}"
    assert read("functionary_v3.2", raw) == ([], [("call_like_text", "Looking.ping\n{")], "Looking.ping\n{}")
    raw = "all\nLooking.\nping\n{}"
    assert read("functionary_v3.2", raw) == ([], [("call_like_text", "ping\n{")], "Looking.\nping\n{}")


def test_an_unknown_channel_is_reported() -> None:
    raw = "<|channel|>comentary <|constrain|>json<|message|>{}"
    calls, diagnostics, content = read("gpt-oss", raw)
    assert (calls, content) == ([], "{}")
    assert diagnostics[0][0] == "broken_header"


@pytest.mark.parametrize("marker", [" t=", " o=", " to", " to =", " ot=", " xo=", " toq=", " to==", " TO=", ""])
def test_the_prefix_of_a_name_shows_a_recipient_whose_marker_is_damaged(marker: str) -> None:
    header = f"<|channel|>commentary{marker}"
    raw = f"{header}functions.ping <|constrain|>json<|message|>{{}}<|call|>"
    assert read("gpt-oss", raw) == ([("ping", "{}", "recovered")], [("broken_header", header)], None)


def test_a_recipient_without_a_name_is_reported() -> None:
    raw = "<|channel|>commentary to=functions. json<|message|>{}<|call|>"
    assert [code for code, _ in read("gpt-oss", raw)[1]] == ["broken_header"]


def test_a_name_that_ends_in_the_type_of_the_arguments_is_unusual() -> None:
    def codes(header: str) -> list[str]:
        raw = f"<|channel|>commentary to=functions.{header}<|message|>{{}}<|call|>"
        return [d.code for d in OutputParser.named("gpt-oss").parse(raw).diagnostics]

    assert codes("notejson") == codes("json") == ["unusual_name"]
    assert codes("notejson <|constrain|>json") == codes("parse_json") == []


def test_with_tools_unknown_a_key_in_a_value_is_markup() -> None:
    raw = "<tool_call>\n<function=f>\n<parameter=a>\nOslo <parameter=b>c\n</parameter>\n</function>\n</tool_call>"
    calls, diagnostics, _ = read("qwen3_coder", raw, None)
    assert calls == [("f", '{"a": "Oslo <parameter=b>c"}', "recovered")]
    assert diagnostics == [("markup_in_value", "<parameter=")]


@pytest.mark.parametrize(("name", "unusual"), [("3", True), ("search:0", True), ("f|x>", True), ("ns.a-b_1", False)])
def test_with_tools_unknown_a_name_that_is_none_is_reported(name: str, unusual: bool) -> None:
    raw = f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
    assert read("hermes", raw, None) == ([(name, "{}", "ok")], [("unusual_name", name)] if unusual else [], None)


@pytest.mark.parametrize(
    ("name", "raw", "status"),
    [
        ("hermes", '<tool_call>{"name": "ping", "arguments": {}}</tool_call> and "}}\n</tool_call>', "recovered"),
        ("hermes", '<tool_call>{"name": "ping", "arguments": {}}</tool_call> see `</tool_call>`', "ok"),
        ("hermes", '<tool_call>{"name": "ping", "arguments": {}}</tool_call> see <tool_call> there', "ok"),
        (
            "qwen3_coder",
            "<tool_call>\n<function=ping>\n</function>\n</tool_call>\nSo: </parameter> x\n</function>\n</tool_call>",
            "recovered",
        ),
    ],
)
def test_a_close_that_stayed_content_lowers_the_call_before_it(name: str, raw: str, status: str) -> None:
    calls, diagnostics, _ = read(name, raw)
    assert calls == [("ping", "{}", status)]
    assert ("call_like_text" in [code for code, _ in diagnostics]) == ("`" not in raw)


OTHER = "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("name", "raw", "found"),
    [
        ("hermes", 'Sure.<tool_c\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>', "<tool_c"),
        ("hermes", 'Sure.call>\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>', "call>"),
        ("qwen3_coder", f"{OTHER.format('x').replace('f>', 'ping>')}_call>", "_call>"),
        ("hermes+qwen3", '<think>Hm.</thiSure.\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>', "</thi"),
        ("granite", "Here is my thuoght process:\n\nHm.", "Here is my thuoght process:"),
        ("nemotron_json", '<TOOLCALL>[{"name": "ping", "arguments": {}}]</toolcall>', "</toolcall>"),
    ],
)
def test_a_piece_of_a_marker_is_reported_where_it_touches_a_call(name: str, raw: str, found: str) -> None:
    parsed = OutputParser.named(name).parse(raw, tools=TOOLS)
    assert [(d.code, d.text) for d in parsed.diagnostics] == [("unread_marker", found)]
    start = parsed.diagnostics[0].start
    assert raw[start : start + len(found)] == found


@pytest.mark.parametrize(
    "text",
    ["<ul><li>a</li></ul>", "a < b", "x > y", "List<tool>", "see [1]", "A tag: <thinking>", "`<tool_c`", "C:>", ">"],
)
def test_other_text_before_a_call_is_no_piece_of_a_marker(text: str) -> None:
    raw = f'{text}\n<tool_call>\n{{"name": "ping", "arguments": {{}}}}\n</tool_call>'
    assert OutputParser.named("hermes+qwen3").parse(raw, tools=TOOLS).diagnostics == []


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("<think>\nHm.ping</tool_call>", "</tool_call>"),
        ('<think>\n{"name": "ping", "arguments": {}}', '{"name": "ping"'),
        ('<think>\nHm. <tool_call>{"name": ping', "<tool_call>"),
        ('<think>\n{"name": "ping", "arguments": {}}\n</think>', '{"name": "ping"'),
        ('<think>\n<tool_call>{"name": ping}}</tool_cal>\n<tool_call>{"name": "ping", "arguments": {}}', "<tool_call>"),
    ],
)
def test_a_call_in_reasoning_that_is_no_draft_is_reported(raw: str, found: str) -> None:
    parsed = OutputParser.named("hermes+qwen3").parse(raw, tools=TOOLS)
    assert [(d.code, d.text) for d in parsed.diagnostics if d.code == "call_like_text"] == [("call_like_text", found)]


FILE = {"type": "object", "properties": {"text": {"type": "string"}, "title": {"type": "string"}}}
SAVE = [{"type": "function", "function": {"name": "f", "parameters": FILE}}]
M2 = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="text">%s</parameter>\n</invoke>\n</minimax:tool_call>'
WRITTEN = "<tool_call>\n<function=f>\n<parameter=text>\n%s\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("name", "raw", "found"),
    [
        ("qwen3_coder", WRITTEN % "Some texttitle>\nA list", "title"),
        ("minimax_m2", M2 % 'Some texttitle">A list', "title"),
        ("minimax_m2", M2 % 'a\n<parameterq name="x">b', '<parameterq name="'),
    ],
)
def test_what_is_left_of_another_parameter_is_markup_in_a_value(name: str, raw: str, found: str) -> None:
    parsed = OutputParser.named(name).parse(raw, tools=SAVE)
    assert [call.status for call in parsed.tool_calls] == ["recovered"]
    assert [(d.code, d.text) for d in parsed.diagnostics] == [("markup_in_value", found)]


@pytest.mark.parametrize("value", ["<title>", "<a title>", '<input name="title">', "a <b> title > c"])
@pytest.mark.parametrize(("name", "call"), [("qwen3_coder", WRITTEN), ("minimax_m2", M2)])
def test_other_tags_with_the_name_of_a_parameter_are_text(name: str, call: str, value: str) -> None:
    parsed = OutputParser.named(name).parse(call % value, tools=SAVE)
    assert [(one.status, parsed.diagnostics) for one in parsed.tool_calls] == [("ok", [])]


HERMES = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (f"<think>\nHm.nk>\n\nSure.\n{HERMES}", "nk>"),
        (f"<think>\nHm.\n</th\u597d\n{HERMES}", "</th"),
        (f"ink>\nHm.\n</think>\n\n{HERMES}", "ink>"),
        (f"<think>\nHm.\n</tool_call>\n</think>\n\n{HERMES}", "</tool_call>"),
        (f"</tool_call>\nHm.\n</think>\n\n{HERMES}", "</tool_call>"),
        (f"<think>\nHm.\n</think>\n\n{HERMES}\n<tool_call_\n{HERMES}", "<tool_call"),
        (f"<think>\nHm.\n</think>\n\n{HERMES}\nx|>", "x|>"),
    ],
)
def test_a_piece_of_a_marker_at_the_edge_of_a_text_is_reported(raw: str, found: str) -> None:
    calls, diagnostics, _ = read("hermes+qwen3-vl-thinking", raw)
    assert [status for _, _, status in calls] == ["ok"] * len(calls) != []
    assert diagnostics == [("unread_marker", found)]


@pytest.mark.parametrize(
    "raw",
    [
        f"<think>\nIf a->k>b.\n{HERMES}",
        f"<think>\nA </table> and </table.\n{HERMES}",
        f"<think>\nUse </thought then.\n{HERMES}",
        f"<think>\nHm.\n</think>\n\n<b>Sure</b>\n{HERMES}",
        "<think>\nHm.\n</think>\n\n[1]",
    ],
)
def test_other_signs_at_the_edge_of_a_text_are_text(raw: str) -> None:
    assert read("hermes+qwen3-vl-thinking", raw)[1] == []


def test_a_key_that_joins_two_parameters_is_broken() -> None:
    raw = "<tool_call>\n<function=get_weather>\n<parameter=cityunit>\nOslo\n</parameter>\n</function>\n</tool_call>"
    assert read("qwen3_coder", raw)[:2] == (
        [("get_weather", '{"cityunit": "Oslo"}', "recovered")],
        [("broken_key", "cityunit")],
    )


def test_a_marker_in_an_element_lowers_the_call() -> None:
    inner = f"{NS}<city>item>Oslo{NS}</item>{NS}<item>Bergen{NS}</item>{NS}</city>"
    raw = f'{NS}<tool_call>\n{NS}<invoke name="get_weather">{inner}{NS}</invoke>\n{NS}</tool_call>'
    calls, diagnostics, _ = read("minimax_m3", raw)
    assert [status for _, _, status in calls] == ["recovered"]
    assert [code for code, _ in diagnostics] == ["markup_in_value"]


@pytest.mark.parametrize(
    "text",
    [
        'Look. get_weather(city="Oslo"), ping()',
        'Look. [get_weather(city="Oslo"), ping()',
        'get_weather(city="Oslo")\nx',
    ],
)
def test_calls_in_pythons_syntax_that_stay_content_are_reported(text: str) -> None:
    for name in ("pythonic", "llama4_pythonic"):
        calls, diagnostics, content = read(name, text)
        assert (calls, content) == ([], text)
        assert [code for code, _ in diagnostics] == ["call_like_text"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("lfm2", '好的。[get_weather(city="Oslo"), ping()]', '[get_weather(city="Oslo")'),
        ("lfm2", '<|to[get_weather(city="Oslo")]', '[get_weather(city="Oslo")'),
        ("lfm2", "|>[ping()]", "[ping()"),
        ("gemma4", 'Look.<|tool_calget_weather{city:<|"|>Oslo<|"|>}', "tool_calget_weather{"),
        ("functionary_v3.1", 'Look.<functionxget_weather>{"city": "Oslo"}', "functionxget_weather>{"),
    ],
)
def test_a_call_after_a_piece_of_its_opener_is_reported(name: str, text: str, found: str) -> None:
    assert read(name, text) == ([], [("call_like_text", found)], text)


@pytest.mark.parametrize(
    "text",
    [
        'The function get_weather(city="Oslo") returns text, and so does ping().',
        "It is places[ping()] then.",
        "See <b>overping {x}</b>.",
    ],
)
def test_a_function_in_prose_is_no_call(text: str) -> None:
    assert read("pythonic", text)[1] == []


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("qwen3_coder", "Oslo\nunit>\nc", "recovered"),
        ("qwen3_coder", "if a>\nunit >\nc", "ok"),
        ("qwen3_coder", "List<String> x\n  unit>c", "ok"),
    ],
)
def test_with_tools_unknown_a_line_that_is_a_key_and_its_close_is_markup(name: str, value: str, status: str) -> None:
    raw = f"<tool_call>\n<function=f>\n<parameter=a>\n{value}\n</parameter>\n</function>\n</tool_call>"
    assert [one for _, _, one in read(name, raw, None)[0]] == [status]


def test_with_tools_unknown_a_name_and_arguments_without_their_brace_are_like_a_call() -> None:
    raw = '["name": "f", "arguments": {"a": 1}}]'
    assert [code for code, _ in read("json", raw, None)[1]] == ["call_like_text"]


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("import os\n<parameter=mode>\nw", "recovered"),
        ("<parameter=mode>\nw", "recovered"),
        ("see <parameter=mode>\nw", "ok"),
        ('see "<parameter=mode>\nw', "ok"),
    ],
)
def test_an_opener_of_an_unknown_key_that_nothing_closes_is_markup(value: str, status: str) -> None:
    calls, _, _ = read("qwen3_coder", WRITTEN % value, SAVE)
    assert calls == [("f", json.dumps({"text": value}), status)]


@pytest.mark.parametrize("text", ["<Widget {...props}>", "a<prerun {b}", "x|targo {y}"])
def test_a_name_that_ends_like_a_tool_is_prose(text: str) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("get", "run", "go")]
    assert read("hermes", text, tools)[1] == []
