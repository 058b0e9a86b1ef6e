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
_LAST: Final = re.compile(r"[ \t\r\n]*\Z")
_NUMBER: Final = r"-?\d[\d.eE+-]{0,63}+"
_WORDS: Final = re.compile(
    r'(?:[ \t\r\n{}\[\],:]++|"(?:[^"\\\n]|\\.)*+"|' + rf"(?:{_NUMBER}|true|false|null)(?=[ \t\r\n}}\],]))*+"
)
_BEGUN: Final = re.compile(r"-?\d?[\d.eE+-]{0,64}|t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?")
"""Matches a number or a constant that the text ends in."""
_STRING: Final = re.compile(r'(?:[^"\\\n]|\\.)*+')


_OUTSIDE: Final = 0
_AFTER_OPENER: Final = 1
"""Only white space has followed an opener of calls."""
_AFTER_BRACKET: Final = 2
"""The text ends after the bracket that begins a JSON text, if a string or another bracket follows."""
_IN_WORDS: Final = 3
_IN_STRING: Final = 4
_IN_ESCAPE: Final = 5
"""The string ends in a backslash that escapes the next character."""
PHASES: Final = (
    "other text",
    "after an opener of calls",
    "after a first bracket",
    "words of JSON",
    "string of JSON",
    "escape in a string",
)
"""What is read in each phase."""


@final
class JsonPlace:
    """The place in JSON at the end of one text, which comes in any pieces."""

    def __init__(self) -> None:
        self._phase: int = _OUTSIDE
        self.is_call: bool = False
        """True if the JSON text follows an opener of calls."""
        self._begun: str = ""
        """A number or a constant that the text ends in."""

    @property
    def active(self) -> bool:
        """True if the text has been JSON since the last start of one."""
        return self._phase >= _AFTER_BRACKET

    @property
    def matters(self) -> bool:
        """True if the next text may say more, although no JSON text begins in it."""
        return self._phase != _OUTSIDE

    @property
    def in_string(self) -> bool:
        """True inside a string of JSON that is not a call."""
        return self._phase >= _IN_STRING and not self.is_call

    def read(self, text: str) -> None:
        """Read the next piece of the text."""
        pos = 0
        if self._begun:
            text = self._begun + text
            self._begun = ""
        while pos >= 0:
            if self._phase == _AFTER_BRACKET:
                text, pos = text.lstrip(WS), 0
                if pos == len(text):
                    return
                if text[pos] in '"{[':
                    self._phase = _IN_WORDS
                else:
                    self._end(_OUTSIDE)
            if self._phase < _AFTER_BRACKET:
                start = _START.search(text, pos)
                follows = self._phase == _AFTER_OPENER and not text[
                    pos : None if start is None else start.start()
                ].strip(WS)
                if start is None:
                    self._phase = _AFTER_OPENER if follows else _OUTSIDE
                    return
                self.is_call = follows
                pos = start.end()
                if _LAST.match(text, pos) is not None:
                    self._phase = _AFTER_BRACKET
                    return
                self._phase = _IN_WORDS
            pos = self._read_words(text, pos) if self._phase == _IN_WORDS else self._read_string(text, pos)

    def take_opener(self) -> None:
        """End the JSON text: an opener of calls that was not one follows."""
        self._end(_AFTER_OPENER)

    def _end(self, phase: int) -> None:
        """End the JSON text, because other text follows."""
        self._phase = phase
        self.is_call = False
        self._begun = ""

    def _read_words(self, text: str, pos: int) -> int:
        """Read whole words. Return the place to continue at; -1 at the end of the text."""
        found = _WORDS.match(text, pos)
        end = pos if found is None else found.end()
        if end >= len(text):
            return -1
        if text[end] == '"':
            self._phase = _IN_STRING
            return end + 1
        if _BEGUN.fullmatch(text, end) is not None:
            self._begun = text[end:]
            return -1
        self._end(_OUTSIDE)
        return end

    def _read_string(self, text: str, pos: int) -> int:
        """Read on in a string. Return where reading goes on; -1 at the end of the text."""
        if self._phase == _IN_ESCAPE and pos < len(text):
            if text[pos] == "\n":
                self._end(_OUTSIDE)
                return pos
            self._phase = _IN_STRING
            pos += 1
        found = _STRING.match(text, pos)
        end = pos if found is None else found.end()
        if end >= len(text):
            return -1
        if text[end] == '"':
            self._phase = _IN_WORDS
            return end + 1
        if text[end] == "\\" and end + 1 == len(text):
            self._phase = _IN_ESCAPE
            return -1
        self._end(_OUTSIDE)
        return end
