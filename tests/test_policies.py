"""Policies: each setting over the whole catalogue, and its effect on simple outputs."""

from __future__ import annotations

import random
from dataclasses import fields
from typing import Any

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.render import expressible, render
from untemplate.format import Format
from untemplate.formats import entries, named
from untemplate.messages import ParsedOutput
from untemplate.policy import strict_from_environment
from untemplate.testing import PieceTokenizer

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]


def call(name: str = "get_weather", **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


OUTCOMES: dict[str, dict[str, Any]] = {
    "clean": {"content": "", "tool_calls": [call(city="Paris")]},
    "unknown tool": {"content": "", "tool_calls": [call("nobody", city="Paris")]},
    "missing argument": {"content": "", "tool_calls": [call(days=3)]},
    "two calls": {"content": "", "tool_calls": [call(city="Paris"), call(city="Rome", days=2)]},
    "content": {"content": "It rains.", "tool_calls": []},
    "content and call": {"content": "Look:", "tool_calls": [call(city="Paris")]},
    "reasoning": {"reasoning": "Let me see.", "content": "It rains.", "tool_calls": []},
    "reasoning and call": {"reasoning": "Let me see.", "content": "", "tool_calls": [call(city="Paris")]},
}
POLICIES: dict[str, Policy] = {
    "default": Policy(),
    **{f"unknown_tools={v}": Policy(unknown_tools=v) for v in ("content", "drop")},
    **{f"drafts={v}": Policy(drafts=v) for v in ("immediately", "never")},
    "unclosed_reasoning=content": Policy(unclosed_reasoning="content"),
    **{f"malformed_arguments={v}": Policy(malformed_arguments=v) for v in ("repaired", "content")},
    **{f"repair={v}": Policy(repair=v) for v in ("syntax", "schema")},
    **{f"cut_calls={v}": Policy(cut_calls=v) for v in ("content", "drop", "forward_or_content")},
    **{f"recovered_calls={v}": Policy(recovered_calls=v) for v in ("content", "drop")},
    "text_after_calls=drop": Policy(text_after_calls="drop"),
    "length_with_calls=tool_calls": Policy(length_with_calls="tool_calls"),
    "outer_white_space=trim": Policy(outer_white_space="trim"),
    "marker_white_space=keep": Policy(marker_white_space="keep"),
    "strict": Policy(strict=True),
    **{f"parallel_calls={v}": Policy(parallel_calls=v) for v in ("first", "first_rest_as_content")},
    "reasoning_field=inline": Policy(reasoning_field="inline"),
}
FORMATS: dict[str, Format] = {f"{e.kind} {e.name}": e.format for e in entries()}


def cut(text: str, rng: random.Random) -> list[list[str]]:
    middle = rng.randrange(len(text) + 1)
    third = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return [
        list(text),
        [text[:middle], text[middle:]],
        [text[: third[0]], text[third[0] : third[1]], text[third[1] :]],
    ]


def streamed(parser: OutputParser, pieces: list[str], reason: str) -> ParsedOutput:
    stream = parser.stream(tools=TOOLS, seed=1, collect=True)
    for piece in pieces:
        stream.feed(piece)
    stream.finish(reason)
    return stream.result()


def outputs(fmt: Format) -> list[tuple[str, str]]:
    """Return outputs with their finish reasons: whole ones, ones that end inside a call or reasoning, and more."""
    texts = [render(fmt, message) for message in OUTCOMES.values() if expressible(fmt, message, TOOLS) is None]
    cut_off = [(text[: len(text) * 2 // 3], "length") for text in texts]
    return [(text, "stop") for text in texts] + cut_off + [(text + "\nMore.", "stop") for text in texts]


def agree(name: str, count: int | None) -> None:
    """Check ``count`` outputs, or all, of a format under each policy: whole and streamed they mean the same."""
    fmt = FORMATS[name]
    rng = random.Random(name)
    found = outputs(fmt)
    for label, policy in POLICIES.items():
        parser = OutputParser.from_format(fmt, policy=policy)
        for raw, reason in found if count is None else rng.sample(found, min(count, len(found))):
            whole = parser.parse(raw, tools=TOOLS, finish_reason=reason, seed=1)
            for pieces in cut(raw, rng):
                assert streamed(parser, pieces, reason) == whole, f"{label}: {pieces}"


@pytest.mark.parametrize("name", FORMATS)
def test_whole_and_streamed_agree(name: str) -> None:
    """Two outputs a policy: each of the 24 meets each policy in about ten formats."""
    agree(name, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMATS)
def test_whole_and_streamed_agree_for_all_outputs(name: str) -> None:
    agree(name, None)


@pytest.mark.parametrize("name", FORMATS)
def test_clean_output_is_the_same_under_every_policy_on_calls(name: str) -> None:
    fmt = FORMATS[name]
    message = OUTCOMES["clean"]
    if expressible(fmt, message, TOOLS) is not None:
        pytest.skip("the format has no calls")
    raw = render(fmt, message)
    expected = OutputParser.from_format(fmt).parse(raw, tools=TOOLS, seed=1)
    for label in (
        "unknown_tools=drop",
        "malformed_arguments=content",
        "repair=schema",
        "cut_calls=drop",
        "recovered_calls=drop",
        "strict",
        "parallel_calls=first",
    ):
        parsed = OutputParser.from_format(fmt, policy=POLICIES[label]).parse(raw, tools=TOOLS, seed=1)
        assert parsed == expected, label


SPACED: list[dict[str, Any]] = [
    {"reasoning": " \tHm. \n ", "content": "\n  It rains. \n\t"},
    {"reasoning": "\n Hm.\t", "content": "  It rains.  ", "tool_calls": [call(city="Paris"), call(city="Rome")]},
    {"content": "\t\n It rains.\t ", "tool_calls": [call(city="Paris")]},
    {"content": "\n\nIt rains.\n\n"},
    {"reasoning": "Hm. \n\n\n", "content": "", "tool_calls": [call(city="Paris")]},
]


@pytest.mark.parametrize("name", FORMATS)
def test_white_space_at_markers_comes_back_if_it_is_kept(name: str) -> None:
    fmt = FORMATS[name]
    start = None if fmt.turn.start is None else fmt.turn.start.text
    parser = OutputParser.from_format(fmt, policy=Policy(marker_white_space="keep"))
    rng = random.Random(name)
    for message in SPACED:
        bare = {key: value.strip() if isinstance(value, str) else value for key, value in message.items()}
        if expressible(fmt, bare, TOOLS) is not None:
            continue
        for prompt in (None, start):
            raw = render(fmt, message)
            parsed = parser.parse(raw, tools=TOOLS, prompt=prompt)
            texts = (parsed.reasoning or "", parsed.content or "", len(parsed.tool_calls))
            expected = (message.get("reasoning", ""), message["content"], len(message.get("tool_calls", ())))
            assert texts == expected, (raw, prompt)
            for pieces in cut(raw, rng):
                stream = parser.stream(tools=TOOLS, prompt=prompt, collect=True)
                for piece in pieces:
                    stream.feed(piece)
                stream.finish("stop")
                result = stream.result()
                assert (result.reasoning or "", result.content or "", len(result.tool_calls)) == expected, pieces


class Padded:
    """A tokenizer with a special token that the format does not know."""

    all_special_tokens = ("<|pad|>",)

    def get_vocab(self) -> dict[str, int]:
        return {"<|pad|>": 0}


@pytest.mark.parametrize(
    ("raw", "content", "calls"),
    [
        ("Look: \n\n{0}", "Look: \n", 1),
        ("Look: {0} Done. ", "Look:  Done. ", 1),
        ("\n \n{0}", None, 1),
        ("Look.\n{0}\n \n\n{0}", "Look.", 2),
        ("Look.  </tool_call>", "Look.  </tool_call>", 0),
        ("Look.  <|im_end|>", "Look.  ", 0),
        ("Look.  <tool_call> it", "Look.  <tool_call> it", 0),
        ("</think>\n\n\n Look.", "\n Look.", 0),
        ("</think>\n\n <tool_call> it", " <tool_call> it", 0),
        ("Look.\n <tool_call></tool_call> Done.", "Look.\n  Done.", 0),
        ("Look. \n<|pad|>", "Look. \n", 0),
    ],
)
def test_kept_white_space_is_that_next_to_text(raw: str, content: str | None, calls: int) -> None:
    raw = raw.replace("{0}", KNOWN)
    policy = Policy(marker_white_space="keep")
    parser = OutputParser.named("hermes", reasoning="qwen3", tokenizer=Padded(), policy=policy)
    parsed = parser.parse(raw, tools=TOOLS)
    assert (parsed.content, len(parsed.tool_calls)) == (content, calls)


def test_white_space_is_kept_in_reasoning_that_closes_after_a_draft() -> None:
    raw = f"<think>\nOr \n{KNOWN} \n</think>\n\n No."
    parsed = OutputParser.named("hermes", reasoning="qwen3", policy=Policy(marker_white_space="keep")).parse(raw)
    assert (parsed.reasoning, parsed.content, parsed.tool_calls) == (f"Or \n{KNOWN} ", " No.", [])


def hermes(**settings: Any) -> OutputParser:
    return OutputParser.named("hermes", reasoning="qwen3", policy=Policy(**settings))


def summary(parsed: ParsedOutput) -> tuple[str | None, str | None, list[tuple[str, str, str]]]:
    calls = [(c.function.name, c.function.arguments, c.status) for c in parsed.tool_calls]
    return parsed.reasoning_content, parsed.content, calls


UNKNOWN = '<tool_call>\n{"name": "nobody", "arguments": {"x": 1}}\n</tool_call>'
KNOWN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("forward", (None, None, [("nobody", '{"x": 1}', "unknown_tool"), ("get_weather", '{"city": "Paris"}', "ok")])),
        ("content", (None, UNKNOWN, [("get_weather", '{"city": "Paris"}', "ok")])),
        ("drop", (None, None, [("get_weather", '{"city": "Paris"}', "ok")])),
    ],
)
def test_unknown_tools(setting: str, expected: Any) -> None:
    """sglang#12226 wants such calls forwarded, vllm#37790 wants them rejected: both are policies."""
    parsed = hermes(unknown_tools=setting).parse(UNKNOWN + "\n" + KNOWN, tools=TOOLS)
    assert summary(parsed) == expected
    assert [d.code for d in parsed.diagnostics] == (["dropped_call"] if setting == "drop" else [])


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("recover", ("Hm.", None, [("get_weather", '{"city": "Paris"}', "ok")])),
        ("immediately", ("Hm.", None, [("get_weather", '{"city": "Paris"}', "ok")])),
        ("never", ("Hm.\n" + KNOWN, None, [])),
    ],
)
def test_drafts(setting: str, expected: Any) -> None:
    assert summary(hermes(drafts=setting).parse("<think>Hm.\n" + KNOWN, tools=TOOLS)) == expected


@pytest.mark.parametrize(
    ("setting", "reason", "expected"),
    [
        ("reasoning", "stop", ("The answer is 4.", None, [])),
        ("content", "stop", (None, "The answer is 4.", [])),
        ("content", "length", ("The answer is 4.", None, [])),
    ],
)
def test_unclosed_reasoning(setting: str, reason: str, expected: Any) -> None:
    """antirez/ds4#1087: 9 of 100 answers were emptied."""
    parsed = hermes(unclosed_reasoning=setting).parse("<think>The answer is 4.", finish_reason=reason)
    assert summary(parsed) == expected


BROKEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": "3",}}\n</tool_call>'


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [("get_weather", '{"city": "Paris", "days": "3",}', "invalid_json")]),
        ({"repair": "syntax"}, [("get_weather", '{"city": "Paris", "days": "3"}', "invalid_arguments")]),
        ({"malformed_arguments": "repaired"}, [("get_weather", '{"city": "Paris", "days": "3"}', "invalid_arguments")]),
        ({"repair": "schema"}, [("get_weather", '{"city": "Paris", "days": 3}', "repaired")]),
        ({"strict": True}, []),
        ({"strict": True, "repair": "schema"}, [("get_weather", '{"city": "Paris", "days": 3}', "repaired")]),
    ],
)
def test_repair(settings: dict[str, Any], expected: Any) -> None:
    parsed = hermes(**settings).parse(BROKEN, tools=TOOLS)
    assert summary(parsed) == (None, None, expected)


def test_what_was_repaired_is_said() -> None:
    parsed = hermes(repair="schema").parse(BROKEN, tools=TOOLS)
    assert parsed.tool_calls[0].repairs == ["removed_commas", "coerced_string"]


def test_malformed_arguments_as_content() -> None:
    parsed = hermes(malformed_arguments="content").parse("Look: " + BROKEN, tools=TOOLS)
    assert summary(parsed) == (None, "Look: " + BROKEN, [])
    assert parsed.finish_reason == "stop"


TWICE = KNOWN.replace('"city": "Paris"', '"city": "Rome", "city": "Paris"')


@pytest.mark.parametrize(
    ("setting", "content", "statuses", "codes"),
    [
        ("forward", None, ["recovered", "ok"], ["repeated_key"]),
        ("content", TWICE, ["ok"], []),
        ("drop", None, ["ok"], ["dropped_call"]),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_recovered_calls(
    setting: str,
    content: str | None,
    statuses: list[str],
    codes: list[str],
    size: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client behind a gateway sees no status, and ran the call with the second of two values."""
    raw = f"{TWICE}\n{KNOWN}"
    parsed = streamed(hermes(recovered_calls=setting), [raw[i : i + size] for i in range(0, len(raw), size)], "stop")
    assert (parsed.content and parsed.content.strip(), [call.status for call in parsed.tool_calls]) == (
        content,
        statuses,
    )
    assert [diagnostic.code for diagnostic in parsed.diagnostics] == codes
    assert parsed.finish_reason == "tool_calls"
    dropped = ["dropped call of 'get_weather': it is recovered, as its diagnostics say"]
    assert [record.getMessage() for record in caplog.records] == (dropped if setting == "drop" else [])


@pytest.mark.parametrize(("setting", "expected"), [("keep", "Look:\nDone. "), ("drop", "Look:")])
def test_text_after_calls(setting: str, expected: str) -> None:
    parsed = hermes(text_after_calls=setting).parse("Look: " + KNOWN + "\nDone. ", tools=TOOLS)
    assert parsed.content == expected


CUT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa'


@pytest.mark.parametrize(
    ("setting", "expected", "codes"),
    [
        (
            "forward",
            (None, None, [("get_weather", '{"city": "Paris"}', "ok"), ("get_weather", '{"city": "Pa', "incomplete")]),
            ["incomplete_call"],
        ),
        ("content", (None, f"\n{CUT}", [("get_weather", '{"city": "Paris"}', "ok")]), []),
        ("drop", (None, None, [("get_weather", '{"city": "Paris"}', "ok")]), ["dropped_call"]),
        (
            "forward_or_content",
            (None, None, [("get_weather", '{"city": "Paris"}', "ok"), ("get_weather", '{"city": "Pa', "incomplete")]),
            ["incomplete_call"],
        ),
    ],
)
def test_cut_calls(setting: str, expected: Any, codes: list[str]) -> None:
    """vllm#57699: a cut ``rm -rf /`` must not run."""
    parsed = hermes(cut_calls=setting).parse(f"{KNOWN}\n{CUT}", tools=TOOLS, finish_reason="length")
    assert summary(parsed) == expected
    assert [diagnostic.code for diagnostic in parsed.diagnostics] == codes


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("forward", "stop"),
        ("content", "tool_calls"),
        ("drop", "tool_calls"),
        ("forward_or_content", "stop"),
    ],
)
def test_an_output_that_ends_in_a_cut_call_does_not_finish_with_tool_calls(setting: str, expected: str) -> None:
    parser = hermes(cut_calls=setting)
    assert parser.parse(f"{KNOWN}\n{CUT}", tools=TOOLS).finish_reason == expected
    stream = parser.stream(tools=TOOLS)
    stream.feed(f"{KNOWN}\n{CUT}")
    stream.finish("stop")
    assert stream.finish_reason == expected


@pytest.mark.parametrize(
    ("setting", "tail", "expected"),
    [
        ("length", "", "length"),
        ("tool_calls", "", "tool_calls"),
        ("tool_calls", '<tool_call>{"name": "get', "tool_calls"),
    ],
)
def test_length_with_calls(setting: str, tail: str, expected: str) -> None:
    parsed = hermes(length_with_calls=setting).parse(KNOWN + tail, tools=TOOLS, finish_reason="length")
    assert parsed.finish_reason == expected


def test_a_call_that_was_cut_never_becomes_tool_calls() -> None:
    """vllm#58228: 25 of 3,600 outputs hid that they were cut."""
    parsed = hermes(length_with_calls="tool_calls").parse(KNOWN[:-30], tools=TOOLS, finish_reason="length")
    assert (parsed.finish_reason, parsed.tool_calls[0].status) == ("length", "incomplete")


@pytest.mark.parametrize(("setting", "expected"), [("keep", "\n Hi \n"), ("trim", "Hi")])
def test_outer_white_space(setting: str, expected: str) -> None:
    assert hermes(outer_white_space=setting).parse("\n Hi \n").content == expected


@pytest.mark.parametrize(
    ("setting", "names", "content"),
    [
        ("all", ["get_weather", "get_weather"], None),
        ("first", ["get_weather"], None),
        ("first_rest_as_content", ["get_weather"], "\n" + KNOWN),
    ],
)
def test_parallel_calls(setting: str, names: list[str], content: str | None) -> None:
    """vllm#9451, sglang#9696."""
    parsed = hermes(parallel_calls=setting).parse(KNOWN + "\n" + KNOWN, tools=TOOLS)
    assert ([c.function.name for c in parsed.tool_calls], parsed.content) == (names, content)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("reasoning", {"role": "assistant", "content": "b", "reasoning": "a"}),
        ("reasoning_content", {"role": "assistant", "content": "b", "reasoning_content": "a"}),
        ("both", {"role": "assistant", "content": "b", "reasoning": "a", "reasoning_content": "a"}),
        ("inline", {"role": "assistant", "content": "<think>\na\n</think>\n\nb"}),
    ],
)
def test_reasoning_field(setting: str, message: dict[str, str]) -> None:
    """vllm#50624: 299 of 310 chunks were silently None for old clients."""
    parser = hermes(reasoning_field=setting)
    assert parser.parse("<think>a</think>b").message(reasoning_field=setting) == message
    stream = parser.stream()
    dumps = [stream.dump(d) for x in "<think>a</think>b" for d in stream.feed(x)] + [
        stream.dump(d) for d in stream.finish()
    ]
    keys = set(message) - {"role"}
    assert {k for d in dumps for k in d} == keys


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"UNTEMPLATE_STRICT_TOOL_CALL": "1"}, True),
        ({"VLLM_RS_STRICT_TOOL_CALL": "true"}, True),
        ({"UNTEMPLATE_STRICT_TOOL_CALL": "0", "VLLM_RS_STRICT_TOOL_CALL": "1"}, False),
        ({"UNTEMPLATE_STRICT_TOOL_CALL": "False"}, False),
    ],
)
def test_strict_from_the_environment(environment: dict[str, str], expected: bool) -> None:
    assert strict_from_environment(environment) is expected


def test_a_bad_environment_is_an_error_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNTEMPLATE_STRICT_TOOL_CALL", "yes")
    with pytest.raises(ValueError, match="STRICT") as error:
        OutputParser.named("hermes")
    assert str(error.value) == "UNTEMPLATE_STRICT_TOOL_CALL: 'yes' is not one of: 1, true, 0, false"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drafts": "maybe"}, "policy drafts: 'maybe' is not one of: 'recover', 'immediately', 'never'"),
        ({"strict": "yes"}, "policy strict: 'yes' is not one of: True, False, None"),
        ({"max_held": 0}, "policy max_held: 0 is not a positive number of characters"),
        ({"reasoning_format": "x"}, "policy reasoning_format: 'x' is not one of: 'auto', 'none', 'deepseek'"),
        (
            {"draft": "never"},
            "policy draft: there is none; there are: " + ", ".join(sorted(f.name for f in fields(Policy))),
        ),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="policy") as error:
        Policy.from_mapping(settings)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("word", "field"), [("auto", "reasoning"), ("none", "inline"), ("deepseek", "reasoning_content")]
)
def test_reasoning_format_is_llama_cpps_word(word: str, field: str) -> None:
    assert Policy.from_mapping({"reasoning_format": word}).reasoning_field == field


@pytest.mark.parametrize("cut_calls", ["forward", "forward_or_content", "content", "drop"])
@pytest.mark.parametrize("name", ["cohere_command3", "hermes+qwen3", "kimi_k2", "deepseek_v31"])
def test_a_close_that_is_cut_after_a_call_in_reasoning_is_no_text(name: str, cut_calls: Any) -> None:
    """The beginning of a close ends the output after calls in reasoning as it does after calls in content."""
    parser = OutputParser.named(name)
    reasoning = parser.format.reasoning
    assert reasoning is not None
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    raw = parser.render({"role": "assistant", "reasoning": "Hm.", "tool_calls": [call]})
    thought = raw.partition("Hm.")[0] + "Hm."
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    found = raw.partition(reasoning.close.text)[2]
    for end in range(found.index("1}") + 2, len(found) + 1):
        if found[:end].rstrip()[-1:] == "<":  # a sign alone is text
            continue
        results = [
            parser.parse(output, tools=tools, policy=Policy(cut_calls=cut_calls))
            for output in (thought + found[:end], thought + reasoning.close.text + found[:end])
        ]
        ids = [[(c.function.name, c.function.arguments) for c in r.tool_calls] for r in results]
        assert ids[0] == ids[1], found[:end]
        assert [r.content for r in results] == [None, None], found[:end]
        assert results[0].reasoning == "Hm." or not ids[0], found[:end]


@pytest.mark.parametrize("name", ["cohere_command3", "hermes+qwen3", "kimi_k2", "deepseek_v31"])
def test_a_close_of_reasoning_that_is_cut_after_a_call_closes_it(name: str) -> None:
    parser = OutputParser.named(name)
    assert parser.format.reasoning is not None
    close = parser.format.reasoning.close.text.strip()
    whole = parser.render({"role": "assistant", "reasoning": "Hm.", "tool_calls": [call(city="Paris")]})
    before, _, after = whole.partition(close)
    end = "".join(parser.format.turn.end.spellings[:1]) if parser.format.turn.end is not None else ""
    thought = before + after.strip().removesuffix(end)
    expected = parser.parse(thought + close, tools=TOOLS, seed=1)
    assert [found.status for found in expected.tool_calls] == ["ok"]
    for size in range(2, len(close)):
        parsed = parser.parse(thought + close[:size], tools=TOOLS, seed=1)
        got = (parsed.reasoning, parsed.content, parsed.tool_calls, [found.code for found in parsed.diagnostics])
        assert got == (expected.reasoning, None, expected.tool_calls, ["stray_close"]), close[:size]


def test_words_that_begin_as_a_close_of_reasoning_does_are_reasoning() -> None:
    """Granite closes its reasoning with a sentence."""
    parser = OutputParser.named("granite")
    raw = "Here is my thought process: Hm.\n" + '<|tool_call|>[{"name": "get_weather", "arguments": {}}]\nHere'
    parsed = parser.parse(raw, tools=TOOLS)
    assert (parsed.tool_calls, parsed.content) == ([], None)
    assert parsed.reasoning is not None
    assert parsed.reasoning.endswith("\nHere")
    assert [found.code for found in parsed.diagnostics] == ["call_like_text"]


def test_a_close_of_reasoning_that_is_a_special_token_cannot_be_cut() -> None:
    special = ("<think>", "</think>", "<tool_call>", "</tool_call>")
    tokenizer = PieceTokenizer(special)
    parser = OutputParser.from_format(named("hermes", reasoning="qwen3"), tokenizer=tokenizer)
    raw = '<think>Hm.<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>\n</thi'
    assert parser.parse(raw, tools=TOOLS).tools_called
    assert not parser.parse(raw, token_ids=tokenizer.encode(raw), tools=TOOLS).tools_called
