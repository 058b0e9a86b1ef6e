"""Token ids and text: which bytes each id adds.

* A tokenizer needs only ``get_vocab()``. How it writes bytes (byte-level BPE's alphabet, SentencePiece's ``▁`` and
  ``<0x0A>``) is inferred from the tokens themselves.
* Added tokens are their own text.
* The text of ids is the text of their bytes: nothing is stripped at its beginning, and special tokens are kept.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, Protocol
from weakref import WeakKeyDictionary

from ...errors import TokenizerError
from ..installed import install_command

__all__ = [
    "BYTE_LEVEL",
    "Detokenizer",
    "SpecialText",
    "TokenTable",
    "Tokenizer",
    "Vocabulary",
    "added_tokens",
    "encode",
    "load_tokenizer",
    "size_of",
    "vocabulary_of",
]

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


SpecialText = Literal["kept", "stripped"]
"""How the engine's text treats special tokens."""


class Tokenizer(Protocol):
    """The only method that a tokenizer needs."""

    def get_vocab(self) -> dict[str, int]: ...


def _byte_alphabet() -> dict[str, int]:
    """Return GPT-2's printable characters for the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


BYTE_LEVEL = _byte_alphabet()
"""Byte-level BPE's character for each byte → the byte."""


class TokenTable:
    """The bytes of each token id. Shared between streams; entries are computed when they are first needed.

    Args:
        vocab: token → id.
        special: the special tokens among them, which are their own text.
    """

    def __init__(self, vocab: Mapping[str, int], special: Mapping[str, int]) -> None:
        self._vocab = vocab
        self._special = special
        self._bytes: dict[int, bytes | None] = {}
        self.sizes: dict[int, int] = {}
        """The number of bytes of each known id that `bytes_of` was asked for."""
        self.texts: dict[int, str | None] = {}
        """The text of each id that was read; ``None``: it begins or ends inside a character."""
        self.special_ids: Final = frozenset(special.values())

    @cached_property
    def _tokens(self) -> dict[int, str]:
        return {i: t for t, i in self._vocab.items()}

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self._vocab)

    @cached_property
    def _byte_level(self) -> bool:
        """False for SentencePiece with byte fallback, where ``Ġ`` is a letter."""
        return "<0x0A>" not in self._vocab and ("Ġ" in self._vocab or any(t.startswith("Ġ") for t in self._vocab))

    def bytes_of(self, token: int) -> bytes | None:
        """Return the bytes that a token id adds to the text; ``None`` if the id is unknown."""
        try:
            return self._bytes[token]
        except KeyError:
            data = self._bytes[token] = self._read(token)
            if data is not None:
                self.sizes[token] = len(data)
            return data

    def _read(self, token: int) -> bytes | None:
        text = self._tokens.get(token)
        if text is None:
            return None
        if text in self._special:
            return text.encode()
        if self._byte_level:
            try:
                return bytes(BYTE_LEVEL[c] for c in text)
            except KeyError:
                return text.encode()
        byte = _BYTE.fullmatch(text)
        return bytes([int(byte.group(1), 16)]) if byte else text.replace("▁", " ").encode()

    def text_of_token(self, token: int) -> str | None:
        """Return the text of one id; ``None`` if its bytes begin or end inside a character.

        Raises:
            KeyError: the id is unknown.
        """
        data = self.bytes_of(token)
        if data is None:
            raise KeyError(token)
        try:
            text: str | None = data.decode()
        except UnicodeDecodeError:
            text = None
        self.texts[token] = text
        return text

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(self.bytes_of(i) or b"" for i in ids).decode("utf-8", "replace")

    def checked_text_of(self, ids: Sequence[int]) -> str:
        """Return the text of these ids.

        Raises:
            ValueError: an id is not in the vocabulary.
            TypeError: an id is not an integer.
        """
        detokenizer = Detokenizer(self)
        return detokenizer.feed(ids)[0] + detokenizer.finish()

    def tail(self, ids: Sequence[int], starts: Sequence[str]) -> str:
        """Return the text of the ids from the last turn start on.

        ``starts`` are its spellings; it is found by the special tokens in them. If there are none, or no turn start is
        found, return the text of the last 256 ids.
        """
        marks = {i for t, i in self._special.items() if any(t in start for start in starts)}
        marks |= {self._vocab[s] for s in starts if s in self._vocab}
        for at in range(len(ids) - 1, -1, -1):
            if ids[at] in marks:
                text = self.text_of(ids[at:])
                if any(start in text for start in starts):
                    return text
        return self.text_of(ids[-256:])


class Detokenizer:
    """Turns the ids of one output into text while they arrive. Bytes of an unfinished character are held.

    Args:
        table: the bytes of each id.
        offsets: record the characters of each token.

    Attributes:
        ids: the ids so far, if offsets are recorded.
        offsets: for each of them, the character that holds its first byte, and the one after its last byte.
    """

    __slots__ = ("_decoder", "_length", "_records", "_table", "ids", "offsets")

    def __init__(self, table: TokenTable, *, offsets: bool = False) -> None:
        self._table = table
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._records = offsets
        self._length = 0
        self.ids: list[int] = []
        self.offsets: list[tuple[int, int]] = []

    def feed(self, ids: Sequence[int]) -> tuple[str, list[int]]:
        """Return the text that these ids add, and the places in it where special tokens begin.

        Raises:
            ValueError: an id is not in the vocabulary.
            TypeError: an id is not an integer.
        """
        texts = self._table.texts
        try:
            pieces = [texts[i] if i in texts else self._table.text_of_token(i) for i in ids]
        except (KeyError, TypeError):
            raise self._refused(ids) from None
        bounds = self._whole(pieces) if None not in pieces and not self._decoder.getstate()[0] else None
        if bounds is None:
            pieces, bounds = self._split(ids)
        special = self._table.special_ids
        places = [start - self._length for i, (start, _) in zip(ids, bounds, strict=True) if i in special]
        if self._records:
            self.ids += ids
            self.offsets += bounds
        text = "".join(pieces)  # type: ignore[arg-type]
        self._length += len(text)
        return text, places

    def finish(self) -> str:
        """Return U+FFFD if the last character is unfinished, else nothing."""
        rest = self._decoder.decode(b"", True)
        self._length += len(rest)
        return rest

    def _whole(self, pieces: Sequence[str | None]) -> list[tuple[int, int]]:
        """Return the bounds of tokens that hold whole characters only."""
        bounds = []
        at = self._length
        for piece in pieces:
            end = at + len(piece or "")
            bounds.append((at, end))
            at = end
        return bounds

    def _split(self, ids: Sequence[int]) -> tuple[list[str | None], list[tuple[int, int]]]:
        """Return the text that each id completes, and the bounds of its own characters."""
        decoder = self._decoder
        pieces: list[str | None] = []
        bounds = []
        at = self._length
        for i in ids:
            data = self._table.bytes_of(i) or b""
            held = decoder.getstate()[0]
            first = decoder.decode(data[:1])
            # The first byte continues the held character, unless that was replaced and another one begins.
            continues = held and (not first or (len(first) == 1 and not decoder.getstate()[0]))
            start = at + 1 if held and data and not continues else at
            piece = first + decoder.decode(data[1:])
            pieces.append(piece)
            at += len(piece)
            bounds.append((start, max(start, at + bool(decoder.getstate()[0] and data))))
        return pieces, bounds

    def _refused(self, ids: Sequence[int]) -> Exception:
        """Return the error for the first id that has no text."""
        for place, token in enumerate(ids):
            if not hasattr(token, "__index__"):
                kind = type(token).__name__
                return TypeError(f"token_ids[{place}]: expected a token id (int), got {kind}: {token!r:.80}")
            if self._table.bytes_of(token) is None:
                size = len(self._table)
                return ValueError(f"token_ids[{place}]: {token} is not in the vocabulary of {size} tokens")
        raise AssertionError(ids)


class Vocabulary:
    """The tokens of a tokenizer (token → id), with a :class:`TokenTable` for each set of special tokens.

    ``special``: the tokens that the tokenizer itself lists as special; empty if it lists none. ``added``: these, and
    all others that it has in addition to those that its merges make.
    """

    def __init__(self, ids: Mapping[str, int], special: Iterable[str] = (), added: Iterable[str] = ()) -> None:
        self.ids = ids
        self.special: frozenset[str] = frozenset(special)
        self.added: frozenset[str] = self.special.union(added)
        self._tables: dict[frozenset[str], tuple[dict[str, int], TokenTable]] = {}

    @classmethod
    def read(cls, tokenizer: Any) -> Vocabulary:
        """Read the vocabulary of a tokenizer; an empty one for ``None``.

        Raises:
            TypeError: the tokenizer has no ``get_vocab()``.
        """
        if tokenizer is None:
            return cls({})
        get_vocab = getattr(tokenizer, "get_vocab", None)
        if not callable(get_vocab):
            raise TypeError(f"tokenizer: {type(tokenizer).__name__} has no get_vocab()")
        return cls(get_vocab(), *added_tokens(tokenizer))

    def table(self, special: Iterable[str]) -> tuple[dict[str, int], TokenTable]:
        """Return the ids of those special tokens that the vocabulary has, and the texts of all ids."""
        key = frozenset(special)
        found = self._tables.get(key)
        if found is None:
            ids = {text: self.ids[text] for text in sorted(key) if text in self.ids}
            found = self._tables[key] = ids, TokenTable(self.ids, ids)
        return found


def added_tokens(tokenizer: Any) -> tuple[set[str], set[str]]:
    """Return the tokens that a tokenizer of transformers or tokenizers lists as special, and all that it has added."""
    special = set(map(str, getattr(tokenizer, "all_special_tokens", None) or ()))
    added = getattr(tokenizer, "added_tokens_decoder", None)
    if added is None and callable(getattr(tokenizer, "get_added_tokens_decoder", None)):
        added = tokenizer.get_added_tokens_decoder()
    tokens = list(dict(added or {}).values())
    special.update(str(token) for token in tokens if getattr(token, "special", False))
    return special, set(map(str, tokens))


_READ: WeakKeyDictionary[Any, tuple[int, Vocabulary]] = WeakKeyDictionary()


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """Return the vocabulary of a tokenizer, read once, and again if its size changes.

    Reading takes longer than a request, and parsers with vLLM's interface are made for each request.

    Raises:
        TypeError: the tokenizer has no ``get_vocab()``.
    """
    size = size_of(tokenizer)
    try:
        found = _READ.get(tokenizer)
    except TypeError:  # not hashable, or without weak references
        return Vocabulary.read(tokenizer)
    if found is None or found[0] != size:
        found = _READ[tokenizer] = size, Vocabulary.read(tokenizer)
    return found[1]


def size_of(tokenizer: Any) -> int:
    """Return the number of tokens that a tokenizer reports without listing them; -1 if it does not."""
    if hasattr(tokenizer, "__len__"):
        return len(tokenizer)
    count = getattr(tokenizer, "get_vocab_size", None)
    return int(count()) if callable(count) else -1


def encode(tokenizer: Any, text: str) -> list[int]:
    """Return the ids of a text by a tokenizer of ``tokenizers`` or ``transformers``, without special tokens added.

    Raises:
        TypeError: the tokenizer has no ``encode()``.
    """
    if not callable(getattr(tokenizer, "encode", None)):
        raise TypeError(f"tokenizer: {type(tokenizer).__name__} has no encode()")
    encoded = tokenizer.encode(text, add_special_tokens=False)
    return list(getattr(encoded, "ids", encoded))


def load_tokenizer(source: str) -> Any:
    """Return a tokenizer from a ``tokenizer.json``, a folder with one, or a hub id, read by the package tokenizers.

    Raises:
        TokenizerError: the package is missing, or there is no such tokenizer.
    """
    try:
        from tokenizers import Tokenizer as Reader
    except ImportError:
        raise TokenizerError(
            f"reading a tokenizer needs the package tokenizers: {install_command('untemplate', 'hub')}"
        ) from None
    from pathlib import Path

    path = Path(source)
    try:
        if path.is_dir():
            return Reader.from_file(str(path / "tokenizer.json"))
        return Reader.from_file(source) if path.exists() else Reader.from_pretrained(source)
    except Exception as error:  # the package raises plain exceptions
        raise TokenizerError(f"{source}: no tokenizer: {error}") from None
