"""Every law on random outputs, for every Format of the catalogue: noise, and calls that are nearly right.

`make test` checks a sample of fixed outputs, `make laws` a large number of new ones.
"""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings

from untemplate.format import Format
from untemplate.testing import check

from .strategies import FORMATS, TOOLS, noise, sketches

EVERY = pytest.mark.parametrize("fmt", FORMATS.values(), ids=list(FORMATS))
SAMPLE = 4
CUTS = 10


@EVERY
def test_noise(fmt: Format) -> None:
    @settings(max_examples=SAMPLE)
    @given(noise(fmt))
    def holds(raw: str) -> None:
        check(fmt, raw, tools=offered(raw), cuts=CUTS, roundtrip=False)

    holds()


@EVERY
def test_nearly_right(fmt: Format) -> None:
    @settings(max_examples=SAMPLE)
    @given(sketches(fmt))
    def holds(raw: str) -> None:
        check(fmt, raw, tools=offered(raw), cuts=CUTS)

    holds()


def offered(raw: str) -> list[dict[str, object]] | None:
    """Return the tools of an output: known ones for every second."""
    return TOOLS if zlib.crc32(raw.encode("utf-8", "replace")) % 2 else None


@pytest.mark.exhaustive
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["unknown-tools", "tools"])
@pytest.mark.parametrize("outputs", [noise, sketches])
@EVERY
def test_many_outputs(fmt: Format, outputs: object, tools: list[object] | None) -> None:
    assert callable(outputs)

    @settings(settings.get_profile("exhaustive"))
    @given(outputs(fmt))
    def holds(raw: str) -> None:
        check(fmt, raw, tools=tools)

    holds()
