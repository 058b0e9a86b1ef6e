"""Arguments in tags: ``<parameter=city>Paris</parameter>`` → ``{"city": "Paris"}``.

* A close tag closes a value only if the text after it may follow a close (``ends``). If a token id proves the
  tag, nothing is buffered.
* A value whose opener or close is missing, doubled or misspelled is still read, and reported.
* Values that can only become a string stream. Others are converted by their schema when they close.
* A value loses the newlines that its format declares, and no other white space. Without its close it also loses the
  newline that the format writes after a close.
"""

from __future__ import annotations

import re
from typing import Final, final

from ....tools import ToolSet
from ...jsontext.lexical import json_escape
from .. import tags
from ..arguments.base import ArgumentReader, CallHandler
from ..arguments.last_line import LastLine
from ..arguments.lookahead import (
    ENDS,
    ENDS_BEFORE,
    ENDS_IN_QUOTATION,
    ENDS_MISSPELLED,
    MAX_LOOKAHEAD,
    QUOTE_SIGNS,
)
from ..arguments.value_text import ValueText
from ..arguments.xml_text import unescape_xml
from ..ledger import ARGUMENT_TEXT, DROPPED, MARKUP
from ..lexer import SPACES, WS, Cursor, GoesOn, Literals
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .ends import ValueEnds
from .program import TaggedSyntax

_MAX_KEY: Final = 1024
"""Most characters of a key. No output seen has a longer one; its beginning is dropped (``broken_key``)."""
_SIGNS: Final = re.compile('[<>"]')
"""Signs of markup, which no key should have."""
_MAX_TYPE: Final = 64
"""Most characters of a value's type. JSON's types have up to 7; a longer word is dropped (``broken_key``)."""
_NEWLINES: Final = ("\n", "\r")
_CDATA: Final = Literals({"<![CDATA[": 0})

_BETWEEN: Final = 0
_KEY: Final = 1
_VALUE_OPEN: Final = 2
_VALUE: Final = 3
_TYPE: Final = 4
PHASES: Final = ("between arguments", "key", "opener of a value", "value", "type of a value")
"""What is read in each phase."""


@final
class TaggedReader(ArgumentReader):
    """Reads tagged arguments up to what closes them."""

    records_itself = True

    def __init__(self, syntax: TaggedSyntax, tools: ToolSet, max_held: int) -> None:
        self.syntax: TaggedSyntax = syntax
        """The syntax of values that are not in a CDATA section."""
        self._syntax: TaggedSyntax = syntax
        self._tools: ToolSet = tools
        self._name: str = ""
        self._ends: ValueEnds = ValueEnds(syntax, tools)
        self._phase: int = _BETWEEN
        self._before: str = "{"
        """What to put before the next key: a brace before the first one, or a comma."""
        self._dropping: bool = False
        """True if the text before the cursor was dropped."""
        self._key: str = ""
        self._key_start: int = 0
        """The place of the key in the output."""
        self._value: ValueText = ValueText(syntax.unescape_values, max_held)
        self._opened: bool = False
        self._begins: bool = False
        """True before the first character of a value that a CDATA section may hold."""
        self._has_markup: bool = False
        """True if markup of the call in the value was reported."""
        self._waits: bool = False
        """True if the text after a literal decides if it ends the value."""
        self._trim: int = 0
        self._newlines: str = ""
        self._line: LastLine = LastLine()
        self._pending: list[str] = []
        """JSON text to put before any other: one event is cheaper than two."""

    def begin(self, name: str, outermost: int) -> None:
        """Begin the arguments of a call. ``outermost``: the kind of the close that ends the calls (tags.ARGUMENTS_CLOSE
        and so on)."""
        self._name = name
        self._leave_cdata()
        self._ends.begin_call(name, outermost)
        self._phase = _BETWEEN
        self._before = "{"
        self._dropping = False

    def step(self, cur: Cursor, call: CallHandler) -> int:
        while True:
            phase = self._phase
            if phase == _VALUE:
                answer = self._read_value(cur, call)
            elif phase == _KEY:
                answer = self._read_key(cur, call)
            elif phase == _VALUE_OPEN:
                answer = self._read_value_open(cur, call)
            elif phase == _TYPE:
                answer = self._read_type(cur, call)
            else:
                answer = self._read_between(cur, call)
            if answer != AGAIN:
                if self._pending:
                    self._put_pending(call)
                return answer

    def _put_pending(self, call: CallHandler) -> None:
        text = "".join(self._pending)
        if text:
            self._pending = []
            call.put(text)

    def begin_key(self) -> None:
        """Start at a key whose opener is missing."""
        self._phase = _KEY

    def passed(self, text: str) -> str | None:
        """Return the JSON of text in the middle of a value that streams, without newlines that wait."""
        if self._newlines or (self._syntax.holds_after and text[-1:] in _NEWLINES):
            text = self._hold_newlines(self._newlines + text)
        return json_escape(text)

    def open_path(self, cur: Cursor) -> None:
        streams = self._phase == _VALUE and self._opened and self._value.streams
        if streams and not (self._trim or self._begins):
            cur.passed = self.passed
            cur.stops = self._ends.stops

    def pass_on(self, text: str) -> int:
        if text:
            self._line.add(text)
        return len(self._newlines)

    @property
    def goes_on(self) -> GoesOn | None:
        """The test for text that decides nothing."""
        phase = self._phase
        if phase == _VALUE:
            if not self._opened or self._trim or self._begins:
                return None
            return self._ends.goes_on if self._waits else self._value_goes_on
        if phase == _KEY:
            return self._syntax.fast.key_goes_on
        if phase == _VALUE_OPEN:
            return self._syntax.value_opens.goes_on_after_spaces
        return self._syntax.tags.goes_on_after_spaces if phase == _BETWEEN else None

    def _value_goes_on(self, kept: str, text: str) -> bool:
        """True if nothing in this text can be put yet: a newline that may belong to the close, and its beginning."""
        rest = kept + text
        if self._syntax.holds_after and not self._newlines and rest[0] == "\n":
            rest = rest[1:]
        return not rest or rest in self._ends.stops.prefixes

    # -- what is written as the renderer writes it --------------------------------------------------------------

    def _read_regular_key(self, cur: Cursor, found: re.Match[str], call: CallHandler) -> int:
        """Read a key's opener, and the key if it is whole."""
        key: str | None = found["key"]
        if key is None:
            cur.pos = found.end("opener")
            call.mark(MARKUP, cur.pos)
            self._phase = _KEY
            return AGAIN
        if call.records:
            call.mark(MARKUP, found.start("key"))
            call.mark(ARGUMENT_TEXT, found.end("key"))
        self._key = key
        self._value.begin(self._tools.param(self._name, key), found["string"], found["type"])
        self._begin_value(found.start("key"), call)
        begin = found.end("begin")
        end = cur.pos = found.end()
        call.mark(MARKUP, end)
        if end > begin:
            self._trim = 0
        if len(cur.text) > begin and cur.text[begin] not in self._syntax.doubled_opens.first_characters:
            self._opened = True
            self._pending.append(self._key_text())
        return AGAIN

    def _end_regularly(self, cur: Cursor, at: int, found: re.Match[str], call: CallHandler) -> int:
        """Read the end of a value, its close, which is at ``at``, and what is found after it."""
        piece = self._newlines + cur.text[cur.pos : at]
        held = 0
        if self._syntax.trim_after and piece:
            piece = self._hold_newlines(piece)
            held = len(self._newlines)
        if call.records:
            call.mark(ARGUMENT_TEXT, at - held)
            call.mark(MARKUP, at)
            call.remark(MARKUP, call.accounted() - held, call.accounted())
        cur.pos = found.end("close")
        value = self._value
        if not value.streams:
            self._put_pending(call)
        self._pending.append(value.last(piece, call, cur.pos))
        self._newlines = ""
        if found["opener"] is not None:
            return self._read_regular_key(cur, found, call)
        self._phase = _BETWEEN
        if found["chain"] is None:
            call.mark(MARKUP, cur.pos)
            return AGAIN
        cur.pos = found.start("chain")
        call.mark(MARKUP, cur.pos)
        self._pending.append("}")
        return DONE

    # -- between values -----------------------------------------------------------------------------------------

    def _read_between(self, cur: Cursor, call: CallHandler) -> int:
        text = cur.text
        if not self._dropping:
            found = self._syntax.fast.key.match(text, cur.pos)
            if found is not None and call.may_be_marker(found.start("opener"), found.end("opener")):
                return self._read_regular_key(cur, found, call)
        if not self._skip_spaces(cur, call):
            return MORE
        between = self._syntax.tags
        end = between.at(text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end >= 0 and call.may_be_marker(cur.pos, end):
            self._dropping = False
            tag = between.tags[text[cur.pos : end]]
            if tag == tags.KEY_OPEN:
                self._take_marker(cur, end, call)
                self._phase = _KEY
                return AGAIN
            syntax = self._syntax
            if tag in tags.OPENERS and (syntax.frame.closes or syntax.frame.innermost == tags.ARGUMENTS_CLOSE):
                call.report("missing_close", cur.pos, cur.pos)
            if self._before != "{":
                self._pending.append("}")
            return DONE
        wrong = self._wrong_tag(cur, call) if self._before != "{" and not self._dropping else NO_MATCH
        if wrong != NO_MATCH:
            return wrong
        next_tag = between.find(text, cur.pos + 1)
        stop = len(text) if cur.final else between.undecided_from(text, cur.pos + 1)
        self._drop(cur, stop if next_tag is None else next_tag.start(), call)
        return AGAIN if next_tag is not None else MORE

    def _take_marker(self, cur: Cursor, end: int, call: CallHandler) -> None:
        """Read a marker up to ``end``."""
        if self._syntax.frame.variants and cur.text[cur.pos : end] in self._syntax.frame.variants:
            call.report("variant_spelling", cur.pos, end)
        cur.pos = end
        call.mark(MARKUP, end)

    def _wrong_tag(self, cur: Cursor, call: CallHandler) -> int:
        """Drop a second close of a value, or a damaged opener. Return AGAIN, NO_MATCH or MORE."""
        doubled = self._doubled_close(cur, call)
        return self._damaged_key(cur, call) if doubled == NO_MATCH else doubled

    def _damaged_key(self, cur: Cursor, call: CallHandler) -> int:
        """Drop the damaged opener of a declared parameter. Return AGAIN, NO_MATCH or MORE."""
        end = self._ends.keys.damaged_key(self._syntax, cur, cur.pos)
        if end < 0:
            return end
        call.report("broken_key", cur.pos, end)
        cur.pos = end
        call.mark(DROPPED, end)
        self._phase = _KEY
        return AGAIN

    def _doubled_close(self, cur: Cursor, call: CallHandler) -> int:
        """Drop a close tag after a value that is closed already."""
        end = self._syntax.value_ends.at(cur.text, cur.pos, cur.final)
        if end >= 0:
            call.report("doubled_close", cur.pos, end)
            cur.pos = end
            call.mark(DROPPED, end)
            return AGAIN
        return end

    def _skip_spaces(self, cur: Cursor, call: CallHandler) -> bool:
        """Read white space between tags; after dropped text it is dropped too. False if nothing follows yet."""
        found = None if self._dropping else SPACES.match(cur.text, cur.pos)
        if found is not None:
            cur.pos = found.end()
            call.mark(MARKUP, cur.pos)
        return cur.pos < len(cur.text)

    def _drop(self, cur: Cursor, stop: int, call: CallHandler) -> None:
        """Drop text between arguments, up to ``stop``."""
        call.report("text_between_arguments", cur.pos, stop)
        cur.pos = stop
        call.mark(DROPPED, stop)
        self._dropping = True

    def _read_key(self, cur: Cursor, call: CallHandler) -> int:
        syntax = self._syntax
        text = cur.text
        if cur.pos >= len(text) and not cur.final:
            return MORE
        regular = syntax.fast.name.match(text, cur.pos)
        if regular is not None:
            return self._read_regular_key(cur, regular, call)
        found = syntax.key_ends.first(text, cur.pos, cur.pos + _MAX_KEY, cur.final)
        # Text that may still become the close is not part of the key: it may contain a newline.
        held = len(text) if cur.final else syntax.key_ends.undecided_from(text, cur.pos)
        end = found.start() if found is not None else min(held, cur.pos + _MAX_KEY + 1)
        broken = self._key_breaks(text, cur.pos, end)
        if broken >= 0:
            call.report("broken_key", cur.pos, broken)
            cur.pos = broken
            call.mark(DROPPED, broken)
            self._phase = _BETWEEN
            return AGAIN
        if found is None:
            return MORE
        raw = text[cur.pos : end]
        variables = syntax.key.split(raw.strip(WS))
        key = variables.get("key", raw).strip(WS)
        if syntax.key_ends.tags[found.group()] != tags.KEY_CLOSE:
            key = self._ends.keys.whole_name(key)
            call.report("missing_close", end, end)
        at = raw.index(key)
        plain = self._plain_key(key, cur.pos + at, call)
        if plain != key and key.endswith(plain):
            at += len(key) - len(plain)
        self._key = unescape_xml(plain) if syntax.unescape_keys else plain
        self._mark_key(cur.pos, raw, at, at + len(plain), call)
        param = self._tools.param(self._name, self._key)
        self._value.begin(param, variables.get("string", ""), variables.get("type", ""))
        self._read_key_close(cur, found.group(), end, call)
        return AGAIN

    def _plain_key(self, key: str, start: int, call: CallHandler) -> str:
        """Return a key, which is at ``start``, without the rest of a damaged opener before it (``<paramter=city``),
        which is dropped here, or without markup after it (``city<x``), which `_mark_key` drops. A key with signs of
        markup that is neither is reported and kept: nothing tells what the model meant."""
        plain = self._ends.keys.plain_name(key)
        if plain != key:
            call.report("broken_key", start, start + len(key) - len(plain))
            call.mark(MARKUP, start)
            call.mark(DROPPED, start + len(key) - len(plain))
        elif _SIGNS.search(key) is not None:
            plain = self._ends.keys.name_before_markup(key)
            if plain == key:
                call.report("broken_key", start, start + len(key))
        return plain

    def _read_key_close(self, cur: Cursor, close: str, start: int, call: CallHandler) -> None:
        """Read the close of a key, which begins at ``start``, and go on with the value."""
        syntax = self._syntax
        cur.pos = start + len(close)
        if close in syntax.frame.variants:
            call.report("variant_spelling", start, cur.pos)
        call.mark(MARKUP, cur.pos)
        tag = syntax.key_ends.tags[close]
        opened = tag == tags.VALUE_OPEN or not syntax.has_value_open
        self._begin_value(start - len(self._key), call)
        if not opened:
            self._phase = _TYPE if tag == tags.TYPE_OPEN else _VALUE_OPEN

    def _begin_value(self, start: int, call: CallHandler) -> None:
        """Begin the value of a key that has been read and begins at ``start``."""
        if self._ends.keys.joins_two(self._key):
            call.report("broken_key", start, start + len(self._key))
        self._phase = _VALUE
        self._opened = False
        self._newlines = ""
        self._line.begin()
        self._ends.begin(self._key)
        self._has_markup = False
        self._trim = self._syntax.trim
        self._begins = self._syntax.cdata is not None

    def _mark_key(self, start: int, raw: str, at: int, end: int, call: CallHandler) -> None:
        """Mark a key, which is ``raw[at:end]``, and the literals of its pattern. Anything else between the tags is
        dropped. ``start``: where ``raw`` is."""
        call.mark(MARKUP, start + at)
        self._key_start = call.accounted()
        call.mark(ARGUMENT_TEXT, start + end)
        rest = raw[end:].strip(WS)
        pattern = self._syntax.key
        attribute = pattern.literals[1] if len(pattern.literals) > 1 else ""
        value = rest[len(attribute) :].removesuffix(pattern.literals[-1])
        fits = attribute != "" and rest.startswith(attribute) and (value + "a").isalpha() and value.isascii()
        if not fits and not attribute.startswith(rest):
            call.report("broken_key", start + end, start + len(raw))
            call.mark(DROPPED, start + len(raw))

    def _key_breaks(self, text: str, start: int, end: int) -> int:
        """Return where the text stops being a key: at another tag, at the end of the line, or where it gets too long;
        -1 if it is a key up to ``end``."""
        tag = self._syntax.tags.pattern.search(text, start, end)
        stop = end if tag is None else tag.start()
        line = text.find("\n", start + len(text[start:stop]) - len(text[start:stop].lstrip(WS)), stop)
        if line >= 0 and (tag is not None or text[line:stop].strip(WS) or stop - start > _MAX_KEY):
            return min(line, start + _MAX_KEY)
        if stop - start > _MAX_KEY:
            return start + _MAX_KEY
        return -1 if tag is None else stop

    def _read_value_open(self, cur: Cursor, call: CallHandler) -> int:
        syntax = self._syntax
        text = cur.text
        if not self._skip_spaces(cur, call):
            return MORE
        end = syntax.value_opens.at(text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end >= 0:
            self._dropping = False
            self._phase = _TYPE if syntax.value_opens.tags[text[cur.pos : end]] == tags.TYPE_OPEN else _VALUE
            self._take_marker(cur, end, call)
            return AGAIN
        end = syntax.tags.at(text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end >= 0:
            self._dropping = False
            call.drop_arguments("argument_without_value", self._key_start, [(self._key_start, call.accounted())])
            self._phase = _BETWEEN
            return AGAIN
        return self._read_unopened(cur, call)

    def _read_type(self, cur: Cursor, call: CallHandler) -> int:
        """Read the type of a value, which ends before the value's opener if its close is missing."""
        ends = self._syntax.type_ends
        found = ends.near(cur.text, cur.pos, cur.pos + _MAX_TYPE)
        if found is None and not cur.final and len(cur.text) - cur.pos <= _MAX_TYPE + ends.longest:
            return MORE
        end = min(len(cur.text), cur.pos + _MAX_TYPE) if found is None else found.start()
        word = cur.text[cur.pos : end].strip(WS)
        fits = word.isalpha() and word.isascii()
        closed = found is not None and ends.tags[found.group()] == tags.KEY_CLOSE
        if not fits or (found is not None and not closed):
            call.report("broken_key", cur.pos, end)
        self._value.begin(self._tools.param(self._name, self._key), "", word)
        call.mark(MARKUP if fits else DROPPED, end)
        cur.pos = found.end() if found is not None and closed else end
        call.mark(MARKUP, cur.pos)
        self._phase = _VALUE_OPEN
        return AGAIN

    def _read_unopened(self, cur: Cursor, call: CallHandler) -> int:
        """Read text in the place of a value's opener: a value, or text that is dropped before an opener or a tag."""
        syntax = self._syntax
        text = cur.text
        start = cur.pos
        nearest = syntax.unopened.near(text, start + 1, start + MAX_LOOKAHEAD)
        while nearest is not None and not call.may_be_marker(nearest.start(), nearest.end()):
            nearest = syntax.unopened.near(text, nearest.end(), start + MAX_LOOKAHEAD)
        if nearest is None and not cur.final and len(text) - start <= MAX_LOOKAHEAD + syntax.unopened.longest:
            return MORE
        if nearest is not None and syntax.unopened.tags[nearest.group()] != tags.VALUE_CLOSE:
            self._drop(cur, nearest.start(), call)
            return AGAIN
        call.report("missing_open", start, start)
        self._phase = _VALUE
        return AGAIN

    # -- the value ----------------------------------------------------------------------------------------------

    def _read_value(self, cur: Cursor, call: CallHandler) -> int:
        text = cur.text
        if not self._opened and not self._open_value(cur, call):
            return MORE
        if self._trim:
            if not self._trim_front(cur):
                return MORE
            call.mark(MARKUP, cur.pos)
        if self._begins and not self._read_cdata(cur, call):
            return MORE
        self._waits = False
        stops = self._ends.stops
        start = cur.pos
        search = start
        while True:
            found = stops.pattern.search(text, search)
            if found is None:
                end = len(text) if cur.final else stops.undecided_from(text, search)
                self._read_text(cur, end, call)
                return MORE
            at = found.start()
            held = -1 if cur.final or found.group() not in stops.inner else stops.longer_from(text, search, at)
            if held >= 0:
                self._read_text(cur, held, call)
                return MORE
            verdict = NO_MATCH
            before = text[start:at] or self._line.text
            regular = None if self._dropping or before[-1] in QUOTE_SIGNS else self._ends.regular(cur, at, call)
            if regular is not None:
                verdict = ENDS if regular["rest"] is None else self._ends.waits_after(cur, regular, call)
                if verdict == ENDS:
                    return self._end_regularly(cur, at, regular, call)
            if verdict == NO_MATCH:
                verdict = self._ends.decide(cur, found, self._line, text[start:at], call)
            if verdict == NO_MATCH:
                if self._ends.markup:
                    self._report_markup(at, found.end(), call)
                # Read at once: looking at this text again at each further literal would take quadratic time.
                search = self._ends.end
                self._read_text(cur, search, call)
                start = cur.pos
                continue
            self._read_text(cur, at, call)
            if verdict == MORE:
                self._waits = True
                return MORE
            self._end_value(cur, at, verdict, call)
            return AGAIN

    def _open_value(self, cur: Cursor, call: CallHandler) -> bool:
        """Read the beginning of a value. False if more text is needed."""
        if cur.pos >= len(cur.text):
            return False
        if cur.text[cur.pos] in self._syntax.doubled_opens.first_characters:
            doubled = self._syntax.doubled_opens.at(cur.text, cur.pos, cur.final)
            if doubled == MORE:
                return False
            if doubled >= 0 and call.may_be_marker(cur.pos, doubled):
                self._report_markup(cur.pos, doubled, call)
        self._opened = True
        self._pending.append(self._key_text())
        return True

    def _end_value(self, cur: Cursor, at: int, verdict: int, call: CallHandler) -> None:
        """End the value at the literal that is at ``at``."""
        if self._newlines and verdict != ENDS_BEFORE and not self._syntax.trim_after:
            self._put_pending(call)
            self._value.add(self._newlines, call)
            call.mark(ARGUMENT_TEXT, at)
        elif self._newlines:
            call.mark(MARKUP, at)
            call.remark(MARKUP, call.accounted() - len(self._newlines), call.accounted())
        elif verdict != ENDS:
            call.mark(MARKUP, at)
        if verdict == ENDS_BEFORE:
            call.report("missing_close", at, at)
        elif verdict == ENDS_MISSPELLED:
            cur.pos = self._ends.end
            call.mark(DROPPED, cur.pos)
            call.report("misspelled_close", at, cur.pos)
        else:
            self._take_marker(cur, self._ends.end, call)
            if verdict == ENDS_IN_QUOTATION:
                call.report("missing_close", at, at)
        self._newlines = ""
        self._put_pending(call)
        self._value.close(call, cur.pos)
        self._leave_cdata()
        self._phase = _BETWEEN

    def _report_markup(self, start: int, end: int, call: CallHandler) -> None:
        """Report markup of the call in a value, once for each value."""
        if not self._has_markup and self._syntax is self.syntax:  # a section is escaped
            self._has_markup = True
            call.report("markup_in_value", start, end)

    def _read_cdata(self, cur: Cursor, call: CallHandler) -> bool:
        """Read the opener of a CDATA section, if a value begins with one. False if more text is needed."""
        cdata = self._syntax.cdata
        assert cdata is not None
        if cur.pos >= len(cur.text) and not cur.final:
            return False
        end = _CDATA.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return False
        self._begins = False
        if end >= 0:
            self._syntax = cdata
            self._ends.enter(cdata)
            cur.pos = end
            call.mark(MARKUP, end)
        return True

    def _leave_cdata(self) -> None:
        if self._syntax is not self.syntax:
            self._syntax = self.syntax
            self._ends.enter(self.syntax)

    def _read_text(self, cur: Cursor, end: int, call: CallHandler) -> None:
        """Read a part of the value."""
        if end <= cur.pos:
            return
        piece = cur.text[cur.pos : end]
        self._line.add(piece)
        if self._syntax.holds_after and (self._newlines or piece[-1] in "\r\n"):
            piece = self._hold_newlines(self._newlines + piece)
        if piece and self._value.streams:
            self._pending.append(json_escape(piece))
        elif piece:
            self._put_pending(call)
            self._value.add(piece, call)
        cur.pos = end
        call.mark(ARGUMENT_TEXT, end - len(self._newlines) if self._newlines else end)

    def _trim_front(self, cur: Cursor) -> bool:
        """Skip the declared newlines before the value. False if more text is needed."""
        while self._trim:
            if cur.pos >= len(cur.text):
                return False
            c = cur.text[cur.pos]
            if c == "\n":
                cur.pos += 1
                self._trim -= 1
            elif c == "\r":
                if cur.pos + 1 >= len(cur.text) and not cur.final:
                    return False
                if cur.text[cur.pos + 1 : cur.pos + 2] != "\n":
                    break
                cur.pos += 2
                self._trim -= 1
            else:
                break
        self._trim = 0
        return True

    def _key_text(self) -> str:
        """Return the JSON of the key, and of what comes before its value."""
        before = self._before
        self._before = ", "
        return f'{before}"{json_escape(self._key)}": {self._value.beginning}'

    def _hold_newlines(self, piece: str) -> str:
        """Return a part of the value without the newlines at its end, which may belong to the close tag and wait."""
        limit = self._syntax.holds_after
        if limit == 1:
            held = piece[-2:] if piece.endswith("\r\n") else piece[-1:] if piece.endswith(("\n", "\r")) else ""
            self._newlines = held
            return piece.removesuffix(held)
        end = len(piece)
        while limit and end and piece[end - 1] == "\n":
            end -= 2 if piece[end - 2 : end] == "\r\n" else 1
            limit -= 1
        if limit and end and piece[end - 1] == "\r":
            end -= 1
        self._newlines = piece[end:]
        return piece[:end]

    def cut(self, cur: Cursor, call: CallHandler) -> None:
        """Put the beginning of the key or value in which the output was cut."""
        if self._phase == _KEY:
            raw = cur.text[cur.pos :]
            key = self._syntax.key.split(raw.strip(WS)).get("key", "")
            call.put(f'{self._before}"{json_escape(key)}')
            at = raw.index(key)
            self._mark_key(cur.pos, raw, at, at + len(key), call)
            cur.pos = len(cur.text)
            return
        if self._phase in (_VALUE_OPEN, _TYPE) or (self._phase == _VALUE and not self._opened):
            call.put(self._key_text())
            return
        if self._phase != _VALUE:
            return
        if self._value.cut(self._newlines, call):
            call.mark(ARGUMENT_TEXT, cur.pos)
        self._newlines = ""
