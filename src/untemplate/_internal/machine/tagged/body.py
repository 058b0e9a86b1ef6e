"""Calls with arguments in tags, after their name."""

from __future__ import annotations

import re
from typing import Final, final

from .. import tags
from ..arguments.base import ArgumentReader, CallBeginning
from ..call_syntax import Body
from ..json.reader import JsonArguments
from ..ledger import MARKUP
from ..lexer import Cursor, Literals
from ..names import MAX_NAME
from ..signals import AGAIN, DONE, NO_MATCH
from .program import TaggedSyntax
from .reader import TaggedReader

_OBJECT: Final = re.compile(r"\{[ \t\r\n]*+[\"}]")
_OBJECT_BEGUN: Final = re.compile(r"\{[ \t\r\n]*+\Z")


@final
class TaggedBody(Body):
    """Arguments in tags."""

    kind = "a name, then tagged arguments"

    def __init__(self, syntax: TaggedSyntax) -> None:
        self.syntax: TaggedSyntax = syntax

    def begin(self, cur: Cursor, call: CallBeginning) -> int:
        found = self.syntax.fast.key.match(cur.text, cur.pos)
        if found is not None and call.may_be_marker(found.start("opener"), found.end("opener")):
            call.mark(MARKUP, found.start("opener"))
            call.commit_once()
            reader = self._reader(call)
            reader.read_regular_key(cur, found, call)
            return call.read_with(reader)
        answer = call.at_close(cur, self.syntax.tags)
        if answer == DONE:
            return call.read_with(self._reader(call))
        if answer == AGAIN and call.opened and cur.text[cur.pos] == "{":
            return self._begin_object(cur, call)
        return NO_MATCH if answer == AGAIN else answer

    def _begin_object(self, cur: Cursor, call: CallBeginning) -> int:
        """Begin arguments that are a JSON object in place of tags, as its first two characters show."""
        found = _OBJECT.match(cur.text, cur.pos, cur.pos + MAX_NAME)
        if found is None:
            return call.more_if(_OBJECT_BEGUN, cur.pos)
        call.commit_once()
        call.report("variant_spelling", cur.pos, cur.pos + 1)
        return call.read_with(JsonArguments(self.syntax.frame.stops))

    def opening(self, name_ends: Literals) -> str:
        variants = self.syntax.frame.variants
        closes = [text for text, tag in name_ends.tags.items() if tag == tags.NAME_CLOSE and text not in variants]
        begun = "|".join(map(re.escape, sorted(self.syntax.tags.prefixes)))
        return rf"(?:{'|'.join(map(re.escape, closes))})[ \t\r\n]*+(?:{begun})?\Z" if closes else ""

    def at_key(self, call: CallBeginning) -> ArgumentReader | None:
        reader = self._reader(call)
        reader.begin_key()
        return reader

    def _reader(self, call: CallBeginning) -> TaggedReader:
        syntax = self.syntax
        frame = syntax.frame
        outermost = tags.CALL_CLOSE
        if frame.section_closes and call.in_section:
            outermost = tags.SECTION_CLOSE
        elif not frame.closes or (frame.opens and not call.marked):
            outermost = frame.innermost
        before = call.reader_before
        reader = before if isinstance(before, TaggedReader) and before.syntax is syntax else None
        if reader is None:
            reader = call.reader_before = TaggedReader(syntax, call.tools, call.max_held)
        reader.begin(call.name, outermost)
        return reader
