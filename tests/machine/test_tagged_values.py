"""Tagged values whose tags are missing, doubled or misspelled: examples, and a property over every tagged format."""

from __future__ import annotations

import json

import pytest

from tests.laws.strategies import FORMATS
from untemplate import OutputParser
from untemplate._internal.render import render
from untemplate.format import NamedBody, TaggedArguments
from untemplate.testing import check

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("f", "g")]
QWEN = "<tool_call>\n<function=f>\n{}\n</function>\n</tool_call>"
NEXT = "<tool_call>\n<function=g>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
QUOTED = "<tool_call>\n<function=g>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
GLM = "<tool_call>f{}</tool_call>"
MINIMAX = '<minimax:tool_call>\n<invoke name="f">\n{}</invoke>\n</minimax:tool_call>'

Call = tuple[str, dict[str, str]] | tuple[str, dict[str, str], str]
ONE: list[Call] = [("f", {"a": "1"}, "recovered")]
TWO: list[Call] = [("f", {"a": "1", "b": "2"}, "recovered")]


def holds(name: str, raw: str, calls: list[Call], codes: list[str], *, tools: object = TOOLS) -> None:
    expected = {"tool_calls": calls, "diagnostics": codes}
    check(name, raw, expected, exhaustive=True, roundtrip=False, tools=tools)


def test_of_a_damaged_second_opener_only_the_key_is_kept():
    """The first ``a`` in the damaged opener is not the key."""
    raw = QWEN.format("<parameter=<paramter=a>\n1\n</parameter>")
    found = OutputParser.named("qwen3_coder").parse(raw, tools=TOOLS, seed=1)
    (call,) = found.tool_calls
    assert (call.function.arguments, call.status) == ('{"a": "1"}', "recovered")
    assert [(told.code, raw[told.start : told.end]) for told in found.diagnostics] == [("broken_key", "<paramter=")]


def test_two_keys_in_one_are_reported_where_they_are():
    """White space around a key, and its attributes, come between it and its close."""
    raw = '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name=" ab " string="true">1'
    raw += "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    found = OutputParser.named("deepseek_v32").parse(raw, tools=TOOLS)
    assert [(told.code, raw[told.start : told.end]) for told in found.diagnostics] == [("broken_key", "ab")]


@pytest.mark.parametrize(
    ("written", "calls", "codes"),
    [
        ("<parameter=a>\n1\n<parameter=b>\n2\n</parameter>", TWO, ["missing_close"]),
        ("<parameter=a>\n1\n<parameter=b>\n2", TWO, ["missing_close", "missing_close"]),
        ("<parameter=a>\n1", ONE, ["missing_close"]),
        ("<parameter=a>\n1\n</parameter>\n</parameter>", ONE, ["doubled_close"]),
        ("<parameter=a>\n1\n</parameter></parameter>\n<parameter=b>\n2\n</parameter>", TWO, ["doubled_close"]),
        ("<parameter=a>\n1\n</parameter/>", ONE, ["misspelled_close"]),
        ("<parameter=a>\n1\n</parameter1>\n<parameter=b>\n2\n</parameter>", TWO, ["misspelled_close"]),
        ("<parameter=a>\n1\n</parameters>", ONE, ["misspelled_close"]),
        ("<parameter=a>\n1\n</parameter", ONE, ["misspelled_close"]),
        ("<parameter=a>\n1\n</parameter>\nand\n<parameter=b>\n2\n</parameter>", TWO, ["text_between_arguments"]),
    ],
)
def test_a_value_ends_where_its_close_is_wrong(written: str, calls: list[Call], codes: list[str]) -> None:
    """vllm#23099, ollama#17914, sglang#27336."""
    holds("qwen3_coder", QWEN.format(written), calls, codes)
    holds("qwen3_coder", QWEN.format(written), calls, codes, tools=None)


def test_stray_text_has_the_same_bound_however_the_output_is_cut() -> None:
    def written(size: int) -> str:
        return f"<parameter=a>\n1\n</parameter>\n{'x' * size}\n<parameter=b>\n2\n</parameter>"

    check("qwen3_coder", QWEN.format(written(255)), {"tool_calls": TWO}, roundtrip=False, tools=TOOLS)
    quoted = [("f", {"a": f"1\n</parameter>\n{'x' * 256}", "b": "2"}, "recovered")]
    check("qwen3_coder", QWEN.format(written(256)), {"tool_calls": quoted}, roundtrip=False, tools=TOOLS)


def test_text_far_after_a_call_has_no_effect_on_it() -> None:
    call = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>"
    check("qwen3_coder", call + " " * 257 + "more\nlines", roundtrip=False, tools=TOOLS)


def test_a_missing_close_leaves_the_next_call_alone() -> None:
    raw = QWEN.format("<parameter=a>\n1") + "\n" + NEXT
    holds("qwen3_coder", raw, [*ONE, ("g", {"a": "1"})], ["missing_close"])


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("see:\n</function>\n</tool_call>\nend", "see:\n</function>\n</tool_call>\nend"),
        ("see `</parameter>` there", "see `</parameter>` there"),
        ("see </parameter></function> there", "see </parameter></function> there"),
        ("<parameter=z>\n1", "<parameter=z>\n1"),
        ("<parameter=a>\n1\n</parameter>", "<parameter=a>\n1\n</parameter>"),
        ("say `<parameter=b>` now", "say `<parameter=b>` now"),
        ("x = 1  # <parameter=b>", "x = 1  # <parameter=b>"),
        ("<parameters>\n</parameters>", "<parameters>\n</parameters>"),
        ("</parameter1>", "</parameter1>"),
        (f"a {QUOTED} b", f"a {QUOTED} b"),
        (f"{QUOTED}\n{QUOTED} b", f"{QUOTED}\n{QUOTED} b"),
        ("<function=g> and </function>", "<function=g> and </function>"),
    ],
)
def test_what_a_value_quotes_is_part_of_it(written: str, value: str) -> None:
    raw = QWEN.format(f"<parameter=a>\n{written}\n</parameter>")
    own = not any(tag in written for tag in ("<parameters>", "</parameter1>"))
    calls: list[Call] = [("f", {"a": value}, "recovered")] if own else [("f", {"a": value})]
    holds("qwen3_coder", raw, calls, ["markup_in_value"] if own else [])


def test_a_declared_parameter_ends_the_value_before_it_in_the_middle_of_a_line() -> None:
    raw = QWEN.format("<parameter=a>\n1<parameter=b>\n2\n</parameter>")
    holds("qwen3_coder", raw, TWO, ["missing_close"])
    raw = GLM.format("<arg_key>a</arg_key><arg_value>1<arg_key>b</arg_key><arg_value>2</arg_value>")
    holds("glm47", raw, TWO, ["missing_close"])
    quoted = '"<arg_key>b</arg_key><arg_value>2'
    raw = GLM.format(f"<arg_key>a</arg_key><arg_value>{quoted}</arg_value>")
    holds("glm47", raw, [("f", {"a": quoted}, "recovered")], ["markup_in_value"])


@pytest.mark.parametrize("opener", ["", "parameter=", "<parametr=", "<paramexter=", "<parametxr="])
def test_a_damaged_opener_begins_a_declared_parameter(opener: str) -> None:
    raw = QWEN.format(f"<parameter=a>\n1\n</parameter>\n{opener}b>\n2\n</parameter>")
    holds("qwen3_coder", raw, TWO, ["broken_key"])


@pytest.mark.parametrize("close", ["", "/arg_key>", "</argkey>", "</arz_key>"])
def test_a_key_ends_at_a_damaged_close(close: str) -> None:
    raw = GLM.format(f"<arg_key>a{close}<arg_value>1</arg_value><arg_key>b</arg_key><arg_value>2</arg_value>")
    codes = ["broken_key", "missing_close"] if close else ["missing_close"]
    holds("glm47", raw, TWO, codes)
    holds("glm47", raw, TWO, codes, tools=None)


def test_a_doubled_opener_of_a_value_is_reported() -> None:
    """It stays: the value may be one that begins with such a text."""
    raw = GLM.format("<arg_key>a</arg_key><arg_value><arg_value>1</arg_value>")
    holds("glm47", raw, [("f", {"a": "<arg_value>1"}, "recovered")], ["markup_in_value"])
    raw = MINIMAX.format('<parameter name="a">">1</parameter>\n')
    holds("minimax_m2", raw, [("f", {"a": '">1'}, "recovered")], ["markup_in_value"])


SHOWN = [
    ("minimax_m2", '<invoke name="python">', MINIMAX.format('<parameter name="a">{}</parameter>\n')),
    ("qwen3_coder", "<tool_call>\n<function=python>", QWEN.format("<parameter=a>\n{}\n</parameter>")),
    ("glm47", "<tool_call>python<arg_key>", GLM.format("<arg_key>a</arg_key><arg_value>{}</arg_value>")),
]


@pytest.mark.parametrize(("name", "shown", "raw"), SHOWN)
def test_a_quotation_owns_only_the_closes_that_it_has_opened(name: str, shown: str, raw: str) -> None:
    """A call whose value shows an opener ends at its own closes: before another call, text, or the end."""
    value = f"use {shown} here"
    one = raw.format(value)
    first = ("f", {"a": value}, "recovered")
    holds(name, one, [first], ["markup_in_value"])
    holds(name, f"{one}\n{raw.format(1)}", [first, ("f", {"a": "1"})], ["markup_in_value"])
    expected = {"content": "\n\nDone.", "tool_calls": [first], "diagnostics": ["markup_in_value"]}
    before = "</think>" if name == "minimax_m2" else ""
    check(name, f"{before}{one}\n\nDone.", expected, exhaustive=True, roundtrip=False, tools=TOOLS)


def test_a_quoted_call_that_never_closes_is_not_ok() -> None:
    raw = QWEN.format("<parameter=a>\nuse <tool_call>\n<function=g>\n</parameter>")
    holds("qwen3_coder", raw, [("f", {"a": "use <tool_call>\n<function=g>"}, "recovered")], ["markup_in_value"])


@pytest.mark.parametrize(
    ("name", "raw", "calls", "codes"),
    [
        (
            "glm47",
            GLM.format("<arg_key>a</arg_key><arg_value>1<arg_key>b</arg_key><arg_value>2</arg_value>"),
            TWO,
            ["missing_close"],
        ),
        (
            "glm47",
            GLM.format("<arg_key>a</arg_key><arg_value>1") + "<tool_call>g</tool_call>",
            [*ONE, ("g", {})],
            ["missing_close"],
        ),
        ("glm47", GLM.format("<arg_key>a</arg_key>\n1</arg_value>"), ONE, ["missing_open"]),
        (
            "glm47",
            GLM.format("<arg_key>a</arg_key><arg_value><arg_key>b</arg_key> x</arg_value>"),
            [("f", {"a": "<arg_key>b</arg_key> x"}, "recovered")],
            ["markup_in_value"],
        ),
        (
            "glm47",
            GLM.format("<arg_key>a</arg_key><arg_value></tool_call> x</arg_value>"),
            [("f", {"a": "</tool_call> x"}, "recovered")],
            ["markup_in_value"],
        ),
        ("minimax_m2", MINIMAX.format('<parameter name="a">1'), ONE, ["missing_close"]),
        (
            "minimax_m2",
            MINIMAX.format('<parameter name="a"></parameter></invoke> is literal</parameter>\n'),
            [("f", {"a": "</parameter></invoke> is literal"}, "recovered")],
            ["markup_in_value"],
        ),
    ],
)  # fmt: skip
def test_other_formats(name: str, raw: str, calls: list[Call], codes: list[str]) -> None:
    holds(name, raw, calls, codes)


class Tokenizer:
    """A tokenizer in which only the markers of a call are special tokens."""

    def get_vocab(self) -> dict[str, int]:
        return {"<tool_call>": 1, "</tool_call>": 2, "<|im_end|>": 3}


def with_ids(raw: str, ids: list[int]) -> list[tuple[str, str, str]]:
    parsed = OutputParser.named("qwen3_coder", tokenizer=Tokenizer()).parse(raw, tools=TOOLS, token_ids=ids)
    return [(call.function.name, call.function.arguments, call.status) for call in parsed.tool_calls]


def test_ids_prove_the_end_of_the_turn() -> None:
    raw = "<tool_call>\n<function=f>\n<parameter=a>\n1\n<|im_end|>"
    assert with_ids(raw, [1, 9, 3]) == [("f", '{"a": "1"}', "recovered")]
    assert with_ids(raw + "!", [1, 9]) == [("f", '{"a": "1\\n<|im_end|>!', "incomplete")]


def test_a_spelled_close_is_part_of_the_value() -> None:
    """The value quotes a call in ordinary tokens; only the last close is a special token."""
    raw = QWEN.format(f"<parameter=a>\n{QUOTED}\n</parameter>")
    assert with_ids(raw, [1, 9, 2]) == [("f", f'{{"a": "{QUOTED}"}}'.replace("\n", "\\n"), "recovered")]


def test_a_missing_close_with_ids() -> None:
    raw = QWEN.format("<parameter=a>\n1") + "\n" + NEXT
    expected = [("f", '{"a": "1"}', "recovered"), ("g", '{"a": "1"}', "ok")]
    assert with_ids(raw, [1, 9, 2, 9, 1, 9, 2]) == expected


def tagged() -> list[str]:
    """Every format whose canonical calls have tagged arguments."""
    found = []
    for name, fmt in FORMATS.items():
        body = fmt.tools[0].body if fmt.tools else None
        if isinstance(body, NamedBody) and isinstance(body.arguments, TaggedArguments):
            found.append(name)
    return found


@pytest.mark.parametrize("drift", ["missing", "missing last", "doubled", "misspelled"])
@pytest.mark.parametrize("name", tagged())
def test_every_tagged_format_recovers(name: str, drift: str) -> None:
    fmt = FORMATS[name]
    body = fmt.tools[0].body
    assert isinstance(body, NamedBody)
    assert isinstance(body.arguments, TaggedArguments)
    arguments = {"a": "one", "b": "two"}
    call = {"type": "function", "function": {"name": "f", "arguments": json.dumps(arguments)}}
    raw = render(fmt, {"role": "assistant", "tool_calls": [call, call]})
    close = body.arguments.value_close.spellings[0]
    if drift == "missing":
        written = raw.replace(close, "", 1)
    elif drift == "missing last":
        written = "".join(raw.rsplit(close, 1))
    elif drift == "doubled":
        written = raw.replace(close, close * 2, 1)
    elif not close.startswith("</"):
        pytest.skip("only a close in angle brackets can be misspelled")
    else:
        written = raw.replace(close, f"{close[:-1]}1>", 1)
    parsed = check(fmt, written, cuts=24, roundtrip=False, tools=TOOLS)
    values = [
        {key: value.strip("\n") for key, value in json.loads(c.function.arguments).items()} for c in parsed.tool_calls
    ]
    assert values == [arguments, arguments]
    statuses = ["recovered", "ok"]
    assert [c.status for c in parsed.tool_calls] == (statuses[::-1] if drift == "missing last" else statuses)
    assert [d.code for d in parsed.diagnostics] == [f"{drift.split()[0]}_close"]


DSML = "<｜DSML｜tool_calls>\n{}\n</｜DSML｜tool_calls>"
PAIR = "<arg_key>a</arg_key><arg_value>1</arg_value>"
INVOKE = '<｜DSML｜invoke name="{}">\n<｜DSML｜parameter name="a" string="true">1</｜DSML｜parameter>'


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("deepseek_v4", DSML.format(INVOKE.format("f") + "\n" + INVOKE.format("g") + "\n</｜DSML｜invoke>")),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n" + NEXT),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n" + NEXT[len("<tool_call>\n") :]),
        ("minimax_m2", MINIMAX.format('{0}\n<invoke name="g">\n{0}\n'.format('<parameter name="a">1</parameter>'))),
        ("glm45", f"<tool_call>f{PAIR}\n<tool_call>g{PAIR}</tool_call>"),
    ],
)
def test_a_call_without_any_close_ends_at_the_next_call(name: str, raw: str) -> None:
    """lucebox#742."""
    holds(name, raw, [*ONE, ("g", {"a": "1"})], ["missing_close"])


def test_a_message_that_follows_ends_a_call_without_closes() -> None:
    one = '<|start|>assistant to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n{}'
    one += "</atem:invoke>\n</atem:function_calls><|eom|>"
    value = '<atem:parameter name="a">1'
    two = one.replace("f<", "g<").replace('"f"', '"g"').format(value + "</atem:parameter>\n")
    holds("muse", one.format(value) + two, [*ONE, ("g", {"a": "1"})], ["missing_close"])


def test_a_call_that_a_value_quotes_is_the_same_with_token_ids() -> None:
    quoted = f"see <tool_call>g{PAIR}</tool_call> there"
    raw = f"<tool_call>f{PAIR}</tool_call>".replace(">1<", f">{quoted}<")
    holds("glm45", raw, [("f", {"a": quoted}, "recovered")], ["markup_in_value"])
    unclosed = f"see <tool_call>g{PAIR}".removesuffix("</arg_value>")
    raw = f"<tool_call>f{PAIR}</tool_call>".replace(">1<", f">{unclosed}<")
    holds("glm45", raw, [("f", {"a": unclosed}, "recovered")], ["markup_in_value"])


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        (
            "deepseek_v4",
            DSML.format(f"{INVOKE.format('f')}\n</｜DSML｜invoke>").replace("</｜DSML｜parameter>", ""),
        ),
        ("glm45", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1\n</tool_call>"),
        ("minimax_m2", MINIMAX.format('<parameter name="a">1\n')),
    ],
)
def test_without_its_close_a_value_loses_the_newline_that_is_written_after_it(name: str, raw: str) -> None:
    holds(name, raw, ONE, ["missing_close"])
    # GLM 4.7 writes no newlines, so this one is the value's.
    holds(
        "glm47",
        "<tool_call>f<arg_key>a</arg_key><arg_value>1\n</tool_call>",
        [("f", {"a": "1\n"}, "recovered")],
        ["missing_close"],
    )


def test_newlines_before_a_close_are_the_values_where_the_format_writes_none() -> None:
    written = MINIMAX.format('<parameter name="a">1\n\n</parameter>\n')
    holds("minimax_m2", written, [("f", {"a": "1\n\n"})], [])


@pytest.mark.parametrize(
    ("written", "calls", "codes"),
    [
        ('<parameter name="a">1</a>\n<parameter name="b">2</parameter>\n', TWO, ["misspelled_close"]),
        ('<parameter name="a">1</a>\n', ONE, ["misspelled_close"]),
        ('<parameter name="a"><a>1</a></parameter>\n', [("f", {"a": "<a>1</a>"})], []),
        ('<parameter name="a"><a>1</a>\n', [("f", {"a": "<a>1</a>"}, "recovered")], ["missing_close"]),
        ('<parameter name="a">1</a>, 2</parameter>\n', [("f", {"a": "1</a>, 2"})], []),
    ],
)
def test_a_close_that_is_named_after_the_argument(written: str, calls: list[Call], codes: list[str]) -> None:
    """claude-code#83088: ``<parameter name="content">…</content>``."""
    holds("minimax_m2", MINIMAX.format(written), calls, codes)
    holds("minimax_m2", MINIMAX.format(written), calls, codes, tools=None)


def test_the_close_of_a_key_in_place_of_that_of_a_value() -> None:
    pair = "<arg_key>b</arg_key><arg_value>2</arg_value>"
    holds("glm47", GLM.format(f"<arg_key>a</arg_key><arg_value>1</arg_key>{pair}"), TWO, ["misspelled_close"])
    quoted = "<arg_key>1</arg_key>"
    calls: list[Call] = [("f", {"a": quoted, "b": "2"}, "recovered")]
    holds("glm47", GLM.format(f"<arg_key>a</arg_key><arg_value>{quoted}{pair}"), calls, ["missing_close"])


def test_other_spellings_of_the_tags_of_arguments_are_reported() -> None:
    raw = DSML.format(INVOKE.format("f") + "\n</｜DSML｜invoke>")
    other = raw.replace("</｜DSML｜parameter>", "</｜｜DSML｜｜parameter>")
    holds("deepseek_v4", other, [("f", {"a": "1"})], ["variant_spelling"])


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("qwen3_coder", QWEN.format("<parameter=a>\n1\n</parameter>\nDone.")),
        ("glm47", GLM.format("<arg_key>a</arg_key><arg_value>1</arg_value>\nDone.\n")),
        ("minimax_m2", MINIMAX.format('<parameter name="a">1</parameter>\n\nDone, all.\n')),
    ],
)
def test_stray_lines_after_the_last_argument(name: str, raw: str) -> None:
    holds(name, raw, ONE, ["text_between_arguments"])


def test_text_on_the_line_of_a_quoted_close_is_not_stray() -> None:
    raw = QWEN.format("<parameter=a>\n1 ends with </parameter> always")
    holds(
        "qwen3_coder",
        raw,
        [("f", {"a": "1 ends with </parameter> always"}, "recovered")],
        ["markup_in_value", "missing_close"],
    )


@pytest.mark.parametrize(
    ("name", "raw", "calls", "codes", "content"),
    [
        (
            "glm45",
            "<tool_call>f\n<arg_key>a</arg_key>\n"
            '<arg_value>print("</arg_value></tool_call>")\nx = 1</arg_value>\n</tool_call>',
            [("f", {"a": 'print("</arg_value></tool_call>")\nx = 1'}, "recovered")],
            ["markup_in_value"],
            None,
        ),
        (
            "qwen3_coder",
            QWEN.format("<parameter=a>\nprint('</parameter>')\n</parameter>"),
            [("f", {"a": "print('</parameter>')"}, "recovered")],
            ["markup_in_value"],
            None,
        ),
        (
            "minimax_m2",
            MINIMAX.format('<parameter name="a">say "x"</parameter>\n'),
            [("f", {"a": 'say "x"'})],
            [],
            None,
        ),
    ],
)
def test_closes_between_two_quotation_marks_are_text(
    name: str, raw: str, calls: list[Call], codes: list[str], content: str | None
) -> None:
    start = "</think>\n" if name == "minimax_m2" else ""
    expected = {"tool_calls": calls, "diagnostics": codes, "content": content}
    check(name, start + raw, expected, exhaustive=True, roundtrip=False, tools=TOOLS)


@pytest.mark.parametrize(
    ("raw", "calls", "codes", "content"),
    [
        (
            "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter></function> some junk </tool_call>",
            [("f", {"a": "1"}, "recovered")],
            ["stray_text"],
            None,
        ),
        (
            f"<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter></function> and so</tool_call>\n{NEXT}",
            [("f", {"a": "1"}, "recovered"), ("g", {"a": "1"})],
            ["stray_text"],
            None,
        ),
        (
            "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\nSo much for that.",
            [("f", {"a": "1"})],
            ["missing_close"],
            "So much for that.",
        ),
    ],
)
def test_stray_text_between_closes(raw: str, calls: list[Call], codes: list[str], content: str | None) -> None:
    found = check("qwen3_coder", raw, tools=TOOLS, exhaustive=True, roundtrip=False)
    statuses = [c.status for c in found.tool_calls]
    assert [(c.function.name, json.loads(c.function.arguments)) for c in found.tool_calls] == [c[:2] for c in calls]
    assert statuses == [c[2] if len(c) > 2 else "ok" for c in calls]
    assert ([d.code for d in found.diagnostics], (found.content or "").strip() or None) == (codes, content)


def test_stray_text_before_the_close_of_the_section() -> None:
    raw = '</think>\n<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke> {} '
    found = check(
        "minimax_m2", raw.format("so") + "</minimax:tool_call>", tools=TOOLS, exhaustive=True, roundtrip=False
    )
    assert [(c.function.arguments, c.status) for c in found.tool_calls] == [('{"a": "1"}', "recovered")]
    assert ([d.code for d in found.diagnostics], found.content) == (["stray_text"], None)


@pytest.mark.parametrize(
    ("value", "arguments", "codes", "content"),
    [
        ("NYC</tool_call>\nLet me see.", {"a": "NYC"}, ["missing_close"], "Let me see."),
        (
            "NYC</tool_call> Let me see.</arg_value></tool_call>",
            {"a": "NYC</tool_call> Let me see."},
            ["markup_in_value"],
            None,
        ),
        (
            "one\ntwo</tool_call>\nthree</arg_value></tool_call>",
            {"a": "one\ntwo</tool_call>\nthree"},
            ["markup_in_value"],
            None,
        ),
    ],
)
def test_a_value_of_one_line_ends_at_the_close_of_the_call_and_of_its_line(
    value: str, arguments: dict[str, str], codes: list[str], content: str | None
) -> None:
    raw = f"<tool_call>f<arg_key>a</arg_key><arg_value>{value}"
    found = check("glm45", raw, tools=TOOLS, exhaustive=True, roundtrip=False)
    (call,) = found.tool_calls
    assert (json.loads(call.function.arguments), call.status) == (arguments, "recovered")
    assert ([d.code for d in found.diagnostics], (found.content or "").strip() or None) == (codes, content)


@pytest.mark.parametrize(
    ("name", "raw", "calls", "codes"),
    [
        (
            "qwen3_coder",
            '<tool_call><function=f>{"a": "2*3"}</function></tool_call>',
            [("f", {"a": "2*3"})],
            ["variant_spelling"],
        ),
        (
            "qwen3_coder",
            '<function=f>\n{"a": "1"}\n</function>',
            [("f", {"a": "1"})],
            ["variant_spelling", "unclosed_call"],
        ),
        ("glm45", '<tool_call>f\n{"a": "1"}</tool_call>', [("f", {"a": "1"})], ["variant_spelling"]),
        ("qwen3_coder", "<function=f>{x}</function>", [], ["call_like_text"]),
        ("qwen3_coder", "Write <function=f> and {so on}.", [], ["call_like_text"]),
    ],
)
def test_json_in_place_of_tags(name: str, raw: str, calls: list[Call], codes: list[str]) -> None:
    expected = {"tool_calls": calls, "diagnostics": codes, "content": None if calls else raw}
    check(name, raw, expected, exhaustive=True, roundtrip=False, tools=TOOLS)


_OPENED = {
    "qwen3_coder": ("<tool_call>\n<function=f>\n<parameter=a>\n", "</function>\n</tool_call>"),
    "glm45": ("<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>", "</tool_call>"),
    "minimax_m2": ('<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">', "</invoke>\n</minimax:tool_call>"),
}


@pytest.mark.parametrize("after", ["\nMore text.", "\n", "", ". More text."])
@pytest.mark.parametrize("value", ["x" * 300, "x\n" + "y" * 300, "word " * 80, "a\n" * 200 + "b" * 257])
@pytest.mark.parametrize("name", _OPENED)
def test_a_long_line_without_its_close_is_read_alike_under_any_split(name: str, value: str, after: str):
    """Only the end of the value's last line is kept: how much of it may not depend on the pieces."""
    opened, closes = _OPENED[name]
    text = opened + value + closes + after
    parser = OutputParser.named(name)
    found = []
    for size in (1, 7, 20, 300, len(text)):
        stream = parser.stream(collect=True)
        for i in range(0, len(text), size):
            stream.feed(text[i : i + size])
        stream.finish()
        result = stream.result()
        found.append((result.content, [(call.function.arguments, call.status) for call in result.tool_calls]))
    assert found == [found[0]] * len(found)
