"""Tokenizers, as far as parsers need them: the vocabulary, and what each id stands for.

Rules of this module:

* A tokenizer is anything with ``get_vocab()``. It is asked once: building a vocabulary costs more than a request.
* Parsers are made per request and share what is read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ..tokens import TokenTable

__all__ = ["Vocabulary", "vocabulary"]


class Vocabulary:
    """A vocabulary (token → id), and the table of its texts for each set of special tokens."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = ids
        self._tables: dict[frozenset[str], tuple[dict[str, int], TokenTable]] = {}

    def table(self, special: Iterable[str]) -> tuple[dict[str, int], TokenTable]:
        """The special tokens that the vocabulary has, with their ids, and what each id of the vocabulary stands for."""
        key = frozenset(special)
        found = self._tables.get(key)
        if found is None:
            ids = {text: self.ids[text] for text in sorted(key) if text in self.ids}
            found = self._tables[key] = ids, TokenTable(self.ids, ids)
        return found


_KNOWN: WeakKeyDictionary[Any, Vocabulary] = WeakKeyDictionary()


def vocabulary(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a tokenizer; an empty one for ``None``.

    Raises:
        TypeError: it has no ``get_vocab()``.
    """
    if tokenizer is None:
        return Vocabulary({})
    try:
        found = _KNOWN.get(tokenizer)
    except TypeError:  # cannot be hashed or referred to weakly
        return _read(tokenizer)
    if found is None:
        found = _KNOWN[tokenizer] = _read(tokenizer)
    return found


def _read(tokenizer: Any) -> Vocabulary:
    get_vocab = getattr(tokenizer, "get_vocab", None)
    if not callable(get_vocab):
        raise TypeError(f"tokenizer: {type(tokenizer).__name__} has no get_vocab()")
    return Vocabulary(get_vocab())
