"""Text about tool calls is not a call."""

from __future__ import annotations

from typing import Final

from .run import formats, found_calls, listed, pieces

CEILING: Final = 6
"""Phantom calls of all formats together; it may only go down. Most of them are in inline code that begins or ends with
markup of another format."""


def test_the_corpus_is_complete() -> None:
    texts = pieces()
    assert len(texts) == 1000
    assert {piece for _, piece in listed()} <= texts.keys()


def test_there_are_no_more_phantom_calls() -> None:
    found = {(name, piece) for name, piece, _ in found_calls(formats())}
    allowed = listed()
    assert sorted(allowed - found) == [], "listed, but there is no call any more"
    assert len(found - allowed) <= CEILING, "`python -m tests.phantom.run --show` shows each call"
