"""The end of an output, for every Format: an opener or a header that it ends after is dropped, or shown by policy."""

from __future__ import annotations

import pytest

from untemplate import Policy
from untemplate.format import Format
from untemplate.messages import ParsedOutput
from untemplate.testing import check

from .strategies import FORMATS

MARKED = {
    name: tools.section_open or tools.call_open
    for name, fmt in FORMATS.items()
    for tools in fmt.tools[:1]
    if tools.section_open or tools.call_open
}
OPENED = pytest.mark.parametrize(
    ("fmt", "opener"),
    [(FORMATS[name], marker.spellings[0]) for name, marker in MARKED.items() if marker is not None],
    ids=list(MARKED),
)
CHANNELS = {name: fmt for name, fmt in FORMATS.items() if fmt.channels is not None}
EVERY = pytest.mark.parametrize("fmt", CHANNELS.values(), ids=list(CHANNELS))


def text_of(fmt: Format, raw: str, **context: object) -> tuple[str, list[str]]:
    """Return (reasoning and content, codes) of an output without calls, after every law was checked on it."""
    parsed: ParsedOutput = check(fmt, raw, roundtrip=False, finish_reason="length", **context)
    assert parsed.tool_calls == []
    return (parsed.reasoning or "") + (parsed.content or ""), [d.code for d in parsed.diagnostics]


@OPENED
def test_an_opener_at_the_end_follows_the_policy(fmt: Format, opener: str) -> None:
    raw = f"Let me see.\n{opener}"
    assert text_of(fmt, raw) == ("Let me see.", ["incomplete_call"])
    assert text_of(fmt, raw, policy=Policy(cut_calls="drop")) == ("Let me see.", ["incomplete_call"])
    assert text_of(fmt, raw, policy=Policy(cut_calls="content")) == (raw, [])


@OPENED
def test_a_part_of_an_opener_is_text(fmt: Format, opener: str) -> None:
    raw = f"Let me see.\n{opener[:-1]}"
    assert text_of(fmt, raw) == (raw, [])


@OPENED
def test_a_quoted_opener_is_text(fmt: Format, opener: str) -> None:
    raw = f"It writes `{opener}`"
    if "`" not in opener:
        assert text_of(fmt, raw) == (raw, [])


@EVERY
def test_a_header_at_the_end_follows_the_policy(fmt: Format) -> None:
    channels = fmt.channels
    assert channels is not None
    first = f"{channels.open.text}{channels.role}"
    if channels.channel is not None:
        first += channels.channel.text
    first += channels.content[0] + channels.body.text + "Hi"
    if channels.close is not None:
        first += channels.close.text
    header = channels.open.text + (channels.role or channels.content[0])
    assert text_of(fmt, first + header) == ("Hi", ["incomplete_header"])
    joint = "" if channels.close is None else "\n"
    assert text_of(fmt, first + header, policy=Policy(cut_calls="content")) == (f"Hi{joint}{header}", [])


@EVERY
def test_messages_of_one_channel_are_joined_with_a_newline(fmt: Format) -> None:
    channels = fmt.channels
    assert channels is not None
    kinds = [(channels.content[0], "content")]
    kinds += [(name, "reasoning") for name in channels.reasoning[:1]]
    for name, field in kinds:
        header = f"{channels.open.text}{channels.role}"
        if channels.channel is not None:
            header += channels.channel.text
        header += name + channels.body.text
        close = "" if channels.close is None else channels.close.text
        parsed = check(fmt, f"{header}one{close}{header}{close}{header} two", roundtrip=False)
        assert getattr(parsed, field) == "one\ntwo"
