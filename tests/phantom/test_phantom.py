"""Text about tool calls is not a call."""

from __future__ import annotations

from .run import formats, found_calls, listed, pieces


def test_the_corpus_is_complete() -> None:
    texts = pieces()
    assert len(texts) == 1000
    assert {piece for _, piece in listed()} <= texts.keys()


def test_there_are_no_phantom_calls() -> None:
    found = {(name, piece) for name, piece, _ in found_calls(formats())}
    allowed = listed()
    assert sorted(allowed - found) == [], "listed, but there is no call any more"
    assert sorted(found - allowed) == [], "`python -m tests.phantom.run --show` shows each call"
