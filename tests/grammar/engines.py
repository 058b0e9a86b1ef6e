"""The engines that decode under a grammar, as samplers: random tokens under the mask, and acceptance of a given text.

An engine that is not installed is ``None`` in ``ENGINES``; nothing replaces it.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from untemplate.format import ElementArguments, Format, TaggedArguments, Turn
from untemplate.formats._registry import entries

BYTES = 256
CLOSERS = '"}])>\n'


def _spellings(fmt: Format | None) -> list[str]:
    """Return every marker of a Format, or of the catalogue, and every special token: texts that models write as one
    token or a few.
    """
    found: dict[str, None] = {}

    def walk(part: Any) -> None:
        spelled = getattr(part, "spellings", None)
        if spelled is not None:
            found.update(dict.fromkeys(spelled))
            # With the white space in front, too: the text that ends a value is often more than its tag.
            found[part.text.rstrip()] = None
        elif isinstance(part, tuple):
            for item in part:
                walk(item)
        elif hasattr(part, "__dataclass_fields__"):
            for name in part.__dataclass_fields__:
                if name not in ("accepted", "unknown"):
                    walk(getattr(part, name))

    for one in [entry.format for entry in entries()] if fmt is None else [fmt]:
        walk(one)
        found.update(dict.fromkeys(one.special_tokens))
    return [text for text in found if len(text) > 1]


def _closing(fmt: Format) -> list[str]:
    """Return the markers that end reasoning and values."""
    found = [] if fmt.reasoning is None else [fmt.reasoning.close]
    tags: list[str] = []
    for way in fmt.tools:
        arguments = getattr(way.body, "arguments", None)
        if isinstance(arguments, TaggedArguments):
            found.append(arguments.value_close)
        elif isinstance(arguments, ElementArguments):
            tags += [f"{arguments.close.text}{name}{arguments.name_close}" for name in (*ELEMENTS, arguments.item)]
    return [*tags, *(t for m in found for t in (m.text.rstrip(), m.text.strip()) if len(t) > 1)]


WORDS = ("get", "_weather", "city", "true", "null", " and", "日本", "ß", '": "', '", "', "12", "[1, 2]", "\n\n")


ELEMENTS = ("city", "unit", "days", "note", "area", "u", "v", "w", "x", "p", "m", "i", "a", "o", "l", "s", "n")
"""Names of arguments in the tests' tools. By chance alone, text would hardly come to the close tag of its element."""


@dataclass
class Vocabulary:
    """Single bytes, every marker of a Format (``None`` for the catalogue), a few words, and the end."""

    special: frozenset[str] = frozenset()
    """Markers that are special tokens, which engines know by id. They are not text for engines that distinguish the
    two."""
    format: Format | None = None
    pieces: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        closing = () if self.format is None else _closing(self.format)
        texts = list(dict.fromkeys((*_spellings(self.format), *closing, *WORDS)))
        self.pieces = [bytes([i]) for i in range(BYTES)] + [t.encode() for t in texts] + [b"<END>"]
        self.ids = {t: BYTES + i for i, t in enumerate(texts)}
        self.end = len(self.pieces) - 1
        self.weights = [1.0] * len(self.pieces)
        self.wanted: dict[int, float] = {}
        """Markers that are written more often, so that outputs end sooner: mostly closing ones."""
        if self.format is not None:
            plain = _spellings(self.format.extend(turn=Turn(), special_tokens=()))
            self.wanted = {self.ids[t]: 4.0 for t in plain} | {self.ids[t]: 25.0 for t in _closing(self.format)}
            for i, weight in self.wanted.items():
                self.weights[i] = weight
        for i in (*range(32), *range(127, BYTES)):
            self.weights[i] = 0.05
        for i in self.stops():
            self.weights[i] = 0
        for c in CLOSERS:
            self.weights[ord(c)] = 6
        for c in "\\-eE":
            self.weights[ord(c)] = 0.3
        # White space between the parts of JSON tests nothing, and would take most of the time.
        for text in ("\n", "\t", " ", "\n\n"):
            self.weights[ord(text) if len(text) == 1 else self.ids[text]] = 0.1
        # Used near the length limit: closing markers are likelier than letters.
        self.hasty = list(self.weights)
        for c in '"}])':
            self.hasty[ord(c)] *= 50
        for i in range(BYTES, self.end):
            self.hasty[i] *= 10

    def stops(self) -> list[int]:
        """Return the tokens that end a turn: an engine stops there, whatever its grammar allows."""
        if self.format is None or self.format.turn.end is None:
            return []
        others = _spellings(self.format.extend(turn=Turn(), special_tokens=()))
        ends = [t for t in self.format.turn.end.spellings if t in self.special]
        return [self.ids[t] for t in ends if not any(t in other for other in others)]

    def get_vocab(self) -> dict[str, int]:
        """Return every token, as a tokenizer does. Special tokens of the format's models that this vocabulary lacks are
        left out."""
        none = set(() if self.format is None else self.format.special_tokens) - self.special
        known = {text: i for text, i in self.ids.items() if text not in none}
        return {**{f"<0x{i:02X}>": i for i in range(BYTES)}, **known, "<END>": self.end}

    def tokens(self) -> dict[str, int]:
        return {t: i for t, i in self.ids.items() if t in self.special}

    def text(self, ids: Sequence[int]) -> str:
        return b"".join(self.pieces[i] for i in ids).decode("utf-8", errors="replace")

    def encode(self, text: str) -> list[int]:
        """Return special tokens by id, everything else byte by byte."""
        ids: list[int] = []
        at = 0
        while at < len(text):
            found = max((t for t in self.special if text.startswith(t, at)), key=len, default=None)
            if found is not None and found in self.ids:
                ids.append(self.ids[found])
                at += len(found)
            else:
                ids.extend(text[at].encode())
                at += 1
        return ids


class Matcher:
    """The state of one output."""

    def allowed(self) -> list[int]:
        """Return the tokens that may come next."""
        raise NotImplementedError

    def take(self, token: int) -> bool:
        raise NotImplementedError


class Engine:
    """One compiled grammar."""

    vocabulary: Vocabulary

    def matcher(self) -> Matcher:
        raise NotImplementedError

    def accepts(self, ids: Sequence[int]) -> int:
        """Return the number of tokens that are accepted; ``len(ids) + 1`` if all are, and the output may end there."""
        matcher = self.matcher()
        for i, token in enumerate(ids):
            if not matcher.take(token):
                return i
        return len(ids) + (self.vocabulary.end in matcher.allowed())

    def sample(self, rng: random.Random, most: int, likely: Sequence[int] = ()) -> list[int] | None:
        """Return random tokens under the mask up to the end; ``None`` if there is no end within ``most`` tokens.
        Sometimes one of the ``likely`` tokens is taken, where it is allowed.
        """
        vocabulary = self.vocabulary
        matcher = self.matcher()
        ids: list[int] = []
        end = vocabulary.end
        for step in range(most):
            allowed = matcher.allowed()
            if not allowed:
                raise AssertionError(f"dead end after {vocabulary.text(ids)!r}")
            table = vocabulary.hasty if step > most // 2 else vocabulary.weights
            weights = [table[i] for i in allowed]
            for token in likely if likely and rng.random() < 0.4 else ():
                at = bisect_left(allowed, token)
                if at < len(allowed) and allowed[at] == token:
                    weights[at] *= 300
            if allowed[-1] == end:
                weights[-1] = max(sum(weights[:-1]) * 0.3, 1e-9)
            if not any(weights):
                return None
            token = rng.choices(allowed, weights)[0]
            if token == end:
                return ids
            if not matcher.take(token):
                raise AssertionError(f"{vocabulary.pieces[token]!r} was in the mask after {vocabulary.text(ids)!r}")
            ids.append(token)
        return None


def _tokens(bits: bytes, size: int) -> list[int]:
    """Return the tokens of a mask."""
    found: list[int] = []
    for at, byte in enumerate(bits):
        if byte == 255:
            found.extend(range(at * 8, at * 8 + 8))
        elif byte:
            found.extend([at * 8 + i for i in _BITS[byte]])
    while found and found[-1] >= size:
        found.pop()
    return found


_BITS = [[i for i in range(8) if byte >> i & 1] for byte in range(256)]


# -- llguidance ----------------------------------------------------------------------------------------------------


class _LarkTokenizer:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.eos_token_id = vocabulary.end
        self.bos_token_id = None
        self.tokens = list(vocabulary.pieces)
        self.special_token_ids = [vocabulary.end, *vocabulary.tokens().values()]

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


class LarkEngine(Engine):
    def __init__(self, grammar: Any, vocabulary: Vocabulary) -> None:
        import llguidance

        self.vocabulary = vocabulary
        self._tokenizer = _lark_tokenizer(vocabulary)
        self._first = llguidance.LLMatcher(self._tokenizer, llguidance.LLMatcher.grammar_from_lark(grammar.text))
        if self._first.is_error():
            raise ValueError(self._first.get_error())

    def matcher(self) -> Matcher:
        return _LarkMatcher(self._first.deep_copy(), len(self.vocabulary.pieces))


_TOKENIZERS: dict[Any, Any] = {}


def _lark_tokenizer(vocabulary: Vocabulary) -> Any:
    import llguidance

    key = ("lark", vocabulary.special, vocabulary.format)
    if key not in _TOKENIZERS:
        _TOKENIZERS[key] = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_LarkTokenizer(vocabulary)), n_vocab=len(vocabulary.pieces)
        )
    return _TOKENIZERS[key]


class _LarkMatcher(Matcher):
    def __init__(self, inner: Any, size: int) -> None:
        self.inner = inner
        self.size = size

    def allowed(self) -> list[int]:
        bits = self.inner.compute_bitmask()
        if self.inner.is_error():
            raise AssertionError(self.inner.get_error())
        return _tokens(bits, self.size)

    def take(self, token: int) -> bool:
        return self.inner.try_consume_tokens([token]) == 1


# -- xgrammar ------------------------------------------------------------------------------------------------------


class StructuralTagEngine(Engine):
    def __init__(self, grammar: Any, vocabulary: Vocabulary, *, ebnf: bool = False) -> None:
        import xgrammar

        self.vocabulary = vocabulary
        self._module = xgrammar
        key = ("xgrammar", vocabulary.special, vocabulary.format)
        if key not in _TOKENIZERS:
            info = xgrammar.TokenizerInfo(
                vocabulary.pieces, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[vocabulary.end]
            )
            _TOKENIZERS[key] = xgrammar.GrammarCompiler(info, cache_enabled=False)
        if ebnf:
            self._grammar = _TOKENIZERS[key].compile_grammar(xgrammar.Grammar.from_ebnf(grammar.text))
        else:
            self._grammar = _TOKENIZERS[key].compile_structural_tag(grammar.text)

    def matcher(self) -> Matcher:
        size = len(self.vocabulary.pieces)
        return _XMatcher(self._module.GrammarMatcher(self._grammar), size, self._module.allocate_token_bitmask(1, size))


class _XMatcher(Matcher):
    def __init__(self, inner: Any, size: int, bits: Any) -> None:
        self.inner = inner
        self.size = size
        self.bits = bits

    def allowed(self) -> list[int]:
        self.inner.fill_next_token_bitmask(self.bits)
        return _tokens(self.bits.numpy().tobytes(), self.size)

    def take(self, token: int) -> bool:
        return bool(self.inner.accept_token(token))
