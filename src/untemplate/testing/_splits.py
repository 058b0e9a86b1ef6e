"""Check that splits make no difference and that deltas are never retracted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ._message import sound
from ._subject import SEED, LawBroken, Parsed, Subject, difference, fold, short

_RANDOM_SPLITS: Final = 6


def splits(subject: Subject) -> None:
    """Check that every split gives the same message, and that deltas only append."""
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
    stream = subject.parser.stream(seed=SEED, **subject.context)
    deltas = stream.feed(raw) + stream.finish(subject.finish_reason)
    if fold(deltas) != subject.whole.folded:
        raise subject.fail("collecting changes nothing", difference(subject.whole.folded, fold(deltas)))


def _random_splits(subject: Subject) -> Iterator[list[str]]:
    for n in range(_RANDOM_SPLITS * (5 if subject.exhaustive else 1)):
        longest = (2, 3, 5, 11, 23, 60)[n % 6]
        chunks, at = [], 0
        while at < len(subject.raw):
            size = subject.random.randint(0 if n % 4 == 3 else 1, longest)
            chunks.append(subject.raw[at : at + size])
            at += size
        yield chunks


def _split_failure(subject: Subject, chunks: list[str]) -> LawBroken:
    wanted = subject.whole.same()

    def broken(candidate: list[str]) -> bool:
        return subject.run(candidate).same() != wanted

    chunks = _shrink(chunks, broken)
    got = subject.run(chunks).same()
    part = next((k for k in wanted if wanted[k] != got[k]), None)
    if part is None:
        return subject.fail("splits are invisible", "the same split gives different results at different times", chunks)
    return subject.fail("splits are invisible", part + difference(wanted[part], got[part]), chunks)


def _shrink(chunks: list[str], broken: Callable[[list[str]], bool]) -> list[str]:
    """Return a smaller split that fails too: one split in two if there is one, else with pieces joined."""
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


def _prefix(subject: Subject, text: str, early: Parsed) -> None:
    """Check that the deltas before the end are a prefix of the final message."""
    if not _is_prefix(early, subject.whole.folded):
        raise subject.fail(
            "nothing is retracted",
            f"after {short(text)}" + difference(subject.whole.folded, early),
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


def truncations(subject: Subject) -> None:
    """Check that an output may end anywhere: no exception, nothing lost, nothing retracted."""
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
            raise subject.fail("model output never raises", f"cut after {short(part)}: {error!r}", [part]) from error
        _prefix(subject, part, outcome.early)
        sound(subject, prefill + part, outcome, f"cut after {short(part)}")
        if outcome.result.finish_reason != "length":
            raise subject.fail("finish_reason", f"cut by length, and is {outcome.result.finish_reason!r}")
        if place in again:
            got = subject.run(list(part), finish_reason="length").same()
            wanted = outcome.same()
            for key in wanted:
                if wanted[key] != got[key]:
                    problem = f"{key} of a cut output, per character" + difference(wanted[key], got[key])
                    raise subject.fail("splits are invisible", problem, list(part))


def no_tools(subject: Subject) -> None:
    """Check that there are no calls if no tools are offered."""
    outcome = subject.run([subject.raw], tools=[], tool_choice=None)
    if outcome.result.tool_calls:
        raise subject.fail("nothing is invented", f"calls without tools: {outcome.result.tool_calls!r}")
    sound(subject, subject.context.get("prefill", "") + subject.raw, outcome, "with no tools")
