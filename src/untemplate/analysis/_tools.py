"""Infer how a template writes tool calls.

The comparisons are T1–T5 of llama.cpp's template auto-parser.

* A call is rendered with probe words for name, id, keys and values; the text between them is the layout. JSON is the
  only structure that is recognised, by decoding it.
* One call compared with two separates the text of each call from the text around all of them (T1, T2). No arguments,
  one and two separate the text of each argument (T4, T5; :mod:`._arguments`).
* Where the markers of a section and of a call cannot be separated, both readings are returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from ..format import Format, FormatError, JsonArguments, JsonBody, Marker, NamedBody, TaggedArguments, Tools
from . import _diff as diff
from ._arguments import ArgumentsGuess, arguments_guesses
from ._probes import CALL_KEYS, CONTENT, IDS, KEYS, NAMES, VALUES, CallSamples, ProbeCall, ProbeMessage, Style
from ._result import (
    BRACKET_TAG,
    JSON_NATIVE,
    MARKDOWN_BLOCK,
    NAME_AS_KEY,
    PREFIXED_INDEXED,
    TAG_WITH_JSON,
    ToolsGuess,
)
from ._turns import LAST, MIDDLE, Settings, TurnFrame

NAMED_IDS: Final = "functions.{name}:{index}"
"""Ids that hold the name, as Kimi's models count their calls: some templates write nothing else of the name."""
ONE: Final = ProbeCall(NAMES[0], {KEYS[0]: VALUES[0], KEYS[1]: VALUES[1]}, IDS[0])
TWO: Final = ProbeCall(NAMES[1], {KEYS[0]: VALUES[2], KEYS[1]: VALUES[3]}, IDS[1])


def find_calls(frame: TurnFrame) -> CallSamples | None:
    """Find the message shape that makes the template write a call with all of its parts in the fewest characters.

    A longer rendering contains a word for missing content, such as ``None``.
    """
    best = _shortest(frame, ())
    for settings in () if best else frame.prober.settings_for(CALL_KEYS):
        best = best or _shortest(frame, settings)
    if best is None:
        for arguments in ("object", "text"):  # seen or not, this is evidence for `doubts`
            frame.turn(ProbeMessage(CONTENT, calls=(ONE,)), Style(arguments=arguments))
        frame.log.append("T1 calls: never written")
        return None
    return _samples(frame, *best)


def _shortest(frame: TurnFrame, settings: Settings) -> tuple[Style, str, str] | None:
    """Return the shape of messages that makes the template write a call with the fewest characters, the place of the
    turn and its text. ``settings``: of variables of the template."""
    best: tuple[tuple[int, int], Style, str, str] | None = None
    for arguments, no_content, ids in product(("object", "text"), ("null", "empty", "absent"), ("", NAMED_IDS)):
        style = Style(arguments=arguments, no_content=no_content, ids=ids, settings=settings)
        if best is not None and (ids or (best[0][0] == 0 and arguments == "text")):
            continue
        for place in (LAST, MIDDLE):
            turn = frame.turn(ProbeMessage(calls=(ONE,)), style, place)
            if turn is None:
                continue
            if not all(part in turn.text for part in (*KEYS[:2], *VALUES[:2])):
                frame.shows_names = frame.shows_names or NAMES[0] in turn.text
                continue
            frame.shows_arguments = True
            if NAMES[0] not in turn.text:
                continue
            rank = (_oddness(turn.text, arguments), len(turn.text))
            if best is None or rank < best[0]:
                best = (rank, style, place, turn.text)
            break
    return None if best is None else best[1:]


def _samples(frame: TurnFrame, style: Style, place: str, text: str) -> CallSamples:
    """Render further calls of this shape."""
    samples = CallSamples(style, place, text)

    def turn_of(*calls: ProbeCall, content: str = "") -> str | None:
        turn = frame.turn(ProbeMessage(content, calls=calls), style, place)
        return None if turn is None or calls[-1].name not in turn.text else turn.text

    samples.two = turn_of(ONE, TWO)
    samples.empty = turn_of(replace(ONE, arguments={}))
    samples.single = turn_of(replace(ONE, arguments={KEYS[0]: VALUES[0]}))
    both = turn_of(ONE, content=CONTENT)
    samples.with_content = both if both is not None and -1 < both.find(CONTENT) < both.find(NAMES[0]) else None
    samples.short_ids = turn_of(replace(ONE, id=f"call_{IDS[0]}")) is None
    frame.log.append(f"T1 calls: {style}, {text!r}")
    frame.log.append(f"T2 two calls: {samples.two!r}")
    before, _, after = text.partition(NAMES[0])
    frame.log.append(f"T3 before the name {before!r}, after it {after[: _first_key(after)]!r}")
    frame.log.append(f"T5 no arguments: {samples.empty!r}")
    return samples


def _first_key(text: str) -> int:
    """Return where the first argument begins."""
    return min((at for key in KEYS[:2] if (at := text.find(key)) >= 0), default=len(text))


def _oddness(text: str, arguments: str) -> int:
    """Rate how unintended a rendering looks: Python's quotes around keys, or a JSON string in place of an object."""
    if f"'{KEYS[0]}'" in text:
        return 2
    if arguments == "text" and f'\\"{KEYS[0]}\\"' in text:
        return 1
    return 0


def marker(text: str) -> Marker | None:
    return Marker(text) if text else None


# -- Reading one layout -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CallSurroundings:
    """Text around call bodies: before the first, between two, after the last."""

    before: str
    between: str | None
    behind: str


def tools_guesses(frame: TurnFrame, samples: CallSamples, known: tuple[str | None, ...]) -> list[ToolsGuess]:
    """Yield hypotheses about calls. ``known``: markers of reasoning and content, which may precede the first call."""
    guesses = list(_json_guesses(frame, samples, known)) or list(_named_guesses(frame, samples, known))
    frame.log.append(f"tools: {[(g.variant, g.source) for g in guesses]!r}")
    return list(dict.fromkeys(guesses))


def _json_guesses(frame: TurnFrame, samples: CallSamples, known: tuple[str | None, ...]) -> Iterator[ToolsGuess]:
    text = samples.one
    span = diff.json_around(text, text.index(NAMES[0]))
    if span is None or KEYS[0] not in text[span.start : span.end]:
        return
    second = None
    between = None
    if samples.two is not None and NAMES[1] in samples.two:
        first = diff.json_around(samples.two, samples.two.index(NAMES[0]))
        second = diff.json_around(samples.two, samples.two.index(NAMES[1]))
        if first is not None and second is not None and first.end <= second.start:
            between = samples.two[first.end : second.start]
    body = _json_body(span.value, None if second is None else second.value)
    if body is None:
        return
    ids = "{index}" if body.id_key and _is_index(span.value, body.id_key) else _made_ids(samples)
    before = _clean_front(text[: span.start], known)
    behind = text[span.end :]
    if samples.two is not None and second is not None and between is not None:
        behind = samples.two[second.end :]
    around = _CallSurroundings(before, between, behind)
    variant = NAME_AS_KEY if body.name_is_key else JSON_NATIVE
    if "```" in before:
        variant = MARKDOWN_BLOCK
    for tools, ends in _around(frame, around, body):
        yield ToolsGuess(tools, ids, variant, "JSON object", ends)


def _json_body(value: Any, second: Any) -> JsonBody | None:
    """Find name, arguments and id in a call object."""
    nested = None
    inner = value
    for key, item in value.items():
        if isinstance(item, dict) and NAMES[0] in item.values():
            nested, inner = key, item
    if NAMES[0] in value:
        return JsonBody(name_is_key=True, accepted_arguments_keys=())
    name_key = next((k for k, v in inner.items() if v == NAMES[0]), None)
    arguments_key = next((k for k, v in inner.items() if KEYS[0] in str(v) and k != name_key), None)
    if name_key is None or arguments_key is None:
        return None
    id_key = next((k for k, v in value.items() if v == IDS[0]), None)
    if id_key is None and isinstance(second, dict):
        id_key = next((k for k, v in value.items() if str(v) == "0" and str(second.get(k)) == "1"), None)
    skip = (name_key, arguments_key, id_key, nested)
    constants = tuple((k, v) for k, v in value.items() if isinstance(v, str) and k not in skip and v)
    return JsonBody(
        name_key=name_key,
        arguments_key=arguments_key,
        accepted_arguments_keys=(),
        id_key=id_key,
        nested_key=nested,
        constants=constants,
    )


def _made_ids(samples: CallSamples) -> str:
    return "alphanumeric9" if samples.short_ids else "random"


def _is_index(value: dict[str, Any], key: str) -> bool:
    return str(value.get(key)).isdigit()


def _named_guesses(frame: TurnFrame, samples: CallSamples, known: tuple[str | None, ...]) -> Iterator[ToolsGuess]:
    text = samples.one
    for arguments in arguments_guesses(frame, samples):
        name = _name_layout(samples, arguments)
        if name is None:
            continue
        before = text[: text.index(NAMES[0])]
        if name.before:
            before = before[: len(before) - len(name.before)] if before.endswith(name.before) else before
        before = _clean_front(before, known)
        between = None
        if samples.two is not None:
            start = _behind_arguments(samples.two, arguments, 0)
            stop = samples.two.index(NAMES[1]) - len(name.before)
            between = samples.two[start:stop] if 0 < start <= stop else None
        behind = text[_behind_arguments(text, arguments, 0) :]
        if samples.two is not None and between is not None:
            behind = samples.two[_behind_arguments(samples.two, arguments, 1) :]
        body = NamedBody(
            name=name.pattern,
            name_close=marker(name.close),
            id_open=marker(name.id_open),
            arguments=arguments.arguments,
            escape=name.escape,
            index_base=name.index_base,
        )
        ids = name.pattern if "{index}" in name.pattern and '"' not in name.pattern else _made_ids(samples)
        for tools, ends in _around(frame, _CallSurroundings(before, between, behind), body):
            yield ToolsGuess(tools, ids, _variant(tools, arguments), arguments.source, ends)


def _variant(tools: Tools, arguments: ArgumentsGuess) -> str:
    body = tools.body
    assert isinstance(body, NamedBody)
    if "{index}" in body.name and '"' not in body.name:
        return PREFIXED_INDEXED
    if arguments.variant != TAG_WITH_JSON:
        return arguments.variant
    opener = tools.call_open or body.name_open or tools.section_open
    if body.id_open is not None or (opener is not None and opener.text.strip()[:1] == "["):
        return BRACKET_TAG
    return TAG_WITH_JSON


def _behind_arguments(text: str, guess: ArgumentsGuess, number: int) -> int:
    """Return where the arguments of a call end; for tagged ones, after the close of the last value."""
    last = VALUES[2 * number + 1]
    at = text.index(last) + len(last)
    if guess.json:
        span = diff.json_around(text, text.index(VALUES[2 * number]))
        return at if span is None else span.end
    return at + len(guess.last_close) if text.startswith(guess.last_close, at) else at


# -- The name -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Name:
    pattern: str
    before: str = ""
    close: str = ""
    id_open: str = ""
    escape: Any = "none"
    index_base: int = 0


_PREFIX: Final = re.compile(r"[\w-]+[.:/]$")


def _name_layout(samples: CallSamples, arguments: ArgumentsGuess) -> _Name | None:
    """Infer the layout of the name: the text before and after it, an index, an id."""
    gap = arguments.name_gap
    text = samples.one
    before = text[: text.index(NAMES[0])]
    at = text.index(NAMES[0]) + len(NAMES[0])
    behind = text[at : at + len(gap)]
    if IDS[0] in behind:
        ahead, _, close = behind.partition(IDS[0])
        if any(diff.is_tag(t) for t in diff.tokens(ahead)):
            return _Name("{name}", id_open=ahead, close=close)
        return _Name("{name}" + ahead + "{id}", close=close)
    if IDS[0] in before:
        inside = before[before.rfind(IDS[0]) + len(IDS[0]) :]
        return _Name("{id}" + inside + "{name}", before=IDS[0] + inside, close=gap)
    index = _index(samples, behind)
    if index is not None:
        middle, base, close = index
        prefix = _PREFIX.search(before)
        lead = prefix.group() if prefix is not None else ""
        escape = "xml" if '"' in middle else "none"
        return _Name(lead + "{name}" + middle + "{index}", lead, close, escape=escape, index_base=base)
    return _Name("{name}", close=gap)


def _index(samples: CallSamples, behind: str) -> tuple[str, int, str] | None:
    """Find a number after the name that counts calls; return the text before it, its place, and the text after it."""
    if samples.two is None:
        return None
    found = re.search(r"\d+", behind)
    at = samples.two.index(NAMES[1]) + len(NAMES[1])
    if found is None or "{" in behind[: found.start()]:
        return None
    number = int(found.group())
    second = f"{behind[: found.start()]}{number + 1}{behind[found.end() :]}"
    if not samples.two.startswith(second, at):
        return None
    return behind[: found.start()], number, behind[found.end() :]


# -- Section, list and call ---------------------------------------------------------------------------------------


def _clean_front(before: str, known: tuple[str | None, ...]) -> str:
    """Return the text before the first call, without the part that belongs to reasoning and content."""
    return diff.strip_front(before, known)


def _around(
    frame: TurnFrame, around: _CallSurroundings, body: JsonBody | NamedBody
) -> Iterator[tuple[Tools, tuple[str, ...]]]:
    """Yield every way to divide the text around the bodies between section, list and call.

    Each comes with the additional ends of a turn of calls.
    """
    before, between, behind = around.before, around.between, around.behind
    for end in (frame.end.strip(), *(e.strip() for e in frame.ends)):
        if end and behind.rstrip().endswith(end):
            behind = behind.rstrip()[: -len(end)]
            break
    opened, closed = re.search(r"\[\s*$", before), re.match(r"\s*\]", behind)
    if opened is not None and closed is not None and (between is None or between.strip() == ","):
        yield from _possible(_list(before, behind, opened, closed, between, body))
        return
    if between is None:
        # A single call: all of the text belongs to it, or the text after its first marker ends the turn.
        close, rest = _first_close(behind)
        yield from _possible(_calls("", before, behind, "", "", body))
        yield from _possible(_calls("", before, close, "", "", body), rest)
        return
    close = diff.common_prefix([between, behind])
    if before.strip() and between.rstrip().endswith(before.strip()):
        # The opener of the first call opens every call, so there is no section.
        separator = between[len(close) : len(between) - len(before.lstrip())]
        rest = behind[len(close) :]
        yield from _possible(_calls("", before, close, separator.rstrip(" ") and separator, "", body), rest)
    opener = diff.common_suffix([before, between])
    for call_open, call_close in _shared_out(opener, close, between):
        section_open, section_close = before[: len(before) - len(call_open)], behind[len(call_close) :]
        separator = between[len(call_close) : len(between) - len(call_open)]
        if section_open.strip():
            yield from _possible(_calls(section_open, call_open, call_close, separator, section_close, body))
        else:
            yield from _possible(_calls("", call_open, call_close, separator, "", body), section_close)


def _shared_out(opener: str, close: str, between: str) -> Iterator[tuple[str, str]]:
    """Yield opener and close of a call where together they may be longer than the text between two calls."""
    over = len(opener) + len(close) - len(between)
    if over <= 0:
        yield opener, close
        return
    yield _shorter(opener, over, front=True), close
    yield opener, _shorter(close, over, front=False)


def _shorter(text: str, by: int, *, front: bool) -> str:
    return text[by:] if front else text[: len(text) - by]


def _first_close(behind: str) -> tuple[str, str]:
    pieces = diff.split_tags(behind)
    return (pieces[0], "".join(pieces[1:])) if pieces else ("", "")


def _list(
    before: str,
    behind: str,
    opened: re.Match[str],
    closed: re.Match[str],
    between: str | None,
    body: JsonBody | NamedBody,
) -> Tools:
    """Build calls in a JSON list; the text around the list belongs to the section."""
    section_open = before[: opened.start()]
    section_close = behind[closed.end() :] if section_open.strip() else ""
    return Tools(
        section_open=visible(section_open),
        section_close=visible(section_close),
        list_open=Marker(opened.group()),
        list_close=Marker(closed.group()),
        separator=Marker(between if between and between.strip() else ", "),
        body=body,
    )


def _calls(
    section_open: str, call_open: str, call_close: str, separator: str, section_close: str, body: JsonBody | NamedBody
) -> Tools:
    """Build calls with markers of their own: the last marker before a name is the name's, the first close the
    arguments'."""
    if isinstance(body, NamedBody):
        opens, closes = diff.split_tags(call_open), diff.split_tags(call_close)
        name_open = None
        if len(opens) > 1:
            name_open, call_open = marker(opens[-1]), "".join(opens[:-1])
        arguments_close = None
        if len(closes) == 1 and isinstance(body.arguments, JsonArguments):
            closes = _fence_and_tag(call_close)
        if len(closes) > 1:
            arguments_close, call_close = marker("".join(closes[:-1])), closes[-1]
        if name_open is not None and arguments_close is None and isinstance(body.arguments, TaggedArguments):
            arguments_close, call_close = marker(call_close), ""
        body = replace(body, name_open=name_open, arguments_close=arguments_close)
    return Tools(
        section_open=visible(section_open),
        section_close=visible(section_close),
        call_open=visible(call_open),
        call_close=visible(call_close),
        separator=marker(separator),
        body=body,
    )


def _fence_and_tag(text: str) -> list[str]:
    """Split ``\\n```</call>`` into the close of the arguments and the tag that closes the call."""
    found = diff.tokens(text.rstrip())
    ahead = "".join(found[:-1])
    if not found or not diff.is_tag(found[-1]) or not ahead.strip() or ahead[-1].isalnum() or ahead[-1] in "\"'=":
        return [text]
    return [ahead, found[-1] + diff.trail(text)]


def visible(text: str) -> Marker | None:
    """Return a marker, or ``None`` for white space only."""
    return Marker(text) if text.strip() else None


def _possible(tools: Tools, end: str = "") -> Iterator[tuple[Tools, tuple[str, ...]]]:
    """Yield a hypothesis if it makes a valid Format, with the ends of its turns."""
    try:
        Format(name="guess", tools=(tools,))
    except FormatError:
        return
    yield tools, (end,) if end.strip() else ()
