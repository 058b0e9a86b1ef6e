"""Infer turns that consist of several messages with headers.

* A turn of reasoning and content, or of content and a call, may contain the end of its own header again. Then it is a
  sequence of messages. The text that only one of the headers has is its channel and recipient.
* The word that differs between the headers of reasoning and content is the channel, as in gpt-oss. A header of one
  bare word is the recipient: the name of a tool, or the audience of content, as in Functionary 3.2.
* The text after the header of a call is its arguments, or a call that names the tool again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ..format import Channels, Marker, Tools
from . import diff
from .probes import CONTENT, KEYS, NAMES, THOUGHT, ProbeMessage, Style
from .reasoning import ReasoningSamples
from .result import CHANNEL, RECIPIENT_BASED, ChannelsGuess
from .tools import CallSamples, tools_guesses
from .turns import LAST, TurnFrame

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


def _with_channels(frame: TurnFrame, front: str, text: str, calls: CallSamples | None) -> Iterator[ChannelsGuess]:
    """Infer ``header`` channel word body text close ``header`` channel word body text."""
    header = frame.header.strip()
    at, stop = text.index(THOUGHT), text.index(CONTENT)
    between = text[at + len(THOUGHT) : stop]
    again = between.find(header)
    if again < 0:
        return
    close = between[:again]
    # An answer without reasoning may have no word in its header.
    inner = between[again + len(header) :]
    content_header, reasoning_header = inner if inner.endswith(front) else front, text[:at]
    channel = diff.common_prefix([content_header, reasoning_header])
    body = diff.common_suffix([content_header, reasoning_header])
    content_word = content_header[len(channel) : len(content_header) - len(body)]
    reasoning_word = reasoning_header[len(channel) : len(reasoning_header) - len(body)]
    if not body.strip() or not _WORD.fullmatch(content_word.strip()) or not _WORD.fullmatch(reasoning_word.strip()):
        return
    role = re.search(r"\w+$", header)
    recipient, namespace, call_channel, constraint, call_close = "", "", None, None, ""
    if calls is not None:
        ahead = calls.one[: calls.one.index(NAMES[0])]
        ahead = ahead[ahead.rfind(header) + len(header) :] if header in ahead else ahead
        named = re.search(r"\w+\.$", ahead)
        namespace = named.group() if named is not None else ""
        recipient = ahead[: len(ahead) - len(namespace)]
        behind = calls.one[calls.one.index(NAMES[0]) + len(NAMES[0]) : calls.one.index(KEYS[0])]
        words = re.match(re.escape(channel) + r"\s*(\w+)(?:\s+(\w+))?" + re.escape(body), behind)
        if words is not None:
            call_channel, constraint = words.group(1), words.group(2)
        span = diff.json_around(calls.one, calls.one.index(KEYS[0]))
        call_close = calls.one[span.end :] if span is not None else ""
    bare = channel == recipient  # the header has a recipient only: reasoning and content have one of their own
    channels = Channels(
        open=Marker(header[: role.start()] if role is not None else header),
        role=role.group() if role is not None else "",
        channel=Marker(channel) if channel.strip() and not bare else None,
        recipient=Marker(recipient) if recipient.strip() else None,
        body=Marker(body),
        close=Marker(close) if close.strip() else None,
        call_close=Marker(call_close) if call_close.strip() else None,
        namespace=namespace,
        reasoning=(reasoning_word.strip(),),
        content=tuple(dict.fromkeys(w for w in (content_word.strip(), call_channel) if w and w != reasoning_word)),
        preamble=call_channel,
        call_channel=call_channel,
        call_constraint=constraint,
    )
    frame.log.append(f"channels: the header comes again inside the turn: {channels}")
    named_again: list[Tools | None] = list(_named_again(frame, calls, body)) if bare and calls is not None else []
    for tools in named_again or [None]:
        yield ChannelsGuess(channels, frame.header, CHANNEL, "header comes again", tools)


def _named_again(frame: TurnFrame, calls: CallSamples, body: str) -> list[Tools]:
    """Return the syntaxes of calls after a header that names the tool, if they name it again."""
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
    opened = open_in_turn.strip() or between.strip()
    header = frame.header
    if not open_in_turn.strip():
        if not header.rstrip().endswith(opened):
            return
        header = header.rstrip()[: -len(opened)]
    behind = calls.one[calls.one.index(NAMES[0]) + len(NAMES[0]) :]
    if not body or not behind.startswith(body) or not between.strip().endswith(opened):
        return
    close = between.strip()[: -len(opened)]
    channels = Channels(
        open=Marker(opened), body=Marker(body), content=(word,), close=Marker(close) if close.strip() else None
    )
    frame.log.append(f"channels: a header of one word: {channels}")
    yield ChannelsGuess(channels, header, RECIPIENT_BASED, "header of one word")
