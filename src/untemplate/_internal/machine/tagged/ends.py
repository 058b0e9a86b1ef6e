"""Where a tagged value ends: at its close tag, or where a model forgot, doubled or misspelled it.

* A *chain* is the closes around a value, innermost first: of the arguments, of the call, of the section.
* A close tag counts if a key, a chain or the end of the turn follows. After a chain that stops short of the outermost
  close, a call opener, a new line or the end of the output must follow.
* Without a close tag, a value ends at the opener of another parameter, or at a whole chain before a call opener or the
  end of the output. Whatever else looks like markup is part of the value.
* A whole call opener in a value begins a quoted call. The next chain belongs to that.
* At most a chain and the literal after it are buffered. No decision looks further than that.
"""

from __future__ import annotations

import re
from typing import Final, final

from ....tools import ToolSet
from .. import tags
from ..arguments.base import CallHandler
from ..arguments.last_line import LastLine
from ..arguments.lookahead import (
    ENDS,
    ENDS_BEFORE,
    ENDS_MISSPELLED,
    LINE_START,
    MAX_LOOKAHEAD,
    QUOTE_SIGNS,
    TAKEN,
    after_spaces,
    begins_line,
    misspelled_tag,
)
from ..arguments.quotation import RANKS, VALUE, Quotation
from ..lexer import Cursor, Literals
from ..signals import DONE, MORE, NO_MATCH
from .chains import END, OPENER, TEXT, Chains, ends_line_at
from .keys import Keys
from .program import TaggedSyntax

_MAX_DOUBLED: Final = 4
"""Most closes of one value in a row that are read as one. With more of them the value goes on: no output seen has so
many."""

_MARKUP: Final = frozenset((tags.VALUE_OPEN, tags.TYPE_OPEN, tags.VALUE_CLOSE, *tags.OPENERS, *tags.CLOSES))
"""Kinds of literals that are markup of the call wherever they are."""


@final
class ValueEnds:
    """Decides where the values of one call after another end."""

    def __init__(self, syntax: TaggedSyntax, tools: ToolSet) -> None:
        self._syntax: TaggedSyntax = syntax
        self.chains: Chains = Chains(syntax)
        self.keys: Keys = Keys(syntax, tools)
        """The parameters of the call."""
        self._closes: int = -1
        """The kind of the close that ends the calls."""
        self._regular: re.Pattern[str] | None = None
        self.stops: Literals = syntax.value_stops
        """The literals in the current value at which it may end, or at which a quotation begins."""
        self._quotation: Quotation = Quotation(syntax.frame)
        """Openers that the value shows as text."""
        self.markup: bool = False
        """True if the literal in question is markup of the call, although it is a part of the value."""
        self._other_opens: int = 0
        """Tags in the value whose closes could be taken for its own."""
        self._before: str = "\n"
        """The character before it."""
        self.following: re.Match[str] | None = None
        """After a decision: a match of ``FastTags.ends`` if the value ends as the renderer writes it; else None."""
        self.end: int = 0
        """After any other decision: where the literal in question ends, or where reading of the value goes on."""

    def begin_call(self, name: str, outermost: int) -> None:
        """Begin the arguments of a call, as ``TaggedReader.begin`` does."""
        if outermost != self._closes:
            self._closes = outermost
            self.chains.outermost = RANKS[outermost]
            self.chains.call = min(self.chains.outermost, 2)
            self._regular = self._syntax.fast.ends.get(outermost)
        self.keys.begin_call(name)

    def begin(self, key: str) -> None:
        """Begin the value of a parameter."""
        self._quotation.begin()
        self._other_opens = 0
        self.stops = self.keys.begin(key, self._syntax)

    def enter(self, syntax: TaggedSyntax) -> None:
        """Go on with another syntax of values."""
        self._syntax = self.chains.syntax = syntax
        self._regular = syntax.fast.ends.get(self._closes)
        self.stops = syntax.value_stops

    def judge(self, cur: Cursor, found: re.Match[str], line: LastLine, before: str, call: CallHandler) -> int:
        """Return how the value goes on at a literal that may end it: ENDS…, NO_MATCH if the literal is part of the
        value, or MORE. ``line``: the value's last line; ``before``: what comes after it. Sets ``following`` if the
        value ends there as the renderer writes it."""
        self.following = None
        last = (before or line.text)[-1]
        if self._regular is not None and not self._quotation.open and last not in QUOTE_SIGNS:
            start = found.start()
            regular = self._regular.match(cur.text, start)
            if regular is not None and call.may_be_marker(start, regular.end("markers")):
                verdict = ENDS if regular["rest"] is None else self._waits_after(cur, regular, call)
                if verdict == ENDS:
                    self.following = regular
                if verdict != NO_MATCH:
                    return verdict
        self._before = last
        return self._decide(cur, found, line, before, call)

    def _waits_after(self, cur: Cursor, found: re.Match[str], call: CallHandler) -> int:
        """Return MORE if the text ends too early to decide at the close that a regular match begins with, ENDS or
        NO_MATCH, as ``judge`` does."""
        rest = found["rest"]
        if call.has_id(found.start(), found.end("close")):
            return ENDS
        successors = self._syntax.value_successors
        if cur.final or (rest and rest not in successors.prefixes):
            return NO_MATCH
        self.chains.start = found.start()
        return self.chains.wait(successors, found.start("rest"))

    def _decide(self, cur: Cursor, found: re.Match[str], line: LastLine, before: str, call: CallHandler) -> int:
        """Decide as ``judge`` does, by what the literal is."""
        start = found.start()
        self.end = found.end()
        self.chains.start = start
        self.chains.undecided = 0
        tag = self.stops.tags[found.group()]
        if tag != tags.VALUE_STEM and not call.may_be_marker(start, self.end):
            self.markup = False
            return NO_MATCH
        self.markup = tag in _MARKUP
        if tag == tags.VALUE_CLOSE:
            return self._at_close(cur, start, call)
        if tag == tags.KEY_OPEN:
            return self._at_key(cur, line.place(before))
        if tag in (tags.VALUE_OPEN, tags.TYPE_OPEN):
            return NO_MATCH
        if tag in (tags.OTHER_OPEN, tags.OTHER_CLOSE):
            return self._at_other(cur, tag, call)
        if tag == tags.VALUE_STEM:
            return NO_MATCH if self._quotation.shows_call() else self._at_misspelled(cur, call)
        if tag in RANKS:
            return self._at_chain(cur, start, line.is_only(before), call)
        if tag == tags.TURN_END:
            return ENDS_BEFORE if call.has_id(start, self.end) else NO_MATCH
        end = self.chains.whole_opener(cur, start)
        if end >= 0:
            self._quotation.show_call(cur.text[start:end])
            self.end = end
        return MORE if end == MORE else NO_MATCH

    def _at_close(self, cur: Cursor, start: int, call: CallHandler) -> int:
        end = self.end
        if call.has_id(start, end):
            return ENDS
        if self._before in QUOTE_SIGNS:
            quoted = self._is_between_quotes(cur, end, call)
            if quoted != NO_MATCH:
                return MORE if quoted == MORE else NO_MATCH
        if self._quotation.open:
            verdict = self._at_quoted_close(cur, end, VALUE, call)
            if verdict != NO_MATCH:
                return NO_MATCH if verdict == TAKEN else verdict
        return self._may_follow(cur, end, True, call)

    def _is_between_quotes(self, cur: Cursor, end: int, call: CallHandler) -> int:
        """Return DONE if the sign before the close that ends at ``end`` also follows it and its chain: they are text.
        NO_MATCH or MORE."""
        last, after = self.chains.read(cur, end, call)
        if last == MORE:
            return MORE
        if after >= len(cur.text) and not cur.final:
            self.chains.undecided = 0  # any character may follow
            return MORE
        if cur.text[after : after + 1] != self._before:
            return NO_MATCH
        self.end = after
        return DONE

    def _at_quoted_close(self, cur: Cursor, pos: int, rank: int, call: CallHandler) -> int:
        """Decide at a close of this rank, or at the chain at ``pos``, in a value that shows openers which it has not
        closed: the value ends, or the close belongs to the quotation (TAKEN)."""
        quotation = self._quotation
        owned = quotation.owns(rank)
        at = after_spaces(cur.text, pos)
        last, after = (0, pos) if at < 0 else self.chains.read(cur, at, call)
        if last == MORE:
            return MORE
        follows = TEXT if not last else self.chains.follows(cur, after, call)
        if follows == MORE:
            return MORE
        ends = ENDS if rank == VALUE else ENDS_BEFORE
        if follows == END and last:
            return ends
        if last >= self.chains.call:
            ranks = self.chains.ranks_in(cur.text, at, after) + [VALUE] * (rank == VALUE)
            if self._is_own_chain(cur, after, ranks, follows):
                return ends
            for one in ranks:
                quotation.close(one)
            self.end = after
            return TAKEN
        key = self._key_follows(cur, at) if owned and rank == VALUE else NO_MATCH
        if key == MORE:
            return MORE
        if owned and key == NO_MATCH:
            quotation.close(rank)
            return TAKEN
        return NO_MATCH

    def _is_own_chain(self, cur: Cursor, end: int, ranks: list[int], follows: int) -> bool:
        """True if a whole chain that ends at ``end`` belongs to the call, although the value shows openers. One that
        the quotation owns does not. Others do before another call, with the section's close, or on their own lines."""
        if self._quotation.owns_all(ranks):
            return False
        if follows == OPENER or RANKS[tags.SECTION_CLOSE] in ranks:
            return True
        return VALUE in ranks and (self._before == "\n" or not self._syntax.trim_after) and ends_line_at(cur.text, end)

    def _key_follows(self, cur: Cursor, pos: int) -> int:
        """Return DONE if the opener of a declared parameter that has not come is at ``pos``, and no quoted call is
        open; NO_MATCH or MORE."""
        if pos < 0 or self._quotation.shows_call():
            return NO_MATCH
        end = self._syntax.value_successors.at(cur.text, pos, cur.final)
        if end < 0 or self._syntax.value_successors.tags[cur.text[pos:end]] != tags.KEY_OPEN:
            return MORE if end == MORE else NO_MATCH
        key = self.keys.whole_key(self._syntax, cur, end)
        if key is None:
            return MORE
        return DONE if self.keys.is_missing(key) else NO_MATCH

    def _may_follow(self, cur: Cursor, end: int, correct: bool, call: CallHandler) -> int:
        """Return ENDS if the text at ``end`` may follow a close tag. After a tag that is not ``correct``, the output
        must go on, and no further close tag may follow."""
        text = cur.text
        for _ in range(_MAX_DOUBLED):
            pos = after_spaces(text, end)
            if pos < 0:
                return NO_MATCH
            if pos >= len(text):
                if cur.final:
                    return ENDS if correct else NO_MATCH
                return self.chains.wait(self._syntax.value_successors, pos)
            end = self._syntax.value_successors.at(text, pos, cur.final)
            if end < 0:
                break
            if not call.may_be_marker(pos, end):
                return NO_MATCH
            tag = self._syntax.value_successors.tags[text[pos:end]]
            if tag in (tags.KEY_OPEN, tags.TURN_END):
                return ENDS
            if tag != tags.VALUE_CLOSE:
                return self._after_chain(cur, pos, call)
            if not correct or self._quotation.open:
                return NO_MATCH
        if end == MORE:
            return self.chains.wait(self._syntax.value_successors, pos)
        if cur.final and correct and self._syntax.value_successors.undecided(text, pos):
            return ENDS
        if not correct:
            return NO_MATCH
        damaged = self.keys.damaged_key(self._syntax, cur, pos)
        if damaged != NO_MATCH:
            self.chains.undecided = 0
            return ENDS if damaged >= 0 else MORE
        opened = NO_MATCH if self._quotation.open else self.chains.at_call(cur, pos, call)
        return self._stray_line(cur, pos, call) if opened == NO_MATCH else opened

    def _after_chain(self, cur: Cursor, start: int, call: CallHandler) -> int:
        """Return ENDS if the chain at ``start`` ends a call whose last value has a close tag."""
        rank, end = self.chains.read(cur, start, call)
        # The outermost close may be missing. Text on the same line means that the value quotes the chain.
        if rank >= self.chains.outermost or ends_line_at(cur.text, end):
            return ENDS
        follows = MORE if rank == MORE else self.chains.follows(cur, end, call)
        if follows == TEXT and rank > 0:
            follows = self.chains.stray_text(cur, end, rank, call)
        if follows == MORE:
            self.chains.undecided = 0  # any text may hold the new line
            return MORE
        return NO_MATCH if follows == TEXT else ENDS

    def _stray_line(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return ENDS if there is only stray text between a close tag and another parameter at the start of a line, or
        only stray lines before what ends the calls."""
        text = cur.text
        found = self._syntax.value_stops.near(text, pos, pos + MAX_LOOKAHEAD)
        if found is None:
            at = self._syntax.value_stops.undecided_from(text, pos)
            # Text with a tag that is not one of the format's is not stray.
            return NO_MATCH if cur.final or at - pos > MAX_LOOKAHEAD or "<" in text[pos:at] else MORE
        at = found.start()
        tag = self._syntax.value_stops.tags[found.group()]
        if "<" in text[pos:at] or text[at - 1] != "\n" or not call.may_be_marker(at, found.end()):
            return NO_MATCH
        if tag == self._syntax.frame.innermost and begins_line(text, pos):
            ends = self.chains.ends_calls(cur, at, call)
            return ENDS if ends == DONE else ends
        if tag != tags.KEY_OPEN:
            return NO_MATCH
        key = self.keys.whole_key(self._syntax, cur, found.end())
        if key is None:
            return MORE
        return ENDS if self.keys.may_begin(key, LINE_START) else NO_MATCH

    def _at_key(self, cur: Cursor, place: int) -> int:
        key = self.keys.whole_key(self._syntax, cur, self.end)
        if key is None:
            return MORE
        self.markup = self.keys.is_markup(key, cur.text, self.end)
        if key and not self._quotation.shows_call() and self.keys.may_begin(key, place):
            return ENDS_BEFORE
        if key:
            self._quotation.show_key()
        else:
            self._other_opens += 1
        return NO_MATCH

    def _at_other(self, cur: Cursor, tag: int, call: CallHandler) -> int:
        """Decide at a tag that models write in place of the value's close, or that opens such a one."""
        if tag == tags.OTHER_OPEN:
            self._other_opens += 1
        elif self._other_opens:
            self._other_opens -= 1
        elif not self._quotation.shows_call():
            verdict = self._may_follow(cur, self.end, False, call)
            return ENDS_MISSPELLED if verdict == ENDS else verdict
        return NO_MATCH

    def _at_misspelled(self, cur: Cursor, call: CallHandler) -> int:
        stem = self.end
        end = misspelled_tag(cur, stem, "")
        if end == MORE:
            return MORE
        self.end = end
        verdict = self._may_follow(cur, self.end, False, call)
        if verdict == NO_MATCH:
            self.end = stem
        return ENDS_MISSPELLED if verdict == ENDS else verdict

    def _at_chain(self, cur: Cursor, start: int, one_line: bool, call: CallHandler) -> int:
        """Decide at closes around the value, without its own close before them. ``one_line``: it has no newline."""
        if self._quotation.open:
            rank = RANKS[self._syntax.value_stops.tags[cur.text[start : self.end]]]
            verdict = self._at_quoted_close(cur, start, rank, call)
            if verdict != NO_MATCH:
                return NO_MATCH if verdict == TAKEN else verdict
        if self._syntax.value_stops.tags[cur.text[start : self.end]] != self._syntax.frame.innermost:
            return NO_MATCH
        ends = self.chains.ends_calls(cur, start, call)
        if ends == NO_MATCH and one_line:
            ends = self.chains.ends_line(cur, start, call)
        return ENDS_BEFORE if ends == DONE else ends
