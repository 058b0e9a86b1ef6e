"""Check token ids: together with their text or before it, with and without a table of the text of each id."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .._internal.output_parser import OutputParser
from .._internal.tokens.decoding import BYTE_LEVEL, TokenTable
from ..format import Format
from ..format._markers import spellings_of
from ._subject import Subject, difference

_LAGS: Final = (1, 2, 3, 5, 8, 13, 20)
"""Number of characters by which the text lags behind its ids."""


_PIECES: Final = re.compile(r"(?s: ?[^\W\d_]{1,5}|[0-9]|\s{1,3}|[^\w\s]{1,2}|.)")


_LETTERS: Final = {byte: letter for letter, byte in BYTE_LEVEL.items()}
"""Byte → GPT-2's letter for it."""


class PieceTokenizer:
    """A toy tokenizer with GPT-2's byte letters.

    Special tokens are whole; everything else is cut into pieces of a few characters. Its vocabulary grows as it
    encodes.

    Args:
        special: the special tokens.
        spell: cut special tokens into pieces as well, like a model that spells them.
    """

    def __init__(self, special: Iterable[str], *, spell: bool = False) -> None:
        self.special: tuple[str, ...] = tuple(sorted(set(special), key=lambda t: (-len(t), t)))
        self._split = re.compile("(" + "|".join(map(re.escape, self.special)) + ")" if self.special else "((?!))")
        self._spell = spell
        self._ids: dict[str, int] = {token: i for i, token in enumerate(self.special)}
        self._ids.setdefault("Ġ", len(self._ids))  # makes the byte letters recognisable

    def get_vocab(self) -> dict[str, int]:
        """Return token → id, for everything encoded so far."""
        return dict(self._ids)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return [self._id(piece) for piece in self.pieces(text)]

    def pieces(self, text: str) -> list[str]:
        """Cut the text into tokens."""
        found: list[str] = []
        for i, part in enumerate(self._split.split(text)):
            if i % 2 and not self._spell:
                found.append(part)
            elif i % 2:
                found += [part[:1], *_PIECES.findall(part[1:])]
            else:
                found += _PIECES.findall(part)
        return [piece for piece in found if piece]

    def _id(self, piece: str) -> int:
        token = piece
        if piece not in self.special or self._spell:
            token = "".join(_LETTERS[b] for b in piece.encode("utf-8", "surrogatepass"))
            if token in self.special:  # a piece that only looks like a special token
                token = f"{token} "
        return self._ids.setdefault(token, len(self._ids))


_ABOUT_IDS = ("fenced_call", "unproven_call")
"""Codes of what is reported only where no id proves the opener, or only with ids."""


def token_ids(subject: Subject, tokenizer: Any) -> None:
    """Check that ids change nothing where every marker is one id, however far the text lags."""
    fmt = subject.format
    special = [t for t in fmt.special_tokens if t in subject.raw]
    if not special and tokenizer is None:
        return
    tokens = _tokenized(tokenizer, subject.raw, fmt.special_tokens)
    if tokens is None:
        return
    make: Callable[..., OutputParser] = OutputParser.from_format
    settings = {"policy": subject.parser.policy}
    parser = make(fmt, tokenizer=tokens.tokenizer, **settings)
    texts, ids = tokens.texts, [[i] for i in tokens.ids]
    first = subject.run(texts, ids=ids, parser=parser)
    wanted = first.same()
    if _markers_only(subject, special):
        _same_without_ids(subject, wanted, texts)
    for what, chunks, groups in _ways(subject, tokens):
        got = subject.run(chunks, ids=groups, parser=parser).same()
        _same(subject, f"ids come with their text or before it: {what}", wanted, got, chunks)
    if _markers_only(subject, special):
        blind = make(fmt, tokenizer=tokens, **settings)
        _same(subject, "ids without a table", wanted, subject.run(texts, ids=ids, parser=blind).same(), texts)
    if tokenizer is None and "prefill" not in subject.context:
        stripped = make(fmt, tokenizer=tokens.tokenizer, special_text="stripped", **settings)
        bare = ["" if t in special else t for t in texts]
        _same(subject, "stripped text with ids", wanted, subject.run(bare, ids=ids, parser=stripped).same(), bare)


def _same_without_ids(subject: Subject, proven: Mapping[str, Any], texts: list[str]) -> None:
    """Check that ids change nothing but what only they can prove. Calls without the opener that ids prove are text."""
    if any(
        note.code == "missing_open" and note.text in _openers(subject.format)
        for note in subject.whole.result.diagnostics
    ):
        return
    told, with_ids = subject.whole.same(), {**proven}
    for found in (told, with_ids):
        found["diagnostics"] = [note for note in found["diagnostics"] if note[0] not in _ABOUT_IDS]
    _same(subject, "ids say what the text says", told, with_ids, texts)


def _openers(fmt: Format) -> set[str]:
    """Return the openers of calls."""
    return {text.strip() for way in fmt.tools for text in spellings_of(way.call_open)}


def _ways(subject: Subject, tokens: _Tokens) -> Iterator[tuple[str, list[str], list[list[int]]]]:
    """Yield ways in which text and ids can come: a name, the pieces of text, and the ids with each."""
    texts, ids = tokens.texts, [[i] for i in tokens.ids]
    lags = range(1, 21) if subject.exhaustive else (subject.random.choice(_LAGS), subject.random.choice(_LAGS))
    yield "all at once", [subject.raw], [tokens.ids]
    for lag in lags:
        yield f"the text {lag} characters behind its ids", *_lagging(texts, ids, lag)
    yield "several tokens at a time", *_grouped(subject, texts, ids)


@dataclass(slots=True)
class _Tokens:
    """A text as tokens, and a tokenizer that knows the special ones only."""

    tokenizer: Any
    ids: list[int]
    texts: list[str]
    special: dict[int, str]

    def get_vocab(self) -> dict[str, int]:
        """Return the special tokens only, so that the length of any other token is unknown."""
        return {text: i for i, text in self.special.items()}


def _tokenized(tokenizer: Any, raw: str, special: Sequence[str]) -> _Tokens | None:
    """Tokenize the output; return ``None`` if the tokenizer does not reproduce this text."""
    if tokenizer is None:
        toy = PieceTokenizer(special)
        ids = toy.encode(raw)
        vocab = toy.get_vocab()
        return _Tokens(toy, ids, toy.pieces(raw), {vocab[t]: t for t in special})
    encoded = tokenizer.encode(raw, add_special_tokens=False)
    ids = list(getattr(encoded, "ids", encoded))
    vocab = tokenizer.get_vocab()
    table = TokenTable(vocab, {t: vocab[t] for t in special if t in vocab})
    data, done, texts = b"", 0, []
    for token in ids:
        data += table.bytes_of(token) or b""
        text = data.decode("utf-8", "ignore")
        texts.append(text[done:])
        done = len(text)
    if "".join(texts) != raw:
        return None
    return _Tokens(tokenizer, ids, texts, {vocab[t]: t for t in special if t in vocab})


def _markers_only(subject: Subject, special: Sequence[str]) -> bool:
    """True if every literal of a special token in the output was read as markup.

    Only then must ids, which make each of them a marker, give the same message. An end-of-turn token counts wherever
    its id is, so it may only come last.
    """
    if not special:
        return True
    spans = subject.whole.result.spans
    raw = subject.context.get("prefill", "") + subject.raw
    if "prefill" in subject.context and any(t in subject.context["prefill"] for t in special):
        return False
    for found in re.finditer("|".join(map(re.escape, sorted(special, key=len, reverse=True))), raw):
        if not any(s.kind == "markup" and s.start <= found.start() and s.end >= found.end() for s in spans):
            return False
    return True


def _lagging(texts: list[str], ids: list[list[int]], lag: int) -> tuple[list[str], list[list[int]]]:
    """Delay the text of each step by ``lag`` characters; the rest comes at the end, without ids."""
    chunks, said, known = [], 0, ""
    for text in texts:
        known += text
        end = max(len(known) - lag, said)
        chunks.append(known[said:end])
        said = end
    return [*chunks, known[said:]], [*ids, []]


def _grouped(subject: Subject, texts: list[str], ids: list[list[int]]) -> tuple[list[str], list[list[int]]]:
    chunks: list[str] = []
    groups: list[list[int]] = []
    at = 0
    while at < len(texts):
        end = at + subject.random.randint(1, 6)
        chunks.append("".join(texts[at:end]))
        groups.append([i for group in ids[at:end] for i in group])
        at = end
    return chunks, groups


def _same(subject: Subject, law: str, wanted: dict[str, Any], got: dict[str, Any], chunks: Sequence[str]) -> None:
    for part in wanted:
        if wanted[part] != got[part]:
            raise subject.fail(law, part + difference(wanted[part], got[part]), chunks)
