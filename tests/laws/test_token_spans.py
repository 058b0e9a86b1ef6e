"""Laws of outputs that are given as token ids, for every Format and both kinds of real tokenizers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate import OutputParser
from untemplate._internal.tokens.decoding import Detokenizer, Vocabulary, encode
from untemplate._internal.tokens.spans import ParsedTokens
from untemplate.format import Format

from ..real_tokenizers import KINDS, byte_level
from .strategies import FORMATS, TOOLS, noise, sketches

EVERY = pytest.mark.parametrize("fmt", FORMATS.values(), ids=list(FORMATS))
TOKENIZERS = pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
SPECIAL = tuple(sorted({token for fmt in FORMATS.values() for token in fmt.special_tokens}))
SAMPLE = 2


def text_of(tokenizer: Any, fmt: Format, ids: list[int]) -> str:
    detokenizer = Detokenizer(Vocabulary.read(tokenizer).table(fmt.special_tokens)[1])
    return detokenizer.feed(ids)[0] + detokenizer.finish()


def fields(parsed: ParsedTokens) -> Any:
    output = parsed.output
    calls = [(call.function.name, call.function.arguments, call.status) for call in output.tool_calls]
    return output.reasoning, output.content, calls, output.spans, output.diagnostics


def check_regions(parsed: ParsedTokens, text: str, fmt: Format) -> None:
    """Offsets follow each other, each token is in one mask, and the spans of text are the fields."""
    assert len(parsed.offsets) == len(parsed.ids)
    assert all(a[0] <= b[0] and a[1] <= b[1] and b[0] <= a[1] for a, b in pairwise(parsed.offsets))
    assert not parsed.ids or (parsed.offsets[0][0], parsed.offsets[-1][1]) == (0, len(text))
    masks = parsed.masks()
    assert [sum(flags) for flags in zip(*masks.values(), strict=True)] == [1] * len(parsed.ids)
    assert [token for span in parsed.spans for token in range(span.first, span.end)] == list(range(len(parsed.ids)))
    output = parsed.output
    for kind, field in (("reasoning", output.reasoning), ("content", output.content)):
        marked = "".join(text[s.start : s.end] for s in output.spans if s.kind == kind)
        if fmt.channels is None:
            assert marked == (field or "")
        else:  # a line break, which the output does not have, separates the texts of two messages
            assert marked.replace("\n", "") == (field or "").replace("\n", "")
    within = [[s for s in output.spans if s.start < end and s.end > start] for start, end in parsed.offsets]
    assert [s.token for s in parsed.straddling] == [i for i, spans in enumerate(within) if len(spans) > 1]
    for straddling in parsed.straddling:
        parts = straddling.parts
        assert (parts[0].start, parts[-1].end) == parsed.offsets[straddling.token]
        assert parts[0].kind == parsed.regions[straddling.token].kind
    for index in range(len(output.tool_calls)):
        mask = parsed.mask("name", call=index)
        name = "".join(text[s.start : s.end] for s in output.spans if s.kind == "name" and s.call == index)
        begins = {s.start for s in output.spans if s.kind == "name" and s.call == index}
        assert any(mask) or not begins & {start for start, _ in parsed.offsets}, name


@EVERY
@TOKENIZERS
def test_ids_mean_what_their_text_means(fmt: Format, make: Any) -> None:
    tokenizer = make(SPECIAL)
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer)

    @settings(max_examples=SAMPLE)
    @given(st.one_of(noise(fmt), sketches(fmt)), st.data())
    def holds(raw: str, data: st.DataObject) -> None:
        raw = raw.encode("utf-8", "replace").decode()
        ids = encode(tokenizer, raw)
        text = text_of(tokenizer, fmt, ids)
        assert make is not byte_level or text == raw
        parsed = parser.parse_tokens(ids, tools=TOOLS, seed=0)
        same = parser.parse(text, token_ids=ids, tools=TOOLS, spans=True, seed=0)
        assert fields(parsed) == fields(ParsedTokens(same, (), ()))
        check_regions(parsed, text, fmt)
        stream = parser.stream(tools=TOOLS, collect=True, spans=True, seed=0)
        rest = ids
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            stream.feed_tokens(rest[:size])
            rest = rest[size:]
        stream.finish()
        again = stream.token_result()
        assert (fields(again), again.offsets, again.ids) == (fields(parsed), parsed.offsets, parsed.ids)

    holds()


@TOKENIZERS
@pytest.mark.parametrize("name", ["hermes", "gpt-oss", "deepseek_v3", "qwen3_coder"])
def test_any_ids_are_an_output(name: str, make: Any) -> None:
    """Ids in any order, with bytes that are not UTF-8: nothing raises, and each token has its characters."""
    fmt = FORMATS[name]
    tokenizer = make(SPECIAL)
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer)
    ids = list(tokenizer.get_vocab().values())
    marks = [tokenizer.token_to_id(token) for token in fmt.special_tokens]

    @settings(max_examples=60)
    @given(st.lists(st.one_of(st.sampled_from(ids), st.sampled_from(marks))))
    def holds(output: list[int]) -> None:
        parsed = parser.parse_tokens(output)
        text = text_of(tokenizer, fmt, output)
        check_regions(parsed, text, fmt)
        one = Detokenizer(Vocabulary.read(tokenizer).table(fmt.special_tokens)[1])
        assert "".join(one.feed([i])[0] for i in output) + one.finish() == text

    holds()


@TOKENIZERS
def test_text_is_the_tokenizers_own(make: Any) -> None:
    tokenizer = make(SPECIAL)

    @settings(max_examples=100)
    @given(st.text())
    def holds(text: str) -> None:
        ids = encode(tokenizer, text)
        table = Vocabulary.read(tokenizer).table(SPECIAL)[1]
        detokenizer = Detokenizer(table)
        assert detokenizer.feed(ids)[0] + detokenizer.finish() == tokenizer.decode(ids, skip_special_tokens=False)

    holds()
