"""Outputs that are messages with headers (H1 to H9)."""

from __future__ import annotations

import re
from typing import Any

from calls import Call, Frame, Unsupported, _arguments
from marks import WS, after, find, skip, spellings
from schema import status_of

SENTENCE = re.compile(r"[.!?:。！？][\s)\]}>\"'”’»›」』`*_]*\Z")


class Header:
    """The header of a message, with the place after it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.recipient = self.channel = ""
        self.kind = ""
        self.parts = 0
        self.end = -1
        self.spec = spec


def read(parser: Any, prompt: str | None) -> dict[str, Any]:
    return Messages(parser, prompt).read()


class Messages:
    def __init__(self, parser: Any, prompt: str | None) -> None:
        spec = parser.channels
        if parser.form.get("tools") or spec.get("recipient") is None or not spec.get("call_name", True):
            raise Unsupported("channels of another kind than those of gpt-oss")
        self.parser, self.spec, self.text, self.tools = parser, spec, parser.text, parser.tools
        self.marks = {one: spellings(spec.get(one)) for one in ("open", "channel", "recipient", "constraint", "body")}
        self.closes = [*spellings(spec.get("close")), *spellings(spec.get("call_close"))]
        self.join = spec.get("join", "\n")
        self.parts: dict[str, list[str]] = {"reasoning": [], "content": []}
        self.calls: list[Call] = []
        self.start = ""
        if prompt is not None:
            self.start = parser._prompt_tail(prompt) or ""

    def read(self) -> dict[str, Any]:
        if self.start:
            self.text = self.start.lstrip(WS) + self.text
            self.parser.text = self.text
            self.parser.tail = self.parser._tail()
        text, tail, at = self.text, self.parser.tail, 0
        while at < tail:
            place = skip(text, at)
            header = self._header(place)
            if header is None:
                at = self._message(Header(self.spec), at, tail)
            elif header.end < 0:
                break  # K4
            else:
                at = self._message(header, header.end, tail)
        joined = {part: self.join.join(one for one in texts if one) for part, texts in self.parts.items()}
        calls = [{"name": one.name, "arguments": one.arguments, "status": one.status} for one in self.calls]
        return {**joined, "tool_calls": calls}

    def _header(self, at: int, first: bool = True) -> Header | None:
        """Return the header at a place, or None. Its end is -1 if the output ends in it (H1)."""
        text, header = self.text, Header(self.spec)
        begun = at
        while (end := after(text, skip(text, at), self.marks["open"])) >= 0:  # H9
            at = end
            header.parts += header.parts == 0
            if role := self.spec.get("role"):
                at = at + len(role) if text.startswith(role, at) else at
        while at < len(text):
            place = skip(text, at)
            if (end := after(text, place, self.marks["body"])) >= 0:
                header.end, header.parts = end, header.parts + 1
                return header
            for part in ("channel", "recipient", "constraint"):
                if (end := after(text, place, self.marks[part])) >= 0:
                    match = re.compile(r"\s*([^\s<]*)").match(text, end)
                    assert match
                    if part != "constraint":
                        setattr(header, part, match[1])
                    at, header.parts = match.end(), header.parts + 1
                    break
            else:
                if not header.parts:
                    return None
                match = re.compile(r"[ \t]*[^\s<]+").match(text, at)
                if not match or (place != at and "\n" in text[at:place]):
                    return None if place < self.parser.tail else header
                at = match.end()
        return header if header.parts and at > begun else None

    def _message(self, header: Header, at: int, tail: int) -> int:
        text, spec = self.text, self.spec
        recipient = header.recipient
        is_call = bool(recipient) and recipient not in ("assistant", "user", "all") and self.tools != []
        if is_call:
            return self._call(recipient.removeprefix(spec.get("namespace", "")), at, tail)
        part = "reasoning" if header.channel in spec.get("reasoning", ()) else "content"
        end, following = self._end(at, tail)
        is_start = header.end < 0 and at == 0
        body = text[at:end]
        touched = following > end or end < len(text)
        body = (
            (body if is_start else body.lstrip(WS))
            if not touched
            else (body.rstrip(WS) if is_start else body.strip(WS))
        )
        self.parts[part].append(body)
        return following

    def _end(self, at: int, tail: int) -> tuple[int, int]:
        """Return the end of the text of a message, and the place of the next header (H7, H8)."""
        text, scan = self.text, at
        while True:
            closed = find(text, scan, self.closes, tail)
            marks = [*self.marks["open"], *self.marks["channel"]]
            opened = find(text, scan, marks, tail)
            if opened < 0 or 0 <= closed < opened:
                return (closed, after(text, closed, self.closes)) if closed >= 0 else (tail, tail)
            header = self._header(opened)
            before = text[at:opened]
            at_line = not before.strip(" \t\r") or before.rstrip(" \t").endswith("\n")
            if (
                header
                and header.recipient
                and not at_line
                and not text.startswith("{", skip(text, max(header.end, opened)))
            ):
                scan = opened + (max(header.end, opened + 1) - opened)  # H8: no object follows
                continue
            if header and (at_line or SENTENCE.search(before) or header.parts >= 3 or self._two_parts(opened)):
                return opened, opened
            scan = opened + 1

    def _two_parts(self, at: int) -> bool:
        end = after(self.text, at, self.marks["open"])
        role = self.spec.get("role", "")
        if end < 0:
            return False
        end = end + len(role) if self.text.startswith(role, end) else end
        return any(
            after(self.text, skip(self.text, end), self.marks[one]) >= 0 for one in ("channel", "recipient", "body")
        )

    def _call(self, name: str, at: int, tail: int) -> int:
        text, reader = self.text, self.parser.calls_reader
        reader.text = text
        frame = Frame({"call_close": None, "body": {"kind": "named"}}, self.parser.ends)
        frame.call_close = [*self.closes, *self.marks["open"]]
        at = skip(text, at)
        if at >= tail:
            self.calls.append(Call(name, "", "incomplete"))
            return len(text)
        if (end := after(text, at, self.closes)) >= 0:
            self._add(name, "{}", True)
            return end
        end, how = reader._value(at, frame)
        raw = text[at:end]
        if how in ("cut", "open"):
            self.calls.append(Call(name, raw, "incomplete"))
            return len(text) if how == "cut" else max(end, tail)
        closed = find(text, end, frame.call_close)
        inside, broken = _arguments(raw)
        if how == "whole" and raw.startswith('"') and not broken:  # A2
            raw = inside
        if how == "close" or raw[:1] != "{":
            closed = end if how == "close" else closed
            stop = closed if closed >= 0 else tail
            self._add(name, text[at:stop].rstrip(WS) if how != "close" else raw, False)
            return self._after(stop)
        following = skip(text, end)
        dropped = following < tail and after(text, following, frame.call_close) < 0
        self._add(name, raw, not dropped)
        return self._after(following)

    def _after(self, at: int) -> int:
        end = after(self.text, skip(self.text, at), self.closes)
        return end if end >= 0 else at

    def _add(self, name: str, arguments: str, fine: bool) -> None:
        status = status_of(name, arguments, tools=self.tools, incomplete=False, recovered=not fine)
        self.calls.append(Call(name, arguments, status))
