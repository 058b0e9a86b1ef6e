"""Infer the markers of reasoning.

The comparisons are those of llama.cpp's template auto-parser:

* *Present or absent*: a turn with reasoning compared with one without it shows the text around reasoning.
* *Toggled*, *prompt ending*: the text that prompts add after the header, with each variable switched, opens reasoning,
  or opens and closes it.
* *Adjacent pair*: two tags with nothing between them, in text that a prompt adds, are an opening and its close.
* *Dropped*: if content that contains a literal of the template loses everything before it, the literal closes
  reasoning.

Words such as "think" have no influence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from . import _diff as diff
from ._probes import ASKED, CONTENT, KEYS, NAMES, THOUGHT, VALUES, ProbeCall, ProbeMessage, Style
from ._result import ReasoningGuess
from ._turns import LAST, MIDDLE, RenderedTurn, Settings, TurnFrame

_CALL: Final = ProbeCall(NAMES[0], {KEYS[0]: VALUES[0]})


class ReasoningSamples:
    """Text that the template writes around reasoning, and where."""

    def __init__(self) -> None:
        self.style: Style | None = None
        self.with_calls_only: bool = False
        self.turn: RenderedTurn | None = None
        """A turn of reasoning and content, or of reasoning and a call."""
        self.plain: RenderedTurn | None = None
        """The same without reasoning."""


def find_reasoning(frame: TurnFrame, style: Style) -> ReasoningSamples:
    """Find how to make the template write reasoning, if it can."""
    found = ReasoningSamples()
    settings: list[Settings] = [(), *(s for s, tail in frame.tails.items() if s and tail != frame.tail)]
    plain = (ProbeMessage(CONTENT, THOUGHT), False)
    if not _present(frame, style, settings, found, (plain, (ProbeMessage("", THOUGHT, (_CALL,)), True))):
        # A setting may change what is written of earlier turns, and not the prompt.
        _present(frame, style, frame.prober.settings_for(frozenset(frame.prober.reasoning_keys)), found, (plain,))
    if found.style is None:
        frame.log.append("reasoning present: never")
    return found


def _present(
    frame: TurnFrame,
    style: Style,
    settings: list[Settings],
    found: ReasoningSamples,
    messages: tuple[tuple[ProbeMessage, bool], ...],
) -> bool:
    """Look for a shape of these messages, with one of these settings, of which the template writes the reasoning. The
    messages come with true if their reasoning is followed by a call, not by content."""
    for message, calls_only in messages:
        for setting in settings:
            for key in (*_keys_read(frame, replace(style, settings=setting), message), "parts", "blocks"):
                tried = replace(style, reasoning=key, settings=setting)
                turn = frame.turn(message, tried, LAST)
                if turn is None or THOUGHT not in turn.text:
                    continue
                ahead = turn.text.find(THOUGHT) < turn.text.find(NAMES[0] if calls_only else CONTENT)
                if not ahead or "'type'" in turn.text or '"type"' in turn.text:
                    # The reasoning follows the content, or the structure of the message is printed as it is.
                    continue
                found.style, found.with_calls_only, found.turn = tried, calls_only, turn
                found.plain = frame.turn(replace(message, reasoning=""), tried, LAST)
                frame.log.append(f"reasoning present: key {key!r}, settings {dict(setting)}, {turn.text!r}")
                return True
    return False


def _keys_read(frame: TurnFrame, style: Style, message: ProbeMessage) -> list[str]:
    """Return the keys of a message that show up in the turn: all are set at once, each with a value of its own."""
    written = style.write(replace(message, reasoning=""))
    keys = frame.prober.reasoning_keys
    for i, key in enumerate(keys):
        written[key] = f"{THOUGHT}{i}"
    tools = frame.prober.call_tools if message.calls else frame.prober.plain_tools
    asked = {"role": "user", "content": ASKED}
    whole = frame.prober.render([asked, written], tools=tools, settings=dict(style.settings))
    return [key for i, key in enumerate(keys) if whole is None or f"{THOUGHT}{i}" in whole]


def reasoning_guesses(
    frame: TurnFrame, samples: ReasoningSamples, call_front: str | None, dropped: list[str]
) -> list[ReasoningGuess]:
    """Yield hypotheses, those with the most direct observation first.

    ``call_front``: text between the header and the name of a call in a turn without reasoning.
    """
    pairs = _adjacent_pairs(frame)
    guesses: list[tuple[str | None, str, str]] = []
    if samples.turn is not None:
        guesses += _from_presence(frame, samples, pairs, call_front)
    guesses += [(o, c, "adjacent pair") for o, c in pairs]
    opens = [t for t in dict.fromkeys(frame.tails.values()) if t.strip()]
    for close in dropped:
        guesses += [(o.replace(close, ""), close, "dropped") for o in opens if o.replace(close, "").strip()]
        if not opens:
            guesses += [(o, close, "dropped") for o in _opens_beside(frame, close)]
    for pieces in opens:
        split = diff.split_tags(pieces)
        if len(split) == 2 and (split[0], split[1]) not in pairs:
            guesses.append((split[0], split[1], "prompt ending"))
    result: dict[tuple[str, str], ReasoningGuess] = {}
    for open_, close, source in guesses:
        if (
            not close.strip()
            or (open_ or "").strip() == close.strip()
            or frame.header.strip() in (close, open_ or "\0")
        ):
            continue
        key = ((open_ or "").strip(), close.strip())
        if key not in result:
            repeats = bool(key[0]) and _repeats(frame, *key)
            starts_open = leaves_open(frame.tail, open_, close)
            result[key] = ReasoningGuess(open_, close, source, repeats, starts_open)
    frame.log.append(f"reasoning: {[(g.open, g.close, g.source) for g in result.values()]!r}")
    return list(result.values())


def leaves_open(tail: str, open_: str | None, close: str) -> bool:
    """True if a prompt with this ending leaves reasoning open."""
    if not tail.strip():
        return open_ is None
    return tail.strip().endswith((open_ or "").strip()) and close.strip() not in tail


def _closes_of_pairs(pairs: list[tuple[str, str]], before: str, after: str) -> Iterator[str]:
    """Yield the closes of those pairs that the turn writes: the pair ends a close, the turn spells it."""
    for opened, closed in pairs:
        if opened.strip() == before.strip() and after.strip().startswith(closed.strip()):
            stop = after.index(closed.strip()) + len(closed.strip())
            yield after[:stop] + diff.lead(after[stop:])


def _from_presence(
    frame: TurnFrame, samples: ReasoningSamples, pairs: list[tuple[str, str]], call_front: str | None
) -> list[tuple[str | None, str, str]]:
    turn = samples.turn
    assert turn is not None
    follower = NAMES[0] if samples.with_calls_only else CONTENT
    at, next_at = turn.text.find(THOUGHT), turn.text.find(follower)
    before, behind = turn.text[:at], turn.text[at + len(THOUGHT) : next_at]
    opens: list[str | None] = [before]
    if not before.strip():
        opens = [*(t for t in dict.fromkeys((turn.tail, frame.tail)) if t.strip()), None]
    closes = list(_closes_of_pairs(pairs, before, behind))
    plain = samples.plain
    front = None
    if plain is not None and follower in plain.text:
        front = plain.text[: plain.text.find(follower)]
        inside = diff.strip_front(front, [before])
        if front.strip() and inside.strip() != behind.strip():
            rest = diff.common_suffix([behind, front])
            closes.append(behind[: len(behind) - len(rest)])
    if samples.with_calls_only and call_front:
        rest = diff.common_suffix([behind, call_front])
        if len(rest) < len(behind):
            closes.append(behind[: len(behind) - len(rest)])
    for tail in frame.tails.values():
        if tail.strip() and tail.strip() != before.strip() and behind.rstrip().endswith(tail.strip()):
            # A prompt that opens content, with reasoning switched off.
            closes.append(behind.rstrip()[: -len(tail.strip())])
    pieces = diff.split_tags(behind)
    if len(pieces) > 1:
        closes.append(pieces[0])
        closes.append("".join(pieces[:2]) if not diff.is_tag(pieces[0].strip()) else pieces[0])
    closes.append(behind)
    return [(o, c, "present or absent") for c in closes if c.strip() for o in opens]


def _adjacent_pairs(frame: TurnFrame) -> list[tuple[str, str]]:
    """Return pairs of tags with only white space between them, where prompts differ."""
    pairs: list[tuple[str, str]] = []
    for tail in sorted({t for t in frame.tails.values() if t.strip()}, key=len):
        pieces = diff.split_tags(tail)
        shorter = [t for t in frame.tails.values() if t.strip() and t != tail and tail.startswith(t.rstrip())]
        for open_ in shorter:
            pairs.append((open_, tail[len(open_.rstrip()) :].lstrip()))
        if len(pieces) == 2 and not shorter:
            pairs.append((pieces[0], pieces[1]))
        elif not shorter:
            pairs += _around(tail)
    return list(dict.fromkeys(pairs))


def _around(tail: str) -> list[tuple[str, str]]:
    """Return the first and the last tag of a tail such as ``<think>\\nsome words</think>``."""
    pieces = diff.split_tags(tail)
    tags = [t for t in diff.tokens(tail) if diff.is_tag(t)]
    return [(tags[0], tags[-1])] if len(pieces) > 2 and len(tags) > 2 else []


def dropping_literals(frame: TurnFrame) -> list[str]:
    """Return literals of the template that make it drop the content before them."""
    texts = [t for t in dict.fromkeys(s.strip() for s in frame.prober.template.literals) if _marker_like(t)]
    found = _dropping(frame, texts)
    # A literal that contains another one drops content only because of the inner one.
    found = [t for t in found if not any(other != t and other in t for other in found)]
    if found:
        frame.log.append(f"dropped: {found!r} in content drop what stands before them")
    return found


def _dropping(frame: TurnFrame, texts: list[str]) -> list[str]:
    """Return those of ``texts`` that drop content: test all at once, then halves of what had an effect."""
    if not texts:
        return []
    message = ProbeMessage(f"{THOUGHT}{''.join(texts)}{CONTENT}")
    turn = frame.turn(message, Style(), MIDDLE) or frame.turn(message, Style(), LAST)
    if turn is not None and CONTENT in turn.text:
        at = turn.text.find(THOUGHT)
        untouched = 0 <= at < turn.text.find(CONTENT) and texts[-1] + CONTENT in turn.text[at:]
        if untouched:
            return []
        if len(texts) == 1:
            # A switch that the template removes leaves both sides as they are.
            return [] if re.search(rf"{THOUGHT}\s*{CONTENT}", turn.text) else texts
    if len(texts) == 1:
        return []
    half = len(texts) // 2
    return _dropping(frame, texts[:half]) + _dropping(frame, texts[half:])


def _marker_like(text: str) -> bool:
    """True if a literal may be a delimiter: short, on one line, and more than a word."""
    return 3 <= len(text) <= 60 and "\n" not in text and not text.isalnum() and not any(c in text for c in "{}%'\"=")


def _opens_beside(frame: TurnFrame, close: str) -> list[str | None]:
    """Return literals that, followed by ``close``, delimit a region that the template drops or moves."""
    for literal in frame.prober.template.literals:
        text = literal.strip()
        if not 3 <= len(text) <= 60 or text == close or not diff.is_tag(text):
            continue
        turn = frame.turn(ProbeMessage(f"{text}{THOUGHT}{close}{CONTENT}"), Style(), MIDDLE)
        alone = frame.turn(ProbeMessage(f"{text}{CONTENT}"), Style(), MIDDLE)
        if turn is not None and text not in turn.text and CONTENT in turn.text and alone is not None:
            similar = diff.tokens(close)[0][:1] == text[:1]
            if similar and text in alone.text:
                return [text]
    return [None]


def _repeats(frame: TurnFrame, open_: str, close: str) -> bool:
    """True if the template itself accepts reasoning again after content."""
    parts = ("qzfirstqz", "qzsecondqz", "qzthirdqz")
    text = f"{parts[0]}{open_}{THOUGHT}{close}{parts[1]}{open_}{THOUGHT}{close}{parts[2]}"
    turn = frame.turn(ProbeMessage(text), Style(), MIDDLE)
    return turn is not None and THOUGHT not in turn.text and all(p in turn.text for p in parts)
