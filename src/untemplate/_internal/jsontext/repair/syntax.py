"""Repair of text that is almost a JSON object.

* Wrappings (fences, quotes, lists) are removed first. Then one pass from left to right copies the text and repairs it
  on the way. If something cannot be repaired, the text stays as it was.
* Letters and digits are never dropped, added or moved.
* A string without its closing quote is never closed, and a number or word at which the output was cut is never taken:
  a command or a path of which half is missing must not run.
* A bracket in the wrong place is repaired only if nothing but brackets follows, so that it is clear what is open.
* A string ends at a quote if the text after it can follow a string, and the quote does not belong to a quotation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, final

from ..lexical import CONSTANT, ESCAPE, NUMBER, WS, after_spaces, json_escape
from .base import BARE, MAX_LENGTH, Repair, is_object

_MAX_DEPTH: Final = 100
_MAX_LAYERS: Final = 6
"""Most wrappings that are removed, the pass included."""

_FENCE: Final = re.compile(r"```[A-Za-z0-9_+-]*")
_ESCAPED_OBJECT: Final = re.compile(r'\{[ \t\r\n]*\\["n]')
_TAIL: Final = re.compile(r"[ \t\r\n,\]}]*\Z")
_STOPS: Final = {'"': re.compile(r'["\\\x00-\x1f]'), "'": re.compile(r"""["'\\\x00-\x1f]""")}
_HALF_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HEX: Final = re.compile(r"\\x([0-9a-fA-F]{2})")
_BARE_KEY: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,255}(?=[ \t\r\n]*:)")
_JSON_WORD: Final = re.compile(f"{NUMBER}|{CONSTANT}")
_PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
# The text after a comma that separates the members of an object, or the items of a list.
_MEMBER: Final = re.compile(
    r"""[ \t\r\n]*(?:(?:"(?:[^"\\]|\\.){0,1024}"|'(?:[^'\\]|\\.){0,1024}'|[A-Za-z_$][A-Za-z0-9_$-]{0,255})[ \t\r\n]*:"""
    r"""|[\]}]|\Z)""",
    re.DOTALL,
)
_ITEM: Final = re.compile(r"""[ \t\r\n]*(?:["'\[{\]}0-9-]|(?:true|false|null|True|False|None)\b|\Z)""")

# What must come next in an object or list.
_VALUE: Final = 0
_KEY: Final = 1
_COLON: Final = 2
_COMMA: Final = 3


def repair_syntax(text: str, *, cut: bool = False) -> Repair | None:
    """Return ``text`` as a JSON object; None if it is one, or cannot be made one without guessing.

    ``cut``: the output ended inside these arguments, so a number or word at the end of ``text`` may go on.

    Steps: ``removed_fence``, ``unwrapped_string`` (an object encoded twice), ``unwrapped_list`` (the only item of a
    list), ``removed_commas``, ``removed_brackets``, ``closed_brackets``, ``double_quotes`` (for single ones),
    ``quoted_keys``, ``python_literals``, ``escaped_controls``, ``escaped_quotes``, ``fixed_escapes``.
    """
    if len(text) > MAX_LENGTH or is_object(text):
        return None
    steps: dict[str, None] = {}
    rewritten = False
    for _ in range(_MAX_LAYERS):
        result = _unwrapped(text, steps)
        if result is None:
            result = None if rewritten else _Rewriter(text, steps, cut).rewrite()
            rewritten = True
        if result is None:
            return None
        text = result
        if is_object(text):
            return Repair(text, tuple(steps))
    return None


# -- Wrappings ----------------------------------------------------------------------------------------------------


def _unwrapped(text: str, steps: dict[str, None]) -> str | None:
    text = text.strip(WS)
    for slug, unwrap in _WRAPPINGS:
        inner = unwrap(text)
        if inner is not None:
            steps[slug] = None
            return inner
    return None


def _without_fence(text: str) -> str | None:
    """Return the text in a code fence, whose end may be missing."""
    found = _FENCE.match(text)
    return None if found is None else text[found.end() :].removesuffix("```").strip(WS)


def _without_quotes(text: str) -> str | None:
    """Return the object in a string: encoded twice, or only put in quotes."""
    if _ESCAPED_OBJECT.match(text):  # encoded twice, and the outer quotes left out
        inner = _decoded(f'"{text}"')
        return inner if isinstance(inner, str) else None
    if text[:1] not in ('"', "'"):
        return None
    inner = _decoded(text)
    if not isinstance(inner, str):
        inner = text[1:].removesuffix(text[0])
    return inner if inner.lstrip(WS).startswith(("{", "[", '"')) else None


def _without_list(text: str) -> str | None:
    """Return the object that is the only item of a list (ollama#17638), as written."""
    value = _decoded(text) if text.startswith("[") else None
    single = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
    return text[1:-1].strip(WS) if single else None


_WRAPPINGS: Final[tuple[tuple[str, Callable[[str], str | None]], ...]] = (
    ("removed_fence", _without_fence),
    ("unwrapped_string", _without_quotes),
    ("unwrapped_list", _without_list),
)


def _decoded(text: str) -> Any:
    """Return the value of JSON text, raw control characters in its strings allowed; None if it is not JSON."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


# -- The pass -----------------------------------------------------------------------------------------------------


@final
class _Rewriter:
    """Copies and repairs one object or list. For one use."""

    def __init__(self, text: str, steps: dict[str, None], cut: bool) -> None:
        self.text = text
        self.cut = cut
        self.pos = after_spaces(text, 0)
        self.out: list[str] = []
        self.steps = steps
        self.closers: list[str] = []
        """The closing brackets of what is open, the innermost last."""
        self.opened = False
        """True if nothing has followed the last opening bracket yet."""
        self.comma = -1
        """The index in ``out`` of a comma that nothing has followed yet; -1 without one."""

    def rewrite(self) -> str | None:
        """Return the repaired text; None if it cannot be repaired."""
        if self.text[self.pos : self.pos + 1] not in ("{", "["):
            return None
        expected = self._open()
        while True:
            self._copy(after_spaces(self.text, self.pos))
            c = self.text[self.pos : self.pos + 1]
            if not c or c in "]}":
                right = c == self.closers[-1]
                # After a key or a colon a value is missing. So is it in a list or an object that was cut before its
                # first member: nothing shows that it is empty.
                if expected != _COMMA and self.comma < 0 and not (right and self.opened):
                    return None
                if not right:
                    return self._end()
                self._drop_comma()
                self.closers.pop()
                self._copy(self.pos + 1)
                self.opened = False
                if not self.closers:
                    return self._end()
                expected = _COMMA
                continue
            if expected == _COMMA:
                if c != ",":
                    return None
                self.comma = len(self.out)
                self._copy(self.pos + 1)
                expected = _KEY if self.closers[-1] == "}" else _VALUE
                continue
            self.comma = -1
            self.opened = False
            if expected == _COLON:
                if c != ":":
                    return None
                self._copy(self.pos + 1)
                expected = _VALUE
            elif expected == _KEY:
                if not self._key(c):
                    return None
                expected = _COLON
            elif c in "{[":
                expected = self._open()
                if len(self.closers) > _MAX_DEPTH:
                    return None
            else:
                if not (self._string(c) if c in "\"'" else self._bare()):
                    return None
                expected = _COMMA

    def _copy(self, end: int) -> None:
        if end > self.pos:
            self.out.append(self.text[self.pos : end])
            self.pos = end

    def _open(self) -> int:
        """Copy an opening bracket and return what must come next."""
        brace = self.text[self.pos] == "{"
        self.closers.append("}" if brace else "]")
        self._copy(self.pos + 1)
        self.opened = True
        return _KEY if brace else _VALUE

    def _drop_comma(self) -> None:
        if self.comma >= 0:
            self.out[self.comma] = ""
            self.comma = -1
            self.steps["removed_commas"] = None

    def _end(self) -> str | None:
        """Replace the rest, if it is only brackets, commas and space, by the brackets that are needed."""
        if _TAIL.match(self.text, self.pos) is None:
            return None
        self._drop_comma()
        rest = self.text[self.pos :]
        if "," in rest:
            self.steps["removed_commas"] = None
        brackets = [c for c in rest if c in "]}"]
        needed = self.closers[::-1]
        if not _is_part(brackets, needed):
            self.steps["removed_brackets"] = None
        if not _is_part(needed, brackets):
            self.steps["closed_brackets"] = None
        return "".join(self.out) + "".join(needed)

    # -- keys and words -----------------------------------------------------------------------------------------

    def _key(self, c: str) -> bool:
        if c in "\"'":
            return self._string(c, key=True)
        found = _BARE_KEY.match(self.text, self.pos)
        if found is None:
            return False
        self.out.append(f'"{found.group()}"')
        self.pos = found.end()
        self.steps["quoted_keys"] = None
        return True

    def _bare(self) -> bool:
        found = BARE.match(self.text, self.pos)
        if found is None:
            return False
        word = found.group()
        if word in _PYTHON_WORDS:
            self.steps["python_literals"] = None
            word = _PYTHON_WORDS[word]
        elif _JSON_WORD.fullmatch(word) is None or (self.cut and found.end() == len(self.text)):
            return False
        self.out.append(word)
        self.pos = found.end()
        return True

    # -- strings ------------------------------------------------------------------------------------------------

    def _string(self, quote: str, key: bool = False) -> bool:
        """Copy the string at the cursor. A quote inside a value (not a key) differs from the one that ends it by the
        text after it, and by having a partner: ``"say "hi", then go"``."""
        text = self.text
        pieces: list[str] = []
        pos = self.pos + 1
        inside = 0
        while True:
            found = _STOPS[quote].search(text, pos)
            at = len(text) if found is None else found.start()
            pieces.append(text[pos:at])
            c = "" if found is None else found.group()
            pos = at + 1
            if c == "\\":
                pos = self._escape(at, quote, pieces)
                c = "" if pos > len(text) else c
            if not c:
                return False  # the text ends in the string
            if c == quote:
                if key or (inside % 2 == 0 and self._may_end(pos)):
                    break
                if not self._is_apostrophe(at):
                    if not self._may_quote(at, inside % 2 == 0):
                        return False
                    inside += 1
                    self.steps["escaped_quotes"] = None
                pieces.append("'" if quote == "'" else '\\"')
            elif c == '"':  # in single quotes
                pieces.append('\\"')
            elif c != "\\":
                if key:  # a key has one line
                    return False
                self.steps["escaped_controls"] = None
                pieces.append(json_escape(c))
        if quote == "'":
            self.steps["double_quotes"] = None
        self.out.append(f'"{"".join(pieces)}"')
        self.pos = min(pos, len(text))
        return True

    def _escape(self, at: int, quote: str, pieces: list[str]) -> int:
        """Copy the escape at ``at`` and return where it ends, which is past the end of the text if it is cut."""
        text = self.text
        found = ESCAPE.match(text, at)
        if found is not None:
            pieces.append(found.group())
            return found.end()
        if _HALF_ESCAPE.match(text, at) is not None:
            return len(text) + 1
        if text[at + 1] == "'":
            if quote == '"':
                self.steps["fixed_escapes"] = None
            pieces.append("'")
            return at + 2
        found = _HEX.match(text, at) if quote == "'" else None  # Python's way to write a character
        if found is not None:
            pieces.append(f"\\u00{found.group(1)}")
            return found.end()
        self.steps["fixed_escapes"] = None
        pieces.append("\\\\")
        return at + 1

    def _may_end(self, pos: int) -> bool:
        """True if the text at ``pos`` can follow a string value."""
        text = self.text
        depth = len(self.closers)
        pos = after_spaces(text, pos)
        while depth and text[pos : pos + 1] == self.closers[depth - 1]:
            depth -= 1
            pos = after_spaces(text, pos + 1)
        if depth and text[pos : pos + 1] == ",":
            separates = _MEMBER if self.closers[depth - 1] == "}" else _ITEM
            return separates.match(text, pos + 1) is not None
        return _TAIL.match(text, pos) is not None

    def _may_quote(self, at: int, opens: bool) -> bool:
        """True if the quote at ``at`` can open or close a quotation in a string, because it touches the quoted text.
        A quote that touches space or JSON punctuation ends a string, and something else is wrong there."""
        text = self.text
        if opens:
            return text[at + 1 : at + 2] not in ("", text[at], *WS, *",:]}")
        return text[at - 1] not in (*WS, *",:[{")

    def _is_apostrophe(self, at: int) -> bool:
        """True for the apostrophe in ``'it's'``, which is not a quote and has no partner."""
        text = self.text
        return text[at] == "'" and text[at - 1].isalnum() and text[at + 1 : at + 2].isalnum()


def _is_part(some: list[str], all_: list[str]) -> bool:
    """True if ``some`` is ``all_`` with items left out."""
    rest = iter(all_)
    return all(item in rest for item in some)
