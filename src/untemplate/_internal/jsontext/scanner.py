"""An incremental scanner of JSON text: it follows the nesting, and stops where the value ends or breaks.

There is one scanner with two sets of rules:

* Lenient: what a value holds is not judged, so trailing commas and bare words pass. The text is broken only where the
  end of the value can no longer be known: at a bracket that closes another kind, or at a value directly after a value.
  Inside a string nothing but its end is looked for, so no marker in a string closes anything.
* Strict: the text is broken at the first character that no JSON text could have there. ``scan`` stops in front of
  each string and each word (a number, a constant, or whatever is written in their place), and the caller checks it.

The state is one integer and the open brackets. A generator would need fewer states, but generators cannot be
copied, and streams are copied in the middle of a value. Measured per delta, a generator was not faster.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from .lexical import STRING_STOP, WORD

# States are bits: each character is legal in a set of them. The states in which a scan stops are the largest.
VALUE: Final = 1
"""A value must follow."""
FIRST_VALUE: Final = 2
"""After ``[``: a value, or the end of the list."""
KEY: Final = 4
"""After a comma in an object: a key must follow."""
FIRST_KEY: Final = 8
"""After ``{``: a key, or the end of the object."""
COLON: Final = 16
"""After a key."""
NEXT: Final = 32
"""After a value: a comma or a closing bracket."""
ANYTHING: Final = 64
"""Lenient: a value, a separator or a closing bracket."""
SEPARATOR: Final = 128
"""Lenient: after a key or a value, a separator or a closing bracket."""
IN_STRING: Final = 256
IN_ESCAPE: Final = 512
IN_WORD: Final = 1024
AT_STRING: Final = 2048
AT_WORD: Final = 4096
ENDED: Final = 8192
BROKEN: Final = 16384

BRACE: Final = 125
"""What closes an object, as a byte."""
_CLOSERS: Final = {"{": BRACE, "}": BRACE, "[": 93, "]": 93}
_BEFORE_VALUE: Final = VALUE | FIRST_VALUE | ANYTHING
_BEFORE_STRING: Final = _BEFORE_VALUE | KEY | FIRST_KEY
_BEFORE_COMMA: Final = NEXT | ANYTHING | SEPARATOR
_BEFORE_COLON: Final = COLON | ANYTHING | SEPARATOR
_BEFORE_CLOSER: Final = FIRST_VALUE | FIRST_KEY | NEXT | ANYTHING | SEPARATOR

_STRICT_SPACES: Final = re.compile(r"[ \t\r\n]+")
_STRINGS: Final = re.compile(r'(?:\s*+"[^"\\]*+"\s*+[,:])*+\s*+("?)')
"""Lenient: strings without escapes and what separates them, up to the quote that opens the next one (1)."""
_ANY_SPACES: Final = re.compile(r"\s+")  # other white space is not JSON, but does not hide where a value ends
_IN_STRING: Final = r'[^"\\]*+(?:\\.[^"\\]*+)*+'


class JsonScanner:
    """Scans one JSON value that arrives in parts."""

    def __init__(self, strict: bool = False, word_heads: str = "") -> None:
        """``word_heads``: a lenient scan stops in front of these characters, at the start of a word and in it."""
        self.state: int = VALUE
        self.before: int = VALUE
        """The state in front of the string or word at which ``scan`` stopped, or of what broke the text."""
        self.closers: bytearray = bytearray()
        """The closing brackets of what is open, the innermost last. A model may open very many: each takes a byte."""
        self._strict: bool = strict
        self._word_heads: str = word_heads
        self._spaces: re.Pattern[str] = _STRICT_SPACES if self._strict else _ANY_SPACES
        self._word: re.Pattern[str] = word_without(word_heads) if word_heads else WORD

    def scan(self, text: str, pos: int) -> int:
        """Read ``text`` from ``pos`` on and return where reading stopped. ``state`` is then ``ENDED``, ``BROKEN``,
        ``AT_STRING`` or ``AT_WORD``; in any other state all of ``text`` was read."""
        size = len(text)
        state = self.state
        closers = self.closers
        while pos < size:
            if state == IN_STRING:
                found = STRING_STOP.search(text, pos)
                if found is None:
                    pos = size
                    break
                pos = found.end()
                if text[pos - 1] == '"':
                    state = SEPARATOR
                    if not closers:
                        state = ENDED
                        break
                elif pos < size:
                    pos += 1
                else:
                    state = IN_ESCAPE
                continue
            if state == IN_WORD:
                found = self._word.match(text, pos)
                if found is not None:
                    pos = found.end()
                    if pos >= size:
                        break
                if text[pos] in self._word_heads:
                    self.before = state
                    state = AT_WORD
                    break
                state = SEPARATOR
                if not closers:
                    state = ENDED
                    break
                continue
            if state == IN_ESCAPE:
                state = IN_STRING
                pos += 1
                continue
            # Each branch continues if the character is legal here; otherwise it breaks the text.
            c = text[pos]
            if c == '"':
                if state & _BEFORE_STRING:
                    if self._strict:
                        self.before = state
                        state = AT_STRING
                        break
                    state = IN_STRING
                    pos += 1
                    continue
            elif c == "," or c == ":":
                if state & (_BEFORE_COMMA if c == "," else _BEFORE_COLON):
                    pos += 1
                    if self._strict:
                        state = VALUE if c == ":" or closers[-1] != BRACE else KEY
                    else:
                        state, pos = _after_separator(text, pos)
                    continue
            elif c == "}" or c == "]":
                if state & _BEFORE_CLOSER and closers[-1] == _CLOSERS[c]:
                    closers.pop()
                    pos += 1
                    if not closers:
                        state = ENDED
                        break
                    state = NEXT if self._strict else SEPARATOR
                    continue
            elif c == "{" or c == "[":
                if state & _BEFORE_VALUE:
                    closers.append(_CLOSERS[c])
                    pos += 1
                    if self._strict:
                        state = FIRST_KEY if c == "{" else FIRST_VALUE
                    else:
                        state, pos = _after_separator(text, pos)
                    continue
            else:
                found = self._spaces.match(text, pos) if c.isspace() else None
                if found is not None:
                    pos = found.end()
                    continue
                if state & _BEFORE_VALUE:
                    if self._strict or c in self._word_heads:
                        self.before = state
                        state = AT_WORD
                        break
                    state = IN_WORD
                    continue
            self.before = state
            state = BROKEN
            break
        self.state = state
        return pos

    def pass_token(self) -> None:
        """Go on after the string or word at which a strict scan stopped; the caller has read it."""
        key = self.before == KEY or self.before == FIRST_KEY
        self.state = COLON if key else NEXT if self.closers else ENDED


def _characters_without(word_heads: str) -> str:
    """Return the pattern of a character of words, other than these."""
    return rf'[^\s"{{}}\[\],:{re.escape(word_heads)}]'


@lru_cache(maxsize=64)
def word_without(word_heads: str) -> re.Pattern[str]:
    """Return the pattern of a word, up to one of these characters."""
    return re.compile(f"{_characters_without(word_heads)}+")


_Flat = tuple[re.Pattern[str], tuple[int, ...], re.Pattern[str]]


def _flat(state: int, start: str, items: str) -> _Flat:
    """Return the patterns of text without brackets outside strings, from this state on. ``start``: pattern of the text
    up to the first separator, with two groups; ``items``: pattern of what follows a separator, with five groups."""
    states = (state, state, SEPARATOR, ANYTHING, IN_STRING, SEPARATOR, IN_WORD, SEPARATOR)
    return re.compile(rf"{start}{items}\Z", re.DOTALL), states, re.compile(rf"{start}{items}\}}", re.DOTALL)


@lru_cache(maxsize=64)
def flat_text(word_heads: str) -> dict[int, _Flat]:
    """Return, for each state inside the brackets of a lenient scan, the pattern of text in which no bracket opens or
    closes, and no word has one of these characters. Text that ends in the middle of an escape does not match.
    With it come the states after the text, by the number of the last group of the match, and the pattern of such text
    up to a brace that closes an object."""
    char = _characters_without(word_heads)
    word = f"{char}++"
    items = rf'[\s,:]*+(?:(?:"{_IN_STRING}"|{word})\s*+[,:][\s,:]*+)*+()(?:("{_IN_STRING})("\s*+)?|({word})(\s++)?)?'
    later = f"(?:[,:]{items})?"
    return {
        IN_STRING: _flat(IN_STRING, rf'({_IN_STRING})("\s*+)?', later),
        IN_WORD: _flat(IN_WORD, rf"({char}*+)(\s++)?", later),
        SEPARATOR: _flat(SEPARATOR, r"()(\s++)?", later),
        ANYTHING: _flat(ANYTHING, "()()", items),
    }


def _after_separator(text: str, pos: int) -> tuple[int, int]:
    """Read, leniently, the strings at ``pos`` as far as they can be read at once. Return the state and the place."""
    found = _STRINGS.match(text, pos)
    assert found is not None
    return (IN_STRING if found.group(1) else ANYTHING), found.end()
