"""Token ids and text: which bytes each id adds.

* A tokenizer needs only ``get_vocab()``. How it writes bytes (byte-level BPE's alphabet, SentencePiece's ``▁`` and
  ``<0x0A>``) is inferred from the tokens themselves.
* Added tokens are their own text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

__all__ = ["BYTE_LEVEL", "SpecialText", "TokenTable", "Tokenizer", "Vocabulary", "vocabulary_of"]

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

    @cached_property
    def _tokens(self) -> dict[int, str]:
        return {i: t for t, i in self._vocab.items()}

    @cached_property
    def _byte_level(self) -> bool:
        return "Ġ" in self._vocab or any(t.startswith("Ġ") for t in self._vocab)

    def bytes_of(self, token: int) -> bytes | None:
        """Return the bytes that a token id adds to the text; ``None`` if the id is unknown."""
        try:
            return self._bytes[token]
        except KeyError:
            data = self._bytes[token] = self._read(token)
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

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(self.bytes_of(i) or b"" for i in ids).decode("utf-8", "replace")

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


class Vocabulary:
    """The tokens of a tokenizer (token → id), with a :class:`TokenTable` for each set of special tokens."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = ids
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
        return cls(get_vocab())

    def table(self, special: Iterable[str]) -> tuple[dict[str, int], TokenTable]:
        """Return the ids of those special tokens that the vocabulary has, and the texts of all ids."""
        key = frozenset(special)
        found = self._tables.get(key)
        if found is None:
            ids = {text: self.ids[text] for text in sorted(key) if text in self.ids}
            found = self._tables[key] = ids, TokenTable(self.ids, ids)
        return found


_READ: WeakKeyDictionary[Any, Vocabulary] = WeakKeyDictionary()


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """Return the vocabulary of a tokenizer, read once: that takes longer than a request, and parsers with vLLM's
    interface are made for each request.

    Raises:
        TypeError: the tokenizer has no ``get_vocab()``.
    """
    try:
        found = _READ.get(tokenizer)
    except TypeError:  # not hashable, or without weak references
        return Vocabulary.read(tokenizer)
    if found is None:
        found = _READ[tokenizer] = Vocabulary.read(tokenizer)
    return found
