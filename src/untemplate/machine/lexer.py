"""Literals in text: which of a set stands here, which comes next, and what might still become one.

Rules of this module:

* Searching is done in C: one alternation, longest literal first. Nothing here loops over plain text.
* At the end of what has arrived, only a proper prefix of a literal is undecided. ``prefixes`` answers that by look-up.
* White space is space, tab, CR and LF. Anything else, a no-break space included, is text.
"""

from __future__ import annotations

import re
from typing import Final, final

from .signals import MORE, NO_MATCH

WS: Final = " \t\r\n"
_MISREADINGS: Final = 16
SPACES: Final = re.compile(r"[ \t\r\n]*")


@final
class Literals:
    """A set of literals, each with a tag, that are searched together."""

    def __init__(self, tags: dict[str, int]) -> None:
        texts = sorted(tags, key=len, reverse=True)
        self.tags: dict[str, int] = dict(tags)
        self.longest: int = len(texts[0]) if texts else 0
        self.empty: bool = not texts
        # An empty alternation would match everywhere; (?!) matches nowhere.
        self.pattern: re.Pattern[str] = re.compile("|".join(map(re.escape, texts)) or "(?!)")
        heads = "".join(sorted({t[0] for t in texts}))
        self.first: str = heads
        """The first characters of the literals."""
        self.heads: re.Pattern[str] = re.compile(f"[{re.escape(heads)}]" if heads else "(?!)")
        self.prefixes: frozenset[str] = frozenset(t[:i] for t in texts for i in range(1, len(t)))

    def find(self, text: str, pos: int) -> re.Match[str] | None:
        """The first literal at or after ``pos``."""
        return self.pattern.search(text, pos)

    def near(self, text: str, pos: int, end: int) -> re.Match[str] | None:
        """The first literal that begins at or after ``pos`` and before or at ``end``. What lies behind is not looked
        at, so asking again and again is cheap."""
        found = self.pattern.search(text, pos, end + self.longest)
        return None if found is None or found.start() > end else found

    def at(self, text: str, pos: int, final: bool) -> int:
        """Where the literal that stands at ``pos`` ends; NO_MATCH, or MORE if the text ends too early to tell."""
        found = self.pattern.match(text, pos)
        if not final and len(text) - pos < self.longest and text[pos:] in self.prefixes:
            return MORE
        return NO_MATCH if found is None else found.end()

    def undecided(self, text: str, pos: int) -> bool:
        """Whether all of the text from ``pos`` on is a proper prefix of a literal."""
        return len(text) - pos < self.longest and text[pos:] in self.prefixes

    def held(self, text: str, pos: int, start: int) -> int:
        """Where text from ``pos`` on begins that may still become a longer literal, which begins with the one found at
        ``start`` or holds it; -1 if there is none."""
        if len(text) - start >= self.longest:
            return -1
        tail = self.tail(text, pos)
        return tail if tail <= start else -1

    def tail(self, text: str, pos: int) -> int:
        """Where the longest suffix of ``text[pos:]`` begins that may still become a literal; ``len(text)`` if none."""
        size = len(text)
        found = self.heads.search(text, max(pos, size - self.longest + 1))
        while found is not None:
            start = found.start()
            if text[start:] in self.prefixes:
                return start
            found = self.heads.search(text, start + 1)
        return size


@final
class Cursor:
    """The text that has arrived and is not yet decided, and how far the reader has come in it."""

    def __init__(self) -> None:
        self.text: str = ""
        self.pos: int = 0
        self.final: bool = False
        """Whether no more text will come."""
        self.misreadings: int = 0
        """How many objects in this text have been tried as a whole and were not."""
        self._tried: str = ""
        self._brace: int = -1

    def may_close_after(self, pos: int) -> bool:
        """Whether it is worth trying to read an object that begins at ``pos`` as a whole. The last brace is looked for
        once in each text; and a few failures are enough: each makes Python count all lines before it."""
        if self._tried is not self.text:
            self._tried = self.text
            self._brace = self.text.rfind("}")
            self.misreadings = 0
        return self._brace > pos and self.misreadings < _MISREADINGS

    def spaces(self) -> int:
        """Where the white space at ``pos`` ends."""
        found = SPACES.match(self.text, self.pos)
        return self.pos if found is None else found.end()
