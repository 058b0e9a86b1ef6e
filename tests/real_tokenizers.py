"""Real tokenizers, trained in a moment with the package ``tokenizers``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

TEXT = (
    "The harbour was quiet in the morning. Привет 😀, e\u0301! 你好，世界 "
    '{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}\n\n'
    "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n"
)


def _trained(special: Sequence[str], alphabet: Sequence[str], split: bool) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    if split:
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, special_tokens=list(special), show_progress=False, min_frequency=1
    )
    tokenizer.train_from_iterator([TEXT if split else TEXT.replace(" ", "▁")], trainer)
    return tokenizer


@cache
def byte_level(special: tuple[str, ...]) -> Any:
    """Return byte-level BPE, as GPT-2, Llama 3 and Qwen have it."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = _trained(special, tokenizers.pre_tokenizers.ByteLevel.alphabet(), split=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer


@cache
def byte_fallback(special: tuple[str, ...]) -> Any:
    """Return BPE as SentencePiece writes it, with a token for each byte, as Llama 2 and Gemma have it."""
    tokenizers = pytest.importorskip("tokenizers")
    model = json.loads(_trained((), [], split=False).to_str())["model"]
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    decoders = tokenizers.decoders
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([tokenizers.AddedToken(t, normalized=False, special=True) for t in special])
    return tokenizer


KINDS = (byte_level, byte_fallback)
