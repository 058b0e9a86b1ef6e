"""JSON as the model writes it: passed through to the byte, or decoded from a string."""

from __future__ import annotations

from typing import Final, final

from ...jsontext.lexical import ENCODED, STRING_STOP, escape_end, unescape
from ...jsontext.scanner import (
    ANYTHING,
    AT_STRING,
    AT_WORD,
    BRACE,
    BROKEN,
    ENDED,
    IN_ESCAPE,
    IN_STRING,
    IN_WORD,
    VALUE,
    JsonScanner,
    flat_text,
)
from ...jsontext.well_formed import LOOSE, STANDARD
from ..arguments.base import ArgumentReader, ArgumentWriter, CallHandler
from ..diagnostics import DiagnosticCode
from ..ledger import ARGUMENT_TEXT
from ..lexer import NO_LITERALS, Cursor, Literals
from ..signals import DONE, MORE, NO_MATCH

_COMMAS: Final = frozenset({",", ", ", ":", ": "})
_KEEPS_STATE: Final = {ANYTHING: " ", IN_WORD: "."}
_LONG: Final = 64
"""Characters of a string that are worth decoding at once. It changes no result."""


def whole_object(cur: Cursor, start: int) -> int:
    """Return where an object that has arrived whole ends, found in C; ``start`` if it has not, or is not valid."""
    text = cur.text
    if text[start : start + 1] != "{" or not cur.may_close_after(start):
        return start
    try:
        _, end = STANDARD.raw_decode(text, start)
    except (ValueError, RecursionError):
        cur.misreadings += 1
        return start
    return int(end)


@final
class JsonReader(JsonScanner):
    """Passes one JSON value through, whatever it holds. ``stops`` are literals that end it outside strings."""

    def __init__(self, stops: Literals = NO_LITERALS) -> None:
        super().__init__(strict=False, word_heads=stops.word_heads)
        self.stops: Literals = stops
        self.valid: bool = False
        """True if the value is known to be valid JSON."""
        self._flat = flat_text(stops.word_heads)
        self._counting: tuple[int, ...] = (IN_WORD, ANYTHING) if stops.word_goes_on is not None else ()
        """States in which a number may go on; none if a literal begins like a number."""

    def step(self, cur: Cursor, out: ArgumentWriter) -> int:
        text = cur.text
        start = cur.pos
        if self.state == VALUE and text[start : start + 1] == "{":
            end = whole_object(cur, start)
            if end > start:
                out.put(text[start:end])
                cur.pos = end
                self.valid = True
                return DONE
            end = len(text) if self._begin_flat(text, start) else self.scan(text, start)
        else:
            end = self._end_flat(text, start) or self.scan(text, start)
        state = self.state
        if state == AT_WORD:
            end = self._read_words(cur, end)
            state = self.state
        if end > start:
            out.put(text[start:end])
            cur.pos = end
        if state < AT_STRING:
            return MORE
        return DONE if state == ENDED else NO_MATCH

    def _begin_flat(self, text: str, start: int) -> bool:
        """Read the beginning of an object at once, if nothing is open in it."""
        pattern, states, _ = self._flat[ANYTHING]
        found = pattern.match(text, start + 1)
        if found is None:
            return False
        self.closers.append(BRACE)
        self.state = states[found.lastindex or 0]
        return True

    def _end_flat(self, text: str, start: int) -> int:
        """Read the end of an object at once, if nothing is open in it, and return where it ends; 0 if not."""
        if len(self.closers) != 1 or self.closers[0] != BRACE or self.state not in self._flat:
            return 0
        found = self._flat[self.state][2].match(text, start)
        if found is None:
            return 0
        self.state = ENDED
        self.closers.pop()
        return found.end()

    def _read_words(self, cur: Cursor, end: int) -> int:
        """Go on in front of what may be a literal that ends the value, and return where reading stopped."""
        while self.state == AT_WORD:
            stop = self.stops.at(cur.text, end, cur.final)
            if stop != NO_MATCH:
                self.state = self.before if stop == MORE else BROKEN
                break
            self.state = IN_WORD
            end = self.scan(cur.text, end + 1)
        return end

    def passed(self, text: str) -> str | None:
        """Return text that does not end the value; None if it may, and nothing has happened."""
        state = self.state
        if state == IN_STRING:
            if '"' not in text:
                if "\\" not in text:
                    return text
                if len(text) == 1:
                    self.state = IN_ESCAPE
                    return text
        elif state == IN_ESCAPE:
            if text.find('"', 1) < 0 and text.find("\\", 1) < 0:
                self.state = IN_STRING
                return text
        elif self.closers and state in self._counting:
            if text.isdigit():
                self.state = IN_WORD
                return text
            if text in _COMMAS:
                self.state = ANYTHING
                return text
            if text == _KEEPS_STATE[state]:
                return text
        return self._scanned(text, state)

    def _scanned(self, text: str, state: int) -> str | None:
        """Return text that does not end the value, from this state on; None if it may, and nothing has happened."""
        if self.closers and state in self._flat:
            pattern, states, _ = self._flat[state]
            found = pattern.match(text)
            if found is not None:
                self.state = states[found.lastindex or 0]
                return text
        if state == VALUE or "}" in text or "]" in text:
            return None
        depth = len(self.closers)
        if self.scan(text, 0) == len(text) and self.state < AT_STRING:
            return text
        self.state = state
        del self.closers[depth:]
        return None


@final
class EncodedJsonReader:
    """Decodes a JSON string that holds the JSON text wanted: ``"{\\"a\\": 1}"`` → ``{"a": 1}``. It begins after the
    opening quote."""

    def step(self, cur: Cursor, out: ArgumentWriter) -> int:
        text = cur.text
        i = cur.pos
        size = len(text)
        parts: list[str] = []
        answer = MORE
        if size - i > _LONG:
            run = ENCODED.match(text, i)
            assert run is not None
            parts.append(str(LOOSE.raw_decode(f'"{run.group()}"')[0]))
            i = run.end()
        while i < size:
            found = STRING_STOP.search(text, i)
            stop = size if found is None else found.start()
            if stop > i:
                parts.append(text[i:stop])
                i = stop
            if found is None:
                break
            if text[stop] == '"':
                i = stop + 1
                answer = DONE
                break
            end = escape_end(text, stop)
            if end > size:
                if cur.final:
                    parts.append(text[stop:])
                    i = size
                break
            parts.append(unescape(text[stop:end]))
            i = end
        cur.pos = i
        decoded = "".join(parts)
        if decoded:
            out.put(decoded)
        return answer


@final
class JsonArguments(ArgumentReader):
    """JSON arguments after a name."""

    broken: DiagnosticCode = "broken_json"

    def __init__(self, stops: Literals) -> None:
        self._json: JsonReader = JsonReader(stops)

    def step(self, cur: Cursor, call: CallHandler) -> int:
        answer = self._json.step(cur, call)
        call.mark(ARGUMENT_TEXT, cur.pos)
        self.valid = self._json.valid
        return answer

    def look_ahead(self, cur: Cursor) -> None:
        cur.passed = self._json.passed
        cur.stops = NO_LITERALS


@final
class EncodedArguments(ArgumentReader):
    """JSON arguments in a string. Their text is not checked."""

    def __init__(self) -> None:
        self._text: EncodedJsonReader = EncodedJsonReader()
        self.valid = False

    def step(self, cur: Cursor, call: CallHandler) -> int:
        answer = self._text.step(cur, call)
        call.mark(ARGUMENT_TEXT, cur.pos)
        return answer
