"""Finds out whether a text ends inside a JSON string.

* A JSON text may begin anywhere, at a bracket that a string, another bracket or the end of the text follows.
* Only its words are checked (strings, numbers, constants, punctuation), and not their order. Prose has other words.
* A line break inside a string ends the JSON text. So does any other word.
* JSON directly after an opener of calls is a call that went wrong, so a marker in its strings may begin another.
"""

from __future__ import annotations

import re
from typing import Final, final

from .lexer import WS

_START: Final = re.compile(r'[{\[](?=[ \t\r\n]*(?:["{\[]|\Z))')
_NUMBER: Final = r"-?\d[\d.eE+-]{0,63}+"
_WORDS: Final = re.compile(
    r'(?:[ \t\r\n{}\[\],:]++|"(?:[^"\\\n]|\\.)*+"|' + rf"(?:{_NUMBER}|true|false|null)(?=[ \t\r\n}}\],]))*+"
)
_BEGUN: Final = re.compile(r"-?\d?[\d.eE+-]{0,64}|t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?")
"""Matches a number or a constant that the text ends in."""
_STRING: Final = re.compile(r'(?:[^"\\\n]|\\.)*+')


@final
class JsonPlace:
    """The place in JSON at the end of one text, which comes in any pieces."""

    def __init__(self) -> None:
        self.follows_opener: bool = False
        """True if only white space has followed an opener of calls."""
        self._in_string: bool = False
        self.is_call: bool = False
        """True if the JSON text follows an opener of calls."""
        self.active: bool = False
        """True if the text has been JSON since the last start of one."""
        self._escapes: bool = False
        """True if the string ends in a backslash that escapes the next character."""
        self._begun: str = ""
        """A number or a constant that the text ends in."""

    @property
    def in_string(self) -> bool:
        """True inside a string of JSON that is not a call."""
        return self._in_string and not self.is_call

    def read(self, text: str) -> None:
        """Read the next piece of the text."""
        pos = 0
        if self._begun:
            text = self._begun + text
            self._begun = ""
        while True:
            if not self.active:
                start = _START.search(text, pos)
                if start is None:
                    self.follows_opener = self.follows_opener and not text[pos:].strip(WS)
                    return
                self.active = True
                self.is_call = self.follows_opener and not text[pos : start.start()].strip(WS)
                self.follows_opener = False
                pos = start.end()
            pos = self._read_string(text, pos) if self._in_string else self._read_words(text, pos)
            if pos < 0:
                return

    def end(self) -> None:
        """End the JSON text, because other text follows."""
        self.active = False
        self._in_string = False
        self.is_call = False
        self._escapes = False
        self._begun = ""

    def _read_words(self, text: str, pos: int) -> int:
        """Read whole words. Return the place to continue at; -1 at the end of the text."""
        found = _WORDS.match(text, pos)
        end = pos if found is None else found.end()
        if end >= len(text):
            return -1
        if text[end] == '"':
            self._in_string = True
            return end + 1
        if _BEGUN.fullmatch(text, end) is not None:
            self._begun = text[end:]
            return -1
        self.end()
        return end

    def _read_string(self, text: str, pos: int) -> int:
        """Read on in a string. Return where reading goes on; -1 at the end of the text."""
        if self._escapes and pos < len(text):
            self._escapes = False
            pos += 1
        found = _STRING.match(text, pos)
        end = pos if found is None else found.end()
        if end >= len(text):
            return -1
        if text[end] == '"':
            self._in_string = False
            return end + 1
        if text[end] == "\\" and end + 1 == len(text):
            self._escapes = True
            return -1
        self.end()
        return end
