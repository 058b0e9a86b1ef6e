"""Writes free text: emits it, with the white space that is not a marker's.

* White space at the end of the text waits for what follows. White space that touches a marker belongs to the marker.
* Places are in characters of the output.
"""

from __future__ import annotations

from collections.abc import Sequence

from .diagnostics import DiagnosticCode
from .evidence import QUOTED_ARE_CALLS, Evidence
from .growing import NO_TEXTS, grown
from .ledger import CONTENT_TEXT, DROPPED, MARKUP, REASONING_TEXT
from .lexer import WS, shared_start
from .program import IN_CONTENT, IN_REASONING


class TextWriter(Evidence):
    """Writes the free text of one output."""

    # Defaults in the class cost nothing per output.
    fresh: bool = False
    """True if only white space has followed the last marker."""
    lead: str = ""
    """White space that the Format writes after the last marker, as far as it has not come."""
    at_start: bool = True
    """True if the region has only had white space so far."""
    after_call: bool = False
    """True if only white space has followed the last call."""
    keeps_space: bool = False
    """True if white space that touches a marker is text, unless the Format writes it there."""
    unproven: bool = False
    """True if ids are in use, and none proves the opener of the last calls."""
    has_policy_text: bool = False
    """True if a policy has turned a call into text."""
    _with_text: tuple[int, ...] = ()
    """Regions of messages with headers that had text: messages of one region are joined."""

    def enter(self, index: int) -> None:
        """Begin a region, in the state of this index."""
        context = self.context
        context.state = context.program.states[index]
        self.at_start = True
        self.after_call = False

    def emit_opener(self, text: str, end: int, size: int) -> None:
        """Emit text that begins with an opener of calls of this size, which is text, too."""
        self.emit_trimmed(text[:size], end - len(text) + size)
        self.remember_opener()
        self.emit_trimmed(text[size:], end)

    def has_text_on_line(self, spaces: Sequence[str]) -> bool:
        """True if text precedes, on the same line, what follows this white space."""
        last = self.last_piece
        before = last[len(last.rstrip(WS)) :] + "".join(spaces)
        return not (self.at_start or self.after_call or self.fresh) and "\n" not in before

    @property
    def closing_sign(self) -> str:
        """The sign that closes the inline code or the quotation around the marker at the cursor; empty without one."""
        context = self.context
        if self.at_start or self.after_call or context.state.region != IN_CONTENT:
            return ""
        before = None if self.quoted_calls == QUOTED_ARE_CALLS else self.text_before()
        return "" if before is None else before.closing_sign("".join(context.spaces))

    def emit_quotation(self, text: str, end: int) -> None:
        """Emit a quoted call."""
        self.quotes = True
        self.emit_trimmed(text, end)
        self.quotes = False

    def pass_on(self, text: str) -> None:
        """Take note of text before the cursor that has been emitted without being read: no marker is directly before
        it, and there is little white space."""
        context = self.context
        state = context.state
        body = text.rstrip(WS) if state.trims else text
        spaces = context.spaces
        if not body:
            if text:
                context.spaces = grown(spaces, text)
            return
        after = text[len(body) :]
        if spaces:
            body = "".join(spaces) + body
        context.spaces = [after] if after else NO_TEXTS
        self.remember(body, state.region, self.at_start)
        self.at_start = False
        context.ledger.mark(CONTENT_TEXT if state.region == IN_CONTENT else REASONING_TEXT, context.base - len(after))

    def keep_space(self, own: str) -> None:
        """Emit the white space between text and the marker at the cursor, except ``own``, which belongs to it. By
        default all of it does."""
        context = self.context
        if not self.keeps_space or self.at_start or self.fresh or self.after_call:
            return
        spaces = "".join(context.spaces)
        size = shared_start(spaces[::-1], own[::-1])
        kept = spaces[: len(spaces) - size]
        context.spaces = [spaces[len(kept) :]] if size else NO_TEXTS
        if kept:
            self.emit(kept, context.base + context.cur.pos - size)

    def drop(self, code: DiagnosticCode, end: int) -> None:
        """Drop and report the text from the cursor to ``end``. White space before it stays, if it follows text."""
        context = self.context
        spaces = "".join(context.spaces)
        context.spaces = NO_TEXTS
        if spaces and not self.at_start and not self.after_call:
            self.emit(spaces, context.base + context.cur.pos)
        context.drop(code, end)

    def drop_marker(self, end: int) -> None:
        """Read a marker up to ``end``. The white space before it belongs to it."""
        context = self.context
        context.spaces = NO_TEXTS
        context.cur.pos = end
        context.mark(MARKUP, end)

    def emit_trimmed(self, piece: str, end: int) -> None:
        """Emit text of the state that ends at ``end``, except white space that may belong to a marker."""
        if not piece:
            return
        context = self.context
        if not context.state.trims:
            self.emit(piece, end)
            return
        if self.fresh:
            piece = self._first_text(piece, end)
            if not piece:
                return
        body = piece.rstrip(WS)
        spaces = context.spaces
        if not body:
            context.spaces = grown(spaces, piece)
            context.limit_spaces(end)
            return
        after = piece[len(body) :]
        if spaces:
            context.spaces = [after] if after else NO_TEXTS
            self.emit("".join(spaces) + body, end - len(after))
        else:
            self.emit(body, end - len(after))
            if after:
                context.spaces = [after]
        if len(after) > context.max_held:
            context.limit_spaces(end)

    def _first_text(self, piece: str, end: int) -> str:
        """Return the first text after a marker, without white space that belongs to it; empty if none has come."""
        context = self.context
        text = piece.lstrip(WS)
        self.fresh = not text
        if self.keeps_space:
            size = shared_start(piece, self.lead)
            self.lead = self.lead[size:] if size == len(piece) else ""
            text = piece[size:]
        if len(text) < len(piece):
            context.ledger.mark(MARKUP, end - len(text))
        if self.fresh and text:
            context.spaces = grown(context.spaces, text)
            context.limit_spaces(end)
            return ""
        return text

    def emit(self, text: str, end: int) -> None:
        """Emit text of the state unchanged."""
        context = self.context
        region = context.state.region
        if self.unproven and self.after_call:
            self.unproven = False
            context.ledger.report("unproven_call", end - len(text), end - len(text))
        if self.at_start and context.program.header is not None:
            self._begin_text(region, context.program.header.join)
        self.remember(text, region, self.at_start or self.after_call)
        if region == IN_CONTENT:
            context.receiver.content(text)
            context.ledger.mark(CONTENT_TEXT, end)
        elif region == IN_REASONING:
            context.receiver.reasoning(text)
            context.ledger.mark(REASONING_TEXT, end)
        else:
            events = context.config_events
            context.ledger.mark(DROPPED if events is None else events.chunk(region, text, end - len(text)), end)
        self.at_start = False
        self.after_call = False

    def _begin_text(self, region: int, join: str) -> None:
        """Begin the text of a message. ``join``: what comes between it and an earlier message of the same kind."""
        if region not in (IN_CONTENT, IN_REASONING):
            return
        receiver = self.context.receiver
        if region not in self._with_text:
            self._with_text = (*self._with_text, region)
        elif join and region == IN_CONTENT:
            receiver.content(join)
        elif join:
            receiver.reasoning(join)
