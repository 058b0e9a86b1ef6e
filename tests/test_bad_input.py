"""Bad input: noise, hostile repeats and sizes. Nothing raises, nothing is lost, work and memory stay bounded."""

from __future__ import annotations

import gc
import json
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from untemplate import OutputParser, Policy
from untemplate.format import (
    Channels,
    Format,
    FormatError,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
    Turn,
)
from untemplate.messages import ParsedOutput
from untemplate.testing import PieceTokenizer, check

from .work import function_calls, lines_run

FAMILIES = [
    "hermes",
    "qwen3_coder",
    "glm45",
    "deepseek_v3",
    "deepseek_v32",
    "llama3_json",
    "pythonic",
    "mistral",
    "kimi_k2",
    "gpt-oss",
    "gemma4",
    "cohere_command3",
]
LARGE = 1 << 18


def parse(name: str, text: str, size: int = 1 << 14, **context: Any) -> ParsedOutput:
    """Parse in pieces of a size, and check that the ledger covers the output without a gap."""
    stream = OutputParser.named(name).stream(collect=True, spans=True, **context)
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
    stream.finish()
    result = stream.result()
    edges = [0, *(edge for span in result.spans for edge in (span.start, span.end)), len(text)]
    assert edges[::2] == edges[1::2]
    return result


class TestNoise:
    @pytest.mark.parametrize("name", FAMILIES)
    def test_random_bytes(self, name: str) -> None:
        noise = random.Random(zlib.crc32(name.encode())).randbytes(2000).decode("latin-1")
        check(name, noise, cuts=12)

    @pytest.mark.parametrize("name", FAMILIES)
    @pytest.mark.parametrize("text", ["\0" * 50, "a\0b", "\ud800", "x\udfff\ud800y", "\ufeff\ufffe", "\r\r\n\r"])
    def test_odd_characters_are_text(self, name: str, text: str) -> None:
        assert parse(name, text, 1).message() == {"role": "assistant", "content": text}

    def test_lone_surrogates_and_nuls_in_arguments(self) -> None:
        raw = '<tool_call>{"name": "f", "arguments": {"a": "\0\ud83d", "b": "\\ud83d"}}</tool_call>'
        (call,) = parse("hermes", raw, 1).tool_calls
        assert call.function.arguments == '{"a": "\0\ud83d", "b": "\\ud83d"}'

    def test_lone_surrogates_and_nuls_in_tagged_values(self) -> None:
        raw = "<tool_call>\n<function=f>\n<parameter=a>\n\0\ud83d\n</parameter>\n</function>\n</tool_call>"
        (call,) = parse("qwen3_coder", raw, 1).tool_calls
        assert json.loads(call.function.arguments) == {"a": "\0\ud83d"}
        assert call.status == "ok"


class TestSizes:
    @pytest.mark.parametrize("name", FAMILIES)
    @pytest.mark.parametrize("letter", ["x", "<", "{", " ", "\\"])
    def test_a_quarter_of_a_megabyte_without_a_newline(self, name: str, letter: str) -> None:
        text = "x" + letter * LARGE
        assert parse(name, text).message() == {"role": "assistant", "content": text}

    @pytest.mark.parametrize("opener", ["[", "{", '{"a":', "[{", "("])
    @pytest.mark.parametrize("name", FAMILIES)
    def test_deep_brackets_as_text(self, name: str, opener: str) -> None:
        text = opener * 20_000
        assert parse(name, text).message() == {"role": "assistant", "content": text}

    def test_deep_brackets_in_json_arguments(self) -> None:
        deep = '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}"
        raw = f'<tool_call>{{"name": "f", "arguments": {deep}}}</tool_call>'
        (call,) = parse("hermes", raw).tool_calls
        assert (call.function.name, call.function.arguments) == ("f", deep)

    def test_deep_brackets_in_python_arguments(self) -> None:
        deep = "[" * 20_000 + "]" * 20_000
        tools = [{"type": "function", "function": {"name": "f"}}]
        (call,) = parse("pythonic", f"[f(a={deep})]", tools=tools).tool_calls
        assert (call.function.name, call.function.arguments) == ("f", f'{{"a": {deep}}}')

    def test_deep_brackets_in_tagged_values(self) -> None:
        """Brackets nested more deeply than Python's JSON reader allows: the whole text is kept, not a list."""
        deep = "[" * 100_000 + "]" * 100_000
        tools = [
            {
                "type": "function",
                "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "array"}}}},
            }
        ]
        raw = f"<function=f>\n<parameter=a>\n{deep}\n</parameter>\n</function>"
        (call,) = parse("qwen3_coder", raw, tools=tools).tool_calls
        assert (call.function.name, call.function.arguments) == ("f", f'{{"a": "{deep}"}}')

    def test_a_huge_name_in_json_is_a_name(self) -> None:
        huge = "n" * 200_000
        result = parse("hermes", f'<tool_call>{{"name": "{huge}", "arguments": {{}}}}</tool_call>')
        assert result.content is None
        assert [(c.function.name, c.function.arguments) for c in result.tool_calls] == [(huge, "{}")]

    @pytest.mark.parametrize(
        ("name", "raw"),
        [
            ("qwen3_coder", "<tool_call>\n<function=%s>\n</function>\n</tool_call>"),
            ("kimi_k2", "<|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>{}<|tool_call_end|>"),
        ],
    )
    def test_a_huge_name_between_markers_is_text(self, name: str, raw: str) -> None:
        text = raw % ("n" * 200_000)
        assert parse(name, text).message() == {"role": "assistant", "content": text}

    def test_a_huge_key(self) -> None:
        key = "k" * 200_000
        arguments = f'{{"{key}": 1}}'
        raw = f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'
        assert [c.function.arguments for c in parse("hermes", raw).tool_calls] == [arguments]

    @pytest.mark.parametrize(
        ("name", "call", "name_and_arguments"),
        [
            ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n', ("f", '{"a": 1}')),
            ("qwen3_coder", "<tool_call><function=f></function></tool_call>\n", ("f", "{}")),
            ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}', ("f", '{"a": 1}')),
            ("gemma4", "<|tool_call>call:f{a:1}<tool_call|>", ("f", '{"a": 1}')),
        ],
    )
    def test_thousands_of_calls(self, name: str, call: str, name_and_arguments: tuple[str, str]) -> None:
        result = parse(name, call * 3000)
        assert [(c.function.name, c.function.arguments) for c in result.tool_calls] == [name_and_arguments] * 3000
        assert len({c.id for c in result.tool_calls}) == 3000
        assert (result.content, result.reasoning_content) == (None, None)


HOSTILE = [
    ("hermes", "", "<"),
    ("hermes", "", " "),
    ("hermes", "", "<tool_call"),
    ("hermes", "", "<tool_call>"),
    ("hermes", "", "<tool_call>{"),
    ("hermes", "", '<tool_call>{"name": "'),
    ("hermes", "", "<tool_call>[{"),
    ("hermes", "", "</tool_call>"),
    ("hermes", '<tool_call>{"arguments": ', '{"a": '),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "', "\\"),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "', "</tool_call>"),
    ("hermes", '<tool_call>{"name": "f", "arguments": ', "[{"),
    ("hermes", '<tool_call>{"name": "f", "arguments": {]', "<tool_call>"),
    ("hermes", '<tool_call>{"name": "f", ', '"k": 1, '),
    ("qwen3_coder", "", "<function="),
    ("qwen3_coder", "<function=f>\n<parameter=a>", "</parameter>"),
    ("qwen3_coder", "<function=f>\n<parameter=a>", "</parameter>\n</function>x"),
    ("qwen3_coder", "<function=f>\n<parameter=a>", "\n"),
    ("qwen3_coder", "<function=f>\n<parameter=a>", "</parameter> "),
    ("qwen3_coder", "<function=f>\n", "<parameter="),
    ("glm45", "<tool_call>f\n", "<arg_key>"),
    ("glm45", "<tool_call>f\n<arg_key>a</arg_key><arg_value>", "</arg_value>"),
    ("deepseek_v3", "", "<｜tool▁calls▁begin｜>"),
    ("deepseek_v32", '<｜DSML｜invoke name="f">', "<｜DSML｜"),
    ("llama3_json", "", '{"name": '),
    ("llama3_json", "", "{"),
    ("pythonic", "", "[f("),
    ("pythonic", "", "[f(a=["),
    ("pythonic", "[f(a='", "\\'"),
    ("pythonic", "[f(a=", "{'k': "),
    ("mistral", "", "[TOOL_CALLS]"),
    ("mistral", "", "[TOOL_CALLS][{"),
    ("kimi_k2", "", "<|tool_call_begin|>"),
    ("gpt-oss", "", "<|channel|>"),
    ("gpt-oss", "", "<|start|>assistant"),
    ("gpt-oss", "", "<|channel|>analysis<|message|>"),
    ("gemma4", "", "<|tool_call>call:"),
    ("gemma4", '<|tool_call>call:f{a:<|"|>', "<|"),
    ("cohere_command3", "", "<|START_ACTION|>["),
]


class TestLinearWork:
    @pytest.mark.parametrize(
        ("name", "head", "unit", "reasoning"),
        [
            *((*case, False) for case in HOSTILE),
            *((*case, True) for case in HOSTILE if case[0] != "gpt-oss"),  # channels are their own reasoning
        ],
    )
    def test_of_one_character_at_a_time(self, name: str, head: str, unit: str, reasoning: bool) -> None:
        """Four times the text takes about four times the work; quadratic work would be sixteen times."""
        parser = OutputParser.named(name, reasoning="qwen3" if reasoning else None)

        def work(size: int) -> int:
            text = ("<think>" if reasoning else "") + head + (unit * size)[:size]
            stream = parser.stream()

            def run() -> None:
                for letter in text:
                    stream.feed(letter)
                stream.finish()

            return function_calls(run)

        work(64)  # what is made once
        small, large = work(1000), work(4000)  # the first 256 characters of a header are kept unread
        assert large / small < 6, (small, large)


def kept(parser: OutputParser, pieces: Iterable[str], **context: Any) -> tuple[int, int]:
    """Return the bytes that a stream without ``collect`` keeps while it is fed, and the characters of its output."""
    stream = parser.stream(**context)
    steps = iter(pieces)
    for _ in range(4):
        stream.feed(next(steps))
    said = 0
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for piece in steps:
            for delta in stream.feed(piece):
                said += len(delta.reasoning or "") + len(delta.content or "")
                for call in delta.tool_calls or ():
                    said += len((call.function and call.function.arguments) or "")
        gc.collect()  # what is not reachable is not kept
        return tracemalloc.get_traced_memory()[0] - before, said
    finally:
        tracemalloc.stop()


class TestMemory:
    """Feed a megabyte in pieces of 4 KB; a few kilobytes may be kept."""

    BOUND = 16 * 1024
    TEXT = "A line of text, neither short nor long. " * 102

    @pytest.mark.parametrize(
        ("name", "reasoning", "head"),
        [
            ("hermes", None, "Hello"),
            ("gpt-oss", None, "<|channel|>final<|message|>"),
            ("hermes", "qwen3", "<think>"),
            ("gpt-oss", None, "<|channel|>analysis<|message|>"),
            ("hermes", None, '<tool_call>{"name": "f", "arguments": {"a": "'),
            ("kimi_k2", None, '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "'),
            ("gpt-oss", None, '<|channel|>commentary to=functions.f<|message|>{"a": "'),
            ("llama3_json", None, '{"name": "f", "parameters": {"a": "'),
            ("qwen3_coder", None, "<tool_call>\n<function=f>\n<parameter=a>\n"),
            ("glm45", None, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>"),
            ("pythonic", None, "[f(a='"),
            ("gemma4", None, '<|tool_call>call:f{a:<|"|>'),
        ],
    )
    def test_of_one_long_text(self, name: str, reasoning: str | None, head: str) -> None:
        tools = [
            {
                "type": "function",
                "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
            }
        ]
        # Every piece is a string object of its own, so that a kept one is counted.
        pieces = (head if i == 0 else f"{i:04} {self.TEXT}" for i in range(261))
        size, said = kept(OutputParser.named(name, reasoning=reasoning), pieces, tools=tools)
        assert size < self.BOUND
        assert abs(said - 257 * (len(self.TEXT) + 5)) < 100  # white space and partial markers may wait


MARKER = Marker("<a>")
REASONING = Reasoning(open=Marker("<think>"), close=Marker("</think>"))


def lines(**changed: Any) -> Tools:
    """Return calls whose arguments are on lines of their own."""
    arguments = LiteralArguments(**{"open": "", "close": "", "separator": "\n", **changed})
    return Tools(
        call_open=MARKER, call_close=Marker("</c>"), body=NamedBody(name_close=Marker(">"), arguments=arguments)
    )


TAGGED = TaggedArguments(key_open=Marker("<k>"), key_close=Marker("</k>"), value_close=Marker("</v>"))


class TestFormatsThatCannotWork:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Format(name=""), "name: is empty"),
            (lambda: Format(name="x", turn=Turn(end=Marker(""))), "turn.end: is an empty marker"),
            (
                lambda: Format(name="x", tools=(Tools(call_open=Marker("<a>", ("",))),)),
                "tools[0].call_open: is an empty marker",
            ),
            (
                lambda: Format(name="x", tools=(Tools(call_open="<c>"),)),  # type: ignore[arg-type]
                "tools[0].call_open: '<c>' is a str; write Marker('<c>')",
            ),
            (lambda: Format(name="x", special_tokens=("",)), "special_tokens[0]: is empty"),
            (
                lambda: Format(name="x", reasoning=Reasoning(open=MARKER, close=MARKER)),
                "reasoning.close: '<a>' is already reasoning.open",
            ),
            (
                lambda: Format(name="x", reasoning=REASONING, turn=Turn(end=Marker("</think>"))),
                "turn.end: '</think>' is already reasoning.close",
            ),
            (
                lambda: Format(name="x", reasoning=REASONING, tools=(Tools(call_open=Marker("<think>\n")),)),
                "tools[0].call_open: '<think>' is already reasoning.open",
            ),
            (
                lambda: Format(name="x", tools=(Tools(call_open=MARKER, body=NamedBody(name="name")),)),
                "tools[0].body.name: 'name' does not hold {name}",
            ),
            (
                lambda: Format(
                    name="x",
                    tools=(
                        Tools(
                            call_open=MARKER,
                            body=NamedBody(
                                arguments=TaggedArguments(
                                    key_open=Marker("<k>"), key="k", key_close=Marker(">"), value_close=Marker("</v>")
                                )
                            ),
                        ),
                    ),
                ),
                "tools[0].body.arguments.key: 'k' does not hold {key}",
            ),
            (
                lambda: Format(name="x", tools=(Tools(call_open=MARKER, body=NamedBody(arguments=TAGGED)),)),
                "tools[0].body.arguments_close: is missing: nothing ends a call with tagged arguments",
            ),
            (
                lambda: Format(
                    name="x",
                    tools=(Tools(call_open=MARKER, body=NamedBody(arguments=LiteralArguments(open="(("))),),
                ),
                "tools[0].body.arguments.open: must be one character",
            ),
            (
                lambda: Format(name="x", tools=(lines(separator=", "),)),
                "tools[0].body.arguments.separator: must be a new line: each argument is on a line of its own",
            ),
            (
                lambda: Format(name="x", tools=(lines(close=")"),)),
                "tools[0].body.arguments.close: must be empty, as open is",
            ),
            (
                lambda: Format(name="x", tools=(replace(lines(), call_close=None),)),
                "tools[0].body.arguments_close: is missing: nothing ends a call with lines of arguments",
            ),
            (
                lambda: Format(name="x", tools=(replace(lines(), body=replace(lines().body, name_close=None)),)),
                "tools[0].body.name_close: is missing: nothing ends a name before lines of arguments",
            ),
            (
                lambda: Format(name="x", tools=(Tools(call_open=Marker("[[call "), body=NamedBody()),)),
                "tools[0].body.name_close: is missing: nothing ends a name after '[[call '",
            ),
            (
                lambda: Format(name="x", tools=(Tools(body=JsonBody(name_key="a", arguments_key="a")),)),
                "tools[0].body.arguments_key: 'a' is the name_key as well",
            ),
            (
                lambda: Format(name="x", tools=(Tools(list_open=Marker("[")),)),
                "tools[0].list_close: list_open and list_close go together",
            ),
            (
                lambda: Format(
                    name="x", channels=Channels(open=MARKER, body=Marker("<m>"), reasoning=("c",), content=("c",))
                ),
                "channels.content: 'c' is in channels.reasoning as well",
            ),
            (
                lambda: Format(name="x", channels=Channels(open=MARKER, body=Marker("<m>"))),
                "channels.content: is empty: at least one channel must hold content",
            ),
            (
                lambda: Format(name="x", ids="call"),
                "ids: 'call' is not 'random', 'alphanumeric9' or a pattern with {name} or {index}",
            ),
        ],
    )
    def test_say_where_and_why(self, make: Callable[[], Format], message: str) -> None:
        with pytest.raises(FormatError) as error:
            make()
        assert str(error.value) == message
        assert message == f"{error.value.path}: {error.value.problem}"


def test_threads_share_a_parser() -> None:
    """64 threads give the same results as one, each with different cuts."""
    parser = OutputParser.named("hermes", reasoning="qwen3")
    outputs = [
        f"<think>{i}</think>Answer {i}: "
        + f'<tool_call>{{"name": "f{i % 7}", "arguments": {{"n": {i}}}}}</tool_call>\n' * (i % 4)
        for i in range(512)
    ]

    def run(i: int) -> ParsedOutput:
        stream = parser.stream(collect=True, spans=True, seed=i)
        for at in range(0, len(outputs[i]), i % 5 + 1):
            stream.feed(outputs[i][at : at + i % 5 + 1])
        stream.finish()
        return stream.result()

    alone = [run(i) for i in range(len(outputs))]
    with ThreadPoolExecutor(64) as pool:
        together = list(pool.map(run, range(len(outputs))))
    assert together == alone


@pytest.mark.parametrize("policy", [Policy(), Policy(cut_calls="drop")])
def test_finished_calls_are_not_kept_by_a_stream_that_does_not_collect(policy: Policy) -> None:
    """Nor are the places of their markers. The next call has the next number, and the end is known."""
    special = ("<tool_call>", "</tool_call>", "<|im_end|>")
    tokenizer = PieceTokenizer(special)
    parser = OutputParser.named("hermes", tokenizer=tokenizer, policy=policy)
    call = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>\n'
    pieces, ids = tokenizer.pieces(call), tokenizer.encode(call)
    stream = parser.stream()
    machine = stream._backend._machine  # type: ignore[attr-defined]
    indices: list[int] = []
    for _ in range(300):
        for piece, token in zip(pieces, ids, strict=True):
            indices += [c.index for delta in stream.feed(piece, [token]) for c in delta.tool_calls or () if c.id]
        assert len(machine.calls) <= 2
        assert len(machine.scanner.authorised) < 80
    stream.finish()
    assert indices == list(range(300))
    assert stream.finish_reason == "tool_calls"


NEVER_CLOSED = [
    ("hermes", '<tool_call>{"a": {"x": ', ""),
    ("hermes", '<tool_call>{"a": {"x": ', "}"),
    ("hermes", '<tool_call>{"name": "f", "arguments": {', "}"),
    ("kimi_k2", "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{", "}"),
    ("qwen3_coder", "<function=f", ""),
    ("glm45", "<tool_call>abc</arg_key>", ""),
    ("gemma4", "<|tool_call>call:f{a:(", ""),
    ("lfm2", "<|tool_call_start|>[f(a ", ""),
]


@pytest.mark.parametrize(("name", "unit", "end"), NEVER_CLOSED)
class TestLinear:
    """For an output in one piece, sixteen times the text takes sixteen times the work; quadratic work would be 256
    times."""

    def test_work(self, name: str, unit: str, end: str) -> None:
        parser = OutputParser.named(name)
        small, large = (lines_run(lambda raw=unit * times + end: parser.parse(raw)) for times in (100, 1600))
        assert large < 17 * small

    @pytest.mark.exhaustive
    def test_time(self, name: str, unit: str, end: str) -> None:
        """Searching and copying in C is not counted in lines: this test needs a clock, and a machine that is not too
        busy."""
        parser = OutputParser.named(name)

        def took(times: int) -> float:
            raw = unit * times + end
            best = float("inf")
            for _ in range(3):
                before = time.process_time()
                parser.parse(raw)
                best = min(best, time.process_time() - before)
            return best

        small, large = took(2000), took(32_000)
        assert large / small < 48, (small, large)
