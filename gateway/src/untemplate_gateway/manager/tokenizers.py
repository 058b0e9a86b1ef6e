"""Vocabularies: that of a model, from whichever file contains it.

* The sources in order: the model's ``tokenizer.json``; its other files (tekken, tiktoken, BPE); the
  vocabulary in its GGUF file.
* Parsing needs no more than the vocabulary. Special tokens are in it under their own text.
* Plain bytes in a file become the letters of byte-level BPE (``Ġ`` for a blank), which `TokenTable` reads.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from untemplate._internal.tokens.decoding import BYTE_LEVEL
from untemplate.errors import TokenizerError
from untemplate.templates._gguf_file import GgufError, read_gguf

from ..engines.vocabulary import ModelTokenizer, gguf_vocabulary
from .checkpoint import Checkpoint, read_json

__all__ = ["ModelTokenizer", "TokenizerError", "resolve_tokenizer"]


def resolve_tokenizer(checkpoint: Checkpoint) -> ModelTokenizer:
    """Return a model's vocabulary.

    Raises:
        TokenizerError: none was found; the message lists the sources that were tried.
    """
    looked: list[str] = []
    # The engine uses the vocabulary in a GGUF file; files next to it may belong to another model.
    found = _of_gguf(checkpoint.path, looked) if checkpoint.kind == "gguf" else _of_folder(checkpoint.path, looked)
    if found is None:
        raise TokenizerError(f"{checkpoint.name}: no tokenizer ({'; '.join(looked)})")
    return found


# -- Files --------------------------------------------------------------------------------------------------------


_Found = tuple[Mapping[str, int], Iterable[str]]
"""A vocabulary, and the added tokens in it."""


def _of_folder(folder: Path, looked: list[str]) -> ModelTokenizer | None:
    readers: dict[str, Callable[[Path], _Found]] = {
        "tokenizer.json": _huggingface,
        "tekken.json": _tekken,
        "*.tiktoken": _tiktoken,
        "tiktoken.model": _tiktoken,
        "tokenizer.model": _tiktoken,
        "vocab.json": lambda path: _with_added(read_json(path), path),
    }
    for pattern, read in readers.items():
        for path in sorted(folder.glob(pattern)):
            try:
                return ModelTokenizer(*read(path))
            except (ValueError, LookupError, TypeError, OSError) as error:
                looked.append(f"{path.name}: {error or type(error).__name__}")
    if not looked:
        looked.append(f"{folder} has none of {', '.join(readers)}")
    return None


def _huggingface(path: Path) -> _Found:
    content = read_json(path)
    found = content["model"]["vocab"]
    vocab = found if isinstance(found, dict) else {str(one[0]): i for i, one in enumerate(found)}
    added = {str(t["content"]): int(t["id"]) for t in content.get("added_tokens", [])}
    return {**vocab, **added}, added


def _tekken(path: Path) -> _Found:
    """Read Mistral's tekken: ranks of byte strings, which follow the special tokens."""
    content = read_json(path)
    config = content["config"]
    special = int(config["default_num_special_tokens"])
    size = int(config["default_vocab_size"])
    listed = content.get("special_tokens") or []
    vocab = {str(token["token_str"]): int(token["rank"]) for token in listed}
    for token in content["vocab"][: size - special]:
        vocab[_byte_level(base64.b64decode(token["token_bytes"]))] = int(token["rank"]) + special
    return vocab, [str(token["token_str"]) for token in listed]


def _tiktoken(path: Path) -> _Found:
    """Read lines of base64 and rank; the special tokens are in ``tokenizer_config.json``."""
    vocab: dict[str, int] = {}
    for line in path.read_bytes().splitlines():
        if line:
            token, rank = line.split()
            vocab[_byte_level(base64.b64decode(token, validate=True))] = int(rank)
    if not vocab:
        raise ValueError("contains no token")
    return _with_added(vocab, path)


def _with_added(vocab: Mapping[str, int], path: Path) -> _Found:
    added = _added(path.parent)
    return {**vocab, **added}, added


def _added(folder: Path) -> dict[str, int]:
    """Return the added tokens listed in ``added_tokens.json`` and ``tokenizer_config.json``."""
    found = {text: i for text, i in read_json(folder / "added_tokens.json").items() if isinstance(i, int)}
    listed = read_json(folder / "tokenizer_config.json").get("added_tokens_decoder")
    if isinstance(listed, dict):
        found |= {
            str(one["content"]): int(i) for i, one in listed.items() if isinstance(one, dict) and "content" in one
        }
    return found


def _of_gguf(path: Path, looked: list[str]) -> ModelTokenizer | None:
    try:
        return gguf_vocabulary(read_gguf(path))[0]
    except (GgufError, OSError) as error:
        looked.append(str(error))
        return None


_CHARACTERS: Final = {byte: character for character, byte in BYTE_LEVEL.items()}


def _byte_level(data: bytes) -> str:
    """Return bytes in the letters of byte-level BPE."""
    return "".join(_CHARACTERS[byte] for byte in data)
