"""Arguments as literals of another language, turned into JSON on the fly: Python's, and Gemma 4's.

Rules of this module:

* Strings stream. Words (numbers, True, null, expressions) are converted when they end; what is no literal is a string.
* A quote of one character takes backslash escapes; a longer one (``<|"|>``) ends only at itself.
* Text that breaks a value stays in it; text between values is dropped and reported.
"""

from __future__ import annotations

import json
import re
from typing import Final, final

from ..coercion import ToolSet, json_escape
from ..ledger import ARGUMENT_TEXT, DROPPED
from ..lexer import MORE as LITERAL_MORE
from ..lexer import SPACES, Cursor, Literals
from ..program import CallGrammar
from .base import BROKEN, DONE, MORE, Out
from .envelope import Caller

_OPEN: Final = 0
_KEY: Final = 1
_ASSIGN: Final = 2
_VALUE: Final = 3
_NEXT: Final = 4
_STRING: Final = 5
_WORD: Final = 6
_DROP: Final = 7
_ITEM: Final = 8

_MAX_KEY: Final = 1024
_MAX_WORD: Final = 4096
_KEY_TEXT: Final = re.compile(r"[^\s=:,()\[\]{}\"'<]+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NUMBER_PREFIX: Final = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d*)?)?")
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_SIMPLE: Final = {
    "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "0": "\0", "\n": "",
}  # fmt: skip
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_WORD_STOP: Final = re.compile(r"[,()\[\]{}\"']")
_BETWEEN_STOP: Final = re.compile(r"[,)\]}]")
_CLOSER: Final = {"(": ")", "[": "]", "{": "}"}


@final
class LiteralArguments:
    """Reads ``(a='x', b=[1])`` from its opening to its closing character and puts ``{"a": "x", "b": [1]}``."""

    def __init__(self, grammar: CallGrammar, tools: ToolSet, name: str, stops: Literals) -> None:
        self.empty: bool = True
        """Whether no argument has been put."""
        self._grammar: CallGrammar = grammar
        self._tools: ToolSet = tools
        self._name: str = name
        self._stops: Literals = stops
        self._quotes: Literals = Literals({q: i for i, q in enumerate(grammar.quotes)})
        self._phase: int = _OPEN
        # Closers of what is open, the arguments' own first; the JSON closer of each.
        self._closers: list[str] = []
        self._json: list[str] = []
        self._comma: bool = False
        self._key: str = ""
        self._keys: int = 0
        self._top_key: str = ""
        self._quote: Literals = self._quotes
        self._quote_head: str = ""
        self._escapes: bool = False
        self._as_key: bool = False
        self._string: list[str] = []
        self._word: list[str] = []
        self._word_size: int = 0
        self._word_streams: bool = False
        self._word_depth: int = 0
        self._word_quote: str = ""

    def step(self, cur: Cursor, out: Caller) -> int:
        while True:
            if self._phase == _STRING:
                if not self._read_string(cur, out):
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
                if end == LITERAL_MORE:
                    return MORE
                if end >= 0:
                    return BROKEN
            c = cur.text[cur.pos]
            if self._phase == _OPEN:
                cur.pos += 1
                self._closers.append(self._grammar.close if c == self._grammar.open else _CLOSER.get(c, c))
                self._json.append("}")
                self._phase = _KEY
            elif self._phase == _VALUE:
                if c in ")]}" or c == ",":
                    self._value_start(out)
                    out.put("null")
                    self._phase = _NEXT
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
            elif c == "," and self._phase != _ASSIGN:
                cur.pos += 1
            elif self._phase == _KEY:
                if not self._read_key(cur, out):
                    return MORE
            elif self._phase == _ITEM:
                if not self._begin_value(cur, c, out):
                    return MORE
            elif self._phase == _ASSIGN:
                if c == ":" or (c == self._grammar.assign and len(self._closers) == 1) or c == "=":
                    cur.pos += 1
                    self._as_key = False
                    self._begin_member(out)
                    self._phase = _VALUE
                else:
                    self._positional(out)

    def passes(self, text: str, out: Out) -> bool:
        """Text in the middle of a string value."""
        if self._phase != _STRING or self._as_key or self._quote_head in text or (self._escapes and "\\" in text):
            return False
        out.put(json_escape(text))
        return True

    # -- members ------------------------------------------------------------------------------------------------

    def _read_key(self, cur: Cursor, out: Caller) -> bool:
        """A key, or at the top a value with no key. False: more text is needed."""
        text = cur.text
        end = self._quotes.at(text, cur.pos, cur.final)
        if end == LITERAL_MORE:
            return False
        if end >= 0:
            self._open_string(text[cur.pos : end])
            self._as_key = True
            cur.pos = end
            return True
        found = _KEY_TEXT.match(text, cur.pos)
        if found is None:
            if len(self._closers) == 1 and text[cur.pos] in "([{":
                self._key = ""
                self._positional(out)
                return True
            self._begin_drop(cur, out)
            return True
        follows = SPACES.match(text, found.end())
        after = found.end() if follows is None else follows.end()
        if found.end() - cur.pos > _MAX_KEY:
            self._begin_drop(cur, out)
            return True
        if after >= len(text):
            if not cur.final:
                return False
            if found.group().isidentifier():
                # Cut inside a name: what there is of it.
                self._value_start(out)
                out.put(f'"{json_escape(found.group())}')
                cur.pos = after
                return False
        if after + 1 == len(text) and text[after] == "=" and not cur.final:
            return False  # perhaps ``==``
        if after < len(text) and text[after] in "=:" and text[after : after + 2] != "==":
            self._key = found.group()
            cur.pos = after
            self._phase = _ASSIGN
        else:
            self._key = ""
            self._positional(out)
        return True

    def _begin_member(self, out: Out) -> None:
        """``{"key": `` or ``, "key": ``."""
        self._value_start(out)
        if len(self._closers) == 1:
            self._top_key = self._key
            self._keys += 1
        out.put(f'"{json_escape(self._key)}": ')
        self._comma = False

    def _value_start(self, out: Out) -> None:
        if self.empty:
            self.empty = False
            out.put("{")
            self._comma = False
        elif self._comma:
            out.put(", ")
            self._comma = False

    def _positional(self, out: Out) -> None:
        """A value with no key: the schema's next parameter, else its number. A string read as a key is the value."""
        value = self._key if self._as_key else None
        self._key = self._next_name()
        self._begin_member(out)
        self._phase = _VALUE
        if value is not None:
            self._as_key = False
            out.put(f'"{json_escape(value)}"')
            self._phase = _NEXT
            self._comma = True

    def _next_name(self) -> str:
        name = self._tools.positional(self._name, self._keys) if len(self._closers) == 1 else None
        return name if name is not None else str(self._keys)

    def _close(self, cur: Cursor, c: str, out: Caller) -> int:
        """A closing character: ends what it fits, and what is open inside that. MORE: reading goes on."""
        if c not in self._closers:
            if len(self._closers) == 1:
                return BROKEN
            self._begin_drop(cur, out)
            return MORE
        cur.pos += 1
        while self._closers[-1] != c:
            self._pop(out)
        if len(self._closers) > 1:
            self._pop(out)
            return MORE
        if not self.empty:
            out.put("}")
        return DONE

    def _pop(self, out: Out) -> None:
        self._closers.pop()
        closer = self._json.pop()
        out.put(closer)
        self._comma = True
        self._phase = _NEXT

    def _begin_drop(self, cur: Cursor, out: Caller) -> None:
        """The character at the cursor fits nowhere."""
        out.mark(ARGUMENT_TEXT, cur.pos)
        cur.pos += 1
        out.report("text_between_arguments", cur.pos - 1, cur.pos)
        out.mark(DROPPED, cur.pos)
        self._phase = _DROP

    def _drop(self, cur: Cursor, out: Caller) -> bool:
        """Text between values, up to what separates or closes them. False: more text is needed."""
        text = cur.text
        start = cur.pos
        found = _BETWEEN_STOP.search(text, start)
        end = len(text) if found is None else found.start()
        stop = self._stops.near(text, start, end)
        if stop is not None and stop.start() < end:
            end = stop.start()
        elif found is None and not cur.final:
            end = self._stops.tail(text, start)
        if end > start:
            cur.pos = end
            out.report("text_between_arguments", start, end)
            out.mark(DROPPED, end)
        if found is None and stop is None:
            return False
        self._phase = _NEXT
        return True

    # -- values -------------------------------------------------------------------------------------------------

    def _begin_value(self, cur: Cursor, c: str, out: Out) -> bool:
        end = self._quotes.at(cur.text, cur.pos, cur.final)
        if end == LITERAL_MORE:
            return False
        if end >= 0:
            quote = cur.text[cur.pos : end]
            if len(quote) == 1:
                # Three quotes in a row open a long string, two are an empty one.
                following = cur.text[end : end + 2]
                if following == quote * 2:
                    quote = quote * 3
                elif len(following) < 2 and quote.startswith(following[:1]) and not cur.final:
                    return False
            cur.pos += len(quote)
            self._value_start(out)
            self._open_string(quote)
            out.put('"')
        elif c in "[({":
            cur.pos += 1
            self._value_start(out)
            self._closers.append(_CLOSER[c])
            closer = "}" if c == "{" else "]"
            self._json.append(closer)
            out.put("{" if c == "{" else "[")
            self._phase = _KEY if c == "{" else _ITEM
            self._comma = False
        else:
            self._phase = _WORD
            self._word_depth = 0
            self._word_quote = ""
        return True

    def _open_string(self, quote: str) -> None:
        self._quote = Literals({quote: 0})
        self._quote_head = quote[0]
        self._escapes = quote[0] in "'\""
        self._phase = _STRING
        self._string = []

    def _read_string(self, cur: Cursor, out: Out) -> bool:
        """False: more text is needed."""
        text = cur.text
        found = self._quote.find(text, cur.pos)
        while True:
            if found is not None and found.start() < cur.pos:
                found = self._quote.find(text, cur.pos)
            if found is not None:
                end = found.start()
            elif cur.final:
                end = len(text)
            else:
                end = self._quote.tail(text, cur.pos)
            if self._escapes:
                slash = text.find("\\", cur.pos, end)
                if slash >= 0:
                    self._put_string(text[cur.pos : slash], out)
                    cur.pos = slash
                    stop = _escape_end(text, slash)
                    if stop > len(text) and not cur.final:
                        return False
                    self._put_string(_unescape(text[slash:stop]), out)
                    cur.pos = min(stop, len(text))
                    continue
            self._put_string(text[cur.pos : end], out)
            cur.pos = end
            if found is None:
                return False
            cur.pos = found.end()
            if self._as_key:
                self._key = "".join(self._string)
                self._phase = _ASSIGN
                if self._json[-1] == "}" and len(self._closers) > 1:
                    self._as_key = False
            else:
                out.put('"')
                self._comma = True
                self._phase = _NEXT
            return True

    def _put_string(self, piece: str, out: Out) -> None:
        if not piece:
            return
        if self._as_key:
            self._string.append(piece)
        else:
            out.put(json_escape(piece))

    def _read_word(self, cur: Cursor, out: Out) -> int:
        """A number, a constant, or whatever else stands up to the next separator."""
        text = cur.text
        size = len(text)
        while True:
            if self._word_quote:
                end = text.find(self._word_quote, cur.pos)
            else:
                found = _WORD_STOP.search(text, cur.pos)
                end = -1 if found is None else found.start()
            stop = self._stops.near(text, cur.pos, size if end < 0 else end)
            if stop is not None and (end < 0 or stop.start() < end):
                self._add_word(text[cur.pos : stop.start()], out)
                cur.pos = stop.start()
                self._end_word(out)
                return BROKEN
            if end < 0:
                end = size if cur.final else self._stops.tail(text, cur.pos)
                self._add_word(text[cur.pos : end], out)
                cur.pos = end
                return MORE
            c = text[end]
            if self._word_quote:
                self._word_quote = ""
            elif c in "\"'":
                if self._word_depth:
                    self._word_quote = c
            elif c in "([{":
                self._word_depth += 1
            elif self._word_depth:
                if c in ")]}":
                    self._word_depth -= 1
            else:
                self._add_word(text[cur.pos : end], out)
                cur.pos = end
                self._end_word(out)
                self._phase = _NEXT
                return DONE
            self._add_word(text[cur.pos : end + 1], out)
            cur.pos = end + 1

    def _add_word(self, piece: str, out: Out) -> None:
        """More of the word. One that is too long for a number or a constant streams, as a string."""
        if self._word_streams:
            kept = piece.rstrip()
            if kept:
                # Of what has come before only white space is still here.
                out.put(json_escape("".join(self._word) + kept))
                self._word = []
            if len(kept) < len(piece):
                self._word.append(piece[len(kept) :])
            return
        self._word.append(piece)
        self._word_size += len(piece)
        if self._word_size > _MAX_WORD:
            text = "".join(self._word).lstrip()
            self._word = []
            self._word_streams = True
            self._value_start(out)
            out.put('"')
            self._add_word(text, out)

    def cut(self, out: Out) -> None:
        """The output ends inside the arguments: what has come of a key or of a word is put, so far as it goes."""
        if self._phase == _WORD:
            word = "".join(self._word).strip()
            if word and not self._word_streams:
                self._value_start(out)
                out.put(_cut_word(word, self._wants_string()))
            return
        key = "".join(self._string) if self._phase == _STRING else self._key
        if self._phase != _ASSIGN and not (self._phase == _STRING and self._as_key):
            return
        # Between parentheses a string with no key is a value, anywhere else it is a key.
        if len(self._closers) == 1 and self._grammar.open == "(":
            self._key = self._next_name()
            self._begin_member(out)
        else:
            self._value_start(out)
        closing = '"' if self._phase == _ASSIGN else ""
        out.put(f'"{json_escape(key)}{closing}')

    def _end_word(self, out: Out) -> None:
        word = "".join(self._word).strip()
        self._word = []
        self._word_size = 0
        if self._word_streams:
            self._word_streams = False
            self._comma = True
            out.put('"')
            return
        self._value_start(out)
        out.put(_word_json(word, self._wants_string()))
        self._comma = True

    def _wants_string(self) -> bool:
        """Whether the schema wants a string here."""
        param = self._tools.param(self._name, self._top_key) if len(self._closers) == 1 else None
        return param is not None and param.streams


def _cut_word(word: str, as_string: bool) -> str:
    """The JSON of a word that was cut, so far as it goes."""
    for constant, json_word in _WORDS.items():
        if constant.startswith(word):
            return json_word[: len(word)]
    number = not as_string and _NUMBER_PREFIX.fullmatch(word) is not None
    return word if number else f'"{json_escape(word)}'


def _word_json(word: str, as_string: bool) -> str:
    """The JSON of a word: a constant, a number, else a string. A number for a string parameter is a string."""
    constant = _WORDS.get(word)
    if constant is not None:
        return constant
    if not as_string:
        if _NUMBER.fullmatch(word):
            return word
        try:
            if word[:1] in "0123456789+-." and len(word) <= 64:
                number = float(word) if "." in word or ("e" in word.lower() and "x" not in word) else int(word, 0)
                if number == number and number not in (float("inf"), float("-inf")):
                    return json.dumps(number)
        except ValueError:
            pass
    return f'"{json_escape(word)}"'


def _escape_end(text: str, start: int) -> int:
    """Where the escape at ``start`` ends; past the end of the text if it is not all there."""
    kind = text[start + 1 : start + 2]
    return start + 2 + _HEX.get(kind, 0)


def _unescape(escape: str) -> str:
    """The text of one escape; an escape that Python does not have stands for itself."""
    kind = escape[1:2]
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if kind in _HEX:
        try:
            code = int(escape[2:], 16)
            return chr(code) if code <= 0x10FFFF else escape
        except ValueError:
            return escape
    return escape
