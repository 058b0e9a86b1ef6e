"""The text of tagged values, from the value's opener to the close that ends it.

* What may come before the text is read first: an opener that is doubled, the declared newlines, a CDATA section's
  opener.
* At each literal that may end the value, ``ends`` decides.
* Newlines at the end of what has come wait: they may belong to the close.
"""

from __future__ import annotations

from typing import Final, final

from ....tools import ToolSet
from ...jsontext.coercion import Param
from ...jsontext.lexical import json_escape
from ..arguments.base import CallHandler
from ..arguments.last_line import LastLine
from ..arguments.lookahead import ENDS, ENDS_BEFORE, ENDS_MISSPELLED
from ..arguments.value_text import STREAM, ValueText
from ..ledger import ARGUMENT_TEXT, DROPPED, MARKUP
from ..lexer import Cursor, Literals
from ..signals import DONE, MORE, NO_MATCH
from .ends import ValueEnds
from .program import TaggedSyntax

_NEWLINES: Final = ("\n", "\r")
_CDATA: Final = Literals({"<![CDATA[": 0})

_UNOPENED: Final = 0
_TRIMMING: Final = 1
_INSIDE: Final = 2
_WAITING: Final = 3
PHASES: Final = (
    "before the first character",
    "declared newlines, and the opener of a CDATA section",
    "text",
    "literal that later text decides",
)
"""The phases by number."""


@final
class ValueReader:
    """Reads the values of one call after another."""

    def __init__(self, syntax: TaggedSyntax, tools: ToolSet, max_held: int) -> None:
        self._outside: TaggedSyntax = syntax
        """The syntax of values that are not in a CDATA section."""
        self._syntax: TaggedSyntax = syntax
        self.ends: ValueEnds = ValueEnds(syntax, tools)
        self.text: ValueText = ValueText(syntax.escape, max_held)
        self.before: str = "{"
        """Text before the next key: a brace before the first one, or a comma."""
        self.pending: list[str] = []
        """JSON text to put before any other: one event is cheaper than two."""
        self._key: str = ""
        self._phase: int = _UNOPENED
        self._trim: int = 0
        """Number of declared newlines that may still come before the text."""
        self._newlines: str = ""
        """Those at the end of the text, which wait."""
        self._line: LastLine = LastLine()
        self._has_markup: bool = False
        """True if markup of the call in the value was reported."""

    def begin_call(self, name: str, outermost: int) -> None:
        """Begin the arguments of a call. ``outermost``: the kind of the close that ends the calls."""
        self._leave_cdata()
        self.ends.begin_call(name, outermost)
        self.before = "{"

    def begin(self, key: str, param: Param | None, is_string: str, kind: str) -> None:
        """Begin the value of a parameter. What is known of its type is as in ``ValueText.begin``."""
        self.text.begin(param, is_string, kind)
        self._key = key
        self._phase = _UNOPENED
        self._newlines = ""
        self._line.begin()
        self.ends.begin(key)
        self._has_markup = False
        self._trim = self._syntax.trim

    def skip_to(self, cur: Cursor, start: int, end: int) -> None:
        """Begin at ``end`` of the cursor's text, after the declared newlines, which begin at ``start``. All else
        that may come before the text is left for ``_read_beginning``."""
        if end > start:
            self._trim = 0
        if len(cur.text) > start and cur.text[start] not in self._syntax.doubled_opens.first_characters:
            self._open()

    @property
    def has_begun(self) -> bool:
        """True if a key has been put."""
        return self.before != "{"

    # -- the short path -----------------------------------------------------------------------------------------

    def look_ahead(self, cur: Cursor) -> None:
        """Set how the next text may take a short path."""
        if self._phase < _INSIDE:
            return
        cur.goes_on = self.ends.chains.goes_on if self._phase == _WAITING else self._goes_on
        if self.text.handling == STREAM:
            cur.passed = self._passed
            cur.stops = self.ends.stops

    def _passed(self, text: str) -> str | None:
        """Return the JSON of text in the middle of a value that streams, without newlines that wait."""
        if self._newlines or (self._syntax.holds_after and text[-1:] in _NEWLINES):
            text = self._hold_newlines(self._newlines + text)
        return json_escape(text)

    def pass_on(self, text: str) -> int:
        """Take note of text that has passed. Return how many characters at its end wait for what follows."""
        if text:
            self._line.add(text)
        return len(self._newlines)

    def _goes_on(self, text: str) -> bool:
        """True if nothing in this text can be put yet: a newline that may belong to the close, and its beginning."""
        if self._syntax.holds_after and not self._newlines and text[0] == "\n":
            text = text[1:]
        return not text or text in self.ends.stops.prefixes

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, cur: Cursor, call: CallHandler) -> int:
        """Read on. Return DONE after the value, or MORE."""
        if self._phase < _INSIDE and not self._read_beginning(cur, call):
            return MORE
        self._phase = _INSIDE
        text = cur.text
        stops = self.ends.stops
        start = search = cur.pos
        while True:
            found = stops.pattern.search(text, search)
            if found is None:
                self._read_text(cur, len(text) if cur.final else stops.undecided_from(text, search), call)
                return MORE
            at = found.start()
            held = -1 if cur.final or found.group() not in stops.inner else stops.longer_from(text, search, at)
            if held >= 0:
                self._read_text(cur, held, call)
                return MORE
            verdict = self.ends.judge(cur, found, self._line, text[start:at], call)
            if verdict != NO_MATCH:
                return self._read_end(cur, at, verdict, call)
            if self.ends.markup:
                self._report_markup(at, found.end(), call)
            # Read at once: looking at this text again at each further literal would take quadratic time.
            search = self.ends.end
            self._read_text(cur, search, call)
            start = cur.pos

    def _read_end(self, cur: Cursor, at: int, verdict: int, call: CallHandler) -> int:
        """Read up to the literal at ``at``, which ends the value or waits. Return DONE or MORE."""
        if self.ends.following is not None:
            self._end_regularly(cur, at, self.ends.following.end("close"), call)
            return DONE
        self._read_text(cur, at, call)
        if verdict == MORE:
            self._phase = _WAITING
            return MORE
        self._end(cur, at, verdict, call)
        return DONE

    def _read_beginning(self, cur: Cursor, call: CallHandler) -> bool:
        """Read what comes before the text. False if more text is needed."""
        if self._phase == _UNOPENED and not self._read_first(cur, call):
            return False
        if self._trim:
            if not self._read_newlines(cur):
                return False
            call.mark(MARKUP, cur.pos)
        return self._syntax.cdata is None or self._read_cdata(self._syntax.cdata, cur, call)

    def _read_first(self, cur: Cursor, call: CallHandler) -> bool:
        """Look at the first character. False if more text is needed."""
        if cur.pos >= len(cur.text):
            return False
        opens = self._syntax.doubled_opens
        if cur.text[cur.pos] in opens.first_characters:
            doubled = opens.at(cur.text, cur.pos, cur.final)
            if doubled == MORE:
                return False
            if doubled >= 0 and call.may_be_marker(cur.pos, doubled):
                self._report_markup(cur.pos, doubled, call)
        self._open()
        return True

    def _open(self) -> None:
        """Put the key: the value begins."""
        self._phase = _TRIMMING
        self.pending.append(self._key_text())

    def _read_newlines(self, cur: Cursor) -> bool:
        """Skip the declared newlines before the value. False if more text is needed."""
        while self._trim:
            newline = cur.text[cur.pos : cur.pos + 2]
            if not newline or (newline == "\r" and not cur.final):
                return False
            size = 1 if newline[0] == "\n" else 2 if newline == "\r\n" else 0
            cur.pos += size
            self._trim = self._trim - 1 if size else 0
        return True

    def _read_cdata(self, cdata: TaggedSyntax, cur: Cursor, call: CallHandler) -> bool:
        """Read the opener of a CDATA section, if the value begins with one. False if more text is needed."""
        if cur.pos >= len(cur.text) and not cur.final:
            return False
        end = _CDATA.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return False
        if end >= 0:
            self._syntax = cdata
            self.ends.enter(cdata)
            cur.pos = end
            call.mark(MARKUP, end)
        return True

    def _leave_cdata(self) -> None:
        if self._syntax is not self._outside:
            self._syntax = self._outside
            self.ends.enter(self._outside)

    def _read_text(self, cur: Cursor, end: int, call: CallHandler) -> None:
        """Read a part of the text."""
        if end <= cur.pos:
            return
        piece = cur.text[cur.pos : end]
        self._line.add(piece)
        if self._syntax.holds_after and (self._newlines or piece[-1] in _NEWLINES):
            piece = self._hold_newlines(self._newlines + piece)
        if piece and self.text.handling == STREAM:
            self.pending.append(json_escape(piece))
        elif piece:
            self.put_pending(call)
            self.text.add(piece, call)
        cur.pos = end
        call.mark(ARGUMENT_TEXT, end - len(self._newlines) if self._newlines else end)

    def _report_markup(self, start: int, end: int, call: CallHandler) -> None:
        """Report markup of the call in a value, once for each value."""
        if not self._has_markup and self._syntax is self._outside:  # a section is escaped
            self._has_markup = True
            call.report("markup_in_value", start, end)

    # -- the end ------------------------------------------------------------------------------------------------

    def _end_regularly(self, cur: Cursor, at: int, end: int, call: CallHandler) -> None:
        """End the value at its close, which is at ``at`` and written as the renderer writes it."""
        piece = self._newlines + cur.text[cur.pos : at]
        held = 0
        if self._syntax.trim_after and piece:
            piece = self._hold_newlines(piece)
            held = len(self._newlines)
        if call.records:
            call.mark(ARGUMENT_TEXT, at - held)
            call.mark(MARKUP, at)
        cur.pos = end
        if self.text.handling != STREAM:
            self.put_pending(call)
        self.pending.append(self.text.last(piece, call, end))
        self._newlines = ""

    def _end(self, cur: Cursor, at: int, verdict: int, call: CallHandler) -> None:
        """End the value at the literal that is at ``at``."""
        if self._newlines and verdict != ENDS_BEFORE and not self._syntax.trim_after:
            self.put_pending(call)
            self.text.add(self._newlines, call)
            call.mark(ARGUMENT_TEXT, at)
        elif self._newlines:
            call.mark(MARKUP, at)
            call.remark(MARKUP, call.accounted() - len(self._newlines), call.accounted())
        elif verdict != ENDS:
            call.mark(MARKUP, at)
        self._read_close(cur, at, verdict, call)
        self._newlines = ""
        self.put_pending(call)
        self.text.close(call, cur.pos)
        self._leave_cdata()

    def _read_close(self, cur: Cursor, at: int, verdict: int, call: CallHandler) -> None:
        """Read the close at ``at``, and report what is wrong with it."""
        end = self.ends.end
        if verdict == ENDS_BEFORE:
            call.report("missing_close", at, at)
            return
        cur.pos = end
        if verdict == ENDS_MISSPELLED:
            call.mark(DROPPED, end)
            call.report("misspelled_close", at, end)
            return
        if self._syntax.frame.variants and cur.text[at:end] in self._syntax.frame.variants:
            call.report("variant_spelling", at, end)
        call.mark(MARKUP, end)

    # -- what is put --------------------------------------------------------------------------------------------

    def put_pending(self, call: CallHandler) -> None:
        """Put the JSON text that waits."""
        text = "".join(self.pending)
        if text:
            self.pending = []
            call.put(text)

    def _key_text(self) -> str:
        """Return the JSON of the key, and of what comes before its value."""
        before = self.before
        self.before = ", "
        return f'{before}"{json_escape(self._key)}": {self.text.beginning}'

    def _hold_newlines(self, piece: str) -> str:
        """Return a part of the value without the newlines at its end, which may belong to the close tag and wait."""
        limit = self._syntax.holds_after
        end = len(piece)
        while limit and end and piece[end - 1] == "\n":
            end -= 2 if piece[end - 2 : end] == "\r\n" else 1
            limit -= 1
        if limit and end and piece[end - 1] == "\r":  # it may be the beginning of a newline
            end -= 1
        self._newlines = piece[end:]
        return piece[:end]

    def put_cut(self, cur: Cursor, call: CallHandler) -> None:
        """Put the beginning of the value in which the output was cut."""
        if self._phase == _UNOPENED:
            call.put(self._key_text())
            return
        if self.text.put_cut(self._newlines, call):
            call.mark(ARGUMENT_TEXT, cur.pos)
        self._newlines = ""
