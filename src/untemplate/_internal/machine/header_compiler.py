"""Compiles the headers of messages (gpt-oss, Functionary 3.2), and the calls in such messages."""

from __future__ import annotations

import re
from dataclasses import replace

from ...format import Channels, Format, Marker
from . import rules, tags
from .call_syntax import Body, CallSyntax, NameSyntax
from .frame_compiler import ILLEGAL_IN_NAMES, compile_tools, plain_close
from .json.compiler import compile_json
from .lexer import WS, Literals
from .marker_tags import spellings, tagged
from .program import IN_ARGUMENTS, IN_CONTENT, IN_REASONING, HeaderSyntax, Program, TextState
from .rules import MarkerRule
from .state_compiler import add_call_openers, add_end_tokens


def compile_channels(program: Program, fmt: Format, channels: Channels, tools: bool, ends: list[str]) -> None:
    header = HeaderSyntax()
    bare = channels.recipient is None
    bodies = (channels.body, channels.reasoning_body, channels.call_body)
    kinds = [body for body in bodies[1:] if body is not None]
    closes = tagged(
        (channels.close, tags.HEADER_CLOSE), (channels.call_close, tags.HEADER_CLOSE), (fmt.turn.end, tags.HEADER_CLOSE)
    )
    parts = () if bare else (channels.channel, channels.recipient, channels.constraint)
    header.literals = Literals(
        {
            **tagged((channels.open, tags.HEADER_OPEN), *((p, tags.HEADER_PART) for p in parts)),
            **(tagged(*((b, tags.HEADER_BODY) for b in (bodies if not bare or kinds else ())))),
            **closes,
        }
    )
    header.body = Literals(
        tagged((channels.body, IN_CONTENT), (channels.reasoning_body, IN_REASONING), (channels.call_body, IN_ARGUMENTS))
    )
    header.channel = spellings(channels.channel)
    header.recipient = spellings(channels.recipient)
    header.constraint = spellings(channels.constraint)
    header.opens = channels.open.spellings
    header.role = channels.role
    header.marks = re.compile("|".join(["<", *(re.escape(t) for t in header.literals.tags if t.strip() == t)]))
    header.namespace = channels.namespace
    header.join = channels.join
    header.closes = Literals({text: tags.HEADER_CLOSE for text in closes if text not in program.turn_end.tags})
    header.only_text = frozenset((*channels.reasoning, *channels.content[:1]))
    header.reasoning = frozenset(channels.reasoning)
    header.content = frozenset(channels.content)
    if bare:
        header.illegal = re.compile(f"[{re.escape(ILLEGAL_IN_NAMES.replace(chr(10), ''))}]")
    else:
        stops = "|".join(map(re.escape, (*closes, *header.opens)))
        header.illegal = re.compile(f"{stops}|{_end_of_header([*header.body.tags, *(_texts(parts))])}")
    header.decides = re.compile(f"{header.illegal.pattern}|{header.body.pattern.pattern}")
    program.header = header
    content: dict[str, MarkerRule] = {text: MarkerRule(rules.OPEN_HEADER) for text in channels.open.spellings}
    for text in (*header.channel, *(_texts((*kinds, channels.body)) if kinds else ())):
        content.setdefault(text, MarkerRule(rules.OPEN_HEADER, place=rules.IN_HEADER))
    for text in (*spellings(channels.close), *spellings(channels.call_close)):
        content.setdefault(text, MarkerRule(rules.CLOSE_MESSAGE))
    for text in spellings(fmt.turn.end):
        content.setdefault(text, MarkerRule(rules.END_TURN))
    add_end_tokens(program, ends, content)
    program.states = [
        TextState("content", IN_CONTENT, content, True),
        TextState("reasoning", IN_REASONING, content, True),
    ]
    program.reasoning = 1
    program.repeats = True
    if tools:
        syntax = _compile_channel_calls(fmt, channels)
        program.call_syntaxes = [syntax]
        _add_message_calls(program, header, fmt, channels, closes)


def _texts(markers: tuple[Marker | None, ...]) -> list[str]:
    return [text for marker in markers for text in spellings(marker)]


def _end_of_header(parts: list[str]) -> str:
    """Return the pattern of a newline after which a header does not go on: no part of it follows, nor the beginning of
    one that the text ends in."""
    texts = sorted({text.strip(WS) for text in parts}, key=len, reverse=True)
    begun = sorted({text[:size] for text in texts for size in range(len(text))}, key=len, reverse=True)
    follows = "|".join(map(re.escape, texts))
    return rf"\n(?![ \t\r\n]*(?:{follows}|(?:{'|'.join(map(re.escape, begun))})\Z))"


def _compile_channel_calls(fmt: Format, channels: Channels) -> CallSyntax:
    """Compile the calls that headers name."""
    syntax = CallSyntax("channels", Body())
    closes = (*spellings(channels.call_close), *spellings(channels.close))
    syntax.after = Literals(dict.fromkeys(closes, tags.CALL_CLOSE))
    syntax.plain_close = plain_close(syntax)
    headers = (*channels.open.spellings, *spellings(channels.channel))
    stops = (*syntax.after.tags, *headers, *spellings(fmt.turn.end))
    syntax.stops = Literals(dict.fromkeys(stops, tags.CALL_CLOSE))
    syntax.name = NameSyntax("{name}")
    syntax.body = compile_json(syntax)
    return syntax


def _add_message_calls(
    program: Program, header: HeaderSyntax, fmt: Format, channels: Channels, closes: dict[str, int]
) -> None:
    """Add the syntaxes of calls that are the text of a message. The first syntax stays the one that headers name."""
    end = Marker("".join(list(closes)[:1]) or "\n", tuple(closes))
    markers: dict[str, MarkerRule] = {}
    for i, way in enumerate(fmt.tools, 1):
        if closes and way.call_open is not None and way.section_close is None:
            way = replace(way, section_close=end)  # the message is the section of its calls
        syntax = compile_tools(way, f"tools[{i - 1}]", end if closes else None)
        syntax.variants = syntax.variants.difference(closes)
        syntax.message_opens = Literals(tagged((channels.open, tags.HEADER_OPEN)))
        # The header marks the call, so no tool has to be known.
        syntax.bare = False
        program.call_syntaxes.append(syntax)
        add_call_openers(markers, syntax, way)
    header.calls = Literals({text: i for i, text in enumerate(markers)})
    header.call_rules = list(markers.values())
