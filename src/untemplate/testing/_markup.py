"""Check that text which is called markup holds nothing but what a Format declares."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any

from ..format import Arguments, Channels, ElementArguments, Format, JsonBody, Marker, TaggedArguments
from ..format._markers import spellings_of


def markup_rest(fmt: Format, piece: str, cut: bool) -> str:
    """Return what a piece of markup holds besides markers, keys, punctuation and white space. ``cut``: the output ends
    after it, so that it may end inside a marker."""
    words = _markup_words(fmt)
    rest = words.pattern.sub(" ", piece)
    if cut and re.search(words.text, rest):
        # A part of a marker at the end may hold another marker.
        whole = words.pattern.sub(" ", words.without_part(piece))
        rest = min(words.without_part(rest.rstrip()), whole, key=lambda text: len(re.findall(words.text, text)))
    return rest.strip() if re.search(words.text, rest) else ""


@dataclass(slots=True)
class _Words:
    """The text that a span of markup may hold besides punctuation and white space."""

    pattern: re.Pattern[str]
    literals: list[str]
    text: str
    """Matches a character that is not markup."""

    def without_part(self, text: str) -> str:
        """Return the text without the beginning of a marker at its end, where the output was cut."""
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
        words |= _words_of_object(body) if isinstance(body, JsonBody) else _words_of_arguments(body.arguments)
        attributes += [] if isinstance(body, JsonBody) else _attributes_of(body.arguments)
    if fmt.channels is not None:
        attributes.append(_header(fmt, fmt.channels))
    has_json = any(isinstance(tools.body, JsonBody) for tools in fmt.tools)
    text = r"[^\s{}\[\]\",:]" if has_json else r"\S"
    literals = sorted(words, key=len, reverse=True)
    return _Words(re.compile("|".join([*attributes, *map(re.escape, literals)]) or "(?!)"), literals, text)


def _words_of_object(body: JsonBody) -> set[str]:
    keys = [body.name_key, body.arguments_key, *body.accepted_name_keys, *body.accepted_arguments_keys]
    keys += [key for key in (body.id_key, body.nested_key) if key]
    words = {json.dumps(key) for key in keys} | {json.dumps(part) for constant in body.constants for part in constant}
    # OpenAI's functions have this member, so it may occur in any Format.
    return words | {"null", '"type"', '"function"'}


def _words_of_arguments(arguments: Arguments) -> set[str]:
    if isinstance(arguments, TaggedArguments):
        return {*_pieces_of_key(arguments), *(("<![CDATA[", "]]>") if arguments.escape == "cdata" else ())}
    return {arguments.name_close} if isinstance(arguments, ElementArguments) else set()


def _attributes_of(arguments: Arguments) -> list[str]:
    """Return expressions for the parts of tags that change with the value."""
    if isinstance(arguments, ElementArguments):
        return _tags(arguments)
    if not isinstance(arguments, TaggedArguments):
        return []
    attributes = [rf"{re.escape(piece)}[A-Za-z]*" for piece in _pieces_of_key(arguments)]
    # The type of a value follows the opener of its own, or that of the key if it comes before the key.
    before = [arguments.type_open, None if arguments.key.startswith("{key}") else arguments.key_open]
    return attributes + [rf"(?:{_either(marker)})\s*[A-Za-z]*" for marker in before if marker is not None]


def _pieces_of_key(arguments: TaggedArguments) -> list[str]:
    """Return the texts that a key's pattern brings along: ``{key}" string="{string}``."""
    return [piece for piece in re.split(r"\{\w+\}", arguments.key) if piece]


def _tags(arguments: ElementArguments) -> list[str]:
    """Return expressions for tags that hold no argument's name: a close tag, which repeats it, and one of an item."""
    end = re.escape(arguments.name_close)
    closes = "|".join(map(re.escape, arguments.close.spellings))
    opens = "|".join(map(re.escape, arguments.open.spellings))
    return [rf"(?:{closes})[^<>\r\n]{{1,1024}}?(?:{end}|\Z)", rf"(?:{opens}){re.escape(arguments.item)}{end}"]


def _header(fmt: Format, channels: Channels) -> str:
    """Return an expression for a header, or a part of it before or after a name. A model may write other roles,
    channels and types than the Format lists: its words may be any text up to a newline that no part follows, and in a
    header that is one word any text without angle brackets."""
    bodies = _either(channels.body, channels.reasoning_body, channels.call_body)
    parts = _either(channels.channel, channels.recipient, channels.constraint)
    heads = "|".join(filter(None, (_either(channels.open), parts)))
    ends = _either(channels.close, channels.call_close, fmt.turn.end)
    stops = "|".join(filter(None, (_either(channels.open), ends)))
    parts_of = spellings_of(channels.body, channels.channel, channels.recipient, channels.constraint)
    follows = "|".join(re.escape(text.strip()) for text in parts_of)
    character = "[^<>]" if channels.recipient is None else rf"(?:[^\n]|\n(?=\s*(?:{follows})))"
    text = f"(?:(?!{heads}|{bodies}|{stops}){character}){{0,512}}"
    inside = "|".join(filter(None, (parts, bodies)))
    # The opener of a header may be missing.
    start = rf"(?:\A|(?:{ends})\s*)" if ends else r"\A"
    return rf"(?:{start}{text}(?={inside}))?(?:(?:{heads}){text})*(?:{bodies}|\Z)"


def _either(*alternatives: Marker | None) -> str:
    """Return an expression for all spellings of these markers."""
    return "|".join(re.escape(s) for m in alternatives if m is not None for s in (m.text, *m.spellings))


def markers(part: Any) -> Iterator[Marker]:
    """Yield all markers of a part of a Format."""
    if isinstance(part, Marker):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from markers(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from markers(getattr(part, field.name))
