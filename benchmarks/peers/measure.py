"""Measure untemplate and other projects' parsers, stream by stream.

A peer is a project with an adapter in this folder and an environment of its own in build/peers. Only streams that a
peer parses correctly are timed. If it offers several configurations for a stream, the first correct one is timed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.compare import answer, best_of
from benchmarks.streams import FAMILIES, Stream, every, make, written
from benchmarks.worker import ROOT, Worker, WorkerError

PEERS = {"vllm": "vLLM", "sglang": "SGLang", "transformers": "transformers", "mlx_lm": "mlx-lm"}
"""Names of the adapters and environments → names of the projects."""

GROWTH = ("hermes", "qwen3_coder", "deepseek_v31")
SIZES = (1_024, 4_096, 16_384, 65_536, 262_144)
"""Characters of the argument; a token has about four."""


@dataclass(frozen=True)
class Row:
    """CPU seconds of untemplate and of one parser on one stream."""

    format: str
    shape: str
    way: str
    deltas: int
    kind: str
    parser: str
    ours: float
    theirs: float
    candidate: int = 0

    @property
    def ratio(self) -> float:
        """The peer's time divided by untemplate's."""
        return self.theirs / self.ours

    @property
    def name(self) -> str:
        return f"{self.format} / {self.shape} / {self.way}"


@dataclass
class Results:
    """All results of one run."""

    versions: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    growth: list[Row] = field(default_factory=list)
    setup: list[Row] = field(default_factory=list)
    doors: dict[str, str] = field(default_factory=dict)
    """Name of a peer → the Markdown table of untemplate inside its server."""

    def add(self, other: Results) -> None:
        """Add the results of another run, for other peers or streams."""
        self.versions |= other.versions
        self.missing += [peer for peer in other.missing if peer not in self.missing]
        self.rows += other.rows
        for peer, entries in other.wrong.items():
            self.wrong.setdefault(peer, []).extend(entries)
        self.growth += other.growth
        self.setup += other.setup
        self.doors |= other.doors

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Results:
        rows, growth, setup = ([Row(**row) for row in data[key]] for key in ("rows", "growth", "setup"))
        return cls(data["versions"], data["missing"], rows, data["wrong"], growth, setup, data.get("doors", {}))


def environment(peer: str) -> Path:
    """Return the path of Python in a peer's environment, even if it does not exist."""
    return ROOT / "build" / "peers" / peer / "bin" / "python"


def right_candidates(worker: Worker, stream: Stream) -> tuple[list[tuple[int, dict[str, str]]], str]:
    """Return the first correct candidate of each kind as (index, description), and the reason if there is none."""
    offered = worker.ask("load", stream=stream.to_json())
    found: dict[str, tuple[int, dict[str, str]]] = {}
    reason = "" if not offered else "another message"
    for index, candidate in enumerate(offered):
        if candidate["kind"] in found:
            continue
        try:
            if answer(worker, stream, index).same_as(stream.expected):
                found[candidate["kind"]] = (index, candidate)
        except WorkerError as error:
            reason = str(error)
            if "process ended" in reason:  # and its loaded candidates are lost
                break
    return list(found.values()), reason


def measure(stream: Stream, ours: Worker, theirs: Worker, rounds: int, seconds: float) -> tuple[list[Row], str]:
    """Return a row for each correct parser of a peer, or the reason why there is none."""
    try:
        candidates, reason = right_candidates(theirs, stream)
    except WorkerError as error:
        return [], str(error)
    if not candidates:
        return [], reason
    ours.ask("load", stream=stream.to_json())
    if not answer(ours, stream).same_as(stream.expected):
        raise WorkerError(f"{stream.name}: untemplate parses it into another message")
    rows = []
    for index, candidate in candidates:
        mine, other = best_of([_timer(ours, 0, seconds), _timer(theirs, index, seconds)], rounds)
        row = Row(
            stream.format,
            stream.shape,
            stream.way,
            len(stream.deltas),
            candidate["kind"],
            candidate["name"],
            mine,
            other,
            index,
        )
        rows.append(row)
    return rows, ""


def set_up(row: Row, ours: Worker, theirs: Worker, seconds: float) -> Row:
    """Return the row with the cost of making a request's parser object, for the parsers of a row that was just
    measured."""
    mine = float(ours.ask("prepare", candidate=0, seconds=seconds))
    other = float(theirs.ask("prepare", candidate=row.candidate, seconds=seconds))
    return replace(row, ours=mine, theirs=other)


def _timer(worker: Worker, candidate: int, seconds: float) -> Callable[[], float]:
    return lambda: float(worker.ask("time", candidate=candidate, seconds=seconds))


def streams(only: str = "", size: int = 1_024) -> list[Stream]:
    """Return all streams whose name contains a text, shuffled so that a drift of the machine affects all groups."""
    found = [stream for stream in [*every(size=size), *written(size=size)] if only in stream.name]
    random.Random(0).shuffle(found)
    return found


def growing() -> list[list[Stream]]:
    """Return lists of streams with one long argument; in each list, the argument grows."""
    return [
        [stream for size in SIZES for stream in make(name, FAMILIES[name], "long argument", size=size, ways=(way,))]
        for name in GROWTH
        for way in ("text", "ids")
    ]


def run(
    peers: Iterable[str],
    chosen: Sequence[Stream],
    growth: Sequence[Sequence[Stream]],
    *,
    rounds: int,
    seconds: float,
    write: Callable[[str], Any] = print,
    start: Callable[[str], Worker] | None = None,
    results: Results | None = None,
    folder: Path = ROOT / "src",
) -> Results:
    """Return the CPU times of all installed peers and untemplate for the streams, and fill `results` meanwhile.

    `folder` holds the build of untemplate that is measured.
    """
    results = Results() if results is None else results
    ours = Worker("benchmarks.adapter", folder=folder)
    with ours:
        results.versions["untemplate"] = ours.ask("version")["version"]
        for peer in peers:
            if start is None and not environment(peer).is_file():
                results.missing.append(PEERS[peer])
                write(f"{PEERS[peer]}: not installed, left out (`make bench-peers-install`)")
                continue
            theirs = (start or _start)(peer)
            with theirs:
                _run_peer(peer, ours, theirs, chosen, growth, results, rounds, seconds, write)
    return results


def _start(peer: str) -> Worker:
    return Worker(f"benchmarks.peers.{peer}", python=str(environment(peer)))


def _run_peer(
    peer: str,
    ours: Worker,
    theirs: Worker,
    chosen: Sequence[Stream],
    growth: Sequence[Sequence[Stream]],
    results: Results,
    rounds: int,
    seconds: float,
    write: Callable[[str], Any],
) -> None:
    try:
        results.versions[PEERS.get(peer, peer)] = theirs.ask("version")["version"]
    except WorkerError as error:
        results.missing.append(PEERS.get(peer, peer))
        write(f"{PEERS.get(peer, peer)}: does not start, left out: {error}")
        return
    for series in growth:
        _run_growth(series, ours, theirs, results, rounds, seconds, write)
    for stream in chosen:
        rows, reason = measure(stream, ours, theirs, rounds, seconds)
        results.rows += rows
        if stream.shape == "one call" and stream.way in ("text", "ids"):
            results.setup += [set_up(row, ours, theirs, seconds) for row in rows]
        for row in rows:
            write(f"{row.kind:14} {row.name:40} {row.ours * 1e6:10.1f} {row.theirs * 1e6:11.1f} µs {row.ratio:8.2f}")
        if reason:
            results.wrong.setdefault(PEERS.get(peer, peer), []).append(f"{stream.name}: {reason}")
            write(f"{peer:14} {stream.name:40} not timed: {reason}")


def _run_growth(
    series: Sequence[Stream],
    ours: Worker,
    theirs: Worker,
    results: Results,
    rounds: int,
    seconds: float,
    write: Callable[[str], Any],
) -> None:
    """Measure streams of growing size until the peer is wrong, or too slow for the next one."""
    for stream in series:
        rows, _ = measure(stream, ours, theirs, min(2, rounds), seconds)
        results.growth += rows
        for row in rows:
            write(f"{row.kind:14} {row.name:40} {row.deltas:6} deltas {row.ratio:8.2f}")
        if not rows or any(row.theirs > TOO_LONG for row in rows):
            break


TOO_LONG = 1.5
"""CPU seconds of one stream after which a peer gets no longer one."""
