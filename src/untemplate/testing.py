"""The laws of DESIGN section 4 on one case: for people who add a format, and for every test of this project.

>>> from untemplate.testing import case, check
>>> parsed = check("hermes", 'Sure.<tool_call>{"name": "f", "arguments": {}}</tool_call>',
...                {"content": "Sure.", "tool_calls": [("f", {})]})
>>> parsed.finish_reason
'tool_calls'
>>> _ = case("hermes").raw("Hello!").content("Hello!").check()

Rules of this module:

* One call states one case and holds it against every law. What a law may assume is said where it is checked; a law
  that does not apply to a case is skipped, never bent.
* A failure is an AssertionError that names the law, the smallest cut that breaks it, and both results.
* Everything is deterministic: the random cuts of an output depend on nothing but the output.
"""

from __future__ import annotations

import importlib
import json
import random
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final, cast

from .format import Format, JsonBody, LiteralArguments, Marker, TaggedArguments
from .formats import named
from .output_parser import OutputParser
from .policy import Policy
from .protocol import DeltaMessage, ParsedOutput, Span
from .stream import Stream
from .tokens import TokenTable

__all__ = ["Case", "LawBroken", "PieceTokenizer", "case", "check", "fold"]

_RANDOM_SPLITS: Final = 6
_LAGS: Final = (1, 2, 3, 5, 8, 13, 20)
"""Characters that the text stays behind its ids."""
_SEED: Final = "untemplate.testing"

Parsed = tuple[tuple[str, ...], ...]
"""A message in order: ``("reasoning", text)``, ``("content", text)``, ``("call", id, name, arguments)``."""


class LawBroken(AssertionError):
    """A law that does not hold. ``law`` names it; ``chunks`` is the smallest cut that breaks it, if a cut does."""

    def __init__(self, law: str, message: str, chunks: tuple[str, ...] | None = None) -> None:
        super().__init__(message)
        self.law = law
        self.chunks = chunks


def check(
    format: Format | str | OutputParser,
    raw: str,
    expected: ParsedOutput | Mapping[str, Any] | None = None,
    *,
    tools: Sequence[Any] | None = None,
    tool_choice: Any = None,
    prompt: str | None = None,
    prefill: str = "",
    messages: Sequence[Any] | None = None,
    reasoning: str | None = None,
    finish_reason: str = "stop",
    policy: Policy | None = None,
    tokenizer: Any = None,
    special_tokens: Sequence[str] | None = None,
    exhaustive: bool = False,
    cuts: int = 160,
    roundtrip: bool = True,
) -> ParsedOutput:
    """Parses ``raw`` whole and holds the result against ``expected`` and against the laws.

    Args:
        format: a Format, a name from the catalogue, or a parser (whose Format and policy count).
        raw: what the model wrote, special tokens included.
        expected: the message, compared to the character. A mapping may have ``reasoning``, ``content`` (what is missing
            must be empty), ``tool_calls`` (``(name, arguments)`` or ``(name, arguments, status)``; arguments that are
            no str are compared as JSON, the status is ``ok`` if not given), ``finish_reason`` and ``diagnostics``
            (the codes, in order). ``None``: only the laws.
        tools, tool_choice, prompt, prefill, messages, policy: as in :meth:`OutputParser.stream`.
        reasoning: as in :meth:`OutputParser.named`.
        finish_reason: the engine's.
        tokenizer: a tokenizer with ``get_vocab()`` and ``encode(text, add_special_tokens=False)`` for the laws about
            token ids; by default one that keeps special tokens whole and cuts everything else into small pieces.
        special_tokens: the markers that are one token (by default the Format's).
        exhaustive: every cut in two and every prefix, even of long outputs.
        cuts: how many of each to try at most otherwise.
        roundtrip: whether to render the message again and parse that.

    Returns:
        The message that the whole output means.

    Raises:
        LawBroken: (an AssertionError) the message is another, or a law does not hold.
        ValueError: a name that the catalogue does not have, or a key that ``expected`` cannot have.
    """
    subject = _Subject(
        format,
        raw,
        reasoning,
        special_tokens,
        {
            "tools": tools,
            "tool_choice": tool_choice,
            "prompt": prompt,
            "prefill": prefill,
            "messages": messages,
            "policy": policy,
        },
        finish_reason,
        None if exhaustive else cuts,
    )
    whole = subject.whole
    if expected is not None:
        _expect(subject, expected)
    _sound(subject, prefill + raw, whole, "whole")
    _splits(subject)
    _truncations(subject)
    _no_tools(subject)
    _token_ids(subject, tokenizer)
    _start_states(subject)
    if roundtrip:
        _round_trip(subject)
    assert whole.result is not None
    return whole.result


def fold(deltas: Iterable[DeltaMessage]) -> Parsed:
    """The message that deltas add up to, in order.

    Raises:
        LawBroken: a delta that no client could add: a call continued before it began, begun twice, or begun without id,
            type or name; an empty delta.
    """
    items: list[list[str]] = []
    calls: list[list[str]] = []

    def text(kind: str, piece: str | None) -> None:
        if piece is None:
            return
        if not piece:
            raise LawBroken("nothing is retracted", f"an empty {kind} delta")
        if items and items[-1][0] == kind:
            items[-1][1] += piece
        else:
            items.append([kind, piece])

    for delta in deltas:
        if delta.reasoning is None and delta.content is None and not delta.tool_calls:
            raise LawBroken("nothing is retracted", f"an empty delta: {delta!r}")
        text("reasoning", delta.reasoning)
        text("content", delta.content)
        for piece in delta.tool_calls or ():
            function = piece.function
            if piece.index == len(calls):
                if not piece.id or piece.type != "function" or function is None or not function.name:
                    raise LawBroken("nothing is retracted", f"a call begins without id, type or name: {piece!r}")
                calls.append(["call", piece.id, function.name, ""])
                items.append(calls[-1])
            elif piece.index != len(calls) - 1:
                raise LawBroken("nothing is retracted", f"call {piece.index} goes on after {len(calls)} have begun")
            elif piece.id or piece.type or (function is not None and function.name):
                raise LawBroken("nothing is retracted", f"a call's id, type or name comes again: {piece!r}")
            if function is not None and function.arguments:
                calls[-1][3] += function.arguments
    return tuple(tuple(item) for item in items)


# -- One case, parsed in many ways ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Outcome:
    """What one way of feeding an output gave."""

    folded: Parsed
    early: Parsed
    """What had been said before ``finish``."""
    result: ParsedOutput

    def same(self) -> dict[str, Any]:
        """What must not depend on the cut, by name."""
        return {
            "message": self.folded,
            "finish_reason": self.result.finish_reason,
            "calls": [(c.status, c.model_id) for c in self.result.tool_calls],
            "diagnostics": [(d.code, d.start, d.end) for d in self.result.diagnostics],
            "spans": [(s.kind, s.start, s.end, s.call) for s in self.result.spans],
        }


class _Subject:
    """A case and the ways to run it."""

    def __init__(
        self,
        format: Format | str | OutputParser,
        raw: str,
        reasoning: str | None,
        special_tokens: Sequence[str] | None,
        context: dict[str, Any],
        finish_reason: str,
        cuts: int | None,
    ) -> None:
        if isinstance(format, OutputParser):
            if reasoning is not None or special_tokens is not None:
                raise ValueError("reasoning and special_tokens belong to the parser where one is given")
            self.parser = format
        else:
            self.parser = _parser_of(format, reasoning, None if special_tokens is None else tuple(special_tokens))
        self.format = self.parser.format
        self.raw = raw
        self.context = {k: v for k, v in context.items() if v is not None and v != ""}
        self.finish_reason = finish_reason
        self.exhaustive = cuts is None
        self.cuts = cuts
        policy: Policy | None = self.context.get("policy")
        self.default_policy = (self.parser.policy if policy is None else policy.resolved()).is_default
        """Whether texts come out as they stand: no policy drops, trims or mends them."""
        self.random = random.Random(zlib.crc32(raw.encode("utf-8", "surrogatepass")))
        self.whole = self.run([raw])

    def run(
        self,
        chunks: Iterable[str],
        *,
        parser: OutputParser | None = None,
        ids: Sequence[Sequence[int]] | None = None,
        finish_reason: str | None = None,
        **changes: Any,
    ) -> _Outcome:
        """Feeds the chunks, with the ids of each if there are any. ``changes`` replace parts of the context."""
        context = {**self.context, **changes}
        stream = (parser or self.parser).stream(collect=True, spans=True, seed=_SEED, **context)
        deltas: list[DeltaMessage] = []
        if ids is None:
            for chunk in chunks:
                deltas += stream.feed(chunk)
        else:
            for chunk, new in zip(chunks, ids, strict=True):
                deltas += stream.feed(chunk, new)
        early = fold(deltas)
        deltas += stream.finish(finish_reason or self.finish_reason)
        _closed(stream)
        return _Outcome(fold(deltas), early, stream.result())

    def places(self, size: int) -> Iterable[int]:
        """Where to cut: everywhere, or in a long output at the edges of what stands between letters and elsewhere."""
        many = self.cuts
        if many is None or size <= many:
            return range(1, size)
        edges = {m.start() for m in re.finditer(r"(?<=\W)|\W", self.raw) if 0 < m.start() < size}
        inner = set(range(1, size)) - edges
        chosen = set(self.random.sample(sorted(edges), min(len(edges), many * 3 // 4)))
        chosen |= set(self.random.sample(sorted(inner), min(len(inner), many - len(chosen))))
        return sorted(chosen)

    def fail(self, law: str, problem: str, chunks: Sequence[str] | None = None) -> LawBroken:
        lines = [f"{law}: {problem}", f"  format  {self.format.name}", f"  raw     {_short(self.raw, 2000)}"]
        lines += [f"  {k:<7} {_short(v)}" for k, v in self.context.items()]
        if chunks is not None:
            lines.append(f"  cut     {_short(list(chunks), 2000)}")
        return LawBroken(law, "\n".join(lines), None if chunks is None else tuple(chunks))


@lru_cache(maxsize=128)
def _parser_of(format: Format | str, reasoning: str | None, special: tuple[str, ...] | None) -> OutputParser:
    fmt = named(format, reasoning=reasoning) if isinstance(format, str) else format
    if isinstance(format, Format) and reasoning is not None:
        raise ValueError("reasoning= goes with a name, not with a Format")
    return OutputParser.from_format(fmt if special is None else replace(fmt, special_tokens=special))


def _closed(stream: Stream) -> None:
    """``finish`` is idempotent, and nothing may be fed after it."""
    again = stream.finish()
    if again:
        raise LawBroken("finish is idempotent", f"the second finish() says {again!r}")
    try:
        stream.feed("x")
    except RuntimeError:
        return
    raise LawBroken("finish is final", "feed() after finish() does not raise RuntimeError")


def _short(value: Any, limit: int = 600) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _difference(expected: Any, got: Any) -> str:
    return f"\n    expected {_short(expected, 2000)}\n    got      {_short(got, 2000)}"


# -- The message ----------------------------------------------------------------------------------------------------

_EXPECTED_KEYS: Final = ("reasoning", "content", "tool_calls", "finish_reason", "diagnostics")


def _expect(subject: _Subject, expected: ParsedOutput | Mapping[str, Any]) -> None:
    result = subject.whole.result
    if isinstance(expected, ParsedOutput):
        wanted: dict[str, Any] = {
            "reasoning": expected.reasoning_content,
            "content": expected.content,
            "tool_calls": [(c.function.name, c.function.arguments, c.status) for c in expected.tool_calls],
            "finish_reason": expected.finish_reason,
        }
    else:
        unknown = set(expected) - set(_EXPECTED_KEYS)
        if unknown:
            raise ValueError(f"expected has {', '.join(map(repr, sorted(unknown)))}; it may have {_EXPECTED_KEYS}")
        wanted = dict(expected)
    got: dict[str, Any] = {
        "reasoning": result.reasoning_content,
        "content": result.content,
        "tool_calls": [(c.function.name, c.function.arguments, c.status) for c in result.tool_calls],
        "finish_reason": result.finish_reason,
        "diagnostics": [d.code for d in result.diagnostics],
    }
    for part in ("reasoning", "content"):
        if (got[part] or None) != (wanted.get(part) or None):
            raise subject.fail("the message", f"{part} is another" + _difference(wanted.get(part), got[part]))
    calls = [call if len(call) == 3 else (*call, "ok") for call in map(tuple, wanted.get("tool_calls") or ())]
    if len(calls) != len(got["tool_calls"]) or not all(map(_same_call, calls, got["tool_calls"])):
        raise subject.fail("the message", "tool calls are others" + _difference(calls, got["tool_calls"]))
    for part in ("finish_reason", "diagnostics"):
        if wanted.get(part) is not None and wanted[part] != got[part]:
            raise subject.fail("the message", f"{part}" + _difference(wanted[part], got[part]))


def _same_call(wanted: tuple[Any, ...], got: tuple[Any, ...]) -> bool:
    if (wanted[0], wanted[2]) != (got[0], got[2]):
        return False
    if isinstance(wanted[1], str):
        return bool(wanted[1] == got[1])
    try:
        return _canonical(json.loads(got[1])) == _canonical(wanted[1])
    except ValueError:
        return False


def _canonical(value: Any) -> str:
    """JSON text that tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True)


def _sound(subject: _Subject, raw: str, outcome: _Outcome, where: str) -> None:
    """What holds for any single parse: deltas add up to the result, the reason to finish fits, the ledger adds up."""
    result = outcome.result
    reason = result.finish_reason
    items: Parsed = tuple(
        (i.type, i.text or "")
        if i.call is None
        else ("call", i.call.id, i.call.function.name, i.call.function.arguments)
        for i in result.items
    )
    if items != outcome.folded:
        raise subject.fail("deltas add up to the result", where + _difference(items, outcome.folded))
    texts = {kind: "".join(i[1] for i in items if i[0] == kind) for kind in ("reasoning", "content")}
    if texts != {"reasoning": result.reasoning_content or "", "content": result.content or ""}:
        raise subject.fail("items add up to the message", where + _difference(texts, result))
    if result.tools_called != bool(result.tool_calls) or (reason == "tool_calls") > bool(result.tool_calls):
        raise subject.fail("finish_reason", f"{where}: {reason!r} with {len(result.tool_calls)} calls")
    for call in result.tool_calls:
        if call.status == "ok":
            try:
                json.loads(call.function.arguments)
            except ValueError:
                raise subject.fail("status", f"{where}: {call!r} is called ok, and is no JSON") from None
    _ledger(subject, raw, result, where)


# -- The ledger -----------------------------------------------------------------------------------------------------

_KINDS: Final = {"reasoning", "content", "name", "id", "arguments", "markup", "dropped"}
_WORD: Final = re.compile(r"(?<![\w\\&#])[^\W\d_]{4,}(?![\w;])")
_MAX_DIAGNOSTICS: Final = 256


def _ledger(subject: _Subject, raw: str, result: ParsedOutput, where: str) -> None:
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
            raise subject.fail(law, f"{where}: {kind} is not its spans" + _difference("".join(found[kind]), text))
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
    names = [re.sub(r"\W", "", c.function.name) for c in result.tool_calls]
    for piece in found["name"]:
        if not any(name in re.sub(r"\W", "", piece) for name in names):
            raise subject.fail(law, f"{where}: {piece!r} is called a name and holds none of {names}")
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
    words = {s for marker in _markers(fmt) for s in (*marker.spellings, marker.text)}
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
        closes = [s for m in _markers(body) for s in m.spellings]
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


def _markers(part: Any) -> Iterator[Marker]:
    if isinstance(part, Marker):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from _markers(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _markers(getattr(part, field.name))


# -- Splits and prefixes --------------------------------------------------------------------------------------------


def _splits(subject: _Subject) -> None:
    """The same output, cut anywhere, gives the same message; and what has been said is never taken back."""
    raw = subject.raw
    wanted = subject.whole.same()
    _prefix(subject, raw, subject.whole.early)
    for place in subject.places(len(raw)):
        chunks = [raw[:place], raw[place:]]
        outcome = subject.run(chunks)
        if outcome.same() != wanted:
            raise _split_failure(subject, chunks)
    for chunks in (list(raw), [raw, ""], ["", raw], *_random_splits(subject)):
        if subject.run(chunks).same() != wanted:
            raise _split_failure(subject, chunks)
    stream = subject.parser.stream(seed=_SEED, **subject.context)
    deltas = stream.feed(raw) + stream.finish(subject.finish_reason)
    if fold(deltas) != subject.whole.folded:
        raise subject.fail("collecting changes nothing", _difference(subject.whole.folded, fold(deltas)))


def _random_splits(subject: _Subject) -> Iterator[list[str]]:
    for n in range(_RANDOM_SPLITS * (5 if subject.exhaustive else 1)):
        longest = (2, 3, 5, 11, 23, 60)[n % 6]
        chunks, at = [], 0
        while at < len(subject.raw):
            size = subject.random.randint(0 if n % 4 == 3 else 1, longest)
            chunks.append(subject.raw[at : at + size])
            at += size
        yield chunks


def _split_failure(subject: _Subject, chunks: list[str]) -> LawBroken:
    wanted = subject.whole.same()

    def broken(candidate: list[str]) -> bool:
        return subject.run(candidate).same() != wanted

    chunks = _shrink(chunks, broken)
    got = subject.run(chunks).same()
    part = next((k for k in wanted if wanted[k] != got[k]), None)
    if part is None:
        return subject.fail("splits are invisible", "the same cut gives different results at different times", chunks)
    return subject.fail("splits are invisible", part + _difference(wanted[part], got[part]), chunks)


def _shrink(chunks: list[str], broken: Callable[[list[str]], bool]) -> list[str]:
    """A smaller cut that is broken too: one cut in two if there is one, else cuts joined while they stay broken."""
    raw = "".join(chunks)
    if len(chunks) > 2:
        at = 0
        for chunk in chunks[:-1]:
            at += len(chunk)
            if broken([raw[:at], raw[at:]]):
                return [raw[:at], raw[at:]]
    step = max(len(chunks) // 2, 1)
    while len(chunks) > 1:
        i = 0
        while i + 1 < len(chunks):
            joined = [*chunks[:i], "".join(chunks[i : i + step + 1]), *chunks[i + step + 1 :]]
            if broken(joined):
                chunks = joined
            else:
                i += step
        if step == 1:
            break
        step //= 2
    return chunks


def _prefix(subject: _Subject, text: str, early: Parsed) -> None:
    """What was said before the end is the beginning of what is said in the end."""
    if not _is_prefix(early, subject.whole.folded):
        raise subject.fail(
            "nothing is retracted",
            f"after {_short(text)}" + _difference(subject.whole.folded, early),
            [text, subject.raw[len(text) :]],
        )


def _is_prefix(part: Parsed, whole: Parsed) -> bool:
    if len(part) > len(whole):
        return False
    for i, item in enumerate(part):
        if i < len(part) - 1 and item != whole[i]:
            return False
        if item[:-1] != whole[i][:-1] or not whole[i][-1].startswith(item[-1]):
            return False
    return True


def _truncations(subject: _Subject) -> None:
    """An output that ends anywhere: no exception, nothing lost; and what was said by then stays said."""
    raw = subject.raw
    prefill = subject.context.get("prefill", "")
    places = list(subject.places(len(raw)))
    again = set(subject.random.sample(places, min(len(places), 400 if subject.exhaustive else 6)))
    for place in places:
        part = raw[:place]
        try:
            outcome = subject.run([part], finish_reason="length")
        except LawBroken:
            raise
        except Exception as error:
            raise subject.fail("model output never raises", f"cut after {_short(part)}: {error!r}", [part]) from error
        _prefix(subject, part, outcome.early)
        _sound(subject, prefill + part, outcome, f"cut after {_short(part)}")
        if outcome.result.finish_reason != "length":
            raise subject.fail("finish_reason", f"cut by length, and is {outcome.result.finish_reason!r}")
        if place in again:
            got = subject.run(list(part), finish_reason="length").same()
            wanted = outcome.same()
            for key in wanted:
                if wanted[key] != got[key]:
                    problem = f"{key} of a cut output, per character" + _difference(wanted[key], got[key])
                    raise subject.fail("splits are invisible", problem, list(part))


def _no_tools(subject: _Subject) -> None:
    """Nothing is invented: where no tools are offered there are no calls."""
    outcome = subject.run([subject.raw], tools=[], tool_choice=None)
    if outcome.result.tool_calls:
        raise subject.fail("nothing is invented", f"calls without tools: {outcome.result.tool_calls!r}")
    _sound(subject, subject.context.get("prefill", "") + subject.raw, outcome, "with no tools")


# -- Token ids ------------------------------------------------------------------------------------------------------

_PIECES: Final = re.compile(r"(?s: ?[^\W\d_]{1,5}|[0-9]|\s{1,3}|[^\w\s]{1,2}|.)")


def _bytes_to_letters() -> dict[int, str]:
    """GPT-2's letters for bytes: printable ASCII and Latin-1 stand for themselves, the others come after 255."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


_LETTERS: Final = _bytes_to_letters()


class PieceTokenizer:
    """A toy tokenizer: special tokens are whole, everything else is cut into pieces of a few characters and written in
    GPT-2's byte letters. Its vocabulary grows with what it encodes.

    Args:
        special: the special tokens.
        spell: cut special tokens into pieces as well, as a model does that spells them.
    """

    def __init__(self, special: Iterable[str], *, spell: bool = False) -> None:
        self.special = tuple(sorted(set(special), key=lambda t: (-len(t), t)))
        self._split = re.compile("(" + "|".join(map(re.escape, self.special)) + ")" if self.special else "((?!))")
        self._spell = spell
        self._ids: dict[str, int] = {token: i for i, token in enumerate(self.special)}
        self._ids.setdefault("Ġ", len(self._ids))  # shows which letters these are

    def get_vocab(self) -> dict[str, int]:
        """Token → id, of what has been encoded so far."""
        return dict(self._ids)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return [self._id(piece) for piece in self.pieces(text)]

    def pieces(self, text: str) -> list[str]:
        """The text cut into tokens."""
        found: list[str] = []
        for i, part in enumerate(self._split.split(text)):
            if i % 2 and not self._spell:
                found.append(part)
            elif i % 2:
                found += [part[:1], *_PIECES.findall(part[1:])]
            else:
                found += _PIECES.findall(part)
        return [piece for piece in found if piece]

    def _id(self, piece: str) -> int:
        token = piece
        if piece not in self.special or self._spell:
            token = "".join(_LETTERS[b] for b in piece.encode("utf-8", "surrogatepass"))
            if token in self.special:  # a piece that only looks like one
                token = f"{token} "
        return self._ids.setdefault(token, len(self._ids))


def _token_ids(subject: _Subject, tokenizer: Any) -> None:
    """Where every marker is one id, text with ids means what the text alone means; however far the text lags."""
    fmt = subject.format
    special = [t for t in fmt.special_tokens if t in subject.raw]
    if not special and tokenizer is None:
        return
    tokens = _tokenized(tokenizer, subject.raw, fmt.special_tokens)
    if tokens is None:
        return
    make: Callable[..., OutputParser] = OutputParser.from_format
    settings = {"policy": subject.parser.policy}
    parser = make(fmt, tokenizer=tokens.tokenizer, **settings)
    texts, ids = tokens.texts, [[i] for i in tokens.ids]
    first = subject.run(texts, ids=ids, parser=parser)
    wanted = first.same()
    if _markers_only(subject, special):
        _same(subject, "ids say what the text says", subject.whole.same(), wanted, texts)
    lags = range(1, 21) if subject.exhaustive else (subject.random.choice(_LAGS), subject.random.choice(_LAGS))
    ways = [("all at once", [subject.raw], [tokens.ids])]
    ways += [(f"the text {lag} characters behind its ids", *_lagging(texts, ids, lag)) for lag in lags]
    ways += [("several tokens at a time", *_grouped(subject, texts, ids))]
    for what, chunks, groups in ways:
        _same(
            subject,
            f"ids come with their text or before it: {what}",
            wanted,
            subject.run(chunks, ids=groups, parser=parser).same(),
            chunks,
        )
    if _markers_only(subject, special):
        blind = make(fmt, tokenizer=tokens, **settings)
        _same(subject, "ids without a table", wanted, subject.run(texts, ids=ids, parser=blind).same(), texts)
    if tokenizer is None and "prefill" not in subject.context:
        stripped = make(fmt, tokenizer=tokens.tokenizer, special_text="stripped", **settings)
        bare = ["" if t in special else t for t in texts]
        _same(subject, "stripped text with ids", wanted, subject.run(bare, ids=ids, parser=stripped).same(), bare)


@dataclass(slots=True)
class _Tokens:
    """A text as tokens, and a tokenizer that knows the special ones only."""

    tokenizer: Any
    ids: list[int]
    texts: list[str]
    special: dict[int, str]

    def get_vocab(self) -> dict[str, int]:
        """The special tokens alone: nobody can tell from another id how much text it stands for."""
        return {text: i for i, text in self.special.items()}


def _tokenized(tokenizer: Any, raw: str, special: Sequence[str]) -> _Tokens | None:
    """``None``: the given tokenizer does not give this text back."""
    if tokenizer is None:
        toy = PieceTokenizer(special)
        ids = toy.encode(raw)
        vocab = toy.get_vocab()
        return _Tokens(toy, ids, toy.pieces(raw), {vocab[t]: t for t in special})
    encoded = tokenizer.encode(raw, add_special_tokens=False)
    ids = list(getattr(encoded, "ids", encoded))
    vocab = tokenizer.get_vocab()
    table = TokenTable(vocab, {t: vocab[t] for t in special if t in vocab})
    data, done, texts = b"", 0, []
    for token in ids:
        data += table.bytes_of(token) or b""
        text = data.decode("utf-8", "ignore")
        texts.append(text[done:])
        done = len(text)
    if "".join(texts) != raw:
        return None
    return _Tokens(tokenizer, ids, texts, {vocab[t]: t for t in special if t in vocab})


def _markers_only(subject: _Subject, special: Sequence[str]) -> bool:
    """Whether every literal of a special token in the output was read as markup: only then must ids, which make each of
    them a marker, say the same. The name of a turn's end counts wherever its id stands, so it may only stand last."""
    if not special:
        return True
    spans = subject.whole.result.spans
    raw = subject.context.get("prefill", "") + subject.raw
    if "prefill" in subject.context and any(t in subject.context["prefill"] for t in special):
        return False
    for found in re.finditer("|".join(map(re.escape, sorted(special, key=len, reverse=True))), raw):
        if not any(s.kind == "markup" and s.start <= found.start() and s.end >= found.end() for s in spans):
            return False
    return True


def _lagging(texts: list[str], ids: list[list[int]], lag: int) -> tuple[list[str], list[list[int]]]:
    """The text of each step kept ``lag`` characters back; the rest comes at the end, with no ids."""
    chunks, said, known = [], 0, ""
    for text in texts:
        known += text
        end = max(len(known) - lag, said)
        chunks.append(known[said:end])
        said = end
    return [*chunks, known[said:]], [*ids, []]


def _grouped(subject: _Subject, texts: list[str], ids: list[list[int]]) -> tuple[list[str], list[list[int]]]:
    chunks: list[str] = []
    groups: list[list[int]] = []
    at = 0
    while at < len(texts):
        end = at + subject.random.randint(1, 6)
        chunks.append("".join(texts[at:end]))
        groups.append([i for group in ids[at:end] for i in group])
        at = end
    return chunks, groups


def _same(subject: _Subject, law: str, wanted: dict[str, Any], got: dict[str, Any], chunks: Sequence[str]) -> None:
    for part in wanted:
        if wanted[part] != got[part]:
            raise subject.fail(law, part + _difference(wanted[part], got[part]), chunks)


# -- The start state ------------------------------------------------------------------------------------------------


def _start_states(subject: _Subject) -> None:
    """The prompt says where an output begins, and nobody but the prompt's end: an opening marker means the same in the
    prompt as in the output; behind closed reasoning comes what would have come; the user's text means nothing."""
    fmt = subject.format
    reasoning = fmt.reasoning
    prompt = subject.context.get("prompt")
    wanted = subject.whole.same()["message"]
    start = fmt.turn.start.text if fmt.turn.start is not None else ""
    if prompt is not None and start and any(s in prompt for s in cast(Marker, fmt.turn.start).spellings):
        decoys = " ".join(s for m in _markers(fmt) for s in m.spellings)
        got = subject.run([subject.raw], prompt=f"{decoys}\n{prompt}").folded
        if got != wanted:
            raise subject.fail("the start state comes from the prompt's end", _difference(wanted, got))
    if reasoning is None or "prefill" in subject.context or not start:
        return
    if prompt is None and reasoning.open is not None:
        opener = next((s for s in reasoning.open.spellings if subject.raw.lstrip(" \t\r\n").startswith(s)), None)
        if opener is not None:
            rest = subject.raw.lstrip(" \t\r\n")[len(opener) :]
            got = subject.run([rest], prompt=f"{start}{reasoning.open.text}").folded
            if got != wanted:
                raise subject.fail(
                    "an opening marker in the prompt", f"with {rest!r}" + _difference(wanted, got), [rest]
                )
    _behind_closed(subject, start)


def _behind_closed(subject: _Subject, start: str) -> None:
    """The same output with its reasoning closed in the prompt."""
    reasoning = subject.format.reasoning
    assert reasoning is not None
    items = subject.whole.folded
    if reasoning.open is None or not items or items[0][0] != "reasoning" or any(i[0] == "reasoning" for i in items[1:]):
        return
    spans = subject.whole.result.spans
    before = subject.raw[: min(s.start for s in spans if s.kind == "reasoning")].strip()
    if before and before not in reasoning.open.spellings:
        return
    end = max(s.end for s in spans if s.kind == "reasoning")
    tail = subject.raw[end:].lstrip(" \t\r\n")
    close = next((s for s in reasoning.close.spellings if tail.startswith(s)), None)
    if close is None:
        return
    prompt = f"{start}{reasoning.open.text}{reasoning.close.text}"
    rest = tail[len(close) :]
    got = subject.run([rest], prompt=prompt).folded
    if got != items[1:]:
        raise subject.fail("reasoning closed in the prompt", f"with {rest!r}" + _difference(items[1:], got), [rest])


# -- Round trip -----------------------------------------------------------------------------------------------------


def _round_trip(subject: _Subject) -> None:
    """What can be written is read back as it was."""
    try:
        render: Any = importlib.import_module("untemplate.render")
    except ModuleNotFoundError:
        return
    result = subject.whole.result
    if any(call.status != "ok" for call in result.tool_calls):
        return
    message = result.message()
    tools = subject.context.get("tools")
    if not hasattr(render, "expressible") or render.expressible(subject.format, message, tools=tools) is not None:
        return
    text = render.render(subject.format, message)
    again = subject.parser.parse(text, tools=tools, seed=_SEED).message()
    if _comparable(again) != _comparable(message):
        raise subject.fail("round trip", f"rendered {text!r}" + _difference(message, again), [text])


def _comparable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Ids aside; arguments as JSON."""
    return {
        "reasoning": message.get("reasoning") or "",
        "content": message.get("content") or "",
        "calls": [
            (c["function"]["name"], _canonical(json.loads(c["function"]["arguments"])))
            for c in message.get("tool_calls") or ()
        ],
    }


# -- Fluently -------------------------------------------------------------------------------------------------------


class Case:
    """One case, said piece by piece; :func:`case` begins it and :meth:`check` ends it.

    What is not said is expected to be empty.
    """

    def __init__(self, format: Format | str | OutputParser, reasoning: str | None = None) -> None:
        self._format = format
        self._raw = ""
        self._context: dict[str, Any] = {} if reasoning is None else {"reasoning": reasoning}
        self._expected: dict[str, Any] = {}
        self._calls: list[tuple[str, Any, str]] = []

    def raw(self, text: str) -> Case:
        """What the model wrote."""
        self._raw = text
        return self

    def tools(self, tools: Sequence[Any] | None) -> Case:
        """The tools that were offered."""
        return self.with_(tools=tools)

    def prompt(self, prompt: str) -> Case:
        """What the model was given."""
        return self.with_(prompt=prompt)

    def policy(self, **settings: Any) -> Case:
        """Fields of :class:`~untemplate.policy.Policy`."""
        return self.with_(policy=Policy(**settings))

    def with_(self, **context: Any) -> Case:
        """Any other argument of :func:`check`."""
        self._context.update(context)
        return self

    def reasoning(self, text: str) -> Case:
        """The expected reasoning, to the character."""
        self._expected["reasoning"] = text
        return self

    def content(self, text: str) -> Case:
        """The expected content, to the character."""
        self._expected["content"] = text
        return self

    def call(self, name: str, arguments: Any) -> Case:
        """The next expected call. Arguments that are a str are compared to the character, others as JSON."""
        self._calls.append((name, arguments, "ok"))
        return self

    def status(self, status: str) -> Case:
        """The status of the call that was said last (``ok`` if nothing is said).

        Raises:
            ValueError: no call has been said.
        """
        if not self._calls:
            raise ValueError("status() goes with a call(): none has been said yet")
        self._calls[-1] = (*self._calls[-1][:2], status)
        return self

    def finish(self, reason: str, expected: str | None = None) -> Case:
        """The engine's reason, and the expected one."""
        if expected is not None:
            self._expected["finish_reason"] = expected
        return self.with_(finish_reason=reason)

    def diagnostics(self, *codes: str) -> Case:
        """The codes of all diagnostics, in order."""
        self._expected["diagnostics"] = list(codes)
        return self

    def check(self, **settings: Any) -> ParsedOutput:
        """Holds the case against the laws: :func:`check`, whose other arguments may be given."""
        return check(
            self._format, self._raw, {**self._expected, "tool_calls": self._calls}, **{**self._context, **settings}
        )


def case(format: Format | str | OutputParser, reasoning: str | None = None) -> Case:
    """Begins a case for a Format, a name from the catalogue (``reasoning`` names another's reasoning), or a parser."""
    return Case(format, reasoning)
