"""A parser of whole outputs, written from the built pages of the Format specification alone."""

from __future__ import annotations

from typing import Any

import channels
from calls import Call, Ended, Frame, NoCall, Reader
from marks import WS, after, find, skip, spellings
from quotations import closes_later, is_on_quoted_line, is_quoted, open_fence, open_sign


def parse(form: dict[str, Any], output: str, tools: Any = None, prompt: str | None = None) -> dict[str, Any]:
    """Return the message of an output."""
    parser = Parser(form, output, tools)
    if parser.channels:
        return channels.read(parser, prompt)
    parser.begin(prompt)
    parser.read()
    return parser.message()


class Parser:
    def __init__(self, form: dict[str, Any], output: str, tools: Any) -> None:
        self.form, self.text, self.tools = form, output, tools
        self.ends = spellings((form.get("turn") or {}).get("end"))
        self.channels = form.get("channels")
        self.frames = [] if tools == [] else [Frame(one, self.ends) for one in form.get("tools", ())]
        self.calls_reader = Reader(output, self.frames, tools, self.ends)
        reasoning = form.get("reasoning") or {}
        self.open, self.close = spellings(reasoning.get("open")), spellings(reasoning.get("close"))
        self.has_reasoning = bool(reasoning)
        if reasoning.get("inline"):
            self._read_inline(reasoning)
        self.repeats = bool(reasoning.get("repeats"))
        content = form.get("content") or {}
        self.content_marks = spellings(content.get("open")) + spellings(content.get("close"))
        self.tail = self._tail()
        self.reasoning, self.content = "", ""
        self.calls: list[Call] = []
        self.state = "content"
        self.touched = False  # a marker is directly before
        self.last = ""  # what was read last: call, reasoning, or text
        self.shown = ""  # the content, for quotations: a line begins after a call and after reasoning (Q12)
        self.section: Frame | None = None
        self.after_calls = ""
        self.closes_as_text = 0
        self.at = 0

    def _read_inline(self, reasoning: dict[str, Any]) -> None:
        """Make reasoning a part of the content (R9)."""
        begins_open = reasoning.get("start") == "open" and after(self.text, skip(self.text, 0), self.open) < 0
        if begins_open:
            opener = reasoning["open"]
            self.text = (opener if isinstance(opener, str) else opener["text"]) + self.text
        begun = after(self.text, skip(self.text, 0), self.open)
        closed = after(self.text, skip(self.text, begun), self.close) if begun >= 0 else -1
        if closed >= 0:
            self.text = self.text[skip(self.text, closed) :]
        self.open, self.close, self.has_reasoning = [], [], False
        self.calls_reader.text = self.text

    def _tail(self) -> int:
        """Return the place of the ends of the turn with which the output ends (M8)."""
        end = len(self.text)
        while True:
            stripped = len(self.text[:end].rstrip(WS))
            found = next((one for one in self.ends if self.text.endswith(one, 0, stripped)), None)
            if found is None:
                return end
            end = len(self.text[: stripped - len(found)].rstrip(WS))

    def begin(self, prompt: str | None) -> None:
        """Set the state in which the output begins (S1 to S4, R8)."""
        reasoning = self.form.get("reasoning") or {}
        starts_open = self.has_reasoning and (reasoning.get("start") == "open" or not self.open)
        if prompt is None:
            self.state = "reasoning" if starts_open else "content"
            return
        tail = self._prompt_tail(prompt)
        if tail is None:
            rest = prompt.rstrip(WS)
            if self.open and rest.endswith(tuple(self.open)):
                self.state, self.touched = "reasoning", True
            elif self.close and rest.endswith(tuple(self.close)):
                self.state, self.touched = "content", True
            else:
                self.state = "reasoning" if starts_open else "content"
            return
        if self.has_reasoning and not self.open:
            closed = find(tail, 0, self.close) >= 0
            self.state = "content" if closed else "reasoning"
            self.touched = closed
            return
        before = Parser(self.form, tail, self.tools)
        before.read()
        self.state = before.state
        rest = tail.rstrip(WS)
        marks = [*self.open, *self.close, *self.content_marks, *self.calls_reader.inner]
        self.touched = bool(rest) and rest.endswith(tuple(marks) or ("\0",))
        self.section = before.section
        for frame in before.frames:
            if frame.section_open and rest.endswith(tuple(frame.section_open)):
                self.section = self.frames[before.frames.index(frame)]
                self.state = "content"

    def _prompt_tail(self, prompt: str) -> str | None:
        turn = self.form.get("turn") or {}
        marks = spellings(turn.get("start"))
        last = max((prompt.rfind(one) + len(one) for one in marks if one in prompt), default=-1)
        if last < 0:
            return None
        tail = prompt[last:]
        return None if find(tail, 0, self.ends) >= 0 else tail

    def message(self) -> dict[str, Any]:
        reasoning, content = self.reasoning, self.content
        if not reasoning.strip(WS):
            reasoning = ""
        self._doubt_last_call()
        calls = [{"name": one.name, "arguments": one.arguments, "status": one.status} for one in self.calls]
        return {"reasoning": reasoning, "content": content, "tool_calls": calls}

    def _doubt_last_call(self) -> None:
        """Let the last call not be `ok` if a close of calls, and no opener before it, is text after it (P2)."""
        closes = [one for frame in self.frames for one in (*frame.call_close, *frame.section_close)]
        closed, opened = find(self.after_calls, 0, closes), find(self.after_calls, 0, self.calls_reader.inner)
        if self.calls and self.calls[-1].status == "ok" and closed >= 0 and not 0 <= opened < closed:
            self.calls[-1].status = "recovered"

    def read(self) -> None:
        while self.at < len(self.text):
            if self.state == "reasoning":
                self._read_reasoning()
            else:
                self._read_content()

    def _emit(self, part: str, start: int, end: int, before_marker: bool, kept: str = "") -> None:
        """Add text to a part, without the white space that touches markers (M3, M4)."""
        raw = self.text[start:end]
        if part == "content" and self.last == "call":
            raw = raw if raw.strip(WS) else ""
        elif self.touched:
            raw = raw.lstrip(WS)
        if before_marker:
            raw = raw.rstrip(WS)
        if part == "content":
            self.content += raw
            self.shown += raw
            self.after_calls += raw
        else:
            self.reasoning += raw
        if raw:
            self.last, self.touched = "text", False

    def _read_reasoning(self) -> None:
        text, start = self.text, self.at
        place = skip(text, start)
        if (end := after(text, place, self.open)) >= 0 and not self.reasoning_begun(start):  # R3
            start, self.touched = end, True
        scan = start
        while True:
            closed = find(text, scan, self.close, self.tail)
            opened = find(text, scan, self.calls_reader.openers, len(text))
            if opened >= 0 and (closed < 0 or opened < closed):
                try:
                    calls, end, _ = self.calls_reader.read(opened)
                except NoCall:
                    scan = opened + 1
                    continue
                except Ended:
                    self._emit("reasoning", start, opened, True)
                    self.at = len(text)
                    return
                end, state, more = self._draft_end(end)
                if end < 0:
                    scan = -end
                    continue
                self._emit("reasoning", start, opened, True)
                self.calls += [*calls, *more]
                self.at, self.last, self.state = len(text), "call", state
                return
            break
        if closed >= 0:
            self._emit("reasoning", start, closed, True)
            self.at = after(text, closed, self.close)
            self.state, self.touched, self.last = "content", True, "reasoning"
            self.shown += "\n" if self.shown else ""
            return
        self._emit("reasoning", start, self.tail, self.tail < len(text))
        self.at = len(text)

    def reasoning_begun(self, start: int) -> bool:
        return bool(self.text[:start].strip(WS)) and self.last == "text"

    def _draft_end(self, at: int) -> tuple[int, str, list[Call]]:
        """Return the end of the output if nothing but calls and closes follows, or else a negative place (T15)."""
        text, start, more = self.text, at, []
        state = "reasoning"
        section: Frame | None = None
        while True:
            at = skip(text, at)
            if at >= len(text):
                return at, state, more
            closes = [*self.close, *self.ends, *(one for frame in self.frames for one in frame.closes)]
            if (end := after(text, at, closes)) >= 0:
                state = "content" if after(text, at, self.close) >= 0 else state
                at = end
                continue
            try:
                if after(text, at, self.calls_reader.openers) < 0:
                    return -max(start, 1), state, []
                calls, at, section = self.calls_reader.read(at, section)
                more += calls
            except Ended:
                return len(text), state, more
            except NoCall:
                return -max(start, 1), state, []

    def _read_content(self) -> None:
        start = self.at
        first = skip(self.text, start)
        if not self.content.strip(WS) and self.last in ("", "reasoning") and (found := self.calls_reader.bare(first)):
            self._add(found[0], found[1], None)
            return
        scan = start
        while True:
            place, kind = self._next_marker(scan)
            if kind == "end":
                self._emit("content", start, self.tail, self.tail < len(self.text))
                self.at = len(self.text)
                return
            handled = getattr(self, f"_at_{kind}")(start, place)
            if handled < 0:
                return
            scan = handled

    def _next_marker(self, at: int) -> tuple[int, str]:
        openers = list(self.calls_reader.openers)
        section: list[str] = []
        if self.section:
            openers += self.section.call_open or self.section.name_open
            section = self.section.section_close
        options = [
            (find(self.text, at, section, self.tail), 0, "section_close"),
            (find(self.text, at, openers), 1, "call"),
            (find(self.text, at, self.open, self.tail), 2, "open"),
            (find(self.text, at, self.close, self.tail), 3, "close"),
            (find(self.text, at, self.content_marks, self.tail), 4, "content"),
        ]
        place, _, kind = min(((one if one >= 0 else len(self.text), order, kind) for one, order, kind in options))
        return (place, kind) if place < self.tail else (self.tail, "end")

    def _at_section_close(self, start: int, place: int) -> int:
        assert self.section
        self._emit("content", start, place, True)
        self.at = after(self.text, place, self.section.section_close)
        self.section, self.last, self.touched = None, "call", True
        return -1

    def _at_content(self, start: int, place: int) -> int:
        self._emit("content", start, place, True)
        self.at, self.touched = after(self.text, place, self.content_marks), True
        if self.last != "call":
            self.last = self.last if self.last == "reasoning" else ""
        return -1

    def _at_open(self, start: int, place: int) -> int:
        text = self.text
        before = self._seen(start, place)
        end = after(text, place, self.open)
        pending = text[start:place].strip(WS)
        fresh = not self.content.strip(WS) and not pending
        previous = text[place - 1 : place]
        directly = not pending and self.last in ("call", "reasoning")
        line = before.rpartition("\n")[2]
        starts_line = not line and (before.endswith("\n") or not before)
        repeats = self.repeats and bool(previous) and previous not in WS + "`"
        if not fresh and (
            open_fence(before + "\n" if starts_line else before) or not (directly or starts_line or repeats)
        ):
            self.closes_as_text += 1
            return end
        self._emit("content", start, place, True)
        self.at, self.state, self.touched, self.last = end, "reasoning", True, ""
        return -1

    def _at_close(self, start: int, place: int) -> int:
        text, end = self.text, after(self.text, place, self.close)
        around = text[place - 1 : place] == "`" and text[end : end + 1] == "`"
        if self.closes_as_text or around:
            self.closes_as_text = max(self.closes_as_text - 1, 0) if not around else self.closes_as_text
            return end
        if (self.content + text[start:place]).strip(WS):  # R7
            self._emit("content", start, place, False)
            self.touched, self.at = False, end
            self.last = "text"
        else:
            self.touched, self.at = True, end
        return -1

    def _seen(self, start: int, place: int) -> str:
        raw = self.text[start:place]
        return self.shown + (raw.lstrip(WS) if self.touched and self.last != "call" else raw)

    def _at_call(self, start: int, place: int) -> int:
        """Read calls, or return the place after a marker that is text."""
        text, reader = self.text, self.calls_reader
        before = self._seen(start, place)
        opener_end = after(text, place, reader.inner)
        if self._is_empty_block(start, place, opener_end):
            return place
        if before.strip(WS) and (is_quoted(before) or is_on_quoted_line(before)):
            follows = skip(text, opener_end)
            while is_quoted(before) and (end := after(text, follows, reader.inner)) >= 0:  # Q11
                opener_end, follows = end, skip(text, end)
            return opener_end
        if self._is_a_word(place, before):
            return opener_end
        try:
            calls, end, section = reader.read(place, self.section)
        except NoCall:
            return opener_end
        except Ended:
            self._emit("content", start, place, True)
            self.at = len(text)
            return -1
        if before.endswith("`") and not before.endswith("``") and text.startswith("`", end):
            return end
        if not before.endswith("`") and (signs := open_sign(before)) and closes_later(text, end, signs):
            return end
        self._emit("content", start, place, True)
        self._add(calls, end, section)
        return -1

    def _is_a_word(self, place: int, before: str) -> bool:
        """True if an opener is a word of prose here (T16)."""
        if after(self.text, place, [one for frame in self.frames for one in frame.words()]) < 0:
            return False
        if self.tools is None:
            return bool(before.strip(WS))
        line = before.rpartition("\n")[2]
        sentence = before.rstrip(WS)[-1:] in tuple(".!?。！？") and before[-1:] in tuple(WS)
        return bool(before) and bool(line) and not sentence and not (self.touched and not line.strip(WS))

    def _is_empty_block(self, start: int, place: int, end: int) -> bool:
        """Drop markers that belong together with nothing between them (Q10)."""
        text = self.text
        closes = [one for frame in self.frames for one in (*frame.call_close, *frame.section_close)]
        closed = after(text, skip(text, end), closes)
        if closed < 0:
            return False
        before = text[:place].rpartition("\n")[2].strip(WS)
        behind = text[closed:].partition("\n")[0].strip(WS)
        if before and behind and not behind.startswith(tuple(self.ends)):
            return False
        if self.content.strip(WS) or text[start:place].strip(WS):
            self.text = text[:place] + text[closed:]
        else:
            self.text = text[:place] + text[skip(text, closed) :]
        self.tail = self._tail()
        self.calls_reader.text = self.text
        self.at = start
        return True

    def _add(self, calls: list[Call], end: int, section: Frame | None) -> None:
        self.calls += calls
        self.after_calls = ""
        self.at, self.last, self.touched, self.section = end, "call", True, section
        if self.shown and not self.shown.endswith("\n"):
            self.shown += "\n"
