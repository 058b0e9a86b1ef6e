"""Line charts on logarithmic axes, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = ("#0b6e4f", "#c0392b", "#2c5aa0", "#b8860b", "#6b4c9a", "#555555")

Points = Sequence[tuple[float, float]]


def _span(values: Sequence[float], base: float) -> tuple[float, float]:
    """Return the logarithms of the whole powers of `base` around the values."""
    low = math.floor(math.log(min(values), base) + 1e-9)
    high = math.ceil(math.log(max(values), base) - 1e-9)
    return low, max(high, low + 1)


def line_chart(title: str, x_title: str, y_title: str, lines: Mapping[str, Points]) -> str:
    """Return a chart of named lines. x is drawn in powers of four, y in powers of ten; all values are positive."""
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    (x_low, x_high), (y_low, y_high) = _span(xs, 4), _span(ys, 10)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def at_x(x: float) -> float:
        return LEFT + (math.log(x, 4) - x_low) / (x_high - x_low) * (right - LEFT)

    def at_y(y: float) -> float:
        return bottom - (math.log10(y) - y_low) / (y_high - y_low) * (bottom - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
    ]
    for power in range(int(y_low), int(y_high) + 1):
        y = at_y(10.0**power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for power in range(int(x_low), int(x_high) + 1):
        x = at_x(4.0**power)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{4**power:,}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_title)}</text>')
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{escape(y_title)}</text>'
    )
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = TOP + 12 + number * 20
        parts.append(f'<rect x="{right + 16}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{right + 32}" y="{y}">{escape(name)}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
