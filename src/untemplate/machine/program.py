"""Program: what the machine runs.

* A Program is immutable and shared by all streams of a parser. The state of an output is in the machine.
* Free text is read by text states, calls by call syntaxes, and messages with headers by a header syntax.
* A Format and a hand-written ParserEngineConfig both compile to a Program, so there is one machine.
"""

from __future__ import annotations

import re
from typing import Final, final

from .lexer import WS, GoesOn, Literals

# Regions: what the text of a state is.
IN_CONTENT: Final = 0
IN_REASONING: Final = 1
IN_NAME: Final = 2
IN_ARGUMENTS: Final = 3
IN_SILENT: Final = 4
"""Text that emits no event and is reported as dropped."""

# What a rule does with its marker.
ENTER_STATE: Final = 0
"""Enter another state, and emit the rule's events (only in hand-written configs)."""
OPEN_REASONING: Final = 1
CLOSE_REASONING: Final = 2
OPEN_WRAP: Final = 3
CLOSE_WRAP: Final = 4
END_TURN: Final = 5
OPEN_CALLS: Final = 6
OPEN_BARE_CALLS: Final = 7
"""Calls without a marker: only where content begins."""
CLOSE_SECTION: Final = 8
CLOSE_CALL: Final = 9
OPEN_HEADER: Final = 10
CLOSE_MESSAGE: Final = 11
CALL_TEXT: Final = 12
"""A marker of calls where calls are text, if its closer or a part of it has another meaning as well."""
END_TOKEN: Final = 13
"""A special token that counts only at the end of the output, where it is dropped."""

# How calls are written.
JSON_BODY: Final = 0
NAMED_JSON: Final = 1
NAMED_TAGGED: Final = 2
NAMED_LITERAL: Final = 3
NAMED_ELEMENTS: Final = 4

# Where a call syntax is entered: what the literal that opens the calls was.
AT_SECTION: Final = 0
"""The opener of a section: calls follow."""
AT_CALL: Final = 1
"""The opener of a call: its body follows."""
AT_NAME: Final = 2
"""The opener of a name: the name follows."""
AT_BARE: Final = 3
"""No opener: the call, or the list of calls, begins at the literal."""

# Inside a call: what a literal is.
IS_SECTION_CLOSE: Final = 0
IS_LIST_OPEN: Final = 1
IS_LIST_CLOSE: Final = 2
IS_CALL_OPEN: Final = 3
IS_CALL_CLOSE: Final = 4
IS_NAME_OPEN: Final = 5
IS_SEPARATOR: Final = 6
IS_NAME_CLOSE: Final = 7
IS_ID_OPEN: Final = 8
IS_ARGUMENTS_CLOSE: Final = 9
IS_KEY_OPEN: Final = 10
IS_KEY_CLOSE: Final = 11
IS_VALUE_OPEN: Final = 12
IS_VALUE_CLOSE: Final = 13
IS_SECTION_OPEN: Final = 14
IS_TURN_END: Final = 15
IS_VALUE_STEM: Final = 20
"""The beginning of a value's close, such as ``</parameter``, which a misspelled close has too."""
IS_ELEMENT_CLOSE: Final = 21
IS_EMPTY_CLOSE: Final = 22
"""What comes before the name of an element that ends."""
IS_TYPE_OPEN: Final = 23
IS_OTHER_OPEN: Final = 24
IS_OTHER_CLOSE: Final = 25
"""A tag that models write in place of a value's close: that of a key, or one that is named after the argument. It is
not one if the value has opened it."""
# Inside a message header: what a literal is.
IS_HEADER_OPEN: Final = 16
IS_HEADER_PART: Final = 17
IS_HEADER_CLOSE: Final = 18
IS_HEADER_BODY: Final = 19


@final
class MarkerRule:
    """The action at a marker in free text."""

    def __init__(self, kind: int, target: int = 0) -> None:
        self.kind: int = kind
        self.target: int = target
        """ENTER_STATE: index of the state that comes next. CALL_TEXT: 1 if its closer is text, too."""
        self.anywhere: bool = False
        """OPEN_WRAP: True if it counts anywhere and not only at the start."""
        self.in_section_only: bool = False
        """OPEN_CALLS: True if it counts only in an open section."""
        self.at_start_only: bool = False
        """CLOSE_REASONING, in content: True if it counts only at the start, because it is a sentence of prose."""
        self.in_header: bool = False
        """OPEN_HEADER: True if the literal is part of the header, which is then read from it on."""
        self.events: tuple[int, ...] = ()
        """ENTER_STATE: the events to emit, as numbers that only the ConfigEvents know."""
        self.needs_id: int = 0
        """ENTER_STATE: 1 if the literal counts only by its id once ids are in use, 2 if it counts only by its id."""
        self.entries: list[tuple[CallSyntax, int]] = []
        """OPEN_CALLS: the call syntaxes that may begin here, best first, each with its entry (AT_*)."""
        self.ambiguous: bool = False
        """OPEN_CALLS: True if prose may hold the opener too. Then the tool must be an offered one, and if the tools are
        unknown, the opener must be at the start."""
        self.alone: bool = False
        """OPEN_BARE_CALLS: True if the calls have no marker at all, so that text on their line makes them text."""
        self.follows: bool = False
        """OPEN_BARE_CALLS: True if such a call may also follow another one, on a line of its own."""
        self.before: str = ""
        """White space that the Format writes before the marker."""
        self.after: str = ""
        """White space that the Format writes after the marker."""


@final
class TextState:
    """A state of free text, with the literals that may be markers in it."""

    def __init__(self, name: str, region: int, rules: dict[str, MarkerRule], trims: bool) -> None:
        self.name: str = name
        self.region: int = region
        self.rules: list[MarkerRule] = list(rules.values())
        self.literals: Literals = Literals({text: i for i, text in enumerate(rules)})
        self.lone_calls: MarkerRule | None = None
        """The rule of calls without any marker, which begin where the state begins; None if there are none."""
        self.trims: bool = trims
        """True if white space that touches a marker belongs to the marker."""
        self.goes_on: GoesOn = self.literals.goes_on_after_spaces if trims else self.literals.goes_on
        """The test for text that decides nothing."""
        self.heads: tuple[str, ...] = tuple(sorted({text[0] for text in rules} - {"`"}))
        """First characters of the literals. Text without any of them and without inline code can be emitted at once."""


def _variable(name: str) -> str:
    """Return the regular expression of a variable. An index is a number: names may hold what comes before it."""
    return f"(?P<{name}>{'[0-9]*' if name == 'index' else '.*?'})"


@final
class Pattern:
    """A pattern such as ``functions.{name}:{index}``, which splits text into variables."""

    def __init__(self, pattern: str) -> None:
        pieces = re.split(r"\{(\w+)\}", pattern)
        self.pattern: str = pattern
        self.variables: list[str] = pieces[1::2]
        self.literals: list[str] = pieces[0::2]
        self.legal: frozenset[str] = frozenset("".join(self.literals))
        """Characters of the pattern outside its variables."""
        body = "".join(
            re.escape(literal) + (_variable(self.variables[i]) if i < len(self.variables) else "")
            for i, literal in enumerate(self.literals)
        )
        self.expression: re.Pattern[str] = re.compile(body, re.DOTALL)
        self.plain: bool = len(self.variables) == 1 and not any(self.literals)
        self.attributes: bool = '"' in self.legal

    def fits(self, text: str) -> bool:
        return self.plain or self.expression.fullmatch(text) is not None

    def split(self, text: str) -> dict[str, str]:
        """Return the variables in ``text``. If it does not fit the pattern, all of it is the first variable, or the
        part before the first quote if the pattern has attributes."""
        if self.plain:
            return {self.variables[0]: text}
        found = self.expression.fullmatch(text)
        if found is not None:
            return {k: v for k, v in found.groupdict().items() if v is not None}
        first = self.literals[0]
        if first and text.startswith(first):
            text = text[len(first) :]
        if self.attributes:
            text = text.partition('"')[0]
        return {self.variables[0]: text}


_NEVER: Final = re.compile("(?!)")


@final
class CallSyntax:
    """One way to write calls. Literals are grouped by the place where they are searched."""

    def __init__(self, body: int, path: str) -> None:
        self.path: str = path
        """Its place in the Format, such as ``tools[0]``."""
        self.body: int = body
        self.bare: bool = False
        self.list_opens: bool = False
        self.list_optional: bool = False
        self.section_closes: bool = False
        self.call_opens: bool = False
        self.call_optional: bool = False
        self.name_opens: bool = False
        self.name_in_tag: bool = False
        """True if the name has a visible opener or close, so it cannot be a word of prose between the markers."""
        self.separated: bool = False
        """True if calls outside a list or section may follow one another after a separator."""
        self.between: Literals = Literals({})
        """Before, between and after calls of a section or list."""
        self.after: Literals = Literals({})
        """After the arguments: what closes the call."""
        self.call_closes: bool = False
        self.plain_close: re.Pattern[str] = re.compile("(?!)")
        """Matches white space and what closes the arguments and the call (1), as the renderer writes it."""
        self.before_body: Literals = Literals({})
        """After the call's opener: the name's opener."""
        self.after_section: list[list[Literals]] = []
        """Text that may follow the section's opener and white space: sequences of literal sets. An empty set means the
        first character of a name."""
        self.after_call: list[list[Literals]] = []
        """The same after the call's opener."""
        self.bare_start: list[list[Literals]] = []
        """The same for calls with no opener."""
        # JSON_BODY
        self.name_keys: frozenset[str] = frozenset()
        self.arguments_keys: frozenset[str] = frozenset()
        self.id_key: str = ""
        self.nested_key: str = ""
        self.name_is_key: bool = False
        self.object_start: re.Pattern[str] = re.compile("(?!)")
        """Matches the beginning of an object, written as the renderer writes it: its id (1), if it has one, its name
        (2) and a comma. Group 3 matches if the key of the arguments and an object follow."""
        self.arguments_start: re.Pattern[str] = re.compile("(?!)")
        """Matches the key of the arguments (1) before an object."""
        self.constant_keys: frozenset[str] = frozenset()
        # NAMED_*
        self.name: Pattern = Pattern("{name}")
        self.name_ends: Literals = Literals({})
        self.name_illegal: re.Pattern[str] = re.compile("(?!)")
        self.simple_name: re.Pattern[str] = re.compile("(?!)")
        """Matches the name of a tool (``name``), of letters, digits and underscores, in its pattern, and what ends it
        (``end``)."""
        self.name_is_id: bool = False
        """True if the name in its pattern is the id of the call."""
        self.damaged_name_ends: tuple[int, ...] = ()
        """What ends a name whose close is missing."""
        self.open_name: re.Pattern[str] = re.compile("(?!)")
        """Matches a short text in which no name ends or breaks."""
        self.unescape: bool = False
        self.id_ends: Literals = Literals({})
        # NAMED_TAGGED
        self.key: Pattern = Pattern("{key}")
        self.tags: Literals = Literals({})
        """Between arguments."""
        self.key_ends: Literals = Literals({})
        self.value_opens: Literals = Literals({})
        self.has_value_open: bool = False
        self.unopened: Literals = Literals({})
        """What may follow text in the place of a value's opener: the opener, a tag, or the value's close."""
        self.value_ends: Literals = Literals({})
        self.value_stops: Literals = Literals({})
        """Literals in a value at which it may end, or at which a quoted call begins."""
        self.close_head: str = ""
        """What precedes the name of the argument in a close that is named after it; empty: there is no such close."""
        self.value_heads: tuple[str, ...] = ()
        """First characters of ``value_stops``."""
        self.value_successors: Literals = Literals({})
        """After a value's close: what may follow it, and a second close."""
        self.call_starts: Literals = Literals({})
        """The literals with which a call begins, in order: of the section, of the call, of the name."""
        self.message_opens: Literals = Literals({})
        """After the message that holds the call: what begins another."""
        self.innermost: int = IS_CALL_CLOSE
        """The first of the closes around a value (IS_ARGUMENTS_CLOSE or IS_CALL_CLOSE)."""
        self.key_on_line: bool = False
        """True if a key's opener is written at the start of a line."""
        self.type_ends: Literals = Literals({})
        """After the type of a value: its close, and what may follow if that is missing. Empty: values have no type."""
        self.trim: int = 0
        self.trim_after: int = 0
        self.holds_after: int = 0
        """Most newlines at the end of a value that are held back. If the close is missing, they are not the value's."""
        self.unescape_values: bool = False
        self.section: CallSyntax | None = None
        """The same syntax, if the value is inside ``<![CDATA[`` and ``]]>``; ``None``: values are never inside it."""
        self.unescape_keys: bool = False
        # What is written as the renderer writes it (``regular``):
        self.regular_key: re.Pattern[str] = _NEVER
        """Matches white space, a key's opener (opener), and what ``regular_name`` matches if that is whole."""
        self.key_goes_on: GoesOn | None = None
        """The test for text that does not complete a key."""
        self.regular_name: re.Pattern[str] = _NEVER
        """Matches a key (key), its attributes (string, type), what ends it, up to the value's opener (begin), and the
        newlines before the value."""
        self.regular_ends: dict[int, re.Pattern[str]] = {}
        """For each kind of close that ends the calls: matches a value's close (close) and what follows it. This is a
        key as above, the closes around the value (chain), or the end of the text, which may cut one of these (rest).
        The group ``markers`` ends after the key's opener, or after the others."""
        # NAMED_ELEMENTS, besides ``tags``, ``value_heads`` and ``call_starts``
        self.element_closes: tuple[str, ...] = ()
        self.element_close_of: dict[str, str] = {}
        """For each spelling before the name of an element, the same spelling before the name of one that ends."""
        self.tag_end: str = ">"
        self.tag_ends: Literals = Literals({})
        self.item: str = "item"
        # NAMED_LITERAL
        self.bracket_open: str = "("
        self.bracket_close: str = ")"
        self.assign: str = "="
        self.quotes: Literals = Literals({})
        self.quoted_values: bool = False
        """True if the text in quotes may be a value of any type."""
        self.quotes_optional: bool = False
        """True if a value that is not a literal is a string without quotes."""
        self.escaping: tuple[str, ...] = ()
        """Quotes of strings in which a backslash escapes."""
        self.watched: re.Pattern[str] = re.compile("(?!)")
        """The first character of whatever may end a string between markers."""
        self.watched_last: re.Pattern[str] = re.compile("(?!)")
        """The same where no declared argument may follow."""
        self.escaped: re.Pattern[str] = re.compile("(?!)")
        """Matches arguments that were copied into a string, with escapes, up to the first escape."""
        self.escaped_prefix: re.Pattern[str] = re.compile("(?!)")
        """Matches text that may become that."""
        self.variants: frozenset[str] = frozenset()
        """Markers and keys that are accepted, but that the renderer does not write."""
        # Where reading goes on after text that breaks the call.
        self.call_stops: Literals = Literals({})

    def name_goes_on(self, kept: str, text: str) -> bool:
        """True if a name goes on in this text."""
        return self.open_name.match(kept + text) is not None


@final
class HeaderSyntax:
    """Messages with headers (gpt-oss, Functionary 3.2)."""

    def __init__(self) -> None:
        self.literals: Literals = Literals({})
        """Literals where a header may begin; tags are IS_HEADER_*."""
        self.body: Literals = Literals({})
        """Ends a header; tags are IN_CONTENT (the words of the header decide), IN_REASONING and IN_ARGUMENTS (a
        call)."""
        self.calls: Literals = Literals({})
        """Where the text of a message to a tool begins: the openers of calls; tags are indices of ``call_rules``."""
        self.call_rules: list[MarkerRule] = []
        self.only_text: frozenset[str] = frozenset()
        """Channels whose messages hold no calls: those of reasoning, and the first one of content."""
        self.names_tools: bool = True
        """A message whose header has the name of a tool is a call. False: the marker after the header decides."""
        self.channel: tuple[str, ...] = ()
        self.recipient: tuple[str, ...] = ()
        self.constraint: tuple[str, ...] = ()
        self.opens: tuple[str, ...] = ()
        self.closes: Literals = Literals({})
        """Markers after a message."""
        self.bare: bool = False
        """The header is one word, the recipient."""
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

    def goes_on(self, kept: str, text: str) -> bool:
        """True if the header goes on in this text."""
        return self.decides.search(kept + text) is None

    def parts(self, text: str) -> tuple[str, int, str]:
        """Return (recipient, its place, channel) of a header. What it does not have is empty."""
        if self.bare:
            word = text.strip(WS)
            at = len(text) - len(text.lstrip(WS))
            return ("", at, word) if word in self.content or word in self.reasoning or not word else (word, at, "")
        recipient, at = _word_after(self.recipient, text, self.marks)
        if not self.channel and (recipient in self.content or recipient in self.reasoning):
            return "", 0, recipient
        channel, _ = _word_after(self.channel, text, self.marks)
        return ("" if recipient in _PEOPLE else recipient), at, channel


_PEOPLE: Final = ("assistant", "user", "all")
"""Recipients that are not tools."""
_WORD: Final = re.compile(r"[ \t]*([^ \t\r\n]*)")


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
        self.header_first: bool = False
        """True if an output begins with a header."""
        self.header: HeaderSyntax | None = None
        self.repeats: bool = False
        self.call_syntaxes: list[CallSyntax] = []
        self.turn_starts: tuple[str, ...] = ()
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
