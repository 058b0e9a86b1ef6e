"""Arguments in elements named after them: ``<city>Paris</city>`` → ``{"city": "Paris"}``.

* An element holds text, or elements. Its schema decides; where it allows both, what comes first in it does.
* ``ends`` decides where a text ends.
* An element that is not closed ends with the element around it, and a close tag that closes nothing is dropped. Both
  are reported.
* A tag is read as a whole, so at most its name is kept. Beyond ``MAX_DEPTH`` levels elements are text.
"""

from __future__ import annotations

from typing import Final, final

from ...jsontext.lexical import json_escape
from ...jsontext.well_formed import MAX_DEPTH
from ...schemas.reading import SchemaNode
from .. import tags
from ..arguments.base import ArgumentReader, CallHandler
from ..arguments.lookahead import ENDS_AS_VARIANT, ENDS_BEFORE, ENDS_MISSPELLED, MAX_LOOKAHEAD
from ..arguments.value_text import STRING, ValueText
from ..diagnostics import DiagnosticCode
from ..ledger import ARGUMENT_TEXT, DROPPED, MARKUP
from ..lexer import SPACES, WS, Cursor
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .ends import ARRAY, OBJECT, TEXT, UNDECIDED, Element, OpenElements
from .program import ElementsSyntax

PHASES: Final = ("beginning of an element", "text", "elements of an object", "elements of an array")
"""What is read in an element, by what it holds."""

_REPORTS: Final[dict[int, DiagnosticCode]] = {
    ENDS_BEFORE: "missing_close",
    ENDS_MISSPELLED: "misspelled_close",
    ENDS_AS_VARIANT: "variant_spelling",
}
"""What is reported of a text that does not end at its close as it should be."""


@final
class ElementReader(ArgumentReader):
    """Reads arguments in elements up to what closes them."""

    def __init__(self, syntax: ElementsSyntax, node: SchemaNode, max_held: int) -> None:
        """``node``: the place of the arguments in the tool's schema."""
        self._syntax: ElementsSyntax = syntax
        self._value: ValueText = ValueText("none", max_held)
        self._ends: OpenElements = OpenElements(syntax, node)
        self._has_markup: bool = False
        """True if markup of the call in the text was reported."""
        self._dropping: bool = False
        """True if the text before the cursor was dropped. So is white space after it."""

    def step(self, cur: Cursor, call: CallHandler) -> int:
        while True:
            holds = self._ends.element.holds
            if holds == TEXT:
                answer = self._read_text(cur, call)
            elif holds == UNDECIDED:
                answer = self._read_opened(cur, call)
            else:
                answer = self._read_between(cur, call)
            if answer != AGAIN:
                return answer

    def passed(self, text: str) -> str | None:
        return json_escape(text)

    def look_ahead(self, cur: Cursor) -> None:
        if self._ends.element.holds == TEXT and self._value.handling <= STRING:
            cur.passed = self.passed
            cur.stops = self._syntax.tags

    def pass_on(self, text: str) -> int:
        self._ends.keep_recent(text)
        return 0

    def put_cut(self, cur: Cursor, call: CallHandler) -> None:
        """Put the beginning of the value in which the output was cut. The beginning of a tag is dropped."""
        if self._ends.element.holds == TEXT:
            self._value.put_cut("", call)
        rest = cur.text[cur.pos :].lstrip(WS)
        dropped = bool(rest) and not self._syntax.tags.undecided(rest, 0)
        if dropped:
            call.report("broken_key", cur.pos, len(cur.text))
        cur.pos = len(cur.text)
        call.mark(DROPPED if dropped else MARKUP, cur.pos)

    # -- elements inside elements -------------------------------------------------------------------------------

    def _read_between(self, cur: Cursor, call: CallHandler) -> int:
        """Read what comes between the elements of the arguments, an object or an array."""
        found = None if self._dropping else SPACES.match(cur.text, cur.pos)
        if found is not None:
            cur.pos = found.end()
            call.mark(MARKUP, cur.pos)
        if cur.pos >= len(cur.text):
            return MORE
        if self._ends.around:
            end = self._ends.closes(cur, cur.pos, self._ends.element.name)
            if end == MORE:
                return MORE
            if end >= 0 and call.may_be_marker(cur.pos, end):
                self._dropping = False
                self._leave(cur, end, call)
                return AGAIN
        return self._read_marker(cur, call)

    def _read_marker(self, cur: Cursor, call: CallHandler) -> int:
        """Read a tag, or drop the text in its place. Return DONE at a marker that ends the arguments."""
        end = self._ends.marker(cur, cur.pos, call)
        if end == MORE or (end < 0 and self._syntax.tags.undecided(cur.text, cur.pos)):
            return MORE
        kind = -1 if end < 0 else self._ends.kind(cur, cur.pos, end)
        if kind in (tags.KEY_OPEN, tags.ELEMENT_CLOSE):
            return self._read_tag(cur, kind, end, call)
        if kind < 0:
            return self._drop(cur, call)
        if kind in tags.OPENERS:
            call.report("missing_close", cur.pos, cur.pos)
        self._close_all(cur, call)
        return DONE

    def _read_tag(self, cur: Cursor, kind: int, name_start: int, call: CallHandler) -> int:
        """Read the tag at the cursor, or drop the text if it is not one."""
        after = self._ends.tag(cur, name_start)
        if after == MORE:
            return MORE
        if after < 0:
            return self._drop(cur, call)
        self._dropping = False
        if kind == tags.KEY_OPEN:
            self._begin(cur, name_start, after, call)
        else:
            self._close_tag(cur, name_start, after, call)
        return AGAIN

    def _drop(self, cur: Cursor, call: CallHandler) -> int:
        """Drop text between elements, up to the next marker or its beginning at the end of the text. If that is the end
        of the output, ``put_cut`` reads it. Return AGAIN."""
        literals = self._syntax.tags
        found = literals.pattern.search(cur.text, cur.pos + 1)
        held = literals.undecided_from(cur.text, cur.pos + 1)
        call.drop_to("text_between_arguments", cur, held if found is None else min(held, found.start()))
        self._dropping = True
        return AGAIN

    def _begin(self, cur: Cursor, start: int, end: int, call: CallHandler) -> None:
        """Begin the element whose name is at ``start``."""
        outer = self._ends.element
        name = self._ends.name(cur, start, end)
        call.mark(MARKUP, start)
        separator = ", " if outer.seen else ""
        if outer.holds == ARRAY:
            node = outer.node.items()
            call.put(separator)
            if name != self._syntax.item:
                call.report("broken_key", start, start + len(name))
                call.mark(DROPPED, start + len(name))
        else:
            node = outer.node.child(name)
            opened = "" if outer.seen or self._ends.around else "{"
            call.put(f'{separator}{opened}"{json_escape(name)}": ')
            call.mark(ARGUMENT_TEXT, start + len(name))
        outer.seen.add(name)
        call.mark(MARKUP, end)
        opener = cur.text[cur.pos : start]
        cur.pos = end
        self._ends.around.append(outer)
        self._ends.element = Element(name, opener, node, UNDECIDED)
        if not (node.is_object or node.is_array):
            self._begin_text(call)

    def _begin_text(self, call: CallHandler) -> None:
        self._ends.element.holds = TEXT
        self._has_markup = False
        self._ends.recent = []
        self._ends.quotation.begin()
        self._value.begin(self._ends.element.node.param, "", "")
        if self._value.beginning:
            call.put(self._value.beginning)

    def _read_opened(self, cur: Cursor, call: CallHandler) -> int:
        """Read the beginning of an element that may hold text or elements."""
        element = self._ends.element
        at = cur.spaces()
        spaces = at - cur.pos
        if spaces <= MAX_LOOKAHEAD and (at >= len(cur.text) or self._syntax.tags.undecided(cur.text, at)):
            return MORE
        end = self._ends.closes(cur, at, element.name)
        if end >= 0 and self._is_container():
            self._begin_container(element.node.is_array, call)
            return AGAIN
        opener = NO_MATCH if spaces > MAX_LOOKAHEAD else self._ends.marker(cur, at, call)
        if end == MORE or opener == MORE:
            return MORE
        if opener >= 0 and cur.text[at:opener] == element.opener and end < 0:
            return self._read_first_element(cur, at, opener, call)
        self._begin_text(call)
        return AGAIN

    def _read_first_element(self, cur: Cursor, at: int, name_start: int, call: CallHandler) -> int:
        """Begin an element that holds another one, whose tag is at ``at``, or a text if that is no tag."""
        after = self._ends.tag(cur, name_start)
        if after == MORE:
            return MORE
        if after >= 0 and len(self._ends.around) < MAX_DEPTH:
            self._begin_container(self._is_array(self._ends.name(cur, name_start, after)), call)
            return AGAIN
        if after >= 0:
            call.report("nested_too_deep", at, after)
        self._begin_text(call)
        return AGAIN

    def _is_container(self) -> bool:
        """True if the element must be an object or an array."""
        param = self._ends.element.node.param
        return param is not None and "string" not in param.types

    def _is_array(self, first: str) -> bool:
        """True if the element is an array, by the name of the first one inside it."""
        node = self._ends.element.node
        item = first == self._syntax.item and first not in node.properties()
        return node.is_array and (item or not node.is_object)

    def _begin_container(self, is_array: bool, call: CallHandler) -> None:
        """Begin to read the elements of an array or an object."""
        self._ends.element.holds = ARRAY if is_array else OBJECT
        call.put("[" if is_array else "{")

    def _close_tag(self, cur: Cursor, start: int, end: int, call: CallHandler) -> None:
        """Read the close tag of an element around this one, or drop it if no such element is open."""
        name = self._ends.name(cur, start, end)
        if all(element.name != name for element in self._ends.around[1:]):
            call.drop_to("text_between_arguments", cur, end)
            return
        while self._ends.element.name != name:
            call.report("missing_close", cur.pos, cur.pos)
            self._close_container(call)
        self._leave(cur, end, call)

    def _leave(self, cur: Cursor, end: int, call: CallHandler) -> None:
        """End this object or array at its close tag."""
        cur.pos = end
        call.mark(MARKUP, end)
        self._close_container(call)

    def _close_container(self, call: CallHandler) -> None:
        call.put("]" if self._ends.element.holds == ARRAY else "}")
        self._ends.element = self._ends.around.pop()

    def _close_all(self, cur: Cursor, call: CallHandler) -> None:
        """End the arguments, and the elements that are still open."""
        while self._ends.around:
            call.report("missing_close", cur.pos, cur.pos)
            self._close_container(call)
        if self._ends.element.seen:
            call.put("}")

    # -- text ---------------------------------------------------------------------------------------------------

    def _read_text(self, cur: Cursor, call: CallHandler) -> int:
        stops = self._syntax.tags
        text = cur.text
        search = cur.pos
        while True:
            found = stops.pattern.search(text, search)
            if found is None:
                # The beginning of a marker at the end of the output is part of a string, but not of a number.
                streams = cur.final and self._value.handling <= STRING
                self._add(cur, len(text) if streams else stops.undecided_from(text, cur.pos), call)
                return MORE
            at = found.start()
            held = -1 if cur.final else stops.longer_from(text, search, at)
            if held >= 0:
                self._add(cur, held, call)
                return MORE
            verdict = self._ends.decide(cur, found, call)
            if verdict == NO_MATCH:
                if self._ends.markup and not self._has_markup:
                    self._has_markup = True
                    call.report("markup_in_value", at, found.end())
                search = self._ends.end
                continue
            self._add(cur, at, call)
            if verdict == MORE:
                return MORE
            self._end_text(cur, at, verdict, call)
            return AGAIN

    def _end_text(self, cur: Cursor, at: int, verdict: int, call: CallHandler) -> None:
        """End the text at the literal that is at ``at``."""
        call.mark(MARKUP, at)
        code = _REPORTS.get(verdict)
        if code is not None:
            call.report(code, at, at if code == "missing_close" else self._ends.end)
        if verdict != ENDS_BEFORE:
            cur.pos = self._ends.end
            call.mark(DROPPED if verdict == ENDS_MISSPELLED else MARKUP, cur.pos)
        self._value.close(call, cur.pos)
        self._ends.element = self._ends.around.pop()

    def _add(self, cur: Cursor, end: int, call: CallHandler) -> None:
        if end > cur.pos:
            self._ends.keep_recent(cur.text[cur.pos : end])
            self._value.add(cur.text[cur.pos : end], call)
            cur.pos = end
            call.mark(ARGUMENT_TEXT, end)
