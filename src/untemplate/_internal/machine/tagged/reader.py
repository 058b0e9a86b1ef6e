"""Arguments in tags: ``<parameter=city>Paris</parameter>`` → ``{"city": "Paris"}``.

* A close tag closes a value only if the text after it may follow a close (``ends``). If a token id proves the
  tag, nothing is buffered.
* A value whose opener or close is missing, doubled or misspelled is still read, and reported.
* Values that can only become a string stream. Others are converted by their schema when they close.
* A value loses the newlines that its format declares, and no other white space. Without its close it also loses the
  newline that the format writes after a close.
* The markup between the values is read here, the values in ``value_reader``.
"""

from __future__ import annotations

import re
from typing import Final, final

from ....tools import ToolSet
from ...jsontext.lexical import json_escape
from .. import tags
from ..arguments.base import ArgumentReader, CallHandler
from ..arguments.lookahead import MAX_LOOKAHEAD
from ..arguments.xml_text import unescape_xml
from ..ledger import ARGUMENT_TEXT, DROPPED, MARKUP
from ..lexer import SPACES, WS, Cursor, Literals
from ..names import MAX_KEY
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .key_text import key_breaks, mark_key, place_of, plain_key
from .program import TaggedSyntax
from .value_reader import ValueReader

_MAX_TYPE: Final = 64
"""Most characters of a value's type. JSON's types have up to 7; a longer word is dropped (``broken_key``)."""

_BETWEEN: Final = 0
_KEY: Final = 1
_VALUE_OPEN: Final = 2
_VALUE: Final = 3
_TYPE: Final = 4
PHASES: Final = ("between arguments", "key", "opener of a value", "value", "type of a value")
"""The phases by number."""
_AFTER_KEY: Final = {tags.KEY_CLOSE: _VALUE_OPEN, tags.TYPE_OPEN: _TYPE, tags.VALUE_OPEN: _VALUE}
"""What is read after a key, by the literal that ends it, where values have openers."""


@final
class TaggedReader(ArgumentReader):
    """Reads tagged arguments up to what closes them."""

    def __init__(self, syntax: TaggedSyntax, tools: ToolSet, max_held: int) -> None:
        self.syntax: TaggedSyntax = syntax
        self._tools: ToolSet = tools
        self._name: str = ""
        self._values: ValueReader = ValueReader(syntax, tools, max_held)
        self._phase: int = _BETWEEN
        self._dropping: bool = False
        """True if the text before the cursor was dropped. So is white space after it."""
        self._key: str = ""
        self._key_start: int = 0
        """The place of the key in the output."""

    def begin(self, name: str, outermost: int) -> None:
        """Begin the arguments of a call. ``outermost``: the kind of the close that ends the calls (tags.ARGUMENTS_CLOSE
        and so on)."""
        self._name = name
        self._values.begin_call(name, outermost)
        self._phase = _BETWEEN
        self._dropping = False

    def begin_key(self) -> None:
        """Start at a key whose opener is missing."""
        self._phase = _KEY

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
                if self._values.pending:
                    self._values.put_pending(call)
                return answer

    def look_ahead(self, cur: Cursor) -> None:
        phase = self._phase
        if phase == _VALUE:
            self._values.look_ahead(cur)
        elif phase == _KEY:
            cur.goes_on = self.syntax.fast.key_goes_on
        elif phase == _VALUE_OPEN:
            cur.goes_on = self.syntax.value_opens.goes_on_after_spaces
        elif phase == _BETWEEN:
            cur.goes_on = self.syntax.tags.goes_on_after_spaces

    def pass_on(self, text: str) -> int:
        return self._values.pass_on(text)

    def _read_value(self, cur: Cursor, call: CallHandler) -> int:
        answer = self._values.read(cur, call)
        if answer != DONE:
            return answer
        self._phase = _BETWEEN
        following = self._values.ends.following
        return AGAIN if following is None else self._follow(cur, following, call)

    # -- what is written as the renderer writes it --------------------------------------------------------------

    def read_regular_key(self, cur: Cursor, found: re.Match[str], call: CallHandler) -> int:
        """Read a match of ``FastTags.key``: a key's opener, and the key if it is whole."""
        key: str | None = found["key"]
        if key is None:
            cur.pos = found.end("opener")
            call.mark(MARKUP, cur.pos)
            self._phase = _KEY
            return AGAIN
        if call.records:
            call.mark(MARKUP, found.start("key"))
            call.mark(ARGUMENT_TEXT, found.end("key"))
        self._begin_value(key, found.start("key"), found["string"], found["type"], call)
        cur.pos = found.end()
        call.mark(MARKUP, cur.pos)
        self._values.skip_to(cur, found.end("before_value"), cur.pos)
        return AGAIN

    def _follow(self, cur: Cursor, found: re.Match[str], call: CallHandler) -> int:
        """Read what follows a value, as a match of ``FastTags.ends`` has found it."""
        if found["opener"] is not None:
            return self.read_regular_key(cur, found, call)
        if found["chain"] is None:
            call.mark(MARKUP, cur.pos)
            return AGAIN
        cur.pos = found.start("chain")
        call.mark(MARKUP, cur.pos)
        self._values.pending.append("}")
        return DONE

    # -- between values -----------------------------------------------------------------------------------------

    def _read_between(self, cur: Cursor, call: CallHandler) -> int:
        if not self._dropping:
            found = self.syntax.fast.key.match(cur.text, cur.pos)
            if found is not None and call.may_be_marker(found.start("opener"), found.end("opener")):
                return self.read_regular_key(cur, found, call)
        if not self._skip_spaces(cur, call):
            return MORE
        end = self.syntax.tags.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        if end >= 0 and call.may_be_marker(cur.pos, end):
            return self._read_tag(cur, end, call)
        wrong = NO_MATCH if self._dropping or not self._values.has_begun else self._wrong_tag(cur, call)
        return self._drop_to_tag(cur, call) if wrong == NO_MATCH else wrong

    def _read_tag(self, cur: Cursor, end: int, call: CallHandler) -> int:
        """Read the opener of a key, or end the arguments in front of another tag."""
        frame = self.syntax.frame
        tag = self.syntax.tags.tags[cur.text[cur.pos : end]]
        self._dropping = False
        if tag == tags.KEY_OPEN:
            self._take_marker(cur, end, call)
            self._phase = _KEY
            return AGAIN
        if tag in tags.OPENERS and (frame.innermost == tags.ARGUMENTS_CLOSE or frame.closes):
            call.report("missing_close", cur.pos, cur.pos)
        if self._values.has_begun:
            self._values.pending.append("}")
        return DONE

    def _drop_to_tag(self, cur: Cursor, call: CallHandler) -> int:
        """Drop text up to the next tag. Return AGAIN, or MORE without one."""
        between = self.syntax.tags
        tag = between.pattern.search(cur.text, cur.pos + 1)
        if tag is not None:
            self._drop(cur, tag.start(), call)
            return AGAIN
        self._drop(cur, len(cur.text) if cur.final else between.undecided_from(cur.text, cur.pos + 1), call)
        return MORE

    def _take_marker(self, cur: Cursor, end: int, call: CallHandler) -> None:
        """Read a marker up to ``end``."""
        if self.syntax.frame.variants and cur.text[cur.pos : end] in self.syntax.frame.variants:
            call.report("variant_spelling", cur.pos, end)
        cur.pos = end
        call.mark(MARKUP, end)

    def _wrong_tag(self, cur: Cursor, call: CallHandler) -> int:
        """Drop a second close of a value, or the damaged opener of a declared key. Return AGAIN, NO_MATCH or MORE."""
        end = self.syntax.value_ends.at(cur.text, cur.pos, cur.final)
        if end >= 0:
            call.drop_to("doubled_close", cur, end)
            return AGAIN
        if end == NO_MATCH:
            end = self._values.ends.keys.damaged_key(self.syntax, cur, cur.pos)
        if end < 0:
            return end
        call.drop_to("broken_key", cur, end)
        self._phase = _KEY
        return AGAIN

    def _skip_spaces(self, cur: Cursor, call: CallHandler) -> bool:
        """Read white space between tags; after dropped text it is dropped too. False if nothing follows yet."""
        found = None if self._dropping else SPACES.match(cur.text, cur.pos)
        if found is not None:
            cur.pos = found.end()
            call.mark(MARKUP, cur.pos)
        return cur.pos < len(cur.text)

    def _drop(self, cur: Cursor, stop: int, call: CallHandler) -> None:
        """Drop text between arguments, up to ``stop``."""
        call.drop_to("text_between_arguments", cur, stop)
        self._dropping = True

    def _read_key(self, cur: Cursor, call: CallHandler) -> int:
        syntax = self.syntax
        text = cur.text
        if cur.pos >= len(text) and not cur.final:
            return MORE
        regular = syntax.fast.name.match(text, cur.pos)
        if regular is not None:
            return self.read_regular_key(cur, regular, call)
        found = syntax.key_ends.first(text, cur.pos, cur.pos + MAX_KEY, cur.final)
        # Text that may still become the close is not part of the key: it may contain a newline.
        held = len(text) if cur.final else syntax.key_ends.undecided_from(text, cur.pos)
        end = found.start() if found is not None else min(held, cur.pos + MAX_KEY + 1)
        broken = key_breaks(syntax.tags, text, cur.pos, end)
        if broken >= 0:
            call.drop_to("broken_key", cur, broken)
            self._phase = _BETWEEN
            return AGAIN
        if found is None:
            return MORE
        return self._read_whole_key(cur, text[cur.pos : end], found.group(), call)

    def _read_whole_key(self, cur: Cursor, raw: str, close: str, call: CallHandler) -> int:
        """Read a key, of which ``raw`` is all text up to its close."""
        syntax = self.syntax
        end = cur.pos + len(raw)
        tag = syntax.key_ends.tags[close]
        variables = syntax.key.split(raw.strip(WS))
        key = variables.get("key", raw).strip(WS)
        if tag != tags.KEY_CLOSE:
            key = self._values.ends.keys.whole_name(key)
            call.report("missing_close", end, end)
        at = place_of(key, raw, syntax.key)
        plain = plain_key(self._values.ends.keys, key, cur.pos + at, call)
        if plain != key and key.endswith(plain):
            at += len(key) - len(plain)
        key = unescape_xml(plain) if syntax.escape_of_keys == "xml" else plain
        self._key_start = mark_key(syntax.key, cur.pos, raw, at, at + len(plain), call)
        start, cur.pos = cur.pos + at, end
        self._take_marker(cur, end + len(close), call)
        self._begin_value(key, start, variables.get("string", ""), variables.get("type", ""), call)
        self._phase = _AFTER_KEY[tag] if syntax.has_value_open else _VALUE
        return AGAIN

    def _begin_value(self, key: str, start: int, is_string: str, kind: str, call: CallHandler) -> None:
        """Begin the value of a key, which begins at ``start``. The key's attributes are ``is_string`` and ``kind``."""
        self._key = key
        self._values.begin(key, self._tools.param(self._name, key), is_string, kind)
        if self._values.ends.keys.joins_two(key):
            call.report("broken_key", start, start + len(key))
        self._phase = _VALUE

    def _read_value_open(self, cur: Cursor, call: CallHandler) -> int:
        syntax = self.syntax
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
        ends = self.syntax.type_ends
        found = ends.near(cur.text, cur.pos, cur.pos + _MAX_TYPE)
        if found is None and not cur.final and len(cur.text) - cur.pos <= _MAX_TYPE + ends.longest:
            return MORE
        end = min(len(cur.text), cur.pos + _MAX_TYPE) if found is None else found.start()
        word = cur.text[cur.pos : end].strip(WS)
        fits = word.isalpha() and word.isascii()
        closed = _end_of_type(ends, found)
        if not fits or (found is not None and closed < 0):
            call.report("broken_key", cur.pos, end)
        self._values.text.begin(self._tools.param(self._name, self._key), "", word)
        call.mark(MARKUP if fits else DROPPED, end)
        cur.pos = max(end, closed)
        call.mark(MARKUP, cur.pos)
        self._phase = _VALUE_OPEN
        return AGAIN

    def _read_unopened(self, cur: Cursor, call: CallHandler) -> int:
        """Read text in the place of a value's opener: a value, or text that is dropped before an opener or a tag."""
        syntax = self.syntax
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

    def put_cut(self, cur: Cursor, call: CallHandler) -> None:
        """Put the beginning of the key or value in which the output was cut."""
        if self._phase == _KEY:
            raw = cur.text[cur.pos :]
            key = self.syntax.key.split(raw.strip(WS)).get("key", "")
            call.put(f'{self._values.before}"{json_escape(key)}')
            at = place_of(key, raw, self.syntax.key)
            mark_key(self.syntax.key, cur.pos, raw, at, at + len(key), call)
            cur.pos = len(cur.text)
        elif self._phase != _BETWEEN:
            self._values.put_cut(cur, call)


def _end_of_type(ends: Literals, found: re.Match[str] | None) -> int:
    """Return where the close of a value's type ends; -1 if another literal, or none, was found."""
    return found.end() if found is not None and ends.tags[found.group()] == tags.KEY_CLOSE else -1
