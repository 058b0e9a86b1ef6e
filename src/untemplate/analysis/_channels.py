"""Infer turns that consist of several messages with headers.

* A turn of reasoning and content, or of content and a call, may contain the end of its own header again. Then it is a
  sequence of messages. The text that only one of the headers has is its channel and recipient.
* The word that differs between the headers of reasoning and content is the channel, as in gpt-oss. A header of one
  bare word is the recipient: the name of a tool, or the audience of content, as in Functionary 3.2.
* The text after the header of a call is its arguments, or a call that names the tool again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..format import Channels, Marker, Tools
from . import _diff as diff
from ._probes import CONTENT, KEYS, NAMES, THOUGHT, CallSamples, ProbeMessage, Style
from ._reasoning import ReasoningSamples
from ._result import CHANNEL, RECIPIENT_BASED, ChannelsGuess
from ._tools import tools_guesses, visible
from ._turns import LAST, TurnFrame

_WORD: Final = re.compile(r"\w+")


def channels_guesses(frame: TurnFrame, samples: ReasoningSamples, calls: CallSamples | None) -> Iterator[ChannelsGuess]:
    """Yield hypotheses; most templates have none."""
    plain = frame.turn(ProbeMessage(CONTENT), Style(), LAST)
    if plain is None or CONTENT not in plain.text or not frame.header:
        return
    front = plain.text[: plain.text.index(CONTENT)]
    if samples.turn is not None and not samples.with_calls_only:
        yield from _with_channels(frame, front, samples.turn.text, calls)
    if calls is not None and calls.with_content is not None:
        yield from _with_recipients(frame, front, calls)


@dataclass(frozen=True, slots=True)
class _Headers:
    """The parts of the headers of reasoning and content in one turn."""

    channel: str
    """Text before the word that differs."""
    reasoning: str
    content: str
    body: str
    """Text after it."""
    close: str
    """Text between the reasoning and the second header."""


@dataclass(frozen=True, slots=True)
class _CallHeader:
    """The parts of the header of a call."""

    recipient: str = ""
    namespace: str = ""
    channel: str | None = None
    constraint: str | None = None
    close: str = ""
    """Text after the call."""


def _with_channels(frame: TurnFrame, front: str, text: str, calls: CallSamples | None) -> Iterator[ChannelsGuess]:
    """Infer ``header`` channel word body text close ``header`` channel word body text."""
    header = frame.header.strip()
    found = _compare_headers(header, front, text) if header else None
    if found is None:
        return
    before_role, role = re.findall(r"(?s)\A(.*?)(\w*)\Z", header)[0]
    call = _CallHeader() if calls is None else _read_call_header(header, found, calls)
    words = (found.content, call.channel)
    # A header with a recipient only: reasoning and content have one of their own.
    bare = found.channel == call.recipient
    channels = Channels(
        open=Marker(before_role),
        role=role,
        channel=None if bare else visible(found.channel),
        recipient=visible(call.recipient),
        body=Marker(found.body),
        close=visible(found.close),
        call_close=visible(call.close),
        namespace=call.namespace,
        reasoning=(found.reasoning,),
        content=tuple(dict.fromkeys(word for word in words if word and word != found.reasoning)),
        preamble=call.channel,
        call_channel=call.channel,
        call_constraint=call.constraint,
    )
    frame.log.append(f"channels: the header comes again inside the turn: {channels}")
    for tools in (_named_again(frame, calls, found.body) if bare else []) or [None]:
        yield ChannelsGuess(channels, frame.header, CHANNEL, "header comes again", tools)


def _compare_headers(header: str, front: str, text: str) -> _Headers | None:
    """Compare the headers of reasoning and content; return ``None`` if they do not differ in one word."""
    at, stop = text.index(THOUGHT), text.index(CONTENT)
    close, again, inner = text[at + len(THOUGHT) : stop].partition(header)
    if not again:
        return None
    # An answer without reasoning may have no word in its header.
    of_content, of_reasoning = inner if inner.endswith(front) else front, text[:at]
    channel = diff.common_prefix([of_content, of_reasoning])
    body = diff.common_suffix([of_content, of_reasoning])
    content = of_content[len(channel) : len(of_content) - len(body)].strip()
    reasoning = of_reasoning[len(channel) : len(of_reasoning) - len(body)].strip()
    if not body.strip() or not _WORD.fullmatch(content) or not _WORD.fullmatch(reasoning):
        return None
    return _Headers(channel, reasoning, content, body, close)


def _read_call_header(header: str, found: _Headers, calls: CallSamples) -> _CallHeader:
    """Read the header of a call: the text around the name of the tool."""
    at = calls.one.index(NAMES[0])
    ahead, behind = calls.one[:at].rpartition(header)[2], calls.one[at + len(NAMES[0]) : calls.one.index(KEYS[0])]
    named = re.search(r"\w+\.$", ahead)
    namespace = named.group() if named is not None else ""
    words = re.match(re.escape(found.channel) + r"\s*(\w+)(?:\s+(\w+))?" + re.escape(found.body), behind)
    channel, constraint = (None, None) if words is None else words.groups()
    span = diff.json_around(calls.one, calls.one.index(KEYS[0]))
    close = calls.one[span.end :] if span is not None else ""
    return _CallHeader(ahead[: len(ahead) - len(namespace)], namespace, channel, constraint, close)


def _named_again(frame: TurnFrame, calls: CallSamples | None, body: str) -> Sequence[Tools | None]:
    """Return the syntaxes of calls after a header that names the tool, if they name it again."""
    if calls is None:
        return []
    header = NAMES[0] + body
    one = calls.one.partition(header)[2]
    if NAMES[0] not in one:
        return []
    empty = None if calls.empty is None else calls.empty.partition(header)[2]
    return [guess.tools for guess in tools_guesses(frame, replace(calls, one=one, two=None, empty=empty), ())]


def _with_recipients(frame: TurnFrame, front: str, calls: CallSamples) -> Iterator[ChannelsGuess]:
    """Infer open word body text open word body text; the first ``open`` ends the header or is part of the turn."""
    text = calls.with_content
    assert text is not None
    between = text[text.index(CONTENT) + len(CONTENT) : text.index(NAMES[0])]
    found = _WORD.search(front)
    if found is None or not between.strip():
        return
    open_in_turn, word, body = front[: found.start()], found.group(), front[found.end() :]
    opened, header = _opener(frame.header, open_in_turn.strip(), between.strip())
    if header is None:
        return
    behind = calls.one[calls.one.index(NAMES[0]) + len(NAMES[0]) :]
    if not body or not behind.startswith(body) or not between.strip().endswith(opened):
        return
    close = between.strip()[: -len(opened)]
    channels = Channels(open=Marker(opened), body=Marker(body), content=(word,), close=visible(close))
    frame.log.append(f"channels: a header of one word: {channels}")
    yield ChannelsGuess(channels, header, RECIPIENT_BASED, "header of one word")


def _opener(header: str, open_in_turn: str, between: str) -> tuple[str, str | None]:
    """Return the opener of a message, and the header of the turn without it; ``None`` if it does not end in it."""
    if open_in_turn:
        return open_in_turn, header
    own = header.strip()
    if between.endswith(own):  # each message has the header of the turn
        return own, header[: header.index(own)]
    return between, header.rstrip()[: -len(between)] if header.rstrip().endswith(between) else None
