"""The regular expressions of a response template, read instead of run: as literal text and what stands between it.

Rule of this module: what cannot be written in a Format becomes a ``Gap``, and an error only where it is used.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Final

from .. import FormatError
from .checks import NO_COUNTERPART

__all__ = ["Edge", "Flat", "Gap", "Space", "Variable", "chunks", "only_text", "read", "written"]

_MAX_SPELLINGS: Final = 64


@dataclass(frozen=True, slots=True)
class Space:
    """White space of any length."""

    text: str
    """How it is written."""
    newlines: bool
    """Whether it may hold newlines."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A named group."""

    name: str


@dataclass(frozen=True, slots=True)
class Edge:
    """``^`` or ``$``."""

    start: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """What cannot be said in a Format."""

    source: str


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[tuple[Piece, ...], ...]


Flat = str | Space | Variable | Edge | Gap
Piece = Flat | Choice

_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{[0-9]*,?[0-9]*\})[?+]?")
_CLASS: Final = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_BLANK_CLASS: Final = re.compile(r"\[(?:\\[sntr]|[ \n\t\r])+\]")
_GROUP: Final = re.compile(r"\((?:\?P<(?P<name>\w+)>|\?:|(?!\?))")
_ODD_GROUP: Final = re.compile(r"\(\?(?:P=\w+|#[^)]*|[a-zA-Z-]+)\)|\((?:\?<?[=!]|\?>|\?[^)]*)")


class _Reader:
    """Takes a valid regular expression apart."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def options(self) -> tuple[tuple[Piece, ...], ...]:
        """The alternatives up to the end of the group."""
        result = [self.sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            result.append(self.sequence())
        return tuple(result)

    def sequence(self) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            start = self.at
            piece = self.atom()
            quantifier = _QUANTIFIER.match(self.pattern, self.at)
            if quantifier is not None and quantifier.group() != "{}":
                self.at = quantifier.end()
                piece = _repeated(piece, quantifier.group()[0], self.pattern[start : self.at])
            pieces.append(piece)
        return tuple(pieces)

    def atom(self) -> Piece:
        char = self.pattern[self.at]
        if char == "\\":
            return self.escape()
        if char == "[":
            source = self.take(_CLASS)
            return (
                Space(" ", "\\n" in source or "\\s" in source or "\n" in source)
                if _BLANK_CLASS.fullmatch(source)
                else Gap(source)
            )
        if char == "(":
            return self.group()
        self.at += 1
        if char in "^$":
            return Edge(char == "^")
        return Gap(".") if char == "." else char

    def take(self, expression: re.Pattern[str]) -> str:
        match = expression.match(self.pattern, self.at)
        assert match is not None
        self.at = match.end()
        return match.group()

    def escape(self) -> Piece:
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
            return Edge(char == "A")
        if char in _CONTROLS:
            return _CONTROLS[char]
        return Gap(f"\\{char}") if char.isalnum() else char

    def group(self) -> Piece:
        start = self.at
        match = _GROUP.match(self.pattern, self.at)
        if match is None:
            # Lookaround, back references, flags.
            if not self.take(_ODD_GROUP).endswith(")"):
                self.options()
                self.at += 1
            return Gap(self.pattern[start : self.at])
        self.at = match.end()
        options = self.options()
        self.at += 1
        if match["name"] is None:
            return Choice(options)
        if "(?P<" in self.pattern[match.end() : self.at]:
            return Gap(self.pattern[start : self.at])
        return Variable(match["name"])


def _repeated(piece: Piece, quantifier: str, source: str) -> Piece:
    if isinstance(piece, str) and piece.isspace() and quantifier != "{":
        return Space("" if quantifier == "*" else piece, piece == "\n")
    if isinstance(piece, Space) and quantifier != "{":
        return Space(" " if quantifier == "+" else "", piece.newlines)
    if quantifier == "?" and isinstance(piece, str):
        return Choice(((), (piece,)))
    if quantifier == "?" and isinstance(piece, Choice):
        return Choice(((), *piece.options))
    return Gap(source)


def read(pattern: str, path: str) -> list[list[Flat]]:
    """Every way to write ``pattern``, as runs of literal text and of what is not; optional parts are left out first."""
    try:
        return _ways(_Reader(pattern).options(), path)
    except RecursionError:
        raise FormatError(path, f"{NO_COUNTERPART}: nested too deep") from None


def _ways(options: tuple[tuple[Piece, ...], ...], path: str) -> list[list[Flat]]:
    result: list[list[Flat]] = []
    for option in options:
        parts = [_ways(piece.options, path) if isinstance(piece, Choice) else [[piece]] for piece in option]
        for way in itertools.product(*parts):
            result.append(_joined(itertools.chain.from_iterable(way)))
            if len(result) > _MAX_SPELLINGS:
                raise FormatError(path, f"{NO_COUNTERPART}: more than {_MAX_SPELLINGS} spellings")
    return result


def _joined(pieces: itertools.chain[Flat]) -> list[Flat]:
    result: list[Flat] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        else:
            result.append(piece)
    return result


def written(pieces: list[Flat], path: str) -> str:
    """The text of pieces that are literal or white space."""
    return "".join(only_text(piece, path) for piece in pieces)


def only_text(piece: Flat, path: str) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Space):
        return piece.text
    if isinstance(piece, Variable):
        raise FormatError(path, f"{NO_COUNTERPART}: the group {piece.name!r}")
    if isinstance(piece, Edge):
        raise FormatError(path, f"{NO_COUNTERPART}: {'^' if piece.start else '$'}")
    raise FormatError(path, f"{NO_COUNTERPART}: {piece.source}")


def chunks(pieces: list[Flat], path: str) -> list[str]:
    """The literals between white space, each with the white space behind it."""
    result: list[str] = []
    for i, piece in enumerate(pieces):
        text = only_text(piece, path)
        if isinstance(piece, str):
            result.append(text)
        elif result and i < len(pieces) - 1:
            following = only_text(pieces[i + 1], path)
            result[-1] += text or ("" if following[:1].isspace() else "\n")
    return result
