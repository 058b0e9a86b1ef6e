"""Every law for Formats that no family has: each feature of the Format language with generated markers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate.format import Format
from untemplate.testing import check

from .generated import channel_formats, element_formats, literal_formats, tagged_formats, usable
from .strategies import TOOLS, messages, noise, sketches
from .test_messages import holds

KINDS = {
    "elements": element_formats(),
    "tags": tagged_formats(),
    "literals": literal_formats(),
    "channels": channel_formats(),
}
EVERY = pytest.mark.parametrize("formats", KINDS.values(), ids=list(KINDS))
OFFERED = st.sampled_from([None, TOOLS])


@EVERY
def test_messages_read_back(formats: st.SearchStrategy[Format]) -> None:
    @settings(max_examples=40)
    @given(st.data(), formats.filter(usable), OFFERED)
    def law(data: st.DataObject, fmt: Format, tools: Any) -> None:
        holds(fmt, data.draw(messages(fmt)), tools, 40)

    law()


@EVERY
def test_outputs(formats: st.SearchStrategy[Format]) -> None:
    @settings(max_examples=25)
    @given(st.data(), formats.filter(usable), OFFERED)
    def law(data: st.DataObject, fmt: Format, tools: Any) -> None:
        check(fmt, data.draw(st.one_of(noise(fmt), sketches(fmt))), tools=tools, cuts=16)

    law()


@EVERY
def test_formats_are_json(formats: st.SearchStrategy[Format]) -> None:
    @settings(max_examples=20)
    @given(formats)
    def law(fmt: Format) -> None:
        assert Format.from_json(fmt.to_json()) == fmt

    law()


@pytest.mark.exhaustive
@EVERY
def test_many(formats: st.SearchStrategy[Format]) -> None:
    @settings(settings.get_profile("exhaustive"))
    @given(st.data(), formats.filter(usable), OFFERED)
    def law(data: st.DataObject, fmt: Format, tools: Any) -> None:
        holds(fmt, data.draw(messages(fmt)), tools, 160)
        check(fmt, data.draw(st.one_of(noise(fmt), sketches(fmt))), tools=tools)

    law()
