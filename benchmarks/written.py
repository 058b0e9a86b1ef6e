"""What text that models write costs, as multiples of prose, as a Markdown table.

    python -m benchmarks.written [--base FOLDER] [--new FOLDER] [--way ids]

Each stream has one token per delta. Both versions are processes of their own and take turns; the least CPU time of
several rounds counts. A shape next to an argument's name holds the markup of one call as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .compare import best_of, source_folder
from .streams import Stream, written
from .worker import ROOT, Worker

SIZE = 4_096
ROUNDS = 7


def table(rows: Sequence[tuple[str, str, list[float]]], versions: Sequence[str]) -> str:
    """Return the table. Rows are (format, shape, seconds per delta of each version), prose first in each format."""
    titles = " | ".join(f"{version}, µs | × prose" for version in versions)
    lines = [f"| format | text | {titles} |", f"| --- | --- |{' ---: | ---: |' * len(versions)}"]
    prose: list[float] = []
    for format, shape, seconds in rows:
        prose = seconds if shape == "prose" else prose
        cells = " | ".join(f"{cost * 1e6:.2f} | {cost / base:.2f}" for cost, base in zip(seconds, prose, strict=True))
        lines.append(f"| {format} | {shape} | {cells} |")
    return "\n".join(lines)


def measured(workers: Sequence[Worker], stream: Stream) -> list[float]:
    """Return the CPU seconds per delta of each version."""
    for worker in workers:
        worker.ask("load", stream=stream.to_json())

    def timer(worker: Worker) -> Callable[[], float]:
        return lambda: float(worker.ask("time", candidate=0, seconds=0.01))

    return [least / len(stream.deltas) for least in best_of([timer(worker) for worker in workers], ROUNDS)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.written", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", type=Path, help="another checkout or build, which comes first")
    parser.add_argument("--new", type=Path, default=ROOT, help="the checkout or build to measure (default: this one)")
    parser.add_argument("--way", choices=("text", "ids"), default="text", help="text only, or with an id a token")
    chosen = parser.parse_args(arguments)
    folders = [chosen.new] if chosen.base is None else [chosen.base, chosen.new]
    workers = [Worker("benchmarks.adapter", folder=source_folder(folder)) for folder in folders]
    try:
        rows = [(s.format, s.shape, measured(workers, s)) for s in written(size=SIZE, ways=(chosen.way,))]
    finally:
        for worker in workers:
            worker.close()
    print(table(rows, [str(folder) for folder in folders] if chosen.base else ["this checkout"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
