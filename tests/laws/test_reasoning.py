"""Later reasoning, for every Format whose reasoning has an opener: where it begins again, and where it is text."""

from __future__ import annotations

import re

import pytest

from untemplate import OutputParser
from untemplate.format import Format
from untemplate.policy import Policy
from untemplate.testing import PieceTokenizer, check

from .strategies import FORMATS

OPENED = {name: fmt for name, fmt in FORMATS.items() if fmt.reasoning is not None and fmt.reasoning.open is not None}
EVERY = pytest.mark.parametrize("fmt", OPENED.values(), ids=list(OPENED))


def markers(fmt: Format) -> tuple[str, str]:
    assert fmt.reasoning is not None
    assert fmt.reasoning.open is not None
    return fmt.reasoning.open.spellings[0], fmt.reasoning.close.spellings[0]


def outcome(fmt: Format, raw: str) -> tuple[str | None, str | None, list[str]]:
    """Return (reasoning, content, codes) of an output that begins in content, after every law was checked on it."""
    parsed = check(fmt, raw, cuts=24, roundtrip=False)
    return parsed.reasoning, parsed.content, [d.code for d in parsed.diagnostics]


@EVERY
def test_reasoning_begins_again_at_the_start_of_a_line(fmt: Format) -> None:
    open_, close = markers(fmt)
    raw = f"{open_}one{close}two\n  {open_}three{close}four"
    assert outcome(fmt, raw) == ("onethree", "twofour", [])


@EVERY
def test_in_the_middle_of_a_line_opener_and_closer_are_text(fmt: Format) -> None:
    open_, close = markers(fmt)
    raw = f"{open_}one{close}two {open_} three {close} four{close}five"
    # A close that is a sentence of prose, as Granite writes it, is no marker in content.
    stray, codes = (close, []) if re.fullmatch(r"[\w\s']+:", close) else ("", ["stray_close"])
    assert outcome(fmt, raw) == ("one", f"two {open_} three {close} four{stray}five", codes)


@EVERY
def test_directly_after_content_the_format_decides(fmt: Format) -> None:
    open_, close = markers(fmt)
    assert fmt.reasoning is not None
    text = ("onethree", "twofour") if fmt.reasoning.repeats else ("one", f"two{open_}three{close}four")
    assert outcome(fmt, f"{open_}one{close}two{open_}three{close}four") == (*text, [])


@EVERY
@pytest.mark.parametrize("code", ["`{}` {}", "```\n{}\n{}\n```\nend", "   ```py\n\n{} {}\n   ```", "``{}``{}"])
def test_in_code_they_are_text(fmt: Format, code: str) -> None:
    open_, close = markers(fmt)
    text = "See: " + code.format(open_, close)
    if code[0] != "`" or code[1:3] == "``":
        text = "See:\n" + code.format(open_, close)
    assert outcome(fmt, f"{open_}one{close}{text}") == ("one", text, [])


@EVERY
def test_after_a_fence_reasoning_may_begin_again(fmt: Format) -> None:
    open_, close = markers(fmt)
    raw = f"{open_}one{close}```\n{open_}\n```\n{open_}two{close}three"
    assert outcome(fmt, raw) == ("onetwo", f"```\n{open_}\n```three", [])


@EVERY
def test_without_a_close_it_streams_and_is_reported(fmt: Format) -> None:
    open_, close = markers(fmt)
    assert outcome(fmt, f"{open_}one{close}two\n{open_}three") == ("onethree", "two", ["unclosed_reasoning"])
    stream = OutputParser.from_format(fmt).stream()
    stream.feed(f"{open_}one{close}two\n{open_}three")
    assert [d.reasoning for d in stream.feed(" four")] == [" four"]


@EVERY
def test_a_token_id_opens_reasoning_anywhere_but_in_code(fmt: Format) -> None:
    open_, close = markers(fmt)
    if not any(token in open_ for token in fmt.special_tokens):
        pytest.skip("its marker is not a special token")
    tokenizer = PieceTokenizer(fmt.special_tokens)
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer, policy=Policy(spelled_markers="text"))
    spelling = PieceTokenizer(fmt.special_tokens, spell=True)
    spelling._ids = tokenizer._ids  # one vocabulary

    def parsed(*parts: tuple[str, PieceTokenizer]) -> tuple[str | None, str | None]:
        stream = parser.stream(collect=True)
        for text, source in parts:
            for piece, token in zip(source.pieces(text), source.encode(text), strict=True):
                stream.feed(piece, [token])
        stream.finish()
        return stream.result().reasoning, stream.result().content

    real = f"{open_}one{close}"
    assert parsed((real + f"two {open_}three{close}four", tokenizer)) == ("onethree", "twofour")
    assert parsed((real + f"two `{open_}` four", tokenizer)) == ("one", f"two `{open_}` four")
    spelled = f"\n{open_}three{close}"
    assert parsed((real + "two", tokenizer), (spelled, spelling)) == ("one", f"two{spelled}")
