"""Compares the stream that a server sent with the right parse of its raw output.

A stream only appends. So it is right as long as each of its texts is a prefix of the same text of the right message,
and the first event after which one is not a prefix is the first wrong one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from ...format import Format
from ...messages import ParsedOutput
from ..backends.recognition import markers_of
from ..jsontext.equality import equal_texts


class StreamError(ValueError):
    """The text is not a stream of chat completion chunks."""


@dataclass(frozen=True, slots=True)
class Known:
    """A kind of difference that has been reported in public."""

    title: str
    rows: tuple[int, ...]
    """Numbers of the failures in the page *Failure modes*."""
    reports: tuple[str, ...]


KNOWN: Final[dict[str, Known]] = {
    "marker_in_content": Known(
        "A marker was sent as content, whole or in pieces", (2, 7), ("sglang#36691", "sglang#24995", "ollama#16686")
    ),
    "call_in_content": Known(
        "A tool call was sent as content: the server has the wrong parser, or none",
        (21,),
        ("vllm#33894", "sglang#38297"),
    ),
    "reasoning_in_content": Known(
        "Reasoning was sent as content: the parser does not know that the prompt opened it",
        (6,),
        ("llama.cpp#24674", "vllm#48863", "vllm#19017"),
    ),
    "content_in_reasoning": Known("Content was sent as reasoning", (16,), ("omlx#2457", "Rapid-MLX#825", "vllm#42781")),
    "call_in_reasoning": Known("A tool call was sent as reasoning", (4,), ("vllm#39056", "vllm#16511", "lmstudio#827")),
    "text_differs": Known("The text is not the text of the model", (12, 33), ("vllm#48846", "vllm#49567")),
    "text_lost": Known("A part of the text was never sent", (3,), ("ollama#17274", "vllm#45736", "vllm#47062")),
    "call_lost": Known("A tool call was never sent", (1, 3), ("sglang#31915", "vllm#55082", "vllm#48347")),
    "call_invented": Known(
        "A tool call was sent that the model did not make", (5, 18), ("verl#4757", "sglang#38624", "sglang#23071")
    ),
    "call_numbered": Known(
        "A call is numbered wrongly, or its name or id came twice or not at all",
        (18,),
        ("sglang#23071", "sglang#35625", "vllm#51697", "llama.cpp#14101"),
    ),
    "name_cut": Known("The name of the tool was cut", (19,), ("vllm#39757", "sglang#15754", "dynamo#8532")),
    "name_differs": Known("The call has another name", (18,), ("sglang#23071", "sglang#35625")),
    "arguments_cut": Known("A part of the arguments was never sent", (1, 15), ("sglang#31915", "vllm#55082")),
    "arguments_empty": Known("The arguments were not sent", (20,), ("vllm#44326", "vllm#48131", "sglang#36691")),
    "arguments_differ": Known(
        "The arguments are not those of the model", (11, 12, 13), ("vllm#44060", "vllm#48846", "vllm#43238")
    ),
    "finish_reason": Known("The finish reason is wrong", (14, 15), ("sglang#2877", "vllm#9209", "litellm#12862")),
    "white_space": Known("White space at the edge of a text differs; most clients do not mind", (12,), ("vllm#48846",)),
    "arguments_spelling": Known("The arguments are written differently and have the same values", (), ()),
}
"""Kinds of differences, with their public reports."""

_MINOR: Final = ("white_space", "arguments_spelling")


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event after which one text of the message is wrong."""

    event: int
    """Number of the event, from 1; one more than there are: the end of the stream."""
    code: str
    path: str
    """The text in question, such as ``tool_calls[0].function.arguments``."""
    expected: str
    got: str
    minor: bool


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Part(msgspec.Struct):
    index: int = 0
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Part] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct):
    """One event of a stream of Chat Completions."""

    choices: list[_Choice]


def read_events(text: str) -> list[Chunk]:
    """Return the chunks of a server-sent stream of Chat Completions, or of lines of JSON.

    Raises:
        StreamError: a line is not a chunk; names it.
    """
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        data = line.strip().removeprefix("data:").strip()
        if not data or data == "[DONE]" or line.startswith((":", "event:", "id:", "retry:")):
            continue
        try:
            events.append(msgspec.json.decode(data, type=Chunk))
        except msgspec.ValidationError as error:
            raise StreamError(f"line {number}: not a chunk of Chat Completions: {error}") from None
        except msgspec.DecodeError as error:
            raise StreamError(f"line {number}: not JSON: {error}") from None
    if not events:
        raise StreamError("there is no event: paste the lines that begin with data:")
    return events


def compare(events: list[Chunk], right: ParsedOutput, fmt: Format) -> dict[str, Any]:
    """Return the differences between a stream and the right message, the first one first; and the message of the
    stream."""
    found = _Comparison(right, fmt)
    for number, event in enumerate(events, 1):
        found.take(number, event)
    found.finish(len(events) + 1)
    found.differences.sort(key=lambda difference: (difference.minor, difference.event))
    return {
        "events": len(events),
        "differences": [
            {**asdict(d), "title": KNOWN[d.code].title, "reports": list(KNOWN[d.code].reports)}
            for d in found.differences
        ],
        "message": found.message(),
    }


class _Prefix:
    """Checks that pieces of text are a prefix of another text. Stops at the first difference."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.at = 0
        """Number of characters that agree."""
        self._done = False

    def take(self, piece: str) -> str:
        """Take the next piece. Return what of it is wrong; empty if nothing is, or if something was before."""
        if self._done:
            return ""
        if self.wanted.startswith(piece, self.at):
            self.at += len(piece)
            return ""
        rest = self.wanted[self.at : self.at + len(piece)]
        same = next((i for i, (a, b) in enumerate(zip(piece, rest, strict=False)) if a != b), len(rest))
        self.at += same
        self._done = True
        return piece[same:]


class _Text:
    """A text of the stream, compared without the white space at its edges."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.pieces: list[str] = []
        self.prefix = _Prefix(wanted.strip())
        self._spaces = ""

    @property
    def got(self) -> str:
        return "".join(self.pieces)

    def take(self, piece: str) -> str:
        """Take the next piece. Return what of it is wrong."""
        self.pieces.append(piece)
        if not self.prefix.at:
            piece = piece.lstrip()
        # White space may be that at the end, so it waits for what follows.
        kept = piece.rstrip()
        if not kept:
            self._spaces += piece
            return ""
        before, self._spaces = self._spaces, piece[len(kept) :]
        return self.prefix.take((before if self.prefix.at else "") + kept)


class _Call:
    """A call as the stream has it."""

    def __init__(self, arguments: str) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self._compact = _Compact()
        self._prefix = _Prefix(_Compact().feed(arguments))

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def take(self, piece: str) -> bool:
        """Take a piece of the arguments. Return True if its values are wrong."""
        self.pieces.append(piece)
        wrong = self._prefix.take(self._compact.feed(piece))
        # Next to a backslash one text may have an escape where the other has the character: the end decides.
        return bool(wrong) and "\\" not in (wrong[0], self._prefix.wanted[self._prefix.at : self._prefix.at + 1])


class _Compact:
    """Removes the white space between the tokens of JSON text that comes in pieces."""

    def __init__(self) -> None:
        self._in_string = False
        self._escaped = False

    def feed(self, piece: str) -> str:
        kept = []
        for c in piece:
            if self._in_string:
                self._in_string = c != '"' or self._escaped
                self._escaped = c == "\\" and not self._escaped
            elif c in " \t\r\n":
                continue
            else:
                self._in_string = c == '"'
            kept.append(c)
        return "".join(kept)


class _Comparison:
    """Follows a stream, and compares each of its texts with the right one until they differ."""

    def __init__(self, right: ParsedOutput, fmt: Format) -> None:
        self.differences: list[Difference] = []
        self._right = right
        self._own = markers_of(fmt)
        self._texts = {"reasoning": _Text(right.reasoning or ""), "content": _Text(right.content or "")}
        self._calls: dict[int, _Call] = {}
        self._finish: str | None = None
        self._wrong: set[str] = set()

    def take(self, number: int, event: Chunk) -> None:
        """Compare one event."""
        for choice in event.choices:
            delta = choice.delta
            if choice.index != 0:
                continue
            if delta is not None:
                self._take_text(number, "reasoning", delta.reasoning or delta.reasoning_content or "")
                self._take_text(number, "content", delta.content or "")
                for part in delta.tool_calls or ():
                    self._take_call(number, part)
            self._finish = choice.finish_reason or self._finish

    def finish(self, number: int) -> None:
        """Compare what the stream has at its end."""
        for field, text in self._texts.items():
            got, wanted = text.got, text.wanted
            if text.prefix.at < len(wanted.strip()):
                self._add(number, "text_lost", field, wanted.strip()[text.prefix.at :], "")
            elif got != wanted:
                self._add(number, "white_space", field, wanted, got)
        for index, call in enumerate(self._right.tool_calls):
            self._finish_call(number, index, call.function.arguments)
        if self._finish != self._right.finish_reason:
            self._add(number - 1, "finish_reason", "finish_reason", self._right.finish_reason, self._finish or "")

    def message(self) -> dict[str, Any]:
        """Return the message of the stream."""
        return {
            "role": "assistant",
            **{field: text.got for field, text in self._texts.items() if text.pieces},
            "tool_calls": [
                {"index": i, "id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for i, c in sorted(self._calls.items())
            ],
            "finish_reason": self._finish,
        }

    def _add(self, number: int, code: str, path: str, expected: str, got: str) -> None:
        """Add the first difference of a text. Later ones follow from it."""
        if path not in self._wrong:
            self._wrong.add(path)
            self.differences.append(Difference(number, code, path, expected[:400], got[:400], code in _MINOR))

    # -- Texts ----------------------------------------------------------------------------------------------------

    def _take_text(self, number: int, field: str, piece: str) -> None:
        text = self._texts[field]
        if piece and (wrong := text.take(piece)):
            expected = text.prefix.wanted[text.prefix.at :]
            self._add(number, self._kind_of_text(field, wrong), field, expected, wrong)

    def _kind_of_text(self, field: str, extra: str) -> str:
        """Return the kind of a difference that begins with this text."""
        if field == "reasoning":
            if self._begins_call(extra):
                return "call_in_reasoning"
            return "content_in_reasoning" if self._occurs(extra, "content") else "text_differs"
        if self._begins_call(extra):
            return "call_in_content" if self._right.tool_calls else "marker_in_content"
        if self._begins_reasoning(extra):
            return "reasoning_in_content"
        return "marker_in_content" if self._is_marker(extra) else "text_differs"

    def _occurs(self, text: str, field: str) -> bool:
        return bool(text.strip()) and text.strip() in self._texts[field].wanted

    def _begins_reasoning(self, text: str) -> bool:
        """True if a text begins like the right reasoning, with or without its opener."""
        reasoning, text = self._texts["reasoning"].prefix.wanted, text.lstrip()
        for marker, meaning in self._own.items():
            if meaning == "begins reasoning":
                text = text.removeprefix(marker).lstrip()
        size = min(len(text), len(reasoning))
        return size > 0 and text[:size] == reasoning[:size]

    def _begins_call(self, text: str) -> bool:
        text = text.lstrip()
        calls = (marker for marker, meaning in self._own.items() if meaning == "begins calls")
        return bool(text) and any(text.startswith(marker) or marker.startswith(text) for marker in calls)

    def _is_marker(self, text: str) -> bool:
        text = text.strip()
        return bool(text) and any(marker in text or marker.startswith(text) for marker in self._own)

    # -- Calls ----------------------------------------------------------------------------------------------------

    def _take_call(self, number: int, part: _Part) -> None:
        path, right = f"tool_calls[{part.index}]", self._right.tool_calls
        call = self._calls.get(part.index)
        known = 0 <= part.index < len(right)
        if call is None:
            if part.index != len(self._calls):
                self._add(number, "call_numbered", path, f"index {len(self._calls)}", f"index {part.index}")
            call = self._calls[part.index] = _Call(right[part.index].function.arguments if known else "")
        if not known:
            self._add(number, "call_invented", path, "no call", part.function.name or "")
            return
        wanted = right[part.index].function
        self._take_name(number, path, call, part, wanted.name)
        if part.function.arguments and call.take(part.function.arguments):
            self._add(number, "arguments_differ", f"{path}.function.arguments", wanted.arguments, call.arguments)

    def _take_name(self, number: int, path: str, call: _Call, part: _Part, wanted: str) -> None:
        if part.id and call.id and part.id != call.id:
            self._add(number, "call_numbered", f"{path}.id", call.id, part.id)
        call.id = call.id or part.id or ""
        name = part.function.name
        if name and call.name:
            self._add(number, "call_numbered", f"{path}.function.name", "nothing: the name has come", name)
        elif name:
            call.name = name
            if name != wanted:
                code = "name_cut" if wanted.startswith(name) else "name_differs"
                self._add(number, code, f"{path}.function.name", wanted, name)

    def _finish_call(self, number: int, index: int, wanted: str) -> None:
        path = f"tool_calls[{index}]"
        call = self._calls.get(index)
        if call is None:
            self._add(number, "call_lost", path, wanted, "")
            return
        if not call.name:
            self._add(number, "call_numbered", f"{path}.function.name", "a name", "")
        path += ".function.arguments"
        if call.arguments == wanted:
            return
        if equal_texts(call.arguments, wanted):
            self._add(number, "arguments_spelling", path, wanted, call.arguments)
        elif not call.arguments:
            self._add(number, "arguments_empty", path, wanted, "")
        else:
            cut = len(call.arguments) < len(wanted)
            self._add(number, "arguments_cut" if cut else "arguments_differ", path, wanted, call.arguments)
