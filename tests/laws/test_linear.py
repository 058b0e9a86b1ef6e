"""Near-misses cost linear work in every Format: four times the text takes about four times the steps, and copies about
four times the text. Quadratic work would be sixteen times."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.format import Format
from untemplate.testing import PieceTokenizer

from ..work import bytes_copied, function_calls
from .strategies import FORMATS, TOOLS, literals
from .test_quotation import content, written

CALLS = {name: fmt for name, fmt in FORMATS.items() if fmt.tools or fmt.channels is not None}


def near_misses(fmt: Format) -> list[str]:
    """Return texts that are nearly calls: a call that stops in its middle, one that stops at its end, and all markers
    in prose."""
    call = written(fmt)
    return [call[: len(call) // 2], call[:-2] + " ", " and ".join([*literals(fmt)[:12], ""])]


def steps(parser: OutputParser, text: str, ids: list[int] | None = None) -> int:
    """Return the number of function calls for an output, fed character by character, or whole with its ids."""

    def run() -> None:
        stream = parser.stream(tools=TOOLS)
        if ids is not None:
            stream.feed(text, ids)
        else:
            for letter in text:
                stream.feed(letter)
        stream.finish()

    return function_calls(run)


@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_near_misses_take_linear_work(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt)
    for unit in near_misses(fmt):
        _, small, large = (steps(parser, (unit * size)[:size]) for size in (20, 200, 800))
        assert large < 8 * small, (unit, small, large)


def beginnings(fmt: Format) -> list[str]:
    """Return what a model writes to call, cut after each marker, key and value, and inside a value."""
    call = written(fmt)
    ends = {0, len(call)}
    for text in (*literals(fmt), "get_weather", "city", "Pari", "Paris", "days"):
        at = call.find(text.strip()) if text.strip() else -1
        while at >= 0:
            ends.add(at + len(text.strip()))
            at = call.find(text.strip(), at + 1)
    return [content(fmt) + call[:end] for end in sorted(ends)]


def units(fmt: Format) -> list[str]:
    """Return what is repeated: each marker alone and on a line of its own, and parts of values."""
    markers = dict.fromkeys(text.strip() for text in literals(fmt) if text.strip())
    made = [unit for text in markers for unit in (text, f"\n{text} ")]
    return [*made, "<pad>a", "`", '"a" ', "'", "\n", "{", "[", "</", "<", 'get_weather(city="x") ', "city "]


class WithPad(PieceTokenizer):
    """A tokenizer with a special token that no Format knows."""

    def __init__(self, fmt: Format) -> None:
        super().__init__((*fmt.special_tokens, "<pad>"))
        self.all_special_tokens = list(self.special)


def is_linear(fmt: Format, before: str, unit: str, way: str) -> bool:
    """True if four times the text takes less than seven times the steps, at one of two sizes: what is looked ahead may
    be between the first two. ``way``: ``characters``, or ``whole`` with ids."""
    tokenizer = WithPad(fmt) if way == "whole" else None
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer)

    def work(size: int) -> int:
        text = before + (unit * size)[:size]
        return steps(parser, text, None if tokenizer is None else tokenizer.encode(text))

    _, small, large = map(work, (20, *SIZES))  # what is made once is in the first
    return large < 7 * small or work(4 * SIZES[1]) < 7 * large


SIZES = (600, 2400)
"""Where most of what is looked ahead ends before the first."""


@pytest.mark.parametrize(
    ("name", "before", "unit"),
    [
        ("gemma4", '<|tool_call>call:f{a:<|"|>x}', "<tool_call|>"),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\n", "<tool_call> "),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>", "<|im_end|>"),
        ("lfm2", "<|tool_call_start|>[", "\n"),
        ("nemotron_v3", "<tool_call>\n<function=f>\n<parameter=a>\n", "<tool_call>\n"),
    ],
)
@pytest.mark.parametrize("way", ["characters", "whole"])
def test_repeated_markers_that_took_quadratic_work(name: str, before: str, unit: str, way: str) -> None:
    assert is_linear(FORMATS[name], before, unit, way)


@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_a_repeated_opener_in_a_value_takes_linear_work(fmt: Format) -> None:
    call = written(fmt)
    opener = next((text.strip() for text in literals(fmt) if text.strip() and call.startswith(text.strip())), call[:1])
    assert is_linear(fmt, content(fmt) + call[: call.index("Paris") + 4], opener, "characters")


COPIED_SIZES = (2000, 8000)
"""Where what is copied outweighs what each step allocates."""


def copies_linearly(fmt: Format, before: str, unit: str) -> bool:
    """True if an output in one piece that is four times as long copies less than seven times as much."""
    parser = OutputParser.from_format(fmt)

    def work(size: int) -> int:
        text = before + (unit * size)[:size]

        def run() -> None:
            stream = parser.stream(tools=TOOLS)
            stream.feed(text)
            stream.finish()

        run()  # what is compiled or kept by the first run is not counted
        return bytes_copied(run)

    small, large = map(work, COPIED_SIZES)
    return large < 7 * small or work(4 * COPIED_SIZES[1]) < 7 * large


@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_a_repeated_close_in_a_value_is_copied_once(fmt: Format) -> None:
    """At each close of a tagged value that was not its own, all of it was copied again."""
    call = written(fmt).rstrip()
    close = (
        max((text.strip() for text in literals(fmt) if call.endswith(text.strip())), key=len, default="") or call[-1]
    )
    assert copies_linearly(fmt, content(fmt) + call[: call.index("Paris") + 4], close + " ")


@pytest.mark.parametrize("before", ["x", "[f("])
@pytest.mark.parametrize("space", [" ", "\n"])
def test_white_space_that_waits_is_copied_once(before: str, space: str) -> None:
    """It may belong to a marker, so it is not emitted before something follows; each character of it comes alone."""
    for fmt in (FORMATS["hermes"], FORMATS["pythonic"]):
        parser = OutputParser.from_format(fmt)

        def work(size: int, parser: OutputParser = parser) -> int:
            def run() -> None:
                stream = parser.stream()
                stream.feed(before)
                for _ in range(size):
                    stream.feed(space)
                stream.finish()

            run()
            return bytes_copied(run)

        small, large = work(800), work(3200)
        assert large < 7 * small, (fmt.name, small, large)


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_repeated_markers_are_copied_once(fmt: Format) -> None:
    pairs = [(before, unit) for before in beginnings(fmt) for unit in units(fmt)]
    assert [pair for pair in pairs if not copies_linearly(fmt, *pair)] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_repeated_markers_take_linear_work(fmt: Format) -> None:
    slow = [
        (before, unit, way)
        for before in beginnings(fmt)
        for unit in units(fmt)
        for way in ("characters", "whole")
        if not is_linear(fmt, before, unit, way)
    ]
    assert slow == []


def reported(fmt: Format) -> list[str]:
    """Return what is repeated in an output about which much is reported: calls, calls with names that are none, quoted
    calls, and markers that stay text."""
    call = written(fmt)
    line = call.replace("\n", " ")
    named = [call.replace("get_weather", name) + "\n" for name in ("get_weather", "3", "search:0", "unknown")]
    quoted = [f"`{line}` ", f"`w {line} ", f'"w {line} ', f"\u201cw {line} ", f"| {line} |\n"]
    names = ["`get_weather {` ", '`{"name": "get_weather"` ', '{"name": "get_weather", ']
    marks = [text for text in dict.fromkeys(text.strip() for text in literals(fmt)) if len(text) > 3]
    damaged = [form for text in marks for form in (f"{text[:2]}{text[3:]} ", f"`{text.upper()}` ", f"`w {text} ")]
    return [*named, *quoted, *names, *damaged, *(text for mark in marks for text in (mark, f"\n{mark} a"))]


def reports_linearly(parser: OutputParser, before: str, unit: str, tools: bool) -> bool:
    """True if an output that is four times as long costs less than seven times as much, in steps and in copies, where
    its result is made. What is looked at is limited in some reports, so a second size may decide."""

    def work(size: int) -> tuple[int, int]:
        stream = parser.stream(tools=TOOLS if tools else None, collect=True)
        stream.feed(before + unit * size)
        stream.finish()
        return function_calls(stream.result) + 500, bytes_copied(stream.result) + 20_000

    work(2)  # what is compiled by the first run is not counted
    small, large = work(24), work(96)
    if all(more < 7 * less for less, more in zip(small, large, strict=True)):
        return True
    return all(more < 7 * less for less, more in zip(large, work(384), strict=True))


@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_reports_take_linear_work(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt)
    chosen = reported(fmt)[len(fmt.name) % 20 :: 20]
    before = content(fmt) + "x "
    assert [unit for unit in chosen if not reports_linearly(parser, before, unit, tools=len(unit) % 2 == 0)] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_all_reports_take_linear_work(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt)
    slow = [
        (before, unit, tools)
        for before in (content(fmt), content(fmt) + "x ")
        for unit in reported(fmt)
        for tools in (False, True)
        if not reports_linearly(parser, before, unit, tools)
    ]
    assert slow == []


QUOTED = '`w <tool_call> {"name": "get_weather", "arguments": {}} </tool_call> '


@pytest.mark.parametrize(
    "unit", [QUOTED, "`<TOOL_CALL>` ", "`get_weather {` ", '`{"name": "get_weather"` ', "`<tool_cal>` "]
)
def test_reports_of_a_line_of_inline_code_take_linear_work(unit: str) -> None:
    parser = OutputParser.named("hermes")
    small, large = (
        min(function_calls(lambda size=size: parser.parse(unit * size, tools=TOOLS)) for _ in range(2))  # type: ignore[misc]
        for size in (100, 800)
    )
    assert large < 16 * small


def test_reports_of_names_copy_the_output_once() -> None:
    parser = OutputParser.named("hermes")

    def copied(size: int) -> int:
        stream = parser.stream(collect=True)
        for letter in '<tool_call>{"name": "3", "arguments": {}}</tool_call>\n' * size:
            stream.feed(letter)
        stream.finish()
        return min(bytes_copied(stream.result) for _ in range(2))

    assert copied(160) < 8 * copied(40)
