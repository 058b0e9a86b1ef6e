"""Python-style arguments that are nearly right: what is read of them, what is dropped and reported, under every law."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from untemplate._internal.render import Inexpressible, expressible, render
from untemplate.format import Format, FormatError, LiteralArguments, Marker, NamedBody, Tools
from untemplate.formats import named
from untemplate.testing import check

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
        },
    }
]
DROPPED = "text_between_arguments"
UNQUOTED = "unquoted_value"
QUOTE = "unescaped_quote"
CLOSE = "missing_close"
PROPERTIES = {"city": {"type": "string"}, "unit": {"type": "string"}, "n": {"type": "integer"}, "x": {}}
WEATHER = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": PROPERTIES}}}
    for name in ("get_weather", "g")
]


@pytest.mark.parametrize(
    ("written", "arguments", "diagnostics"),
    [
        ("a b='x'", '{"a b": "x"}', []),
        ("x-y='x', ключ=1", '{"x-y": "x", "ключ": 1}', []),
        ("a\u00a0b='x'", '{"a\u00a0b": "x"}', []),
        ("'a b'=1", '{"a b": 1}', []),
        ("'it\\'s': 1", '{"it\'s": 1}', []),
        ("'Paris', 3", '{"0": "Paris", "1": 3}', []),
        ("'a, b=1'", '{"0": "a, b=1"}', []),
        ("New York", '{"0": "New York"}', [UNQUOTED]),
        ("c=2e7, d=25", '{"c": 2e7, "d": 25}', []),
        ("[1, 2], {'k': 3}", '{"0": [1, 2], "1": {"k": 3}}', []),
        ("a=, b=2", '{"a": null, "b": 2}', ["argument_without_value"]),
        ("a={1, 'x}'}, b=2", '{"a": [1, "x}"], "b": 2}', []),
        ("a={'k': 1, 'x'}, b=2", '{"a": {"k": 1}, "b": 2}', [DROPPED]),
        ("a={k l: 1, m: 2}", '{"a": {"k l": 1, "m": 2}}', []),
        ("a=1}, b=2", '{"a": 1, "b": 2}', [DROPPED]),
        ("a='1'; drop, b=2", '{"a": "1\'; drop, b=2)]"}', [QUOTE, "broken_arguments"]),
        ("a={'x', 'y'}, b={}", '{"a": ["x", "y"], "b": {}}', []),
        ("a='sed -n '360,450p' x', b=2", '{"a": "sed -n \'360,450p\' x", "b": 2}', [QUOTE, QUOTE]),
        ("a='it's', b=2", '{"a": "it\'s", "b": 2}', [QUOTE]),
        ("a='he said 'hi', then left', b=2", '{"a": "he said \'hi\', then left", "b": 2}', [QUOTE, QUOTE]),
        ("a='print('a')'", '{"a": "print(\'a\')"}', [QUOTE, QUOTE]),
        ("a='f(x['a'])', b=2", '{"a": "f(x[\'a\'])", "b": 2}', [QUOTE, QUOTE]),
        ("a=['it's', 'so']", '{"a": ["it\'s", "so"]}', [QUOTE]),
        ("a=[{'k': 'it's'}]", '{"a": [{"k": "it\'s"}]}', [QUOTE]),
        ("'it's', 'so'", '{"0": "it\'s", "1": "so"}', [QUOTE]),
        ('a="say "hi" now", b=2', '{"a": "say \\"hi\\" now", "b": 2}', [QUOTE, QUOTE]),
        ("a='x' 'y', b=2", '{"a": "x\' \'y", "b": 2}', [QUOTE, QUOTE]),
        ("a='x', b='y'", '{"a": "x", "b": "y"}', []),
        ("a='x',\n b ='y',\n", '{"a": "x", "b": "y"}', []),
        ("a=05, b=2", '{"a": 5, "b": 2}', [UNQUOTED]),
        ("a=-007, b=[00, +012]", '{"a": -7, "b": [0, 12]}', [UNQUOTED, UNQUOTED]),
        ("a=not x, b=it is", '{"a": "not x", "b": "it is"}', [UNQUOTED, UNQUOTED]),
    ],
)
def test_python(written: str, arguments: str, diagnostics: list[str]) -> None:
    check(
        "lfm2",
        f"<|tool_call_start|>[f({written})]<|tool_call_end|>",
        {
            "tool_calls": [("f", arguments, "recovered" if diagnostics else "ok")],
            "diagnostics": diagnostics,
        },
        exhaustive=True,
        roundtrip=False,
    )


@pytest.mark.parametrize(
    ("written", "arguments", "diagnostics"),
    [
        ("x, y == 1", '{"0": x, "1": y == 1}', [UNQUOTED, UNQUOTED]),
        ("date(2024, 1)", '{"0": date(2024, 1)}', [UNQUOTED]),
        ("a={{'k': 1}, b=2", '{"a": [{"k": 1}, b=2]}', [UNQUOTED, "broken_arguments"]),
        ("a=[1, b=2", '{"a": [1, b=2]}', [UNQUOTED, "broken_arguments"]),
        ("a=1 ; drop, b=2", '{"a": 1 ; drop, "b": 2}', [UNQUOTED]),
        ("a=[{'x'}, {1: 2}, {date(1)}]", '{"a": [["x"], {"1": 2}, [date(1)]]}', [UNQUOTED]),
        ("b=05, c=1+2, d=x", '{"b": 5, "c": 1+2, "d": x}', [UNQUOTED, UNQUOTED, UNQUOTED]),
        ("c=NaN, d=-Infinity", '{"c": NaN, "d": -Infinity}', [UNQUOTED, UNQUOTED]),
        ("a=os.environ['KEY']", "{\"a\": os.environ['KEY']}", [UNQUOTED]),
    ],
)
def test_names_and_expressions_are_not_strings(written: str, arguments: str, diagnostics: list[str]) -> None:
    check(
        "lfm2",
        f"<|tool_call_start|>[f({written})]<|tool_call_end|>",
        {"tool_calls": [("f", arguments, "invalid_json")], "diagnostics": ["invalid_json", *diagnostics]},
        exhaustive=True,
        roundtrip=False,
    )


@pytest.mark.parametrize(
    ("written", "arguments", "diagnostics"),
    [
        ('city:<|"|>Paris,unit:<|"|>C<|"|>', '{"city": "Paris", "unit": "C"}', [CLOSE]),
        ('city:<|"|>Paris , unit : <|"|>C', '{"city": "Paris ", "unit": "C"}', [CLOSE, CLOSE]),
        ('city:<|"|>Paris,unit:<|"|><|"|>', '{"city": "Paris", "unit": ""}', [CLOSE]),
        ('n:1,city:<|"|>Paris', '{"n": 1, "city": "Paris"}', [CLOSE]),
        ('city:<|"|>Paris,n:5', '{"city": "Paris,n:5"}', [CLOSE]),
        ('city:<|"|>a,unit:<|"|>', '{"city": "a,unit:"}', []),
        ('city:<|"|>a,unit:<|"|>,n:5', '{"city": "a,unit:", "n": 5}', []),
        ('city:<|"|>a,zone:<|"|>C<|"|>', '{"city": "a,zone:"}', [DROPPED]),
        ('city:<|"|>a,city:<|"|>C<|"|>', '{"city": "a,city:"}', [DROPPED]),
        ('city:<|"|>a}<tool_call|> b<|"|>', '{"city": "a}<tool_call|> b"}', []),
        ('x:[{k:<|"|>a', '{"x": [{"k": "a"}]}', [CLOSE]),
    ],
)
@pytest.mark.parametrize("after", ["", "\n<turn|>", "<|tool_call>call:g{}<tool_call|>", " and more"])
def test_a_marker_that_closes_a_string_may_be_missing(
    written: str, arguments: str, diagnostics: list[str], after: str
) -> None:
    """After text that is neither another call nor the end, the close of the call is part of the string."""
    chain = "}]}" if "[{" in written else "}"
    raw = f"<|tool_call>call:get_weather{{{written}{chain}<tool_call|>{after}"
    parsed = check("gemma4", raw, tools=WEATHER, exhaustive=True, roundtrip=False)
    first = parsed.tool_calls[0]
    if after == " and more" and diagnostics[-1:] == [CLOSE] and not written.endswith('<|"|>'):
        assert (first.status, len(parsed.tool_calls)) == ("incomplete", 1)
        return
    assert (first.function.arguments, first.status) == (arguments, "recovered" if diagnostics else "ok")
    assert [d.code for d in parsed.diagnostics] == diagnostics
    assert len(parsed.tool_calls) == 1 + after.count("call:g")
    assert parsed.content == (after if after == " and more" else None)


@pytest.mark.parametrize("number", ["1٢", "1.٥", "1e٣", "1e+٣", "-٢", "١٢", "１２", "0x١", "1²", "٫5"])
@pytest.mark.parametrize(
    ("name", "opening", "closing"),
    [
        ("lfm2", "<|tool_call_start|>[f(n=", ")]<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[f(n=[0, ", "])]<|tool_call_end|>"),
        ("gemma4", "<|tool_call>call:f{n:", "}<tool_call|>"),
    ],
)
def test_numbers_have_ascii_digits(number: str, name: str, opening: str, closing: str) -> None:
    python = name == "lfm2"
    value = f"[0, {number}]" if opening.endswith("[0, ") else number if python else f'"{number}"'
    status, diagnostics = ("invalid_json", ["invalid_json", UNQUOTED]) if python else ("recovered", [UNQUOTED])
    check(
        name,
        opening + number + closing,
        {"tool_calls": [("f", f'{{"n": {value}}}', status)], "diagnostics": diagnostics},
        exhaustive=True,
        roundtrip=False,
    )


@pytest.mark.parametrize(
    ("written", "arguments", "diagnostics"),
    [
        ("f((()]", '{"0": [[]]}', ["broken_arguments"]),
        ("f(a=[1, {'k': 2]", '{"a": [1, {"k": 2}]}', ["broken_arguments"]),
        ("f(a=]", '{"a": null}', ["argument_without_value"]),
        ("f(]", "{}", ["broken_arguments"]),
        ("f(a=[1, 2", '{"a": [1, 2]}', ["broken_arguments"]),
        ("f(a=1", '{"a": 1}', ["broken_arguments"]),
        ("f(a=g(it's 1)", '{"a": "g(it\'s 1)"}', ["broken_arguments"]),
    ],
)
def test_a_closed_call_closes_its_arguments(written: str, arguments: str, diagnostics: list[str]) -> None:
    parsed = check("lfm2", f"<|tool_call_start|>[{written}<|tool_call_end|>", exhaustive=True, roundtrip=False)
    assert [(c.function.arguments, c.status) for c in parsed.tool_calls] == [(arguments, "recovered")]
    assert {d.code for d in parsed.diagnostics} >= set(diagnostics)


@pytest.mark.parametrize(
    ("written", "arguments", "diagnostics"),
    [
        ("{", "{}", [DROPPED]),
        ("{a:1}", '{"a": 1}', [DROPPED, "stray_text"]),
        ("with space:1,b:2", '{"with space": 1, "b": 2}', []),
        ("a,b:2", '{"b": 2}', [DROPPED]),
        ('"a}",b:2', '{"b": 2}', [DROPPED]),
        ('<|"|>a}<|"|>,b:2', '{"b": 2}', [DROPPED]),
        ("a:,b:2", '{"a": null, "b": 2}', ["argument_without_value"]),
        ("a:[1", '{"a": [1]}', ["broken_arguments"]),
    ],
)
def test_braces_hold_keys(written: str, arguments: str, diagnostics: list[str]) -> None:
    check(
        "gemma4",
        f"<|tool_call>call:f{{{written}}}<tool_call|>",
        {
            "tool_calls": [("f", arguments, "recovered" if diagnostics else "ok")],
            "diagnostics": diagnostics,
        },
        exhaustive=True,
        roundtrip=False,
    )


@pytest.mark.parametrize(
    ("name", "written", "arguments"),
    [
        ("lfm2", "<|tool_call_start|>[f(a b", '{"0": "a b'),
        ("lfm2", "<|tool_call_start|>[f(ab", '{"ab'),
        ("lfm2", "<|tool_call_start|>[f('ab", '{"0": "ab'),
        ("lfm2", "<|tool_call_start|>[f('ab'", '{"0": "ab"'),
        ("lfm2", "<|tool_call_start|>[f(x=1, 'ab'", '{"x": 1, "1": "ab"'),
        ("lfm2", "<|tool_call_start|>[f(x={'a b", '{"x": {"a b'),
        ("functiongemma", "<start_function_call>call:f{<escape>a b", '{"a b'),
        ("functiongemma", "<start_function_call>call:f{a b", '{"a b'),
        ("functiongemma", "<start_function_call>call:f{x:1,<escape>a b<escape>", '{"x": 1, "a b"'),
    ],
)
def test_a_cut_key_is_as_far_as_it_has_come(name: str, written: str, arguments: str) -> None:
    parsed = check(name, written, finish_reason="length", exhaustive=True, roundtrip=False)
    assert [(c.function.arguments, c.status) for c in parsed.tool_calls] == [(arguments, "incomplete")]


def test_what_stands_before_the_first_key_is_the_schemas_first_parameter() -> None:
    check(
        "lfm2",
        "<|tool_call_start|>[f('x', 2)]",
        {"tool_calls": [("f", {"a": "x", "b": 2})]},
        tools=TOOLS,
        roundtrip=False,
    )


@pytest.mark.parametrize("size", [1000, 1023, 1024, 1025, 5000])
def test_long_keys(size: int) -> None:
    """The same under every cut: a key of up to 1024 characters, or none."""
    for key in ("k" * size, "k " * (size // 2) + "k", f"'{'k' * size}'"):
        check("lfm2", f"<|tool_call_start|>[f({key}=1, b=2)]<|tool_call_end|>", cuts=40, roundtrip=False)
        check("gemma4", f"<|tool_call>call:f{{{key}:1,b:2}}<tool_call|>", cuts=40, roundtrip=False)


def test_a_marker_that_is_only_spelled_ends_no_arguments() -> None:
    from untemplate import OutputParser
    from untemplate.formats import named
    from untemplate.testing import PieceTokenizer

    fmt = named("lfm2")
    tokenizer, spelling = PieceTokenizer(fmt.special_tokens), PieceTokenizer(fmt.special_tokens, spell=True)
    spelling._ids = tokenizer._ids  # one vocabulary
    parts = [
        (tokenizer, "<|tool_call_start|>"),
        (spelling, "[f(a=say it: <|tool_call_end|> now, b=2)]"),
        (tokenizer, "<|tool_call_end|>"),
    ]
    stream = OutputParser.from_format(fmt, tokenizer=tokenizer).stream(collect=True)
    for by, text in parts:
        for piece, token in zip(by.pieces(text), by.encode(text), strict=True):
            stream.feed(piece, [token])
    stream.finish()
    (call,) = stream.result().tool_calls
    assert (call.function.arguments, call.status) == ('{"a": "say it: <|tool_call_end|> now", "b": 2}', "recovered")


@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize(
    "text",
    [
        "[f(x) for x in xs]",
        "[f(x)](https://x.y)",
        "[f()](https://x.y)",
        "[f(x, y)]",
        "[f(a == 'x')]",
        "[f(x.y)]",
        "[f(not x)]",
    ],
)
def test_an_expression_is_not_a_call(text: str, tools: list[dict[str, object]] | None) -> None:
    check("pythonic", text, {"content": text}, exhaustive=True, tools=tools)


@pytest.mark.parametrize(
    "arguments", ["", "a='x'", "'x'", '"x"', "3", "-3", "[1]", "{'k': 1}", "True", "None", "a b=1"]
)
def test_a_literal_or_a_name_begins_the_arguments(arguments: str) -> None:
    parsed = check("pythonic", f"[f({arguments})]", exhaustive=True, roundtrip=False, tools=TOOLS)
    assert [call.function.name for call in parsed.tool_calls] == ["f"]


@pytest.mark.parametrize(
    ("written", "arguments", "diagnostics"),
    [
        ("a=Rome, b=3", '{"a": "Rome", "b": 3}', []),
        ("a=New York", '{"a": "New York"}', []),
        ("a='Rome', c=x", '{"a": "Rome", "c": "x"}', []),
        ("a=007, b=007", '{"a": "007", "b": 7}', [UNQUOTED]),
        ("c=1+2, d=None, e=[1, so]", '{"c": "1+2", "d": null, "e": [1, "so"]}', []),
        ("x=f(1, 'y')", '{"x": "f(1, \'y\')"}', []),
    ],
)
def test_quotes_may_be_optional(written: str, arguments: str, diagnostics: list[str]) -> None:
    """Some templates insert values as they are, and models follow them."""
    body = NamedBody(arguments=LiteralArguments(quoted="optional"))
    fmt = Format(name="optional", tools=(Tools(call_open=Marker("<c>"), call_close=Marker("</c>"), body=body),))
    call = ("f", arguments, "recovered" if diagnostics else "ok")
    check(fmt, f"<c>f({written})</c>", {"tool_calls": [call], "diagnostics": diagnostics}, tools=TOOLS, roundtrip=False)


@pytest.mark.parametrize("close", [": ", ">\n", "\n"])
@pytest.mark.parametrize("brackets", ["()", "{}"])
def test_white_space_may_be_before_the_arguments(close: str, brackets: str) -> None:
    body = NamedBody(name_close=Marker(close), arguments=LiteralArguments(open=brackets[0], close=brackets[1]))
    fmt = Format(name="spaced", tools=(Tools(call_open=Marker("<c>"), call_close=Marker("</c>"), body=body),))
    expected = {"tool_calls": [("f", {"a": 1})], "diagnostics": []}
    check(fmt, f"<c>f{close}{brackets[0]}a=1{brackets[1]}</c>", expected, exhaustive=True)


def test_a_comma_separates_arguments() -> None:
    with pytest.raises(FormatError) as error:
        Format(name="x", tools=(Tools(body=NamedBody(arguments=LiteralArguments(separator="; "))),))
    problem = "'; ' is not a comma, with or without white space"
    assert str(error.value) == f"tools[0].body.arguments.separator: {problem}"


YAML = LiteralArguments(open="", close="", assign=": ", separator="\n", quotes=('"',))


def lines(arguments: LiteralArguments) -> Format:
    """Return a Format whose arguments are on lines of their own."""
    body = NamedBody(name_close=Marker(">\n"), arguments=arguments)
    way = Tools(call_open=Marker("<do tool="), call_close=Marker("\n</do>"), body=body)
    return Format(name="lines", tools=(way,))


@pytest.mark.parametrize(
    ("written", "arguments", "diagnostics"),
    [
        ('a: "x"\nb: 3\n', '{"a": "x", "b": 3}', []),
        ('  a = "x, y"\n\n  b = 3\n', '{"a": "x, y", "b": 3}', []),
        ("", "{}", []),
        ('c: ["a",\n "b"]\nb: {"k": [1, "l: 2"]}\n', '{"c": ["a", "b"], "b": {"k": [1, "l: 2"]}}', []),
        ('a: "say "hi" twice"\nb: 3\n', '{"a": "say \\"hi\\" twice", "b": 3}', [QUOTE, QUOTE]),
        ("a: x y, z\nb: 3\n", '{"a": "x y, z", "b": 3}', [UNQUOTED]),
        ('a: "x"\nno argument\nb: 3\n', '{"a": "x", "b": 3}', [DROPPED]),
        ('a: "x"\nb: 3\n}\n', '{"a": "x", "b": 3}', [DROPPED]),
        ("a: 1\nunknown: true\n", '{"a": 1, "unknown": true}', []),
    ],
)
def test_arguments_on_lines(written: str, arguments: str, diagnostics: list[str]) -> None:
    expected = {"tool_calls": [("f", arguments, "recovered" if diagnostics else "ok")], "diagnostics": diagnostics}
    check(lines(YAML), f"<do tool=f>\n{written}</do>", expected, roundtrip=False)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("a: New York, NY (it's big\nb: 3\n", '{"a": "New York, NY (it\'s big", "b": 3}'),
        ("a: first: 1\nsecond\nb: 3\n", '{"a": "first: 1\\nsecond", "b": 3}'),
        ("b: 3\na: x\n(c) y\n", '{"b": 3, "a": "x\\n(c) y"}'),
    ],
)
def test_a_value_without_quotes_ends_at_a_line_with_a_declared_argument(written: str, arguments: str) -> None:
    expected = {"tool_calls": [("f", arguments, "ok")], "diagnostics": []}
    fmt = lines(replace(YAML, quoted="optional"))
    check(fmt, f"<do tool=f>\n{written}</do>", expected, tools=TOOLS, roundtrip=False)


def test_only_arguments_are_written_on_lines() -> None:
    arguments = {"a": "x", "c": ["q", {"k": 1}]}
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    assert render(lines(YAML), message) == '<do tool=f>\na: "x"\nc: ["q", {"k": 1}]\n</do>'


def test_text_after_a_name_is_no_line() -> None:
    check(lines(YAML), "Write <do tool=f> at first.", {"content": "Write <do tool=f> at first."}, roundtrip=False)


@pytest.mark.parametrize("size", [2047, 2048, 2049])
@pytest.mark.parametrize("before", ['a="x"', 'a="x",', 'a="x")', 'a=["x",'])
def test_what_follows_a_quote_is_looked_at_as_far_however_the_output_is_cut(before: str, size: int) -> None:
    raw = f'[f({before}{" " * size}!", b=3)]'
    check("pythonic", raw, cuts=20, roundtrip=False, tools=TOOLS)


def quoting(quote: str, *, escapes: bool = False) -> Format:
    """Return a Format that writes all values in quotes."""
    quotes = tuple(dict.fromkeys((quote, '"', "'")))
    arguments = LiteralArguments(quotes=quotes, quoted="all", escapes=escapes)
    tools = Tools(call_open=Marker("<c>"), call_close=Marker("</c>"), body=NamedBody(arguments=arguments))
    return Format(name="quoting", tools=(tools,))


TYPED = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "s": {"type": "string"},
                    "n": {"type": "integer"},
                    "b": {"type": "boolean"},
                    "l": {"type": "array", "items": {"type": "string"}},
                    "o": {"type": ["object", "null"]},
                    "u": {"type": ["string", "null"]},
                },
            },
        },
    }
]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("s={q}3{q}, n={q}3{q}", '{"s": "3", "n": 3}'),
        ("b={q}True{q}, u={q}None{q}", '{"b": true, "u": null}'),
        ("u={q}No{q}, x={q}3{q}", '{"u": "No", "x": "3"}'),
        ("n=3, l=['a'], b=false", '{"n": 3, "l": ["a"], "b": false}'),
        ("l={q}['a', 'b']{q}, o={q}{'k': None}{q}", '{"l": ["a", "b"], "o": {"k": null}}'),
        ("s={q}C:\\new{q}, n={q} 7 {q}", '{"s": "C:\\\\new", "n": 7}'),
        ("n={q}3{q}, s={q}{q}", '{"n": 3, "s": ""}'),
    ],
)
@pytest.mark.parametrize("quote", ['"', "<q>"])
def test_the_schema_decides_the_type_of_text_in_quotes(quote: str, written: str, arguments: str) -> None:
    text = f"<c>f({written.replace('{q}', quote)})</c>"
    check(quoting(quote), text, {"tool_calls": [("f", arguments, "ok")]}, tools=TYPED, roundtrip=False, exhaustive=True)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('n="1', '{"n": 1'),
        ('n="', '{"n": '),
        ('l="[1, ', '{"l": [1,'),
        ('u="nu', '{"u": nu'),
        ('s="3', '{"s": "3'),
    ],
)
def test_a_value_in_quotes_that_is_cut(written: str, arguments: str) -> None:
    parsed = check(quoting('"'), f"<c>f({written}", tools=TYPED, roundtrip=False, exhaustive=True)
    assert [(c.function.arguments, c.status) for c in parsed.tool_calls] == [(arguments, "incomplete")]


def test_text_in_quotes_that_does_not_fit_its_type_stays_text() -> None:
    expected = {"tool_calls": [("f", '{"n": "three"}', "invalid_arguments")]}
    check(quoting('"'), '<c>f(n="three")</c>', expected, tools=TYPED, roundtrip=False, exhaustive=True)


def test_quoted_values_are_written_as_templates_write_them() -> None:
    values = {"s": "it's", "n": 3, "b": True, "l": ["a"], "o": {"k": None}, "u": None}
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": json.dumps(values)}}]}
    written = """<c>f(s="it's", n="3", b="True", l="['a']", o="{'k': None}", u="None")</c>"""
    assert render(quoting('"'), message) == written
    assert render(quoting('"', escapes=True), message) == written
    written = """<c>f(s=<q>it's<q>, n=<q>3<q>, b=<q>true<q>, l=<q>["a"]<q>, o=<q>{"k": null}<q>, u=<q>null<q>)</c>"""
    assert render(quoting("<q>"), message) == written
    assert [expressible(quoting(q), message, tools=TYPED) for q in ('"', "<q>", "'")] == [
        None,
        None,
        Inexpressible.MARKER_IN_VALUE,
    ]
    assert expressible(quoting('"'), message) is Inexpressible.VALUE_TYPE


def test_other_quotes_keep_their_escapes() -> None:
    expected = {"tool_calls": [("f", '{"s": "a\\\\n", "x": "a\\n"}', "ok")]}
    check(quoting('"'), "<c>f(s=\"a\\n\", x='a\\n')</c>", expected, tools=TYPED, roundtrip=False, exhaustive=True)


@pytest.mark.parametrize("name", ["gemma4", "functiongemma", "pythonic", "lfm2"])
def test_a_string_may_begin_with_a_backslash(name: str) -> None:
    """Only a backslash in front of the quote is one of an escaped copy, which is text."""
    fmt = named(name)
    message = {"tool_calls": [{"function": {"name": "f", "arguments": {"path": "\\\\server\\x"}}}]}
    raw = render(fmt, message)
    check(fmt, raw, {"tool_calls": [("f", {"path": "\\\\server\\x"})], "finish_reason": "tool_calls"}, exhaustive=True)


# -- Calls with nothing around them, one a line -----------------------------------------------------------------------

LINES = [
    ("f(a='x')\ng(b='y')\n", None, [("f", {"a": "x"}, "ok"), ("g", {"b": "y"}, "ok")]),
    ("f()\n \n  g()\nf(a='(\n)')", None, [("f", {}, "ok"), ("g", {}, "ok"), ("f", {"a": "(\n)"}, "ok")]),
    ("f()\ng() is the other one.", "\ng() is the other one.", [("f", {}, "ok")]),
    ("f()\nThen:\ng()", "\nThen:\ng()", [("f", {}, "ok")]),
    ("f()\nh()\ng()", "\nh()\ng()", [("f", {}, "ok")]),
    ("f()\ng(", "\ng(", [("f", {}, "ok")]),
    ("f()\ng", "\ng", [("f", {}, "ok")]),
    ("f() g()", "f() g()", None),
    ("Now:\nf()", "Now:\nf()", None),
]


@pytest.mark.parametrize(("raw", "content", "calls"), LINES)
def test_one_call_a_line(raw: str, content: str | None, calls: list[Any] | None) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in "fg"]
    expected = {"content": content, "tool_calls": calls or [], "diagnostics": []}
    check("granite_pythonic", raw, expected, tools=tools, exhaustive=True, roundtrip=False)
    # If the tools are not known, a line of code is not a call.
    check("granite_pythonic", raw, {"content": raw, "tool_calls": []}, exhaustive=True, roundtrip=False)


def test_one_call_a_line_is_written_so() -> None:
    calls = [{"function": {"name": name, "arguments": {"a": 1}}} for name in "fg"]
    assert render(named("granite_pythonic"), {"tool_calls": calls}) == "f(a=1)\ng(a=1)"


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("pythonic", "[f(a='1'))]"),
        ("lfm2", "<|tool_call_start|>[f(a='1'))]<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[f(a='1')]]<|tool_call_end|>"),
        ("olmo3", "<function_calls>\nf(a='1'))\n</function_calls>"),
        ("mistral_v3", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "1"}}}]'),
    ],
)
def test_one_bracket_too_many_in_a_list_or_section_is_dropped(name: str, raw: str) -> None:
    expected = {"tool_calls": [("f", {"a": "1"}, "recovered")], "diagnostics": ["stray_text"]}
    check(name, raw, expected, exhaustive=True, roundtrip=False)


def test_brackets_after_a_quote_inside_a_string_are_part_of_it() -> None:
    expected = {"tool_calls": [("f", {"a": "(see 'x')) or y", "b": "z"}, "recovered")]}
    check("pythonic", "[f(a='(see 'x')) or y', b='z')]", expected, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    ("written", "value", "codes"),
    [
        (r"C:\Users\bob\new.txt", r"C:\Users\bob\new.txt", ["unescaped_backslash"]),
        (r"C:\new\Users", r"C:\new\Users", ["unescaped_backslash"]),
        (r"C:\x", r"C:\x", ["unescaped_backslash"]),
        (r"\\server\new", r"\\server\new", ["unescaped_backslash"]),
        (r"C:\\new\\a", r"C:\new\a", []),
        (r"\\d+\\s", r"\d+\s", []),
        (r"a\n\x41\x4", "a\nA" + r"\x4", []),
        (r"\d", r"\d", []),
    ],
)
def test_escapes_and_paths_in_strings(written: str, value: str, codes: list[str]) -> None:
    for quote in "'\"":
        raw = f"[f(path={quote}{written}{quote})]"
        status = "recovered" if codes else "ok"
        expected = {"tool_calls": [("f", {"path": value}, status)], "diagnostics": codes}
        check("pythonic", raw, expected, exhaustive=True, roundtrip=False)


def test_a_subscript_in_a_string_does_not_end_it() -> None:
    expected = {
        "tool_calls": [("s", {"p": "a = d['Hodor'] = 1"}, "recovered")],
        "diagnostics": ["unescaped_quote", "unescaped_quote"],
    }
    check("pythonic", "[s(p='a = d['Hodor'] = 1')]", expected, exhaustive=True, roundtrip=False)
    listed = {"tool_calls": [("f", {"tags": ["a", "b"], "x": 1}, "ok")], "diagnostics": []}
    check("pythonic", "[f(tags=['a', 'b'], x=1)]", listed, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    ("written", "arguments", "codes"),
    [
        ("city:New York, NY,unit:celsius", {"city": "New York, NY", "unit": "celsius"}, [UNQUOTED, UNQUOTED]),
        ("city:New York, NY, unit:celsius", {"city": "New York, NY", "unit": "celsius"}, [UNQUOTED, UNQUOTED]),
        ("city:at 10:00, 11:00 today,n:3", {"city": "at 10:00, 11:00 today", "n": 3}, [UNQUOTED]),
        ("city:a, b: c", {"city": "a, b: c"}, [UNQUOTED]),
        ("city:a,b:c", {"city": "a", "b": "c"}, [UNQUOTED, UNQUOTED]),
        ('city:a, unit:<|"|>c<|"|>', {"city": "a", "unit": "c"}, [UNQUOTED]),
        ("n:5, 6,unit:c", {"n": 5, "unit": "c"}, [DROPPED, UNQUOTED]),
        ("city:", {"city": ""}, ["argument_without_value"]),
        ("city:,n:1", {"city": "", "n": 1}, ["argument_without_value"]),
        ("n:", {"n": None}, ["argument_without_value"]),
    ],
)
def test_a_comma_in_a_value_without_quotes(written: str, arguments: dict[str, Any], codes: list[str]) -> None:
    raw = f"<|tool_call>call:get_weather{{{written}}}<tool_call|>"
    found = check("gemma4", raw, tools=WEATHER, exhaustive=True, roundtrip=False)
    assert [json.loads(c.function.arguments) for c in found.tool_calls] == [arguments]
    assert [d.code for d in found.diagnostics] == codes
    assert found.tool_calls[0].status in ("recovered", "invalid_arguments")


@pytest.mark.parametrize(
    ("written", "value", "codes"),
    [
        (r"'a\nb'", "a\nb", []),
        ("'if x:\n  print(\\n\\t)'", "if x:\n  print(\\n\\t)", ["unescaped_backslash"] * 2),
        ("'if x:\n  it\\'s \\\\n'", "if x:\n  it's \\n", []),
        ("'if x:\n  re(\\d)'", "if x:\n  re(\\d)", []),
        ("'\\t\n\\t'", "\t\n\\t", ["unescaped_backslash"]),
    ],
)
def test_after_a_line_break_only_quotes_and_backslashes_are_escaped(written: str, value: str, codes: list[str]) -> None:
    parsed = check("pythonic", f"[f(a={written})]", tools=TOOLS)
    assert json.loads(parsed.tool_calls[0].function.arguments) == {"a": value}
    assert [d.code for d in parsed.diagnostics] == codes
    assert parsed.tool_calls[0].status == ("recovered" if codes else "ok")
