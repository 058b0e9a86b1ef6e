"""Frames of calls (T1 to T16), bodies (J1 to J6, N1 to N6), JSON arguments (A1 to A4)."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field
from typing import Any

import literal
import tagged
from marks import WS, after, begins, find, skip, spellings
from schema import function_of, status_of

ANY_ARGUMENT = re.compile(r"\s*(?:\)|[^\W\d]\w*\s*=\s*[^=\s])")
KNOWN_ARGUMENT = re.compile(ANY_ARGUMENT.pattern + r"|\s*(?:[\"'\d\[{(+.<-]|(?:[Tt]rue|[Ff]alse|None|null)\b)")
"""What begins the arguments of a bare call (T10)."""
NAME = re.compile(r"[^\s<>{}()\[\]\"'`,;=]{1,512}")


class NoCall(Exception):
    """The text is not a call (T7)."""


class Ended(Exception):
    """The output ends before the call has committed (K3)."""


class Unsupported(Exception):
    """A feature of the Format that this parser does not have."""


@dataclass
class Call:
    name: str
    arguments: str
    status: str = ""
    end: int = 0
    cut: bool = False


@dataclass
class Frame:
    """An entry of `tools`, with its markers."""

    spec: dict[str, Any]
    ends: list[str]
    others: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = self.spec
        self.body: dict[str, Any] = spec.get("body") or {"kind": "json"}
        self.is_json = self.body.get("kind", "json") == "json"
        self.section_open, self.section_close = (
            spellings(spec.get("section_open")),
            spellings(spec.get("section_close")),
        )
        self.list_open, self.list_close = spellings(spec.get("list_open")), spellings(spec.get("list_close"))
        self.call_open, self.call_close = spellings(spec.get("call_open")), spellings(spec.get("call_close"))
        self.separator = spellings(spec.get("separator"))
        self.stray = sorted(spec.get("stray_closes", ()), key=len, reverse=True)
        self.name_open = [] if self.is_json else spellings(self.body.get("name_open"))
        self.name_close = [] if self.is_json else spellings(self.body.get("name_close"))
        self.arguments_close = [] if self.is_json else spellings(self.body.get("arguments_close"))
        self.arguments: dict[str, Any] = {} if self.is_json else self.body.get("arguments") or {"kind": "json"}
        self.kind = "json" if self.is_json else self.arguments.get("kind", "json")
        if self.kind == "element":
            raise Unsupported("element arguments")
        self.bare = not (self.section_open or self.call_open or self.name_open)

    def words(self) -> list[str]:
        """Return openers that may be words of prose (T16)."""
        marker = self.spec.get("call_open")
        accepted = marker.get("accepted", ()) if isinstance(marker, dict) else ()
        return [one.strip(WS) for one in accepted if not re.search(r"[<>\[\]|]", one) and re.search(r"\w", one)]

    def openers(self) -> list[str]:
        """Return the markers with which calls of this frame begin (T2, T3)."""
        first = self.section_open or self.call_open or self.name_open
        optional = self.spec.get("optional", ())
        more = list(first)
        if "section" in optional or not self.section_open:
            more += self.call_open or self.name_open
        if "call" in optional and (not self.section_open or "section" in optional):
            more += self.name_open
        return list(dict.fromkeys(more))

    @property
    def closes(self) -> list[str]:
        return [*self.arguments_close, *self.call_close, *self.section_close]


@dataclass
class Reader:
    """Reads calls from places of an output."""

    text: str
    frames: list[Frame]
    tools: Any
    ends: list[str]

    def __post_init__(self) -> None:
        self.openers = list(dict.fromkeys(one for frame in self.frames for one in frame.openers()))
        self.inner = list(dict.fromkeys([*self.openers, *(one for f in self.frames for one in f.call_open)]))

    def frame_at(self, at: int, frames: list[Frame], inside: Frame | None) -> tuple[Frame, int]:
        """Return the first frame that begins at a place and whose next part follows, and the place after its marker."""
        text, cut = self.text, None
        for frame in frames:
            if inside is frame and (end := after(text, at, frame.call_open or frame.name_open)) >= 0:
                return frame, at
            end = after(text, at, frame.openers())
            if end < 0:
                continue
            is_section = after(text, at, frame.section_open) == end
            following = skip(text, end)
            if following >= len(text):
                cut = cut or (frame, end if is_section else at)
            elif self._next_part(following, frame) if is_section else self._body_at(end, frame, opened=True):
                return frame, end if is_section else at
        if cut:
            return cut
        raise NoCall

    def _next_part(self, at: int, frame: Frame) -> bool:
        text = self.text
        if frame.list_open and after(text, at, frame.list_open) >= 0:
            return True
        if frame.list_open and not frame.spec.get("list_optional"):
            return begins(text, at, frame.list_open)
        if frame.call_open and "call" not in frame.spec.get("optional", ()):
            return after(text, at, frame.call_open) >= 0 or begins(text, at, frame.call_open)
        return self._body_at(at, frame)

    def _body_at(self, at: int, frame: Frame, opened: bool = False) -> bool:
        """True if a body is at a place. `opened`: the marker before that place is one of the call."""
        text = self.text
        if frame.is_json:
            return text.startswith("{", skip(text, at))
        if not opened and frame.call_open and after(text, at, frame.call_open) >= 0:
            return True
        if opened and text.endswith(tuple(frame.name_open) or "\0", 0, at):
            return self._name_end(at, frame) is not None
        at = skip(text, at)
        if frame.name_open:
            return after(text, at, frame.name_open) >= 0 or begins(text, at, frame.name_open)
        return self._name_end(at, frame) is not None

    def read(self, at: int, inside: Frame | None = None) -> tuple[list[Call], int, Frame | None]:
        """Read calls that begin with a marker at a place. Return them, the place after them, and the open section.

        Raises:
            NoCall: the marker is text.
            Ended: the output ends before a call has committed.
        """
        begun, open_section = at, inside
        frame, at = self.frame_at(at, self.frames, inside)
        if at != begun:
            open_section = frame
        try:
            calls, at, closed = self._calls(at, frame, in_section=open_section is frame)
        except Ended:
            if self._opener_is_text(frame):
                raise NoCall from None
            raise
        return calls, at, None if closed else open_section

    def bare(self, at: int) -> tuple[list[Call], int] | None:
        """Read bare calls at a place (T10)."""
        for frame in self.frames:
            if not frame.bare:
                continue
            try:
                calls, end, _ = self._calls(at, frame, in_section=False)
            except (NoCall, Ended):
                continue
            if self.tools is not None and any(function_of(self.tools, one.name) is None for one in calls):
                continue
            rest = self.text[end:].partition("\n")[0].strip(WS)
            if not frame.is_json and not frame.list_open and rest and after(rest, 0, self.ends) < 0:
                continue
            return calls, end
        return None

    def _opener_is_text(self, frame: Frame) -> bool:
        """True for an opener before a name that the output ends in as prose does (K3)."""
        if frame.is_json:
            return False
        markers = frame.name_open or frame.call_open or frame.section_open
        text = self.text.rstrip(WS)
        place = max((self.text.rfind(one) + len(one) for one in markers if one in self.text), default=0)
        rest = self.text[place:]
        return text.endswith((".", "!", "?")) or (bool(rest) and rest[0] in WS)

    def _calls(self, at: int, frame: Frame, in_section: bool) -> tuple[list[Call], int, bool]:
        """Return the calls from a place on, the place after them, and true if all that was open is closed."""
        text = self.text
        calls: list[Call] = []
        in_list = False
        place = skip(text, at)
        if frame.list_open and (end := after(text, place, frame.list_open)) >= 0:
            in_list, at = True, end
        elif frame.list_open and not frame.spec.get("list_optional"):
            raise Ended if place >= len(text) else NoCall
        while True:
            place = skip(text, at)
            if calls:
                if in_list and (end := after(text, place, frame.list_close)) >= 0:
                    at, in_list = end, False
                    place = skip(text, at)
                    if not in_section:
                        return calls, self._after_call(at, frame, calls), True
                if in_section and (end := after(text, place, frame.section_close)) >= 0:
                    return calls, self._after_call(end, frame, calls), True
                if in_section and not frame.section_close and not in_list and not self._continues(place, frame):
                    return calls, at, True
            separated = after(text, place, frame.separator) if calls else -1
            if separated >= 0:
                place = skip(text, separated)
            if calls and not (in_list or in_section or (frame.bare and separated >= 0)):
                return calls, at, True
            try:
                call = self._call(place, frame)
            except NoCall:
                if not calls:
                    raise
                return calls, at, not in_section or not frame.section_close
            except Ended:
                if not calls:
                    raise
                return calls, at if frame.bare else len(text), True
            calls.append(call)
            at = call.end if call.cut else self._after_call(call.end, frame, calls)
            if call.cut:
                return calls, call.end, False

    def _continues(self, at: int, frame: Frame) -> bool:
        return after(self.text, at, frame.separator) >= 0 or after(self.text, at, frame.call_open) >= 0

    def _after_call(self, at: int, frame: Frame, calls: list[Call]) -> int:
        """Drop what may follow a call: stray closes, closes that come twice, and the beginning of one (T13, P2, K7)."""
        text = self.text
        while True:
            place = skip(text, at)
            end = max(after(text, place, frame.stray), after(text, place, frame.call_close))
            if end < 0:
                break
            at = end
        if place < len(text) and begins(
            text, place, [*frame.call_close, *frame.section_close, *frame.arguments_close], 2
        ):
            return len(text)
        return at

    def _call(self, at: int, frame: Frame) -> Call:
        text = self.text
        opened = after(text, at, frame.call_open)
        if opened >= 0:
            at = skip(text, opened) if frame.is_json or frame.name_open else opened
        elif frame.call_open and "call" not in frame.spec.get("optional", ()):
            raise Ended if at >= len(text) or begins(text, at, frame.call_open) else NoCall
        return self._json_body(skip(text, at), frame) if frame.is_json else self._named_body(at, frame)

    def _close(self, at: int, frame: Frame, markers: list[list[str]]) -> tuple[int, bool]:
        """Return the place after the closes of a call, and true if punctuation was dropped before them (P1, P3)."""
        text, dropped = self.text, False
        for closes in markers:
            place = skip(text, at)
            if (end := after(text, place, closes)) >= 0:
                at = end
                continue
            match = re.compile(r"[\])}\"',;\s]{1,40}").match(text, place) if closes else None
            if match and len(re.sub(r"\s", "", match[0])) <= 8 and (end := after(text, match.end(), closes)) >= 0:
                at, dropped = end, True
        return at, dropped

    def _stop(self, at: int, frame: Frame) -> str:
        """Say what ends JSON at a place outside strings: a close, an opener or the end of the turn (A4)."""
        if after(self.text, at, frame.closes) >= 0:
            return "close"
        return "open" if after(self.text, at, [*self.inner, *self.ends]) >= 0 else ""

    def _string_end(self, at: int) -> int:
        """Return the place after the JSON string at a place, or -1 if it is open."""
        match = re.compile(r'"(?:[^"\\]|\\.)*"', re.S).match(self.text, at)
        return match.end() if match else -1

    def _value(self, at: int, frame: Frame) -> tuple[int, str]:
        """Return the end of a JSON value, and how it ended: whole, close, open, or cut."""
        text, depth = self.text, 0
        while at < len(text):
            if text[at] == '"':
                end = self._string_end(at)
                if end < 0:
                    return len(text), "cut"
                at = end
                if not depth:
                    return at, "whole"
                continue
            if stop := self._stop(at, frame):
                return at, stop
            if text[at] in "{[":
                depth += 1
            elif text[at] in "}]":
                if not depth:
                    return at, "whole"
                depth -= 1
                if not depth:
                    return at + 1, "whole"
            elif not depth and text[at] in "," + WS:
                return at, "whole"
            at += 1
        return at, "cut"

    def _json_body(self, at: int, frame: Frame) -> Call:
        text, body = self.text, frame.body
        if at >= len(text):
            raise Ended
        if not text.startswith("{", at) or text.startswith("\\", skip(text, at + 1)):  # Q9
            raise NoCall
        members, end, how = self._members(at + 1, frame)
        return _Object(self, frame, body, members, end, how).call(at)

    def _members(self, at: int, frame: Frame) -> tuple[list[tuple[str, int, int, str]], int, str]:
        """Return the members of an object (key, place of the value, its end, how it ended), its end, and how."""
        text = self.text
        members: list[tuple[str, int, int, str]] = []
        while True:
            at = skip(text, at)
            if at >= len(text):
                return members, at, "cut"
            if text[at] == "}":
                return members, at + 1, "whole"
            if stop := self._stop(at, frame):
                return members, at, stop
            if text[at] == "," and members:
                at += 1
                continue
            if text[at] != '"':
                return members, at, "broken"
            key_at, at = at, self._string_end(at)
            if at < 0:
                return [*members, (text[key_at:], len(text), len(text), "key")], len(text), "cut"
            key, at = _text(text[key_at:at]), skip(text, at)
            if at >= len(text):
                return members, at, "cut"
            if text[at] != ":":
                return members, at, "broken"
            at = skip(text, at + 1)
            end, how = self._value(at, frame)
            members.append((key, at, end, how))
            if how != "whole":
                return members, end, how
            at = skip(text, end)
            if at < len(text) and text[at] not in ",}" and not self._stop(at, frame):
                return members, at, "broken"

    def _name_end(self, at: int, frame: Frame) -> tuple[str, int] | None:
        """Return a name at a place and where it ends (N2, N3, T14). None: there is no name."""
        text = self.text
        at = skip(text, at)
        pattern = frame.body.get("name", "{name}")
        stops = [*frame.name_close, *spellings(frame.body.get("empty_close")), *spellings(frame.body.get("id_open"))]
        closes = [*frame.closes, *self._argument_openers(frame)]
        end = at
        limit = min(len(text), at + 700)
        in_pattern = set(re.sub(r"\{\w+\}", "", pattern))
        while end < limit and after(text, end, stops) < 0 and after(text, end, closes) < 0:
            if text[end] in WS and text[end] not in in_pattern:
                break
            end += 1
        raw = text[at:end]
        name = _by_pattern(pattern, raw)
        if frame.body.get("escape") == "xml":
            name = html.unescape(name)
        if not NAME.fullmatch(name) or not re.search(r"\w", name):
            return None
        return name, end

    def _argument_openers(self, frame: Frame) -> list[str]:
        if frame.kind == "json":
            return ["{", '"']
        if frame.kind == "tagged":
            return spellings(frame.arguments["key_open"])
        return [frame.arguments.get("open", "(")]

    def _named_body(self, at: int, frame: Frame) -> Call:
        text = self.text
        place = skip(text, at)
        if frame.name_open:
            opened = after(text, place, frame.name_open)
            if opened < 0:
                raise Ended if place >= len(text) or begins(text, place, frame.name_open) else NoCall
            at = opened
        if skip(text, at) >= len(text):
            raise Ended
        found = self._name_end(at, frame)
        if found is None:
            raise NoCall
        name, end = found
        at = skip(text, end)
        if at >= len(text):
            raise Ended
        if (closed := after(text, at, spellings(frame.body.get("empty_close")))) >= 0:
            return self._finish(name, "{}", closed, frame, [frame.call_close])
        if (begun := after(text, at, spellings(frame.body.get("id_open")))) >= 0:
            at = find(text, begun, frame.name_close)
            if at < 0:
                raise Ended
        closed = after(text, at, frame.name_close)
        missing = bool(frame.name_close) and closed < 0
        if missing and (begins(text, at, frame.name_close) or re.fullmatch(r"\W?\w+", frame.name_close[0])):
            raise Ended if begins(text, at, frame.name_close) else NoCall
        at = skip(text, closed) if closed >= 0 else at
        twice = closed >= 0 and (again := after(text, at, frame.name_close)) >= 0
        if twice:  # P22
            at = skip(text, again)
        if at >= len(text):
            raise Ended
        if text.startswith("\\", skip(text, at + 1)) and text[at] in "{(":  # Q9
            raise NoCall
        if after(text, at, frame.closes) >= 0:  # T11, P5
            return self._finish(name, "{}", at, frame, [frame.arguments_close, frame.call_close], recovered=missing)
        if frame.kind == "json":
            return self._json_arguments(name, at, frame, recovered=twice)
        if frame.kind == "tagged":
            return self._tagged_arguments(name, at, frame)
        return self._literal_arguments(name, at, frame)

    def _json_arguments(self, name: str, at: int, frame: Frame, recovered: bool = False) -> Call:
        text = self.text
        if text[at] not in '{"' and not text.startswith("null", at):
            raise Ended if "null".startswith(text[at:]) else NoCall
        end, how = self._value(at, frame)
        raw = text[at:end]
        if how in ("cut", "open"):
            return self._cut(name, _prefix(raw), end, frame, how)
        if how == "close":
            return self._finish(name, raw, end, frame, [frame.arguments_close, frame.call_close], broken=True)
        arguments, broken = _arguments(raw)
        closes = [frame.arguments_close, frame.call_close]
        return self._finish(name, arguments, end, frame, closes, recovered=recovered, broken=broken)

    def _tagged_arguments(self, name: str, at: int, frame: Frame) -> Call:
        if after(self.text, at, spellings(frame.arguments["key_open"])) < 0:
            opener = spellings(frame.arguments["key_open"])
            raise Ended if begins(self.text, at, opener) or begins(self.text, at, frame.closes) else NoCall
        chain = [frame.arguments_close, frame.call_close, frame.section_close]
        reader = tagged.Reader(self.text, frame.arguments, self.tools, name, chain, self.inner, self.ends)
        written = reader.read(at)
        if not written.whole:
            return self._cut(name, written.text, written.end, frame, "cut")
        first = next((one for one in chain if one), [])
        missing = after(self.text, skip(self.text, written.end), first) < 0
        return self._finish(
            name, written.text, written.end, frame, [frame.arguments_close, frame.call_close],
            recovered=written.recovered or missing,
        )  # fmt: skip

    def _literal_arguments(self, name: str, at: int, frame: Frame) -> Call:
        opener = frame.arguments.get("open", "(")
        if not self.text.startswith(opener, at):
            raise NoCall
        if frame.bare and not (KNOWN_ARGUMENT if self.tools is not None else ANY_ARGUMENT).match(self.text, at + 1):
            raise NoCall  # T10
        outer = [*frame.call_close, *frame.section_close]
        reader = literal.Reader(self.text, frame.arguments, self.tools, name, [*outer, *self.ends])
        written = reader.read(at + len(opener))
        if not written.whole and after(self.text, written.end, outer) < 0:
            return self._cut(name, written.text, written.end, frame, "cut")
        return self._finish(
            name, written.text, written.end, frame, [frame.arguments_close, frame.call_close],
            recovered=written.recovered, broken=written.broken or not written.whole,
        )  # fmt: skip

    def _cut(self, name: str, arguments: str, end: int, frame: Frame, how: str) -> Call:
        return Call(name, arguments, "incomplete", end, cut=how == "cut")

    def _finish(
        self, name: str, arguments: str, end: int, frame: Frame, closes: list[list[str]],
        *, recovered: bool = False, broken: bool = False,
    ) -> Call:  # fmt: skip
        end, dropped = self._close(end, frame, closes)
        status = status_of(
            name, arguments, tools=self.tools, incomplete=False, recovered=recovered or dropped, broken=broken
        )
        return Call(name, arguments, status, end)


@dataclass
class _Object:
    """A call as one JSON object."""

    reader: Reader
    frame: Frame
    body: dict[str, Any]
    members: list[tuple[str, int, int, str]]
    end: int
    how: str

    def call(self, at: int) -> Call:
        reader, text = self.reader, self.reader.text
        if self.body.get("name_is_key"):
            return self._name_is_key()
        nested = self.body.get("nested_key")
        for key, start, _, _ in self.members:
            if nested and key == nested and text.startswith("{", start):
                inner, end, how = reader._members(start + 1, self.frame)
                inside = _Object(reader, self.frame, {**self.body, "nested_key": None}, inner, end, how)
                if inside._name() is not None:
                    self.members = inner + [one for one in self.members if one[0] != nested]
        name = self._name()
        if name is None:
            raise Ended if self.how == "cut" else NoCall
        return self._of(name)

    def _keys(self, part: str) -> list[str]:
        accepted = ["parameters"] if part == "arguments" else []
        return [self.body.get(f"{part}_key", part), *self.body.get(f"accepted_{part}_keys", accepted)]

    def _name(self) -> str | None:
        """Return the name if it has committed (T6)."""
        text = self.reader.text
        for key, start, end, how in self.members:
            if key in self._keys("name") and how == "whole" and text.startswith('"', start):
                following = skip(text, end)
                if text[following : following + 1] in (",", "}") and text[following : following + 1]:
                    return _text(text[start:end]).strip(WS) or None
        return None

    def _of(self, name: str) -> Call:
        reader, text = self.reader, self.reader.text
        names, keys = self._keys("name"), self._keys("arguments")
        constants = {one[0] for one in self.body.get("constants", ())} | {self.body.get("id_key")}
        found = [one for one in self.members if one[0] in keys]
        others = [
            one for one in self.members
            if one[0] not in (*names, *keys, *constants)
            and not (one[0] == "type" and text[one[1] : one[2]] == '"function"')
        ]  # fmt: skip
        surplus = len(found) > 1 or sum(one[0] in names for one in self.members) > 1 or (bool(found) and bool(others))
        if found and (found[0][2] > found[0][1] or found[0][3] in ("cut", "open")):
            _, start, end, how = found[0]
            raw = text[start:end]
            if self.how in ("cut", "open") or how in ("cut", "open"):
                return reader._cut(name, _prefix(raw), self.end, self.frame, self.how)
            if how == "close":
                return self._finish(name, raw, broken=True)
            arguments, broken = _arguments(raw)
            if self.how == "broken":
                closed = find(text, end, self.frame.closes)
                rest = text[end : closed if closed >= 0 else len(text)]
                self.end = closed if closed >= 0 else len(text)
                if closed < 0:
                    return reader._cut(name, text[start:], len(text), self.frame, "cut")
                if not _is_json(arguments) or rest.strip(WS)[:1] not in ("}", ","):
                    return self._finish(name, text[start : self.end], broken=True)
            return self._finish(name, arguments, recovered=surplus or self.how != "whole", broken=broken)
        if not others:
            if self.how in ("cut", "open"):
                return reader._cut(name, "", self.end, self.frame, self.how)
            if self.frame.bare:
                raise NoCall
            if self.how == "broken":
                return self._rest(name)
            return self._finish(name, "{}", recovered=self.how != "whole")
        if self.frame.bare:
            raise NoCall
        made = ", ".join(f"{json.dumps(key)}: {text[start:end]}" for key, start, end, how in others if how != "key")
        if self.how in ("cut", "open"):
            return reader._cut(name, "{" + made, self.end, self.frame, self.how)
        if self.how == "broken":
            return self._rest(name)
        if self.how == "close":  # P4
            return self._finish(name, "{" + made, broken=True)
        return self._finish(name, "{" + made + "}")

    def _rest(self, name: str) -> Call:
        """Pass on what is broken, up to the close of the call (P6)."""
        text = self.reader.text
        closed = find(text, self.end, self.frame.closes)
        if closed < 0:
            return self.reader._cut(name, text[self.end :], len(text), self.frame, "cut")
        raw, self.end = text[self.end : closed], closed
        return self._finish(name, raw, broken=True)

    def _finish(self, name: str, arguments: str, *, recovered: bool = False, broken: bool = False) -> Call:
        closes = [self.frame.call_close]
        return self.reader._finish(name, arguments, self.end, self.frame, closes, recovered=recovered, broken=broken)

    def _name_is_key(self) -> Call:
        text = self.reader.text
        if not self.members:
            raise Ended if self.how == "cut" else NoCall
        name, start, end, how = self.members[0]
        if not text.startswith("{", start) or not name:
            raise Ended if start >= len(text) else NoCall
        raw = text[start:end]
        if self.how in ("cut", "open"):
            return self.reader._cut(name, raw, self.end, self.frame, self.how)
        return self._finish(name, raw, recovered=self.how != "whole" or len(self.members) > 1, broken=how == "close")


def _text(raw: str) -> str:
    """Return the text of a JSON string."""
    try:
        return str(json.loads(raw, strict=False))
    except ValueError:
        return raw.strip('"')


def _arguments(raw: str) -> tuple[str, bool]:
    """Return arguments, and true if they are no object (A1 to A3, P7)."""
    if raw == "null":
        return "{}", False
    if raw.startswith('"'):
        inside = _text(raw)
        return inside, not inside.lstrip(WS).startswith("{")
    return raw, not raw.startswith("{")


def _prefix(raw: str) -> str:
    """Return the prefix of arguments that were cut (K2). That of a string is its text."""
    if not raw.startswith('"'):
        return raw.rstrip(WS) if raw.endswith(("\n",)) and raw.rstrip(WS).endswith("}") else raw
    inside = raw[1:]
    for length in range(len(inside), max(len(inside) - 7, -1), -1):
        try:
            return str(json.loads('"' + inside[:length] + '"', strict=False))
        except ValueError:
            continue
    return inside


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _by_pattern(pattern: str, text: str) -> str:
    """Return the name in a text that fits a pattern, or all of it (N2)."""
    made = re.escape(pattern)
    for word, expression in (("name", "(?P<name>.+)"), ("index", r"\d+"), ("id", ".+?")):
        made = made.replace(re.escape(f"{{{word}}}"), expression)
    match = re.fullmatch(made, text, re.S)
    return match["name"] if match else text
