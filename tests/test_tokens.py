"""Outputs given as token ids: regions, masks, and errors for ids and tokenizers that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.tokens.decoding import BYTE_LEVEL, Detokenizer, Vocabulary, encode, load_tokenizer
from untemplate._internal.tokens.spans import Straddling, TokenSpan
from untemplate.errors import TokenizerError
from untemplate.messages import Span
from untemplate.testing import PieceTokenizer

from .real_tokenizers import KINDS, byte_level

FORMAT = OutputParser.named("hermes", reasoning="qwen3").format
RAW = (
    "<think>\nA plan 😀.\n</think>\n\nHere:\n"
    '<tool_call>\n{"name": "ping", "arguments": {"x": 1}}\n</tool_call>\n'
    '<tool_call>\n{"name": "pong", "arguments": {"y": 2}}\n</tool_call><|im_end|>'
)


class Words:
    """A tokenizer whose tokens are given, each with its index as the id."""

    def __init__(self, *tokens: str) -> None:
        self.vocab = {token.replace(" ", "Ġ").replace("\n", "Ċ"): i for i, token in enumerate(tokens)}

    def get_vocab(self) -> dict[str, int]:
        return self.vocab


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_the_parts_of_a_message_in_tokens(make: Any):
    tokenizer = make(tuple(FORMAT.special_tokens))
    ids = encode(tokenizer, RAW)
    parsed = OutputParser.from_format(FORMAT, tokenizer=tokenizer).parse_tokens(ids)
    output = parsed.output
    assert (output.reasoning, output.content) == ("A plan 😀.", "Here:")
    assert [(call.function.name, call.function.arguments, call.status) for call in output.tool_calls] == [
        ("ping", '{"x": 1}', "ok"), ("pong", '{"y": 2}', "ok")
    ]  # fmt: skip

    def text(kind: Any, call: int | None = None) -> str:
        chosen = [i for i, flag in zip(ids, parsed.mask(kind, call), strict=True) if flag]
        return Vocabulary.read(tokenizer).table(FORMAT.special_tokens)[1].text_of(chosen)

    assert text("reasoning").strip() == "A plan 😀."
    assert "ping" in text("name", 0) + "".join(_straddled(parsed.straddling, RAW))
    assert text("arguments", 1).startswith(('{"y', '"y', "y"))
    assert text("markup").endswith("<|im_end|>")
    assert parsed.masks()["dropped"] == [False] * len(ids)


def _straddled(straddling: list[Straddling], raw: str) -> list[str]:
    return [raw[part.start : part.end] for s in straddling for part in s.parts]


def test_a_token_belongs_to_the_region_of_its_first_character():
    tokenizer = Words("<think>", "</think>", "A", " b.\n", "\nHi", "<|im_end|>", "Ġ")
    parser = OutputParser.named("qwen3", tokenizer=tokenizer)
    parsed = parser.parse_tokens([0, 2, 3, 1, 4, 5])
    assert parsed.offsets == [(0, 7), (7, 8), (8, 12), (12, 20), (20, 23), (23, 33)]
    assert parsed.spans == [
        TokenSpan("markup", 0, 1), TokenSpan("reasoning", 1, 3), TokenSpan("markup", 3, 6)
    ]  # fmt: skip
    assert parsed.straddling == [
        Straddling(2, 3, [Span("reasoning", 8, 11), Span("markup", 11, 12)]),
        Straddling(4, 4, [Span("markup", 20, 21), Span("content", 21, 23)]),
    ]
    assert parsed.mask("reasoning") == [False, True, True, False, False, False]
    assert repr(parsed) == "<ParsedTokens of 6 tokens, 5 regions>"


def test_masks_as_arrays():
    numpy = pytest.importorskip("numpy")
    tokenizer = Words("<think>", "</think>", "A", "B", "Ġ")
    arrays = OutputParser.named("qwen3", tokenizer=tokenizer).parse_tokens(numpy.array([0, 2, 1, 3])).arrays()
    assert {kind: array.tolist() for kind, array in arrays.items() if array.any()} == {
        "reasoning": [False, True, False, False],
        "content": [False, False, False, True],
        "markup": [True, False, True, False],
    }
    assert {str(array.dtype) for array in arrays.values()} == {"bool"}


def test_a_prefill_comes_before_the_first_token():
    tokenizer = Words("<think>", "</think>", "A", "B", "Ġ")
    parsed = OutputParser.named("qwen3", tokenizer=tokenizer).parse_tokens([2, 1, 3], prefill="<think>So: ")
    assert (parsed.output.reasoning, parsed.output.content) == ("So: A", "B")
    assert parsed.offsets == [(11, 12), (12, 20), (20, 21)]
    assert parsed.mask("reasoning") == [True, False, False]


def test_a_marker_that_ordinary_tokens_spell_is_text():
    tokenizer = Words("<think>", "</think>", "A", "<thi", "nk>", "Ġ", "</th", "ink>", "C")
    parser = OutputParser.named("qwen3", tokenizer=tokenizer)
    output = parser.parse_tokens([0, 2, 6, 7, 2, 1, 2]).output
    assert (output.reasoning, output.content) == ("A</think>A", "A")


def test_half_characters_wait_for_their_other_half():
    tokenizer = byte_level(())
    ids = encode(tokenizer, "🦜")
    assert len(ids) > 1
    stream = OutputParser.named("passthrough", tokenizer=tokenizer).stream()
    deltas = [stream.feed_tokens([i]) for i in ids]
    assert [[delta.content for delta in some] for some in deltas] == [[]] * (len(ids) - 1) + [["🦜"]]
    assert stream.finish() == []
    stream = OutputParser.named("passthrough", tokenizer=tokenizer).stream()
    assert stream.feed_tokens(ids[:-1]) == []
    assert [delta.content for delta in stream.finish()] == ["\ufffd"]


def test_offsets_of_bytes_that_are_not_utf8():
    tokenizer = byte_level(())
    vocab = tokenizer.get_vocab()
    high = {byte: vocab[letter] for letter, byte in BYTE_LEVEL.items()}
    # The first half of a character, replaced because a letter follows; a lone continuation; a whole character.
    ids = [high[0xE2], high[0x82], vocab["a"], high[0x82], high[0xC3], high[0xA9]]
    detokenizer = Detokenizer(Vocabulary.read(tokenizer).table(())[1], offsets=True)
    assert detokenizer.feed(ids) == ("\ufffda\ufffdé", [])
    assert detokenizer.offsets == [(0, 1), (0, 1), (1, 2), (2, 3), (3, 4), (3, 4)]


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([0, 99], ValueError, "token_ids[1]: 99 is not in the vocabulary of 4 tokens"),
        ([0, -1], ValueError, "token_ids[1]: -1 is not in the vocabulary of 4 tokens"),
        ([0, "A"], TypeError, "token_ids[1]: expected a token id (int), got str: 'A'"),
        ([0, [1]], TypeError, "token_ids[1]: expected a token id (int), got list: [1]"),
        ([0, None], TypeError, "token_ids[1]: expected a token id (int), got NoneType: None"),
    ],
)
def test_ids_that_are_not_tokens(ids: list[Any], error: type[Exception], message: str):
    parser = OutputParser.named("qwen3", tokenizer=Words("<think>", "</think>", "A", "Ġ"))
    with pytest.raises(error) as caught:
        parser.parse_tokens(ids)
    assert str(caught.value) == message


def test_a_tokenizer_of_another_model():
    parser = OutputParser.named("qwen3", tokenizer=PieceTokenizer(["<|other|>"]))
    with pytest.raises(ValueError, match=r"^tokenizer: has none of the special tokens") as caught:
        parser.parse_tokens([0])
    assert str(caught.value) == (
        "tokenizer: has none of the special tokens of format 'qwen3' ('<|im_end|>', '<|endoftext|>', '<|eot_id|>', "
        "'<|eom_id|>', …): it belongs to another model, or the model to another format"
    )


def test_misuse():
    with pytest.raises(ValueError, match=r"^feed_tokens\(\) needs a parser with a tokenizer$"):
        OutputParser.named("qwen3").parse_tokens([1])
    parser = OutputParser.named("qwen3", tokenizer=Words("<think>", "</think>", "A", "Ġ"))
    parsed = parser.parse_tokens([0, 2])
    with pytest.raises(ValueError, match=r"^mask\(\) kind: 'text' is not one of: 'reasoning', 'content', 'name', 'id'"):
        parsed.mask("text")  # type: ignore[arg-type]
    stream = parser.stream(collect=True)
    stream.feed_tokens([2])
    stream.finish()
    with pytest.raises(RuntimeError, match=r"^feed\(\) after finish\(\)"):
        stream.feed_tokens([2])
    with pytest.raises(ValueError, match=r"^the output was parsed without spans, so the regions of its tokens are not"):
        stream.token_result().masks()
    with pytest.raises(TypeError, match=r"^tokenizer: Words has no encode\(\)$"):
        encode(Words("a"), "a")


def test_no_ids_at_all():
    parsed = OutputParser.named("qwen3", tokenizer=Words("<think>", "</think>", "A", "Ġ")).parse_tokens([])
    assert (parsed.output.content, parsed.spans, parsed.straddling, parsed.mask("content")) == (None, [], [], [])


def test_a_tokenizer_is_loaded_from_a_file_or_folder(tmp_path: Any):
    byte_level(()).save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(str(tmp_path)).get_vocab() == byte_level(()).get_vocab()
    assert load_tokenizer(str(tmp_path / "tokenizer.json")).get_vocab() == byte_level(()).get_vocab()
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(TokenizerError, match=r"broken\.json: no tokenizer: "):
        load_tokenizer(str(tmp_path / "broken.json"))


def test_a_letter_of_byte_level_bpe_in_a_vocabulary_with_byte_fallback():
    table = Vocabulary({"Ġ": 0, "▁the": 1, "<0x0A>": 2, "a": 3}).table(())[1]
    assert table.text_of([0, 1, 2, 3]) == "Ġ the\na"
