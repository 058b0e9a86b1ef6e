"""Infer how the arguments of a call are written.

The comparisons are A1–A3, T4 and T5 of llama.cpp's template auto-parser.

* JSON is recognised by decoding it. Everything else is inferred from the places of keys and values. That is the text
  between two arguments, before the first and after the last (T4, T5), and between key and value (A1, A2). It is also
  the part of that text that changes with the type of the value (A3).
* A name that comes again after its value means elements.
* Quotes around strings only mean literal arguments. So do keys at the start of lines with nothing around all of them.
  A word that changes with the type means a typed attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from xml.sax.saxutils import unescape

from ..format import Arguments, ElementArguments, JsonArguments, LiteralArguments, Marker, TaggedArguments
from . import _diff as diff
from ._probes import IDS, KEYS, NAMES, VALUES, ProbeCall, ProbeMessage
from ._result import PYTHONIC, TAG_WITH_JSON, TAG_WITH_TAGGED

if TYPE_CHECKING:
    from ._probes import CallSamples
    from ._turns import TurnFrame

NUMBER: Final = 73914
_NUMBER_TEXT: Final = "73914"
_TYPED: Final[tuple[tuple[str, Any, str], ...]] = (
    ("number", NUMBER, _NUMBER_TEXT),
    ("object", {"qzinnerqz": NUMBER}, "{"),
)


@dataclass(frozen=True, slots=True)
class ArgumentsGuess:
    """How arguments are written, with the surrounding text that belongs to them."""

    arguments: Arguments
    name_gap: str
    """Text between the name and the arguments."""
    last_close: str
    """Text that closes the last value, and the arguments if nothing else closes them."""
    json: bool
    variant: str
    source: str


def arguments_guesses(frame: TurnFrame, samples: CallSamples) -> Iterator[ArgumentsGuess]:
    """Yield hypotheses for the text after the name; JSON excludes the others."""
    text = samples.one
    at = text.index(NAMES[0]) + len(NAMES[0])
    found = _json(text, at)
    if found is not None:
        yield found
        return
    layout = _Layout.read(text, at)
    if layout is None:
        return
    frame.log.append(f"A1 key to value {layout.to_value!r}, A2 after the last value {layout.behind!r}")
    frame.log.append(f"T4 between arguments {layout.between!r}")
    elements = _elements(frame, samples, layout)
    if elements is not None:
        yield elements
        return
    values = _values(frame, samples)
    frame.log.append(f"A3 values {values!r}")
    literal = _literal(frame, samples, layout, values)
    if literal is not None:
        yield literal
    yield from _tagged(samples, layout, values, _escape(frame, samples))


def _json(text: str, at: int) -> ArgumentsGuess | None:
    key = text.find(KEYS[0], at)
    start = text.rfind("{", at, key)
    while start >= at:
        span = diff.json_at(text, start)
        if span is not None and isinstance(span.value, dict) and KEYS[0] in span.value:
            quoted = start > at and text[start - 1] == '"'
            gap = text[at : start - 1 if quoted else start]
            return ArgumentsGuess(JsonArguments(), gap, "", True, TAG_WITH_JSON, "name, then a JSON object")
        start = text.rfind("{", at, start)
    return None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Text around two arguments."""

    before: str
    to_value: str
    between: str
    behind: str

    @classmethod
    def read(cls, text: str, at: int) -> _Layout | None:
        found = diff.locate(text[at:], (*KEYS[:2], *VALUES[:2]))
        first, second = (KEYS[0], VALUES[0]), (KEYS[1], VALUES[1])
        if found.names != (*first, *second):
            return None
        before, one, between, two, behind = found.gaps
        if one != two:
            return None
        return cls(before, one, between, behind)


@dataclass(frozen=True, slots=True)
class _Values:
    """Text between key and value, and the text of the value, by type."""

    gaps: dict[str, str]
    texts: dict[str, str]


def _turn_with(frame: TurnFrame, samples: CallSamples, value: Any) -> str:
    """Return the turn of a call whose only argument has this value; empty if the template does not render it."""
    message = ProbeMessage(calls=(ProbeCall(NAMES[0], {KEYS[0]: value}, IDS[0]),))
    turn = frame.turn(message, samples.style, samples.place)
    return "" if turn is None else turn.text


def _values(frame: TurnFrame, samples: CallSamples) -> _Values:
    gaps: dict[str, str] = {}
    texts: dict[str, str] = {}
    for kind, value, starts in _TYPED:
        _, key, rest = _turn_with(frame, samples, value).partition(KEYS[0])
        if not key:
            continue
        places = [p for p in (rest.find(starts), rest.find(starts.title())) if p >= 0]
        if not places:
            continue
        gaps[kind] = rest[: min(places)]
        texts[kind] = rest[min(places) :]
    return _Values(gaps, texts)


# -- Literals of a language ---------------------------------------------------------------------------------------


def _literal(frame: TurnFrame, samples: CallSamples, layout: _Layout, values: _Values) -> ArgumentsGuess | None:
    """Infer ``(key='value', other=1)``: one character opens, one assigns, and only strings have quotes."""
    lines = _on_lines(layout, values)
    if lines is not None:
        return lines
    gap = values.gaps.get("number")
    opened = layout.before.strip()
    same = gap == layout.to_value
    if gap is not None and same:  # numbers have quotes too, or nothing has: the assignment is one character
        gap = diff.lead(gap) + gap.strip()[:1]
    if gap is None or len(gap.strip()) != 1 or not opened or not layout.to_value.startswith(gap):
        return None
    # No quotes at all: the template loses which values were strings; models write Python's quotes, or none.
    quote = layout.to_value[len(gap) :]
    if not layout.between.startswith(quote) or not layout.behind.startswith(quote):
        return None
    if opened[-1] not in "({[":
        return None
    close = layout.behind[len(quote) :].lstrip()[:1]
    if close not in tuple(")}]"):
        return None
    words = _words(frame, samples, gap, layout.behind[len(quote) :])
    inner = values.texts.get("object", "")
    arguments = LiteralArguments(
        open=opened[-1],
        close=close,
        assign=gap.strip(),
        separator=layout.between[len(quote) :],
        quotes=tuple(dict.fromkeys(q for q in (quote, *_OTHER_QUOTES) if q)),
        quoted="strings" if not same else "all" if quote else "optional",
        escapes=len(quote) < 2 and not (same and quote and _written_raw(frame, samples)),
        words=words,
        quoted_keys=inner[1:2] != "q",
    )
    gap_before = layout.before[: layout.before.rindex(opened[-1])]
    last = quote + layout.behind[len(quote) :].partition(close)[0] + close
    return ArgumentsGuess(arguments, gap_before, last, False, PYTHONIC, "name, then literals")


def _on_lines(layout: _Layout, values: _Values) -> ArgumentsGuess | None:
    """Infer ``key: "value"`` on lines of their own, with nothing around all of them: only strings have quotes, if they
    have any."""
    gap = values.gaps.get("number")
    if gap is None or len(gap.strip()) != 1 or gap.strip() not in "=:" or not layout.to_value.startswith(gap):
        return None
    quote = layout.to_value[len(gap) :]
    between, behind = layout.between, layout.behind
    if not between.startswith(quote) or not behind.startswith(quote):
        return None
    separator = between[len(quote) :]
    if separator.strip() or "\n" not in separator or "\n" not in diff.lead(behind[len(quote) :]):
        return None
    name_close = layout.before[: len(layout.before) - len(diff.trail(layout.before))]
    if not name_close or not layout.before.endswith(separator[separator.rindex("\n") :]):
        return None
    arguments = LiteralArguments(
        open="",
        close="",
        assign=gap,
        separator=separator[separator.index("\n") :],
        quotes=(quote,) if quote else _OTHER_QUOTES[1:],
        quoted="strings" if quote else "optional",
        words=("true", "false", "null"),
    )
    return ArgumentsGuess(arguments, layout.before, quote, False, TAG_WITH_TAGGED, "name, then lines")


_OTHER_QUOTES: Final = ("'", '"')


def _written_raw(frame: TurnFrame, samples: CallSamples) -> bool:
    """True if a backslash in a string is written as it is."""
    value = VALUES[0] + "\\" + VALUES[1]
    return value in _turn_with(frame, samples, value)


def _words(frame: TurnFrame, samples: CallSamples, gap: str, behind: str) -> tuple[str, str, str]:
    """Return the spellings of true, false and null."""
    found = []
    for value, default in ((True, "true"), (False, "false"), (None, "null")):
        rest = _turn_with(frame, samples, value).partition(KEYS[0])[2]
        word = re.match(r"\w+", rest[len(gap) :])
        found.append(word.group() if word is not None else default)
    return found[0], found[1], found[2]


# -- Elements -----------------------------------------------------------------------------------------------------


def _elements(frame: TurnFrame, samples: CallSamples, layout: _Layout) -> ArgumentsGuess | None:
    """Infer ``<key>value</key>``: the name of an argument comes again after its value."""
    close, again, rest = layout.between.partition(KEYS[0])
    name_close = layout.to_value
    if not again or not name_close or not rest.startswith(name_close):
        return None
    separator = diff.lead(rest[len(name_close) :])
    opened = rest[len(name_close) + len(separator) :]
    last = close + KEYS[1] + name_close
    if not opened or not layout.before.endswith(opened) or not layout.behind.startswith(last):
        return None
    arguments = ElementArguments(
        open=Marker(opened),
        close=Marker(close),
        name_close=name_close,
        separator=separator,
        item=_item(frame, samples, name_close + opened, name_close) or ElementArguments().item,
    )
    gap = layout.before[: len(layout.before) - len(opened)]
    if layout.behind.startswith(last + separator):
        last += separator
    return ArgumentsGuess(arguments, gap, last, False, TAG_WITH_TAGGED, "name, then elements named after arguments")


def _item(frame: TurnFrame, samples: CallSamples, before: str, behind: str) -> str:
    """Return the name of the elements of an array, if they are elements."""
    text = _turn_with(frame, samples, [NUMBER])
    found = re.search(re.escape(KEYS[0] + before) + r"(\w+)" + re.escape(behind + _NUMBER_TEXT), text)
    return "" if found is None else found.group(1)


# -- Tags ---------------------------------------------------------------------------------------------------------


_SPECIAL: Final = "<i>&\n"


def _escape(frame: TurnFrame, samples: CallSamples) -> Literal["none", "xml", "cdata"]:
    """Return how a template escapes the characters that are special in XML."""
    value = VALUES[0] + _SPECIAL + VALUES[1]
    text = _turn_with(frame, samples, value)
    if f"<![CDATA[{value}]]>" in text:
        return "cdata"
    return "xml" if value not in text and value in unescape(text) else "none"


def _tagged(
    samples: CallSamples, layout: _Layout, values: _Values, escape: Literal["none", "xml", "cdata"]
) -> Iterator[ArgumentsGuess]:
    """Yield layouts in which each argument has tags of its own."""
    key_open = diff.common_suffix([layout.before, layout.between])
    value_close = diff.common_prefix([layout.between, layout.behind])
    if not key_open.strip() or not value_close.strip():
        # No common token, so compare characters.
        key_open = key_open if key_open.strip() else diff.same_end(layout.before, layout.between)
        value_close = value_close if value_close.strip() else diff.same_start(layout.between, layout.behind)
    if not key_open.strip() or not value_close.strip():
        return
    over = len(key_open) + len(value_close) - len(layout.between)
    readings = [(key_open, value_close)]
    if over > 0:
        readings = [(key_open[over:], value_close), (key_open, value_close[: len(value_close) - over])]
    elif over < 0 and not layout.between[len(value_close) : len(layout.between) - len(key_open)].strip():
        readings = [(key_open, layout.between[: len(layout.between) - len(key_open)])]
    for opened, closed in readings:
        if not opened.strip() or not closed.strip():
            continue
        name_gap = layout.before[: len(layout.before) - len(opened)]
        if not _empty_agrees(samples, name_gap):
            continue
        for key, key_close, value_open in _between_key_and_value(layout, values):
            in_front = value_open or key_close
            ahead, behind = _newlines(in_front, at_end=True), _newlines(closed, at_end=False)
            arguments = TaggedArguments(
                key_open=Marker(opened),
                key=key,
                key_close=Marker(key_close),
                value_open=Marker(value_open) if value_open else None,
                value_close=Marker(closed),
                trim=ahead,
                trim_after=None if behind == ahead else behind,
                escape=escape,
            )
            yield ArgumentsGuess(
                arguments, name_gap, _last(layout, closed), False, TAG_WITH_TAGGED, "name, then tagged arguments"
            )


def _last(layout: _Layout, closed: str) -> str:
    """Return the close of the last value; the white space after it may be missing there."""
    return closed if layout.behind.startswith(closed) else closed.rstrip()


def _empty_agrees(samples: CallSamples, name_gap: str) -> bool:
    """True if a call without arguments has the same text after its name."""
    if samples.empty is None or not name_gap.strip():
        return True
    rest = samples.empty[samples.empty.index(NAMES[0]) + len(NAMES[0]) :]
    return rest.startswith(name_gap.rstrip())


def _between_key_and_value(layout: _Layout, values: _Values) -> Iterator[tuple[str, str, str]]:
    """Yield (key pattern, key_close, value_open)."""
    gap = layout.to_value
    typed = _typed_attribute(gap, values)
    if typed is not None:
        pattern, rest = typed
        yield "{key}" + pattern, rest, ""
        return
    pieces = diff.split_tags(gap)
    if len(pieces) > 1:
        yield "{key}", "".join(pieces[:-1]), pieces[-1]
    yield "{key}", gap, ""


def _typed_attribute(gap: str, values: _Values) -> tuple[str, str] | None:
    """Find a word between key and value that changes with the type; return the pattern before and the text after."""
    other = values.gaps.get("number")
    if other is None or other == gap:
        return None
    strings, numbers = diff.tokens(gap), diff.tokens(other)
    differ = [i for i, (a, b) in enumerate(zip(strings, numbers, strict=False)) if a != b]
    if len(strings) != len(numbers) or len(differ) != 1:
        return None
    at = differ[0]
    words = {strings[at], numbers[at]}
    variable = "string" if words == {"true", "false"} else "type"
    return "".join(strings[:at]) + "{" + variable + "}", "".join(strings[at + 1 :])


def _newlines(text: str, *, at_end: bool) -> int:
    space = diff.trail(text) if at_end else diff.lead(text)
    return space.count("\n")
