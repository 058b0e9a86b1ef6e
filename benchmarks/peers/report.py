"""Tables and charts of a run, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path

from benchmarks.compare import geometric_mean

from .chart import line_chart
from .measure import Results, Row

BEGIN = "<!-- measured: written by benchmarks/peers -->"
END = "<!-- measured: end -->"


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


def growth_charts(rows: Sequence[Row]) -> dict[str, str]:
    """Return SVG texts by name: CPU time per delta while a long argument grows."""
    charts = {}
    for format in dict.fromkeys(row.format for row in rows):
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if row.format != format:
                continue
            ours = f"untemplate, {'ids' if row.way == 'ids' else 'text'}"
            lines.setdefault(row.kind, []).append((row.deltas, row.theirs / row.deltas * 1e6))
            if (row.deltas, row.way) not in {(x, ours) for x, _ in lines.get(ours, [])}:
                lines.setdefault(ours, []).append((row.deltas, row.ours / row.deltas * 1e6))
        title = f"{format}: one long argument, one token per delta"
        drawn = {name: sorted(dict(points).items()) for name, points in sorted(lines.items())}
        charts[f"growth-{format}.svg"] = line_chart(title, "deltas", "µs of CPU time per delta", drawn)
    return charts


def markdown(results: Results, charts: Iterable[str]) -> str:
    """Return the generated part of docs/benchmarks.md."""
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    lines = [f"Measured on {date.today().isoformat()}: {versions}; {machine()}."]
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
    if results.growth:
        lines += ["", "### Growth", ""]
        lines += ["CPU time per delta while one string argument grows; both axes are logarithmic.", ""]
        lines += [f"![{name.removesuffix('.svg')}]({name})" for name in charts]
    return "\n".join(lines) + "\n"


def write_page(page: Path, results: Results) -> None:
    """Replace the generated part of a page, and write the charts next to it."""
    charts = growth_charts(results.growth)
    text = page.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    page.write_text(f"{head}{BEGIN}\n\n{markdown(results, charts)}\n{END}{tail}", "utf-8")
    for name, chart in charts.items():
        (page.parent / name).write_text(chart, "utf-8")
