"""Line charts on logarithmic axes, as SVG text that follows the light or dark colours of the reader's system."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 48, 90
COLOURS = (
    ("#0b7a53", "#3ddc97"),
    ("#6a9a00", "#b6e34a"),
    ("#c0392b", "#ff8a7a"),
    ("#2c5aa0", "#7db4ff"),
    ("#946800", "#f0c050"),
    ("#6b4c9a", "#c4a3ff"),
    ("#00727a", "#5fd4dc"),
    ("#b5307b", "#ff8fcb"),
)
"""(light, dark) of the lines."""

PAGE = (
    {"back": "#ffffff", "front": "#1c1e21", "grid": "#dcdfe4"},
    {"back": "#16181d", "front": "#e4e6ea", "grid": "#3a3f48"},
)

Points = Sequence[tuple[float, float]]


def _style() -> str:
    def rules(column: int) -> str:
        page = PAGE[column]
        lines = "".join(f".c{i}{{fill:{pair[column]};stroke:{pair[column]}}}" for i, pair in enumerate(COLOURS))
        grid = f".grid{{stroke:{page['grid']}}}"
        return f".back{{fill:{page['back']}}}text{{fill:{page['front']}}}{grid}{lines}"

    return (
        f"text{{font:12px system-ui,sans-serif}}.title{{font-size:15px;font-weight:700}}.small{{font-size:11px}}"
        f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}.curve{{fill:none;stroke-width:2}}"
    )


def _span(values: Sequence[float], base: float) -> tuple[float, float]:
    """Return the logarithms of the whole powers of `base` around the values."""
    low = math.floor(math.log(min(values), base) + 1e-9)
    high = math.ceil(math.log(max(values), base) - 1e-9)
    return low, max(high, low + 1)


def line_chart(
    title: str, description: str, x_title: str, y_title: str, lines: Mapping[str, Points], notes: Sequence[str] = ()
) -> str:
    """Return a chart of named lines, with notes below. x is drawn in powers of four, y in powers of ten; all values are
    positive. The names are listed in the order in which the lines end, from the top. A line without points is left out,
    but has its colour."""
    colours = {name: f"c{number % len(COLOURS)}" for number, name in enumerate(lines)}
    lines = {name: points for name, points in lines.items() if points}
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    (x_low, x_high), (y_low, y_high) = _span(xs, 4), _span(ys, 10)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def at_x(x: float) -> float:
        return LEFT + (math.log(x, 4) - x_low) / (x_high - x_low) * (right - LEFT)

    def at_y(y: float) -> float:
        return bottom - (math.log10(y) - y_low) / (y_high - y_low) * (bottom - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(description)}</desc>',
        f"<style>{_style()}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="back"/>',
        f'<text x="{LEFT}" y="26" class="title">{escape(title)}</text>',
    ]
    for power in range(int(y_low), int(y_high) + 1):
        y = at_y(10.0**power)
        parts.append(f'<polyline points="{LEFT},{y:.1f} {right},{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for power in range(int(x_low), int(x_high) + 1):
        x = at_x(4.0**power)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{4**power:,}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2:g}" y="{bottom + 36}" text-anchor="middle">{escape(x_title)}</text>')
    middle = (TOP + bottom) / 2
    turned = f'text-anchor="middle" transform="rotate(-90 16 {middle:g})"'
    parts.append(f'<text x="16" y="{middle:g}" {turned}>{escape(y_title)}</text>')
    for name, points in lines.items():
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" class="{colours[name]} curve"/>')
        parts += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" class="{colours[name]}"/>' for x, y in points]
    for number, name in enumerate(sorted(lines, key=lambda name: -lines[name][-1][1])):
        y = TOP + 12 + number * 20
        parts.append(f'<rect x="{right + 16}" y="{y - 9}" width="10" height="10" class="{colours[name]}"/>')
        parts.append(f'<text x="{right + 32}" y="{y}">{escape(name)}</text>')
    for number, note in enumerate(notes):
        parts.append(f'<text x="{LEFT}" y="{bottom + 60 + 16 * number}" class="small">{escape(note)}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
