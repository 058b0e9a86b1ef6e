"""Arguments as literals of Python, or of Gemma 4's notation, converted to JSON as they arrive.

* This reader follows the structure: keys, brackets and separators. ``strings`` reads the strings, ``bare_words`` all
  other values, and ``keys`` looks for keys.
* Braces hold an object if their first item has a key, and otherwise a set, which becomes a list.
* Text that breaks a value stays in it. Text between values is dropped and reported.
* A key is the text before an assignment, and may be several words. Only between parentheses can a value lack a key: it
  is then the schema's next parameter.
"""

from __future__ import annotations

import re
from typing import Final, final

from ....tools import ToolSet
from ...jsontext.lexical import json_escape
from ..arguments.base import ArgumentReader, ArgumentWriter, CallHandler
from ..call_syntax import SHORT_WORD
from ..ledger import ARGUMENT_TEXT
from ..lexer import GAP, SPACES, WS, Cursor, GoesOn
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .bare_words import WordReader
from .keys import cut_key, plain_key, quoted_key
from .place import BY_PLACE, KEYED, LINE_END, NAMED, UNDECIDED, LiteralPlace
from .program import LiteralSyntax
from .strings import StringReader, next_stop

_OPEN: Final = 0
_KEY: Final = 1
_VALUE: Final = 2
_NEXT: Final = 3
_STRING: Final = 4
_WORD: Final = 5
_DROP: Final = 6
_ITEM: Final = 7
PHASES: Final = (
    "opening bracket",
    "key",
    "value of a key",
    "after a value",
    "string",
    "word",
    "dropped text",
    "item of a list",
)
"""What is read in each phase."""

_LEVEL_SIZE: Final = 16
"""Bytes that are kept for each level of nesting: two references."""
_FEWEST_LEVELS: Final = 64
"""Levels that are read however little may be held. No output seen needs more."""
_BETWEEN_STOP: Final = re.compile(r"[,)\]}]")
_NO_KEY_OR_VALUE: Final = "=:\"'<"
_GO_ON: Final[dict[int, GoesOn]] = {
    _KEY: re.compile(rf"{GAP}{SHORT_WORD}\Z").match,
    _NEXT: re.compile(rf"{GAP}(?:,{GAP}(?:{SHORT_WORD})?)?\Z").match,
}
"""The tests for a key that is not complete."""
_CLOSER: Final = {"(": ")", "[": "]", "{": "}"}


@final
class LiteralReader(ArgumentReader):
    """Reads ``(a='x', b=[1])``, brackets included, and puts ``{"a": "x", "b": [1]}``."""

    def __init__(self, syntax: LiteralSyntax, tools: ToolSet, name: str, outer: str, max_held: int) -> None:
        """``outer``: the closing character of the list around the call, which also ends the call; empty if there is
        none."""
        self._syntax: LiteralSyntax = syntax
        self._place: LiteralPlace = LiteralPlace(syntax, tools, name, outer, max_held)
        self._strings: StringReader = StringReader(self._place)
        self._words: WordReader = WordReader(self._place)
        self._phase: int = _OPEN
        self._go_on: dict[int, GoesOn] = {} if syntax.on_lines or not self._place.stops.word_goes_on else _GO_ON
        """By phase in an object: the test for text that decides nothing."""
        self._line_ends: bool = False
        """True if a new line has come after the value before the cursor."""
        if syntax.on_lines:
            self._place.closers.append("")
            self._place.json.append("}")
            self._phase = _KEY

    def step(self, cur: Cursor, call: CallHandler) -> int:
        while True:
            phase = self._phase
            if phase == _STRING:
                answer = self._strings.step(cur, call)
            elif phase == _WORD:
                answer = self._words.step(cur, call)
                self.valid = self._words.valid
            elif phase == _DROP:
                answer = self._drop(cur, call)
            else:
                answer = self._read_sign(phase, cur, call)
            if phase in (_STRING, _WORD) and (answer == DONE or (answer == NO_MATCH and self._place.on_line())):
                self._end_value()
            elif answer != AGAIN:
                call.mark(ARGUMENT_TEXT, cur.pos)
                return answer

    def _end_value(self) -> None:
        """Go on after a value."""
        self._phase = _NEXT
        self._line_ends = False
        self._place.before = ", "

    def look_ahead(self, cur: Cursor) -> None:
        if self._phase == _STRING:
            self._strings.open_path(cur)
        elif self._place.json[-1:] == ["}"]:
            cur.goes_on = self._go_on.get(self._phase)

    # -- signs ----------------------------------------------------------------------------------------------------

    def _read_sign(self, phase: int, cur: Cursor, out: CallHandler) -> int:
        """Read white space and the sign after it, a key, or the beginning of a value."""
        found = SPACES.match(cur.text, cur.pos)
        if found is not None:
            cur.pos = found.end()
            self._line_ends = self._line_ends or "\n" in found.group()
        if cur.pos >= len(cur.text):
            return MORE
        c = cur.text[cur.pos]
        if phase == _OPEN:
            return self._open(cur, c)
        stops = self._place.stops
        end = stops.at(cur.text, cur.pos, cur.final) if c in stops.first_characters else NO_MATCH
        if end == MORE:
            return MORE
        if end >= 0 and out.may_be_marker(cur.pos, end):
            return self._end_lines(out) if phase != _VALUE and self._place.on_line() else NO_MATCH
        if phase == _VALUE:
            return self._read_value(cur, c, out)
        if c in ")]}":
            return self._close(cur, c, out)
        if c == ",":
            cur.pos += 1
            if phase == _NEXT:
                self._phase = _ITEM if self._place.json[-1] == "]" else _KEY
            return AGAIN
        if phase == _NEXT:
            if self._line_ends and self._place.on_line():
                self._phase = _KEY
                return AGAIN
            return self._begin_drop(cur, out)
        return self._read_key(cur, out) if phase == _KEY else self._begin_value(cur, c, out)

    def _end_lines(self, out: ArgumentWriter) -> int:
        """End arguments on lines in front of a literal that ends the call."""
        if self._place.before != "{":
            out.put("}")
        return DONE

    def _open(self, cur: Cursor, c: str) -> int:
        """Read the bracket around the arguments."""
        cur.pos += 1
        place = self._place
        place.closers.append(self._syntax.close if c == self._syntax.open else _CLOSER.get(c, c))
        place.json.append("}")
        place.style = BY_PLACE if c == "(" else KEYED
        self._phase = _KEY
        return AGAIN

    def _close(self, cur: Cursor, c: str, out: CallHandler) -> int:
        """Close what the closing character ``c`` fits, and all that is open inside. Return AGAIN if the arguments
        continue."""
        place = self._place
        closers = place.closers
        if c not in closers:
            return NO_MATCH if c == place.outer else self._begin_drop(cur, out)
        if closers[-1] != c:
            out.report("broken_arguments", cur.pos, cur.pos)
        self._decide_brace(out)
        cur.pos += 1
        while closers[-1] != c:
            self._pop(out)
        if len(closers) > 1:
            self._pop(out)
            return AGAIN
        if place.before != "{":
            out.put("}")
        return DONE

    def _pop(self, out: ArgumentWriter) -> None:
        self._place.closers.pop()
        out.put(self._place.json.pop())
        self._end_value()

    def close(self, call: CallHandler) -> None:
        """Close everything that is open, because the call was closed here."""
        if self._phase == _VALUE:
            self._put_nothing(call)
        self._decide_brace(call)
        place = self._place
        while place.json:
            closer = place.json.pop()
            if place.json or place.before != "{":
                call.put(closer)

    # -- text that is dropped -------------------------------------------------------------------------------------

    def _begin_drop(self, cur: Cursor, out: CallHandler) -> int:
        """Start dropping text, with the character at the cursor."""
        self._drop_to(cur, cur.pos + 1, out)
        self._phase = _DROP
        return AGAIN

    def _drop_to(self, cur: Cursor, end: int, out: CallHandler) -> None:
        out.mark(ARGUMENT_TEXT, cur.pos)
        out.drop_to("text_between_arguments", cur, end)

    def _drop(self, cur: Cursor, out: CallHandler) -> int:
        """Drop text between values, up to a separator, a closing character or the end of the line that an argument is
        on. Return AGAIN there, or MORE."""
        text = cur.text
        start = cur.pos
        found = (LINE_END if self._place.on_line() else _BETWEEN_STOP).search(text, start)
        end = len(text) if found is None else found.start()
        stop = next_stop(self._place, cur, end, out)
        if stop >= 0:
            end = stop
        elif found is None and not cur.final:
            end = self._place.stops.undecided_from(text, start)
        if end > start:
            self._drop_to(cur, end, out)
        if found is None and stop < 0:
            return MORE
        self._phase = _NEXT
        return AGAIN

    # -- keys -----------------------------------------------------------------------------------------------------

    def _read_key(self, cur: Cursor, out: CallHandler) -> int:
        """Read a key and its assignment, or a value without a key. The cursor stays in front of a key until its
        assignment has come, so the length of a key is bounded."""
        place = self._place
        takes_values = place.takes_values()
        quotes = self._syntax.quotes
        is_quote = cur.text[cur.pos] in quotes.first_characters
        end = quotes.at(cur.text, cur.pos, cur.final) if is_quote else NO_MATCH
        if end == MORE:
            return MORE
        if end < 0 and cur.text[cur.pos] in _NO_KEY_OR_VALUE:
            return self._begin_drop(cur, out)
        found = plain_key(place, cur, takes_values) if end < 0 else quoted_key(cur, end, takes_values)
        key, after, string_end = found
        if after == MORE:
            return MORE
        if after >= 0:
            cur.pos = after
            self._begin_keyed(key, out)
            return AGAIN
        if self._begin_unkeyed(takes_values, out):
            return AGAIN
        if string_end >= 0:
            self._drop_to(cur, string_end, out)
            self._phase = _DROP
        elif end < 0 and cur.text[cur.pos] in "([{":
            self._drop_to(cur, cur.pos + 1, out)
        else:
            return self._begin_drop(cur, out)
        return AGAIN

    def _begin_keyed(self, key: str, out: ArgumentWriter) -> None:
        """Begin a value after its key and assignment."""
        self._decide_brace(out)
        place = self._place
        if place.style == BY_PLACE and len(place.closers) == 1:
            place.style = NAMED
        place.begin_member(key, out)
        self._phase = _VALUE

    def _begin_unkeyed(self, takes_values: bool, out: ArgumentWriter) -> bool:
        """Begin a value that has no key; False if it needs one."""
        place = self._place
        if place.json[-1] == UNDECIDED:
            place.json[-1] = "]"
            out.put("[")
            self._phase = _ITEM
            return True
        if takes_values:
            place.begin_member(place.next_name(), out)
            self._phase = _VALUE
        return takes_values

    def _decide_brace(self, out: ArgumentWriter) -> None:
        """Take an undecided brace for that of an object."""
        json = self._place.json
        if json and json[-1] == UNDECIDED:
            json[-1] = "}"
            out.put("{")

    # -- values ---------------------------------------------------------------------------------------------------

    def _read_value(self, cur: Cursor, c: str, out: CallHandler) -> int:
        """Begin the value of a key, which may be missing."""
        if c in ")]},":
            out.report("argument_without_value", cur.pos, cur.pos)
            self._put_nothing(out)
            return AGAIN
        return self._begin_value(cur, c, out)

    def _put_nothing(self, out: ArgumentWriter) -> None:
        """Put the value of an argument that has none: an empty string where the schema allows one, else null."""
        param = self._place.param()
        out.put('""' if param is not None and param.types and param.may_be_string else "null")
        self._end_value()

    def _begin_value(self, cur: Cursor, c: str, out: CallHandler) -> int:
        quotes = self._syntax.quotes
        end = quotes.at(cur.text, cur.pos, cur.final) if c in quotes.first_characters else NO_MATCH
        if end == MORE:
            return MORE
        if end >= 0:
            return self._begin_string(cur, end, out)
        if c in "[({" and not self._is_too_deep(cur, out):
            cur.pos += 1
            place = self._place
            place.begin_value(out)
            place.closers.append(_CLOSER[c])
            place.json.append(UNDECIDED if c == "{" else "]")
            if c != "{":
                out.put("[")
            self._phase = _KEY if c == "{" else _ITEM
        else:
            self._phase = _WORD
            self._words.open()
        return AGAIN

    def _begin_string(self, cur: Cursor, end: int, out: CallHandler) -> int:
        """Begin a string whose opening quote ends at ``end``, or is the first of three."""
        quote = cur.text[cur.pos : end]
        if len(quote) == 1:
            # Three quotes in a row open a long string; two are an empty string.
            following = cur.text[end : end + 2]
            if following == quote * 2:
                quote = quote * 3
            elif len(following) < 2 and quote.startswith(following[:1]) and not cur.final:
                return MORE
        cur.pos += len(quote)
        self._place.begin_value(out)
        self._strings.open(quote, out)
        self._phase = _STRING
        return AGAIN

    def _is_too_deep(self, cur: Cursor, out: CallHandler) -> bool:
        """True if no more levels may be kept: what begins at the cursor is text."""
        if len(self._place.closers) < max(self._place.max_held // _LEVEL_SIZE, _FEWEST_LEVELS):
            return False
        out.report("nested_too_deep", cur.pos, cur.pos + 1)
        return True

    # -- the end of the output ------------------------------------------------------------------------------------

    def put_cut(self, cur: Cursor, call: CallHandler) -> None:
        """Put the beginning of a key or word in which the output was cut."""
        self._decide_brace(call)
        if self._phase == _STRING:
            self._strings.put_cut(call)
        elif self._phase == _WORD:
            self._words.put_cut(call)
        elif self._phase == _KEY:
            key = cur.text[cur.pos :].strip(WS)
            if key:
                key, closing = cut_key(self._place, key)
                self._place.begin_value(call)
                call.put(f'"{json_escape(key)}{closing}')
                cur.pos = len(cur.text)
                call.mark(ARGUMENT_TEXT, cur.pos)
