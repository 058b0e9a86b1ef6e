"""Compare the speed of two versions of untemplate.

    python -m benchmarks.compare BASE [NEW] [--quick] [--only TEXT] [--limit 1.05]

BASE and NEW are checkouts, or folders that contain the package; NEW is this checkout by default. Both run the same
streams and whole parses in processes of their own, in turns. The figure is the best CPU time of several rounds.
The ratio is NEW's time divided by BASE's: under 1 is faster.

Other work on the machine changes single ratios by some per cent, and geometric means over many streams by about one.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .streams import FAMILIES, Message, Stream, every
from .worker import ROOT, Worker, WorkerError

QUICK = ("hermes", "qwen3_coder", "deepseek_v32", "gpt-oss", "gemma4", "pythonic")
LONG = 65_536

DOUBTFUL, AGAIN = 0.08, 3
"""A larger difference is measured again, up to this many times: mostly another process was running."""


@dataclass(frozen=True)
class Result:
    """The best CPU seconds of both versions on one stream."""

    stream: Stream
    base: float
    new: float

    @property
    def ratio(self) -> float:
        return self.new / self.base


def source_folder(path: Path) -> Path:
    """Return the folder to import from: `src` of a checkout, or the folder itself.

    Raises:
        SystemExit: neither holds the package.
    """
    for folder in (path / "src", path):
        if (folder / "untemplate" / "__init__.py").is_file():
            return folder.resolve()
    raise SystemExit(f"{path}: no untemplate package in it, nor in its src folder")


def geometric_mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.exp(statistics.fmean(map(math.log, found))) if found else math.nan


def answer(worker: Worker, stream: Stream, candidate: int = 0) -> Message:
    parsed = worker.ask("parse", candidate=candidate)
    return Message.build(parsed["reasoning"], parsed["content"], parsed["calls"])


def best_of(ask: Sequence[Callable[[], float]], rounds: int) -> list[float]:
    """Return the smallest value of each function. They are called in turns and in alternating order."""
    best = [math.inf] * len(ask)
    order = list(range(len(ask)))
    for _ in range(rounds):
        for index in order:
            best[index] = min(best[index], ask[index]())
        order.reverse()
    return best


def compared(stream: Stream, workers: Sequence[Worker], rounds: int, seconds: float) -> Result | str:
    """Return the times of both versions, or the reason why an answer is wrong."""
    data = stream.to_json()
    for label, worker in zip(("BASE", "NEW"), workers, strict=True):
        try:
            worker.ask("load", stream=data)
            if not answer(worker, stream).same_as(stream.expected):
                return f"{stream.name}: {label} parses it into another message"
        except WorkerError as error:
            return f"{stream.name}: {label} failed: {error}"

    def timer(worker: Worker) -> Callable[[], float]:
        return lambda: float(worker.ask("time", candidate=0, seconds=seconds))

    timers = [timer(worker) for worker in workers]
    best = best_of(timers, rounds)
    for _ in range(AGAIN):
        if abs(best[1] / best[0] - 1) < DOUBTFUL:
            break
        best = [min(pair) for pair in zip(best, best_of(timers, rounds), strict=True)]
    return Result(stream, *best)


def streams(quick: bool, only: str) -> list[Stream]:
    """Return the streams to run: short ones in all formats, long whole outputs in a few."""
    some = {name: FAMILIES[name] for name in QUICK}
    found = every(some if quick else FAMILIES)
    found += every(some, ("plain", "long argument"), size=LONG, ways=("whole", "whole ids"))
    return [stream for stream in found if only in label(stream)]


def label(stream: Stream) -> str:
    long = sum(len(text) for text, _ in stream.deltas) > LONG // 2
    return stream.name + (", 64 KB" if long else "")


def table(results: Sequence[Result]) -> str:
    """Return the ratios in groups: by shape, by way to cut, and in total."""
    lines = []

    def group(title: str, key: Callable[[Result], str]) -> None:
        names = dict.fromkeys(map(key, results))
        for name in names:
            ratios = [result.ratio for result in results if key(result) == name]
            mean, low, high = geometric_mean(ratios), min(ratios), max(ratios)
            lines.append(f"{title:6} {name:22} {len(ratios):4} {mean:8.3f} {low:8.3f} {high:8.3f}")

    lines.append(f"{'geometric mean of NEW / BASE':29} {'n':>4} {'mean':>8} {'least':>8} {'most':>8}")
    group("shape", lambda result: result.stream.shape)
    group("way", lambda result: result.stream.way)
    group("format", lambda result: result.stream.format)
    group("all", lambda result: "streams")
    return "\n".join(lines)


def run(arguments: argparse.Namespace, write: Callable[[str], Any] = print) -> int:
    folders = [source_folder(Path(path)) for path in (arguments.base, arguments.new)]
    chosen = streams(arguments.quick, arguments.only)
    workers = [Worker("benchmarks.adapter", folder=folder) for folder in folders]
    with workers[0] as base, workers[1] as new:
        for folder, worker in zip(folders, workers, strict=True):
            file = Path(worker.ask("version")["file"]).resolve()
            if folder not in file.parents:
                raise SystemExit(f"{folder}: another untemplate was imported instead, from {file.parent}")
        write(f"{'stream':46} {'BASE µs':>10} {'NEW µs':>10} {'ratio':>7}   (per delta; whole parses: per parse)")
        results: list[Result] = []
        wrong: list[str] = []
        for stream in chosen:
            outcome = compared(stream, (base, new), arguments.rounds, arguments.seconds)
            if isinstance(outcome, str):
                wrong.append(outcome)
                write(outcome)
                continue
            results.append(outcome)
            each = 1e6 / len(stream.deltas)
            figures = f"{outcome.base * each:10.2f} {outcome.new * each:10.2f} {outcome.ratio:7.3f}"
            write(f"{label(stream):46} {figures}")
    if results:
        write("")
        write(table(results))
    if wrong:
        write(f"\n{len(wrong)} streams were not timed because an answer is wrong:")
        for line in wrong:
            write("  " + line)
    mean = geometric_mean(result.ratio for result in results)
    if arguments.limit and mean > arguments.limit:
        write(f"\nNEW is slower than allowed: {mean:.3f} is over {arguments.limit}")
        return 1
    return 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", metavar="BASE", help="checkout to compare with")
    parser.add_argument("new", metavar="NEW", nargs="?", default=str(ROOT), help="checkout to judge (default: this)")
    parser.add_argument("--quick", action="store_true", help="six formats instead of all")
    parser.add_argument("--only", default="", metavar="TEXT", help="streams whose name contains this text")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each version, in turns (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.01, help="least CPU time of one measurement (default: 0.01)")
    parser.add_argument("--limit", type=float, help="fail if the geometric mean of all ratios is over this")
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
