"""Follows code in Markdown text: fences and inline code.

* Text comes in any pieces. Only pieces with a backtick are read, and pieces after an unpaired one.
* A fence is a run of three or more backticks at the start of a line. The next such run closes it.
* A single backtick opens or closes inline code, which ends with its line.
"""

from __future__ import annotations

import re
from typing import Final, final

_BREAK_OR_RUN: Final = re.compile(r"\n|`+")
_FENCE: Final = 3
_OPEN_TAGS: Final = re.compile(r"(?:<[^<>/`\n][^<>`\n]{0,63}>){0,3}")
_LONGEST_TAGS: Final = 3 * 66


@final
class CodeTracker:
    """The place in the Markdown of one text, at its end."""

    def __init__(self) -> None:
        self.in_fence: bool = False
        self.waits: bool = False
        """True if the next piece must be read although it has no backtick."""
        self._in_code: bool = False
        """True after an unpaired single backtick on this line."""
        self._code: str = ""
        """The beginning of the inline code that is open."""
        self._run: int = 0
        """Length of the run of backticks that the text ends in."""
        self._run_begins_line: bool = False

    def read(self, piece: str, begins_line: bool) -> None:
        """Read the next piece of the text. ``begins_line``: it begins at the start of a line."""
        if self._run and piece[0] != "`":
            self._end_run()
        since = 0
        for found in _BREAK_OR_RUN.finditer(piece):
            if piece[found.start()] == "\n":
                self._in_code = False
                begins_line = True
                since = found.end()
                continue
            if not self._run:
                self._run_begins_line = begins_line and not piece[since : found.start()].strip(" \t\r")
            self._run += found.end() - found.start()
            begins_line = False
            since = found.end()
            if since < len(piece):
                self._end_run()
        if self._in_code and not self._run and len(self._code) <= _LONGEST_TAGS:
            self._code += piece[since : since + _LONGEST_TAGS + 1]
        self.waits = self._run > 0 or self._in_code

    def end_run(self) -> None:
        """Take note that no backtick follows."""
        if self._run:
            self._end_run()
            self.waits = self._in_code

    def open_code(self) -> None:
        """Take note that the text ends inside inline code."""
        self.in_fence = False
        self._in_code = True
        self._code = "?"
        self._run = 0
        self.waits = True

    @property
    def after_backtick(self) -> bool:
        """True if the text ends in a backtick."""
        return self._run > 0

    @property
    def opens_code(self) -> bool:
        """True if the text ends in an unpaired single backtick, or in opening tags directly after it."""
        if self._run:
            return self._run == 1 and not self._in_code and not self.in_fence
        return self._in_code and _OPEN_TAGS.fullmatch(self._code) is not None

    def _end_run(self) -> None:
        if self._run >= _FENCE and self._run_begins_line:
            self.in_fence = not self.in_fence
        elif self._run == 1 and not self.in_fence:
            self._in_code = not self._in_code
            self._code = ""
        self._run = 0
