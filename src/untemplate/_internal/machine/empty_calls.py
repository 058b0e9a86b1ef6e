"""Reads markers of calls without a call.

Models write such blocks when they decide against a call. They are dropped, unless they are a quotation.
"""

from __future__ import annotations

from .calls import CallReader
from .context import ReaderContext
from .free_text import FreeText
from .modes import READ_TEXT
from .program import IN_CONTENT
from .signals import MORE, NO_MATCH
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
    cur = context.cur
    speculation = context.speculation
    closes = context.program.call_closes
    while True:
        cur.pos = cur.spaces()
        if cur.pos >= len(cur.text) and not (cur.final and speculation.empty_end):
            return MORE
        end = closes.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end < 0 or (context.checks_ids and not context.may_be_marker(cur.pos, end)):
            break
        cur.pos = end
        speculation.empty_end = speculation.length(cur)
    raw = speculation.raw(cur)
    scanner = context.scanner
    opener_start = context.base + cur.pos - len(raw)
    opener = raw[: speculation.opener]
    proven = scanner is not None and scanner.active and scanner.proof(opener, opener_start) > 0
    if speculation.empty_end:
        alone = "\n" in raw[speculation.empty_end :] or cur.pos >= len(cur.text)
        if not (proven or alone) and text.has_text_on_line(speculation.spaces):
            return NO_MATCH
        return _drop_markers(context, text, raw, speculation.empty_end)
    is_section = opener in context.program.section_opens
    if proven and is_section and speculation.origin.region == IN_CONTENT:
        answer = _drop_markers(context, text, raw, speculation.opener)
        context.section = OPEN_SECTION
        return answer
    return NO_MATCH


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
