"""Tagged values with a type of their own, in CDATA sections, and with newlines on one side."""

from __future__ import annotations

import json
from typing import Any

import pytest

from untemplate._internal.render import Inexpressible, expressible, render
from untemplate.format import Format, FormatError, Marker, NamedBody, TaggedArguments, Tools
from untemplate.formats import named
from untemplate.formats._families.k2_horizon import K2_HORIZON
from untemplate.testing import check


def k2(*arguments: str) -> str:
    return f"<ifm|tool_calls>\n<ifm|tool_call>f\n{''.join(arguments)}</ifm|tool_call>\n</ifm|tool_calls>"


def pair(key: str, kind: str, value: str, close: str = "</ifm|arg_type>\n") -> str:
    typed = f"<ifm|arg_type>{kind}{close}" if kind else ""
    return f"<ifm|arg_key>{key}</ifm|arg_key>\n{typed}<ifm|arg_value>{value}</ifm|arg_value>\n"


@pytest.mark.parametrize(
    ("arguments", "expected", "codes"),
    [
        ([pair("a", "string", "007"), pair("b", "integer", "7")], '{"a": "007", "b": 7}', []),
        ([pair("a", "boolean", "true"), pair("b", "null", "null")], '{"a": true, "b": null}', []),
        ([pair("a", "object", '{"x": [1]}'), pair("b", "", "2")], '{"a": {"x": [1]}, "b": "2"}', []),
        ([pair("a", "any", "  x\n"), pair("b", "int", "7")], '{"a": "  x\\n", "b": 7}', []),
        ([pair("a", "integer", "seven")], '{"a": "seven"}', []),
        ([pair("a", "integer", "7", "")], '{"a": 7}', ["broken_key"]),
        ([pair("a", "an integer", "7")], '{"a": "7"}', ["broken_key"]),
        ([pair("a", "x" * 300, "7")], '{"a": "7"}', ["text_between_arguments"]),
    ],
)
def test_the_type_comes_with_the_value(arguments: list[str], expected: str, codes: list[str]) -> None:
    status = "recovered" if codes else "ok"
    calls = {"tool_calls": [("f", expected, status)], "diagnostics": codes}
    check("k2_horizon", k2(*arguments), calls, exhaustive=len(arguments[0]) < 200, cuts=40, roundtrip=False)


def test_types_are_written_and_need_no_schema() -> None:
    fmt = K2_HORIZON.extend(tools__0__body__arguments__type_written=True)
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": "7", "b": 7}'}}]}
    assert render(fmt, message) == k2(pair("a", "string", "7"), pair("b", "number", "7"))
    assert (expressible(fmt, message), expressible(K2_HORIZON, message)) == (None, Inexpressible.VALUE_TYPE)


def minicpm(value: str) -> str:
    return f'<function name="f"><param name="a">{value}</param></function>'


@pytest.mark.parametrize(
    ("value", "expected", "codes"),
    [
        ("<![CDATA[x < y]]>", "x < y", []),
        ("<![CDATA[a</param>\n</function>b]]>", "a</param>\n</function>b", []),
        ("<![CDATA[a]]>b]]>\n", "a]]>b", []),
        ("<![CDATA[]]>", "", []),
        ("a<![CDATA[b]]>", "a<![CDATA[b]]>", []),
        ("<![CDAT", "<![CDAT", []),
        ("x & y", "x & y", []),
    ],
)
def test_sections(value: str, expected: str, codes: list[str]) -> None:
    calls = {"tool_calls": [("f", json.dumps({"a": expected}), "recovered" if codes else "ok")], "diagnostics": codes}
    check("minicpm5", minicpm(value), calls, exhaustive=True, roundtrip=False)


def test_a_section_without_its_close_is_reported() -> None:
    raw = '<function name="f"><param name="a"><![CDATA[x < y</param></function>'
    parsed = check("minicpm5", raw, exhaustive=True, roundtrip=False)
    assert [(c.function.arguments, c.status) for c in parsed.tool_calls] == [('{"a": "x < y</param>"}', "recovered")]
    assert [d.code for d in parsed.diagnostics] == ["missing_close"]


@pytest.mark.parametrize(("value", "written"), [("x < y", "<![CDATA[x < y]]>"), ("x", "x"), ([1, "<"], '[1, "<"]')])
def test_sections_are_written_where_they_are_needed(value: Any, written: str) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": value}}}]}
    assert render(named("minicpm5"), message) == minicpm(written)


def sided(trim: int, trim_after: int | None, before: str, after: str) -> Format:
    arguments = TaggedArguments(
        key_open=Marker("<p="),
        key_close=Marker(">" + before),
        value_close=Marker(after + "</p>"),
        trim=trim,
        trim_after=trim_after,
    )
    body = NamedBody(name_close=Marker(">"), arguments=arguments)
    return Format(name="sided", tools=(Tools(call_open=Marker("<c "), call_close=Marker("</c>"), body=body),))


@pytest.mark.parametrize(
    ("fmt", "value", "expected"),
    [
        (sided(0, 1, "", "\n"), "\nx\n\n", "\nx\n"),
        (sided(0, 1, "", "\n"), "x", "x"),
        (sided(1, 0, "\n", ""), "\n\nx\n", "\nx\n"),
        (sided(1, None, "\n", "\n"), "\nx\n", "x"),
        (sided(0, 2, "", "\n\n"), "x\n\n\n", "x\n"),
    ],
)
def test_newlines_are_counted_on_each_side(fmt: Format, value: str, expected: str) -> None:
    check(fmt, f"<c f><p=a>{value}</p></c>", {"tool_calls": [("f", json.dumps({"a": expected}))]}, roundtrip=False)
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": expected}}}]}
    assert expressible(fmt, message) is None


def tagged(**fields: Any) -> Format:
    texts = {name: Marker(text) if name != "key" else text for name, text in fields.items()}
    body = NamedBody(name_close=Marker("|"), arguments=TaggedArguments(**texts))
    tools = Tools(call_open=Marker("<<"), call_close=Marker(">>"), body=body)
    return Format(name="tagged", tools=(tools,))


def written_and_read(fmt: Format, arguments: dict[str, Any]) -> str:
    """Return a call as the renderer writes it, after all laws on it: it is read back whole, without a remark."""
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    raw = render(fmt, message)
    check(fmt, raw, {"tool_calls": [("f", arguments)], "diagnostics": []}, exhaustive=True)
    return raw


@pytest.mark.parametrize("value", ["Paris", " before", "after ", "", "\ttabs\t", "a: b", " > </v "])
@pytest.mark.parametrize(
    ("markers", "written"),
    [
        ({"key_open": "- ", "key_close": ": ", "value_close": "\n"}, "- path: {}\n"),
        ({"key_open": "<p ", "key_close": ">\t", "value_close": " </p>"}, "<p path>\t{} </p>"),
        (
            {"key_open": "<k>", "key_close": "</k>", "value_open": "<v> ", "value_close": "</v>"},
            "<k>path</k><v> {}</v>",
        ),
        ({"key_open": "<p=", "key_close": ">\n    ", "value_close": "\n  </p>"}, "<p=path>\n    {}\n  </p>"),
    ],
)
def test_white_space_of_a_marker_is_not_of_the_value(markers: dict[str, Any], written: str, value: str) -> None:
    fmt = tagged(**markers)
    assert written_and_read(fmt, {"path": value}) == f"<<f|{written.format(value)}>>"
    bare = written.replace(" ", "").replace("\t", "").replace("\n", "")
    if markers["value_close"].strip():
        check(fmt, f"<<f|{bare.format('x')}>>", {"tool_calls": [("f", {"path": "x"})]})


@pytest.mark.parametrize(
    "arguments", [{"n": 3}, {"days": 3}, {"path": "a"}, {"number": 1}, {"a": 1, "b": "x"}, {"t": {}}]
)
@pytest.mark.parametrize(
    "key", ["{key} t={type}", "{type} n={key}", "{type} {key}", "{key} {type}", '{type}" n="{key}']
)
def test_a_type_may_come_before_a_key_and_without_quotes(key: str, arguments: dict[str, Any]) -> None:
    written_and_read(tagged(key_open="<p ", key=key, key_close=">", value_close="</p>"), arguments)


@pytest.mark.parametrize("separator", [",", ", ", ",\n", "<and>"])
def test_separated_calls_of_a_section(separator: str) -> None:
    fmt = tagged(key_open="<k>", key_close="</k>", value_close="</v>").extend(
        tools__0__section_open=Marker("<calls>"),
        tools__0__section_close=Marker("</calls>"),
        tools__0__separator=Marker(separator),
    )
    raw = f"<calls><<f|<k>a</k>x</v>>>{separator}<<g|<k>b</k>y</v>>></calls>"
    calls = [("f", {"a": "x"}), ("g", {"b": "y"})]
    check(fmt, raw, {"tool_calls": calls, "diagnostics": []}, exhaustive=True)


def test_faults_are_named() -> None:
    base: dict[str, Any] = {"key_open": Marker("<k>"), "key_close": Marker("</k>"), "value_close": Marker("</v>")}

    def fault(**changes: Any) -> str:
        body = NamedBody(name_close=Marker(">"), arguments=TaggedArguments(**base, **changes))
        with pytest.raises(FormatError) as error:
            Format(name="x", tools=(Tools(call_open=Marker("<c "), call_close=Marker("</c>"), body=body),))
        return str(error.value)

    assert fault(trim_after=-1) == "tools[0].body.arguments.trim_after: -1 is negative"
    assert fault(value_open=Marker("<v>\n")) == (
        "tools[0].body.arguments.trim: 0 is less than the newlines of value_open next to a value: 1"
    )
    assert fault(key="{key} {string} {type}") == (
        "tools[0].body.arguments.key: '{key} {string} {type}' holds {string} and {type}; only one may be there"
    )
    assert fault(key="{key}{type}") == ("tools[0].body.arguments.key: '{key}{type}' has no text between its variables")
    assert fault(type_open=Marker("<t>")) == (
        "tools[0].body.arguments.type_close: type_open and type_close go together"
    )
    assert fault(type_open=Marker("<t>"), type_close=Marker("</t>")) == (
        "tools[0].body.arguments.value_open: is missing: nothing begins a value after its type"
    )
