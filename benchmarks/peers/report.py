"""Tables and charts of a run, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

from benchmarks.compare import geometric_mean

from .chart import line_chart
from .measure import TOO_LONG, Results, Row

BEGIN = "<!-- measured: written by benchmarks/peers -->"
END = "<!-- measured: end -->"
GROWTH_BEGIN = "<!-- growth: written by benchmarks/peers -->"
GROWTH_END = "<!-- growth: end -->"
DOOR_BEGIN = "<!-- inside {}: written by benchmarks/peers -->"
DOOR_END = "<!-- inside {}: end -->"


def machine() -> str:
    """Return the kind of machine: cores, processor and Python. The name of the host is left out."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def table(rows: Sequence[Row], title: str, key: Callable[[Row], str]) -> list[str]:
    """Return a Markdown table of the ratios, grouped by a key."""
    lines = [f"| {title} | streams | geometric mean | median | least | most | slower than the peer |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in sorted(set(map(key, rows))):
        ratios = [row.ratio for row in rows if key(row) == name]
        slower = sum(ratio < 1 for ratio in ratios)
        figures = (geometric_mean(ratios), statistics.median(ratios), min(ratios), max(ratios))
        cells = " | ".join(f"{figure:.2f}" for figure in figures)
        lines.append(f"| {name} | {len(ratios)} | {cells} | {slower} |")
    return lines


def slower(rows: Iterable[Row]) -> list[str]:
    """Return a Markdown list of the streams on which a peer is faster, the worst first."""
    found = sorted((row for row in rows if row.ratio < 1), key=lambda row: row.ratio)
    if not found:
        return ["None."]
    lines = ["| stream | peer's parser | untemplate, µs | peer, µs | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    for row in found:
        figures = f"{row.ours * 1e6:.0f} | {row.theirs * 1e6:.0f} | {row.ratio:.2f}"
        lines.append(f"| {row.name} | {row.kind}{': ' * bool(row.parser)}{row.parser} | {figures} |")
    return lines


def not_timed(wrong: dict[str, list[str]]) -> list[str]:
    """Return a Markdown table of the streams that a peer parses wrongly, grouped by format and shape."""
    lines = ["| peer | format | shapes (ways) |", "| --- | --- | --- |"]
    for peer, entries in wrong.items():
        groups: dict[str, Counter[str]] = {}
        for entry in entries:
            name = entry.partition(":")[0]
            format, shape, _ = name.split(" / ")
            groups.setdefault(format, Counter())[shape] += 1
        for format, shapes in groups.items():
            lines.append(f"| {peer} | {format} | {', '.join(f'{shape} ({n})' for shape, n in shapes.items())} |")
    return lines if wrong else ["None."]


LINES = ("untemplate, ids", "untemplate, text")
"""Lines of the charts, before the kinds of parsers; each has the same colour in every chart."""


def growth_charts(results: Results) -> dict[str, str]:
    """Return SVG texts by name: CPU time per delta while a long argument grows."""
    rows = results.growth
    kinds = [*LINES, *sorted({row.kind for row in rows})]
    charts = {}
    for format in dict.fromkeys(row.format for row in rows):
        found: dict[str, dict[float, float]] = {kind: {} for kind in kinds}
        for row in rows:
            if row.format == format:
                found[row.kind][row.deltas] = row.theirs / row.deltas * 1e6
                ours = found[LINES[0] if row.way == "ids" else LINES[1]]
                ours[row.deltas] = min(ours.get(row.deltas, math.inf), row.ours / row.deltas * 1e6)
        charts[f"growth-{format}.svg"] = line_chart(
            f"{format}: one long argument, one token per delta",
            "Lines: CPU time per delta of each parser, over the number of deltas.",
            "deltas",
            "µs of CPU time per delta",
            {kind: sorted(points.items()) for kind, points in found.items()},
            [f"{date.today().isoformat()}: {_versions(results)}", machine()],
        )
    return charts


def growth_markdown(results: Results, charts: Iterable[str]) -> str:
    """Return the generated part of docs/benchmarks.md with the growth curves."""
    lines = [
        f"Measured on {date.today().isoformat()}: {_versions(results)}; {machine()}.",
        "",
        "CPU time per delta while one string argument grows. Both axes are logarithmic. A line ends where one stream",
        f"takes the parser more than {TOO_LONG:g} s, or where its answer is wrong. The table has the shortest stream",
        "of each parser and its longest.",
        "",
    ]
    for name in charts:
        lines += [f"![CPU time per delta, {name[7:-4]}](pictures/{name})", ""]
    lines += ["| format | parser | µs per delta | of so many | µs per delta | of so many | growth |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    lines += _growth_table(results.growth)
    return "\n".join(lines) + "\n"


def _growth_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a row for each parser: the figures of its shortest and its longest stream."""
    series: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        ours = series.setdefault((row.format, LINES[0] if row.way == "ids" else LINES[1]), {})
        ours[row.deltas] = min(ours.get(row.deltas, math.inf), row.ours)
        series.setdefault((row.format, row.kind), {})[row.deltas] = row.theirs
    formats = list(dict.fromkeys(row.format for row in rows))
    for (format, name), points in sorted(series.items(), key=lambda item: formats.index(item[0][0])):
        (few, first), (many, last) = min(points.items()), max(points.items())
        first, last = first / few * 1e6, last / many * 1e6
        yield f"| {format} | {name} | {first:.2f} | {few:,} | {last:.2f} | {many:,} | ×{last / first:.1f} |"


def _versions(results: Results) -> str:
    return ", ".join(f"{name} {version}" for name, version in results.versions.items())


def markdown(results: Results) -> str:
    """Return the generated part of docs/benchmarks.md with the ratios."""
    lines = [f"Measured on {date.today().isoformat()}: {_versions(results)}; {machine()}."]
    if results.missing:
        lines += ["", f"Not measured, because not installed: {', '.join(results.missing)}."]
    lines += ["", "### Ratios", ""]
    lines += table(results.rows, "peer", lambda row: row.kind)
    lines += ["", "By the way the output is cut:", ""]
    lines += table(results.rows, "peer, way", lambda row: f"{row.kind}; {row.way}")
    lines += ["", "By shape:", ""]
    lines += table(results.rows, "peer, shape", lambda row: f"{row.kind}; {row.shape}")
    if results.setup:
        lines += ["", "### The parser object of a request", ""]
        lines += ["Time to make it, not part of the other figures. untemplate's is `OutputParser.stream`.", ""]
        lines += table(results.setup, "peer", lambda row: row.kind)
    lines += ["", "### Streams on which a peer is faster", ""]
    lines += slower(results.rows)
    lines += ["", "### Streams that were not timed", ""]
    lines += ["The peer did not return the message that the output means, or failed.", ""]
    lines += not_timed(results.wrong)
    return "\n".join(lines) + "\n"


def write_page(page: Path, results: Results) -> None:
    """Replace the generated parts of a page for which there are results, and write the charts into `pictures`."""
    text = page.read_text("utf-8")
    if results.rows:
        text = _replaced(text, BEGIN, END, markdown(results))
    if results.growth:
        charts = growth_charts(results)
        text = _replaced(text, GROWTH_BEGIN, GROWTH_END, growth_markdown(results, charts))
        for name, chart in charts.items():
            (page.parent / "pictures" / name).write_text(chart, "utf-8")
    for peer, made in results.doors.items():
        text = _replaced(text, DOOR_BEGIN.format(peer), DOOR_END.format(peer), made)
    page.write_text(text, "utf-8")


def _replaced(text: str, begin: str, end: str, made: str) -> str:
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page needs the lines {begin} and {end}")
    return f"{head}{begin}\n\n{made}\n{end}{tail}"
