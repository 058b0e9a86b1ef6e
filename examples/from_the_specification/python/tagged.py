"""Tagged arguments (X1 to X9, K6, P9 to P15, P23)."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from typing import Any

from literal import Written
from marks import WS, after, find, skip, spellings
from schema import converted, function_of, only_string, schema_of, types_of

CDATA = "<![CDATA["
ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|#\d+|#x[0-9a-fA-F]+);")


@dataclass
class Reader:
    text: str
    spec: dict[str, Any]
    tools: Any
    name: str
    chain: list[list[str]]
    """The closes around a value, from inside to outside: of the arguments, of the call, of the section."""
    openers: list[str]
    """Openers of calls and of sections."""
    ends: list[str]
    """The ends of the turn."""

    def __post_init__(self) -> None:
        self.key_open = spellings(self.spec["key_open"])
        self.key_close = spellings(self.spec["key_close"])
        self.value_open = spellings(self.spec.get("value_open"))
        self.value_close = spellings(self.spec["value_close"])
        self.type_open, self.type_close = (spellings(self.spec.get(one)) for one in ("type_open", "type_close"))
        self.closes = [one for closes in self.chain for one in closes]
        self.written: dict[str, str] = {}
        self.recovered = False

    def read(self, at: int) -> Written:
        """Read all arguments from a place on, up to a close."""
        text, out, first = self.text, "{", True
        while True:
            place = skip(text, at)
            if place >= len(text) or after(text, place, self.ends) >= 0:
                return Written(out, len(text) if place >= len(text) else place, recovered=self.recovered)
            if after(text, place, self.closes) >= 0:
                return Written(out + "}", place, True, self.recovered)
            begun = after(text, place, self.key_open)
            if begun < 0:
                if not first and after(text, place, self.value_close) >= 0:  # P12
                    at = after(text, place, self.value_close)
                elif after(text, place, self.openers) >= 0:
                    return Written(out + "}", place, True, True)
                else:  # P13: text between arguments
                    at = find(text, place, [*self.key_open, *self.closes, *self.openers])
                    at = len(text) if at < 0 else at
                self.recovered = True
                continue
            comma = "" if first else ", "
            key, schema, at = self._key(begun)
            if key is None:
                return Written(f"{out}{comma}{self._json(text[begun:].strip(WS), 'key')[:-1]}", len(text))
            if not key:
                continue
            first = False
            out += f"{comma}{self._json(key, 'key')}: "
            start = at
            at, end, whole = self._value_end(start, key)
            raw = text[start:end]
            self._note_markup(raw)
            if not whole:
                return Written(out + self._cut(raw, schema), len(text), recovered=self.recovered)
            made = self._converted(raw, schema)
            self.written[key] = made
            out += made

    def _json(self, text: str, part: str) -> str:
        escaped = self.spec.get("escape") == "xml" or (part == "key" and self.spec.get("key_escape") == "xml")
        return json.dumps(_entities(text) if escaped else text, ensure_ascii=False)

    def _key(self, at: int) -> tuple[str | None, Any, int]:
        """Return the key (None: it was cut; empty: it is dropped), its schema, and the place of its value."""
        text = self.text
        close = find(text, at, self.key_close)
        line = text.find("\n", at)
        if close < 0 and line < 0 and find(text, at, [*self.key_open, *self.closes]) < 0:
            return None, None, len(text)
        if close < 0 or (0 <= line < close and text[at:line].strip(WS) and text[at:close].strip(WS).count("\n")):
            self.recovered = True  # P23
            if line >= 0 and self.value_open and after(text, skip(text, line), self.value_open) >= 0:
                close = end = line
            else:
                dropped = find(text, at, [*self.key_open, *self.closes])
                return "", None, len(text) if dropped < 0 else dropped
        else:
            end = after(text, close, self.key_close)
        key, kind = self._by_pattern(text[at:close].strip(WS))
        schema = schema_of(self.tools, self.name, key) if kind is None else {"of": {"type": kind}, "root": {}}
        place = skip(text, end)
        if self.type_open and (begun := after(text, place, self.type_open)) >= 0:
            closed = find(text, begun, self.type_close)
            word = text[begun:closed].strip(WS)
            if word in ("string", "integer", "number", "boolean", "object", "array", "null"):
                schema = {"of": {"type": word}, "root": {}}
            end = after(text, closed, self.type_close)
            place = skip(text, end)
        if self.value_open:
            begun = after(text, place, self.value_open)
            if begun < 0:
                if after(text, place, [*self.key_open, *self.closes]) >= 0:  # P14
                    self.recovered = True
                    return "", None, place
                if place < len(text):
                    self.recovered = True  # P22
                return key, schema, place
            end = begun
        return key, schema, end

    def _by_pattern(self, text: str) -> tuple[str, str | None]:
        """Return the key, and the type that its pattern names (X2)."""
        pattern = re.escape(self.spec.get("key", "{key}"))
        for word in ("key", "string", "type"):
            pattern = pattern.replace(re.escape(f"{{{word}}}"), f"(?P<{word}>.*?)" if word != "key" else "(?P<key>.+)")
        match = re.fullmatch(pattern, text, re.S)
        if not match:
            return text, None
        found = match.groupdict()
        kind = found.get("type")
        if "string" in found:
            kind = "string" if found["string"] == "true" else "json"
        return found["key"].strip(WS), kind

    def _value_end(self, at: int, key: str) -> tuple[int, int, bool]:
        """Return the place after the value with its close, the end of its text, and if it ended."""
        text = self.text
        if self.spec.get("escape") == "cdata" and text.startswith(CDATA, skip(text, at)):
            stop = text.find("]]>", at)
            if stop >= 0 and (close := find(text, stop, self.value_close)) >= 0:
                return after(text, close, self.value_close), close, True
        for place in range(at, len(text)):
            end = after(text, place, self.value_close)
            if end >= 0 and self._may_follow(end) and not self._between_quotes(place):
                return end, place, True
            if end >= 0 and (stray := self._stray(end)) >= 0:
                self.recovered = True
                return stray, place, True
            if self._next_key(place, at, key) or self._chain_at(place, at):
                self.recovered = True
                return place, place, True
        return len(text), len(text), False

    def _may_follow(self, at: int) -> bool:
        """True if the text at a place may follow the close of a value (X5, P12, P13)."""
        text, place = self.text, skip(self.text, at)
        markers = [*self.key_open, *self.closes, *self.openers, *self.ends, *self.value_close]
        if place >= len(text) or after(text, place, markers) >= 0:
            return True
        line = text[at:].partition("\n")
        if line[0].strip(WS) or not line[1]:
            return False
        following = find(text, place, self.key_open)  # P13: lines between arguments
        other = find(text, place, [*self.value_close, *self.closes])
        return (
            following >= 0
            and (other < 0 or following < other)
            and not text[text.rfind("\n", 0, following) : following].strip(WS)
        )

    def _stray(self, at: int) -> int:
        """Return the place of a close after at most 64 characters of stray text, or -1 (P13)."""
        closed = find(self.text, at, self.chain[0] or self.closes, at + 64 + 20)
        between = self.text[at:closed] if closed >= 0 else "\n"
        return closed if len(between) <= 64 and not re.search(r"[\n\"'<>]", between) else -1

    def _between_quotes(self, at: int) -> bool:
        """True if the closes at a place are between two equal quotation marks (X5)."""
        text, mark = self.text, self.text[at - 1 : at]
        while (end := after(text, at, [*self.value_close, *self.closes])) >= 0:
            at = end
        return mark in ("'", '"', "`") and text.startswith(mark, at)

    def _next_key(self, at: int, start: int, key: str) -> bool:
        """True if the opener of another argument at a place ends the value (P9)."""
        text = self.text
        begun = after(text, at, self.key_open)
        if begun < 0:
            return False
        closed = find(text, begun, self.key_close)
        if closed < 0 or "\n" in text[begun:closed].strip(WS):
            return False
        found, _ = self._by_pattern(text[begun:closed].strip(WS))
        if found == key or found in self.written:
            return False
        line = text[max(start, text.rfind("\n", 0, at) + 1) : at]
        function = function_of(self.tools, self.name)
        if function is not None:
            if found not in (function.get("parameters") or {}).get("properties", {}):
                return False
        elif line.strip(WS) or not text[:at].rpartition("\n")[1]:
            return False
        if line[-1:] in ("'", '"', "`"):
            return False
        return not re.search(r"[\"`]|(?<![A-Za-z])'|(?<=\s)#|^#|(?<!:)//|--|/\*|<!--", line)

    def _chain_at(self, at: int, start: int) -> bool:
        """True if all the closes around a value are at a place, and what follows ends it (P10)."""
        text, end = self.text, at
        missing_section = False
        for number, closes in enumerate(self.chain):
            if not closes:
                continue
            found = after(text, skip(text, end), closes)
            if found < 0:
                if number < 2 or end == at:
                    return False
                missing_section = True
                break
            end = found
        if end == at:
            return False
        following = skip(text, end)
        if after(text, following, self.openers) >= 0:
            return True
        if missing_section:
            return False
        if following >= len(text) or after(text, following, self.ends) >= 0:
            return True
        value = text[start:at].strip(WS)
        return "\n" not in value and "\n" in text[end:following]

    def _note_markup(self, raw: str) -> None:
        """A value that holds a marker of its own call may be wrong (P11)."""
        markers = [*self.key_open, *self.value_close, *self.value_open, *self.closes, *self.openers]
        if find(raw, 0, markers) >= 0:
            self.recovered = True

    def _trimmed(self, raw: str, whole: bool) -> str:
        before = self.spec.get("trim", 0)
        behind = self.spec.get("trim_after")
        for _ in range(before):
            raw = re.sub(r"\A\r?\n", "", raw)
        for _ in range((before if behind is None else behind) if whole else 0):
            raw = re.sub(r"\r?\n\Z", "", raw)
        return raw

    def _converted(self, raw: str, schema: Any) -> str:
        text = self._trimmed(raw, whole=True)
        if self.spec.get("escape") == "cdata" and text.strip(WS).startswith(CDATA):
            text = text.strip(WS)[len(CDATA) :].removesuffix("]]>")
        if self.spec.get("escape") == "xml":
            text = _entities(text)
        if schema and schema["of"].get("type") == "json":
            return text.strip(WS)
        return converted(text, schema)

    def _cut(self, raw: str, schema: Any) -> str:
        """Return the prefix of a value that was cut (K6)."""
        text = self._trimmed(raw, whole=False)
        types = types_of(schema)
        if types and not only_string(schema):
            return text.strip(WS)
        return json.dumps(_entities(text) if self.spec.get("escape") == "xml" else text, ensure_ascii=False)[:-1]


def _entities(text: str) -> str:
    return ENTITY.sub(lambda match: html.unescape(match[0]), text)
