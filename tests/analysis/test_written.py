"""Templates in the style of real ones, written for this test: what each can write comes back, or is not certified."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.roundtrip import report_of
from tests.analysis.truth import contradictions
from untemplate.analysis import analyze
from untemplate.templates import ChatTemplate

TEMPLATES = sorted((Path(__file__).parent / "written").glob("*.jinja"))
UNREAD = {
    "content_parts": ["three calls"],  # a number that counts the calls, before the name
    "elements": None,  # an element that is named after the tool, with elements that are named after the arguments
    "python_calls": ["content and call"],  # calls without a marker, after content
}
"""Scenarios that do not come back, of templates that are not certified; ``None``: all with calls."""


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_what_it_writes_comes_back(path: Path) -> None:
    report = report_of(path)
    assert report.error == ""
    assert len(report.results) > 2
    wrong = {result.scenario.name: result.problem for result in report.wrong}
    if path.stem in UNREAD:
        assert not report.certified
        expected = UNREAD[path.stem]
        if expected is None:
            expected = [result.scenario.name for result in report.results if result.scenario.calls]
        assert list(wrong) == expected
    else:
        assert wrong == {}
        assert report.certified


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_no_rendering_contradicts_the_certificate(path: Path) -> None:
    template = ChatTemplate.load(path)
    assert list(contradictions(template, analyze(template).certificate)) == []
