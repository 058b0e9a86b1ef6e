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

from . import sentences
from .json_place import JsonPlace
from .lexer import WS

# What the text before a marker says about it.
NO_SIGN: Final = -1
"""No evidence, and no sign in the text that could begin a quotation."""
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
"""Least length of the run that opens a fence, in CommonMark."""

_RUN: Final = re.compile(r"`+|~+")
_LIST_MARK: Final = r"(?:[-*+]|\d{1,9}[.)])[ \t]++"
"""A mark of a list, whose number has at most nine digits, in CommonMark."""
_FENCE_PREFIX: Final = re.compile(rf"[ \t]*+(?:{_LIST_MARK}|>[ \t]*+)*+")
"""Matches the white space, list marks and quote signs before a fence. No part of it can match in two ways: a line of
spaces would take exponential time."""
_LOG_LINE: Final = r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
_QUOTED_LINE: Final = re.compile(rf"[ \t]*+(?:{_LIST_MARK})*+(?:[|>]|\[\^[\w\-]{{1,64}}\]:|{_LOG_LINE})")
"""Matches the beginning of a table row, a block quote, a footnote, and a line of a log."""
_CHANGED_LINE: Final = re.compile(r"[ \t]*[-+]")
_DIFF: Final = re.compile(r"[ \t]*(?:diff|patch)\b", re.IGNORECASE)
_HUNK: Final = re.compile(r"@@ -\d")
_DELIMITERS: Final = re.compile(r"[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+")
"""Matches the line between the head of a table and its rows, whose edges may be open."""
_HEREDOC: Final = re.compile(r"<<(?<![<\w]<<)-?[ \t]?([\"']?)([A-Z][A-Z_\d]+)\1[ \t]*(?=[>|&;)]|\Z)")
"""Matches what begins a text of some lines for a command of a shell. The word ends it, alone on a line."""
_BEGINS_PROSE: Final = re.compile(r"[ \t]*+(?:[A-Z][a-z']*+[ \t,]|[^\x00-\x7f])")
"""Matches the first word of a sentence: a command is written in small letters."""
_IN_HUNK: Final = ("+", "-", " ", "\\")
_OPEN_TAGS: Final = re.compile(r"(?:<[^<>/`\n][^<>`\n]{0,63}>){0,3}")
_OPEN_QUOTE: Final = re.compile(r"(?:\A|[\s(\[{<=:,])\"(?=[^\s\"])[^\"]*\Z")
"""Matches a straight quotation mark that opens a quotation of words, up to the end of a text."""
_OPEN_MARK: Final = re.compile(r"(?:\A|[\s(\[{<=:,])[\"'\u2018\u2039]\Z|[\u201c\u201e\u00ab\u300c\u300e]\Z")
"""Matches a quotation mark that opens a quotation, at the end of a text. Some are closed by themselves: those have to
stand at the start of a line, or after white space, a bracket or a sign that comes before a value. So is an
apostrophe."""
_QUOTING_TAG: Final = re.compile(r"<(?:code|pre|kbd|samp|tt|q)(?:\s[^<>]*)?>\Z|<!\[CDATA\[\Z|\]\(\Z")
"""Matches the HTML tag of an element whose text is a quotation, the opener of a CDATA section and that of the target of
a link."""


# These begin with one set of characters or one text: `re` searches for it several times as fast as for alternatives.
_FENCE_SIGN: Final = re.compile("[`~<](?:(?<!<)|<|!--)")
_QUOTING_SIGN: Final = re.compile(r"[`~{\[<|>\"\u201c\u201e\u00ab@\-](?:(?<![@\-])|(?<=@)@|(?<=\d-)\d)")
_OPEN_MARKS: Final = "'\u2018\u2039\u300c\u300e"
_PAIRS: Final = (("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u00ab", "\u00bb"))
"""Marks that open and close a quotation, by pairs."""


def _may_say_more(text: str) -> bool:
    """True if a line of a text may say something about the lines after it."""
    return "<!--" in text or "-->" in text or "@@ -" in text or "<<" in text or "|" in text


def _comment_signs(line: str) -> tuple[int, int]:
    """Return the places of the last opener and close of a comment of HTML; -1 for one that is missing. In
    inline code it is a word of prose."""
    return (-1 if "`" in line else line.rfind("<!--")), line.rfind("-->")


def _opens_comment(start: str, end: str) -> bool:
    """True if a comment of HTML, which this line opens, goes on after it: the line begins or ends with the opener.
    Elsewhere it is a word of prose."""
    return start.lstrip(WS).startswith("<!--") or end.rstrip(WS).endswith("<!--")


def _heredoc_word(start: str, end: str) -> str:
    """Return the word that ends the text for a shell's command on this line; empty if it has none, or is prose."""
    is_prose = "`" in end or end.rstrip(WS).endswith(sentences.OF_PROSE) or _BEGINS_PROSE.match(start) is not None
    begun = None if is_prose else _HEREDOC.search(end)
    return "" if begun is None else begun.group(2)


def quotes_nothing(text: str, breaks: bool) -> bool:
    """True if no sign in a text can be evidence of a quotation after it. ``breaks``: a new line has begun.

    Each sign that `TextBefore.evidence` looks for has a character in these patterns: otherwise it counts in long texts
    only.
    """
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
        self._in_comment: bool = False
        """True in a comment of HTML that an earlier line has opened."""
        self._in_hunk: bool = False
        """True in the changed lines of a diff without a fence."""
        self._in_rows: bool = False
        """True in the rows of a table whose edges are open."""
        self._heredoc: str = ""
        """The word that ends the text for a command of a shell; empty outside of it."""
        self._json: JsonPlace | None = None
        """JSON in the text; None before its first bracket."""

    # -- in -----------------------------------------------------------------------------------------------------

    def take_opener(self) -> None:
        """Take note that the text ends in an opener of calls that was not one."""
        json = self._json
        if json is None:
            json = self._json = JsonPlace()
        json.take_opener()

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
        elif json.matters or "{" in text or "[" in text:
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
            self._watch(text, first, last)
            self._had_line = self._had_line or bool((self._line_start + text[first:last]).strip(WS))
            self._end_line()
            text = text[last + 1 :]
        self._extend_line(text)

    def _watch(self, text: str, first: int, last: int) -> None:
        """Take note of what the lines that end here say about the lines after them. ``first`` and ``last`` are the
        places of the first and the last newline; the first line is read."""
        active = self._in_comment or self._in_hunk or self._in_rows or self._heredoc != ""
        if not (active or _may_say_more(self._line_end) or _may_say_more(text)):
            return
        self._end_watched(self._line_start, self._line_end)
        for line in text[first + 1 : last].split("\n") if last > first else ():
            self._end_watched(line[:_LINE_START], line[-_LINE_END:])

    def _end_watched(self, start: str, end: str) -> None:
        """Take note of a line, of which the start and the end are given."""
        if not start.strip(WS):
            # Prose may only have named what opens them: in doubt, a call after a blank line is a call.
            self._in_comment = self._in_rows = False
            self._heredoc = ""
            return
        opened, closed = _comment_signs(end)
        if opened >= 0 or closed >= 0:
            goes_on = closed < 0 and self._in_comment
            self._in_comment = goes_on or (opened > closed and _opens_comment(start, end))
        self._in_hunk = _HUNK.match(start) is not None or (self._in_hunk and start[:1] in _IN_HUNK)
        self._in_rows = _DELIMITERS.fullmatch(start) is not None or (self._in_rows and "|" in start)
        if self._heredoc:
            self._heredoc = "" if start.strip(WS) == self._heredoc else self._heredoc
        else:
            self._heredoc = _heredoc_word(start, end)

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
        """Return the last character of the line that is none of these; "" if it has no other."""
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
        """Return what the text, and this white space after it, say about a marker. `quotes_nothing` has each sign."""
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
            changed = self._in_hunk or (in_fence and self._info < 0)
            if changed and _CHANGED_LINE.match(self._line_start) is not None:
                return ON_QUOTED_LINE
            if self._in_rows and "|" in self._line_start:
                return ON_QUOTED_LINE
            if not (spaces or in_call) and self._opens_quotation():
                return IN_STRING
        if self._in_lines_of_text(spaces.count("\n")):
            return IN_STRING
        if not in_fence:
            return NO_EVIDENCE
        is_diff = self._is_diff if self._info < 0 else breaks and _DIFF.match(self._line_start, self._info) is not None
        return ON_QUOTED_LINE if is_diff else IN_FENCE

    def _in_lines_of_text(self, breaks: int) -> bool:
        """True in a comment of HTML, and in the text for a command of a shell. ``breaks``: newlines that follow."""
        if breaks > 1:
            return False
        opened, closed = _comment_signs(self._line_end)
        if opened > closed and (not breaks or _opens_comment(self._line_start, self._line_end)):
            return True
        if closed < 0 and self._in_comment:
            return True
        if self._heredoc:
            return not breaks or self._line_start.strip(WS) != self._heredoc
        return breaks == 1 and _heredoc_word(self._line_start, self._line_end) != ""

    def closing_sign(self, spaces: str) -> str:
        """Return the sign that closes the inline code or the quotation in which a marker after the text, and after this
        white space, may be: one that has begun on its line, with words before the marker. Empty without one."""
        self._look()
        end = self._line_end
        if "\n" in spaces or self._fence or not end:
            return ""
        if self._code == 1 and not self._json_is_active():
            return "`"
        if self._marks % 2 == 1 and _OPEN_QUOTE.search(end) is not None and not self._json_is_active():
            return '"'
        return next((close for opener, close in _PAIRS if end.rfind(opener) > end.rfind(close)), "")

    def _json_is_active(self) -> bool:
        return self._json is not None and self._json.active

    def _opens_quotation(self) -> bool:
        """True if the text ends in what opens a quotation, and is more than that."""
        end = self._line_end
        if _OPEN_MARK.search(end, max(0, len(end) - 2)) is not None:
            # Some models write all of their output in quotation marks.
            says_more = self._had_line or len(end.strip(WS)) > 1
            return says_more and (end[-1] != '"' or self._marks % 2 == 1)
        return _QUOTING_TAG.search(end) is not None
