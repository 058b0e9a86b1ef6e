"""Arguments in tags: ``<parameter=city>Paris</parameter>`` → ``{"city": "Paris"}``.

Rules of this module:

* A close tag closes a value only if what follows it can follow a close. White space and the longest legal successor
  are held for that, no more than ``MAX_LOOKAHEAD`` characters. Where a token id proves the tag, nothing is held.
* What can only become a string streams. Other values wait for their close, then the schema says what they are.
* A value loses the newlines that its format declares, and no other white space.
"""

from __future__ import annotations

import re
from typing import Final, final

from ...jsontext.coercion import Param
from ...jsontext.lexical import json_escape
from ...jsontext.well_formed import is_deep, is_json
from ...tools import ToolSet
from ..ledger import ARGUMENT_TEXT, DROPPED, MARKUP
from ..lexer import SPACES, WS, Cursor
from ..program import IS_KEY_OPEN, IS_VALUE_OPEN, CallSyntax
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .call_object import CallHandler

MAX_LOOKAHEAD: Final = 256
_MAX_KEY: Final = 1024

_BETWEEN: Final = 0
_KEY: Final = 1
_VALUE_OPEN: Final = 2
_VALUE: Final = 3

_STREAM: Final = 0
_HOLD: Final = 1
_MAYBE_NULL: Final = 2


@final
class TaggedReader:
    """Reads tagged arguments up to, and not including, what closes them."""

    def __init__(self, grammar: CallSyntax, tools: ToolSet, name: str) -> None:
        self._grammar: CallSyntax = grammar
        self._tools: ToolSet = tools
        self._name: str = name
        self._phase: int = _BETWEEN
        self._any: bool = False
        self._dropping: bool = False
        """Whether the text before the cursor belonged to no argument."""
        self._key: str = ""
        self._mode: int = _STREAM
        self._param: Param | None = None
        self._typed: bool = False
        """Whether the model itself said that the value is JSON."""
        self._opened: bool = False
        self._trim: int = 0
        self._newlines: str = ""
        self._parts: list[str] = []
        self._word: str = ""
        """A value that may still be null, as far as it has come."""
        self._gap: bool = False
        """Whether white space stands behind that."""

    def step(self, cur: Cursor, call: CallHandler) -> int:
        while True:
            if self._phase == _VALUE:
                answer = self._read_value(cur, call)
            elif self._phase == _KEY:
                answer = self._read_key(cur, call)
            elif self._phase == _VALUE_OPEN:
                answer = self._read_value_open(cur, call)
            else:
                answer = self._read_between(cur, call)
            if answer != AGAIN:
                return answer

    def begin_key(self) -> None:
        """The cursor stands at the first key; nothing opens it."""
        self._phase = _KEY

    def passes(self, text: str, call: CallHandler) -> bool:
        """Text in the middle of a value that streams."""
        if self._phase != _VALUE or self._mode != _STREAM or self._trim or not self._opened or self._newlines:
            return False
        grammar = self._grammar
        if grammar.unescape_values or (grammar.trim and text[-1] in "\r\n"):
            return False
        for head in grammar.value_heads:
            if head in text:
                return False
        call.put(json_escape(text))
        return True

    def _read_between(self, cur: Cursor, call: CallHandler) -> int:
        text = cur.text
        if not self._skip_spaces(cur, call):
            return MORE
        tags = self._grammar.tags
        end = tags.at(text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end >= 0 and call.authorised(cur.pos, end):
            self._dropping = False
            if tags.tags[text[cur.pos : end]] == IS_KEY_OPEN:
                cur.pos = end
                call.mark(MARKUP, end)
                self._phase = _KEY
                return AGAIN
            if self._any:
                call.put("}")
            return DONE
        next_tag = tags.find(text, cur.pos + 1)
        stop = len(text) if cur.final else tags.tail(text, cur.pos + 1)
        self._drop(cur, stop if next_tag is None else next_tag.start(), call)
        return AGAIN if next_tag is not None else MORE

    def _skip_spaces(self, cur: Cursor, call: CallHandler) -> bool:
        """White space between tags; behind text that is dropped it goes with that. False: nothing follows yet."""
        found = None if self._dropping else SPACES.match(cur.text, cur.pos)
        if found is not None:
            cur.pos = found.end()
            call.mark(MARKUP, cur.pos)
        return cur.pos < len(cur.text)

    def _drop(self, cur: Cursor, stop: int, call: CallHandler) -> None:
        """Text between arguments belongs to none of them."""
        call.report("text_between_arguments", cur.pos, stop)
        cur.pos = stop
        call.mark(DROPPED, stop)
        self._dropping = True

    def _read_key(self, cur: Cursor, call: CallHandler) -> int:
        grammar = self._grammar
        text = cur.text
        found = grammar.key_ends.near(text, cur.pos, cur.pos + _MAX_KEY)
        if found is not None and not cur.final and grammar.key_ends.held(text, cur.pos, found.start()) >= 0:
            found = None
        # What may still become the close is not the key's: it may hold a newline.
        held = len(text) if cur.final else grammar.key_ends.tail(text, cur.pos)
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
        variables = grammar.key.split(raw.strip(WS))
        key = variables.get("key", raw).strip(WS)
        self._key = unescape_xml(key) if grammar.unescape_values else key
        self._mark_key(cur.pos, raw, key, call)
        cur.pos = found.end()
        call.mark(MARKUP, cur.pos)
        self._choose_mode(variables)
        opened = grammar.key_ends.tags[found.group()] == IS_VALUE_OPEN or not grammar.has_value_open
        self._phase = _VALUE if opened else _VALUE_OPEN
        self._opened = False
        self._newlines = ""
        self._word = ""
        self._gap = False
        self._trim = grammar.trim
        self._parts = []
        return AGAIN

    def _mark_key(self, start: int, raw: str, key: str, call: CallHandler) -> None:
        """Accounts for a key and what its pattern brings along. Anything else beside it is dropped."""
        at = max(raw.find(key), 0)
        call.mark(MARKUP, start + at)
        call.mark(ARGUMENT_TEXT, start + at + len(key))
        rest = raw[at + len(key) :].strip(WS)
        pattern = self._grammar.key
        attributes = pattern.literals[1] if len(pattern.literals) > 1 else ""
        if rest and not attributes.startswith(rest) and not rest.startswith(attributes or "\0"):
            call.report("broken_key", start + at + len(key), start + len(raw))
            call.mark(DROPPED, start + len(raw))

    def _key_breaks(self, text: str, start: int, end: int) -> int:
        """Where a key stops being one: at another tag, at the end of its line, or where it gets too long; -1 if it
        goes on to ``end``."""
        tag = self._grammar.tags.pattern.search(text, start, end)
        stop = end if tag is None else tag.start()
        line = text.find("\n", start + len(text[start:stop]) - len(text[start:stop].lstrip(WS)), stop)
        if line >= 0 and (tag is not None or text[line:stop].strip(WS) or stop - start > _MAX_KEY):
            return min(line, start + _MAX_KEY)
        if stop - start > _MAX_KEY:
            return start + _MAX_KEY
        return -1 if tag is None else stop

    def _choose_mode(self, variables: dict[str, str]) -> None:
        """Whether the value streams: the tag's own word on its type comes first, then the schema's."""
        said = variables.get("string", "")
        kind = variables.get("type", "")
        self._param = self._tools.param(self._name, self._key)
        self._typed = False
        if said == "true" or kind == "string":
            self._mode = _STREAM
        elif said == "false" or kind:
            self._mode = _HOLD
            self._typed = True
        elif self._param is None or self._param.streams:
            self._mode = _STREAM
        else:
            self._mode = _MAYBE_NULL if self._param.nullable else _HOLD

    def _read_value_open(self, cur: Cursor, call: CallHandler) -> int:
        grammar = self._grammar
        text = cur.text
        if not self._skip_spaces(cur, call):
            return MORE
        end = grammar.value_opens.at(text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end >= 0:
            self._dropping = False
            cur.pos = end
            call.mark(MARKUP, end)
            self._phase = _VALUE
            return AGAIN
        end = grammar.tags.at(text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end >= 0:
            self._dropping = False
            call.report("argument_without_value", cur.pos, cur.pos)
            self._phase = _BETWEEN
            return AGAIN
        start = cur.pos
        opener = grammar.value_opens.find(text, start + 1)
        tag = grammar.tags.find(text, start + 1)
        stop = len(text)
        if not cur.final:
            stop = min(grammar.value_opens.tail(text, start + 1), grammar.tags.tail(text, start + 1))
        if opener is not None:
            stop = opener.start()
        if tag is not None and tag.start() < stop:
            stop = tag.start()
        self._drop(cur, stop, call)
        return AGAIN if opener is not None or tag is not None else MORE

    # -- the value ----------------------------------------------------------------------------------------------

    def _read_value(self, cur: Cursor, call: CallHandler) -> int:
        grammar = self._grammar
        text = cur.text
        if not self._opened:
            if cur.pos >= len(text):
                return MORE
            self._opened = True
            self._put_key(call)
        if self._trim and not self._trim_front(cur):
            return MORE
        call.mark(MARKUP, cur.pos)
        start = cur.pos
        search = start
        while True:
            found = grammar.value_ends.find(text, search)
            if found is None:
                end = len(text) if cur.final else grammar.value_ends.tail(text, search)
                self._add(text[start:end], call)
                cur.pos = end
                call.mark(ARGUMENT_TEXT, end)
                return MORE
            held = -1 if cur.final else grammar.value_ends.held(text, search, found.start())
            if held >= 0:
                self._add(text[start:held], call)
                cur.pos = held
                call.mark(ARGUMENT_TEXT, held)
                return MORE
            verdict = self._closes(cur, found.start(), found.end(), call)
            if verdict == NO_MATCH:
                search = found.start() + 1
                continue
            self._add(text[start : found.start()], call)
            cur.pos = found.start()
            call.mark(ARGUMENT_TEXT, cur.pos)
            if verdict == MORE:
                return MORE
            cur.pos = found.end()
            call.mark(MARKUP, cur.pos)
            self._close(call)
            self._phase = _BETWEEN
            return AGAIN

    def _closes(self, cur: Cursor, start: int, end: int, call: CallHandler) -> int:
        """Whether the close tag closes: 0, NO_MATCH, or MORE."""
        if not call.authorised(start, end):
            return NO_MATCH
        if call.proven(start, end):
            return 0
        found = SPACES.match(cur.text, end)
        after = end if found is None else found.end()
        if after - end > MAX_LOOKAHEAD:
            return NO_MATCH
        if after >= len(cur.text):
            return 0 if cur.final else MORE
        verdict = self._grammar.value_successors.at(cur.text, after, cur.final)
        if verdict == NO_MATCH and cur.final and self._grammar.value_successors.undecided(cur.text, after):
            return 0
        return 0 if verdict >= 0 else verdict

    def _trim_front(self, cur: Cursor) -> bool:
        """Takes the declared newlines off the front. False: more text is needed."""
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

    def _put_key(self, call: CallHandler) -> None:
        call.put(f'{", " if self._any else "{"}"{json_escape(self._key)}": ')
        self._any = True
        if self._mode == _STREAM:
            call.put('"')

    def _add(self, piece: str, call: CallHandler) -> None:
        """A piece of the value, without the newlines at its end that may belong to the close tag."""
        if not piece:
            return
        limit = self._grammar.trim
        if limit:
            piece = self._newlines + piece
            end = len(piece)
            while limit and end and piece[end - 1] == "\n":
                end -= 2 if piece[end - 2 : end] == "\r\n" else 1
                limit -= 1
            if limit and end and piece[end - 1] == "\r":
                end -= 1
            self._newlines = piece[end:]
            piece = piece[:end]
        if piece:
            self._text(piece, call)

    def _text(self, piece: str, call: CallHandler) -> None:
        if self._mode == _STREAM and not self._grammar.unescape_values:
            call.put(json_escape(piece))
            return
        self._parts.append(piece)
        if self._mode == _MAYBE_NULL:
            if not self._may_be_null(piece):
                self._mode = _STREAM
                text = "".join(self._parts)
                self._parts = []
                call.put('"' + json_escape(text))
        elif self._mode == _STREAM:
            text = "".join(self._parts)
            cut = _ENTITY_BEGUN.search(text)
            end = len(text) if cut is None else cut.start()
            self._parts = [text[end:]] if end < len(text) else []
            if end:
                call.put(json_escape(unescape_xml(text[:end])))

    def _may_be_null(self, piece: str) -> bool:
        """Whether the value, this piece of it added, may still be null; what came before is not looked at again."""
        text = piece if self._word else piece.lstrip(WS)
        kept = text.rstrip(WS)
        if not kept:
            self._gap = self._gap or bool(self._word and text)
            return True
        self._word += kept
        if self._gap:
            return False
        self._gap = len(kept) < len(text)
        return any(word.startswith(self._word) for word in ("null", "None"))

    def _close(self, call: CallHandler) -> None:
        self._newlines = ""
        text = "".join(self._parts)
        if self._grammar.unescape_values:
            text = unescape_xml(text)
        self._parts = []
        if self._mode == _STREAM:
            call.put(json_escape(text) + '"')
        elif self._typed:
            call.put(_as_json(text))
        else:
            assert self._param is not None
            call.put(self._param.encode(text))

    def cut(self, cur: Cursor, call: CallHandler) -> None:
        """The output ends inside the arguments: what has come of a key or value is put, so far as it goes."""
        if self._phase == _KEY:
            raw = cur.text[cur.pos :]
            key = self._grammar.key.split(raw.strip(WS)).get("key", "")
            call.put(f'{", " if self._any else "{"}"{json_escape(key)}')
            self._mark_key(cur.pos, raw, key, call)
            cur.pos = len(cur.text)
            return
        if self._phase == _VALUE_OPEN or (self._phase == _VALUE and not self._opened):
            self._put_key(call)
            return
        if self._phase != _VALUE:
            return
        text = "".join(self._parts)
        self._parts = []
        if self._mode == _STREAM:
            if self._newlines or text:
                call.put(json_escape(text + self._newlines))
        elif text:
            stripped = text.strip(WS)
            call.put(stripped if stripped[:1] in '{["-0123456789tfn' else '"' + json_escape(text))
        self._newlines = ""


_ENTITY: Final = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_ENTITY_BEGUN: Final = re.compile(r"&[#0-9A-Za-z]{0,8}\Z")
_CHARACTERS: Final = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}


def unescape_xml(text: str) -> str:
    """Text with XML's five entities, and numbered ones, as what they stand for. HTML's are text."""
    return _ENTITY.sub(_entity, text) if "&" in text else text


def masked_xml(text: str) -> str:
    """The text with a letter for each character of an entity: what is left of it stands for itself."""
    return _ENTITY.sub(lambda found: "x" * len(found.group()), text) if "&" in text else text


def _entity(found: re.Match[str]) -> str:
    word = found.group()
    if word[1] != "#":
        return _CHARACTERS[word]
    code = int(word[3:-1], 16) if word[2] in "xX" else int(word[2:-1])
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF else word


def _as_json(text: str) -> str:
    """Text that the model says is JSON: as written if it is, else a string."""
    return text.strip(WS) if not is_deep(text) and is_json(text) else f'"{json_escape(text)}"'
