"""Text for terminals: colours, escaped control characters, width and wrapping."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from untemplate._internal.terminal import STYLES, coloured, encodable, paint, painted, visible, width, wrapped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "on_terminal", "in_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": ""}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_colour_only_where_it_is_wanted(environ: dict[str, str], on_terminal: bool, in_pipe: bool):
    assert coloured(Terminal(), environ) is on_terminal
    assert coloured(io.StringIO(), environ) is in_pipe


def test_every_line_is_painted_by_itself():
    assert paint("a\n\nb", "name") == "\x1b[1;33ma\x1b[0m\n\n\x1b[1;33mb\x1b[0m"
    assert paint("a", "") == "a"


def test_segments_without_colour_are_their_text():
    assert painted([("a", "name"), ("b", "")], colour=False) == "ab"
    assert painted([("a", "name"), ("b", "")], colour=True) == "\x1b[1;33ma\x1b[0mb"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb\x00\x7f", "a\\x0db\\x00\\x7f"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\udcff", "\\xff"),
        ("\ud83d", "\\ud83d"),
        ("｜é😀", "｜é😀"),
    ],
)
def test_what_a_terminal_would_act_on_is_shown(text: str, shown: str):
    assert visible(text) == shown


def test_encodable_asks_the_stream():
    assert encodable("│", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    assert not encodable("│", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert not encodable("│", io.StringIO())


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("｜", 2), ("北京", 4), ("e\u0301", 1), ("😀", 2), ("\u200b", 0)]
)
def test_width_in_columns(text: str, columns: int):
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("", 5, [""]),
        ("\n", 5, [""]),
        ("one two three", 8, ["one two ", "three"]),
        ("onetwothree", 4, ["onet", "woth", "ree"]),
        ("a\n\nb", 5, ["a", "", "b"]),
        ("北京上海", 5, ["北京", "上海"]),
        ("北京", 1, ["北", "京"]),
        (" 12345678北", 9, [" ", "12345678", "北"]),
    ],
)
def test_wrapping(text: str, columns: int, lines: list[str]):
    assert [painted(line, colour=False) for line in wrapped([(text, "")], columns)] == lines


def test_wrapping_keeps_styles():
    assert wrapped([("one ", "name"), ("two", "content")], 5) == [[("one ", "name")], [("two", "content")]]


@given(st.lists(st.tuples(st.text(), st.sampled_from(sorted(STYLES)))), st.integers(1, 12))
def test_wrapping_loses_only_newlines_and_fits(segments: list[tuple[str, str]], columns: int):
    lines = wrapped(segments, columns)
    text = "".join(text for text, _ in segments)
    assert "".join(painted(line, colour=False) for line in lines) == text.replace("\n", "")
    for line in lines:
        shown = painted(line, colour=False)
        assert width(shown) <= columns or sum(map(bool, map(width, shown))) == 1
