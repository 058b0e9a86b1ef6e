"""Arguments in elements named after them: ``<city>Paris</city>`` → ``{"city": "Paris"}``.

* An element holds text, or elements. Its schema decides; where it allows both, what comes first in it does.
* A text ends at the close tag of its element, if what follows may follow one. Without it, a text ends before another
  declared argument, the close of an element around it, or the end of the call. Other tags are part of the text, and so
  are tags that are spelled in another way than the one that opened the element, but for its own close.
* An element that is not closed ends with the element around it, and a close tag that closes nothing is dropped. Both
  are reported.
* A tag is read as a whole, so at most its name is kept. Beyond ``MAX_DEPTH`` levels elements are text.
"""

from __future__ import annotations

import re
from typing import Final, final

from ...jsontext.lexical import json_escape
from ...jsontext.well_formed import MAX_DEPTH
from ...schemas.reading import SchemaNode
from .. import tags
from ..arguments.base import ArgumentReader, CallHandler
from ..arguments.lookahead import (
    ENDS,
    ENDS_AS_VARIANT,
    ENDS_BEFORE,
    ENDS_IN_QUOTATION,
    ENDS_MISSPELLED,
    MAX_LOOKAHEAD,
    MOST_OF_LINE,
    after_spaces,
    begins_line,
    is_nearly,
    misspelled_tag,
    whole_opener,
)
from ..arguments.quotation import RANKS, VALUE, Quotation
from ..arguments.value_text import STREAM, ValueText
from ..diagnostics import DiagnosticCode
from ..ledger import ARGUMENT_TEXT, DROPPED, MARKUP
from ..lexer import NO_LITERALS, SPACES, WS, Cursor
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .program import ElementsSyntax

_MAX_KEY: Final = 1024
_NOT_IN_NAME: Final = re.compile(r"[<>\r\n]")
_EDGES: Final = ("", "/", " ", "\t")
"""Beginnings that no name has."""

# What an element holds.
_UNDECIDED: Final = 0
_TEXT: Final = 1
_OBJECT: Final = 2
_ARRAY: Final = 3
PHASES: Final = ("beginning of an element", "text", "elements of an object", "elements of an array")
"""What is read in an element, by what it holds."""

_MANY_PIECES: Final = 32
_LONGEST_PLAIN: Final = 2
"""Length of ``</``."""
_REPORTS: Final[dict[int, DiagnosticCode]] = {
    ENDS_BEFORE: "missing_close",
    ENDS_IN_QUOTATION: "missing_close",
    ENDS_MISSPELLED: "misspelled_close",
    ENDS_AS_VARIANT: "variant_spelling",
}
"""What is reported of a text that does not end at its close as it should be."""
_RANKS: Final = {tags.ELEMENT_CLOSE: 0, tags.ARGUMENTS_CLOSE: 1, tags.CALL_CLOSE: 2, tags.SECTION_CLOSE: 3}


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
class ElementReader(ArgumentReader):
    """Reads arguments in elements up to what closes them."""

    records_itself = True

    def __init__(self, syntax: ElementsSyntax, node: SchemaNode, max_held: int) -> None:
        """``node``: the place of the arguments in the tool's schema."""
        self._syntax: ElementsSyntax = syntax
        self._value: ValueText = ValueText(False, max_held)
        self._element: Element = Element("", "", node, _OBJECT)
        self._around: list[Element] = []
        """The elements around this one, the arguments first."""
        self._quotation: Quotation = Quotation(syntax.frame)
        """Openers that the text shows."""
        self._markup: bool = False
        """True if the literal in question is markup of the call, although it is a part of the text."""
        self._literal: int = 0
        """Where that literal begins."""
        self._has_markup: bool = False
        """True if such markup in the text was reported."""
        self._recent: list[str] = []
        """The last pieces of the text."""
        self._dropping: bool = False
        """True if the text before the cursor was dropped."""
        self._quotation_took: bool = False
        """True if the close in question belongs to a quotation."""
        self._end: int = 0
        """After a decision: the end of the tag, or the place from which the text is read further."""

    def step(self, cur: Cursor, call: CallHandler) -> int:
        while True:
            holds = self._element.holds
            if holds == _TEXT:
                answer = self._read_text(cur, call)
            elif holds == _UNDECIDED:
                answer = self._read_opened(cur, call)
            else:
                answer = self._read_between(cur, call)
            if answer != AGAIN:
                return answer

    def passed(self, text: str) -> str | None:
        return json_escape(text)

    def open_path(self, cur: Cursor) -> None:
        if self._element.holds == _TEXT and self._value.handling == STREAM:
            cur.passed = self.passed
            cur.stops = self._syntax.tags

    def pass_on(self, text: str) -> int:
        self._keep_recent(text)
        return 0

    def cut(self, cur: Cursor, call: CallHandler) -> None:
        """Put the beginning of the value in which the output was cut. The beginning of a tag is dropped."""
        if self._element.holds == _TEXT:
            self._value.cut("", call)
        rest = cur.text[cur.pos :].lstrip(WS)
        dropped = bool(rest) and not self._syntax.tags.undecided(rest, 0)
        if dropped:
            call.report("broken_key", cur.pos, len(cur.text))
        cur.pos = len(cur.text)
        call.mark(DROPPED if dropped else MARKUP, cur.pos)

    # -- tags ---------------------------------------------------------------------------------------------------

    def _tag(self, cur: Cursor, start: int) -> int:
        """Return where the tag ends whose name is at ``start``; NO_MATCH if it is not a tag, or MORE."""
        text = cur.text
        ends = self._syntax.tag_ends
        found = ends.near(text, start, start + _MAX_KEY)
        stop = ends.undecided_from(text, start) if found is None else found.start()
        if (
            stop - start > _MAX_KEY
            or _NOT_IN_NAME.search(text, start, stop) is not None
            or text[start:stop][:1] in _EDGES
        ):
            return NO_MATCH if stop > start or found is not None else MORE
        if found is None:
            return MORE
        return NO_MATCH if text[stop - 1] in WS else found.end()

    def _name(self, cur: Cursor, start: int, end: int) -> str:
        return cur.text[start : end - len(self._syntax.tag_end)]

    def _marker(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return where the marker at ``pos`` ends; NO_MATCH or MORE."""
        end = self._syntax.tags.at(cur.text, pos, cur.final)
        return NO_MATCH if end >= 0 and not call.may_be_marker(pos, end) else end

    def _kind(self, cur: Cursor, start: int, end: int) -> int:
        return self._syntax.tags.tags[cur.text[start:end]]

    def _closes(self, cur: Cursor, pos: int, name: str) -> int:
        """Return where the close tag of this name at ``pos`` ends; NO_MATCH or MORE."""
        answer = NO_MATCH
        for opener in self._syntax.closes:
            tag = opener + name + self._syntax.tag_end
            if cur.text.startswith(tag, pos):
                return pos + len(tag)
            if not cur.final and tag.startswith(cur.text[pos : pos + len(tag)]):
                answer = MORE
        return answer

    # -- elements inside elements -------------------------------------------------------------------------------

    def _read_between(self, cur: Cursor, call: CallHandler) -> int:
        """Read what comes between the elements of the arguments, an object or an array."""
        found = None if self._dropping else SPACES.match(cur.text, cur.pos)
        if found is not None:
            cur.pos = found.end()
            call.mark(MARKUP, cur.pos)
        if cur.pos >= len(cur.text):
            return MORE
        if self._around:
            end = self._closes(cur, cur.pos, self._element.name)
            if end == MORE:
                return MORE
            if end >= 0 and call.may_be_marker(cur.pos, end):
                self._dropping = False
                self._leave(cur, end, call)
                return AGAIN
        return self._read_marker(cur, call)

    def _read_marker(self, cur: Cursor, call: CallHandler) -> int:
        """Read a tag, or drop the text in its place. Return DONE at a marker that ends the arguments."""
        end = self._marker(cur, cur.pos, call)
        if end == MORE or (end < 0 and self._syntax.tags.undecided(cur.text, cur.pos)):
            return MORE
        kind = -1 if end < 0 else self._kind(cur, cur.pos, end)
        if kind in (tags.KEY_OPEN, tags.ELEMENT_CLOSE):
            after = self._tag(cur, end)
            if after == MORE:
                return MORE
            if after < 0:
                return self._drop(cur, call)
            self._dropping = False
            if kind == tags.KEY_OPEN:
                self._begin(cur, end, after, call)
            else:
                self._close_tag(cur, end, after, call)
            return AGAIN
        if kind < 0:
            return self._drop(cur, call)
        if kind in tags.OPENERS:
            call.report("missing_close", cur.pos, cur.pos)
        self._close_all(cur, call)
        return DONE

    def _drop(self, cur: Cursor, call: CallHandler) -> int:
        """Drop text between elements up to the next marker."""
        literals = self._syntax.tags
        found = literals.find(cur.text, cur.pos + 1)
        held = literals.undecided_from(cur.text, cur.pos + 1)
        self._dropped(cur, held if found is None else min(held, found.start()), call)
        self._dropping = True
        return AGAIN

    def _dropped(self, cur: Cursor, stop: int, call: CallHandler) -> None:
        call.report("text_between_arguments", cur.pos, stop)
        cur.pos = stop
        call.mark(DROPPED, stop)

    def _begin(self, cur: Cursor, start: int, end: int, call: CallHandler) -> None:
        """Begin the element whose name is at ``start``."""
        outer = self._element
        name = self._name(cur, start, end)
        call.mark(MARKUP, start)
        separator = ", " if outer.seen else ""
        if outer.holds == _ARRAY:
            node = outer.node.items()
            call.put(separator)
            if name != self._syntax.item:
                call.report("broken_key", start, start + len(name))
                call.mark(DROPPED, start + len(name))
        else:
            node = outer.node.child(name)
            opened = "" if outer.seen or self._around else "{"
            call.put(f'{separator}{opened}"{json_escape(name)}": ')
            call.mark(ARGUMENT_TEXT, start + len(name))
        outer.seen.add(name)
        call.mark(MARKUP, end)
        opener = cur.text[cur.pos : start]
        cur.pos = end
        self._around.append(outer)
        self._element = Element(name, opener, node, _UNDECIDED)
        if not (node.is_object or node.is_array):
            self._begin_text(call)

    def _begin_text(self, call: CallHandler) -> None:
        self._element.holds = _TEXT
        self._has_markup = False
        self._recent = []
        self._quotation.begin()
        self._value.begin(self._element.node.param, "", "")
        if self._value.beginning:
            call.put(self._value.beginning)

    def _read_opened(self, cur: Cursor, call: CallHandler) -> int:
        """Read the beginning of an element that may hold text or elements."""
        element = self._element
        found = SPACES.match(cur.text, cur.pos)
        at = cur.pos if found is None else found.end()
        spaces = at - cur.pos
        if spaces <= MAX_LOOKAHEAD and (at >= len(cur.text) or self._syntax.tags.undecided(cur.text, at)):
            return MORE
        end = self._closes(cur, at, element.name)
        if end >= 0 and self._is_container():
            call.put("[" if element.node.is_array else "{")
            element.holds = _ARRAY if element.node.is_array else _OBJECT
            return AGAIN
        opener = NO_MATCH if spaces > MAX_LOOKAHEAD else self._marker(cur, at, call)
        if end == MORE or opener == MORE:
            return MORE
        if opener >= 0 and cur.text[at:opener] == element.opener and end < 0:
            after = self._tag(cur, opener)
            if after == MORE:
                return MORE
            if after >= 0 and len(self._around) < MAX_DEPTH:
                self._begin_container(self._name(cur, opener, after), call)
                return AGAIN
            if after >= 0:
                call.report("nested_too_deep", at, after)
        self._begin_text(call)
        return AGAIN

    def _is_container(self) -> bool:
        """True if the element must be an object or an array."""
        param = self._element.node.param
        return param is not None and "string" not in param.types

    def _begin_container(self, first: str, call: CallHandler) -> None:
        """Decide by the name of the first element inside if this one is an array or an object."""
        element = self._element
        node = element.node
        item = first == self._syntax.item and first not in node.properties()
        if node.is_array and (item or not node.is_object):
            element.holds = _ARRAY
            call.put("[")
        else:
            element.holds = _OBJECT
            call.put("{")

    def _close_tag(self, cur: Cursor, start: int, end: int, call: CallHandler) -> None:
        """Read the close tag of an element around this one, or drop it if no such element is open."""
        name = self._name(cur, start, end)
        if all(element.name != name for element in self._around[1:]):
            self._dropped(cur, end, call)
            return
        while self._element.name != name:
            call.report("missing_close", cur.pos, cur.pos)
            self._close_container(call)
        self._leave(cur, end, call)

    def _leave(self, cur: Cursor, end: int, call: CallHandler) -> None:
        """End this object or array at its close tag."""
        cur.pos = end
        call.mark(MARKUP, end)
        self._close_container(call)

    def _close_container(self, call: CallHandler) -> None:
        call.put("]" if self._element.holds == _ARRAY else "}")
        self._element = self._around.pop()

    def _close_all(self, cur: Cursor, call: CallHandler) -> None:
        """End the arguments, and the elements that are still open."""
        while self._around:
            call.report("missing_close", cur.pos, cur.pos)
            self._close_container(call)
        if self._element.seen:
            call.put("}")

    # -- text ---------------------------------------------------------------------------------------------------

    def _read_text(self, cur: Cursor, call: CallHandler) -> int:
        stops = self._syntax.tags
        text = cur.text
        search = cur.pos
        while True:
            found = stops.find(text, search)
            if found is None:
                # The beginning of a marker at the end of the output is part of a string, but not of a number.
                streams = cur.final and self._value.handling == STREAM
                self._add(cur, len(text) if streams else stops.undecided_from(text, cur.pos), call)
                return MORE
            at = found.start()
            held = -1 if cur.final else stops.longer_from(text, search, at)
            if held >= 0:
                self._add(cur, held, call)
                return MORE
            verdict = self._decide(cur, found, call)
            if verdict == NO_MATCH:
                if self._markup and not self._has_markup:
                    self._has_markup = True
                    call.report("markup_in_value", at, found.end())
                search = self._end
                continue
            self._add(cur, at, call)
            if verdict == MORE:
                return MORE
            call.mark(MARKUP, at)
            code = _REPORTS.get(verdict)
            if code is not None:
                call.report(code, at, at if code == "missing_close" else self._end)
            if verdict != ENDS_BEFORE:
                cur.pos = self._end
                call.mark(DROPPED if verdict == ENDS_MISSPELLED else MARKUP, cur.pos)
            self._value.close(call, cur.pos)
            self._element = self._around.pop()
            return AGAIN

    def _add(self, cur: Cursor, end: int, call: CallHandler) -> None:
        if end > cur.pos:
            self._keep_recent(cur.text[cur.pos : end])
            self._value.add(cur.text[cur.pos : end], call)
            cur.pos = end
            call.mark(ARGUMENT_TEXT, end)

    def _decide(self, cur: Cursor, found: re.Match[str], call: CallHandler) -> int:
        """Decide at a literal that may end the text. Return ENDS, ENDS_BEFORE, NO_MATCH if the literal is part
        of the text, or MORE."""
        start = found.start()
        end = found.end()
        self._end = end
        self._literal = start
        self._markup = False
        if not call.may_be_marker(start, end):
            return NO_MATCH
        own = self._closes(cur, start, self._element.name)
        if own == MORE:
            return MORE
        kind = self._kind(cur, start, end)
        self._markup = (own >= 0 or kind in tags.OPENERS or kind in tags.CLOSES) and self._is_written(found.group())
        if own >= 0:
            return self._at_own_close(cur, start, found.group(), own, call)
        if kind == tags.KEY_OPEN:
            return self._at_open(cur, end) if self._spells(found.group(), kind) else NO_MATCH
        if kind == tags.ELEMENT_CLOSE:
            return self._at_close(cur, end, self._spells(found.group(), kind), call)
        if kind == tags.TURN_END:
            return ENDS_BEFORE if call.has_id(start, end) else NO_MATCH
        if kind in tags.OPENERS:
            return self._at_call(cur, start)
        return self._at_chain(cur, start, call)

    def _at_own_close(self, cur: Cursor, start: int, opener: str, end: int, call: CallHandler) -> int:
        self._end = end
        if call.has_id(start, end):
            return ENDS
        if self._quotation.open:
            verdict = self._at_quoted_chain(cur, end, ENDS, call)
            if verdict == NO_MATCH and not self._quotation_took and self._quotation.owns(VALUE):
                self._quotation.close(VALUE)
                self._quotation_took = True
            if verdict != NO_MATCH or self._quotation_took:
                return verdict
        if not self._spells(opener, tags.ELEMENT_CLOSE):
            self._markup = False
            follows = self._may_follow(cur, end, False)
            if follows == ENDS and self._is_damaged(cur.text[cur.pos : start], opener):
                return ENDS_MISSPELLED
            return ENDS_AS_VARIANT if follows == ENDS else follows
        follows = self._may_follow(cur, end, True)
        return self._stray_text(cur, end, call) if follows == NO_MATCH else follows

    def _is_damaged(self, before: str, opener: str) -> bool:
        """True if the text ends in a damaged part of its close: the one before ``opener``."""
        written = self._syntax.close_of.get(self._element.opener, opener)
        missing = written.removesuffix(opener)
        tail = "".join(self._recent) + before
        sizes = range(len(missing) - 1, len(missing) + 2)
        return len(missing) > _LONGEST_PLAIN and any(is_nearly(tail[-size:], missing) for size in sizes)

    def _keep_recent(self, text: str) -> None:
        """Keep the end of the text, in which a close may be damaged."""
        recent = self._recent
        recent.append(text)
        if len(recent) > _MANY_PIECES:
            self._recent = ["".join(recent)[-MOST_OF_LINE:]]

    def _may_be_own(self, end: int) -> bool:
        """True if the tag in question, whose name begins at ``end``, is more than ``<``, and no schema lists names."""
        return end - self._literal > _LONGEST_PLAIN and not self._around[0].node.properties()

    def _is_written(self, literal: str) -> bool:
        """True if this literal begins as the tags of this element do, and not with a mere ``<`` if those do not."""
        return literal.startswith(self._element.opener.removesuffix("<"))

    def _spells(self, opener: str, kind: int) -> bool:
        """True if a tag begins as the tags of this element do."""
        written = self._element.opener
        return opener == (self._syntax.close_of.get(written, opener) if kind == tags.ELEMENT_CLOSE else written)

    def _at_open(self, cur: Cursor, end: int) -> int:
        """Decide at the opener of another element: it ends the text if it is the next one of those around it."""
        after = self._tag(cur, end)
        if after < 0:
            self._markup = end - self._literal > _LONGEST_PLAIN
            return MORE if after == MORE and not cur.final else NO_MATCH
        self._end = after
        name = self._name(cur, end, after)
        outer = self._around[-1]
        self._markup = name in outer.node.properties() or self._may_be_own(end)
        if self._quotation.shows_call() or (name == self._element.name and outer.holds != _ARRAY):
            if name == self._element.name:
                self._quotation.show_key()
            return NO_MATCH
        if outer.holds == _ARRAY:
            return ENDS_BEFORE if name == self._syntax.item else NO_MATCH
        return ENDS_BEFORE if name in outer.node.properties() and name not in outer.seen else NO_MATCH

    def _at_close(self, cur: Cursor, end: int, spells: bool, call: CallHandler) -> int:
        """Decide at a close tag that is not this element's: it ends the text if it is that of an element around it, or
        a misspelled one. ``spells``: it begins as the tags of this element do."""
        if self._quotation.shows_call():
            return NO_MATCH
        wrong = misspelled_tag(cur, end, self._element.name)
        if wrong == MORE:
            return MORE
        if wrong - end > 2 * len(self._element.name) + 1:  # another name, which begins with a short one
            wrong = NO_MATCH
        if wrong >= 0:
            self._end = wrong
            follows = self._may_follow(cur, wrong, False)
            if follows != NO_MATCH:
                return ENDS_MISSPELLED if follows == ENDS else follows
            self._end = end
        after = self._tag(cur, end)
        if after < 0 or not spells:
            self._markup = spells and end - self._literal > _LONGEST_PLAIN
            return MORE if after == MORE and spells and not cur.final else NO_MATCH
        self._end = after
        name = self._name(cur, end, after)
        if all(element.name != name for element in self._around[1:]):
            self._markup = self._markup or self._may_be_own(end)
            return NO_MATCH
        follows = self._may_follow(cur, after, True)
        return ENDS_BEFORE if follows == ENDS else follows

    def _may_follow(self, cur: Cursor, end: int, correct: bool) -> int:
        """Return ENDS if the text at ``end`` may follow a close tag. After a tag that is not ``correct``, the output
        must go on, and not with another close of this element."""
        pos = after_spaces(cur.text, end)
        if pos < 0:
            return NO_MATCH
        if pos >= len(cur.text):
            return MORE if not cur.final else ENDS if correct else NO_MATCH
        found = self._syntax.tags.at(cur.text, pos, cur.final)
        if found == NO_MATCH and cur.final and correct and self._syntax.tags.undecided(cur.text, pos):
            return ENDS
        if found < 0:
            return found
        own = NO_MATCH if correct else self._closes(cur, pos, self._element.name)
        return ENDS if own == NO_MATCH else MORE if own == MORE else NO_MATCH

    def _stray_text(self, cur: Cursor, end: int, call: CallHandler) -> int:
        """Return ENDS if there is only stray text between a close tag, which ends at ``end``, and the next element, or
        only stray lines before what ends the calls."""
        text = cur.text
        literals = self._syntax.tags
        found = literals.near(text, end, end + MAX_LOOKAHEAD)
        at = literals.undecided_from(text, end) if found is None else found.start()
        if "<" in text[end:at]:  # text with a tag that is not one of the format's is not stray
            return NO_MATCH
        if found is None and (cur.final or at - end > MAX_LOOKAHEAD):
            return NO_MATCH
        if found is None or (not cur.final and literals.longer_from(text, end, at) >= 0):
            return MORE
        kind = self._kind(cur, at, found.end())
        if kind in (tags.ARGUMENTS_CLOSE, tags.CALL_CLOSE, tags.SECTION_CLOSE):
            pos = after_spaces(text, end)
            if pos < 0 or not begins_line(text, pos) or text[at - 1] != "\n":
                return NO_MATCH
            follows = self._follows(cur, at, call)
            return ENDS if follows in (DONE, AGAIN) else follows
        if kind != tags.KEY_OPEN:
            return NO_MATCH
        markup = self._markup
        opened = self._at_open(cur, found.end())
        self._markup = markup
        self._end = end
        return ENDS if opened == ENDS_BEFORE else opened

    def _at_call(self, cur: Cursor, start: int) -> int:
        """Decide at the opener of a call: a whole one begins a quotation."""
        end = self._whole_opener(cur, start)
        if end == MORE:
            return MORE
        if end >= 0:
            self._quotation.show_call(cur.text[start:end])
            self._end = end
        return NO_MATCH

    def _whole_opener(self, cur: Cursor, start: int) -> int:
        """Return where the call opener at ``start`` ends, name included; NO_MATCH or MORE."""
        syntax = self._syntax
        return whole_opener(syntax.frame, syntax.name, NO_LITERALS, syntax.tags, cur, start)

    def _at_chain(self, cur: Cursor, start: int, call: CallHandler) -> int:
        """Decide at what ends the arguments, the call or the calls, without the close of the text before it."""
        if self._quotation.open:
            verdict = self._at_quoted_chain(cur, start, ENDS_BEFORE, call)
            if verdict != NO_MATCH or self._quotation_took:
                return verdict
        follows = self._follows(cur, start, call)
        return ENDS_BEFORE if follows in (DONE, AGAIN) else follows

    def _at_quoted_chain(self, cur: Cursor, pos: int, ends: int, call: CallHandler) -> int:
        """Decide at the closes at ``pos`` in a text that shows openers which it has not closed: the text ends, or they
        belong to the quotation, which takes the first of them."""
        quotation = self._quotation
        self._quotation_took = False
        follows = self._follows(cur, pos, call)
        if follows == MORE:
            return MORE
        at = after_spaces(cur.text, pos)
        stop = NO_MATCH if at < 0 else self._marker(cur, at, call)
        rank = 0 if stop < 0 else RANKS.get(self._kind(cur, at, stop), 0)
        if follows == DONE or (follows == AGAIN and not quotation.owns(rank)):
            return ends
        if rank and quotation.owns(rank):
            quotation.close(rank)
            self._quotation_took = True
            self._end = stop
        return NO_MATCH

    def _follows(self, cur: Cursor, pos: int, call: CallHandler) -> int:
        """Return what follows a chain of closes, the innermost first: DONE for the end of the output, AGAIN for another
        call, NO_MATCH for anything else, or MORE."""
        text = cur.text
        limit = pos + 4 * MAX_LOOKAHEAD
        rank = 0
        while pos < limit:
            pos = after_spaces(text, pos)
            if pos < 0:
                return NO_MATCH
            end = self._marker(cur, pos, call) if pos < len(text) else MORE
            if end < 0:
                return DONE if cur.final and (end == MORE or self._syntax.tags.undecided(text, pos)) else end
            kind = self._kind(cur, pos, end)
            if kind == tags.TURN_END:
                if call.has_id(pos, end):
                    return DONE
                pos = end
                continue
            if kind in tags.OPENERS:
                opened = self._whole_opener(cur, pos)
                return AGAIN if opened >= 0 else opened
            here = _RANKS.get(kind, -1)
            if here < rank or (here == rank and here):
                return NO_MATCH
            rank = here
            pos = end if here else self._tag(cur, end)
            if pos < 0:
                return MORE if pos == MORE and not cur.final else NO_MATCH
        return NO_MATCH
