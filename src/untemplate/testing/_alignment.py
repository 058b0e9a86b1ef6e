"""Compare the text of a call's argument spans with its arguments, character by character.

Every syntax of arguments has one function here. It takes a `CallText` and returns None if each character of the spans
is in the arguments, in order, and the arguments hold nothing else; otherwise it returns the rest that does not fit.

* Arguments that pass through must equal their spans. Those in a JSON string must equal the decoded string.
* Converted arguments are read as a sequence of keys and scalars. Between these, a span holds only the punctuation of
  its syntax. Strings and keys must equal their text, escapes undone; numbers and constants may be spelled otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .._internal.jsontext.lexical import WS, without_surrogates
from .._internal.machine.arguments.xml_text import unescape_xml
from .._internal.machine.literal.words import PATH, closing_quote, unescaped
from ..format import ElementArguments, Format, JsonBody, LiteralArguments, TaggedArguments
from ..tools import ToolSet

Rest = tuple[str, str]
"""Text of the spans that is not in the arguments, and text of the arguments that is not in the spans."""


@dataclass(frozen=True, slots=True)
class CallText:
    """One call: its argument spans as text, and what they became."""

    pieces: tuple[str, ...]
    name: str
    arguments: str
    tools: ToolSet
    without_value: frozenset[int] = frozenset()
    """Places in the joined pieces where a missing value has been reported."""
    unescaped_quotes: frozenset[int] = frozenset()
    """Places there where a quote inside a string has been reported."""
    missing_closes: frozenset[int] = frozenset()
    """Places there where the end of a string without a closing quote has been reported."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


Alignment = Callable[[CallText], Rest | None]

_ESCAPE: Final = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.", re.DOTALL)
_STRING: Final = r'"(?:[^"\\]|\\.)*+"'
_MEMBER: Final = re.compile(rf"({_STRING})[ \t\r\n]*(?::[ \t\r\n]*(.*))?", re.DOTALL)
_KEY: Final = re.compile(r'(?:\{|, )"((?:[^"\\]|\\.)*+)(?:"(: )?)?', re.DOTALL)
_ELEMENT_KEY: Final = re.compile(r'"((?:[^"\\]|\\.)*+)": ', re.DOTALL)
_ELEMENT_VALUE: Final = re.compile(rf'{_STRING}|"(?:[^"\\]|\\.)*+|[^,\]}}]+', re.DOTALL)
_BETWEEN: Final = "]}, \t\r\n"
_VALUE_PART: Final = re.compile(rf'{_STRING}|"(?:[^"\\]|\\.)*+|[\[\]{{}},]', re.DOTALL)
_LEAF: Final = re.compile(r'[ \t\r\n]*(?:([\[\]{}:,])|"((?:[^"\\]|\\.)*+)("?)|([^ \t\r\n"\[\]{}:,]++))', re.DOTALL)
_PUNCTUATION: Final = re.compile(r"[ \t\r\n,()\[\]{}]*+")
_CLOSERS: Final = re.compile(r"[ \t\r\n,)\]}]*+")
_EMPTY: Final = re.compile(r"[ \t\r\n,)\]}]*+[ \t\r\n,(\[{]*+[)\]}]?")
_COLON: Final = re.compile('"?:? ?')
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_ASSIGN: Final = re.compile(r"[ \t\r\n]*(?::|=(?!=))")
_WORD: Final = re.compile(r"[^ \t\r\n,()\[\]{}\"']++")
_OPENERS: Final = ("(", "[", "{")
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*)")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?")
_CONSTANTS: Final = {"true": ("true", "1"), "false": ("false", "0"), "null": ("null", "none")}
"""JSON's constants with their other spellings, in lower case."""


@lru_cache(maxsize=128)
def alignments(fmt: Format) -> tuple[Alignment, ...]:
    """Return the functions for the syntaxes of arguments that the Format has."""
    found: list[Alignment] = [] if fmt.channels is None else [as_written, in_a_string]
    for tools in fmt.tools:
        body = tools.body
        if isinstance(body, JsonBody):
            found += [as_written, in_a_string, as_members]
        elif isinstance(body.arguments, TaggedArguments):
            # Models write JSON in place of the tags.
            found += [in_xml_tags if body.arguments.escape_of_keys == "xml" else in_tags, as_written]
        elif isinstance(body.arguments, ElementArguments):
            found.append(in_elements)
        elif isinstance(body.arguments, LiteralArguments):
            found.append(_Literals(body.arguments).align)
        else:
            found += [as_written, in_a_string]
    return tuple(dict.fromkeys(found))


def rest_of(text: str, arguments: str) -> Rest:
    """Return two texts without what they have in common at both ends."""
    size = min(len(text), len(arguments))
    start = next((i for i in range(size) if text[i] != arguments[i]), size)
    size -= start
    end = next((i for i in range(size) if text[-1 - i] != arguments[-1 - i]), size)
    return text[start : len(text) - end], arguments[start : len(arguments) - end]


def as_written(call: CallText) -> Rest | None:
    """Compare JSON that passes through. A call without arguments gets ``{}``."""
    text = call.text
    return None if text == call.arguments or (not text and call.arguments == "{}") else rest_of(text, call.arguments)


def in_a_string(call: CallText) -> Rest | None:
    """Compare JSON text that is written inside a JSON string."""
    text = call.text
    if not text.startswith('"'):
        return rest_of(text, call.arguments)
    body = text[1:-1] if re.fullmatch(_STRING, text, re.DOTALL) else text[1:]
    decoded = _ESCAPE.sub(_unescaped_pair, body)
    same = call.arguments in (decoded, without_surrogates(decoded))
    return None if same else rest_of(decoded, call.arguments)


def _unescaped_pair(found: re.Match[str]) -> str:
    try:
        return str(json.loads(f'"{found.group()}"'))
    except ValueError:
        return found.group()


def as_members(call: CallText) -> Rest | None:
    """Compare arguments that are written next to the name: the members of one object, one span each. After a break,
    the rest of the object is passed through."""
    members = [_member(piece) for piece in call.pieces]
    whole = "{" + ", ".join(members)
    broken = "{" + ", ".join(members[:-1]) + "".join(call.pieces[-1:])
    return None if call.arguments in (whole, whole + "}", broken) else rest_of(whole, call.arguments)


def _member(piece: str) -> str:
    """Return a member as the machine writes it: the key anew, the value unchanged."""
    found = _MEMBER.fullmatch(piece)
    if found is None:
        return piece
    try:
        key = json.loads(found[1], strict=False)
    except ValueError:
        key = found[1][1:-1]
    written = json.dumps(key, ensure_ascii=False)
    return f"{written}: {found[2]}" if found[2] else written


_NOTHING: Final = ('""', '"')
"""Strings without text, which have no span."""

# -- tags ---------------------------------------------------------------------------------------------------------


def in_tags(call: CallText, decode: Callable[[str], str] = str) -> Rest | None:
    """Compare arguments in tags. Each key and each value is a span of its own; an empty one has no span."""
    at, pieces, number = 0, call.pieces, 0
    arguments = call.arguments
    while at < len(arguments) and arguments[at:] != "}" and arguments != "{}":
        found = _KEY.match(arguments, at)
        if found is None:
            break
        key = _unescaped(found[1])
        if key:
            if number == len(pieces) or key not in (decode(pieces[number]), pieces[number]):
                return "".join(pieces[number : number + 1]), key
            number += 1
        at = found.end()
        if found[2] is None:
            break
        piece = pieces[number] if number < len(pieces) else ""
        end = len(arguments) if arguments[at:] == piece.strip(WS) else _value_end(arguments, at)
        value = arguments[at:end]
        if value not in _NOTHING:
            if not _same_value(value, piece) and not _same_value(value, decode(piece)):
                return _other_value(value, piece)
            number += bool(piece)
        at = end
    left = "".join(pieces[number:])
    more = "" if arguments[at:] == "}" or arguments == "{}" else arguments[at:]
    return (left, more) if left or more else None


def in_xml_tags(call: CallText) -> Rest | None:
    """Compare arguments in tags, with XML's entities."""
    return in_tags(call, unescape_xml)


def in_elements(call: CallText) -> Rest | None:
    """Compare arguments in elements. Each key and each text is a span of its own; an empty one has no span. A text may
    be an object or an array as JSON."""
    arguments, pieces = call.arguments, call.pieces
    at = number = 0
    while at < len(arguments):
        if arguments[at] in _BETWEEN:
            at += 1
            continue
        key = _ELEMENT_KEY.match(arguments, at)
        piece = pieces[number] if number < len(pieces) else ""
        if key is not None:
            at = key.end()
            if _unescaped(key[1]) != piece:
                return piece, key[1]
            number += bool(piece)
            continue
        if piece and arguments[at:] == piece.strip(WS):
            # A cut value is put as it was written.
            return None if number + 1 == len(pieces) else ("".join(pieces[number + 1 :]), "")
        value = arguments[at : _value_end(arguments, at)]
        if value[0] in "[{" and not (piece and _same_value(value, piece)):
            at += 1
            continue
        if value[0] not in "[{":
            value = found[0] if (found := _ELEMENT_VALUE.match(arguments, at)) else value
        at += len(value)
        if value not in _NOTHING:
            if not _same_value(value, piece):
                return _other_value(value, piece)
            number += bool(piece)
    left = "".join(pieces[number:])
    return (left, "") if left else None


def _other_value(value: str, piece: str) -> Rest | None:
    """Return the rest of a value that is not the text of its tag."""
    return rest_of(piece, _unescaped(value[1:].removesuffix('"')) if value[:1] == '"' else value)


def _value_end(text: str, at: int) -> int:
    """Return where the JSON value at ``at`` ends, which may be cut."""
    depth = 0
    for found in _VALUE_PART.finditer(text, at):
        c = found.group()
        if not depth and c in ("}", ","):
            return found.start()
        depth += (c in "[{") - (c in "]}")
    return len(text)


def _same_value(value: str, piece: str) -> bool:
    """True if the text of a tag has this JSON value. Without a schema, text is a string and nothing is converted."""
    if value.startswith('"'):
        return (
            _unescaped(value[1:].removesuffix('"') if re.fullmatch(_STRING, value, re.DOTALL) else value[1:]) == piece
        )
    stripped = piece.strip(WS)
    if value == stripped or _same_word(value, stripped):
        return True
    return value[:1] in ("{", "[") and _PYTHON.align(CallText((stripped,), "", value, ToolSet(None))) is None


def _same_word(value: str, word: str) -> bool:
    """True if a word has this value, which is a JSON number or constant."""
    if value in _CONSTANTS:
        return word.lower() in _CONSTANTS[value]
    try:
        if _INTEGER.fullmatch(word):
            number: float = int(word, 0) if word[-1:].isdigit() and word.lstrip("+-")[:1] != "0" else _int(word)
        elif _NUMBER.fullmatch(word):
            number = float(word)
        else:
            return False
        return bool(json.loads(value) == number)
    except ValueError:
        return False


def _int(word: str) -> int:
    """Return an integer with a prefix (``0x10``) or with leading zeros (``007``)."""
    try:
        return int(word, 0)
    except ValueError:
        return int(word)


# -- literals -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Leaf:
    """A key, string, number or constant of the arguments, which may be cut."""

    text: str
    """The text of a string, a word as written, or nothing for an empty list or object."""
    end: int
    """Its end in the arguments."""
    is_string: bool
    is_key: bool
    depth: int
    whole: bool = True


def _leaves(arguments: str) -> Iterator[_Leaf]:
    """Yield the keys, scalars, and empty lists and objects of JSON text, in order."""
    objects: list[bool] = []
    key = False
    last = ""
    at = 0
    while (found := _LEAF.match(arguments, at)) is not None:
        at = found.end()
        mark, string, close, word = found.groups()
        if mark is None:
            whole = bool(close) if word is None else at < len(arguments)
            text = _unescaped(string) if word is None else word
            yield _Leaf(text, at, word is None, key, len(objects), whole)
        elif mark in "[{":
            objects.append(mark == "{")
        elif mark in "]}" and objects:
            objects.pop()
            if last in ("[", "{"):
                yield _Leaf("", at, False, False, len(objects))
        last = mark or ""
        key = mark is not None and mark in "{," and bool(objects) and objects[-1]


class _Literals:
    """Compares arguments that are written as literals of a language."""

    def __init__(self, syntax: LiteralArguments) -> None:
        quotes = {*syntax.quotes, *(q * 3 for q in syntax.quotes if len(q) == 1)}
        self._quote = re.compile("|".join(map(re.escape, sorted(quotes, key=len, reverse=True))))
        self._short_quote = re.compile("|".join(map(re.escape, sorted(syntax.quotes, key=len, reverse=True))))
        self._raw = "" if syntax.escapes else syntax.quotes[0]
        self._start = 0 if syntax.on_lines else 1
        self._quoted = syntax.quoted == "all"

    def align(self, call: CallText) -> Rest | None:
        text = call.text
        at = min(len(text), self._start)
        keys = known = 0
        key: _Leaf | None = None  # the key of the value that follows
        for leaf in _leaves(call.arguments):
            if leaf.end <= known:
                continue
            start = _after(_SPACE, text, at)
            if key is not None and self._in_quotes(key, leaf):
                end, known = self._quoted_value(call, start, key.end)
                if known:
                    at, key = end, None
                    continue
            start = _place(text, start, leaf, key is not None)
            if leaf.is_key:
                end = self._key(call, start, leaf)
                key = leaf if end >= 0 and leaf.whole else None
                if leaf.depth == 1:
                    end = start if end < 0 and _is_place(call, leaf.text, keys) else end
                    keys += 1
            else:
                end = self._value(call, start, leaf)
                if end < 0 and leaf.text == "null" and key is not None and start in call.without_value:
                    end = start
                key = None
            if end < 0:
                return _shorter(text[start:], leaf.text)
            at = end
        if key is not None and self._quoted:
            at = self._quoted_value(call, _after(_SPACE, text, at), key.end)[0]
        left = text[_after(_PUNCTUATION, text, at) :]
        return (left, "") if left else None

    def _in_quotes(self, key: _Leaf, leaf: _Leaf) -> bool:
        """True if the value of a key begins with this leaf, and its text may be in quotes."""
        return self._quoted and key.depth == 1 and not (leaf.is_string and leaf.depth == 1)

    def _quoted_value(self, call: CallText, at: int, key_end: int) -> tuple[int, int]:
        """Compare a value with the text in quotes at ``at``. Return where both end, the value in the arguments; 0 for
        that if they differ, or if there are no quotes. The value follows the key that ends at ``key_end``."""
        quote = self._quote.match(call.text, at)
        if quote is None:
            return at, 0
        after, body = self._string(call, quote)
        start = _after(_COLON, call.arguments, key_end)
        end = _value_end(call.arguments, start)
        value = call.arguments[start:end]
        cut = after < 0 and call.arguments[start:] == body.strip(WS)  # a cut value is put as it was written
        if not cut and not _same_value(value, body):
            return at, 0
        return (len(call.text) if after < 0 else after), len(call.arguments) if cut else end

    def _string(self, call: CallText, quote: re.Match[str]) -> tuple[int, str]:
        """Return where a string ends, its closing quote included, and its text without escapes; -1 for the end if the
        string is not closed."""
        text, start, mark = call.text, quote.end(), quote.group()
        escapes = mark[0] in "'\"" and mark[0] != self._raw and PATH.match(text, start) is None
        close = closing_quote(text, start, mark, escapes, len(text))
        while close in call.unescaped_quotes:
            close = closing_quote(text, close + 1, mark, escapes, len(text))
        missing = min((p for p in call.missing_closes if p >= start), default=-1)
        if missing >= 0 and (close < 0 or missing < close):
            return missing, text[start:missing]
        body = text[start : len(text) if close < 0 else close]
        return close if close < 0 else close + len(mark), unescaped(body, len(mark) == 1) if escapes else body

    def _string_end(self, call: CallText, quote: re.Match[str], leaf: _Leaf) -> int:
        """Return where a quoted string ends, if it is the text of the leaf; otherwise -1."""
        end, decoded = self._string(call, quote)
        if decoded != leaf.text and (leaf.whole or end >= 0 or decoded.rstrip(WS) != leaf.text):
            return -1
        return len(call.text) if end < 0 else end

    def _key(self, call: CallText, at: int, key: _Leaf) -> int:
        """Return where a key and its assignment end; -1 if they are not here."""
        text = call.text
        quote = self._short_quote.match(text, at)
        end = -1 if quote is None else self._string_end(call, quote, key)
        if end < 0:
            end = at + len(key.text) if key.text and text.startswith(key.text, at) else -1
        assign = _ASSIGN.match(text, end) if end >= 0 else None
        if assign is not None:
            return assign.end()
        cut = not text[end:].strip(WS) and not call.arguments.startswith(":", key.end)
        return end if end >= 0 and cut else -1

    def _value(self, call: CallText, at: int, value: _Leaf) -> int:
        """Return where a value ends; -1 if it is not here."""
        text = call.text
        if not value.is_string and not value.text:
            return _after(_EMPTY, text, at)
        if not value.is_string:
            found = _WORD.match(text, at)
            word = "" if found is None else found.group()
            same = _same_word(value.text, word) or word == value.text or (not value.whole and _begins(value.text, word))
            return at + len(word) if same else -1
        quote = self._quote.match(text, at)
        if quote is not None:
            return self._string_end(call, quote, value)
        return at + len(value.text) if text.startswith(value.text, at) else -1


def _place(text: str, start: int, leaf: _Leaf, is_value: bool) -> int:
    """Return where a leaf begins, after punctuation that may precede it."""
    if leaf.is_key and leaf.depth == 1:
        return _after(_CLOSERS, text, start)
    if (leaf.text or leaf.is_string) and (not is_value or text[start : start + 1] in _OPENERS):
        return _after(_PUNCTUATION, text, start)
    return start


def _is_place(call: CallText, key: str, number: int) -> bool:
    """True if the key may be that of a value without a key."""
    return call.text[:1] == "(" and key in (str(number), call.tools.positional(call.name, number))


def _begins(value: str, word: str) -> bool:
    """True if ``word`` and ``value`` may be beginnings of one constant, in two spellings."""
    return any(
        constant.startswith(value) and any(s.startswith(word.lower()) for s in spellings)
        for constant, spellings in _CONSTANTS.items()
    )


def _shorter(text: str, leaf: str) -> Rest:
    """Return what is left without what both begin with. Of the spans, only what a reader needs."""
    left, right = text, leaf
    for quote in ("'", '"'):
        if text.startswith(quote) and leaf[:1] != quote:
            left = text[1:]
    size = min(len(left), len(right))
    same = next((i for i in range(size) if left[i] != right[i]), size)
    return left[same : same + 40], right[same : same + 40]


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


_JSON_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_CHARACTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unescaped(inside: str) -> str:
    """Return the text of a JSON string. Surrogates are not joined, as they are apart in literals of other languages."""
    if "\\" not in inside:
        return inside
    return _JSON_ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _CHARACTERS.get(m[2], m[2]), inside)


_PYTHON: Final = _Literals(LiteralArguments())
