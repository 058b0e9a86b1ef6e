"""Token ids authorise markers and never misplace them; text that only spells a marker stays text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from untemplate import OutputParser, Policy
from untemplate._internal.machine.free_text import FreeText
from untemplate.format import Format
from untemplate.testing import PieceTokenizer, check

from .strategies import FORMATS, sketches

SPECIAL = {name: fmt for name, fmt in FORMATS.items() if fmt.special_tokens}
EVERY = pytest.mark.parametrize("fmt", SPECIAL.values(), ids=list(SPECIAL))


def spelled(fmt: Format, raw: str, policy: Policy | None = None) -> tuple[OutputParser, list[str], list[list[int]]]:
    """Return a parser, and the output in pieces whose ids are none of special tokens."""
    tokenizer = PieceTokenizer(fmt.special_tokens, spell=True)
    pieces, ids = tokenizer.pieces(raw), [[i] for i in tokenizer.encode(raw)]
    return OutputParser.from_format(fmt, tokenizer=tokenizer, policy=policy), pieces, ids


@EVERY
def test_spelled_markers_are_text(fmt: Format) -> None:
    """Without ids there are no markers: an output whose special tokens were spelled is read as if it had none."""

    @settings(max_examples=5)
    @given(sketches(fmt))
    def law(raw: str) -> None:
        parser, pieces, ids = spelled(fmt, raw, Policy(spelled_markers="text"))
        stream = parser.stream(collect=True, spans=True, seed=1)
        for text, new in zip(pieces, ids, strict=True):
            stream.feed(text, new)
        stream.finish()
        for span in stream.result().spans:
            if span.kind == "markup":
                held = [t for t in fmt.special_tokens if t in raw[span.start : span.end]]
                assert not held, f"{raw!r}: {held} counts as markup in {span!r}"

    law()


@EVERY
def test_spelled_markers_are_markers_by_policy(fmt: Format) -> None:
    @settings(max_examples=5)
    @given(sketches(fmt))
    def law(raw: str) -> None:
        parser, pieces, ids = spelled(fmt, raw, Policy(spelled_markers="marker"))
        stream = parser.stream(collect=True, seed=1)
        for text, new in zip(pieces, ids, strict=True):
            stream.feed(text, new)
        stream.finish()
        assert stream.result() == OutputParser.from_format(fmt).parse(raw, seed=1)

    law()


def test_a_quoted_marker_beside_a_real_one() -> None:
    """With ids the model may talk about its own markers, even next to a call (docs/failure-modes.md, 43)."""
    fmt = FORMATS["hermes"]
    quoted, real = "<tool_call>{}</tool_call> is how: ", '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    tokenizer = PieceTokenizer(fmt.special_tokens)
    spelling = PieceTokenizer(fmt.special_tokens, spell=True)
    spelling._ids = tokenizer._ids  # one vocabulary
    pieces = spelling.pieces(quoted) + tokenizer.pieces(real)
    ids = spelling.encode(quoted) + tokenizer.encode(real)
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer)
    for lag in range(21):
        stream = parser.stream(collect=True)
        text, said = "", 0
        for piece, token in zip(pieces, ids, strict=True):
            text += piece
            end = max(len(text) - lag, said)
            stream.feed(text[said:end], [token])
            said = end
        stream.feed(text[said:])
        stream.finish()
        result = stream.result()
        assert (result.content, len(result.tool_calls)) == (quoted.rstrip(), 1), lag


@pytest.mark.parametrize("fmt", [FORMATS["hermes"], FORMATS["gpt-oss"], FORMATS["deepseek_v3"]], ids=lambda f: f.name)
def test_a_real_tokenizer(fmt: Format) -> None:
    """Byte-level BPE by the package tokenizers, with its special tokens added: text may arrive in half characters."""
    tokenizers = pytest.importorskip("tokenizers")
    from untemplate._internal.render import render

    text = "Привет 😀, e\u0301! def f(x): return x < 1\n"
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=list(fmt.special_tokens), show_progress=False
    )
    tokenizer.train_from_iterator([text], trainer)
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": "Привет 😀"}'}}
    raw = render(fmt, {"content": text.strip(), "tool_calls": [call]})
    check(fmt, raw, {"content": text.strip(), "tool_calls": [("f", {"x": "Привет 😀"})]}, tokenizer=tokenizer)


JUNK = ("<|junk|>", "<pad>")


class WithJunk(PieceTokenizer):
    """A tokenizer that lists special tokens which the Format does not know."""

    def __init__(self, special: tuple[str, ...]) -> None:
        super().__init__((*special, *JUNK))
        self.all_special_tokens = [*special, *JUNK]


@EVERY
def test_unknown_special_tokens_are_dropped_by_id_and_kept_where_they_are_spelled(fmt: Format) -> None:
    tokenizer = WithJunk(fmt.special_tokens)
    words = ["One", JUNK[0], " two", JUNK[0], "\nthree", JUNK[0], " <", "pad", ">", JUNK[1], JUNK[1]]
    pieces = [piece for word in words for piece in tokenizer.pieces(word)]
    ids = [i for word in words for i in tokenizer.encode(word)]
    # MiniMax-M3's own default takes spelled tokens for markers.
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer, policy=Policy(spelled_markers="text"))
    clean = OutputParser.from_format(fmt).parse("One two\nthree <pad>.")
    found = set()
    for lag in range(12):
        stream = parser.stream(collect=True, spans=True)
        known, said = "", 0
        for piece, token in zip(pieces, ids, strict=True):
            known += piece
            end = max(len(known) - lag, said)
            stream.feed(known[said:end], [token])
            said = end
        stream.feed(known[said:])
        stream.finish()
        result = stream.result()
        text = (result.reasoning or "") + (result.content or "")
        assert text + "." == (clean.reasoning or "") + (clean.content or ""), lag
        assert {d.code for d in result.diagnostics} == {"unknown_token"}
        found.add(tuple((s.kind, s.start, s.end) for s in result.spans))
    assert len(found) == 1


@pytest.mark.parametrize("name", ["hermes", "generic"])  # with special tokens of its own, and without
def test_unknown_special_tokens_stay_in_arguments(name: str) -> None:
    fmt = FORMATS[name]
    tokenizer = WithJunk(fmt.special_tokens)
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer)
    raw = '<pad><tool_call>{"name": "f", "arguments": {"a": "<pad>"}}</tool_call><|junk|>'
    result = parser.parse(raw, token_ids=tokenizer.encode(raw))
    assert [c.function.arguments for c in result.tool_calls] == ['{"a": "<pad>"}']
    assert (result.content, [(d.code, d.text) for d in result.diagnostics]) == (
        None,
        [("unknown_token", "<pad>"), ("unknown_token", "<|junk|>")],
    )


def test_an_id_whose_text_never_comes_removes_nothing() -> None:
    fmt = FORMATS["hermes"]
    tokenizer = WithJunk(fmt.special_tokens)
    stream = OutputParser.from_format(fmt, tokenizer=tokenizer).stream(collect=True)
    stream.feed("", tokenizer.encode("<pad>"))
    stream.feed("<|junk|>", tokenizer.encode("<|junk|>"))
    stream.feed("a <pa")
    stream.feed("d> b")
    stream.finish()
    assert stream.result().content == "a <pad> b"


@pytest.mark.parametrize("name", ["hermes", "generic"])
def test_many_unknown_special_tokens_in_one_delta_are_dropped_like_one_by_one(name: str) -> None:
    fmt = FORMATS[name]
    tokenizer = WithJunk(fmt.special_tokens)
    parser = OutputParser.from_format(fmt, tokenizer=tokenizer)
    call = '<tool_call>{"name": "f", "arguments": {"a": "<pad>"}}</tool_call>'
    for raw in ("a<pad>" * 2000, "a <pad>\n<|junk|>" * 500, "<pad><|junk|>" * 1000 + call + "<pad> b<pad>" * 1000):
        pieces, ids = tokenizer.pieces(raw), tokenizer.encode(raw)
        stream = parser.stream(collect=True, spans=True, seed=1)
        for piece, token in zip(pieces, ids, strict=True):
            stream.feed(piece, [token])
        stream.finish()
        assert parser.parse(raw, token_ids=ids, spans=True, seed=1) == stream.result()


@pytest.mark.skipif(not hasattr(FreeText.step, "__code__"), reason="a compiled class cannot be patched")
def test_unknown_special_tokens_are_dropped_in_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are the characters before the reader at each of its steps, because each step may copy them."""
    tokenizer = WithJunk(FORMATS["hermes"].special_tokens)
    parser = OutputParser.from_format(FORMATS["hermes"], tokenizer=tokenizer)
    characters = 0
    step = FreeText.step

    def counted(self: FreeText, whole: bool = True) -> int:
        nonlocal characters
        characters += len(self.context.cur.text)
        return step(self, whole)

    monkeypatch.setattr(FreeText, "step", counted)
    counts = []
    for size in (2000, 8000):
        raw = "a<pad>" * size
        characters = 0
        parser.parse(raw, token_ids=tokenizer.encode(raw))
        counts.append(characters)
    assert counts[1] < 5 * counts[0]
