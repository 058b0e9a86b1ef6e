# ruff: noqa: E501  (templates read better unbroken)
"""The pieces of the analysis, each on its own."""

from __future__ import annotations

import pytest

from untemplate.analysis import _diff as diff
from untemplate.analysis._certify import Runner, certify
from untemplate.analysis._checks import CAPABILITIES, Check
from untemplate.analysis._probes import CONTENT, TOOLS, ProbeCall, ProbeMessage, Prober, Style
from untemplate.analysis._turns import LAST, MIDDLE, find_frame
from untemplate.format import Format, JsonBody, Marker, Reasoning, Tools, Turn
from untemplate.templates import ChatTemplate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("</a>\n<b=", ["</a>", "\n", "<b="]),
        ("<|x|>word", ["<|x|>", "word"]),
        ("[CALLS][{", ["[CALLS]", "[", "{"]),
        ("⟦call⟧ 7", ["⟦call⟧", " ", "7"]),
        ('"> ', ['"', ">", " "]),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert list(diff.tokens(text)) == expected
    assert "".join(diff.tokens(text)) == text


def test_common_parts_are_whole_tokens() -> None:
    assert diff.common_suffix(["<a>\n<call>", "</call>\n<call>"]) == "\n<call>"
    assert diff.common_prefix(["</call><end>", "</call></all>"]) == "</call>"
    assert diff.common_prefix(["</calls>", "</call>"]) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>\n<b=", ["<a>\n", "<b="]),
        ('<|open|>call tool="', ['<|open|>call tool="']),
        ("<x>word<sep>", ["<x>word<sep>"]),
        ("</b>\n</a>", ["</b>\n", "</a>"]),
        ("\n```</call>", ["\n```</call>"]),
        ("<|close|>a<|sep|><|close|>b<|sep|>", ["<|close|>a<|sep|>", "<|close|>b<|sep|>"]),
    ],
)
def test_split_tags(text: str, expected: list[str]) -> None:
    assert diff.split_tags(text) == expected


def test_strip_front_takes_each_marker_once() -> None:
    assert diff.strip_front("<t>\n</t>\n<go>", ["<t>\n", "</t>", None]) == "\n<go>"
    assert diff.strip_front("<t><t>x", ["<t>"]) == "<t>x"


def test_json_around_finds_the_outermost_object() -> None:
    text = 'say {"type": "function", "function": {"name": "X", "arguments": {}}} end'
    found = diff.json_around(text, text.index("X"))
    assert found is not None
    assert text[found.start : found.end].startswith('{"type"')
    listed = '{"calls": [{"name": "X"}]}'
    inner = diff.json_around(listed, listed.index("X"))
    assert inner is not None
    assert listed[inner.start : inner.end] == '{"name": "X"}'


def test_locate() -> None:
    found = diff.locate("a1b2c", ("2", "1", "9"))
    assert found.names == ("1", "2")
    assert found.gaps == ("a", "b", "c")
    assert found.between("1", "2") == "b"
    assert found.before("1") == "a"
    assert found.after("2") == "c"
    assert found.between("2", "1") is None


CHATML = (
    "{%- for m in messages -%}{{- '<|s|>' + m.role + '\\n' + m.content + '<|e|>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|s|>assistant\\n' -}}{%- if think -%}{{- '<t>\\n' -}}{%- endif -%}{%- endif -%}"
)


def test_frame_of_a_plain_template() -> None:
    prober = Prober(ChatTemplate(CHATML))
    prompt = prober.settle()
    assert prompt is not None
    frame = find_frame(prober, prompt)
    assert frame.header == "<|s|>assistant\n"
    assert frame.end == "<|e|>\n"
    assert frame.tails[(("think", True),)] == "<t>\n"
    turn = frame.turn(ProbeMessage(CONTENT), Style(), LAST)
    assert turn is not None
    assert turn.text == f"{CONTENT}<|e|>\n"
    middle = frame.turn(ProbeMessage(CONTENT), Style(), MIDDLE)
    assert middle is not None
    assert middle.text == f"{CONTENT}<|e|>\n"


def test_style_writes_what_templates_want() -> None:
    message = ProbeMessage("", "why", (ProbeCall("f", {"a": 1}),))
    assert Style(arguments="text").write(message)["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'
    assert Style(no_content="null").write(message)["content"] is None
    assert Style(no_content="empty").write(message)["content"] == ""
    assert "content" not in Style(no_content="absent").write(message)
    assert Style(reasoning="thinking").write(message)["thinking"] == "why"
    assert Style(reasoning="parts").write(message)["content"] == [{"type": "thinking", "thinking": "why"}]
    blocks = Style(reasoning="blocks").write(message)
    assert [b["type"] for b in blocks["content"]["blocks"]] == ["thoughts", "tool_calls"]
    assert "tool_calls" not in blocks


def test_prober_renders_each_conversation_once() -> None:
    prober = Prober(ChatTemplate(CHATML))
    asked = [{"role": "user", "content": "x"}]
    assert prober.render(asked) == prober.render(asked)
    assert prober.renders == 1
    assert prober.render([{"role": "user"}], tools=TOOLS) is None
    assert any("TemplateError" in e or "Undefined" in e or "concatenate" in e for e in prober.errors)


FORMAT = Format(
    name="x",
    turn=Turn(start=Marker("<a>"), end=Marker("<e>")),
    reasoning=Reasoning(open=Marker("<t>"), close=Marker("</t>")),
    tools=(Tools(call_open=Marker("<go>"), call_close=Marker("</go>"), body=JsonBody()),),
)


def test_runner_reads_prompts_and_pieces() -> None:
    check = Check("calls", "one", "<u>hi<a><t>", 'hm</t><go>{"name": "f", "arguments": {"x": 1}}</go><e>')
    for step in (0, 1, 3):
        assert Runner(FORMAT).parse(check, step).raw == ("hm", "", (("f", '{"x": 1}'),))


def test_one_place_of_a_message_has_to_parse_back() -> None:
    fmt = Format(name="x", reasoning=Reasoning(open=Marker("<t>"), close=Marker("</t>")))
    last = Check("content", "plain (last)", "", "Hello", content="Hello", group="plain")
    middle = Check("content", "plain (middle)", "", "<t>Hel</t>lo", content="Hello", group="plain")
    certificate = certify(fmt, [last, middle])
    assert certificate.certified
    assert [failed.check for failed in certificate.failed] == ["plain (middle)"]
    assert 0.999 < certificate.score < 1
    assert not certify(fmt, [middle]).certified


def test_certificate_tells_no_from_failed() -> None:
    good = Check("content", "plain", "<a>", "Hello", "", "Hello", group="plain")
    other = Check("content", "plain elsewhere", "<a>", "<t>Hello", "", "Hello", group="plain")
    bad = Check("calls", "odd", "<a>", "<run>{}</run>", "", "", (("f", {}),), group="odd")
    certificate = certify(FORMAT, [good, other, bad], steps=(1,))
    assert list(certificate.capabilities) == list(CAPABILITIES)
    assert certificate.capabilities["content"] == "yes"
    assert certificate.capabilities["calls"] == "failed"
    assert certificate.capabilities["ids"] == "no"
    assert not certificate.certified
    assert [f.check for f in certificate.failed] == ["plain elsewhere", "odd"]
    assert certificate.to_dict()["failed"][1]["problem"]


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ('<go>{"name": "g", "arguments": {}}</go>', "name 'g'"),
        ('<go>{"name": "f", "arguments": {"x": true}}</go>', "arguments"),
        ("<t>so</t>", "reasoning"),
        ("text", "content"),
        ("", "0 calls"),
    ],
)
def test_every_difference_is_a_problem(output: str, problem: str) -> None:
    check = Check("calls", "c", "<a>", output, "", "", (("f", {"x": 1}),))
    assert certify(FORMAT, [check]).failed[0].problem.startswith(problem)
