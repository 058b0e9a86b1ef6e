"""Markers of calls without a call, for every Format: when they are dropped, and when they are text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from untemplate import OutputParser
from untemplate.format import Format
from untemplate.messages import ParsedOutput
from untemplate.testing import check

from .strategies import FORMATS


def blocks(fmt: Format) -> list[tuple[str, str]]:
    """Return the opener and the close of each kind of block that a Format's calls may be in."""
    found = [
        (opener.spellings[0], close.spellings[0])
        for way in fmt.tools
        for opener, close, alone in (
            (way.section_open, way.section_close, True),
            (way.call_open, way.call_close, way.section_open is None or "section" in way.optional),
        )
        if opener is not None and close is not None and alone
    ]
    return list(dict.fromkeys(found))


def begins_with_content(fmt: Format) -> bool:
    return fmt.reasoning is None or (fmt.reasoning.start == "closed" and fmt.reasoning.open is not None)


BLOCKS = [
    pytest.param(fmt, *block, id=f"{name}-{i}")
    for name, fmt in FORMATS.items()
    if fmt.channels is None and begins_with_content(fmt)
    for i, block in enumerate(blocks(fmt))
]
EVERY = pytest.mark.parametrize(("fmt", "opener", "close"), BLOCKS)


class Special:
    """A vocabulary of special tokens."""

    def __init__(self, *texts: str) -> None:
        self.ids = {text: i for i, text in enumerate(texts)}
        self.all_special_tokens: Sequence[str] = texts

    def get_vocab(self) -> dict[str, int]:
        return self.ids


def by_id(fmt: Format, raw: str, opener: str, close: str) -> ParsedOutput:
    """Parse an output whose openers and closes are tokens."""
    tokenizer = Special(*fmt.special_tokens, opener, close)
    stream = OutputParser.from_format(fmt, tokenizer=tokenizer).stream(collect=True)
    pattern = "|".join(map(re.escape, sorted(tokenizer.ids, key=len, reverse=True)))
    for piece in re.split(f"({pattern})", raw):
        stream.feed(piece, [tokenizer.ids.get(piece, 999)] if piece else [])
    stream.finish()
    return stream.result()


def codes(parsed: ParsedOutput) -> list[str]:
    return [d.code for d in parsed.diagnostics]


@EVERY
def test_an_empty_block_on_its_own_line_is_dropped(fmt: Format, opener: str, close: str) -> None:
    for raw, content in ((f"A\n{opener}\n{close}\nB", "A\n\nB"), (f"A\n{opener}{close}", "A\n")):
        parsed = check(fmt, raw, roundtrip=False, cuts=12)
        assert (parsed.content, parsed.tool_calls, codes(parsed)) == (content, [], ["empty_calls"])


@EVERY
def test_an_empty_block_between_words_is_text(fmt: Format, opener: str, close: str) -> None:
    for raw in (f"A {opener}{close} B", f"A {opener} {close}B"):
        parsed = check(fmt, raw, roundtrip=False, cuts=12)
        assert (parsed.content, parsed.tool_calls) == (raw, [])
        if opener in fmt.special_tokens:
            assert (by_id(fmt, raw, opener, close).content or "").replace(" ", "") == "AB"


@EVERY
def test_an_opener_before_text_and_its_close_are_text(fmt: Format, opener: str, close: str) -> None:
    raw = f"A\n{opener} !? {close} B"
    parsed = check(fmt, raw, roundtrip=False, cuts=12)
    assert (parsed.content, parsed.tool_calls) == (raw, [])


@EVERY
def test_a_close_with_nothing_to_close_is_content_in_both_ways(fmt: Format, opener: str, close: str) -> None:
    raw = f"A{close} B"
    for parsed in (by_id(fmt, raw, opener, close), OutputParser.from_format(fmt).parse(raw)):
        assert (parsed.content, codes(parsed)) == (raw, ["call_like_text"] if close.strip("`") else [])


def test_a_section_with_text_keeps_its_text_and_its_calls() -> None:
    opener, close = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
    call = '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>'
    parsed = by_id(FORMATS["kimi_k2"], f"So. {opener} noise {call}{close}", opener, close)
    assert (parsed.content, [c.status for c in parsed.tool_calls]) == ("So.  noise", ["ok"])
    assert codes(parsed) == ["empty_calls"]


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools or fmt.channels is not None])
def test_special_tokens_at_the_end_are_dropped(name: str) -> None:
    fmt = FORMATS[name]
    parser = OutputParser.from_format(fmt, tokenizer=Special("<|pad_1|>", "<|pad_2|>"))
    ends = [end.spellings[0] for end in [fmt.turn.end] if end is not None]
    raws = ["Hi.<|pad_1|>", "Hi.<|pad_1|> <|pad_2|>\n", *(f"Hi.<|pad_1|>{end}" for end in ends), "<|pad_1|> is one."]
    for raw in raws:
        whole = parser.parse(raw)
        text, found = ("Hi.", {"end_token"}) if raw.startswith("Hi.") else (raw, set())
        assert ((whole.reasoning or "") + (whole.content or ""), set(codes(whole))) == (text, found)
        for at in range(len(raw)):
            stream = parser.stream(collect=True)
            for part in (raw[:at], raw[at:]):
                stream.feed(part)
            stream.finish()
            assert stream.result() == whole


@pytest.mark.parametrize(
    "raw", ["Write <tool_call> and </tool_call>", "Pad with `<pad>", "Is <pad> it?", "</tool_call>"]
)
def test_markers_and_quoted_special_tokens_at_the_end_are_text(raw: str) -> None:
    parser = OutputParser.named("hermes", tokenizer=Special("<pad>", "<tool_call>", "</tool_call>"))
    reports = ["call_like_text"] if "tool_call" in raw else []
    assert (parser.parse(raw).content, codes(parser.parse(raw))) == (raw, reports)


def test_an_id_whose_text_never_comes_authorises_nothing() -> None:
    """``<tool_call>`` comes as an id, its text does not; after the text of the next id it is only spelled."""
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    stream = OutputParser.named("hermes", tokenizer=Special("<tool_call>", "</tool_call>")).stream(collect=True)
    for text, ids in (("", [0]), ("So", [9]), ("</tool_call>", [1]), (call, [9] * 9)):
        stream.feed(text, ids)
    stream.finish()
    assert (stream.result().content, stream.result().tool_calls) == (f"So</tool_call>{call}", [])


@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_markers_after_special_tokens_whose_text_never_comes_count(size: int) -> None:
    """An engine leaves out the text of ``<s>`` and ``<eod>``. The bytes of the tokens around them are known."""
    parts = ["<s>", "<tool_call>", '{"name": "f", "arguments": {}}', "</tool_call>", "<eod>"] * 2
    tokenizer = Special(*dict.fromkeys(parts))
    shown = ["" if part in ("<s>", "<eod>") else part for part in parts]
    ids = [tokenizer.ids[part] for part in parts]
    raw = "".join(shown)
    stream = OutputParser.named("hermes", tokenizer=tokenizer).stream(collect=True)
    if size:
        stream.feed("", ids)
        for at in range(0, len(raw), size):
            stream.feed(raw[at : at + size], [])
    else:
        for text, token in zip(shown, ids, strict=True):
            stream.feed(text, [token])
    stream.finish()
    parsed = stream.result()
    assert ([c.status for c in parsed.tool_calls], parsed.content, codes(parsed)) == (["ok", "ok"], None, [])


def test_markers_in_an_output_with_all_its_ids_count_after_a_special_token_without_text() -> None:
    call = '{"name": "f", "arguments": {}}'
    tokenizer = Special("<s>", "<tool_call>", call, "</tool_call>")
    stream = OutputParser.named("hermes", tokenizer=tokenizer).stream(collect=True)
    stream.feed(f"<tool_call>{call}</tool_call>", [0, 1, 2, 3])
    stream.finish()
    assert ([c.status for c in stream.result().tool_calls], stream.result().content) == (["ok"], None)


def test_white_space_after_an_empty_block_is_read_once() -> None:
    stream = OutputParser.named("hermes").stream(collect=True)
    stream.feed("<tool_call></tool_call>")
    for _ in range(100):
        stream.feed(" ")
        assert len(stream._backend._machine.cur.text) <= 1  # type: ignore[attr-defined]
