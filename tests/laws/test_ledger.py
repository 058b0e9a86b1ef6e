"""The law "nothing is lost" notices one character that is missing, doubled or moved: results with such an error."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from untemplate.messages import ParsedOutput, Span
from untemplate.testing import LawBroken, check
from untemplate.testing._ledger import ledger
from untemplate.testing._subject import Subject

TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "tags": {"type": "array"},
                "exact": {"type": "boolean"},
            },
        },
    }
]
CALLS = {
    "JSON": ("hermes", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ulm", "days": 12}}\n</tool_call>'),
    "JSON in a string": (
        "hermes",
        '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Ulm\\", \\"days\\": 12}"}</tool_call>',
    ),
    "members next to the name": (
        "hermes",
        '<tool_call>{"city": "Ulm", "name": "get_weather", "days":  12, "x": [true]}</tool_call>',
    ),
    "channels": (
        "gpt-oss",
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Ulm", "days": 12}<|call|>',
    ),
    "tags": (
        "qwen3_coder",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nUlm\n</parameter>\n"
        "<parameter=days>\n 12\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n"
        "<parameter=tags>\n['ab', 3]\n</parameter>\n</function>\n</tool_call>",
    ),
    "tags without a schema": (
        "glm45",
        "<tool_call>get_weather\n<arg_key>town</arg_key>\n<arg_value>New  Ulm</arg_value>\n</tool_call>",
    ),
    "tags with entities": (
        "kimi_k3",
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="0"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>a &amp; b<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>",
    ),
    "Python": (
        "olmo3",
        "<function_calls>\nget_weather(city='Ul\\'m', days=+12, tags=[\"ab\", {'k': None}], exact=True, x=a b)\n"
        "</function_calls>",
    ),
    "Python without keys": ("olmo3", "<function_calls>\nget_weather('Ulm', 12)\n</function_calls>"),
    "Gemma": ("gemma4", '<|tool_call>call:get_weather{city:<|"|>Ulm<|"|>,tags:[true,12,{k:<|"|>v<|"|>}]}<tool_call|>'),
}
CASES = pytest.mark.parametrize(("name", "raw"), CALLS.values(), ids=list(CALLS))


def subject(name: str, raw: str) -> Subject:
    return Subject(name, raw, None, None, {"tools": TOOLS}, "stop", None)


def doctored(text: str) -> Iterator[str]:
    """The text with one letter or digit missing, doubled, or in the place of its neighbour."""
    for i, c in enumerate(text):
        if c.isalnum() and text[i - 1 : i] != "\\":
            yield text[:i] + text[i + 1 :]
            yield text[:i] + c + text[i:]
            following = text[i + 1 : i + 2]
            if following.isalnum() and following != c:
                yield text[:i] + following + c + text[i + 2 :]


def assert_broken(case: Subject, result: ParsedOutput) -> LawBroken:
    with pytest.raises(LawBroken) as broken:
        ledger(case, case.raw, result, "doctored")
    return broken.value


@CASES
def test_arguments(name: str, raw: str) -> None:
    case = subject(name, raw)
    result = case.whole.result
    status = "recovered" if "x=a b" in raw else "ok"
    assert [(c.function.name, c.status) for c in result.tool_calls] == [("get_weather", status)]
    ledger(case, raw, result, "as parsed")
    for arguments in doctored(result.tool_calls[0].function.arguments):
        wrong = copy.deepcopy(result)
        wrong.tool_calls[0].function.arguments = arguments
        assert_broken(case, wrong)


@CASES
def test_the_edges_of_spans(name: str, raw: str) -> None:
    """A letter that an argument span loses to its neighbour, or takes from it."""
    case = subject(name, raw)
    spans = case.whole.result.spans
    for i, (left, right) in enumerate(pairwise(spans)):
        for place in (left.end - 1, left.end + 1):
            moved = raw[min(place, left.end)]
            if not moved.isalnum() or not left.start < place < right.end:
                continue
            wrong = copy.deepcopy(case.whole.result)
            wrong.spans[i].end = wrong.spans[i + 1].start = place
            assert_broken(case, wrong)


def test_the_message_shows_the_smallest_rest() -> None:
    case = subject(*CALLS["Python"])
    wrong = copy.deepcopy(case.whole.result)
    function = wrong.tool_calls[0].function
    function.arguments = function.arguments.replace("ab", "abc")
    assert str(assert_broken(case, wrong)).splitlines()[:3] == [
        "nothing is lost: doctored: arguments of 'get_weather' are not their spans: "
        "'\", {\\'k\\': None}], exact=True, x=a b)' of the spans against 'c'",
        "    expected " + repr("(city='Ul\\'m', days=+12, tags=[\"ab\", {'k': None}], exact=True, x=a b)"),
        "    got      " + repr(function.arguments),
    ]


WHOLE = (
    "mistral_v3",
    'Sure.[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Ulm"}, "id": "abcdefgh1"}]</s>',
)


def _content(result: ParsedOutput) -> None:
    result.content = "Sue."


def _name(result: ParsedOutput) -> None:
    result.tool_calls[0].function.name = "get_wether"


def _name_twice(result: ParsedOutput) -> None:
    result.spans[next(i for i, s in enumerate(result.spans) if s.kind == "id")].kind = "name"


def _id(result: ParsedOutput) -> None:
    call = result.tool_calls[0]
    call.id = call.model_id = "abcdefgh"


def _gap(result: ParsedOutput) -> None:
    del result.spans[0]


def _markup(result: ParsedOutput) -> None:
    result.content = None
    result.spans[0].kind = "markup"


def _unreported(result: ParsedOutput) -> None:
    result.content = None
    result.spans[0].kind = "dropped"


def _other_call(result: ParsedOutput) -> None:
    result.spans[-1].call = 0


@pytest.mark.parametrize(
    ("doctor", "problem"),
    [
        (_content, "content is not its spans\n    expected 'Sure.'\n    got      'Sue.'"),
        (_name, "['get_weather'] is not the name of 'get_wether'"),
        (_name_twice, "['get_weather', '\"abcdefgh1\"'] is not the name of 'get_weather'"),
        (_id, "'\"abcdefgh1\"' is not the id of "),
        (_gap, "Span(kind='markup', start=5, end=29) does not begin at 0"),
        (_markup, "'Sure.' is called markup and holds 'Sure.'"),
        (_unreported, "'Sure.' was dropped and not reported"),
        (_other_call, ": names, ids and arguments, and nothing else, belong to a call"),
    ],
)
def test_other_kinds(doctor: Callable[[ParsedOutput], None], problem: str) -> None:
    case = subject(*WHOLE)
    result = case.whole.result
    ledger(case, case.raw, result, "as parsed")
    wrong = copy.deepcopy(result)
    doctor(wrong)
    text = str(assert_broken(case, wrong))
    assert problem in text, text


def _spans(raw: str, name: str, **context: Any) -> list[tuple[str, str]]:
    spans: list[Span] = Subject(name, raw, None, None, context, "stop", None).whole.result.spans
    return [(s.kind, raw[s.start : s.end]) for s in spans]


def test_newlines_around_a_tagged_value_are_markup() -> None:
    raw = "<tool_call>\n<function=f>\n<parameter=a>\nx\n\n</parameter>\n</function>\n</tool_call>"
    assert [s for s in _spans(raw, "qwen3_coder") if s[0] == "arguments"] == [("arguments", "a"), ("arguments", "x\n")]


def test_white_space_after_broken_json_is_markup() -> None:
    raw = '<tool_call>\n{"name": "f", "arguments": {"a": 1]}\n</tool_call>'
    assert _spans(raw, "hermes")[-2:] == [("arguments", '{"a": 1]}'), ("markup", "\n</tool_call>")]


def test_members_are_spans_of_their_own() -> None:
    raw = '<tool_call>{"name": "f", "a": 1, "b": 2}</tool_call>'
    assert [text for kind, text in _spans(raw, "hermes") if kind == "arguments"] == ['"a": 1', '"b": 2']


def test_a_key_without_a_value_is_dropped() -> None:
    raw = "<tool_call>f\n<arg_key>city</arg_key>\n</tool_call>"
    assert [s for s in _spans(raw, "glm45") if s[0] == "dropped"] == [("dropped", "city")]


def test_text_after_the_type_of_a_tagged_value_is_dropped() -> None:
    raw = CALLS["tags with entities"][1].replace('"string"', '"string2"')
    case = subject("kimi_k3", raw)
    result = case.whole.result
    assert [(d.code, d.text) for d in result.diagnostics] == [("broken_key", '" type="string2')]
    assert [c.status for c in result.tool_calls] == ["recovered"]


@pytest.mark.parametrize("ends", ["", "<|end|>", "<|end|> <|end|>", "<|begin|>assistant<|think|><|end|>"])
def test_a_header_without_its_opener_is_markup(ends: str) -> None:
    found = check("solar_open", f"{ends}assistant<|think|>Some text.<|end|>", roundtrip=False)
    assert found.reasoning == "Some text."
