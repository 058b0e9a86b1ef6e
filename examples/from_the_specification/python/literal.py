"""Literal arguments (L1 to L7, K6, P16 to P20)."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from typing import Any

from marks import WS, after, skip
from schema import NUMBER, converted, function_of, only_string, schema_of, types_of

CLOSES = {"[": "]", "(": ")", "{": "}"}
KEY = re.compile(r"[^\s=:,()\[\]{}'\"<>]+")
WORD = re.compile(r"[A-Za-z_]\w*\Z")
PATH = re.compile(r"[A-Za-z]:\\")


@dataclass
class Written:
    """Arguments as JSON, and how they ended."""

    text: str = ""
    end: int = 0
    whole: bool = False
    recovered: bool = False
    broken: bool = False


@dataclass
class Reader:
    text: str
    spec: dict[str, Any]
    tools: Any
    name: str
    closes: list[str]
    """Closes of the call and of what is around it."""

    out: list[str] = field(default_factory=list)
    recovered: bool = False
    broken: bool = False

    def __post_init__(self) -> None:
        self.quotes = sorted(self.spec.get("quotes", ["'", '"']), key=len, reverse=True)
        self.first_quote = self.spec.get("quotes", ["'", '"'])[0]
        self.assign = self.spec.get("assign", "=")
        words = self.spec.get("words", ["True", "False", "None"])
        self.words = {**dict(zip(words, ("true", "false", "null"), strict=True)), "true": "true", "false": "false"}
        self.words["null"] = "null"
        self.quoted = self.spec.get("quoted", "strings")
        self.close = self.spec.get("close", ")")

    def read(self, at: int) -> Written:
        """Read from the place after `open`."""
        self.out.append("{")
        end, whole = self._items(at, [self.close], named=True)
        if whole:
            self.out.append("}")
        elif self.out == ["{"]:
            self.out = []  # K2: they have not begun
        return Written("".join(self.out), end, whole, self.recovered, self.broken)

    def _items(self, at: int, stack: list[str], named: bool) -> tuple[int, bool]:
        """Read the items of the innermost open bracket of the stack, with its close."""
        text, first, place = self.text, True, 0
        close = stack[-1]
        while True:
            at = skip(text, at)
            while text.startswith(",", at):
                at = skip(text, at + 1)
            if at >= len(text):
                return at, False
            if text.startswith(close, at):
                return at + len(close), True
            if text[at] in "])}" and text[at] in stack:  # P18
                self.recovered = True
                return at, True
            if after(text, at, self.closes) >= 0:
                return at, False
            begun = "" if first else ", "
            first = False
            if not named and close != "}":
                self.out.append(begun)
                at, whole = self._value(at, stack, None)
            else:
                at, whole = self._member(at, stack, begun, named, place)
            place += 1
            if not whole:
                return at, False

    def _member(self, at: int, stack: list[str], begun: str, named: bool, place: int) -> tuple[int, bool]:
        text, sign = self.text, self.assign if named else ":"
        start = at
        if (quote := self._quote(at)) and not named and quote not in ('"' * 3, "'" * 3):
            before = len(self.out)
            self.out.append(begun)
            at, whole = self._string(at, quote, [*stack, ":"], None)
            if not whole:
                return at, False
            written = "".join(self.out[before + 1 :])
            del self.out[before:]
            at = skip(text, at)
        else:
            match = KEY.match(text, at)
            at = skip(text, match.end()) if match else at
            written = json.dumps(match[0], ensure_ascii=False) if match else ""
            if match and at >= len(text) and (not named or self.close != ")" or re.fullmatch(r"[^\W\d]\w*", match[0])):
                self.out.append(begun + written[:-1])
                return at, False
        if written and not named and at >= len(text):
            self.out.append(begun + written)
            return at, False
        if not written or not text.startswith(sign, at):
            return self._by_place(start, stack, begun, place)
        key = json.loads(written)
        self.out.append(begun + written + ": ")
        schema = schema_of(self.tools, self.name, key) if named else None
        at = skip(text, at + len(sign))
        if at >= len(text):
            return at, False
        if text[at] in "," + stack[-1]:  # P19
            self.recovered = True
            self.out.append('""' if "string" in types_of(schema) else "null")
            return at, True
        return self._value(at, stack, schema if named else None, top=named)

    def _by_place(self, at: int, stack: list[str], begun: str, place: int) -> tuple[int, bool]:
        """Read an item without a key (L7)."""
        properties = list(((function_of(self.tools, self.name) or {}).get("parameters") or {}).get("properties", {}))
        key = properties[place] if place < len(properties) else str(place)
        self.out.append(f"{begun}{json.dumps(key, ensure_ascii=False)}: ")
        return self._value(at, stack, schema_of(self.tools, self.name, key), top=True)

    def _quote(self, at: int) -> str:
        quote = next((one for one in self.quotes if self.text.startswith(one, at)), "")
        return quote * 3 if quote and len(quote) == 1 and self.text.startswith(quote * 3, at) else quote

    def _value(self, at: int, stack: list[str], schema: Any, top: bool = False) -> tuple[int, bool]:
        text = self.text
        if quote := self._quote(at):
            return self._string(at, quote, stack, schema if top and self.quoted == "all" else None)
        if text[at] in CLOSES:
            is_object = text[at] == "{"
            self.out.append("{" if is_object else "[")
            at, whole = self._items(at + 1, [*stack, CLOSES[text[at]]], named=False)
            if whole:
                self.out.append("}" if is_object else "]")
            return at, whole
        start = at
        while at < len(text) and text[at] not in ",\n" + "".join(stack) and after(text, at, self.closes) < 0:
            if text[at] in "([{":
                at = self._bracket(at)
            else:
                at += 1
        self._word(text[start:at].strip(WS), schema, cut=at >= len(text), top=top)
        return at, at < len(text)

    def _bracket(self, at: int) -> int:
        close, depth = CLOSES[self.text[at]], 0
        for place in range(at, len(self.text)):
            depth += (self.text[place] == self.text[at]) - (self.text[place] == close)
            if not depth:
                return place + 1
        return len(self.text)

    def _word(self, word: str, schema: Any, cut: bool, top: bool) -> None:
        if top and self.quoted == "all" and schema and not only_string(schema):
            self.out.append(converted(word, schema))
        elif word in self.words:
            self.out.append(self.words[word])
        elif NUMBER.match(word):
            self.out.append(word)
        elif cut:
            begun = [made for one, made in self.words.items() if one.startswith(word)]
            if begun:
                self.out.append(begun[0][: len(word)])
            elif self.quoted == "optional" or re.search(r"\s", word):
                self.out.append(json.dumps(word, ensure_ascii=False)[:-1])
            else:
                self.out.append(word)
        else:
            self.out.append(self._other(word))

    def _other(self, word: str) -> str:
        if re.fullmatch(r"[+-]?0\d[\d_]*(\.\d+)?", word):  # P17
            self.recovered = True
            return json.dumps(float(word) if "." in word else int(word))
        try:
            value = ast.literal_eval(word)
            if isinstance(value, (int, float)):
                return json.dumps(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
        if self.quoted == "optional":
            return json.dumps(word, ensure_ascii=False)
        if re.search(r"\w\s+\w", word) and not re.search(r"[()=+*/]", word):
            self.recovered = True
            return json.dumps(word, ensure_ascii=False)
        self.broken = True
        return word

    def _string(self, at: int, quote: str, stack: list[str], schema: Any) -> tuple[int, bool]:
        text, start = self.text, at + len(quote)
        has_escapes = self.spec.get("escapes", True) if quote == self.first_quote else quote[0] in "'\""
        if has_escapes and PATH.match(text, start):  # P20
            has_escapes = False
            self.recovered = True
        at = start
        while at < len(text):
            if has_escapes and text[at] == "\\":
                at += 2
            elif text.startswith(quote, at):
                if self._may_close(at + len(quote), stack):
                    break
                self.recovered = True
                at += len(quote)
            else:
                at += 1
        whole = at < len(text)
        raw = text[start : min(at, len(text))]
        value = _unescaped(raw) if has_escapes else raw
        if schema and not only_string(schema) and whole:
            self.out.append(converted(value, schema))
        else:
            self.out.append(json.dumps(value, ensure_ascii=False)[: None if whole else -1])
        return min(at + len(quote), len(text)) if whole else len(text), whole

    def _may_close(self, at: int, stack: list[str]) -> bool:
        """True if the text at a place may follow a string (P16)."""
        text, at = self.text, skip(self.text, at)
        if at >= len(text) or after(text, at, self.closes) >= 0:
            return True
        if stack[-1] == ":":
            return text.startswith(":", at)
        if text.startswith(",", at):
            return self._is_item(skip(text, at + 1), stack)
        return any(text.startswith(close, at) for close in stack)

    def _is_item(self, at: int, stack: list[str]) -> bool:
        text = self.text
        if at >= len(text) or any(text.startswith(close, at) for close in stack):
            return True
        if self._quote(at) or text[at] in "[({" or re.match(r"[-+.]?\d", text[at:]):
            return True
        sign = self.assign if len(stack) == 1 else ":"
        match = KEY.match(text, at)
        if not match:
            return False
        end = skip(text, match.end())
        return end >= len(text) or text.startswith(sign, end) or match[0] in self.words


def _unescaped(text: str) -> str:
    """Return a text with the escapes of Python decoded."""
    simple = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}

    def one(match: re.Match[str]) -> str:
        given = match[1]
        if given[0] in "xuU" and len(given) > 1:
            return chr(int(given[1:], 16))
        return simple.get(given, given if given in "\\'\"" else match[0])

    decoded = re.sub(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|.)", one, text, flags=re.S)
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
