"""Arguments as literals of Python, or of Gemma 4's notation, converted to JSON as they arrive.

* Strings stream. Words (numbers, True, null, expressions) are converted when they end. A word that is not a literal
  is reported: text becomes a string. Between parentheses a name or an expression is passed on as written,
  unless the Format's quotes are optional.
* A string in quotes of one character has backslash escapes. Its quote closes it only if what follows may follow a value
  (``ends``). A string in longer quotes (``<|"|>``) ends at the same quote, which may be missing.
* Braces hold an object if their first item has a key, and otherwise a set, which becomes a list.
* Text that breaks a value stays in it. Text between values is dropped and reported.
* Where all values are quoted, the text in quotes is converted by the schema, as in tags (``value_text``).
* A key is the text before an assignment, and may be several words. Only between parentheses can a value lack a key: it
  is then the schema's next parameter.
"""

from __future__ import annotations

import re
from typing import Final, final

from ...jsontext.coercion import Param
from ...jsontext.lexical import json_escape
from ...tools import ToolSet
from .. import tags
from ..arguments.base import ArgumentReader, ArgumentWriter, CallHandler
from ..arguments.value_text import STREAM, ValueText
from ..ledger import ARGUMENT_TEXT, DROPPED
from ..lexer import NO_LITERALS, SPACES, WS, Cursor, Literals, literal_set
from ..signals import DONE, MORE, NO_MATCH
from .ends import MarkedStringEnds, StringEnds
from .program import LiteralSyntax
from .words import (
    begins_path,
    closing_quote,
    cut_word,
    escape_end,
    is_literal,
    may_begin_path,
    unescape,
    unescaped,
    word_json,
)

_OPEN: Final = 0
_KEY: Final = 1
_VALUE: Final = 3
_NEXT: Final = 4
_STRING: Final = 5
_WORD: Final = 6
_DROP: Final = 7
_ITEM: Final = 8

_MAX_KEY: Final = 1024
_MAX_WORD: Final = 4096
_LEVEL_SIZE: Final = 16
"""Bytes that are kept for each level of nesting: two references."""
_FEWEST_LEVELS: Final = 64
"""Levels that are read however little may be held. No output seen needs more."""
_KEY_TEXT: Final = re.compile(r"[^ \t\r\n=:,()\[\]{}\"'<]+")
_FURTHER_WORDS: Final = re.compile(r"[ \t][\w.\- \t]*")
_WORD_STOP: Final = re.compile(r"[,()\[\]{}\"']")
_BETWEEN_STOP: Final = re.compile(r"[,)\]}]")
_CLOSER: Final = {"(": ")", "[": "]", "{": "}"}


@final
class LiteralReader(ArgumentReader):
    """Reads ``(a='x', b=[1])``, brackets included, and puts ``{"a": "x", "b": [1]}``."""

    ends_where_it_breaks = True

    def __init__(self, syntax: LiteralSyntax, tools: ToolSet, name: str, outer: str, max_held: int) -> None:
        """``outer``: the closing character of the list around the call, which also ends the call; empty if there is
        none."""
        self._syntax: LiteralSyntax = syntax
        self._called: tuple[ToolSet, str] = (tools, name)
        self._stops: Literals = syntax.frame.stops
        self._phase: int = _OPEN
        # The closing characters of what is open, outermost first, and the JSON closer of each.
        self._closers: list[str] = []
        self._json: list[str] = []
        self._ends: StringEnds = StringEnds(self._closers, self._json, outer, syntax.frame.stops)
        self._seen: set[str] = set()
        """Keys of the arguments so far."""
        self._marked_ends: MarkedStringEnds = MarkedStringEnds(self._closers, self._seen, syntax, tools, name)
        self._watched: re.Pattern[str] | None = None
        """In a string between markers: the first character of whatever may end it."""
        self.valid: bool = True
        """False if a name or an expression was passed on as written: what was put is not valid JSON."""
        self._any: bool = False
        """True if an argument has been put."""
        self._comma: bool = False
        self._by_place: bool = False
        """True if values need no key."""
        self._named: bool = False
        """True if an argument has had a key."""
        self._undecided_brace: bool = False
        """True after a brace that opens an object or a set."""
        self._keys: int = 0
        self._top_key: str = ""
        self._quote: Literals = syntax.quotes
        self._escapes: bool = False
        self._begins: bool = False
        """True before the first text of a string that may have escapes."""
        self._typed: bool = False
        """True if the open string is the text of a value, which its schema converts."""
        self._value: ValueText = ValueText(False, max_held)
        self._doubtful: bool = False
        """True after a quote that did not close the string: now a literal that ends the call also closes it."""
        self._word: list[str] = []
        self._word_size: int = 0
        self._word_streams: bool = False
        self._word_depth: int = 0
        self._word_quote: str = ""

    def step(self, cur: Cursor, out: CallHandler) -> int:
        while True:
            if self._phase == _STRING:
                watched = self._watched
                if self._begins and not self._decide_escapes(cur, out):
                    return MORE
                if not (self._read_string(cur, out) if watched is None else self._read_marked(watched, cur, out)):
                    return MORE
                continue
            if self._phase == _WORD:
                answer = self._read_word(cur, out)
                if answer != DONE:
                    return answer
                continue
            if self._phase == _DROP and not self._drop(cur, out):
                return MORE
            found = SPACES.match(cur.text, cur.pos)
            if found is not None:
                cur.pos = found.end()
            if cur.pos >= len(cur.text):
                return MORE
            if self._closers and self._phase != _OPEN:
                end = self._stops.at(cur.text, cur.pos, cur.final)
                if end == MORE:
                    return MORE
                if end >= 0 and out.may_be_marker(cur.pos, end):
                    return NO_MATCH
            c = cur.text[cur.pos]
            if self._phase == _OPEN:
                cur.pos += 1
                self._closers.append(self._syntax.close if c == self._syntax.open else _CLOSER.get(c, c))
                self._json.append("}")
                self._by_place = c == "("
                self._phase = _KEY
            elif self._phase == _VALUE:
                if c in ")]}" or c == ",":
                    out.report("argument_without_value", cur.pos, cur.pos)
                    self._put_nothing(out)
                elif not self._begin_value(cur, c, out):
                    return MORE
            elif c in ")]}":
                answer = self._close(cur, c, out)
                if answer != MORE:
                    return answer
            elif self._phase == _NEXT:
                if c == ",":
                    cur.pos += 1
                    self._phase = _KEY if self._json[-1] == "}" else _ITEM
                else:
                    self._begin_drop(cur, out)
            elif c == ",":
                cur.pos += 1
            elif self._phase == _KEY:
                if not self._read_key(cur, out):
                    return MORE
            elif not self._begin_value(cur, c, out):
                return MORE

    def passed(self, text: str) -> str | None:
        """Return the JSON of text in the middle of a string; None if it may end, and nothing has happened."""
        if self._watched is not None:
            if self._watched.search(text) is not None:
                return None
        elif self._quote.first_characters in text or (self._escapes and "\\" in text):
            return None
        return json_escape(text)

    def open_path(self, cur: Cursor) -> None:
        if self._phase == _STRING and not (self._doubtful or self._typed or self._begins):
            cur.passed = self.passed
            cur.stops = NO_LITERALS

    # -- members ------------------------------------------------------------------------------------------------

    def _read_key(self, cur: Cursor, out: CallHandler) -> bool:
        """Read a key and its assignment, or a value without a key. False if more text is needed. The cursor stays in
        front of a key until its assignment has come, so the length of a key is bounded."""
        text = cur.text
        start = cur.pos
        end = self._syntax.quotes.at(text, start, cur.final)
        if end == MORE:
            return False
        if end >= 0:
            return self._read_quoted_key(cur, end, out)
        found = _KEY_TEXT.match(text, start)
        if found is None:
            if text[start] not in "([{":
                self._begin_drop(cur, out)
            elif not self._begin_unkeyed(out):
                self._drop_to(cur, start + 1, out)
            return True
        end = found.end()
        if end - start > _MAX_KEY:
            if not self._begin_unkeyed(out):
                self._begin_drop(cur, out)
            return True
        further = _FURTHER_WORDS.match(text, end)
        last = end if further is None else further.end()
        key = text[start:last].strip(WS)
        if len(key) == end - start:
            after = self._assigned(cur, end)
        elif last - start > _MAX_KEY:
            after = NO_MATCH
        else:
            after = self._assigned(cur, last)
            if after >= 0 and text[after - 1] != (self._syntax.assign if len(self._closers) == 1 else ":"):
                after = NO_MATCH
        if after == MORE:
            return False
        if after >= 0:
            cur.pos = after
            self._begin_keyed(key, out)
        elif cur.final and not text[last:].strip(WS) and (key.isidentifier() or not self._takes_values()):
            return False  # cut() puts what there is of it
        elif not self._begin_unkeyed(out):
            self._begin_drop(cur, out)
        return True

    def _read_quoted_key(self, cur: Cursor, end: int, out: CallHandler) -> bool:
        """Read a string in the place of a key; its opening quote ends at ``end``."""
        text = cur.text
        start = cur.pos
        quote = text[start:end]
        escapes = quote[0] in "'\""
        if len(quote) == 1 and not cur.final and len(text) - end < 2 and (quote * 2).startswith(text[end:]):
            return False  # perhaps three quotes, which a key cannot have
        limit = end + _MAX_KEY
        close = NO_MATCH if len(quote) == 1 and text[end : end + 2] == quote * 2 else limit
        if close == limit:
            close = closing_quote(text, end, quote, escapes, limit)
            if close < 0 and len(text) < limit and not cur.final:
                return False
        after = NO_MATCH
        if close >= 0:
            after = self._assigned(cur, close + len(quote))
            if after == MORE:
                return False
        if after >= 0:
            cur.pos = after
            self._begin_keyed(unescaped(text[end:close]) if escapes else text[end:close], out)
        elif not self._takes_values() and cur.final and (close < 0 or not text[close + len(quote) :].strip(WS)):
            return False
        elif self._begin_unkeyed(out):
            pass
        elif close < 0:
            self._begin_drop(cur, out)
        else:
            self._drop_to(cur, close + len(quote), out)
            self._phase = _DROP
        return True

    def _assigned(self, cur: Cursor, pos: int) -> int:
        """Return where the assignment at ``pos`` ends, white space before it skipped; NO_MATCH or MORE."""
        text = cur.text
        found = SPACES.match(text, pos)
        at = pos if found is None else found.end()
        if at - cur.pos > 2 * _MAX_KEY:
            return NO_MATCH
        if at >= len(text):
            return NO_MATCH if cur.final else MORE
        if text[at] == ":":
            return at + 1
        if text[at] != "=" or text[at + 1 : at + 2] == "=":
            return NO_MATCH
        return at + 1 if at + 1 < len(text) or cur.final else MORE

    def _takes_values(self) -> bool:
        """True if a value without a key may follow."""
        return self._by_place and len(self._closers) == 1

    def _begin_unkeyed(self, out: ArgumentWriter) -> bool:
        """Begin a value that has no key; False if it needs one."""
        if self._undecided_brace:
            self._undecided_brace = False
            self._json[-1] = "]"
            out.put("[")
            self._phase = _ITEM
            return True
        if not self._takes_values():
            return False
        self._begin_member(self._next_name(), out)
        return True

    def _begin_keyed(self, key: str, out: ArgumentWriter) -> None:
        """Begin a value after its key and assignment."""
        self._decide_brace(out)
        self._named = self._named or len(self._closers) == 1
        self._begin_member(key, out)

    def _decide_brace(self, out: ArgumentWriter) -> None:
        """Take an undecided brace for that of an object."""
        if self._undecided_brace:
            self._undecided_brace = False
            out.put("{")

    def _begin_member(self, key: str, out: ArgumentWriter) -> None:
        """Put ``{"key": `` or ``, "key": ``."""
        self._value_start(out)
        if len(self._closers) == 1:
            self._top_key = key
            self._keys += 1
            self._seen.add(key)
        out.put(f'"{json_escape(key)}": ')
        self._comma = False
        self._phase = _VALUE

    def _value_start(self, out: ArgumentWriter) -> None:
        if not self._any:
            self._any = True
            out.put("{")
            self._comma = False
        elif self._comma:
            out.put(", ")
            self._comma = False

    def _put_nothing(self, out: ArgumentWriter) -> None:
        """Put the value of an argument that has none: an empty string where the schema allows one, else null."""
        param = self._top_param() if len(self._closers) == 1 else None
        out.put('""' if param is not None and param.types and param.may_be_string else "null")
        self._comma = True
        self._phase = _NEXT

    def _next_name(self) -> str:
        """Return a name for a value without a key: the schema's next parameter, or else the value's number."""
        tools, tool = self._called
        name = tools.positional(tool, self._keys)
        return name if name is not None else str(self._keys)

    def _close(self, cur: Cursor, c: str, out: CallHandler) -> int:
        """Close what the closing character ``c`` fits, and all that is open inside. MORE if the arguments continue."""
        if c not in self._closers:
            if c == self._ends.outer:
                return NO_MATCH
            self._begin_drop(cur, out)
            return MORE
        if self._closers[-1] != c:
            out.report("broken_arguments", cur.pos, cur.pos)
        self._decide_brace(out)
        cur.pos += 1
        while self._closers[-1] != c:
            self._pop(out)
        if len(self._closers) > 1:
            self._pop(out)
            return MORE
        if self._any:
            out.put("}")
        return DONE

    def close(self, out: CallHandler) -> None:
        """Close everything that is open, because the call was closed here."""
        if self._phase == _VALUE:
            self._put_nothing(out)
        self._decide_brace(out)
        while self._json:
            closer = self._json.pop()
            if self._json or self._any:
                out.put(closer)

    def _pop(self, out: ArgumentWriter) -> None:
        self._closers.pop()
        closer = self._json.pop()
        out.put(closer)
        self._comma = True
        self._phase = _NEXT

    def _begin_drop(self, cur: Cursor, out: CallHandler) -> None:
        """Start dropping text, with the character at the cursor."""
        self._drop_to(cur, cur.pos + 1, out)
        self._phase = _DROP

    def _drop_to(self, cur: Cursor, end: int, out: CallHandler) -> None:
        out.mark(ARGUMENT_TEXT, cur.pos)
        out.report("text_between_arguments", cur.pos, end)
        cur.pos = end
        out.mark(DROPPED, end)

    def _drop(self, cur: Cursor, out: CallHandler) -> bool:
        """Drop text between values, up to a separator or closing character. False if more text is needed."""
        text = cur.text
        start = cur.pos
        found = _BETWEEN_STOP.search(text, start)
        end = len(text) if found is None else found.start()
        stop = self._next_stop(cur, end, out)
        if stop >= 0:
            end = stop
        elif found is None and not cur.final:
            end = self._stops.undecided_from(text, start)
        if end > start:
            self._drop_to(cur, end, out)
        if found is None and stop < 0:
            return False
        self._phase = _NEXT
        return True

    def _next_stop(self, cur: Cursor, end: int, out: CallHandler) -> int:
        """Return where a literal that ends the call begins between the cursor and ``end``; -1 without one."""
        found = self._stops.near(cur.text, cur.pos, end)
        while found is not None and not out.may_be_marker(found.start(), found.end()):
            found = self._stops.near(cur.text, found.start() + 1, end)
        return -1 if found is None or found.start() >= end else found.start()

    # -- values -------------------------------------------------------------------------------------------------

    def _begin_value(self, cur: Cursor, c: str, out: CallHandler) -> bool:
        end = self._syntax.quotes.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return False
        if end >= 0:
            quote = cur.text[cur.pos : end]
            if len(quote) == 1:
                # Three quotes in a row open a long string; two are an empty string.
                following = cur.text[end : end + 2]
                if following == quote * 2:
                    quote = quote * 3
                elif len(following) < 2 and quote.startswith(following[:1]) and not cur.final:
                    return False
            cur.pos += len(quote)
            self._value_start(out)
            self._open_string(quote, out)
        elif c in "[({" and not self._is_too_deep(cur, out):
            cur.pos += 1
            self._value_start(out)
            self._closers.append(_CLOSER[c])
            closer = "}" if c == "{" else "]"
            self._json.append(closer)
            self._undecided_brace = c == "{"
            if c != "{":
                out.put("[")
            self._phase = _KEY if c == "{" else _ITEM
            self._comma = False
        else:
            self._phase = _WORD
            self._word_depth = 0
            self._word_quote = ""
        return True

    def _is_too_deep(self, cur: Cursor, out: CallHandler) -> bool:
        """True if no more levels may be kept: what begins at the cursor is text."""
        if len(self._closers) < max(self._value.max_held // _LEVEL_SIZE, _FEWEST_LEVELS):
            return False
        out.report("nested_too_deep", cur.pos, cur.pos + 1)
        return True

    def _open_string(self, quote: str, out: CallHandler) -> None:
        self._quote = literal_set(quote)
        self._escapes = quote[0] in self._syntax.escaping
        self._watched = None if quote[0] in "'\"" else self._syntax.watched
        self._doubtful = False
        self._begins = self._escapes
        self._phase = _STRING
        self._typed = False
        if self._syntax.quoted_values and len(self._closers) == 1:
            self._value.begin(self._top_param(), "", "")
            self._typed = self._value.handling != STREAM
        if not self._typed:
            out.put('"')

    def _follows_string(self, cur: Cursor, pos: int, out: CallHandler) -> int:
        """Return DONE if the text at ``pos`` may follow a string that ends there, NO_MATCH or MORE."""
        if pos - cur.pos > 1:
            return DONE
        return self._ends.follows(cur, pos, self._by_place and not self._named, out)

    def _read_marked(self, watched: re.Pattern[str], cur: Cursor, out: CallHandler) -> bool:
        """Read a string between markers. False if more text is needed."""
        text = cur.text
        quote = self._quote.find(text, cur.pos)
        limit = len(text) if quote is None else quote.start()
        if watched.search(text, cur.pos, limit) is None:
            # No close can be missing before this.
            end, follows = limit, MORE if quote is None else DONE
        else:
            end, follows = self._missing_close(cur, limit, out)
        if follows == NO_MATCH and quote is None:
            self._watched = self._marked_ends.watched()
            end = limit if cur.final else self._undecided_from(text, cur.pos)
            follows = MORE
        elif follows == NO_MATCH and quote is not None:
            key = self._marked_ends.next_key(text, cur.pos, limit)
            # A string may end in what looks like a key: then what follows its closing marker may follow a value.
            closes = DONE if key < 0 else self._ends.follows(cur, quote.end(), False, out)
            end = limit if closes == DONE else key
            follows = MORE if closes == MORE else DONE
        self._put_string(text[cur.pos : end], out)
        cur.pos = end
        if follows == MORE:
            return False
        if quote is not None and end == limit:
            cur.pos = quote.end()
        else:
            out.report("missing_close", end, end)
        self._close_string(cur, out)
        return True

    def _missing_close(self, cur: Cursor, limit: int, out: CallHandler) -> tuple[int, int]:
        """Return where the string ends before the end of its call, and DONE, MORE or NO_MATCH for it. The call ends
        before ``limit``."""
        text = cur.text
        found = self._stops.near(text, cur.pos, limit)
        while found is not None and found.start() < limit:
            stop, after = found.span()
            if out.may_be_marker(stop, after):
                if self._stops.tags[found.group()] == tags.TURN_END and out.has_id(stop, after):
                    return stop, DONE
                chain = self._marked_ends.chain(text, cur.pos, stop)
                follows = NO_MATCH if chain < 0 else self._marked_ends.follows(cur, stop, after, out)
                if follows != NO_MATCH:
                    return chain, follows
            found = self._stops.near(text, after, limit)
        return limit, NO_MATCH

    def _undecided_from(self, text: str, pos: int) -> int:
        """Return where the end of the text begins that may belong to what ends the string."""
        end = min(self._quote.undecided_from(text, pos), self._stops.undecided_from(text, pos))
        return self._marked_ends.undecided_from(text, pos, end)

    def _read_string(self, cur: Cursor, out: CallHandler) -> bool:
        """Read a string. False if more text is needed."""
        text = cur.text
        found = self._quote.find(text, cur.pos)
        while True:
            if found is not None and found.start() < cur.pos:
                found = self._quote.find(text, cur.pos)
            end = self._end_of_text(cur, found)
            stop = self._next_stop(cur, end, out) if self._doubtful else -1
            if stop >= 0:
                end = stop
            slash = text.find("\\", cur.pos, end) if self._escapes else -1
            if slash >= 0:
                self._put_string(text[cur.pos : slash], out)
                cur.pos = slash
                after = escape_end(text, slash)
                if after > len(text) and not cur.final:
                    return False
                self._put_string(unescape(text[slash:after]), out)
                cur.pos = min(after, len(text))
                continue
            self._put_string(text[cur.pos : end], out)
            cur.pos = end
            if stop < 0:
                if found is None:
                    return False
                follows = self._follows_string(cur, found.end(), out)
                if follows == MORE:
                    return False
                cur.pos = found.end()
                if follows == NO_MATCH:
                    self._doubtful = True
                    out.report("unescaped_quote", end, cur.pos)
                    self._put_string(found.group(), out)
                    continue
            self._close_string(cur, out)
            return True

    def _decide_escapes(self, cur: Cursor, out: CallHandler) -> bool:
        """Decide by its first text if a string has escapes. False if more text is needed."""
        if not cur.final and may_begin_path(cur.text, cur.pos):
            return False
        self._begins = False
        if begins_path(cur.text, cur.pos):
            self._escapes = False
            out.report("unescaped_backslash", cur.pos, cur.pos)
        return True

    def _close_string(self, cur: Cursor, out: CallHandler) -> None:
        if self._typed:
            self._value.close(out, cur.pos)
        else:
            out.put('"')
        self._comma = True
        self._phase = _NEXT

    def _end_of_text(self, cur: Cursor, quote: re.Match[str] | None) -> int:
        """Return where the text ends that is part of the string for sure, unless a literal in it ends the call."""
        if quote is not None:
            return quote.start()
        if cur.final:
            return len(cur.text)
        end = self._quote.undecided_from(cur.text, cur.pos)
        return min(end, self._stops.undecided_from(cur.text, cur.pos)) if self._doubtful else end

    def _put_string(self, piece: str, out: CallHandler) -> None:
        if not piece:
            return
        if self._typed:
            self._value.add(piece, out)
        else:
            out.put(json_escape(piece))

    def _read_word(self, cur: Cursor, out: CallHandler) -> int:
        """Read a number, a constant, or any other text up to the next separator."""
        text = cur.text
        size = len(text)
        while True:
            if self._word_quote:
                end = text.find(self._word_quote, cur.pos)
            else:
                found = _WORD_STOP.search(text, cur.pos)
                end = -1 if found is None else found.start()
            stop = self._next_stop(cur, size if end < 0 else end, out)
            if stop >= 0:
                self._add_word(text[cur.pos : stop], out)
                cur.pos = stop
                self._end_word(cur, out)
                return NO_MATCH
            if end < 0:
                end = size if cur.final else self._stops.undecided_from(text, cur.pos)
                self._add_word(text[cur.pos : end], out)
                cur.pos = end
                return MORE
            comma = self._comma_in_word(cur, end) if text[end] == "," else DONE
            if comma == MORE:
                self._add_word(text[cur.pos : end], out)
                cur.pos = end
                return MORE
            if comma == DONE and not self._is_inside_word(text[end]):
                self._add_word(text[cur.pos : end], out)
                cur.pos = end
                self._end_word(cur, out)
                self._phase = _NEXT
                return DONE
            self._add_word(text[cur.pos : end + 1], out)
            cur.pos = end + 1

    def _comma_in_word(self, cur: Cursor, end: int) -> int:
        """Return NO_MATCH if the comma at ``end`` is a part of a value without quotes, DONE or MORE."""
        if self._by_place or len(self._closers) > 1 or self._word_depth or self._word_quote:
            return DONE
        if not self._word_streams:
            word = ("".join(self._word) + cur.text[cur.pos : end]).strip(WS)
            if is_literal(word, self._wants_string()):
                return DONE
        return self._marked_ends.ends_at_comma(cur, end + 1)

    def _is_inside_word(self, c: str) -> bool:
        """Follow the quotes and brackets of a word. False if ``c`` ends it."""
        if self._word_quote:
            self._word_quote = ""
        elif c in "\"'":
            if self._word_depth:
                self._word_quote = c
        elif c in "([{":
            self._word_depth += 1
        elif not self._word_depth:
            return False
        elif c in ")]}":
            self._word_depth -= 1
        return True

    def _add_word(self, piece: str, out: ArgumentWriter) -> None:
        """Add to the word. A word that is too long for a number or a constant streams, as a string."""
        self._word_size += len(piece)
        if self._word_streams:
            kept = piece.rstrip(WS)
            if kept:
                # All that came before has been put, except white space.
                out.put(json_escape("".join(self._word) + kept))
                self._word = []
            if len(kept) < len(piece):
                self._word.append(piece[len(kept) :])
            return
        self._word.append(piece)
        if self._word_size > _MAX_WORD:
            text = "".join(self._word).lstrip(WS)
            self._word = []
            self._word_streams = True
            self._value_start(out)
            out.put('"')
            self._word_size -= len(text)
            self._add_word(text, out)

    def cut(self, cur: Cursor, out: CallHandler) -> None:
        """Put the beginning of a key or word in which the output was cut."""
        self._decide_brace(out)
        if self._phase == _STRING and self._typed:
            self._value.cut("", out)
        if self._phase == _WORD:
            word = "".join(self._word).strip(WS)
            if word and not self._word_streams:
                self._value_start(out)
                out.put(cut_word(word, self._wants_string()))
            return
        text = cur.text
        key = text[cur.pos :].strip(WS)
        if self._phase != _KEY or not key:
            return
        closing = ""
        end = self._syntax.quotes.at(key, 0, True)
        if end >= 0:
            quote = key[:end]
            escapes = quote[0] in "'\""
            close = closing_quote(key, end, quote, escapes, len(key))
            closing = '"' if close >= 0 else ""
            key = key[end : close if close >= 0 else len(key)]
            key = unescaped(key) if escapes else key
        self._value_start(out)
        out.put(f'"{json_escape(key)}{closing}')
        cur.pos = len(text)
        out.mark(ARGUMENT_TEXT, cur.pos)

    def _end_word(self, cur: Cursor, out: CallHandler) -> None:
        """Put a word that ends at the cursor."""
        text = "".join(self._word)
        word = text.strip(WS)
        start = cur.pos - self._word_size
        end = cur.pos - len(text) + len(text.rstrip(WS))
        self._word = []
        self._word_size = 0
        value, literal = '"', False
        if self._word_streams:
            self._word_streams = False
        else:
            self._value_start(out)
            as_written = self._by_place and not self._syntax.quotes_optional
            value, literal = word_json(word, self._wants_string(), as_written)
            literal = literal or (self._syntax.quotes_optional and value[0] == '"')
        out.put(value)
        self._comma = True
        if not literal:
            self.valid = self.valid and value != word
            out.report("unquoted_value", start, end)

    def _top_param(self) -> Param | None:
        """Return the declared parameter of the top-level key that is being read."""
        tools, tool = self._called
        return tools.param(tool, self._top_key)

    def _wants_string(self) -> bool:
        """True if the schema allows only a string here."""
        param = self._top_param() if len(self._closers) == 1 else None
        return param is not None and param.streams
