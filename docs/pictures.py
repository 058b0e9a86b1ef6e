"""Draw the pictures of the concepts, ``pictures/*.svg``. What shows code is computed from the code.

``make docs`` runs it; ``tests/test_docs.py`` fails if a picture is out of date. A picture has a background of its own,
so that it is readable on any page, and follows the light or dark colours of the reader's system.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from untemplate import OutputParser, Policy
from untemplate._internal.machine.modes import MODES
from untemplate.messages import DeltaMessage

PICTURES: Final = Path(__file__).parent / "pictures"

# class: (light, dark) of fills; the same as in the inspector.
COLOURS: Final = {
    "reasoning": ("#e6dcf7", "#443766"),
    "content": ("#d9ecd9", "#23472c"),
    "name": ("#cfe3fb", "#1d4470"),
    "arguments": ("#fbe9c6", "#5b4512"),
    "markup": ("#e4e6ea", "#353a43"),
    "dropped": ("#fbd5d2", "#6a2622"),
    "held": ("#ffe08a", "#6b5200"),
    "box": ("#f5f6f8", "#1e2127"),
    "main": ("#cfe3fb", "#1d4470"),
}
LIGHT: Final = {"back": "#ffffff", "front": "#1c1e21", "faint": "#5a6068", "line": "#8a929e"}
DARK: Final = {"back": "#16181d", "front": "#e4e6ea", "faint": "#a2a9b3", "line": "#7d8693"}
CELL: Final = 7.8
"""Width of a character of code. Every run of code is stretched to it, whatever the reader's font is."""
ROW: Final = 22
WIDTH: Final = 960


def _style() -> str:
    def rules(colours: dict[str, str], column: int) -> str:
        fills = "".join(f".{name}{{fill:{pair[column]}}}" for name, pair in COLOURS.items())
        return (
            f".back{{fill:{colours['back']}}}text{{fill:{colours['front']}}}.faint{{fill:{colours['faint']}}}"
            f".line{{stroke:{colours['line']};fill:none;stroke-width:1.5}}.edge{{stroke:{colours['line']}}}"
            f".head{{fill:{colours['line']}}}{fills}"
        )

    fonts = "text{font:14px system-ui,sans-serif}.code{font:13px ui-monospace,monospace;white-space:pre}"
    small = ".small{font-size:12px}.strong{font-weight:700}"
    return f"{fonts}{small}{rules(LIGHT, 0)}@media(prefers-color-scheme:dark){{{rules(DARK, 1)}}}"


class Drawing:
    """A picture that grows by texts, boxes and arrows. Places are in pixels."""

    def __init__(self, title: str, description: str) -> None:
        self.height = 0.0
        self._title = title
        self._description = description
        self._parts: list[str] = []

    def _reach(self, bottom: float) -> None:
        self.height = max(self.height, bottom)

    def text(self, x: float, y: float, text: str, style: str = "", anchor: str = "start") -> None:
        """Write a line of prose; ``y`` is its baseline."""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>')
        self._reach(y + 6)

    def code(self, x: float, y: float, text: str, fill: str = "", style: str = "") -> float:
        """Write a run of code on a colour. Return the place after it."""
        size = len(text) * CELL
        if fill:
            self._parts.append(f'<rect x="{x:g}" y="{y - 15:g}" width="{size:g}" height="20" rx="2" class="{fill}"/>')
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" class="code {style}" textLength="{size:g}" '
            f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(text)}</text>'
        )
        self._reach(y + 8)
        return x + size

    def box(self, x: float, y: float, width: float, height: float, lines: Iterable[str], fill: str = "box") -> None:
        """Draw a box. The first of its lines is the strong one."""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{fill} edge"/>'
        )
        held = list(lines)
        top = y + height / 2 - (len(held) - 1) * 9 + 5
        for i, line in enumerate(held):
            self.text(x + width / 2, top + 18 * i, line, "small faint" if i else "strong", "middle")
        self._reach(y + height + 2)

    def bar(self, x: float, y: float, width: float, fill: str) -> None:
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="20" class="{fill} edge"/>')
        self._reach(y + 22)

    def arrow(self, *points: tuple[float, float]) -> None:
        """Draw an arrow through points, its head at the last one."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline points="{path}" class="line" marker-end="url(#head)"/>')
        self._reach(max(y for _, y in points))

    def line(self, *points: tuple[float, float]) -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline points="{path}" class="line"/>')
        self._reach(max(y for _, y in points))

    def svg(self) -> str:
        height = self.height + 12
        head = '<path d="M0 0 8 4 0 8z" class="head"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
            f'height="{height:g}" role="img" aria-labelledby="t d">\n<title id="t">{escape(self._title)}</title>\n'
            f'<desc id="d">{escape(self._description)}</desc>\n<style>{_style()}</style>\n'
            f'<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">{head}</marker>'
            f'</defs>\n<rect width="{WIDTH}" height="{height:g}" rx="8" class="back"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )


# -- What an output becomes ---------------------------------------------------------------------------------------

SAMPLE: Final = (
    "<think>\nA forecast: I have a tool.\n</think>\n\nLet me look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
)


def regions() -> str:
    """Return the regions of an output, and next to them the message."""
    parsed = OutputParser.named("hermes+qwen3").parse(SAMPLE, seed=1, spans=True)
    drawing = Drawing(
        "What a model wrote, and what a client gets",
        "The regions of a raw output in their colours, "
        "with an arrow to the message with reasoning, content and tool calls.",
    )
    drawing.text(24, 32, "what the model wrote", "strong")
    x, y = 24.0, 62
    for span in parsed.spans:
        for i, line in enumerate(SAMPLE[span.start : span.end].split("\n")):
            if i:
                x, y = 24.0, y + ROW
            if line:
                x = drawing.code(x, y, line, span.kind)
    drawing.arrow((505, 116), (545, 116))
    drawing.text(566, 32, "what a client gets", "strong")
    call = parsed.tool_calls[0].function
    rows = [
        ("reasoning", f'"reasoning": {json.dumps(parsed.reasoning)}'),
        ("content", f'"content": {json.dumps(parsed.content)}'),
        ("", '"tool_calls": [{"function": {'),
        ("name", f'    "name": {json.dumps(call.name)}'),
        ("arguments", f'    "arguments": {json.dumps(call.arguments)}'),
        ("", "}}]"),
        ("", f'"finish_reason": "{parsed.finish_reason}"'),
    ]
    for i, (kind, line) in enumerate(rows):
        drawing.code(566, 62 + ROW * i, line, kind)
    x = 24.0
    for kind in ("reasoning", "content", "name", "arguments", "markup"):
        x = drawing.code(x, 62 + ROW * 8.2, f" {kind} ", kind) + 10
    return drawing.svg()


# -- One output in time -------------------------------------------------------------------------------------------


def stream() -> str:
    """Return the pieces of an output, with what is held back after each, and the deltas."""
    parser = OutputParser.named("hermes")
    pieces = ["Sure", ". <tool", '_call>\n{"na', 'me": "f", "argu', 'ments": {"x"', ": 1}}\n</tool_ca", "ll>"]
    drawing = Drawing(
        "One output, piece by piece",
        "A table: each piece as it arrives, the text that the machine holds back after it, and what it emits.",
    )
    for x, head in ((24, "feed(piece)"), (250, "held back"), (480, "deltas")):
        drawing.text(x, 32, head, "strong")
    running = parser.stream(seed=1)
    received = ""
    for i, piece in enumerate([*pieces, None]):
        y = 64 + 28 * i
        deltas = running.finish("stop") if piece is None else running.feed(piece)
        if piece is None:
            drawing.code(24, y, "finish()")
        else:
            received += piece
            drawing.code(24, y, piece.replace("\n", "↵"), "box")
            found = running.snapshot
            if found is not None and found.why and found.decided is not None:
                drawing.code(250, y, received[found.decided :].replace("\n", "↵")[-26:], "held")
        x = 480.0
        for kind, text in _said(deltas):
            x = drawing.code(x, y, text, kind) + 8
        drawing.line((24, y + 10), (936, y + 10))
    return drawing.svg()


def _said(deltas: list[DeltaMessage]) -> Iterator[tuple[str, str]]:
    for delta in deltas:
        if delta.content:
            yield "content", f'content "{delta.content}"'
        for call in delta.tool_calls or ():
            if call.function.name:
                yield "name", f'call {call.index} name "{call.function.name}"'
            if call.function.arguments:
                yield "arguments", f"arguments {call.function.arguments}"


# -- One description per family -----------------------------------------------------------------------------------


def design() -> str:
    """Return the way from a chat template to messages."""
    drawing = Drawing(
        "One description of each model family",
        "A chat template, a name, a JSON file or a response "
        "template become a Format. Parser, grammar, renderer and certificate follow from it. The machine "
        "runs the compiled Format on text and token ids, and emits deltas.",
    )
    for i, name in enumerate(("chat template", "name", "FILE.json", "response template")):
        drawing.box(24, 24 + 46 * i, 160, 36, [name])
        drawing.line((184, 42 + 46 * i), (206, 42 + 46 * i), (206, 111))
    drawing.arrow((206, 111), (250, 111))
    drawing.box(250, 76, 150, 70, ["Format", "data, one per family"], "main")
    for i, (name, what) in enumerate(
        (("grammar", "for decoding engines"), ("renderer", "message to text"), ("certificate", "measured, not claimed"))
    ):
        drawing.box(480, 24 + 58 * i, 200, 48, [name, what])
        drawing.arrow((400, 111), (440, 111), (440, 48 + 58 * i), (480, 48 + 58 * i))
    drawing.arrow((325, 146), (325, 230))
    drawing.text(335, 194, "compiled", "small faint")
    drawing.box(24, 236, 190, 56, ["text and token ids", "in any pieces"])
    drawing.arrow((214, 264), (250, 264))
    drawing.box(250, 232, 150, 64, ["Machine", "no I/O, linear time"], "main")
    drawing.arrow((400, 264), (480, 264))
    drawing.box(480, 236, 200, 56, ["deltas, events, spans", "OpenAI-style messages"])
    for i, name in enumerate(("library", "gateway", "plugins", "batch")):
        drawing.box(770, 196 + 36 * i, 150, 30, [name])
        drawing.arrow((680, 264), (726, 264), (726, 211 + 36 * i), (770, 211 + 36 * i))
    return drawing.svg()


# -- The machine --------------------------------------------------------------------------------------------------


CORNERS: Final = ((380, 170), (380, 330), (40, 20), (720, 20), (720, 330), (40, 170), (40, 330))
"""Place of each mode's box, in the order of ``MODES``."""


def machine() -> str:
    """Return the modes of the machine and what may follow each of them."""
    drawing = Drawing(
        "The modes of the machine",
        "A box for each mode, with the reader that runs in it, and arrows "
        "to the modes that may follow. The page has them as a table as well.",
    )
    places = dict(zip(MODES, CORNERS, strict=True))
    width, height = 200, 62

    def centre(mode: int) -> tuple[float, float]:
        x, y = places[mode]
        return x + width / 2, y + height / 2

    pairs = {(mode, follower) for mode, (_, _, _, after) in MODES.items() for follower in after}
    for mode, follower in sorted(pairs):
        (x1, y1), (x2, y2) = centre(mode), centre(follower)
        both = (follower, mode) in pairs
        length = max(abs(x2 - x1) / (width / 2), abs(y2 - y1) / (height / 2))
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        # Two arrows between the same boxes are drawn next to each other.
        shift = (0.0, 0.0) if not both else ((12.0, 0.0) if abs(y2 - y1) > abs(x2 - x1) * 0.4 else (0.0, 9.0))
        side = 1 if mode < follower else -1
        sx, sy = shift[0] * side, shift[1] * side
        drawing.arrow((x1 + dx + sx, y1 + dy + sy), (x2 - dx + sx, y2 - dy + sy))
    for mode, (name, reader, _, _) in MODES.items():
        drawing.box(*places[mode], width, height, [name, reader], "main" if mode == 0 else "box")
    return drawing.svg()


# -- Policies -----------------------------------------------------------------------------------------------------

QUESTIONS: Final = (
    ("a marker", "spelled; quoted; white space", ("spelled_markers", "quoted_calls", "marker_white_space")),
    ("reasoning", "it holds a call; it never closes; its field", ("drafts", "unclosed_reasoning", "reasoning_field")),
    ("the name of a call", "nobody offered this tool; a second call", ("unknown_tools", "parallel_calls")),
    ("its arguments", "not JSON; not the schema", ("malformed_arguments", "repair", "strict")),
    ("its markup", "a part of it was dropped or read again", ("recovered_calls",)),
    ("the end", "cut inside a call; more text; a limit", ("cut_calls", "text_after_calls", "length_with_calls")),
    ("the whole", "outer white space; memory", ("outer_white_space", "max_held")),
)


def policies() -> str:
    """Return the places of an output at which each policy decides."""
    named = {name for _, _, names in QUESTIONS for name in names}
    missing = {field.name for field in fields(Policy)} ^ named
    if missing:
        raise ValueError(f"pictures.py: QUESTIONS and Policy differ in {sorted(missing)}")
    drawing = Drawing(
        "Where each policy decides",
        "The parts of an output in order, from a marker to the whole "
        "message, with the question at each part and the policies that answer it.",
    )
    for i, (part, question, names) in enumerate(QUESTIONS):
        y = 20 + 58 * i
        drawing.box(24, y, 190, 40, [part], "main")
        if i:
            drawing.arrow((119, y - 18), (119, y))
        drawing.text(240, y + 25, question, "faint")
        x = 560.0
        for name in names:
            x = drawing.code(x, y + 25, f" {name} ", "arguments") + 8
    return drawing.svg()


# -- The words for an output --------------------------------------------------------------------------------------


def glossary() -> str:
    """Return the end of a prompt and an output, with the words for their parts."""
    fmt = OutputParser.named("hermes+qwen3").format
    assert fmt.turn.start is not None
    assert fmt.turn.end is not None
    header, end = fmt.turn.start.text, fmt.turn.end.text
    rows: list[list[tuple[str, str, str]]] = [
        [(header, "box", "turn header, the end of the prompt")],
        [
            ("<think>", "markup", "opener"),
            ("↵A forecast: I have a tool.↵", "reasoning", "region: reasoning"),
            ("</think>", "markup", "closer"),
        ],
        [("Let me look.", "content", "region: content")],
        [
            ("<tool_call>", "markup", "opener"),
            ('{"name": "', "markup", ""),
            ("get_weather", "name", "name"),
            ('", "arguments": ', "markup", ""),
            ('{"city": "Paris"}', "arguments", "arguments"),
            ("}", "markup", ""),
            ("</tool_call>", "markup", "closer"),
        ],
        [(end, "markup", "end of the turn: a special token")],
    ]
    drawing = Drawing(
        "The words for the parts of an output",
        "The end of a prompt and an output in five rows, with "
        "a word under each part: turn header, opener, region, closer, name, arguments, end of the turn.",
    )
    for i, row in enumerate(rows):
        y = 36 + 58 * i
        x = 24.0
        for text, kind, word in row:
            after = drawing.code(x, y, text.replace("\n", "↵"), kind)
            if word:
                drawing.text(x, y + 22, word, "small faint")
            x = after + 2
    return drawing.svg()


# -- Templates, tokens --------------------------------------------------------------------------------------------


def templates() -> str:
    """Return the way from a chat template to a certificate."""
    drawing = Drawing(
        "From a chat template to a certificate",
        "The template renders pairs of conversations that "
        "differ in one property. The differences become a Format. New messages are rendered, parsed and "
        "compared; the result is the certificate.",
    )
    boxes = (
        ("chat template", "with every message"),
        ("render pairs", "one property differs"),
        ("compare", "what changed?"),
        ("Format", "markers and syntax"),
    )
    for i, lines in enumerate(boxes):
        drawing.box(24 + 240 * i, 24, 190, 60, lines, "main" if i in (0, 3) else "box")
        if i:
            drawing.arrow((24 + 240 * i - 50, 54), (24 + 240 * i, 54))
    checks = (
        ("certificate", "yes, no, failed"),
        ("compare", "the same message?"),
        ("parse", "with the Format"),
        ("render", "words that no probe had"),
    )
    drawing.arrow((839, 84), (839, 140))
    for i, lines in enumerate(checks):
        drawing.box(24 + 240 * i, 140, 190, 60, lines, "main" if i == 0 else "box")
        if i:
            drawing.arrow((24 + 240 * i, 170), (24 + 240 * i - 50, 170))
    return drawing.svg()


def tokens() -> str:
    """Return sampled tokens with the region of each."""
    raw = 'Hi\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call><|im_end|>'
    pieces = [
        "Hi",
        "\n",
        "<tool_call>",
        "\n",
        '{"',
        "name",
        '":',
        ' "',
        "f",
        '",',
        ' "',
        "arguments",
        '":',
        ' {"',
        "x",
        '":',
        " 1",
        "}",
        "}",
        "\n",
        "</tool_call>",
        "<|im_end|>",
    ]
    assert "".join(pieces) == raw
    parsed = OutputParser.named("hermes").parse(raw, spans=True)
    starts = [sum(map(len, pieces[:i])) for i in range(len(pieces))]
    drawing = Drawing(
        "Tokens and regions",
        "A row of tokens. Each has the colour of the region that its first "
        "character is in: content, markup, name, arguments.",
    )
    drawing.text(24, 30, "each sampled token is in one region: that of its first character", "strong")
    x, y = 24.0, 66
    for start, piece in zip(starts, pieces, strict=True):
        kind = next(span.kind for span in parsed.spans if span.start <= start < span.end)
        text = piece.replace("\n", "↵")
        if x + len(text) * CELL > 936:
            x, y = 24.0, y + 32
        x = drawing.code(x, y, text, kind) + 6
    x = 24.0
    for kind in ("content", "markup", "name", "arguments"):
        x = drawing.code(x, y + 44, f" {kind} ", kind) + 10
    return drawing.svg()


# -- The public suite ---------------------------------------------------------------------------------------------

_ROW: Final = re.compile(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \| \d+ \|$", re.MULTILINE)


def suite() -> str:
    """Return the figures of the public suite, as ``why.md`` has them."""
    rows = _ROW.findall((PICTURES.parent / "why.md").read_text("utf-8"))
    total = max(int(supported) for _, supported, _, _ in rows)
    drawing = Drawing(
        f"Outputs of the public suite that each parser reads, of {total}",
        "; ".join(f"{name}: {right} right, {nearly} but for white space" for name, _, right, nearly in rows),
    )
    drawing.text(24, 32, f"canitoolcall 0.1.1: right, of {total} outputs; paler: right but for white space", "strong")
    scale = 520 / total
    for i, (name, supported, right, nearly) in enumerate(rows):
        y = 64.0 + i * 30
        drawing.text(316, y, name.replace("`", ""), "small", "end")
        drawing.bar(328, y - 14, int(right) * scale, "content")
        drawing.bar(328 + int(right) * scale, y - 14, int(nearly) * scale, "box")
        less = "" if int(supported) == total else f" (supports {supported})"
        drawing.text(336 + (int(right) + int(nearly)) * scale, y, f"{right}{less}", "small")
    return drawing.svg()


DRAWN: Final[dict[str, Callable[[], str]]] = {
    "regions": regions,
    "stream": stream,
    "design": design,
    "machine": machine,
    "policies": policies,
    "glossary": glossary,
    "templates": templates,
    "tokens": tokens,
    "suite": suite,
}
"""Name of a file in ``pictures/`` → its drawing."""


def main() -> int:
    for name, draw in DRAWN.items():
        (PICTURES / f"{name}.svg").write_text(draw(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
