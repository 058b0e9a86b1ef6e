"""The elements that are open, and where the text in the innermost one ends.

* A text ends at the close tag of its element, if what follows may follow one. Without it, a text ends before another
  declared argument, the close of an element around it, or the end of the call. Other tags are part of the text, and so
  are tags that are spelled in another way than the one that opened the element, but for its own close.
"""

from __future__ import annotations

import re
from typing import Final, final

from ...schemas.reading import SchemaNode
from .. import tags
from ..arguments.base import CallHandler
from ..arguments.lookahead import (
    ENDS,
    ENDS_AS_VARIANT,
    ENDS_BEFORE,
    ENDS_MISSPELLED,
    MAX_LOOKAHEAD,
    MOST_OF_LINE,
    TAKEN,
    after_spaces,
    begins_line,
    is_nearly,
    misspelled_tag,
    whole_opener,
)
from ..arguments.quotation import RANKS, VALUE, Quotation
from ..lexer import NO_LITERALS, WS, Cursor
from ..names import MAX_KEY
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .program import ElementsSyntax

_NOT_IN_NAME: Final = re.compile(r"[<>\r\n]")
_EDGES: Final = ("", "/", " ", "\t")
"""Beginnings that no name has."""
_MANY_PIECES: Final = 32
"""Pieces of the text after which they are joined."""
_MAX_CHAIN: Final = 4 * MAX_LOOKAHEAD
"""Most characters of a chain of closes: those of an element, the arguments, the call and the section. No output seen
has more; beyond them the text continues."""
_LONGEST_PLAIN: Final = 2
"""Length of ``</``."""
_RANKS: Final = {tags.ELEMENT_CLOSE: 0, **RANKS}

# What an element holds.
UNDECIDED: Final = 0
TEXT: Final = 1
OBJECT: Final = 2
ARRAY: Final = 3


@final
class Element:
    """An element that is open."""

    def __init__(self, name: str, opener: str, node: SchemaNode, holds: int) -> None:
        self.name: str = name
        self.opener: str = opener
        """The spelling before its name. Elements inside it are written with the same one."""
        self.node: SchemaNode = node
        self.holds: int = holds
        self.seen: set[str] = set()
        """The names of the elements inside it."""


@final
class OpenElements:
    """The elements of one call that are open."""

    def __init__(self, syntax: ElementsSyntax, node: SchemaNode) -> None:
        """``node``: the place of the arguments in the tool's schema."""
        self.syntax: ElementsSyntax = syntax
        self.element: Element = Element("", "", node, OBJECT)
        """The innermost one."""
        self.around: list[Element] = []
        """The elements around it, the arguments first."""
        self.quotation: Quotation = Quotation(syntax.frame)
        """Openers that the text shows."""
        self.markup: bool = False
        """True if the literal in question is markup of the call, although it is a part of the text."""
        self.recent: list[str] = []
        """The last pieces of the text."""
        self.end: int = 0
        """After a decision: the end of the tag, or the place from which the text is read further."""
        self._literal: int = 0
        """Where the literal in question begins."""

    def tag(self, cur: Cursor, start: int) -> int:
        """Return where the tag ends whose name is at ``start``; NO_MATCH if it is not a tag, or MORE."""
        text = cur.text
        ends = self.syntax.tag_ends
        found = ends.near(text, start, start + MAX_KEY)
        stop = ends.undecided_from(text, start) if found is None else found.start()
        is_text = stop - start > MAX_KEY or _NOT_IN_NAME.search(text, start, stop) is not None
        if is_text or text[start:stop][:1] in _EDGES:
            return NO_MATCH if stop > start or found is not None else MORE
        if found is None:
            return MORE
        return NO_MATCH if text[stop - 1] in WS else found.end()

    def name(self, cur: Cursor, start: int, end: int) -> str:
        return cur.text[start : end - len(self.syntax.tag_end)]

    def marker(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return where the marker at ``pos`` ends; NO_MATCH or MORE."""
        end = self.syntax.tags.at(cur.text, pos, cur.final)
        return NO_MATCH if end >= 0 and not call.may_be_marker(pos, end) else end

    def kind(self, cur: Cursor, start: int, end: int) -> int:
        return self.syntax.tags.tags[cur.text[start:end]]

    def closes(self, cur: Cursor, pos: int, name: str) -> int:
        """Return where the close tag of this name at ``pos`` ends; NO_MATCH or MORE."""
        answer = NO_MATCH
        for opener in self.syntax.closes:
            tag = opener + name + self.syntax.tag_end
            if cur.text.startswith(tag, pos):
                return pos + len(tag)
            if not cur.final and tag.startswith(cur.text[pos : pos + len(tag)]):
                answer = MORE
        return answer

    def decide(self, cur: Cursor, found: re.Match[str], call: CallHandler) -> int:
        """Decide at a literal that may end the text. Return ENDS, ENDS_BEFORE, NO_MATCH if the literal is part
        of the text, or MORE."""
        start = found.start()
        end = found.end()
        self.end = end
        self._literal = start
        self.markup = False
        if not call.may_be_marker(start, end):
            return NO_MATCH
        own = self.closes(cur, start, self.element.name)
        if own == MORE:
            return MORE
        kind = self.kind(cur, start, end)
        # A mere ``<`` is no markup where the tags of this element begin with more.
        written = found.group().startswith(self.element.opener.removesuffix("<"))
        self.markup = written and (own >= 0 or kind in tags.OPENERS or kind in tags.CLOSES)
        if own >= 0:
            return self._at_own_close(cur, start, found.group(), own, call)
        return self._at_other(cur, found, kind, call)

    def _at_other(self, cur: Cursor, found: re.Match[str], kind: int, call: CallHandler) -> int:
        """Decide at a literal of this kind that is not the element's own close."""
        start = found.start()
        end = found.end()
        if kind == tags.KEY_OPEN:
            return self._at_open(cur, end) if self._spells(found.group(), kind) else NO_MATCH
        if kind == tags.ELEMENT_CLOSE:
            return self._at_close(cur, end, self._spells(found.group(), kind))
        if kind == tags.TURN_END:
            return ENDS_BEFORE if call.has_id(start, end) else NO_MATCH
        if kind in tags.OPENERS:
            return self._at_call(cur, start)
        return self._at_chain(cur, start, call)

    def _at_own_close(self, cur: Cursor, start: int, opener: str, end: int, call: CallHandler) -> int:
        self.end = end
        if call.has_id(start, end):
            return ENDS
        if self.quotation.open:
            verdict = self._at_quoted_chain(cur, end, ENDS, call)
            if verdict == NO_MATCH and self.quotation.owns(VALUE):
                self.quotation.close(VALUE)
                verdict = TAKEN
            if verdict != NO_MATCH:
                return NO_MATCH if verdict == TAKEN else verdict
        if not self._spells(opener, tags.ELEMENT_CLOSE):
            return self._at_variant(cur, start, opener, end)
        follows = self._may_follow(cur, end, True)
        return self._stray_text(cur, end, call) if follows == NO_MATCH else follows

    def _at_variant(self, cur: Cursor, start: int, opener: str, end: int) -> int:
        """Decide at the element's own close if it is spelled in another way than the opener."""
        self.markup = False
        follows = self._may_follow(cur, end, False)
        if follows != ENDS:
            return follows
        return ENDS_MISSPELLED if self._is_damaged(cur.text[cur.pos : start], opener) else ENDS_AS_VARIANT

    def _is_damaged(self, before: str, opener: str) -> bool:
        """True if the text ends in a damaged part of its close: the one before ``opener``."""
        written = self.syntax.close_of.get(self.element.opener, opener)
        missing = written.removesuffix(opener)
        tail = "".join(self.recent) + before
        sizes = range(len(missing) - 1, len(missing) + 2)
        return len(missing) > _LONGEST_PLAIN and any(is_nearly(tail[-size:], missing) for size in sizes)

    def keep_recent(self, text: str) -> None:
        """Keep the end of the text, in which a close may be damaged."""
        recent = self.recent
        recent.append(text)
        if len(recent) > _MANY_PIECES:
            self.recent = ["".join(recent)[-MOST_OF_LINE:]]

    def _may_be_own(self, end: int) -> bool:
        """True if the tag in question, whose name begins at ``end``, is more than ``<``, and no schema lists names."""
        return end - self._literal > _LONGEST_PLAIN and not self.around[0].node.properties()

    def _spells(self, opener: str, kind: int) -> bool:
        """True if a tag begins as the tags of this element do."""
        written = self.element.opener
        return opener == (self.syntax.close_of.get(written, opener) if kind == tags.ELEMENT_CLOSE else written)

    def _at_open(self, cur: Cursor, end: int) -> int:
        """Decide at the opener of another element: it ends the text if it is the next one of those around it."""
        after = self.tag(cur, end)
        if after < 0:
            self.markup = end - self._literal > _LONGEST_PLAIN
            return MORE if after == MORE and not cur.final else NO_MATCH
        self.end = after
        name = self.name(cur, end, after)
        outer = self.around[-1]
        is_same = name == self.element.name
        self.markup = name in outer.node.properties() or self._may_be_own(end)
        if self.quotation.shows_call() or (is_same and outer.holds != ARRAY):
            if is_same:
                self.quotation.show_key()
            return NO_MATCH
        return ENDS_BEFORE if self._may_be_next(name, outer) else NO_MATCH

    def _may_be_next(self, name: str, outer: Element) -> bool:
        """True if an element of this name may be the next one in ``outer``."""
        if outer.holds == ARRAY:
            return name == self.syntax.item
        return name in outer.node.properties() and name not in outer.seen

    def _at_close(self, cur: Cursor, end: int, spells: bool) -> int:
        """Decide at a close tag that is not this element's: it ends the text if it is that of an element around it, or
        a misspelled one. ``spells``: it begins as the tags of this element do."""
        if self.quotation.shows_call():
            return NO_MATCH
        verdict = self._at_misspelled(cur, end)
        if verdict != NO_MATCH:
            return verdict
        after = self.tag(cur, end)
        if after < 0 or not spells:
            self.markup = spells and end - self._literal > _LONGEST_PLAIN
            return MORE if after == MORE and spells and not cur.final else NO_MATCH
        self.end = after
        name = self.name(cur, end, after)
        if all(element.name != name for element in self.around[1:]):
            self.markup = self.markup or self._may_be_own(end)
            return NO_MATCH
        follows = self._may_follow(cur, after, True)
        return ENDS_BEFORE if follows == ENDS else follows

    def _at_misspelled(self, cur: Cursor, end: int) -> int:
        """Decide at a close tag, whose name is at ``end``, if it is this element's, misspelled."""
        wrong = misspelled_tag(cur, end, self.element.name)
        if wrong == MORE:
            return MORE
        # A longer one is another name, which begins with a short one.
        if wrong < 0 or wrong - end > 2 * len(self.element.name) + 1:
            return NO_MATCH
        follows = self._may_follow(cur, wrong, False)
        if follows != NO_MATCH:
            self.end = wrong
        return ENDS_MISSPELLED if follows == ENDS else follows

    def _may_follow(self, cur: Cursor, end: int, correct: bool) -> int:
        """Return ENDS if the text at ``end`` may follow a close tag. After a tag that is not ``correct``, the output
        must go on, and not with another close of this element."""
        pos = after_spaces(cur.text, end)
        if pos < 0:
            return NO_MATCH
        if pos >= len(cur.text):
            return MORE if not cur.final else ENDS if correct else NO_MATCH
        found = self.syntax.tags.at(cur.text, pos, cur.final)
        if found == NO_MATCH and cur.final and correct and self.syntax.tags.undecided(cur.text, pos):
            return ENDS
        if found < 0:
            return found
        own = NO_MATCH if correct else self.closes(cur, pos, self.element.name)
        if own == NO_MATCH:
            return ENDS
        return MORE if own == MORE else NO_MATCH

    def _stray_text(self, cur: Cursor, end: int, call: CallHandler) -> int:
        """Return ENDS if there is only stray text between a close tag, which ends at ``end``, and the next element, or
        only stray lines before what ends the calls."""
        text = cur.text
        literals = self.syntax.tags
        found = literals.near(text, end, end + MAX_LOOKAHEAD)
        at = literals.undecided_from(text, end) if found is None else found.start()
        if "<" in text[end:at]:  # text with a tag that is not one of the format's is not stray
            return NO_MATCH
        if found is None and (cur.final or at - end > MAX_LOOKAHEAD):
            return NO_MATCH
        if found is None or (not cur.final and literals.longer_from(text, end, at) >= 0):
            return MORE
        return self._after_stray(cur, end, found, call)

    def _after_stray(self, cur: Cursor, end: int, found: re.Match[str], call: CallHandler) -> int:
        """Decide at the literal after the text that may be stray, which begins at ``end``."""
        text = cur.text
        at = found.start()
        kind = self.kind(cur, at, found.end())
        if kind in tags.CLOSES:
            pos = after_spaces(text, end)
            if pos < 0 or not begins_line(text, pos) or text[at - 1] != "\n":
                return NO_MATCH
            follows = self._follows(cur, at, call)
            return ENDS if follows in (DONE, AGAIN) else follows
        if kind != tags.KEY_OPEN:
            return NO_MATCH
        markup = self.markup
        opened = self._at_open(cur, found.end())
        self.markup = markup
        self.end = end
        return ENDS if opened == ENDS_BEFORE else opened

    def _at_call(self, cur: Cursor, start: int) -> int:
        """Decide at the opener of a call: a whole one begins a quotation."""
        end = self._whole_opener(cur, start)
        if end == MORE:
            return MORE
        if end >= 0:
            self.quotation.show_call(cur.text[start:end])
            self.end = end
        return NO_MATCH

    def _whole_opener(self, cur: Cursor, start: int) -> int:
        """Return where the call opener at ``start`` ends, name included; NO_MATCH or MORE."""
        syntax = self.syntax
        return whole_opener(syntax.frame, syntax.name, NO_LITERALS, syntax.tags, cur, start)

    def _at_chain(self, cur: Cursor, start: int, call: CallHandler) -> int:
        """Decide at what ends the arguments, the call or the calls, without the close of the text before it."""
        if self.quotation.open:
            verdict = self._at_quoted_chain(cur, start, ENDS_BEFORE, call)
            if verdict != NO_MATCH:
                return NO_MATCH if verdict == TAKEN else verdict
        follows = self._follows(cur, start, call)
        return ENDS_BEFORE if follows in (DONE, AGAIN) else follows

    def _at_quoted_chain(self, cur: Cursor, pos: int, ends: int, call: CallHandler) -> int:
        """Decide at the closes at ``pos`` in a text that shows openers which it has not closed: the text ends, or they
        belong to the quotation, which takes the first of them (TAKEN)."""
        quotation = self.quotation
        follows = self._follows(cur, pos, call)
        if follows == MORE:
            return MORE
        at = after_spaces(cur.text, pos)
        stop = NO_MATCH if at < 0 else self.marker(cur, at, call)
        rank = 0 if stop < 0 else RANKS.get(self.kind(cur, at, stop), 0)
        if follows == DONE or (follows == AGAIN and not quotation.owns(rank)):
            return ends
        if rank and quotation.owns(rank):
            quotation.close(rank)
            self.end = stop
            return TAKEN
        return NO_MATCH

    def _follows(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return what follows a chain of closes, the innermost first: DONE for the end of the output, AGAIN for another
        call, NO_MATCH for anything else, or MORE."""
        limit = pos + _MAX_CHAIN
        rank = 0
        while pos < limit:
            pos = after_spaces(cur.text, pos)
            if pos < 0:
                return NO_MATCH
            end = self.marker(cur, pos, call) if pos < len(cur.text) else MORE
            if end < 0:
                return DONE if cur.final and (end == MORE or self.syntax.tags.undecided(cur.text, pos)) else end
            kind = self.kind(cur, pos, end)
            if kind in tags.OPENERS:
                opened = self._whole_opener(cur, pos)
                return AGAIN if opened >= 0 else opened
            if kind != tags.TURN_END:
                rank, pos = self._after_close(cur, kind, end, rank)
                if pos < 0:
                    return pos
            elif call.has_id(pos, end):
                return DONE
            else:
                pos = end
        return NO_MATCH

    def _after_close(self, cur: Cursor, kind: int, end: int, rank: int) -> tuple[int, int]:
        """Return the rank of a close of this kind, and where it ends; its literal ends at ``end``. The place is
        NO_MATCH if such a close does not come after one of ``rank``, or MORE."""
        here = _RANKS.get(kind, -1)
        if here < rank or (here == rank and here):
            return rank, NO_MATCH
        pos = end if here else self.tag(cur, end)
        return here, NO_MATCH if pos == MORE and cur.final else pos
