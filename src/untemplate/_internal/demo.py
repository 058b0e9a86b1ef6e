"""``python -m untemplate._internal.demo``: stream bundled outputs, raw text next to the parsed message.

* Each output in ``examples/`` states its expected message: the demonstration fails if it is wrong.
* On a terminal, pieces come at a readable pace; elsewhere at once and without colour.
* Where two columns do not fit, the message is printed below the text.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..messages import DeltaMessage, ParsedOutput, Span, ToolCall
from .examples import Example, examples, pieces
from .output_parser import OutputParser
from .terminal import Line, Segment, coloured, encodable, painted, visible, width, wrapped

__all__ = ["main"]

PACE: Final = 0.012
"""Seconds between pieces, on a terminal."""
SIDE_BY_SIDE: Final = 60
"""Fewest columns for printing side by side."""


def main(argv: Sequence[str] | None = None) -> int:
    """Show the examples. Return 0, or 1 if a message is wrong or the output cannot be written."""
    arguments = argparse.ArgumentParser(
        prog="python -m untemplate._internal.demo", description="Streams bundled model outputs through the parser."
    )
    arguments.add_argument("--fast", action="store_true", help="no pace, even on a terminal")
    fast = arguments.parse_args(argv).fast
    # The example with a cut call shows it; the library's warning of it would disturb the picture.
    logging.getLogger("untemplate").addHandler(logging.NullHandler())
    screen = Screen(live=sys.stdout.isatty() and not fast)
    right = 0
    shown = examples()
    try:
        screen.cursor(False)
        for number, example in enumerate(shown, 1):
            right += _show(screen, f"{number}/{len(shown)}", example)
        screen.print(wrapped([(_verdict(shown, right), "title")], screen.columns))
        screen.cursor(True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        screen.cursor(True)
        screen.print([[]])
        return 130
    return 0 if right == len(shown) else 1


def _verdict(shown: Sequence[Example], right: int) -> str:
    formats = len({example.format for example in shown})
    if right < len(shown):
        return f"{len(shown) - right} of {len(shown)} outputs gave a wrong message."
    return f"{right} outputs, {formats} formats: every message is as expected."


def _show(screen: Screen, number: str, example: Example) -> bool:
    """Stream one output; return True if the message is as expected."""
    parser = example.parser
    whole = _whole(parser, example)
    cuts = pieces(example.output, parser.format.special_tokens)
    stream = parser.stream(tools=example.tools, prompt=example.prompt, seed="demo", collect=True)
    came: list[DeltaMessage] = []
    head = [(number, "faint"), (f" {example.title}", "title"), (f"  {parser.format.name}", "faint")]
    screen.begin(head)
    read = 0
    for piece in cuts:
        read += len(piece)
        came += stream.feed(piece)
        screen.show(_regions(example.output, whole.spans, read), _message(came))
    came += stream.finish(example.finish_reason)
    result = stream.result()
    tail = f"{len(cuts)} pieces, {len(came)} deltas, finish_reason {result.finish_reason}"
    screen.end(_regions(example.output, whole.spans, read), _message(came), [(tail, "faint")])
    return as_expected(result, example.expect)


def _whole(parser: OutputParser, example: Example) -> ParsedOutput:
    return parser.parse(
        example.output,
        finish_reason=example.finish_reason,
        tools=example.tools,
        prompt=example.prompt,
        seed="demo",
        spans=True,
    )


def as_expected(parsed: ParsedOutput, expect: dict[str, Any]) -> bool:
    """True if this is the message that the example expects."""
    calls = expect.get("tool_calls", [])
    return (
        parsed.reasoning == expect.get("reasoning")
        and parsed.content == expect.get("content")
        and parsed.finish_reason == expect["finish_reason"]
        and len(parsed.tool_calls) == len(calls)
        and all(map(_called_as_expected, parsed.tool_calls, calls))
    )


def _called_as_expected(call: ToolCall, expect: Sequence[Any]) -> bool:
    name, arguments, *status = expect
    written = call.function.arguments
    return (call.function.name, call.status) == (name, *(status or ["ok"])) and (
        written == arguments if isinstance(arguments, str) else json.loads(written) == arguments
    )


def _regions(text: str, spans: Sequence[Span], read: int) -> list[Segment]:
    """Return the part of the raw text that has been read, in the colours of its regions."""
    return [(_shown(text[span.start : min(span.end, read)]), span.kind) for span in spans if span.start < read]


def _shown(text: str) -> str:
    return visible(text).replace("\t", "    ")


Message = Sequence[tuple[str, list[Segment]]]
"""(label, text) of each part, in order."""


def _message(deltas: Iterable[DeltaMessage]) -> Message:
    """Return the message that the deltas add up to."""
    parts: list[tuple[str, list[Segment]]] = []

    def add(label: str, text: str, style: str) -> None:
        if not parts or parts[-1][0] != label:
            parts.append((label, []))
        parts[-1][1].append((_shown(text), style))

    for delta in deltas:
        if delta.reasoning:
            add("reasoning", delta.reasoning, "reasoning")
        if delta.content:
            add("content", delta.content, "content")
        for call in delta.tool_calls or ():
            label = f"call {call.index}"
            function = call.function
            if function is not None and function.name:
                add(label, function.name, "name")
                add(label, f"  {call.id}\n", "faint")
            if function is not None and function.arguments:
                add(label, function.arguments, "arguments")
    return parts


class Screen:
    """Writes examples in two columns; on a terminal, redraws the one that is being streamed.

    Args:
        live: draw while pieces arrive, at a pace.
    """

    def __init__(self, *, live: bool) -> None:
        size = shutil.get_terminal_size()
        self.columns: int = max(size.columns, 1)
        self.rows: int = size.lines
        self.live = live
        self.colour: bool = coloured(sys.stdout)
        self.bar = "│" if encodable("│", sys.stdout) else "|"
        self._drawn = 0

    def cursor(self, seen: bool) -> None:
        if self.live:
            sys.stdout.write("\x1b[?25h" if seen else "\x1b[?25l")
            sys.stdout.flush()

    def begin(self, head: Line) -> None:
        self.print(wrapped(head, self.columns))
        self._drawn = 0

    def show(self, raw: Sequence[Segment], message: Message) -> None:
        """Redraw on top of the last drawing, if the stream is live and all of it is still on the screen."""
        if not self.live:
            return
        lines = self.lay_out(raw, message)
        if len(lines) < self.rows:
            self._draw(lines)
            time.sleep(PACE)

    def end(self, raw: Sequence[Segment], message: Message, tail: Line) -> None:
        self._draw(self.lay_out(raw, message))
        self._drawn = 0
        self.print([*wrapped(tail, self.columns), []])

    def lay_out(self, raw: Sequence[Segment], message: Message) -> list[Line]:
        """Lay out the raw text and the message, side by side or one above the other."""
        if self.columns < SIDE_BY_SIDE:
            return [
                *wrapped(raw, self.columns),
                [("-" * min(self.columns, 9), "faint")],
                *_blocks(message, self.columns),
            ]
        half = (self.columns - 3) // 2
        left, right = wrapped(raw, half), _blocks(message, self.columns - 3 - half)
        rows: list[Line] = []
        for i in range(max(len(left), len(right))):
            cells = left[i] if i < len(left) else []
            gap = " " * (half - sum(width(text) for text, _ in cells))
            rows.append([*cells, (gap, ""), (f" {self.bar} ", "faint"), *(right[i] if i < len(right) else [])])
        return rows

    def print(self, lines: Iterable[Line]) -> None:
        encoding = sys.stdout.encoding or "ascii"
        clear = "\x1b[K" if self.live else ""
        for line in lines:
            text = painted(line, colour=self.colour).rstrip(" ")
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + clear + "\n")
        sys.stdout.flush()

    def _draw(self, lines: Sequence[Line]) -> None:
        if self._drawn:
            sys.stdout.write(f"\x1b[{self._drawn}F")
        self.print(lines)
        self._drawn = len(lines)


def _blocks(message: Message, columns: int) -> list[Line]:
    """Return each part of the message after its label, or below it if the column is narrow."""
    lines: list[Line] = []
    indent = 11 if columns >= 32 else 0
    for label, text in message:
        body = wrapped(text, columns - indent)
        if indent:
            lines += [[(f"{label if i == 0 else '':<{indent}}", "faint"), *line] for i, line in enumerate(body)]
        else:
            lines += [*wrapped([(label, "faint")], columns), *body]
    return lines


if __name__ == "__main__":
    sys.exit(main())
