"""Arguments in elements named after them, which nest: types by the schema, tags that are missing, misplaced or text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.work import lines_run
from untemplate import OutputParser
from untemplate.testing import check

NS = "]<]minimax[>["
STRAY = "text_between_arguments"
PROPERTIES = {
    "city": {"type": "string"},
    "number": {"type": "object", "properties": {"real": {"type": "number"}, "imag": {"type": "number"}}},
    "tags": {"type": "array", "items": {"type": "string"}},
    "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
    "maybe": {"type": ["string", "null"]},
    "tree": {"$ref": "#/$defs/tree"},
    "free": {},
}
TREE = {
    "type": "object",
    "properties": {"leaf": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "$defs": {"tree": TREE}}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
STRINGS = {"type": "object", "properties": {"n": {"type": "string"}, "maybe": {"type": "string"}}}
N_AND_MAYBE = [{"type": "function", "function": {"name": "f", "parameters": STRINGS}}]


def element(name: str, *inner: str) -> str:
    return f"{NS}<{name}>{''.join(inner)}{NS}</{name}>"


def call(inner: str) -> str:
    return f'{NS}<tool_call>\n{NS}<invoke name="f">{inner}{NS}</invoke>\n{NS}</tool_call>'


@pytest.mark.parametrize(
    ("inner", "arguments"),
    [
        ("", {}),
        (element("number", element("real", "1.5")), {"number": {"real": 1.5}}),
        (element("tags", element("item", "a"), element("item", "")), {"tags": ["a", ""]}),
        (element("rows", *(element("item", element("n", str(n))) for n in (1, 2))), {"rows": [{"n": 1}, {"n": 2}]}),
        ("\n" + element("rows", "\n  ", element("item", "\n", element("n", "3"), "\n"), "\n"), {"rows": [{"n": 3}]}),
        (element("tags"), {"tags": []}),
        (element("number", " \n"), {"number": {}}),
        (element("number", '{"real": 2}'), {"number": {"real": 2}}),
        (element("city", " a\n"), {"city": " a\n"}),
        (element("city", "if a < b and c > d: <b>"), {"city": "if a < b and c > d: <b>"}),
        (element("either", "<b>"), {"either": "<b>"}),
        (element("either", element("x", "1")), {"either": {"x": "1"}}),
        (element("maybe", "null"), {"maybe": None}),
        (element("maybe", "nullable"), {"maybe": "nullable"}),
        (element("free", "12"), {"free": "12"}),
        (element("free", element("item", "1")), {"free": ["1"]}),
        (element("free", element("a", "1"), element("item", "2")), {"free": {"a": "1", "item": "2"}}),
        (element("undeclared", element("a", "1")), {"undeclared": {"a": "1"}}),
        (
            element("tree", element("kids", element("item", element("leaf", "1"), element("kids")))),
            {"tree": {"kids": [{"leaf": 1, "kids": []}]}},
        ),
        (element("city", call(element("city", "inner"))), {"city": call(element("city", "inner"))}),
    ],
)
def test_elements(inner: str, arguments: dict[str, Any]) -> None:
    status = "recovered" if call("")[:20] in str(arguments) else "ok"  # a value holds markup of its call
    expected = {"content": "Sure.", "tool_calls": [("f", arguments, status)], "finish_reason": "tool_calls"}
    check("minimax_m3", "Sure. " + call(inner), expected, tools=TOOLS)


def test_elements_without_the_prefix() -> None:
    raw = call(element("city", "Rome") + element("number", element("real", "2"))).replace(NS, "")
    expected = {"tool_calls": [("f", {"city": "Rome", "number": {"real": 2}})], "finish_reason": "tool_calls"}
    check("minimax_m3", raw, expected, tools=TOOLS)
    expected = {"tool_calls": [("f", {"city": "Rome"})], "finish_reason": "tool_calls"}
    check("minimax_m3", call(f"{NS}<city>Rome</city>"), expected)


def test_tags_without_the_prefix_are_text_in_an_element_with_it() -> None:
    for text in ("<maybe>x</maybe>", "<city>Rome</city>", "see </city>", "</call></invoke>"):
        expected = {"tool_calls": [("f", {"city": text, "maybe": "y"})]}
        check("minimax_m3", call(element("city", text) + element("maybe", "y")), expected, tools=TOOLS, exhaustive=True)


def test_ends_of_elements_that_are_wrong() -> None:
    two = {"city": "Rome", "maybe": "x"}
    for close, code in (
        ("</city/>", "misspelled_close"),
        ("</citys>", "misspelled_close"),
        ("</city", "misspelled_close"),
    ):
        raw = call(f"{NS}<city>Rome{NS}{close}{element('maybe', 'x')}")
        check("minimax_m3", raw, {"tool_calls": [("f", two, "recovered")], "diagnostics": [code]}, tools=TOOLS)
    raw = call(element("city", "Rome") + "\nDone.\n")
    check(
        "minimax_m3", raw, {"tool_calls": [("f", {"city": "Rome"}, "recovered")], "diagnostics": [STRAY]}, tools=TOOLS
    )
    quoted = f'see {NS}<invoke name="f">{NS}<city>Rome'
    raw = call(element("city", quoted))
    expected = {"tool_calls": [("f", {"city": quoted}, "recovered")], "diagnostics": ["markup_in_value"]}
    check("minimax_m3", raw, expected, tools=TOOLS, exhaustive=True)


def test_another_name_that_begins_with_a_short_one_is_no_misspelling_of_it() -> None:
    """It is the value's text; with the token that all tags begin with it is reported, since a damaged tag looks so."""
    for text, status, codes in ((f"a{NS}</near>", "recovered", ["markup_in_value"]), ("a</mm:think>", "ok", [])):
        raw = call(element("n", text) + element("maybe", "x"))
        calls = [("f", {"n": text, "maybe": "x"}, status)]
        check("minimax_m3", raw, {"tool_calls": calls, "diagnostics": codes}, tools=N_AND_MAYBE)


def test_the_name_of_a_missing_parameter_is_a_word_like_others() -> None:
    expected = {"tool_calls": [("f", {"n": "maybe not"})], "diagnostics": []}
    check("minimax_m3", call(element("n", "maybe not")), expected, tools=N_AND_MAYBE)


def test_a_call_without_its_close_ends_at_the_next_call() -> None:
    raw = call(f'{element("city", "Rome")}\n{NS}<invoke name="f">{element("city", "Oslo")}')
    calls = [("f", {"city": "Rome"}, "recovered"), ("f", {"city": "Oslo"})]
    check("minimax_m3", raw, {"tool_calls": calls, "diagnostics": ["missing_close"]}, tools=TOOLS)


def test_without_schema_elements_are_arrays_and_objects_and_text_is_a_string() -> None:
    inner = element("a", element("item", "1"), element("item", element("x", "true"))) + element("b", "2")
    expected = {"tool_calls": [("f", {"a": ["1", {"x": "true"}], "b": "2"})], "finish_reason": "tool_calls"}
    check("minimax_m3", call(inner), expected)


@pytest.mark.parametrize(
    ("inner", "arguments", "codes"),
    [
        (f"{NS}<number>{NS}<real>1{NS}</number>", {"number": {"real": 1}}, ["missing_close"]),
        (f"{NS}<number>{element('real', '1')}", {"number": {"real": 1}}, ["missing_close"]),
        (f"{NS}<city>Rome", {"city": "Rome"}, ["missing_close"]),
        (f"{NS}<city>Rome{element('maybe', 'x')}", {"city": "Rome", "maybe": "x"}, ["missing_close"]),
        (f"{NS}<tags>{NS}<item>a{element('item', 'b')}{NS}</tags>", {"tags": ["a", "b"]}, ["missing_close"]),
        (element("number", element("real", "1"), f"{NS}</imag>"), {"number": {"real": 1}}, [STRAY]),
        (element("number") + "so: " + element("maybe", "x"), {"number": {}, "maybe": "x"}, [STRAY]),
        (element("number", element("real", "1"), f"{NS}</real>"), {"number": {"real": 1}}, [STRAY]),
        (element("city", "Rome") + "\nso:\n" + element("maybe", "x"), {"city": "Rome", "maybe": "x"}, [STRAY]),
        (element("city", "Rome") + f"{NS}</unit>" + element("maybe", "x"), {"city": "Rome", "maybe": "x"}, [STRAY]),
        (
            element("number", element("real", "1") + " and " + element("imag", "2")),
            {"number": {"real": 1, "imag": 2}},
            [STRAY],
        ),
        (element("tags", element("tag", "a")), {"tags": ["a"]}, ["broken_key"]),
    ],
)
def test_what_is_wrong_is_reported(inner: str, arguments: dict[str, Any], codes: list[str]) -> None:
    expected = {
        "tool_calls": [("f", arguments, "recovered")],
        "finish_reason": "tool_calls",
        "diagnostics": codes,
    }
    check("minimax_m3", call(inner), expected, tools=TOOLS)


@pytest.mark.parametrize(
    ("size", "arguments", "codes"),
    [
        (256, {"city": "Rome", "maybe": "y"}, [STRAY]),
        (257, {"city": f"Rome{NS}</city>{'x' * 257}", "maybe": "y"}, ["markup_in_value", "missing_close"]),
    ],
)
def test_stray_text_has_the_same_bound_however_the_output_is_cut(
    size: int, arguments: dict[str, Any], codes: list[str]
) -> None:
    raw = call(element("city", "Rome") + "x" * size + element("maybe", "y"))
    made = [("f", arguments, "recovered")]
    check("minimax_m3", raw, {"tool_calls": made, "finish_reason": "tool_calls", "diagnostics": codes}, tools=TOOLS)


@pytest.mark.parametrize("cut", range(0, 48, 3))
def test_a_cut_call_keeps_the_prefix(cut: int) -> None:
    raw = call(element("number", element("real", "1.5"), element("imag", "2")))
    (made,) = OutputParser.named("minimax_m3").parse(raw[: raw.index("number>") + 7 + 2 * cut], tools=TOOLS).tool_calls
    assert made.status == "incomplete"
    assert '{"number": {"real": 1.5, "imag": 2}}'.startswith(made.function.arguments)


def test_ten_thousand_levels_are_bounded_and_linear() -> None:
    parser = OutputParser.named("minimax_m3")

    def lines(levels: int) -> int:
        raw = call(f"{NS}<a>" * levels + "1" + f"{NS}</a>" * levels)
        return lines_run(lambda: parser.parse(raw))

    first, second, third = lines(400), lines(600), lines(800)  # levels below 256 are cheaper
    assert third - second < 1.1 * (second - first) + 1000
    raw = call(f"{NS}<a>" * 10_000 + "1" + f"{NS}</a>" * 10_000)
    parsed = parser.parse(raw)
    (made,) = parsed.tool_calls
    value = json.loads(made.function.arguments)
    for _ in range(256):
        value = value["a"]
    assert isinstance(value, str)
    assert value.startswith(f"{NS}<a>")
    assert (made.status, parsed.diagnostics[0].code) == ("recovered", "nested_too_deep")


def test_values_stream() -> None:
    stream = OutputParser.named("minimax_m3").stream(tools=TOOLS)
    before = call("").partition(f"{NS}</invoke>")[0]
    made = [[d.tool_calls[0].function.arguments for d in stream.feed(before) if d.tool_calls]]
    for piece in (f"{NS}<number>", f"{NS}<real>1", f"{NS}</real>{NS}<", f"/number>{NS}<city>Ro", "me"):
        made.append([d.tool_calls[0].function.arguments for d in stream.feed(piece) if d.tool_calls])
    assert made == [[], ['{"number": '], ['{"real": '], [], ['1}, "city": "Ro'], ["me"]]
