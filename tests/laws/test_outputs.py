"""Every law on random outputs, for every Format of the catalogue: noise, and calls that are nearly right.

`make test` checks a sample of fixed outputs, `make laws` a large number of new ones.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from untemplate.format import Format
from untemplate.testing import check

from .strategies import FORMATS, TOOLS, noise, sketches

EVERY = pytest.mark.parametrize("fmt", FORMATS.values(), ids=list(FORMATS))
SAMPLE = 2
CUTS = 10


@EVERY
def test_noise(fmt: Format) -> None:
    offered = alternating()

    @settings(max_examples=SAMPLE)
    @given(noise(fmt))
    def holds(raw: str) -> None:
        check(fmt, raw, tools=offered(raw), cuts=CUTS, roundtrip=False)

    holds()


@EVERY
def test_nearly_right(fmt: Format) -> None:
    offered = alternating()

    @settings(max_examples=SAMPLE)
    @given(sketches(fmt))
    def holds(raw: str) -> None:
        check(fmt, raw, tools=offered(raw), cuts=CUTS)

    holds()


def alternating() -> Callable[[str], list[dict[str, object]] | None]:
    """Return a function from outputs to tools: known ones for every second output, and each time the same for one."""
    places: dict[str, int] = {}

    def offered(raw: str) -> list[dict[str, object]] | None:
        return TOOLS if places.setdefault(raw, len(places)) % 2 else None

    return offered


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
