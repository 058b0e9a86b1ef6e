"""Takes the regular expressions of a response template apart into literal text, white space and named groups.

A part that a Format cannot express becomes `Untranslatable`, which is an error only if it is used.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Final

from .._parts import FormatError
from .checks import NO_COUNTERPART

__all__ = ["Anchor", "FlatPart", "Space", "Untranslatable", "Variable", "chunks", "only_text", "read", "written"]

_MAX_SPELLINGS: Final = 64


@dataclass(frozen=True, slots=True)
class Space:
    """White space of any length."""

    text: str
    """Text that the renderer writes for it."""
    newlines: bool
    """True if it may hold newlines."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A named group."""

    name: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """``^`` or ``$``."""

    start: bool


@dataclass(frozen=True, slots=True)
class Untranslatable:
    """A part that a Format cannot express."""

    source: str


@dataclass(frozen=True, slots=True)
class AlternativeGroup:
    """A group of alternatives, each a sequence of parts."""

    options: tuple[tuple[PatternPart, ...], ...]


FlatPart = str | Space | Variable | Anchor | Untranslatable
PatternPart = FlatPart | AlternativeGroup

_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{[0-9]*,?[0-9]*\})[?+]?")
_CLASS: Final = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_BLANK_CLASS: Final = re.compile(r"\[(?:\\[sntr]|[ \n\t\r])+\]")
_GROUP: Final = re.compile(r"\((?:\?P<(?P<name>\w+)>|\?:|(?!\?))")
_ODD_GROUP: Final = re.compile(r"\(\?(?:P=\w+|#[^)]*|[a-zA-Z-]+)\)|\((?:\?<?[=!]|\?>|\?[^)]*)")


class _Reader:
    """Parser of a valid regular expression."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def options(self) -> tuple[tuple[PatternPart, ...], ...]:
        """Return the alternatives up to the end of the group."""
        result = [self.sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            result.append(self.sequence())
        return tuple(result)

    def sequence(self) -> tuple[PatternPart, ...]:
        pieces: list[PatternPart] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            start = self.at
            piece = self.atom()
            quantifier = _QUANTIFIER.match(self.pattern, self.at)
            if quantifier is not None and quantifier.group() != "{}":
                self.at = quantifier.end()
                piece = _repeated(piece, quantifier.group()[0], self.pattern[start : self.at])
            pieces.append(piece)
        return tuple(pieces)

    def atom(self) -> PatternPart:
        char = self.pattern[self.at]
        if char == "\\":
            return self.escape()
        if char == "[":
            source = self.take(_CLASS)
            return (
                Space(" ", "\\n" in source or "\\s" in source or "\n" in source)
                if _BLANK_CLASS.fullmatch(source)
                else Untranslatable(source)
            )
        if char == "(":
            return self.group()
        self.at += 1
        if char in "^$":
            return Anchor(char == "^")
        return Untranslatable(".") if char == "." else char

    def take(self, expression: re.Pattern[str]) -> str:
        match = expression.match(self.pattern, self.at)
        assert match is not None
        self.at = match.end()
        return match.group()

    def escape(self) -> PatternPart:
        char = self.pattern[self.at + 1]
        if char in "xuU":
            digits = {"x": 2, "u": 4, "U": 8}[char]
            code = self.pattern[self.at + 2 : self.at + 2 + digits]
            self.at += 2 + digits
            return chr(int(code, 16))
        self.at += 2
        if char == "s":
            return Space(" ", True)
        if char in "AZ":
            return Anchor(char == "A")
        if char in _CONTROLS:
            return _CONTROLS[char]
        return Untranslatable(f"\\{char}") if char.isalnum() else char

    def group(self) -> PatternPart:
        start = self.at
        match = _GROUP.match(self.pattern, self.at)
        if match is None:
            # Lookaround, back references, flags.
            if not self.take(_ODD_GROUP).endswith(")"):
                self.options()
                self.at += 1
            return Untranslatable(self.pattern[start : self.at])
        self.at = match.end()
        options = self.options()
        self.at += 1
        if match["name"] is None:
            return AlternativeGroup(options)
        if "(?P<" in self.pattern[match.end() : self.at]:
            return Untranslatable(self.pattern[start : self.at])
        return Variable(match["name"])


def _repeated(piece: PatternPart, quantifier: str, source: str) -> PatternPart:
    if isinstance(piece, str) and piece.isspace() and quantifier != "{":
        return Space("" if quantifier == "*" else piece, piece == "\n")
    if isinstance(piece, Space) and quantifier != "{":
        return Space(" " if quantifier == "+" else "", piece.newlines)
    if quantifier == "?" and isinstance(piece, str):
        return AlternativeGroup(((), (piece,)))
    if quantifier == "?" and isinstance(piece, AlternativeGroup):
        return AlternativeGroup(((), *piece.options))
    return Untranslatable(source)


def read(pattern: str, path: str) -> list[list[FlatPart]]:
    """Return every alternative spelling of ``pattern`` as parts; those without optional parts come first."""
    try:
        return _alternatives(_Reader(pattern).options(), path)
    except RecursionError:
        raise FormatError(path, f"{NO_COUNTERPART}: nested too deeply") from None


def _alternatives(options: tuple[tuple[PatternPart, ...], ...], path: str) -> list[list[FlatPart]]:
    result: list[list[FlatPart]] = []
    for option in options:
        parts = [
            _alternatives(piece.options, path) if isinstance(piece, AlternativeGroup) else [[piece]] for piece in option
        ]
        for chosen in itertools.product(*parts):
            result.append(_joined(itertools.chain.from_iterable(chosen)))
            if len(result) > _MAX_SPELLINGS:
                raise FormatError(path, f"{NO_COUNTERPART}: more than {_MAX_SPELLINGS} spellings")
    return result


def _joined(pieces: itertools.chain[FlatPart]) -> list[FlatPart]:
    result: list[FlatPart] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        else:
            result.append(piece)
    return result


def written(pieces: list[FlatPart], path: str) -> str:
    """Return the text of parts that are literal or white space."""
    return "".join(only_text(piece, path) for piece in pieces)


def only_text(piece: FlatPart, path: str) -> str:
    """Return the text of one part.

    Raises:
        FormatError: the part is neither literal text nor white space.
    """
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Space):
        return piece.text
    if isinstance(piece, Variable):
        raise FormatError(path, f"{NO_COUNTERPART}: the group {piece.name!r}")
    if isinstance(piece, Anchor):
        raise FormatError(path, f"{NO_COUNTERPART}: {'^' if piece.start else '$'}")
    raise FormatError(path, f"{NO_COUNTERPART}: {piece.source}")


def chunks(pieces: list[FlatPart], path: str) -> list[str]:
    """Return the literals between white space, each with the white space after it."""
    result: list[str] = []
    for i, piece in enumerate(pieces):
        text = only_text(piece, path)
        if isinstance(piece, str):
            result.append(text)
        elif result and i < len(pieces) - 1:
            following = only_text(pieces[i + 1], path)
            result[-1] += text or ("" if following[:1].isspace() else "\n")
    return result
