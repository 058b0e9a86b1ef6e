"""Drift: the ids that a tokenizer gives for the text of sampled ids, where they are others.

A conversation that is encoded again before its next turn, or before training, is not the one that was sampled. This
measures how often that happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from .._internal.tokens.decoding import TokenTable, Vocabulary, encode
from ._columns import Refused, columns_of, ids_of
from ._rows import Record, refused_record
from ._sources import pieces, problem_of, rows_of

__all__ = ["Drift", "drift", "drift_of_files"]


class Drift(msgspec.Struct, omit_defaults=True):
    """One row of ids, compared with the ids of its text.

    Attributes:
        row, file: as in a `Record`.
        tokens: number of sampled ids.
        at: index of the first one that differs; ``None``: the ids are the same.
        sampled, encoded: the ids from there to the last difference.
    """

    row: int
    file: str = ""
    tokens: int = 0
    at: int | None = None
    sampled: list[int] = []
    encoded: list[int] = []


def drift(tokenizer: Any, ids: Sequence[int], *, row: int = 1, file: str = "") -> Drift:
    """Compare ids with those that their text is encoded to.

    Args:
        tokenizer: of ``tokenizers`` or ``transformers``.
        ids: as they were sampled.
        row, file: for the result.

    Raises:
        ValueError: an id is not in the vocabulary.
        TypeError: an id is not an integer, or the tokenizer has no ``encode()``.
    """
    return _compared(tokenizer, _table(tokenizer), ids, row, file)


def _table(tokenizer: Any) -> TokenTable:
    """Return the text of each id; added tokens are their own text."""
    added: dict[int, Any] = getattr(tokenizer, "get_added_tokens_decoder", dict)()
    return Vocabulary.read(tokenizer).table(token.content for token in added.values())[1]


def _compared(tokenizer: Any, table: TokenTable, ids: Sequence[int], row: int, file: str) -> Drift:
    sampled = list(ids)
    encoded = encode(tokenizer, table.checked_text_of(sampled))
    found = Drift(row, file, len(sampled))
    if encoded == sampled:
        return found
    start = next((i for i, (a, b) in enumerate(zip(sampled, encoded, strict=False)) if a != b), None)
    start = min(len(sampled), len(encoded)) if start is None else start
    end = 0
    most = min(len(sampled), len(encoded)) - start
    while end < most and sampled[-1 - end] == encoded[-1 - end]:
        end += 1
    found.at = start
    found.sampled = sampled[start : len(sampled) - end]
    found.encoded = encoded[start : len(encoded) - end]
    return found


def drift_of_files(inputs: Sequence[str], tokenizer: Any, column: str = "ids") -> Iterator[Drift | Record]:
    """Yield the drift of each row of files, in order; for a row that cannot be read, a record with its error.

    Raises:
        OSError: a file cannot be opened.
        ModuleNotFoundError: a package is missing.
    """
    table = _table(tokenizer)
    for path in inputs:
        file = path if len(inputs) > 1 else ""
        for piece in pieces(path):
            for row, values in rows_of(piece):
                try:
                    ids = ids_of(columns_of(values), column)
                    try:
                        yield _compared(tokenizer, table, ids, row, file)
                    except (ValueError, TypeError) as error:
                        raise Refused("value", column, str(error)) from None
                except Refused as refused:
                    yield refused_record(refused, values, row, file)
            if piece.problem:
                yield problem_of(piece, file)
