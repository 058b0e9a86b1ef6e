"""Keeps the text before the place that is being read: evidence of whether a marker after it is quoted.

* Text is kept in the pieces in which it was emitted. It is read (``TextBefore``) when a marker follows it, or there is
  much of it.
* Content and reasoning are kept apart. A region that begins again begins a line.
"""

from __future__ import annotations

from typing import Final, final

from .context import ReaderContext
from .markdown import NO_EVIDENCE, TextBefore, quotes_nothing
from .program import IN_CONTENT

# When a call counts that may be a quotation.
BY_EVIDENCE: Final = 0
"""If the text before it is no evidence of a quotation; in a fence it counts, and is reported."""
ALWAYS: Final = 1
NOT_IN_FENCES: Final = 2
"""If the text before it is no evidence, and it is not in a fence either."""

_MOST_PIECES: Final = 256
"""Pieces of text that wait for a marker; more are read together. It bounds memory, and changes no result."""
_SHORT_TEXT: Final = 256
"""Characters in which a sign of a quotation is looked for before each call."""
_LONG_PIECE: Final = 512
"""Characters of a piece that does not wait. It bounds memory, and changes no result."""
_MAY_OPEN_CODE: Final = ("`", ">")
"""Last characters of a text that may end in a backtick, or in tags after it."""


@final
class Evidence:
    """The text of one output so far, as far as it decides on a marker that follows."""

    def __init__(self, context: ReaderContext) -> None:
        self._context: ReaderContext = context
        self.quoted_calls: int = BY_EVIDENCE
        """When a call that may be quoted counts: BY_EVIDENCE, ALWAYS or NOT_IN_FENCES."""
        self.last_piece: str = ""
        """The last text that was emitted."""
        self.region: int = IN_CONTENT
        """The region of the pieces."""
        self._pieces: list[str] = []
        """The last pieces of text that were emitted, kept until a marker follows them or there are many."""
        self._content: TextBefore | None = None
        """The content before these pieces, as far as it matters for a marker; None if nothing came before."""
        self._reasoning: TextBefore | None = None
        """The same of the reasoning."""

    # -- in -----------------------------------------------------------------------------------------------------

    def begin_line(self, region: int) -> None:
        """Begin a line of text in this region."""
        if region != self.region:
            self._read()
            self.region = region
        self._pieces.append("\n")

    def add(self, text: str) -> None:
        """Add text of the region."""
        pieces = self._pieces
        pieces.append(text)
        if len(pieces) > _MOST_PIECES or len(text) > _LONG_PIECE:
            self._read()
        self.last_piece = text

    def take_opener(self) -> None:
        """Take note that the text ends in an opener of calls that was not one."""
        before = self.text()
        if before is None:  # the opener is the prompt's
            self.begin_line(self._context.state.region)
            before = self.text()
        if before is not None:
            before.take_opener()

    def forget(self, region: int) -> None:
        """Forget the text of this region: another begins."""
        if self.region == region:
            self._pieces = []
        if region == IN_CONTENT:
            self._content = None
        else:
            self._reasoning = None

    def clear(self) -> None:
        """Forget all text: it was the prompt's."""
        self._pieces = []
        self._content = self._reasoning = None

    def place(self) -> tuple[TextBefore | None, TextBefore | None]:
        """Return the text so far, to return to."""
        self._read()
        return self._content, self._reasoning

    def return_to(self, place: tuple[TextBefore | None, TextBefore | None]) -> None:
        """Take what has come since then for one word."""
        self._content, self._reasoning = place
        self._pieces = ["?"]

    # -- out ----------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """True if no text has come since the last message began."""
        return self._content is None and not self._pieces

    @property
    def has_text(self) -> bool:
        """True if the region that is being read has had text before."""
        region = self._context.state.region
        if self._pieces and region == self.region:
            return True
        return (self._content if region == IN_CONTENT else self._reasoning) is not None

    @property
    def opens_code(self) -> bool:
        """True if the text ends in a single backtick that opens inline code."""
        if self.last_piece[-1:] not in _MAY_OPEN_CODE:
            return False
        before = self.text()
        return before is not None and before.opens_code

    def closing_sign(self, spaces: str) -> str:
        """Return the sign that closes the inline code or the quotation around a marker; empty without one."""
        if self._context.state.region != IN_CONTENT or self.quoted_calls == ALWAYS:
            return ""
        if self._content is None and self.region == IN_CONTENT and self._is_plain("\n" in spaces):
            return ""
        before = self.text()
        return "" if before is None else before.closing_sign(spaces)

    def text(self) -> TextBefore | None:
        """Return the text of the region that is being read; None if it has had no text."""
        before = self._read()
        region = self._context.state.region
        if region != self.region:
            before = self._content if region == IN_CONTENT else self._reasoning
        return before

    def evidence(self, spaces: str) -> int:
        """Return what the text, and this white space after it, says about a marker that follows."""
        if self.quoted_calls == ALWAYS:
            return NO_EVIDENCE
        if self._content is None and self.region == IN_CONTENT and self._is_plain("\n" in spaces):
            return NO_EVIDENCE
        before = self.text()
        return NO_EVIDENCE if before is None else before.evidence(spaces)

    def _is_plain(self, breaks: bool) -> bool:
        """True if one look at the pieces of text shows that they quote nothing after them. ``breaks``: nor do lines
        that have ended, but a fence may be open."""
        pieces = self._pieces
        if len(pieces) > 1:
            pieces = self._pieces = ["".join(pieces)]
        return not pieces or (len(pieces[0]) <= _SHORT_TEXT and quotes_nothing(pieces[0], breaks))

    def _read(self) -> TextBefore | None:
        """Read the pieces that are kept. Return the text of their region."""
        before = self._content if self.region == IN_CONTENT else self._reasoning
        if self._pieces:
            if before is None:
                before = TextBefore()
                if self.region == IN_CONTENT:
                    self._content = before
                else:
                    self._reasoning = before
            before.read("".join(self._pieces))
            self._pieces = []
        return before
