"""Program: what the machine runs.

* A Program is immutable and shared by all streams of a parser. The state of an output is in the machine.
* Free text is read by text states, calls by call syntaxes, and messages with headers by a header syntax.
* A Format and a hand-written ParserEngineConfig both compile to a Program, so there is one machine.
"""

from __future__ import annotations

import re
from typing import Final, final

from .call_syntax import CallSyntax
from .lexer import WS, GoesOn, Literals
from .rules import MarkerRule

# Regions: what the text of a state is.
IN_CONTENT: Final = 0
IN_REASONING: Final = 1
IN_NAME: Final = 2
IN_ARGUMENTS: Final = 3
IN_SILENT: Final = 4
"""Text that emits no event and is reported as dropped."""


@final
class TextState:
    """A state of free text, with the literals that may be markers in it."""

    def __init__(self, name: str, region: int, rules: dict[str, MarkerRule], trims: bool) -> None:
        self.name: str = name
        self.region: int = region
        self.rules: list[MarkerRule] = list(rules.values())
        self.literals: Literals = Literals({text: i for i, text in enumerate(rules)})
        self.lone_calls: MarkerRule | None = None
        """The rule of calls without any marker, which begin where the state begins; None if no calls begin so."""
        self.trims: bool = trims
        """True if white space that touches a marker belongs to the marker."""
        self.goes_on: GoesOn = self.literals.goes_on_after_spaces if trims else self.literals.prefixes.__contains__
        """The test for text that decides nothing."""


@final
class HeaderSyntax:
    """Messages with headers (gpt-oss, Functionary 3.2)."""

    def __init__(self) -> None:
        self.literals: Literals = Literals({})
        """Literals where a header may begin; tags are ``tags.HEADER_*``."""
        self.body: Literals = Literals({})
        """Ends a header; tags are IN_CONTENT (the words of the header decide), IN_REASONING and IN_ARGUMENTS (a
        call)."""
        self.calls: Literals = Literals({})
        """Where the text of a message to a tool begins: the openers of calls; tags are indices of ``call_rules``."""
        self.call_rules: list[MarkerRule] = []
        self.only_text: frozenset[str] = frozenset()
        """Channels whose messages hold no calls: those of reasoning, and the first one of content."""
        self.channel: tuple[str, ...] = ()
        self.recipient: tuple[str, ...] = ()
        self.constraint: tuple[str, ...] = ()
        self.opens: tuple[str, ...] = ()
        self.role: str = ""
        """The word after an opener."""
        self.closes: Literals = Literals({})
        """Markers after a message."""
        self.namespace: str = ""
        self.join: str = "\n"
        """Text between the texts of two messages of the same kind."""
        self.reasoning: frozenset[str] = frozenset()
        self.content: frozenset[str] = frozenset()
        self.marks: re.Pattern[str] = re.compile("<")
        """Matches the end of a word of the header, besides white space."""
        self.illegal: re.Pattern[str] = re.compile("(?!)")
        """Matches text that a header cannot contain."""
        self.decides: re.Pattern[str] = re.compile("(?!)")
        """Matches that, and what ends a header."""

    @property
    def is_one_word(self) -> bool:
        """True if the header is one word, the recipient."""
        return not self.recipient

    @property
    def names_tools(self) -> bool:
        """True if a message whose header has the name of a tool is a call; else the marker after the header decides."""
        return IN_ARGUMENTS not in self.body.tags.values()

    def goes_on(self, text: str) -> bool:
        """True if the header goes on in this text."""
        return self.decides.search(text) is None

    def is_sentence(self, text: str) -> bool:
        """True if too many words follow the last marker of this text."""
        if self.is_one_word:
            return False
        ends = [
            text.rfind(marker.strip(WS)) + len(marker.strip(WS))
            for marker in self.literals.tags
            if marker.strip(WS) in text
        ]
        return len(text[max(ends, default=0) :].split()) > _MOST_WORDS

    def knows(self, channel: str, text: str) -> bool:
        """True if a header with this channel and without a recipient is one of content or reasoning."""
        if self.is_one_word or not channel or channel in self.only_text:
            return True
        return self._is_channel(channel) and not any(marker in text for marker in (*self.constraint, *self.namespaces))

    def _is_channel(self, word: str) -> bool:
        return word in self.content or word in self.reasoning

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The prefix of the tools' names, if they have one."""
        return (self.namespace,) if self.namespace else ()

    def has_damaged_recipient(self, text: str, start: int) -> bool:
        """True if no marker is before the recipient, of which the name begins at ``start`` of a header. White space
        between them belongs to the marker."""
        before = text[:start].removesuffix(self.namespace).rstrip(WS)
        return not (self.is_one_word or before.endswith(tuple(marker.strip(WS) for marker in self.recipient)))

    def parts(self, text: str) -> tuple[str, int, str]:
        """Return (recipient, its place, channel) of a header. What it does not have is empty. The prefix of a tool's
        name shows a recipient also where the marker before it is damaged."""
        if self.is_one_word:
            word = text.strip(WS)
            at = len(text) - len(text.lstrip(WS))
            return (word, at, "") if word and not self._is_channel(word) else ("", at, word)
        text = _BREAK.sub(" ", text)
        recipient, at = _word_after(self.recipient, text, self.marks)
        if not recipient.startswith(self.namespace):
            named, start = _word_after(self.namespaces, text, self.marks)
            if named:
                recipient, at = self.namespace + named, start - len(self.namespace)
        if not self.channel and self._is_channel(recipient):
            return "", 0, recipient
        channel, _ = _word_after(self.channel, text, self.marks)
        return ("" if recipient in _PEOPLE else recipient), at, channel


_PEOPLE: Final = ("assistant", "user", "all")
"""Recipients that are not tools."""
_WORD: Final = re.compile(r"[ \t]*([^ \t\r\n]*)")
_BREAK: Final = re.compile(r"[\t\r\n]")
_MOST_WORDS: Final = 2
"""Words after the last marker of a header: its value, and the type of the text (``commentary json``)."""


def _word_after(markers: tuple[str, ...], text: str, marks: re.Pattern[str]) -> tuple[str, int]:
    for marker in markers:
        at = text.rfind(marker)
        if at >= 0:
            found = _WORD.match(text, at + len(marker))
            return ("", 0) if found is None else (marks.split(found.group(1), 1)[0], found.start(1))
    return "", 0


@final
class Program:
    """Text states, call syntaxes, and the state in which an output begins."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.states: list[TextState] = []
        self.content: int = 0
        """Index of the state of content, in which an output begins unless its prompt has opened something."""
        self.reasoning: int = -1
        self.start_without_prompt: int = 0
        """Index of the state in which an output begins if its prompt is not known."""
        self.after_turn_start: int = 0
        self.header: HeaderSyntax | None = None
        """The syntax of the headers with which messages begin; None: messages have none."""
        self.repeats: bool = False
        self.call_syntaxes: list[CallSyntax] = []
        self.turn_starts: tuple[str, ...] = ()
        self.start_in_output: bool = False
        """True if prompts may lack the start of their turn: the last one in a prompt may be that of an earlier turn."""
        self.turn_end: Literals = Literals({})
        self.output_end: Literals = Literals({})
        """The ends of the turn, and special tokens that are dropped at the end of the output."""
        self.call_closes: Literals = Literals({})
        """The closes of calls, lists and sections that begin with a marker."""
        self.call_markers: re.Pattern[str] = re.compile("(?!)")
        """Matches markers before the first call, and white space."""
        self.section_opens: frozenset[str] = frozenset()
        self.opened: tuple[str, ...] = ()
        """Ends of a prompt after which reasoning is open."""
        self.closed: tuple[str, ...] = ()
        """Ends of a prompt after which reasoning is closed."""
        self.ids: str = "random"
