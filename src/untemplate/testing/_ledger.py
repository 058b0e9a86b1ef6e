"""Nothing is lost: every character of an output is somewhere in its message, or reported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, Final

from ..format import Format, JsonBody, LiteralArguments, Marker, TaggedArguments
from ..messages import ParsedOutput, Span
from ._subject import Subject, difference

_KINDS: Final = {"reasoning", "content", "name", "id", "arguments", "markup", "dropped"}
_WORD: Final = re.compile(r"(?<![\w\\&#])[^\W\d_]{4,}(?![\w;])")
_MAX_DIAGNOSTICS: Final = 256


def ledger(subject: Subject, raw: str, result: ParsedOutput, where: str) -> None:
    """Nothing is lost: spans cover the output without a gap; what they call text came out; what they call markup is
    nothing but markup; what they call dropped has been reported."""
    law = "nothing is lost"
    at = 0
    found: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for span in result.spans:
        if span.kind not in _KINDS or span.start != at or span.end <= at:
            raise subject.fail(law, f"{where}: {span!r} does not begin at {at}")
        at = span.end
        found[span.kind].append(raw[span.start : span.end])
    if at != len(raw):
        raise subject.fail(law, f"{where}: spans end at {at} of {len(raw)}: {result.spans!r}")
    if not subject.default_policy:
        return
    for kind, text in (("content", result.content or ""), ("reasoning", result.reasoning_content or "")):
        if "".join(found[kind]) != text:
            raise subject.fail(law, f"{where}: {kind} is not its spans" + difference("".join(found[kind]), text))
    said = " ".join(c.function.arguments for c in result.tool_calls)
    said = (said + " " + _decoded(said)).lower()
    quotes = _word_quotes(subject.format)
    valueless = [d.start for d in result.diagnostics if d.code == "argument_without_value"]
    for span in result.spans:
        piece = quotes.sub(" ", raw[span.start : span.end])
        if span.kind != "arguments" or piece in said or any(_last_before(result, at) is span for at in valueless):
            continue
        for word in _WORD.findall(piece):
            if word.lower() not in said and word != "None":
                raise subject.fail(law, f"{where}: {word!r} is in no argument, but its span says so: {piece!r}")
    _calls_of_spans(subject, raw, result, where)
    words = _markup_words(subject.format)
    for i, piece in enumerate(found["markup"]):
        rest = words.pattern.sub(" ", piece)
        if i == len(found["markup"]) - 1 and result.spans[-1].kind == "markup":
            rest = words.without_part(rest.rstrip())
        if re.search(r"\w", rest):
            raise subject.fail(law, f"{where}: {piece!r} is called markup and holds {rest.strip()!r}")
    if len(result.diagnostics) < _MAX_DIAGNOSTICS:
        for span in result.spans:
            if span.kind == "dropped" and not any(
                d.start <= span.end and d.end >= span.start for d in result.diagnostics
            ):
                raise subject.fail(law, f"{where}: {raw[span.start : span.end]!r} was dropped and not reported")


def _calls_of_spans(subject: Subject, raw: str, result: ParsedOutput, where: str) -> None:
    """Each span of a name, an id or arguments belongs to a call, and its text to that call."""
    for span in result.spans:
        if span.kind not in ("name", "id", "arguments"):
            if span.call is not None:
                raise subject.fail("spans name their call", f"{where}: {span!r} belongs to no call")
            continue
        if span.call is None or not 0 <= span.call < len(result.tool_calls):
            raise subject.fail("spans name their call", f"{where}: {span!r} with {len(result.tool_calls)} calls")
        name = result.tool_calls[span.call].function.name
        piece = raw[span.start : span.end]
        if span.kind == "name" and re.sub(r"\W", "", name) not in re.sub(r"\W", "", piece):
            raise subject.fail("spans name their call", f"{where}: {piece!r} is not the name of {name!r}")


@lru_cache(maxsize=128)
def _word_quotes(fmt: Format) -> re.Pattern[str]:
    """Quotes that hold letters (``<escape>``)."""
    found = {
        q for t in fmt.tools if isinstance(a := getattr(t.body, "arguments", None), LiteralArguments) for q in a.quotes
    }
    return re.compile("|".join(re.escape(q) for q in sorted(found) if re.search(r"\w", q)) or "(?!)")


def _last_before(result: ParsedOutput, place: int) -> Span | None:
    """The last argument span before a place: a name without a value, where that has been reported."""
    return next((s for s in reversed(result.spans) if s.kind == "arguments" and s.end <= place), None)


def _decoded(arguments: str) -> str:
    """JSON text with its escapes undone, roughly: words that were escaped can be found in it."""
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else {"n": "\n", "t": "\t", "r": "\r"}.get(m[2], m[2]),
        arguments,
    )


@dataclass(slots=True)
class _Words:
    """What may stand in a span of markup besides punctuation."""

    pattern: re.Pattern[str]
    literals: list[str]

    def without_part(self, text: str) -> str:
        """The text without the beginning of a marker at its end, where the output was cut."""
        for size in range(max(map(len, self.literals), default=0), 0, -1):
            if text[-size:].strip() and any(word.startswith(text[-size:]) for word in self.literals):
                return text[:-size]
        return text


@lru_cache(maxsize=128)
def _markup_words(fmt: Format) -> _Words:
    words = {s for marker in markers(fmt) for s in (*marker.spellings, marker.text)}
    attributes: list[str] = []
    for tools in fmt.tools:
        body = tools.body
        if isinstance(body, JsonBody):
            keys = [body.name_key, body.arguments_key, *body.accepted_name_keys, *body.accepted_arguments_keys]
            keys += [k for k in (body.id_key, body.nested_key) if k]
            words |= {json.dumps(k) for k in keys}
            words |= {json.dumps(part) for constant in body.constants for part in constant}
            words |= {"null"}
            continue
        patterns = [body.name]
        if isinstance(body.arguments, TaggedArguments):
            patterns.append(body.arguments.key)
        # What a name's or key's pattern brings along: ``functions.{name}:{index}``, ``{key}" string="{string}``.
        pieces = [p for pattern in patterns for p in re.split(r"\{\w+\}", pattern) if re.search(r"\w", p)]
        words |= set(pieces)
        closes = [s for m in markers(body) for s in m.spellings]
        ends = "|".join(map(re.escape, closes)) or "$"
        attributes += [rf"{re.escape(piece)}[^\n]{{0,40}}?[ \t\r\n]{{0,40}}(?={ends}|$)" for piece in pieces]
    if fmt.channels is not None:
        # A header, from its first marker to its last: roles and channels are words.
        heads = [m for m in (fmt.channels.open, fmt.channels.channel, fmt.channels.recipient) if m is not None]
        opens = "|".join(re.escape(s) for m in heads for s in m.spellings)
        body_ = "|".join(re.escape(s) for s in fmt.channels.body.spellings)
        attributes.append(f"(?:{opens}|^)(?s:.){{0,512}}?(?:{body_}|$)")
    literals = sorted(words, key=len, reverse=True)
    return _Words(re.compile("|".join([*attributes, *map(re.escape, literals)]) or "(?!)"), literals)


def markers(part: Any) -> Iterator[Marker]:
    if isinstance(part, Marker):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from markers(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from markers(getattr(part, field.name))
