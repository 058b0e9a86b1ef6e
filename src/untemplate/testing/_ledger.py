"""Check that nothing is lost: every character of an output is in its message, is declared markup, or is reported.

Two kinds of text may differ from what the Format declares without a report, because they carry no part of the message:

* the index in the pattern of a name (``functions.{name}:{index}``) may be any text;
* the words in a header of a channel (role, channel, type of the text) may be any text on one line.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Final

from .._internal.machine.arguments.xml_text import unescape_xml
from .._internal.machine.call_state import RECOVERING
from ..format import Format, JsonBody
from ..messages import ParsedOutput, Span, ToolCall
from ..tools import ToolSet
from ._alignment import CallText, alignments
from ._markup import markup_rest
from ._subject import Subject, difference, short

_KINDS: Final = {"reasoning", "content", "name", "id", "arguments", "markup", "dropped"}
_OF_CALLS: Final = ("name", "id", "arguments")
_MAX_DIAGNOSTICS: Final = 256
_LAW: Final = "nothing is lost"


def ledger(subject: Subject, raw: str, result: ParsedOutput, where: str) -> None:
    """Check that spans cover the output without a gap, and that each of them holds what its kind means.

    Policies that drop, trim or repair text change the message, so only the cover is checked with them.
    """
    try:
        _cover(raw, result)
        if subject.default_policy:
            _text(subject.format, raw, result)
            _calls(subject, raw, result)
            _markup(subject.format, raw, result)
            _dropped(raw, result)
    except _LostError as error:
        raise subject.fail(_LAW, f"{where}: {error}") from None


class _LostError(Exception):
    """A character that is not accounted for."""


def _cover(raw: str, result: ParsedOutput) -> None:
    """Check that spans are in order, without a gap, and that those of calls belong to a call."""
    at = 0
    for span in result.spans:
        if span.kind not in _KINDS or span.start != at or span.end <= at:
            raise _LostError(f"{span!r} does not begin at {at}")
        at = span.end
        if (span.call is not None) != (span.kind in _OF_CALLS):
            raise _LostError(f"{span!r}: names, ids and arguments, and nothing else, belong to a call")
        if span.call is not None and not 0 <= span.call < len(result.tool_calls):
            raise _LostError(f"{span!r} with {len(result.tool_calls)} calls")
    if at != len(raw):
        raise _LostError(f"spans end at {at} of {len(raw)}: {result.spans!r}")


def _text(fmt: Format, raw: str, result: ParsedOutput) -> None:
    """Check that content and reasoning are their spans. Messages with headers are joined as the Format declares."""
    for kind, text in (("content", result.content or ""), ("reasoning", result.reasoning_content or "")):
        pieces = [raw[s.start : s.end] for s in result.spans if s.kind == kind]
        rest = text
        for number, piece in enumerate(pieces):
            join = "" if fmt.channels is None or not number else fmt.channels.join
            joined = join + piece if rest.startswith(join + piece) else piece
            if not rest.startswith(joined):
                raise _LostError(f"{kind} is not its spans" + difference("".join(pieces), text))
            rest = rest[len(joined) :]
        if rest:
            raise _LostError(f"{kind} is not its spans" + difference("".join(pieces), text))


def _dropped(raw: str, result: ParsedOutput) -> None:
    """Check that what was dropped has been reported."""
    if len(result.diagnostics) >= _MAX_DIAGNOSTICS:
        return
    for span in result.spans:
        if span.kind == "dropped" and not any(d.start <= span.end and d.end >= span.start for d in result.diagnostics):
            raise _LostError(f"{raw[span.start : span.end]!r} was dropped and not reported")


def _markup(fmt: Format, raw: str, result: ParsedOutput) -> None:
    """Check that markup is nothing else."""
    for span in result.spans:
        if span.kind == "markup":
            piece = raw[span.start : span.end]
            rest = markup_rest(fmt, piece, cut=span.end == len(raw))
            if rest:
                raise _LostError(f"{piece!r} is called markup and holds {rest!r}")


# -- calls --------------------------------------------------------------------------------------------------------


def _calls(subject: Subject, raw: str, result: ParsedOutput) -> None:
    """Check names, ids and arguments, call by call."""
    spans: list[list[Span]] = [[] for _ in result.tool_calls]
    for span in result.spans:
        if span.call is not None:
            spans[span.call].append(span)
    tools = ToolSet(subject.context.get("tools"))
    for call, own in zip(result.tool_calls, spans, strict=True):
        pieces = {kind: [raw[s.start : s.end] for s in own if s.kind == kind] for kind in _OF_CALLS}
        if len(pieces["name"]) != 1 or not _is_name(subject.format, pieces["name"][0], call):
            raise _LostError(f"{pieces['name']!r} is not the name of {call.function.name!r}")
        for piece in pieces["id"]:
            if not _is_id(piece, call):
                raise _LostError(f"{piece!r} is not the id of {call!r}")
        _arguments(subject.format, raw, result, call, [s for s in own if s.kind == "arguments"], tools)
        if call.status == "ok":
            _ok(raw, result, own)


def _ok(raw: str, result: ParsedOutput, own: list[Span]) -> None:
    """Check that every character of a call that is ok is its name, id, arguments or markup, and that no problem in it
    has been reported by which a part was ended, dropped or read again."""
    start, end = own[0].start, own[-1].end
    for span in result.spans:
        if start <= span.start < end and span.kind != "markup" and span not in own:
            raise _LostError(f"the call is ok, and {raw[span.start : span.end]!r} in it is {span.kind}")
    for found in result.diagnostics:
        if start <= found.start < end and found.code in RECOVERING:
            raise _LostError(f"the call is ok, and {found.code} is reported in it")


def _arguments(fmt: Format, raw: str, result: ParsedOutput, call: ToolCall, spans: list[Span], tools: ToolSet) -> None:
    """Check that arguments are their spans, in one of the syntaxes that the Format has."""
    function = call.function
    written = [raw[s.start : s.end] for s in spans]
    raw, arguments = _without_expressions(raw, result, spans, function.arguments)
    text = CallText(
        tuple(raw[s.start : s.end] for s in spans),
        function.name,
        arguments,
        tools,
        _reported(result, spans, ("argument_without_value", "broken_arguments")),
        _reported(result, spans, ("unescaped_quote",)),
        _reported(result, spans, ("missing_close",)),
    )
    rests = []
    for align in alignments(fmt):
        rest = align(text)
        if rest is None:
            return
        rests.append(rest)
    left, missing = min(rests, key=lambda rest: len(rest[0]) + len(rest[1]))
    raise _LostError(
        f"arguments of {function.name!r} are not their spans: {short(left)} of the spans against {short(missing)}"
        + difference("".join(written), function.arguments)
    )


def _without_expressions(raw: str, result: ParsedOutput, spans: list[Span], arguments: str) -> tuple[str, str]:
    """Replace names and expressions that were passed on as written by words of the same length, in both texts."""
    at = 0
    for found in result.diagnostics:
        if found.code == "unquoted_value" and any(s.start <= found.start < s.end for s in spans):
            word = raw[found.start : found.end]
            place = _place_of(word, arguments, at)
            if place >= 0:
                at = place + len(word)
                arguments = arguments[:place] + "x" * len(word) + arguments[at:]
                raw = raw[: found.start] + "x" * len(word) + raw[found.end :]
    return raw, arguments


def _place_of(word: str, arguments: str, at: int) -> int:
    """Return where a word begins that is a value without quotes in the arguments; -1 if it is none."""
    found = re.compile(rf"(?:: |, |\[){re.escape(word)}(?=[,}}\]]|\Z)").search(arguments, at)
    return -1 if found is None else found.end() - len(word)


def _reported(result: ParsedOutput, spans: list[Span], codes: tuple[str, ...]) -> frozenset[int]:
    """Return the places of diagnostics with these codes, counted in the joined text of the spans."""
    found = [d for d in result.diagnostics if d.code in codes]
    every = {place for d in found for place in range(d.start, max(d.end, d.start + 1))}
    places: set[int] = set()
    at = 0
    for span in spans if every else ():
        places |= {at + place - span.start for place in every if span.start <= place <= span.end}
        at += span.end - span.start
    return frozenset(places)


def _is_name(fmt: Format, piece: str, call: ToolCall) -> bool:
    """True if the text of a name span is the call's name, with no more around it than the Format declares."""
    text = piece.strip()
    name = call.function.name
    if name in (text, unescape_xml(text), _json_text(f'"{piece}"')):
        return True
    return any(re.fullmatch(_name_pattern(p, name, call.id), text) for p in _name_patterns(fmt))


@lru_cache(maxsize=128)
def _name_patterns(fmt: Format) -> tuple[str, ...]:
    return tuple({t.body.name for t in fmt.tools if not isinstance(t.body, JsonBody)} - {"{name}"})


@lru_cache(maxsize=1024)
def _name_pattern(pattern: str, name: str, call_id: str) -> str:
    """Return an expression for a name written in a pattern; models leave out parts of it."""
    variables = {"{name}": re.escape(name), "{id}": re.escape(call_id), "{index}": "(?s:.*)"}
    pieces = re.split(r"(\{\w+\})", pattern)
    return "".join(variables.get(p) or "".join(f"(?:{re.escape(c)})?" for c in p) for p in pieces)


def _is_id(piece: str, call: ToolCall) -> bool:
    ids = (call.id, call.model_id)
    return piece.strip() in ids or _json_text(piece) in ids


def _json_text(text: str) -> str | None:
    """Return the text of a JSON string; None if it is not one."""
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
