"""Sets of literals: which one is at a place in the text, which comes next, and what may still become one.

* One regular expression searches all literals of a set, longest first. No Python code loops over plain text.
* At the end of the text only a proper prefix of a literal is undecided. ``prefixes`` holds all of them.
* White space is space, tab, CR and LF. Everything else, such as a no-break space, is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, final

from .signals import MORE, NO_MATCH

WS: Final = " \t\r\n"
GoesOn = Callable[[str], object]
"""Text that a reader could not decide, and the text after it → true if both do not decide anything either. Then they
are kept, and nothing is read again. Most are methods of patterns and sets: a call of one costs little."""
GAP: Final = r"[ \t\r\n]*+"  # white space, if there is any
_MISREADINGS: Final = 16
SPACES: Final = re.compile(r"[ \t\r\n]*")
SPACES_GO_ON: Final[GoesOn] = re.compile(rf"{GAP}\Z").match
"""For white space."""
_WORD_GOES_ON: Final[GoesOn] = re.compile(r"[A-Za-z_][A-Za-z_0-9]*+\Z").match
"""For a word, such as the beginning of a name."""


def shared_start(one: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    size = 0
    while one[size : size + 1] == other[size : size + 1] != "":
        size += 1
    return size


@final
class Literals:
    """A set of literals, each with a tag, searched together."""

    def __init__(self, tags: dict[str, int]) -> None:
        texts = sorted(tags, key=len, reverse=True)
        self.tags: dict[str, int] = dict(tags)
        self.longest: int = len(texts[0]) if texts else 0
        # An empty alternation would match everywhere; (?!) matches nowhere.
        self.pattern: re.Pattern[str] = re.compile("|".join(map(re.escape, texts)) or "(?!)")
        heads = "".join(sorted({t[0] for t in texts}))
        self.first_characters: str = heads
        """The first characters of the literals."""
        self.heads: tuple[str, ...] = tuple(heads)
        self.word_heads: str = heads.replace("}", "").replace("]", "")
        """Those that close nothing that JSON has opened."""
        self.first_character_pattern: re.Pattern[str] = re.compile(f"[{re.escape(heads)}]" if heads else "(?!)")
        self._beginnings: re.Pattern[str] = re.compile(_beginnings(texts))
        self.prefixes: frozenset[str] = frozenset(t[:i] for t in texts for i in range(1, len(t)))
        joined = "\0".join(texts)
        self.inner: frozenset[str] = frozenset(text for text in texts if joined.count(text) > 1)
        """The literals that are a part of a longer one."""
        self.word_goes_on: GoesOn | None = None if any(map(_touches_words, texts)) else _WORD_GOES_ON
        """For a word that ends before one of the literals; None if one begins or ends like a word itself."""

    def goes_on_after_spaces(self, text: str) -> bool:
        """True if the text is white space and a proper prefix of a literal, or either."""
        rest = text.lstrip(WS)
        return not rest or rest in self.prefixes

    def near(self, text: str, pos: int, end: int) -> re.Match[str] | None:
        """Return the first literal that begins between ``pos`` and ``end``. Text after that is not searched, so
        repeated calls are cheap."""
        found = self.pattern.search(text, pos, end + self.longest)
        return None if found is None or found.start() > end else found

    def first(self, text: str, pos: int, end: int, final: bool) -> re.Match[str] | None:
        """Return the first literal that begins between ``pos`` and ``end``; None if none does, or if a longer one may
        have begun at or before it. Text from ``undecided_from`` on is undecided then."""
        found = self.near(text, pos, end)
        return None if found is not None and not final and self.longer_from(text, pos, found.start()) >= 0 else found

    def end_before(self, found: re.Match[str] | None, text: str, pos: int, final: bool) -> int:
        """Return where the text before a literal ends: before the one that was ``found``, or before what may still
        become one. Text before ``pos`` is decided."""
        if found is not None:
            return found.start()
        return len(text) if final else self.undecided_from(text, pos)

    def at(self, text: str, pos: int, final: bool) -> int:
        """Return where the literal at ``pos`` ends, NO_MATCH, or MORE if the text ends too early to decide."""
        found = self.pattern.match(text, pos)
        if not final and len(text) - pos < self.longest and text[pos:] in self.prefixes:
            return MORE
        return NO_MATCH if found is None else found.end()

    def begun(self, text: str) -> int:
        """Return the number of characters at the end of the text that begin a literal; -1 if it holds a whole one."""
        size = len(text)
        found = self._beginnings.search(text)
        while found is not None:
            start = found.start()
            if self.pattern.match(text, start) is not None:
                return -1
            if size - start < self.longest and text[start:] in self.prefixes:
                return size - start
            found = self._beginnings.search(text, start + 1)
        return 0

    def undecided(self, text: str, pos: int) -> bool:
        """True if all text from ``pos`` on is a proper prefix of a literal."""
        return len(text) - pos < self.longest and text[pos:] in self.prefixes

    def longer_from(self, text: str, pos: int, start: int) -> int:
        """Return where a longer literal may have begun, at or before the one found at ``start``; -1 if none may.

        The text ends inside that longer literal, so more text has to come to decide between the two."""
        if len(text) - start >= self.longest:
            return -1
        tail = self.undecided_from(text, pos)
        return tail if tail <= start else -1

    def undecided_from(self, text: str, pos: int) -> int:
        """Return where the undecided end of ``text[pos:]`` begins: its longest suffix that a literal begins with.
        Without one, return ``len(text)``."""
        size = len(text)
        found = self.first_character_pattern.search(text, max(pos, size - self.longest + 1))
        while found is not None:
            start = found.start()
            if text[start:] in self.prefixes:
                return start
            found = self.first_character_pattern.search(text, start + 1)
        return size


def _beginnings(texts: list[str]) -> str:
    """Return the pattern of the first two characters of these literals, as far as a text has them."""
    seconds: dict[str, set[str]] = {}
    for text in texts:
        seconds.setdefault(text[0], set()).add(text[1:2])
    parts = [
        re.escape(head) + ("" if "" in found else f"(?:[{re.escape(''.join(sorted(found)))}]|\\Z)")
        for head, found in sorted(seconds.items())
    ]
    return "|".join(parts) or "(?!)"


def _touches_words(literal: str) -> bool:
    """True if a literal begins or ends with a character of a word."""
    return any(c.isalnum() or c == "_" for c in (literal[0], literal[-1]))


NO_LITERALS: Final = Literals({})


@lru_cache(maxsize=64)
def literal_set(*texts: str) -> Literals:
    """Return the set of these literals, tagged with their places."""
    return Literals({text: place for place, text in enumerate(texts)})


@final
class Cursor:
    """Text that has come and is not decided yet, and the reader's place in it."""

    def __init__(self) -> None:
        self.text: str = ""
        self.pos: int = 0
        self.final: bool = False
        """True if no more text will come."""
        # A reader that returns MORE says how the next text may take a short path. None: that must be read.
        self.goes_on: GoesOn | None = None
        """The test for text that decides nothing."""
        self.passed: Callable[[str], str | None] | None = None
        """In the arguments of a call: the next text → what to emit for it; None if it must be read."""
        self.stops: Literals = NO_LITERALS
        """Literals that such text must not hold."""
        self.ends_prompt: bool = False
        """True at the end of the prompt's text, which is forgotten: a reader keeps what it needs of it."""
        self.misreadings: int = 0
        """Number of objects in this text that could not be read as a whole."""
        self._tried: str = ""
        self._brace: int = -1

    def may_close_after(self, pos: int) -> bool:
        """True if it is worth trying to read an object at ``pos`` as a whole. The last brace is searched once per text.
        After a few failures no more are tried: for each, Python counts all lines before it."""
        if self._tried is not self.text:
            self._tried = self.text
            self._brace = self.text.rfind("}")
            self.misreadings = 0
        return self._brace > pos and self.misreadings < _MISREADINGS

    def spaces(self) -> int:
        """Return where the white space at ``pos`` ends."""
        found = SPACES.match(self.text, self.pos)
        return self.pos if found is None else found.end()
