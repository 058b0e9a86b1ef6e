"""Reads markers of calls without a call.

Models write such blocks when they decide against a call. They are dropped, unless they are a quotation.
"""

from __future__ import annotations

from typing import final

from .calls import CallReader
from .context import ReaderContext
from .free_text import FreeText
from .modes import READ_TEXT
from .program import IN_CONTENT
from .signals import MORE, NO_MATCH
from .speculation import OPEN_SECTION


@final
class EmptyCalls:
    """Reads markers without a call in one output."""

    def __init__(self, context: ReaderContext, text: FreeText, calls: CallReader) -> None:
        self._context: ReaderContext = context
        self._text: FreeText = text
        self._calls: CallReader = calls

    def has_only_markers(self) -> bool:
        """True if nothing but markers of calls has been read, so that a block without a call may be dropped."""
        speculation = self._context.speculation
        if not self._calls.has_marker or len(self._context.calls) > speculation.calls:
            return False
        self._context.speculation.empty_end = 0
        return self._context.program.call_markers.fullmatch(speculation.raw(self._context.cur)) is not None

    def step(self) -> int:
        """Read the closes of calls without a call. Such a block is dropped, unless no token id proves it and its line
        has text on both sides of it. Of a section with other text in it, only the markers are dropped."""
        cur = self._context.cur
        closes = self._context.program.call_closes
        while True:
            cur.pos = cur.spaces()
            if cur.pos >= len(cur.text) and not (cur.final and self._context.speculation.empty_end):
                return MORE
            end = closes.at(cur.text, cur.pos, cur.final)
            if end == MORE:
                return MORE
            if end < 0 or (self._context.checks_ids and not self._context.may_be_marker(cur.pos, end)):
                break
            cur.pos = end
            self._context.speculation.empty_end = self._context.speculation.length(cur)
        raw = self._context.speculation.raw(cur)
        proven = self._opener_has_id(raw)
        opener = self._context.speculation.opener
        if self._context.speculation.empty_end:
            alone = "\n" in raw[self._context.speculation.empty_end :] or cur.pos >= len(cur.text)
            if not (proven or alone) and self._text.has_text_on_line(self._context.speculation.spaces):
                return NO_MATCH
            return self._drop_markers(raw, self._context.speculation.empty_end)
        if (
            proven
            and raw[:opener] in self._context.program.section_opens
            and self._context.speculation.origin.region == IN_CONTENT
        ):
            answer = self._drop_markers(raw, opener)
            self._context.section = OPEN_SECTION
            return answer
        return NO_MATCH

    def _opener_has_id(self, raw: str) -> bool:
        """True if a token id proves the opener that ``raw``, all that has been read, begins with."""
        scanner = self._context.scanner
        if scanner is None or not scanner.active:
            return False
        opener = raw[: self._context.speculation.opener]
        return scanner.proves(opener, self._context.base + self._context.cur.pos - len(raw))

    def _drop_markers(self, raw: str, size: int) -> int:
        """Drop the first ``size`` characters of ``raw``, all that has been read, and read the rest again."""
        cur = self._context.cur
        if self._context.speculation.reaches_back:
            self._context.base += cur.pos - len(raw)
            cur.text = raw + cur.text[cur.pos :]
            cur.pos = 0
        else:
            cur.pos -= len(raw)
        self._context.undo_speculation()
        self._context.state = self._context.speculation.origin
        cur.final = False
        self._text.drop("empty_calls", cur.pos + size)
        return READ_TEXT
