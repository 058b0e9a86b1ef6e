"""Templates in the layout of families whose templates are not public: entries certify, and the analysis reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis import layouts
from tests.analysis.renaming import renamed
from tests.analysis.roundtrip import report_of
from untemplate.analysis import prepare
from untemplate.analysis._pipeline import analyze_template
from untemplate.formats import named
from untemplate.templates import ChatTemplate


@pytest.mark.parametrize(("name", "source"), [("minimax_m3", layouts.MINIMAX_M3), ("muse", layouts.MUSE)])
def test_entries_certify(name: str, source: str) -> None:
    certificate = prepare(ChatTemplate(source)).certify(named(name))
    assert (certificate.failed, certificate.certified) == ((), True)
    assert {k: v for k, v in certificate.capabilities.items() if v == "failed"} == {}
    assert (certificate.capabilities["calls"], certificate.capabilities["reasoning"]) == ("yes", "yes")


LAYOUTS = {"minimax_m3": layouts.MINIMAX_M3, "muse": layouts.MUSE, "solar_open": layouts.SOLAR_OPEN, "hy3": layouts.HY3}

UNTYPED = ["minimax_m3"]
"""Layouts whose elements have no types: nobody can read an object whose values have none in the schema either."""


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_analysis_reads_them(name: str, tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_text(LAYOUTS[name], encoding="utf-8")
    report = report_of(path)
    assert report.certified
    assert len(report.results) >= 27
    assert report.wrong == []
    assert (report.capabilities["object"] == "cannot say") == (name in UNTYPED)


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_name_matters(name: str) -> None:
    before = analyze_template(ChatTemplate(LAYOUTS[name]))
    after = analyze_template(ChatTemplate(renamed(LAYOUTS[name], before.format, seed=3)))
    assert after.certificate.capabilities == before.certificate.capabilities
