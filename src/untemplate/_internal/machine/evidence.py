"""Keeps the text before the place that is being read: evidence of whether a marker after it is quoted.

* Text is kept as it was emitted. It is read (``TextBefore``) when a marker follows it, or there is much of it.
* Content and reasoning are kept apart. A region that begins again begins a line.
"""

from __future__ import annotations

from typing import Final

from .context import ReaderContext
from .lexer import WS
from .markdown import NO_EVIDENCE, NO_SIGN, TextBefore, quotes_nothing
from .program import IN_CONTENT

# When a call counts that may be a quotation.
QUOTED_BY_EVIDENCE: Final = 0
"""If the text before it is no evidence of a quotation; in a fence it counts, and is reported."""
QUOTED_ARE_CALLS: Final = 1
FENCED_ARE_TEXT: Final = 2
"""If the text before it is no evidence, and it is not in a fence either."""

_SHORT_TEXT: Final = 256
"""Characters in which a sign of a quotation is looked for before each call."""
_MOST_UNREAD: Final = 1024
"""Characters of text that wait for a marker; more are read. It bounds memory, and changes no result."""
_MAY_OPEN_CODE: Final = ("`", ">")
"""Last characters of a text that may end in a backtick, or in tags after it."""


class Evidence:
    """The text of one output so far, as far as it decides on a marker that follows."""

    quoted_calls: int = QUOTED_BY_EVIDENCE
    """When a call that may be quoted counts: QUOTED_BY_EVIDENCE, QUOTED_ARE_CALLS or FENCED_ARE_TEXT."""
    quotes: bool = False
    """True while a quoted call is emitted. It is one word of the text around it, whatever its own text is."""

    def __init__(self, context: ReaderContext) -> None:
        self.context: ReaderContext = context
        self.last_piece: str = ""
        """The last text that was emitted."""
        self.region_before: int = IN_CONTENT
        """The region of that text."""
        self._unread: str = ""
        """The last text that was emitted, kept until a marker follows it or there is much of it: content, if
        ``region_before`` is, and else reasoning. Two objects would be plainer, and more for each stream to keep."""
        self._other_unread: str = ""
        """The same of content after reasoning has begun, and of reasoning after content has."""
        self._content: TextBefore | None = None
        """The content before this text, as far as it matters for a marker; None if nothing came before."""
        self._reasoning: TextBefore | None = None
        """The same of the reasoning."""

    # -- in -----------------------------------------------------------------------------------------------------

    def remember(self, text: str, region: int, begins: bool) -> None:
        """Add text of this region. ``begins``: it begins there, or follows calls."""
        if begins or region != self.region_before:
            if (region == IN_CONTENT) != (self.region_before == IN_CONTENT):
                self._unread, self._other_unread = self._other_unread, self._unread
            self.region_before = region
            self._unread += "\n"
        self._unread += f"{text[: -len(text.lstrip(WS))]}?" if self.quotes else text
        if len(self._unread) > _MOST_UNREAD:
            self._read(self.region_before == IN_CONTENT)
        self.last_piece = text

    def remember_opener(self) -> None:
        """Take note that the text ends in an opener of calls that was not one."""
        before = self.text_before()
        if before is None:  # the opener is the prompt's
            self.remember("", self.context.state.region, True)
            before = self.text_before()
        if before is not None:
            before.take_opener()

    def forget(self, region: int) -> None:
        """Forget the text of this region: another begins."""
        if self.region_before == region:
            self._unread = ""
        elif (region == IN_CONTENT) != (self.region_before == IN_CONTENT):
            self._other_unread = ""
        if region == IN_CONTENT:
            self._content = None
        else:
            self._reasoning = None

    def forget_all(self) -> None:
        """Forget all text: it was the prompt's."""
        self._unread = self._other_unread = ""
        self._content = self._reasoning = None

    # -- out ----------------------------------------------------------------------------------------------------

    @property
    def has_text(self) -> bool:
        """True if the region that is being read has had text before."""
        content = self.context.state.region == IN_CONTENT
        unread = self._unread if content == (self.region_before == IN_CONTENT) else self._other_unread
        return unread != "" or (self._content if content else self._reasoning) is not None

    @property
    def opens_code(self) -> bool:
        """True if the text ends in a single backtick that opens inline code, and no white space follows it."""
        if self.context.spaces or self.last_piece[-1:] not in _MAY_OPEN_CODE:
            return False
        before = self.text_before()
        return before is not None and before.opens_code

    def text_before(self) -> TextBefore | None:
        """Return the text of the region that is being read; None if it has had no text."""
        return self._read(self.context.state.region == IN_CONTENT)

    def evidence(self, spaces: str) -> int:
        """Return what the text, and this white space after it, says about a marker that follows."""
        if self.quoted_calls == QUOTED_ARE_CALLS:
            return NO_EVIDENCE
        if self._content is None and self.region_before == IN_CONTENT and len(self._unread) <= _SHORT_TEXT:
            # One look at a short text may show that it quotes nothing after it. Nor do lines that have ended, but a
            # fence may be open.
            text = self._unread
            if not text or quotes_nothing(text, "\n" in spaces):
                return NO_SIGN
        before = self.text_before()
        return NO_EVIDENCE if before is None else before.evidence(spaces)

    def _read(self, content: bool) -> TextBefore | None:
        """Read the text that is kept of content, or else of reasoning. Return all of it."""
        before = self._content if content else self._reasoning
        in_unread = content == (self.region_before == IN_CONTENT)
        unread = self._unread if in_unread else self._other_unread
        if unread:
            if before is None:
                before = TextBefore()
                if content:
                    self._content = before
                else:
                    self._reasoning = before
            before.read(unread)
            if in_unread:
                self._unread = ""
            else:
                self._other_unread = ""
        return before
