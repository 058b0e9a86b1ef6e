"""Drift: sampled ids that their text is not encoded to."""

from __future__ import annotations

from collections.abc import Callable

from untemplate._internal.tokens.decoding import encode
from untemplate.batch import Record, RowError
from untemplate.batch.drift import Drift, drift, drift_of_files

from ..real_tokenizers import KINDS, byte_level


def test_ids_that_were_sampled_in_another_way():
    for make in KINDS:
        tokenizer = make(("<tool_call>",))
        ids = encode(tokenizer, "The harbour was<tool_call>quiet")
        assert drift(tokenizer, ids) == Drift(1, "", len(ids))
        vocab = tokenizer.get_vocab()
        place = next(i for i, token in enumerate(ids) if tokenizer.id_to_token(token) == "<tool_call>")
        spelled = [vocab[letter] for letter in "<tool_call>" if letter in vocab]
        sampled = ids[:place] + spelled + ids[place + 1 :]
        if len(spelled) == len("<tool_call>"):
            assert drift(tokenizer, sampled) == Drift(1, "", len(sampled), place, spelled, [ids[place]])


def test_ids_that_are_missing_at_the_end():
    tokenizer = byte_level(())
    letters = [tokenizer.get_vocab()[letter] for letter in "The"]
    assert drift(tokenizer, letters) == Drift(1, "", 3, 0, letters, encode(tokenizer, "The"))


def test_rows_of_files(jsonl: Callable[..., str]):
    tokenizer = byte_level(())
    ids = encode(tokenizer, "The harbour")
    given = jsonl([{"ids": ids}, {"ids": "x"}, {"ids": [1 << 40]}, b"{", {}])
    problem = f"token_ids[0]: {1 << 40} is not in the vocabulary of {tokenizer.get_vocab_size()} tokens"
    assert list(drift_of_files([given], tokenizer)) == [
        Drift(1, "", len(ids)),
        Record(row=2, error=RowError("type", "expected a list of token ids, got text", "ids", '{"ids": "x"}')),
        Record(row=3, error=RowError("value", problem, "ids", '{"ids": [1099511627776]}')),
        Record(row=4, error=RowError("json", "not JSON: Input data was truncated", "", "{")),
        Record(row=5, error=RowError("missing", "the row has no column 'ids'", "ids", "{}")),
    ]
