"""A filter that keeps streamed arguments valid JSON, for clients that fail on anything else.

* The sent text is always a prefix of a JSON object. Text is buffered while the next character decides about it: a
  comma, the last bracket, and a number, word or escape that may continue.
* Arguments that turn out not to be JSON are closed at that place. A further member of the object, ``INVALID_JSON``,
  holds their whole text, as in `arguments_object`.

Source: anthropic-python's ``accumulate_event``, which raises in the middle of a stream.
"""

from __future__ import annotations

import json
import re
from typing import Final

from untemplate._internal.jsontext.lexical import CONSTANT, ESCAPE_BEGUN, NUMBER, NUMBER_BEGUN, PAIRED_ESCAPE
from untemplate._internal.jsontext.scanner import (
    AT_STRING,
    AT_WORD,
    BROKEN,
    COLON,
    ENDED,
    FIRST_KEY,
    KEY,
    VALUE,
    JsonScanner,
)

from .arguments import INVALID_JSON

_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]+')
_SPACES: Final = " \t\n\r"
_SCALAR: Final = re.compile(r"[-+.0-9A-Za-z]*")
_RIGHT_SCALAR: Final = re.compile(f"{CONSTANT}|{NUMBER}")
_SCALAR_BEGUN: Final = re.compile(f"t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?|{NUMBER_BEGUN}")
_MAX_BUFFER: Final = 4096


class ArgumentsGuard:
    """Filters the arguments of one call."""

    __slots__ = ("_at", "_buffer", "_closing", "_in_key", "_in_string", "_raw", "_scanner")

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._scanner = JsonScanner(strict=True)
        self._buffer = ""
        """Buffered text: a comma, a scalar or an escape that may continue, the last bracket, spaces before them."""
        self._at = 0
        """The place in the buffer up to which it was scanned."""
        self._in_string = False
        self._in_key: bool | None = None
        """True if the last string is a key; ``None`` before the first one."""
        self._closing: str | None = None
        """After broken JSON, the text that leads to the further member; ``None`` before."""

    def feed(self, text: str) -> str:
        """Return the text that can be sent now."""
        self._raw.append(text)
        if self._in_string and not self._buffer and _PLAIN.fullmatch(text):
            return text
        return self._scan(self._buffer + text) if self._closing is None else ""

    def finish(self) -> str:
        """Return the rest when the call has ended. Cut arguments stay a prefix."""
        if self._closing is None:
            return self._buffer
        whole = json.dumps("".join(self._raw), ensure_ascii=False)
        return f'{self._closing}"{INVALID_JSON}":{whole}}}'

    def _scan(self, text: str) -> str:
        """Scan new text after the buffered one. Return the part that can be sent, and buffer the rest."""
        scanner, i, sent = self._scanner, self._at, 0
        if scanner.state == VALUE and not scanner.closers and text.lstrip(_SPACES)[:1] not in ("", "{"):
            return self._break(text, 0)
        while i < len(text):
            if self._in_string or scanner.state == AT_WORD:
                end = self._string(text, i) if self._in_string else _scalar(text, i)
                if end is None:
                    break
                if end < 0:
                    return self._break(text, sent)
                if not self._in_string:
                    scanner.pass_token()
                i = sent = end
                continue
            start, i = i, scanner.scan(text, i)
            if scanner.state == AT_STRING:
                self._in_string, self._in_key = True, scanner.before in (KEY, FIRST_KEY)
                i = sent = i + 1
                continue
            kept = text[start:i].rstrip(_SPACES)
            if kept.endswith(",") or scanner.state == ENDED:
                kept = kept[:-1].rstrip(_SPACES)
            sent = start + len(kept) if kept else sent
            if scanner.state == BROKEN:
                return self._break(text, sent)
        if len(text) - sent > _MAX_BUFFER:
            return self._break(text, sent)
        self._buffer, self._at = text[sent:], i - sent
        return text[:sent]

    def _string(self, text: str, i: int) -> int | None:
        """Return the end of the next part of a string; ``None`` for an escape that may continue, -1 if it is wrong."""
        if found := _PLAIN.match(text, i) or PAIRED_ESCAPE.match(text, i):
            return found.end()
        if text[i] == '"':
            self._in_string = False
            return i + 1
        return None if ESCAPE_BEGUN.fullmatch(text, i) else -1

    def _break(self, text: str, sent: int) -> str:
        """Close what is open after the sent part of a text."""
        scanner, out = self._scanner, ""
        state = scanner.before if scanner.state in (AT_WORD, BROKEN) else scanner.state
        if self._in_string:
            out = '":null' if self._in_key else '"'
        elif state == COLON:
            out = ":null"
        elif state == VALUE and scanner.closers[-1:] == b"}":  # in a list it follows a comma, which was not sent
            out = "null"
        if not scanner.closers and state != ENDED:
            out = "{"
        elif self._in_key is not None:
            out += scanner.closers[:0:-1].decode() + ","
        self._closing = out
        self._in_string = False
        return text[:sent]


def _scalar(text: str, i: int) -> int | None:
    """Return the end of a number or constant; ``None`` if it may continue, -1 if it is wrong."""
    end = _SCALAR.match(text, i).end()  # type: ignore[union-attr] # it matches no text, too
    at_end = end == len(text)
    if not (_SCALAR_BEGUN if at_end else _RIGHT_SCALAR).fullmatch(text, i, end):
        return -1
    return None if at_end else end
