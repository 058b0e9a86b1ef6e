"""The closes around a tagged value, and what follows them.

* A *chain* is the closes around a value, innermost first: of the arguments, of the call, of the section.
* At most a chain and the literal after it are buffered. No decision looks further than that.
"""

from __future__ import annotations

from typing import Final, final

from .. import tags
from ..arguments.base import CallHandler
from ..arguments.lookahead import ENDS, MAX_LOOKAHEAD, MAX_STRAY, STRAY_TEXT, after_spaces, whole_opener
from ..arguments.quotation import RANKS
from ..lexer import SPACES, WS, Cursor, Literals
from ..signals import DONE, MORE, NO_MATCH
from .program import TaggedSyntax

# What follows a chain.
TEXT: Final = 0
OPENER: Final = 1
END: Final = 2


@final
class Chains:
    """Reads the chains of one call after another."""

    def __init__(self, syntax: TaggedSyntax) -> None:
        self.syntax: TaggedSyntax = syntax
        self.outermost: int = 0
        """Rank of the close that ends the calls."""
        self.call: int = 0
        """Rank of the close that ends a call."""
        self.start: int = 0
        """Where the literal in question begins."""
        self.undecided: int = 0
        """After MORE: characters from that literal to the text that decides; 0 if any text may decide."""
        self._awaited: Literals = syntax.value_successors

    def wait(self, literals: Literals, pos: int) -> int:
        """Return MORE, as the text from ``pos`` on may be one of these literals."""
        self._awaited = literals
        self.undecided = pos - self.start
        return MORE

    def goes_on(self, text: str) -> bool:
        """True if the text does not decide the literal at its beginning."""
        rest = text[self.undecided :].lstrip(WS)
        return self.undecided > 0 and (not rest or rest in self._awaited.prefixes)

    def read(self, cur: Cursor, start: int, call: CallHandler) -> tuple[int, int]:
        """Return the rank of the last close of the chain at ``start``, 0 if no close is there, and where it ends. The
        rank is MORE if the text ends too early to decide."""
        syntax = self.syntax
        text = cur.text
        rank = 0
        end = pos = start
        while rank < self.outermost:
            if pos >= len(text):
                return (rank if cur.final else self.wait(syntax.value_successors, pos)), end
            stop = syntax.value_successors.at(text, pos, cur.final)
            if stop == MORE:
                return self.wait(syntax.value_successors, pos), end
            here = 0 if stop < 0 else RANKS.get(syntax.value_successors.tags[text[pos:stop]], 0)
            if here <= rank or not call.may_be_marker(pos, stop):
                break
            rank = here
            end = stop
            pos = after_spaces(text, end)
            if pos < 0:
                break
        return rank, end

    def follows(self, cur: Cursor, end: int, call: CallHandler) -> int:
        """Return what follows a chain that ends at ``end``, or MORE."""
        text = cur.text
        most = end + MAX_LOOKAHEAD
        stops = self.syntax.value_stops
        message_ends = False
        while True:
            pos = after_spaces(text, end)
            if pos < 0 or pos > most:
                return TEXT
            if pos >= len(text):
                return END if cur.final else self.wait(stops, pos)
            opened = self.syntax.frame.message_opens.at(text, pos, cur.final) if message_ends else NO_MATCH
            if opened == MORE:
                return MORE
            if opened >= 0 and call.may_be_marker(pos, opened):
                return OPENER
            stop = stops.at(text, pos, cur.final)
            if stop == MORE:
                return self.wait(stops, pos)
            if stop < 0:
                return self._after_separator(cur, pos, call)
            if stops.tags[text[pos:stop]] != tags.TURN_END or not call.may_be_marker(pos, stop):
                break
            if call.has_id(pos, stop):
                return END
            end = stop
            message_ends = True
        return self._before_opener(cur, pos, call)

    def _after_separator(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return what follows a chain if text is at ``pos``, which may separate two calls, or MORE."""
        text = cur.text
        separators = self.syntax.separators
        end = separators.at(text, pos, cur.final)
        if end == MORE:
            return self.wait(separators, pos)
        if end < 0:
            return END if cur.final and self.syntax.value_stops.undecided(text, pos) else TEXT
        pos = after_spaces(text, end)
        if pos >= len(text):
            return END if cur.final else self.wait(self.syntax.value_stops, pos)
        return TEXT if pos < 0 else self._before_opener(cur, pos, call)

    def _before_opener(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return OPENER if another call begins at ``pos``, TEXT or MORE."""
        opened = self._at_opener(cur, pos, call)
        return MORE if opened == MORE else OPENER if opened >= 0 else TEXT

    def _at_opener(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return where the opener of another call at ``pos`` ends, name included, NO_MATCH or MORE."""
        stops = self.syntax.value_stops
        end = stops.at(cur.text, pos, cur.final)
        if end == MORE:
            return self.wait(stops, pos)
        if end < 0 or stops.tags[cur.text[pos:end]] not in tags.OPENERS or not call.may_be_marker(pos, end):
            return NO_MATCH
        return self.whole_opener(cur, pos)

    def whole_opener(self, cur: Cursor, start: int) -> int:
        """Return where the call opener at ``start`` ends, name included; NO_MATCH or MORE."""
        syntax = self.syntax
        return whole_opener(syntax.frame, syntax.name, syntax.value_ends, syntax.value_successors, cur, start)

    def ends_calls(self, cur: Cursor, start: int, call: CallHandler) -> int:
        """Return DONE if a whole chain is at ``start``, and a call or the end of the output after it; NO_MATCH or
        MORE."""
        rank, end = self.read(cur, start, call)
        if rank == MORE:
            return MORE
        if rank < self.call:
            return NO_MATCH
        follows = self.follows(cur, end, call)
        if follows == MORE:
            return MORE
        return DONE if (follows == END and rank == self.outermost) or follows == OPENER else NO_MATCH

    def ends_line(self, cur: Cursor, start: int, call: CallHandler) -> int:
        """Return DONE if a whole chain is at ``start``, and the end of its line after it; NO_MATCH or MORE."""
        rank, end = self.read(cur, start, call)
        if rank == MORE or (rank == self.outermost and not cur.final and after_spaces(cur.text, end) == len(cur.text)):
            self.undecided = 0
            return MORE
        return DONE if rank == self.outermost and ends_line_at(cur.text, end) else NO_MATCH

    def at_call(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return ENDS if another call begins at ``pos``, with its first argument or its close; NO_MATCH or MORE."""
        end = self._at_opener(cur, pos, call)
        if end < 0:
            return end
        # The name of the call may end at the opener of its first key.
        keys = tuple(text for text, tag in self.syntax.tags.tags.items() if tag == tags.KEY_OPEN)
        if cur.text.endswith(keys, pos, end):
            return ENDS
        pos = after_spaces(cur.text, end)
        if pos < 0:
            return NO_MATCH
        if pos >= len(cur.text):
            return ENDS if cur.final else MORE
        successors = self.syntax.value_successors
        end = successors.at(cur.text, pos, cur.final)
        if end < 0:
            return end
        return NO_MATCH if successors.tags[cur.text[pos:end]] == tags.VALUE_CLOSE else ENDS

    def stray_text(self, cur: Cursor, start: int, rank: int, call: CallHandler) -> int:
        """Return END if a little text without quotation marks is between a close of this rank and one that comes after
        it in the chain; TEXT or MORE."""
        found = self.syntax.value_stops.near(cur.text, start, start + MAX_STRAY)
        end = self.syntax.value_stops.undecided_from(cur.text, start) if found is None else found.start()
        if end - start > MAX_STRAY or STRAY_TEXT.fullmatch(cur.text, start, end) is None:
            return TEXT
        if found is None:
            return TEXT if cur.final else MORE
        further = RANKS.get(self.syntax.value_stops.tags[found.group()], 0) > rank
        return END if further and call.may_be_marker(found.start(), found.end()) else TEXT

    def ranks_in(self, text: str, start: int, end: int) -> list[int]:
        """Return the ranks of the closes of a chain."""
        successors = self.syntax.value_successors
        return [RANKS[successors.tags[found.group()]] for found in successors.pattern.finditer(text, start, end)]


def ends_line_at(text: str, pos: int) -> bool:
    """True if only white space comes between ``pos`` and the end of its line."""
    spaces = SPACES.match(text, pos, pos + MAX_LOOKAHEAD)
    return spaces is not None and "\n" in spaces.group()
