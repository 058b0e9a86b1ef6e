"""Decides whether a message can be written in a Format such that it parses back unchanged.

* The decision uses the Format, the message, and the schema of a value whose text has no type. The parser is not run, so
  that tests can compare the two: whatever is expressible must parse back.
* In doubt the answer is no: text that might be read as a marker is not expressible.
* White space and markers at the edges of a text are judged together with the markup that will surround it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...format import Channels, Content, Format, JsonBody, NamedBody, Reasoning, Tools
from ...format._markers import spellings_of, text_of
from ...tools import ToolSet
from ..machine.markdown import IN_STRING, ON_QUOTED_LINE, TextBefore
from .calls import call_problem
from .message import AssistantMessage, read_message
from .reasons import Inexpressible
from .shared import ILLEGAL, MAX_NAME, WS, name_ends
from .turn import empty_block, opening, wraps

__all__ = ["expressible"]


def expressible(fmt: Format, message: Any, tools: Any = None) -> Inexpressible | None:
    """Return ``None`` if the text that ``render`` writes for this message parses back to it, else the first reason.

    Texts are compared exactly, arguments as JSON values; ids are not compared.

    Args:
        message: a message as ``render`` accepts it.
        tools: the tools of the request; ``None``: unknown. Their schemas decide the type of a value without one.

    Raises:
        TypeError: ``message`` is not a message.
        ValueError: ``tools`` are not tools.
    """
    read = read_message(message)
    offered = ToolSet(tools)
    problem = (
        _parts_problem(fmt, read, offered)
        or _place_of_calls_problem(fmt, read, offered)
        or _texts_problem(fmt, read, offered)
    )
    if problem is not None:
        return problem
    problems = (call_problem(fmt, call, offered) for call in read.calls)
    return next((problem for problem in problems if problem is not None), None)


def _quotes(tools: Tools, content: str) -> bool:
    """True if a call directly after this content would be quoted, such as on a line that begins as a block quote."""
    opener = next((m.text for m in (tools.section_open, tools.list_open, tools.call_open) if m is not None), "")
    before = TextBefore()
    before.read("\n" + content)
    return before.evidence(opener[: len(opener) - len(opener.lstrip(WS))]) in (ON_QUOTED_LINE, IN_STRING)


def _parts_problem(fmt: Format, message: AssistantMessage, offered: ToolSet) -> Inexpressible | None:
    """Return the reason why the format has no place for a part; ``None`` if it has one for every part."""
    channels = fmt.channels
    aside = channels.has_reasoning if channels is not None else fmt.reasoning is not None and not fmt.reasoning.inline
    if message.reasoning and not aside:
        return Inexpressible.NO_REASONING
    if not message.calls:
        return None
    if (channels is None and not fmt.tools) or (offered.known and not offered.names):
        return Inexpressible.NO_CALLS
    return None


def _place_of_calls_problem(fmt: Format, message: AssistantMessage, offered: ToolSet) -> Inexpressible | None:
    """Return the reason why these calls cannot follow one another or the content."""
    if not message.calls or not fmt.tools:
        return None
    tools = fmt.tools[0]
    if fmt.channels is None and tools.bare:
        if message.content:
            return Inexpressible.CONTENT_WITH_CALLS
        if len(message.calls) > 1 and not _stand_apart(tools):
            return Inexpressible.PARALLEL_CALLS
    if tools.alone and not offered.known:
        return Inexpressible.UNKNOWN_TOOL  # a call without any marker is read only if its tool is offered
    return Inexpressible.CONTENT_WITH_CALLS if message.content and _quotes(tools, message.content) else None


def _stand_apart(tools: Tools) -> bool:
    """True if something separates calls without a marker."""
    separator = text_of(tools.separator).strip(WS)
    return tools.one_a_line or tools.list_open is not None or separator != ""


# -- Texts --------------------------------------------------------------------------------------------------------


def _texts_problem(fmt: Format, message: AssistantMessage, offered: ToolSet) -> Inexpressible | None:
    """Return the reason why reasoning or content is not read back as it is."""
    if fmt.channels is not None:
        return _channel_texts_problem(fmt, fmt.channels, message)
    # If no tools are offered, nothing is a call, so nothing can be mistaken for one.
    syntaxes = fmt.tools if offered.names or not offered.known else ()
    return _reasoning_problem(fmt, message, syntaxes) or _content_problem(fmt, message, syntaxes, offered)


def _reasoning_problem(fmt: Format, message: AssistantMessage, syntaxes: tuple[Tools, ...]) -> Inexpressible | None:
    text, reasoning = message.reasoning, fmt.reasoning
    if not text:
        return None
    assert reasoning is not None
    after = reasoning.close.text
    if _touches(text, fmt.turn.start is not None or reasoning.open is not None, True):
        return Inexpressible.OUTER_WHITE_SPACE
    marked = (
        _holds(text, after, reasoning.close.spellings)
        or text.startswith(spellings_of(reasoning.open))
        or (fmt.content is not None and text.lstrip(WS).startswith(fmt.content.open.spellings))
        or _opens_call(fmt, text, after, syntaxes)
        or _straddles(text, after, spellings_of(fmt.turn.end))
    )
    return Inexpressible.MARKER_IN_REASONING if marked else None


def _content_problem(
    fmt: Format, message: AssistantMessage, syntaxes: tuple[Tools, ...], offered: ToolSet
) -> Inexpressible | None:
    text = message.content
    if not text:
        return None
    block = fmt.reasoning is not None and (message.reasoning != "" or empty_block(fmt, None))
    wrap = wraps(fmt, message)
    after = wrap.close.text if wrap is not None else _before_calls(fmt) if message.calls else ""
    if _touches(text, fmt.turn.start is not None or block or wrap is not None, after != ""):
        return Inexpressible.OUTER_WHITE_SPACE
    if _content_marker(fmt, text, after, wrap) or _opens_call(fmt, text, after, syntaxes):
        return Inexpressible.MARKER_IN_CONTENT
    if any(_bare_call(tools, text.lstrip(WS), offered) for tools in syntaxes):
        return Inexpressible.LOOKS_LIKE_A_CALL
    return None


def _before_calls(fmt: Format) -> str:
    """Return the markup between content and the first call's name or object."""
    opened = opening(fmt.tools[0])
    return fmt.tools[0].lead + opened if opened else ""


def _content_marker(fmt: Format, text: str, after: str, wrap: Content | None) -> bool:
    reasoning, content = fmt.reasoning, fmt.content
    anywhere: list[str] = []
    first: list[str] = []
    if reasoning is not None:
        anywhere += reasoning.close.spellings
        if _reopens(text, reasoning):
            return True
    if wrap is not None:
        anywhere += wrap.close.spellings
    elif content is not None:
        for spelling in content.open.spellings:
            (anywhere if spelling in fmt.special_tokens else first).append(spelling)
    if fmt.turn.in_output:
        first += [start.strip(WS) for start in spellings_of(fmt.turn.start)]
    ends = spellings_of(fmt.turn.end)
    # An end of turn counts only if another one follows, and a marker may begin like one (GigaChat).
    if text.rstrip(WS).endswith(ends) and (not after or after.lstrip(WS).startswith(ends)):
        return True
    if _straddles(text, after, ends):
        return True
    return _holds(text, after, anywhere) or text.lstrip(WS).startswith(tuple(first))


def _reopens(text: str, reasoning: Reasoning) -> bool:
    """True if content may begin reasoning again: its opener at the start of a line, or where the Format allows it."""
    before = r"(?:\A|\n)[ \t\r]*" + (r"|[^ \t\r\n`]" if reasoning.repeats else "")
    return any(re.search(f"(?:{before}){re.escape(opener)}", text) for opener in spellings_of(reasoning.open))


def _channel_texts_problem(fmt: Format, channels: Channels, message: AssistantMessage) -> Inexpressible | None:
    """Return the reason why a text cannot be one message of a turn.

    A text ends where its message is closed or the next one begins; the last text ends with the output.
    """
    texts = (
        (message.reasoning, Inexpressible.MARKER_IN_REASONING, message.content or message.calls),
        (message.content, Inexpressible.MARKER_IN_CONTENT, message.calls),
    )
    for text, reason, more in texts:
        after = text_of(channels.close, channels.open) if more else ""
        if text and _touches(text, True, after != ""):
            return Inexpressible.OUTER_WHITE_SPACE
        if text and _ends_message(fmt, channels, text, after):
            return reason
    return None


def _ends_message(fmt: Format, channels: Channels, text: str, after: str) -> bool:
    """True if a text holds, or forms with the markup after it, a marker that ends it."""
    ends = spellings_of(fmt.turn.end)
    if (not after and text.rstrip(WS).endswith(ends)) or _straddles(text, after, ends):
        return True
    kinds = spellings_of(channels.reasoning_body, channels.call_body)
    heads = (*spellings_of(channels.channel), *kinds, *(spellings_of(channels.body) if kinds else ()))
    closes = spellings_of(channels.close, channels.call_close)
    return _holds(text, after, (*closes, *heads)) or _opens_header(text, after, channels)


def _opens_header(text: str, after: str, channels: Channels) -> bool:
    if channels.recipient is not None or channels.call_body is not None:
        return _holds(text, after, channels.open.spellings)
    # The header is one bare word: prose after the opener is not a header.
    for start, end in _places(text, after, channels.open.spellings):
        if end > len(text):
            return True
        # A header that the output cuts is dropped.
        if not ILLEGAL & set((text + after)[end:].partition("\n")[0]):
            return True
        assert start < end
    return False


def _touches(text: str, before: bool, after: bool) -> bool:
    """True if white space of the text touches markup before or after it."""
    return (before and text[0] in WS) or (after and text[-1] in WS)


def _holds(text: str, after: str, spellings: Iterable[str]) -> bool:
    return any(True for _ in _places(text, after, spellings))


def _straddles(text: str, after: str, spelled: Iterable[str]) -> bool:
    """True if a spelling begins in the text and ends in the markup after it."""
    return any(end > len(text) for _, end in _places(text, after, spelled))


def _places(text: str, after: str, spellings: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each spelling that begins in ``text``; it may end in the markup after it."""
    whole = text + after
    for spelling in spellings:
        start = whole.find(spelling)
        while 0 <= start < len(text):
            yield start, start + len(spelling)
            start = whole.find(spelling, start + 1)


# -- Text that reads as a call --------------------------------------------------------------------------------------


def _opens_call(fmt: Format, text: str, after: str, syntaxes: tuple[Tools, ...]) -> bool:
    """True if the text has an opener, and the text after it could continue as a call."""
    whole = text + after
    for tools in syntaxes:
        # If an opener comes first, a close that ends in the markup after the text removes that markup with it.
        closes = spellings_of(tools.section_close, tools.call_close)
        cut = _straddles(text, after, closes)
        # Markers of calls without a call are dropped, so a close or the end of the turn is enough as well.
        nothing: list[tuple[str, ...] | NamedBody] = [(*closes, *spellings_of(tools.list_close, fmt.turn.end))]
        for openers, sequences in _openers(tools):
            for start, end in _places(text, after, openers):
                # An opener directly before the same one is dropped.
                doubled = not text[end:].strip(WS) and after.lstrip(WS).startswith(whole[start:end])
                if (
                    cut
                    or doubled
                    or end > len(text)
                    or any(_follows(tools, parts, whole[end:], len(after)) for parts in (*sequences, nothing))
                ):
                    return True
    return False


def _openers(tools: Tools) -> Iterator[tuple[tuple[str, ...], list[list[tuple[str, ...] | NamedBody]]]]:
    """Yield the markers with which calls can begin, and for each the sequences that can follow it."""
    body = tools.body
    name_open = spellings_of(body.name_open) if isinstance(body, NamedBody) else ()
    if isinstance(body, JsonBody):
        start: list[tuple[str, ...] | NamedBody] = [("{",)]
    else:
        start = [name_open, body] if name_open else [body]
    inner: list[list[tuple[str, ...] | NamedBody]] = []
    if tools.call_open is not None:
        inner.append([tools.call_open.spellings, *start])
    if tools.call_open is None or "call" in tools.optional:
        inner.append(start)
    if tools.list_open is not None:
        inner = [[tools.list_open.spellings, *part] for part in inner] + (inner if tools.list_optional else [])
    if tools.section_open is not None:
        yield tools.section_open.spellings, inner
    if tools.section_open is None or "section" in tools.optional:
        if tools.call_open is not None:
            yield tools.call_open.spellings, [start]
        if name_open and (tools.call_open is None or "call" in tools.optional):
            yield name_open, [start[1:]]


def _follows(tools: Tools, parts: list[tuple[str, ...] | NamedBody], text: str, after: int) -> bool:
    """True if ``text`` could begin with ``parts``, white space aside, or ends within them: a call that the output cuts
    is dropped.

    Its last ``after`` characters are the markup after it; a part that continues there could be anything.
    """
    for part in parts:
        text = text.lstrip(WS)
        if isinstance(part, NamedBody):
            return _names(tools, part, text)
        found = next((spelling for spelling in part if text.startswith(spelling)), None)
        if found is None:
            return any(spelling.startswith(text) for spelling in part)
        text = text[len(found) :]
        if len(text) < after:
            return True
    return True


def _names(tools: Tools, body: NamedBody, text: str) -> bool:
    """True if ``text`` begins with a name and a text that ends it, or ends within them."""
    illegal = ILLEGAL - set(re.sub(r"\{\w+\}", "", body.name))
    end = _end_of_name(tools, body, text)
    name = text[: len(text) if end is None else end].strip(WS)
    if illegal & set(name) or len(name) > MAX_NAME:
        return False
    return name != "" or end is None


def _end_of_name(tools: Tools, body: NamedBody, text: str) -> int | None:
    """Return where the first text that ends a name begins; ``None`` if nothing ends one."""
    return min((at for end in name_ends(tools, body) if (at := text.find(end)) >= 0), default=None)


def _bare_call(tools: Tools, text: str, offered: ToolSet) -> bool:
    """True if a text begins like a call without a marker."""
    if not tools.bare:
        return False
    for opener in spellings_of(tools.list_open):
        if text.startswith(opener) and _bare_body(tools, text[len(opener) :].lstrip(WS), offered):
            return True
    unlisted = tools.list_open is None or tools.list_optional
    # A name alone begins a call only if it is an offered one.
    return unlisted and (isinstance(tools.body, JsonBody) or offered.known) and _bare_body(tools, text, offered)


def _bare_body(tools: Tools, text: str, offered: ToolSet) -> bool:
    body = tools.body
    if isinstance(body, JsonBody):
        keys = (body.name_key, *body.accepted_name_keys)
        # An escape can spell a key differently.
        return text.startswith("{") and (body.name_is_key or "\\u" in text or any(f'"{key}"' in text for key in keys))
    name = text[: _end_of_name(tools, body, text) or 0].strip(WS)
    return name != "" and not ILLEGAL & set(name) and (not offered.known or name in offered.names)
