"""Follows free text as far as it decides whether a marker after it is quoted.

* Text comes in any pieces. It is read when a marker follows it, or there is much of it.
* A fence is a run of three or more backticks or tildes at the start of a line. It is open until a line with nothing but
  such a run, at least as long, or the end of the text.
* Any other run of backticks opens inline code, which ends at the next run of the same length, or with its line.
* What a line begins with, and what it ends in, is kept up to a limit.
"""

from __future__ import annotations

import re
from typing import Final, final

from .json_place import JsonPlace
from .lexer import WS

# What the text before a marker says about it.
NO_EVIDENCE: Final = 0
IN_FENCE: Final = 1
"""The marker is inside a fence: models quote calls there, and make some."""
ON_QUOTED_LINE: Final = 2
"""Its line begins as a table row, a block quote, or a changed line of a diff in a fence."""
IN_STRING: Final = 3
"""It is inside inline code between runs of backticks, a JSON string or a quotation that has just been opened."""

_LINE_START: Final = 128
"""Characters of the beginning of a line that are kept: marks of lists, quotes and tables are shorter."""
_LINE_END: Final = 256
"""Characters of its end that are kept: three opening tags of 66 characters and a backtick are shorter."""
_FENCE: Final = 3

_RUN: Final = re.compile(r"`+|~+")
_LIST_MARK: Final = r"(?:[-*+]|\d{1,9}[.)])[ \t]++"
_FENCE_PREFIX: Final = re.compile(rf"[ \t]*+(?:{_LIST_MARK}|>[ \t]*+)*+")
"""Matches the white space, list marks and quote signs before a fence. No part of it can match in two ways: a line of
spaces would take exponential time."""
_QUOTED_LINE: Final = re.compile(rf"[ \t]*+(?:{_LIST_MARK})*+[|>]")
_CHANGED_LINE: Final = re.compile(r"[ \t]*[-+]")
_DIFF: Final = re.compile(r"[ \t]*(?:diff|patch)\b", re.IGNORECASE)
_OPEN_TAGS: Final = re.compile(r"(?:<[^<>/`\n][^<>`\n]{0,63}>){0,3}")
_OPEN_MARK: Final = re.compile(r"(?:\A|[\s(\[{<=:,])[\"'\u2018\u2039]\Z|[\u201c\u201e\u00ab\u300c\u300e]\Z")
"""Matches a quotation mark that opens a quotation, at the end of a text. Some are closed by themselves: those have to
stand at the start of a line, or after white space, a bracket or a sign that comes before a value. So is an
apostrophe."""
_QUOTING_TAG: Final = re.compile(r"<(?:code|pre|kbd|samp|tt|q)(?:\s[^<>]*)?>\Z|<!--[ \t]*\Z|<!\[CDATA\[\Z")
"""Matches the HTML tag of an element whose text is a quotation, a comment's opener and that of a CDATA section."""


_FENCE_SIGN: Final = re.compile("[`~]")
_QUOTING_SIGN: Final = re.compile(r"[`~{\[<|>]")
_OPEN_MARKS: Final = "\"'\u2018\u2039\u201c\u201e\u00ab\u300c\u300e"


def quotes_nothing(text: str, breaks: bool) -> bool:
    """True if no sign in a text can be evidence of a quotation after it. ``breaks``: a new line has begun."""
    if breaks:
        return _FENCE_SIGN.search(text) is None
    return text[-1] not in _OPEN_MARKS and _QUOTING_SIGN.search(text) is None


@final
class TextBefore:
    """The text of one region before the place that is being read."""

    def __init__(self) -> None:
        self._had_line: bool = False
        """True if a line with text has ended."""
        self._line_start: str = ""
        self._line_end: str = ""
        self._marks: int = 0
        """Number of straight quotation marks on this line."""
        self._run: int = 0
        """Length of the run of backticks or tildes that the text ends in, and that may go on."""
        self._sign: str = ""
        """The character of that run."""
        self._fence: int = 0
        """Length of the run that has opened the fence; 0 outside of fences."""
        self._fence_sign: str = ""
        self._info: int = -1
        """On the line that opens a fence: where the run ends in the line; else -1."""
        self._closes: bool = False
        """True on a line that has only had a run which closes the fence."""
        self._is_diff: bool = False
        self._code: int = 0
        """Length of the run that has opened inline code on this line; 0 outside of it."""
        self._json: JsonPlace | None = None
        """JSON in the text; None before its first bracket."""

    # -- in -----------------------------------------------------------------------------------------------------

    def take_opener(self) -> None:
        """Take note that the text ends in an opener of calls that was not one."""
        json = self._json
        if json is None:
            json = self._json = JsonPlace()
        json.end()
        json.follows_opener = True

    def read(self, text: str) -> None:
        """Read the next piece of the text."""
        if self._run:
            rest = text.lstrip(self._sign)
            self._run += len(text) - len(rest)
            text = rest
            if text:
                self._end_run()
        if text:
            self._read(text)

    def _read(self, text: str) -> None:
        """Read text that begins after a run."""
        json = self._json
        if json is None:
            if "{" in text or "[" in text:
                json = self._json = JsonPlace()
                json.read(text)
        elif json.active or json.follows_opener or "{" in text or "[" in text:
            json.read(text)
        if "`" not in text and "~" not in text:
            self._read_plain(text)
            return
        start = self._read_lines(text)
        for found in _RUN.finditer(text, start):
            if found.start() > start:
                self._read_plain(text[start : found.start()])
            start = found.end()
            self._sign = text[start - 1]
            self._run = start - found.start()
            if start < len(text):
                self._end_run()
        if start < len(text):
            self._read_plain(text[start:])

    def _read_lines(self, text: str) -> int:
        """Read whole lines at once, if no fence opens or closes in them: inline code ends with its line. Return where
        they end."""
        if self._info >= 0 or "```" in text or "~~~" in text:
            return 0
        end = text.rfind("\n") + 1
        if end:
            self._read_plain(text[:end])
        return end

    def _read_plain(self, text: str) -> None:
        """Read text without a run of backticks or tildes."""
        first = text.find("\n")
        if first >= 0:
            self._extend_line(text[:first])
            last = text.rindex("\n")
            self._had_line = self._had_line or bool((self._line_start + text[first:last]).strip(WS))
            self._end_line()
            text = text[last + 1 :]
        self._extend_line(text)

    def _extend_line(self, text: str) -> None:
        """Read text of one line without a run."""
        if self._closes and text.strip(WS):
            self._closes = False
        self._marks += text.count('"')
        self._append(text)

    def _append(self, text: str) -> None:
        if len(self._line_start) < _LINE_START:
            self._line_start = (self._line_start + text)[:_LINE_START]
        self._line_end = (self._line_end + text)[-_LINE_END:]

    def _end_line(self) -> None:
        if self._info >= 0:
            self._is_diff = _DIFF.match(self._line_start, self._info) is not None
            self._info = -1
        if self._closes:
            self._closes = False
            self._fence = 0
        self._code = 0
        self._line_start = self._line_end = ""
        self._marks = 0

    def _end_run(self) -> None:
        """Read the run of backticks or tildes that the text ends in: it does not go on."""
        size, sign = self._run, self._sign
        self._run = 0
        may_fence = size >= _FENCE and _FENCE_PREFIX.fullmatch(self._line_start) is not None
        self._closes = False
        if self._fence and self._info >= 0 and sign == "`" == self._fence_sign:
            # Backticks on the line that opens a fence: it was inline code.
            self._code = 0 if size == self._fence else self._fence
            self._fence = 0
            self._info = -1
        elif self._fence:
            self._closes = may_fence and size >= self._fence and sign == self._fence_sign
        elif may_fence:
            self._fence = size
            self._fence_sign = sign
            self._is_diff = False
            self._info = len(self._line_start) + size
        elif sign == "`":
            self._code = 0 if self._code == size else self._code or size
        self._append(sign * min(size, _LINE_END))

    # -- out ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Read the run that the text ends in: a marker follows it."""
        if self._run:
            self._end_run()

    @property
    def in_fence(self) -> bool:
        """True if a marker after the text is inside a fence. White space and markers may follow the run that closes
        one."""
        self._look()
        return self._fence > 0 and not self._closes

    @property
    def after_backtick(self) -> bool:
        """True if the text ends in a backtick."""
        self._look()
        return self._line_end.endswith("`")

    def last_but(self, signs: str) -> str:
        """Return the last character of the line that is none of these; "" if there is none."""
        self._look()
        return self._line_end.rstrip(signs)[-1:]

    @property
    def opens_code(self) -> bool:
        """True if the text ends in an unpaired single backtick, or in opening tags directly after it."""
        self._look()
        at = self._line_end.rfind("`")
        if self._code != 1 or at < 0 or self._line_end[at - 1 : at] == "`":
            return False
        return _OPEN_TAGS.fullmatch(self._line_end, at + 1) is not None

    def evidence(self, spaces: str) -> int:
        """Return what the text, and this white space after it, say about a marker that follows."""
        in_fence = self.in_fence
        breaks = "\n" in spaces
        json = self._json
        in_call = False
        if json is not None and not breaks:
            if json.in_string:
                return IN_STRING
            in_call = json.is_call
        if not breaks:
            if not in_fence and self._code > 1:
                return IN_STRING
            if _QUOTED_LINE.match(self._line_start) is not None:
                return ON_QUOTED_LINE
            if in_fence and self._info < 0 and _CHANGED_LINE.match(self._line_start) is not None:
                return ON_QUOTED_LINE
            if not (spaces or in_call) and self._opens_quotation():
                return IN_STRING
        if not in_fence:
            return NO_EVIDENCE
        is_diff = self._is_diff if self._info < 0 else breaks and _DIFF.match(self._line_start, self._info) is not None
        return ON_QUOTED_LINE if is_diff else IN_FENCE

    def _opens_quotation(self) -> bool:
        """True if the text ends in what opens a quotation, and is more than that."""
        end = self._line_end
        if _OPEN_MARK.search(end, max(0, len(end) - 2)) is not None:
            # Some models write all of their output in quotation marks.
            says_more = self._had_line or len(end.strip(WS)) > 1
            return says_more and (end[-1] != '"' or self._marks % 2 == 1)
        return _QUOTING_TAG.search(end) is not None
