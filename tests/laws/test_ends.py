"""The end of an output, for every Format: an opener or a header that it ends after is dropped, or shown by policy."""

from __future__ import annotations

import pytest

from untemplate import OutputParser, Policy
from untemplate.format import Channels, Format, Marker
from untemplate.messages import ParsedOutput
from untemplate.testing import PieceTokenizer, check

from .strategies import FORMATS

MARKED = {
    name: tools.section_open or tools.call_open
    for name, fmt in FORMATS.items()
    for tools in fmt.tools[:1]
    # In messages with headers, a call begins only after a header.
    if fmt.channels is None and (tools.section_open or tools.call_open)
}
OPENED = pytest.mark.parametrize(
    ("fmt", "opener"),
    [(FORMATS[name], marker.spellings[0]) for name, marker in MARKED.items() if marker is not None],
    ids=list(MARKED),
)
CHANNELS = {name: fmt for name, fmt in FORMATS.items() if fmt.channels is not None}
EVERY = pytest.mark.parametrize("fmt", CHANNELS.values(), ids=list(CHANNELS))


def channels_of(fmt: Format) -> Channels:
    assert fmt.channels is not None
    return fmt.channels


MARKED_MESSAGES = {
    name: (fmt, opener)
    for name, fmt in CHANNELS.items()
    for tools in fmt.tools[:1]
    for opener in [channels_of(fmt).call_body or tools.section_open or tools.call_open]
    if opener is not None
}


def header(channels: Channels, words: tuple[str, ...], body: Marker | None = None) -> str:
    """Return the header of a message with the first of these words. Formats whose ``body`` tells what a message is
    have none; without a marker for channels, the word is the recipient."""
    before = channels.channel or channels.recipient
    word = (before.text if before is not None else "") + words[0] if words else ""
    return channels.open.text + channels.role + word + (body or channels.body).text


def close_of(channels: Channels) -> str:
    return "" if channels.close is None else channels.close.text


def text_of(fmt: Format, raw: str, **context: object) -> tuple[str, list[str]]:
    """Return (reasoning and content, codes) of an output without calls, after every law was checked on it."""
    parsed: ParsedOutput = check(fmt, raw, cuts=24, roundtrip=False, finish_reason="length", **context)
    assert parsed.tool_calls == []
    return (parsed.reasoning or "") + (parsed.content or ""), [d.code for d in parsed.diagnostics]


@OPENED
def test_an_opener_at_the_end_follows_the_policy(fmt: Format, opener: str) -> None:
    raw = f"Let me see.\n{opener}"
    assert text_of(fmt, raw) == ("Let me see.", ["incomplete_call"])
    assert text_of(fmt, raw, policy=Policy(cut_calls="drop")) == ("Let me see.", ["incomplete_call"])
    assert text_of(fmt, raw, policy=Policy(cut_calls="content")) == (raw, [])
    assert text_of(fmt, raw, policy=Policy(cut_calls="forward_or_content")) == (raw, [])


@OPENED
def test_a_part_of_an_opener_is_text(fmt: Format, opener: str) -> None:
    raw = f"Let me see.\n{opener[:-1]}"
    text, codes = text_of(fmt, raw)
    # A part of one opener may be another marker, or the marker of another format.
    assert (text, set(codes) - {"foreign_marker", "call_like_text", "unread_marker"}) == (raw, set())


@OPENED
def test_a_quoted_opener_is_text(fmt: Format, opener: str) -> None:
    raw = f"It writes `{opener}`"
    if "`" not in opener:
        assert text_of(fmt, raw) == (raw, [])


@EVERY
def test_a_header_at_the_end_follows_the_policy(fmt: Format) -> None:
    channels = channels_of(fmt)
    first = header(channels, channels.content) + "Hi" + close_of(channels)
    cut = channels.open.text + (channels.role or "".join(channels.content[:1]))
    assert text_of(fmt, first + cut) == ("Hi", ["incomplete_header"])
    joint = "" if channels.close is None else "\n"
    assert text_of(fmt, first + cut, policy=Policy(cut_calls="content")) == (f"Hi{joint}{cut}", [])


@pytest.mark.parametrize(("fmt", "opener"), MARKED_MESSAGES.values(), ids=list(MARKED_MESSAGES))
def test_a_message_that_ends_after_the_opener_of_a_call_follows_the_policy(fmt: Format, opener: Marker) -> None:
    channels = channels_of(fmt)
    first = header(channels, channels.content) + "Hi" + close_of(channels)
    cut, code = channels.open.text + channels.role + opener.text, "incomplete_header"
    if opener != channels.call_body:
        cut, code = header(channels, ()) + opener.spellings[0], "incomplete_call"
    assert text_of(fmt, first + cut) == ("Hi", [code])
    assert text_of(fmt, first + cut, policy=Policy(cut_calls="content")) == (f"Hi\n{cut}", [])


@EVERY
def test_messages_of_one_channel_are_joined_with_a_newline(fmt: Format) -> None:
    channels = channels_of(fmt)
    kinds = [(header(channels, channels.content), "content")]
    if channels.has_reasoning:
        kinds.append((header(channels, channels.reasoning, channels.reasoning_body), "reasoning"))
    for head, field in kinds:
        close = close_of(channels)
        parsed = check(fmt, f"{head}one{close}{head}{close}{head} two", roundtrip=False)
        assert getattr(parsed, field) == "one\ntwo"


class WithPad(PieceTokenizer):
    def __init__(self) -> None:
        special = ("<tool_call>", "</tool_call>", "<|im_end|>", "<|fim_pad|>")
        super().__init__(special)
        self.all_special_tokens = list(special)


@pytest.mark.parametrize("opener", ["", "<tool_call> ", "<tool_call> <tool_call>\n\n"])
def test_a_special_token_at_the_end_is_dropped_after_an_opener_in_prose(opener: str) -> None:
    parser = OutputParser.named("hermes", tokenizer=WithPad())
    parsed = parser.parse(f"Write {opener}first.<|fim_pad|>")
    codes = ["end_token", *(["call_like_text"] if opener else [])]
    assert (parsed.content, [d.code for d in parsed.diagnostics]) == (f"Write {opener}first.", codes)


def test_a_close_in_prose_after_a_call_is_content() -> None:
    tokenizer = WithPad()
    parser = OutputParser.named("hermes", tokenizer=tokenizer)
    raw = 'Write <tool_call> first. <tool_call>{"name": "f", "arguments": {}}</tool_call> Done.</tool_call> Bye.'
    parsed = parser.parse(raw, token_ids=tokenizer.encode(raw))
    assert parsed.content == "Write <tool_call> first. Done.</tool_call> Bye."
    assert [(d.code, d.text) for d in parsed.diagnostics] == [("call_like_text", "<tool_call>")]
