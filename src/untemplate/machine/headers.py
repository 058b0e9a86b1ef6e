"""Reads the headers of messages: who a message is for, or which channel it is of.

Rules of this module:

* A header is short. One that is too long, or that holds what no header holds, is text, whole.
* ``start`` and ``step`` answer who reads on; what a message means for the output is the host's to do.
"""

from __future__ import annotations

from typing import Final, final

from .calls import CallReader
from .host import CALL, HEADER, HEADER_START, TEXT, WAIT, Host
from .ledger import MARKUP, NAME_TEXT
from .lexer import MORE as LITERAL_MORE
from .lexer import WS
from .names import MAX_NAME
from .program import H_BODY, H_CLOSE, H_OPEN, HeaderGrammar

# What else start() and step() answer, beside who reads on (host.py has the numbers below 10).
MESSAGE: Final = 10
"""The message of a channel begins at ``end``; ``is_reasoning`` says of which kind."""
NO_HEADER: Final = 11
"""It is text. Free text goes on in the state it was in, or in content if ``in_content``."""
NO_TOOLS: Final = 12
"""It is a call's, and no tools are offered: all of it is content."""


@final
class HeaderReader:
    """Reads the headers of one output."""

    def __init__(self, host: Host, calls: CallReader) -> None:
        self.host: Host = host
        self.end: int = 0
        self.is_reasoning: bool = False
        self.in_content: bool = False
        self._calls: CallReader = calls

    def start(self, first: bool) -> int:
        """Where a header may begin. ``first``: nothing comes before it but white space; no call either."""
        host = self.host
        cur = host.cur
        header = self._grammar()
        end = cur.spaces()
        if end > cur.pos:
            host.pend(end)
        if cur.pos >= len(cur.text):
            return WAIT
        end = header.literals.at(cur.text, cur.pos, cur.final)
        if end == LITERAL_MORE:
            return WAIT
        if end >= 0 and (not host.checks or host.authorised(cur.pos, end)):
            tag = header.literals.tags[cur.text[cur.pos : end]]
            if tag == H_CLOSE:
                host.unpend()
                cur.pos = end
                host.mark(MARKUP, end)
                return HEADER_START
            host.speculate(end - cur.pos)
            if tag == H_OPEN:
                cur.pos = end
            elif tag == H_BODY:
                return self._message(header, "", end)
            return HEADER
        if header.bare and first:
            host.speculate(1)
            return HEADER
        return TEXT

    def step(self) -> int:
        """Reads a header up to its end."""
        host = self.host
        cur = host.cur
        header = self._grammar()
        text = cur.text
        found = header.body.near(text, cur.pos, cur.pos + MAX_NAME)
        end = found.start() if found is not None else min(len(text), cur.pos + MAX_NAME + 1)
        piece = text[cur.pos : end]
        illegal = header.illegal.search(piece)
        if illegal is not None and not piece[: illegal.start()].strip(WS) and illegal.group() in header.opens:
            # ``<|start|><|start|>``
            host.report("broken_header", cur.pos, cur.pos + illegal.end())
            cur.pos += illegal.end()
            return HEADER
        if illegal is not None or len(piece) > MAX_NAME:
            cur.pos += 0 if illegal is None else illegal.start()
            self.in_content = illegal is not None and not header.bare
            return NO_HEADER
        if found is None:
            return WAIT
        return self._message(header, piece, found.end())

    def _message(self, header: HeaderGrammar, piece: str, end: int) -> int:
        """A header is complete: its recipient or its channel says what its message is."""
        recipient, at, channel = header.parts(piece)
        host = self.host
        cur = host.cur
        name = recipient.removeprefix(header.namespace)
        if not name:
            self.end = end
            self.is_reasoning = channel in header.reasoning
            return MESSAGE
        grammars = host.program.grammars
        if not grammars:
            cur.pos = end
            return NO_TOOLS
        at += cur.pos + len(recipient)
        host.mark(MARKUP, at - len(name))
        host.mark(NAME_TEXT, at)
        host.mark(MARKUP, end)
        cur.pos = end
        self._calls.enter_arguments(grammars[0], name, not header.bare)
        return CALL

    def _grammar(self) -> HeaderGrammar:
        header = self.host.program.header
        assert header is not None
        return header
