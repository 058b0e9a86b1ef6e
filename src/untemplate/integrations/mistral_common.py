"""Tokenizers of mistral-common, as untemplate's parsers take them.

>>> from mistral_common.tokens.tokenizers.mistral import MistralTokenizer      # doctest: +SKIP
>>> tokenizer = Tokenizer(MistralTokenizer.v13())                              # doctest: +SKIP
>>> OutputParser.named("mistral", tokenizer=tokenizer).parse_tokens(ids)       # doctest: +SKIP

These tokenizers have no ``get_vocab()``, and ``vocab()`` writes ``<?>`` for each token that is a part of a character.

Source: ``Tekkenizer`` and ``SentencePieceTokenizer`` of mistral-common 1.13.
"""

from __future__ import annotations

from typing import Any, Final

from .._internal.tokens.decoding import BYTE_LEVEL

__all__ = ["Tokenizer"]

_LETTERS: Final = {byte: letter for letter, byte in BYTE_LEVEL.items()}


class Tokenizer:
    """A vocabulary of mistral-common.

    Args:
        tokenizer: a ``MistralTokenizer``, or the one in its ``instruct_tokenizer.tokenizer``.
    """

    def __init__(self, tokenizer: Any) -> None:
        own = getattr(getattr(tokenizer, "instruct_tokenizer", None), "tokenizer", tokenizer)
        special: dict[int, str] = {i: own.id_to_piece(i) for i in sorted(own.special_ids)}
        piece = _bytes_of if hasattr(own, "id_to_byte_piece") else own.__class__.id_to_piece
        self._ids: dict[str, int] = {special.get(i) or piece(own, i): i for i in range(own.n_words)}
        self.all_special_tokens: list[str] = list(special.values())

    def get_vocab(self) -> dict[str, int]:
        """Return each token and its id."""
        return self._ids


def _bytes_of(tokenizer: Any, token: int) -> str:
    """Return an ordinary token of Tekken in the letters of byte-level BPE."""
    return "".join(_LETTERS[byte] for byte in tokenizer.id_to_byte_piece(token))
