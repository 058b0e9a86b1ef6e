"""Quoted calls (Q1 to Q8): what the text before an opener shows."""

from __future__ import annotations

import re

from marks import WS

ITEM = r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*"
LINE_MARK = re.compile(ITEM + r"(?:[|>]|\[\^[^\]\s]+\]:|\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d)")
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*(\S*)[^`]*$")
EDGES = re.compile(r"[-:| \t]*-[-:| \t]*$")
HERE = re.compile(r"<<-?(['\"]?)([A-Z][A-Z0-9_]*)\1(?=$|[ \t>|])")
TAG = re.compile(r"<(code|pre|kbd|samp|tt|q)(\s[^<>]*)?>$")
ALWAYS = "“„«「『"
SOMETIMES = "\"'‘‹"
CLOSES = {"`": "`", '"': '"', "“": "”", "„": "“”", "«": "»"}


def open_fence(text: str) -> tuple[str, str] | None:
    """Return the characters and the word of the fence that is open at the end of the text (Q8)."""
    fence: tuple[str, str] | None = None
    for line in text.split("\n")[:-1]:
        match = FENCE.match(line.rstrip("\r"))
        if fence is None:
            fence = (match[1], match[2]) if match else None
        elif match and match[1][0] == fence[0][0] and len(match[1]) >= len(fence[0]) and line.strip(WS) == match[1]:
            fence = None
    return fence


def is_quoted(text: str) -> bool:
    """True if an opener after this text is quoted, and the rule is one of those that `Q11` names."""
    return in_json_string(text) or _in_double_backticks(text) or _after_mark(text) or _after_tag(text)


def is_on_quoted_line(text: str) -> bool:
    """True if an opener after this text is in a table, a block quote, a diff or a here-document (Q2, Q3)."""
    *lines, line = text.split("\n")
    return bool(LINE_MARK.match(line)) or _in_table(lines, line) or _in_diff(text, lines, line) or _in_here(lines)


def in_json_string(text: str) -> bool:
    at = 0
    while 0 <= (at := _first(text, at, "{[")) < len(text):
        end, state = _json(text, at)
        if state == "string":
            return True
        if state == "open":
            return False
        at = end if state == "done" else at + 1
    return False


def _first(text: str, at: int, signs: str) -> int:
    return min((place for sign in signs if (place := text.find(sign, at)) >= 0), default=-1)


TOKEN = re.compile(r'\s*(?:("(?:[^"\\\n]|\\.)*")|(true|false|null|-?\d[\d.eE+-]*)|([{}\[\]:,]))')


def _json(text: str, at: int) -> tuple[int, str]:
    """Return the place at which JSON from `at` on ends, and its state: done, open, string or bad (Q1)."""
    stack: list[str] = []
    wants = "value"
    while at < len(text):
        rest = text[at:].lstrip()
        if not rest:
            return at, "open"
        match = TOKEN.match(text, at)
        if not match:
            is_string = rest[0] == '"' and "\n" not in rest and wants in ("value", "key", "first key", "first value")
            return at, "string" if is_string else "bad"
        string, word, sign = match.groups()
        at = match.end()
        if string and wants in ("key", "first key"):
            wants = ":"
        elif (string or word) and wants in ("value", "first value"):
            wants = "next"
        elif sign and sign in "{[" and wants in ("value", "first value"):
            stack.append(sign)
            wants = "first key" if sign == "{" else "first value"
        elif sign == ":" and wants == ":":
            wants = "value"
        elif sign == "," and wants == "next":
            wants = "key" if stack[-1] == "{" else "value"
        elif (
            sign
            and sign in "}]"
            and stack
            and "{["["}]".index(sign)] == stack[-1]
            and wants in ("next", "first key", "first value")
        ):
            stack.pop()
            if not stack:
                return at, "done"
            wants = "next"
        else:
            return at, "bad"
    return at, "open"


def _in_table(lines: list[str], line: str) -> bool:
    if "|" not in line:
        return False
    for before in reversed(lines):
        if "|" not in before:
            return False
        if EDGES.match(before.rstrip("\r")):
            return True
    return False


def _in_diff(text: str, lines: list[str], line: str) -> bool:
    fence = open_fence(text)
    if fence and (fence[1] in ("diff", "patch") or (line[:1] in ("+", "-") and line)):
        return True
    for before in [line, *reversed(lines)]:
        if re.match(r"@@ -\d", before):
            return True
        if before[:1] not in ("+", "-", " ", "\\") or not before:
            return False
    return False


def _in_here(lines: list[str]) -> bool:
    word = ""
    for line in lines:
        if word:
            word = "" if line.strip(WS) == word else word
        elif match := HERE.search(line.rstrip("\r")):
            word = match[2]
    return bool(word)


def _in_double_backticks(text: str) -> bool:
    """True inside inline code of two or more backticks, on the last line (Q4)."""
    line = text.rpartition("\n")[2]
    opened = ""
    for run in re.findall(r"`+", line):
        if not opened:
            opened = run
        elif run == opened:
            opened = ""
    return len(opened) >= 2


def _after_mark(text: str) -> bool:
    """True directly after a quotation mark that begins a quotation (Q5)."""
    mark, before = text[-1:], text[:-1]
    if not mark or not before.strip(WS):
        return False
    if mark in ALWAYS:
        return True
    if mark not in SOMETIMES or (before[-1] not in WS + "([{<:,=" and before[-1] != "\n"):
        return False
    return mark != '"' or before.rpartition("\n")[2].count('"') % 2 == 0


def _after_tag(text: str) -> bool:
    """True directly after a tag of code, or in a comment of HTML (Q6)."""
    if TAG.search(text[-400:]) or text.endswith(("<![CDATA[", "](")):
        return True
    return text.rfind("<!--") > text.rfind("-->")


def open_sign(text: str) -> str:
    """Return the signs that close the inline code or the quotation that is open on the last line, or nothing (Q7)."""
    line = text.rpartition("\n")[2]
    opened, start = "", 0
    for at, sign in enumerate(line):
        if opened:
            opened = "" if sign in CLOSES[opened] else opened
        elif sign in CLOSES and (sign != '"' or at == 0 or line[at - 1] in WS + "([{<:,="):
            opened, start = sign, at
    return CLOSES[opened] if opened and line[start + 1 :].strip(WS) else ""


def closes_later(text: str, at: int, signs: str) -> bool:
    """True if one of the signs follows on the line, before any `<`, `{` or `[` (Q7)."""
    for sign in text[at:]:
        if sign in signs:
            return True
        if sign in "<{[\n":
            return False
    return False
