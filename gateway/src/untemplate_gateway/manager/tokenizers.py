"""Tokenizers: the vocabulary of a model, from whichever file contains it.

* The sources in their order: the model's ``tokenizer.json``; its other files (tekken, tiktoken, SentencePiece, the two
  files of BPE); the vocabulary in its GGUF file; the tokenizer of its base model, on disk or on the hub.
* The result has ``get_vocab()``, which is all that parsing needs. If the package ``tokenizers`` can read it, it also
  encodes and decodes. Special tokens are in the vocabulary under their own text.
* Plain bytes in a file become the letters of byte-level BPE (``Ġ`` for a blank), which `TokenTable` reads.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from untemplate.errors import TokenizerError
from untemplate.templates.gguf_file import Gguf, GgufError, control_tokens, read_gguf
from untemplate.tokens.decoding import BYTE_LEVEL

from .checkpoint import Checkpoint, is_count, read_json

__all__ = ["ModelTokenizer", "TokenizerError", "base_models", "resolve_tokenizer"]

_FILES: Final = ("tokenizer.json", "tekken.json", "*.tiktoken", "tiktoken.model", "tokenizer.model", "vocab.json")
_BASE_MODEL: Final = re.compile(r"^base_model:[ \t]*(?:\n((?:[ \t]*-[ \t]*\S+[ \t]*\n)+)|[ \t]*(\S+))", re.MULTILINE)
_HUB_ID: Final = re.compile(r"(?:https?://[^/]+/)?([\w.-]+/[\w.-]+)/?")


class ModelTokenizer:
    """A model's vocabulary, with encoding and decoding if they are available.

    Args:
        vocab: token → id, special tokens included.
        source: the file or model that it was read from.
        tokenizer: a ``tokenizers.Tokenizer``, if there is one.
        added: the tokens that are not made by merges, if the tokenizer does not list them.
    """

    def __init__(self, vocab: Mapping[str, int], source: str, tokenizer: Any = None, added: Iterable[str] = ()) -> None:
        self._vocab = dict(vocab)
        listed = {} if tokenizer is None else tokenizer.get_added_tokens_decoder()
        self._added = {self._vocab[text]: text for text in (*map(str, listed.values()), *added) if text in self._vocab}
        self._tokenizer = tokenizer
        self.source = source

    def get_vocab(self) -> dict[str, int]:
        return self._vocab

    def get_added_tokens_decoder(self) -> dict[int, str]:
        """Return the added tokens: text that spells one of their names is no marker."""
        return self._added

    @property
    def can_encode(self) -> bool:
        return self._tokenizer is not None

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text. Special tokens in the text count as such; none are added.

        Raises:
            NotImplementedError: only the vocabulary is known.
        """
        if self._tokenizer is None:
            raise NotImplementedError(f"{self.source}: only its vocabulary is known")
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, special ones included. Raises as `encode`."""
        if self._tokenizer is None:
            raise NotImplementedError(f"{self.source}: only its vocabulary is known")
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def __repr__(self) -> str:
        return f"ModelTokenizer({self.source!r}, {len(self._vocab)} tokens)"


def resolve_tokenizer(
    checkpoint: Checkpoint, *, fetch: Callable[[str], Path] | None = None, report: Callable[[str], None] | None = None
) -> ModelTokenizer:
    """Return a model's tokenizer.

    Args:
        fetch: returns a folder with the tokenizer's files for a hub id, and is used for base models; raises ``OSError``
            or ``ValueError``. ``None`` to search the disk only.
        report: called with the source if the tokenizer is not from the model itself.

    Raises:
        TokenizerError: no tokenizer was found; the message lists the sources that were tried.
    """
    looked: list[str] = []
    # The engine uses the vocabulary in a GGUF file; files next to it may belong to another model.
    found = _of_gguf(checkpoint, looked) if checkpoint.kind == "gguf" else _of_folder(checkpoint.path, looked)
    if found is not None:
        return found
    for base in base_models(checkpoint):
        found = _of_base(base, fetch, looked)
        if found is not None:
            if report is not None:
                report(f"tokenizer of its base model {base}")
            return found
    raise TokenizerError(f"{checkpoint.name}: no tokenizer ({'; '.join(looked)})")


def base_models(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the hub ids of the models that this one was made from, according to its metadata."""
    return tuple(dict.fromkeys(_bases(checkpoint)))


def _bases(checkpoint: Checkpoint) -> Iterator[str]:
    gguf = checkpoint.gguf
    if gguf is not None:
        count = gguf.get("general.base_model.count")
        for i in range(min(count, len(gguf)) if is_count(count) else 0):
            link = _HUB_ID.fullmatch(str(gguf.get(f"general.base_model.{i}.repo_url", "")))
            if link:
                yield link[1]
            elif f"general.base_model.{i}.organization" in gguf:
                name = str(gguf.get(f"general.base_model.{i}.name", "")).replace(" ", "-")
                yield f"{gguf[f'general.base_model.{i}.organization']}/{name}".replace(" ", "-")
        return
    for value in (
        read_json(checkpoint.path / "adapter_config.json").get("base_model_name_or_path"),
        checkpoint.config.get("base_model"),
        *_card(checkpoint.path / "README.md"),
        checkpoint.config.get("_name_or_path"),
    ):
        if isinstance(value, str) and _HUB_ID.fullmatch(value):
            yield value


def _card(path: Path) -> list[str]:
    """Return ``base_model`` from the head of a model card."""
    try:
        head = path.read_text("utf-8", "replace")[:20_000].split("---", 2)
    except OSError:
        return []
    if len(head) < 3 or head[0].strip():
        return []
    found = _BASE_MODEL.search(head[1] + "\n")
    if found is None:
        return []
    values = found[2] or found[1]
    return [value.strip(" \t-\"'") for value in values.strip().split("\n")]


def _of_base(base: str, fetch: Callable[[str], Path] | None, looked: list[str]) -> ModelTokenizer | None:
    if fetch is None:
        looked.append(f"its base model is {base}")
        return None
    try:
        folder = fetch(base)
    except (OSError, ValueError) as error:
        looked.append(f"its base model {base}: {error}")
        return None
    return _of_folder(folder, looked)


# -- Files --------------------------------------------------------------------------------------------------------


def _of_folder(folder: Path, looked: list[str]) -> ModelTokenizer | None:
    readers: dict[str, Callable[[Path], ModelTokenizer]] = {
        "tokenizer.json": _huggingface,
        "tekken.json": _tekken,
        "*.tiktoken": _tiktoken,
        "tiktoken.model": _tiktoken,
        "tokenizer.model": _model,
        "vocab.json": _bpe,
    }
    for pattern in _FILES:
        for path in sorted(folder.glob(pattern)):
            try:
                return readers[pattern](path)
            except Exception as error:  # the package tokenizers raises Exception itself
                looked.append(f"{path.name}: {error or type(error).__name__}")
    if not looked:
        looked.append(f"{folder} has none of {', '.join(_FILES)}")
    return None


def _huggingface(path: Path) -> ModelTokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        content = read_json(path)
        added = [str(token["content"]) for token in content.get("added_tokens", [])]
        return ModelTokenizer(_vocabulary(content), str(path), added=added)
    tokenizer = Tokenizer.from_file(str(path))
    return ModelTokenizer(tokenizer.get_vocab(with_added_tokens=True), str(path), tokenizer)


def _vocabulary(content: dict[str, Any]) -> dict[str, int]:
    """Return the vocabulary of a ``tokenizer.json``, read without the package."""
    found = content["model"]["vocab"]
    vocab = found if isinstance(found, dict) else {str(one[0]): i for i, one in enumerate(found)}
    return {**vocab, **{str(t["content"]): int(t["id"]) for t in content.get("added_tokens", [])}}


def _bpe(path: Path) -> ModelTokenizer:
    """Read the two files of byte-level BPE."""
    ours = _added(path.parent)
    vocab = {**read_json(path), **ours}
    merges = path.with_name("merges.txt")
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    except ImportError:
        return ModelTokenizer(vocab, str(path), added=ours)
    if not merges.is_file():
        return ModelTokenizer(vocab, str(path), added=ours)
    tokenizer = Tokenizer(models.BPE.from_file(str(path), str(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    # Added tokens are added in the order of their ids, which follow those of the vocabulary.
    added = sorted(ours.items(), key=lambda item: item[1])
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text, _ in added])
    return ModelTokenizer(tokenizer.get_vocab(with_added_tokens=True), str(path), tokenizer)


def _tekken(path: Path) -> ModelTokenizer:
    """Read Mistral's tekken: ranks of byte strings, which follow the special tokens."""
    content = read_json(path)
    config = content["config"]
    special = int(config["default_num_special_tokens"])
    size = int(config["default_vocab_size"])
    listed = content.get("special_tokens") or []
    vocab = {str(token["token_str"]): int(token["rank"]) for token in listed}
    for token in content["vocab"][: size - special]:
        vocab[_byte_level(base64.b64decode(token["token_bytes"]))] = int(token["rank"]) + special
    return ModelTokenizer(vocab, str(path), added=[str(token["token_str"]) for token in listed])


def _tiktoken(path: Path) -> ModelTokenizer:
    """Read lines of base64 and rank; the special tokens are in ``tokenizer_config.json``."""
    vocab: dict[str, int] = {}
    for line in path.read_bytes().splitlines():
        if line:
            token, rank = line.split()
            vocab[_byte_level(base64.b64decode(token, validate=True))] = int(rank)
    if not vocab:
        raise ValueError("contains no token")
    added = _added(path.parent)
    return ModelTokenizer({**vocab, **added}, str(path), added=added)


def _model(path: Path) -> ModelTokenizer:
    """Read SentencePiece's file, or tiktoken's under the same name (Llama 3)."""
    data = path.read_bytes()
    if re.match(rb"[A-Za-z0-9+/]+=* \d+\r?\n", data):
        return _tiktoken(path)
    pieces = list(_pieces(data))
    if not pieces:
        raise ValueError("not a SentencePiece model")
    added = _added(path.parent)
    return ModelTokenizer({**{p: i for i, p in enumerate(pieces)}, **added}, str(path), added=added)


def _pieces(data: bytes) -> Iterator[str]:
    """Yield the pieces of a SentencePiece model (protobuf: field 1 of each message in field 1)."""
    for field, value in _protobuf(data):
        if field == 1 and isinstance(value, bytes):
            for inner, text in _protobuf(value):
                if inner == 1 and isinstance(text, bytes):
                    yield text.decode("utf-8", "replace")


def _protobuf(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError("not a SentencePiece model")
        if at + size > len(data):
            raise ValueError("not a SentencePiece model")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("not a SentencePiece model")


def _added(folder: Path) -> dict[str, int]:
    """Return the added tokens listed in ``added_tokens.json`` and ``tokenizer_config.json``."""
    found = {text: i for text, i in read_json(folder / "added_tokens.json").items() if isinstance(i, int)}
    listed = read_json(folder / "tokenizer_config.json").get("added_tokens_decoder")
    if isinstance(listed, dict):
        found |= {
            str(one["content"]): int(i) for i, one in listed.items() if isinstance(one, dict) and "content" in one
        }
    return found


def _of_gguf(checkpoint: Checkpoint, looked: list[str]) -> ModelTokenizer | None:
    try:
        gguf: Gguf = read_gguf(checkpoint.path)
        tokens = gguf.get("tokenizer.ggml.tokens")
    except (GgufError, OSError) as error:
        looked.append(str(error))
        return None
    if not isinstance(tokens, list) or not tokens:
        looked.append("the GGUF file has no vocabulary")
        return None
    added = control_tokens(gguf).values()
    return ModelTokenizer({str(text): i for i, text in enumerate(tokens)}, str(checkpoint.path), added=added)


_CHARACTERS: Final = {byte: character for character, byte in BYTE_LEVEL.items()}


def _byte_level(data: bytes) -> str:
    """Return bytes in the letters of byte-level BPE."""
    return "".join(_CHARACTERS[byte] for byte in data)
