"""Reads markers of calls without a call.

Models write such blocks when they decide against a call. They are dropped, unless they are a quotation.
"""

from __future__ import annotations

from .calls import CallReader
from .context import ReaderContext
from .free_text import FreeText
from .modes import READ_TEXT
from .program import IN_CONTENT
from .signals import DONE, MORE, NO_MATCH
from .speculation import OPEN_SECTION


def has_only_markers(context: ReaderContext, calls: CallReader) -> bool:
    """True if nothing but markers of calls has been read, so that a block without a call may be dropped."""
    speculation = context.speculation
    if not calls.has_marker or len(context.calls) > speculation.calls:
        return False
    speculation.empty_end = 0
    return context.program.call_markers.fullmatch(speculation.raw(context.cur)) is not None


def read_empty_calls(context: ReaderContext, text: FreeText) -> int:
    """Read the closes of calls without a call. Such a block is dropped, unless no token id proves it and its line has
    text on both sides of it. Of a section with other text in it, only the markers are dropped."""
    if _read_closes(context) == MORE:
        return MORE
    cur = context.cur
    speculation = context.speculation
    raw = speculation.raw(cur)
    opener = raw[: speculation.opener]
    scanner = context.scanner
    start = context.base + cur.pos - len(raw)
    proven = scanner is not None and scanner.active and scanner.proof(opener, start) > 0
    if speculation.empty_end:
        alone = "\n" in raw[speculation.empty_end :] or cur.pos >= len(cur.text)
        if not (proven or alone) and text.has_text_on_line(speculation.spaces):
            return NO_MATCH
        return _drop_markers(context, text, raw, speculation.empty_end)
    if not proven or opener not in context.program.section_opens or speculation.origin.region != IN_CONTENT:
        return NO_MATCH
    answer = _drop_markers(context, text, raw, len(opener))
    context.section = OPEN_SECTION
    return answer


def _read_closes(context: ReaderContext) -> int:
    """Read closes of calls, and the white space around them. Return DONE before other text, or MORE."""
    cur = context.cur
    closes = context.program.call_closes
    while True:
        cur.pos = cur.spaces()
        if cur.pos >= len(cur.text) and not (cur.final and context.speculation.empty_end):
            return MORE
        end = closes.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end < 0 or (context.checks_ids and not context.may_be_marker(cur.pos, end)):
            return DONE
        cur.pos = end
        context.speculation.empty_end = context.speculation.length(cur)


def _drop_markers(context: ReaderContext, text: FreeText, raw: str, size: int) -> int:
    """Drop the first ``size`` characters of ``raw``, all that has been read, and read the rest again."""
    cur = context.cur
    if context.speculation.reaches_back:
        context.base += cur.pos - len(raw)
        cur.text = raw + cur.text[cur.pos :]
        cur.pos = 0
    else:
        cur.pos -= len(raw)
    context.undo_speculation()
    context.state = context.speculation.origin
    cur.final = False
    text.drop("empty_calls", cur.pos + size)
    return READ_TEXT
