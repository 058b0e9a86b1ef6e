"""Catalogue entries certify from templates in the layout of their family."""

from __future__ import annotations

import pytest

from tests.analysis import layouts
from untemplate.analysis import prepare
from untemplate.formats import named
from untemplate.templates import ChatTemplate


@pytest.mark.parametrize(("name", "source"), [("minimax_m3", layouts.MINIMAX_M3), ("muse", layouts.MUSE)])
def test_entries_certify(name: str, source: str) -> None:
    certificate = prepare(ChatTemplate(source)).certify(named(name))
    assert (certificate.failed, certificate.certified) == ((), True)
    assert {k: v for k, v in certificate.capabilities.items() if v == "failed"} == {}
    assert (certificate.capabilities["calls"], certificate.capabilities["reasoning"]) == ("yes", "yes")
