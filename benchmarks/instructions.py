"""Count the instructions that a fixed set of streams and ways in takes, and compare them with recorded figures.

    python -m benchmarks.instructions [--update]

Times depend on other work on the machine; counts hardly do. They come from valgrind's callgrind if it is installed
(machine instructions), otherwise from Python's tracing (bytecode instructions, without those of built-in functions).
Figures are valid for one version of Python; with another one nothing is compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_name("instructions.json")
LIMIT = 5
"""Largest allowed rise of one figure, in per cent."""

SIZE = 1_024
CHOSEN: dict[tuple[str, str], tuple[str, ...]] = {
    ("hermes", "plain"): ("text", "ids", "several ids", "whole", "whole ids"),
    ("hermes", "reasoning"): ("text", "ids"),
    ("hermes", "long argument"): ("text", "ids", "whole ids"),
    ("hermes", "20 calls"): ("ids", "whole"),
    ("qwen3_coder", "long argument"): ("text", "ids"),
    ("qwen3_coder", "20 calls"): ("several ids",),
    ("gpt-oss", "mixed"): ("ids",),
    ("gemma4", "mixed"): ("ids", "whole"),
    ("pythonic", "one call"): ("text", "whole"),
    **{
        ("hermes", shape): ("text",)
        for shape in ("trailing spaces", "inline code", "fence", "list", "lines", "numbers")
    },
    ("minimax_m2", "signs"): ("text", "ids"),
    ("qwen3_coder", "signs argument"): ("text", "ids"),
}
"""Formats and shapes → the ways to cut them."""

WARM = 3
"""Runs before the one that counts: caches fill, and the interpreter specializes its code."""


NAMES = ("stream, collected", "parse_streaming", "parse_delta", "batch, a row", "gateway, whole", "gateway, streamed")
"""The ways in (`doors`), which take one answer each."""


def chosen() -> list[dict[str, Any]]:
    from .streams import FAMILIES, make

    return [
        {**stream.to_json(), "name": stream.name}
        for (format, shape), ways in CHOSEN.items()
        for stream in make(format, FAMILIES[format], shape, size=SIZE, ways=ways)
    ]


# -- In the process that is counted -------------------------------------------------------------------------------


def run_streams(streams: Sequence[dict[str, Any]], around: Callable[[Callable[[], object]], object]) -> None:
    """Parse each stream several times, the last time inside `around`."""
    from . import adapter

    gc.disable()  # off for the rest of this process: a collection could happen anywhere
    for data in streams:
        stream = {key: value for key, value in data.items() if key != "name"}
        (candidate,) = adapter.candidates(stream)
        for _ in range(WARM):
            candidate.prepare()(None)
        run = candidate.prepare()
        around(lambda run=run: run(None))  # type: ignore[misc]


def run_doors(around: Callable[[Callable[[], object]], object]) -> None:
    """Send an answer through each way in several times, the last time inside `around`."""
    from . import doors

    gc.disable()
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        for prepare in doors.every(loop).values():
            for _ in range(WARM):
                prepare()()
            around(prepare())


def mark(work: Callable[[], object]) -> None:
    """Do the work between two calls of `getppid`, at which callgrind writes its counters and resets them."""
    os.getppid()
    work()
    os.getppid()


def opcodes(work: Callable[[], object]) -> int:
    """Return the number of bytecode instructions that the work takes in this thread."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


# -- Counters -----------------------------------------------------------------------------------------------------


def _environment() -> dict[str, str]:
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "gateway/src"))
    return {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": path}


def by_callgrind(streams: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return machine instructions by stream and way in.

    Raises:
        RuntimeError: callgrind failed, or wrote other dumps than expected.
    """
    with tempfile.TemporaryDirectory() as folder:
        work, out = Path(folder, "streams.json"), Path(folder, "out")
        work.write_text(json.dumps(list(streams)), "utf-8")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-before=getppid"]
        child = [sys.executable, "-m", "benchmarks.instructions", "--child", str(work)]
        done = subprocess.run(
            command + child, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"callgrind failed:\n{done.stderr[-2000:]}")
        dumps = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        totals = [_total(path) for path in dumps]
        # The first dump is the start; then a stream's work and the gap after it take turns; the last dump is the end.
        names = [*(stream["name"] for stream in streams), *NAMES]
        if len(totals) < 2 * len(names):
            raise RuntimeError(f"callgrind wrote {len(totals)} dumps for {len(names)} figures")
        return {name: totals[2 * number + 1] for number, name in enumerate(names)}


def _total(dump: Path) -> int:
    found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text("utf-8", "replace"), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{dump.name}: no total in it")
    return int(found[1])


def by_opcodes(streams: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return bytecode instructions by stream."""
    counts: list[int] = []
    run_streams(streams, lambda work: counts.append(opcodes(work)))
    run_doors(lambda work: counts.append(opcodes(work)))
    names = [*(stream["name"] for stream in streams), *NAMES]
    return dict(zip(names, counts, strict=True))


COUNTERS: dict[str, Callable[[Sequence[dict[str, Any]]], dict[str, int]]] = {
    "callgrind": by_callgrind,
    "opcodes": by_opcodes,
}


def counter() -> str:
    return "callgrind" if shutil.which("valgrind") else "opcodes"


# -- Comparison ---------------------------------------------------------------------------------------------------


def compare(recorded: Mapping[str, int], found: Mapping[str, int]) -> tuple[list[str], bool]:
    """Return a line for each stream, and True if no figure rose by more than the limit."""
    lines, fine = [], True
    for name, count in found.items():
        before = recorded.get(name)
        if before is None:
            lines.append(f"{name:40} {count:12,}      new")
            continue
        rose = 100 * count > (100 + LIMIT) * before
        fine = fine and not rose
        lines.append(f"{name:40} {count:12,} {count / before - 1:+8.1%}{'  ROSE' if rose else ''}")
    return lines, fine


def check(
    record: Path, name: str, found: Mapping[str, int], *, update: bool, write: Callable[[str], Any] = print
) -> int:
    """Compare the figures with the record, or write it. Return the exit status."""
    python = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    record_text = json.loads(record.read_text("utf-8")) if record.is_file() else {}
    entry = record_text.get(name, {"python": None, "instructions": {}})
    comparable = entry["python"] == python
    lines, fine = compare(entry["instructions"] if comparable else {}, found)
    write(f"{name}, {python}")
    for line in lines:
        write(line)
    if update:
        record_text[name] = {"python": python, "instructions": dict(found)}
        record.write_text(json.dumps(record_text, indent=2) + "\n", "utf-8")
        write(f"recorded in {record.name}")
        return 0
    if not comparable:
        write(f"not compared: the record is for {entry['python'] or 'another counter'}; --update writes a new one")
        return 0
    if not fine:
        write(f"a figure rose by more than {LIMIT} %; if that is meant, record it: make bench-check OPTIONS=--update")
    return 0 if fine else 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.instructions", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--update", action="store_true", help="record the figures instead of comparing")
    parser.add_argument("--counter", choices=list(COUNTERS), default=counter(), help="default: the best one installed")
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.child:
        run_streams(json.loads(Path(asked.child).read_text("utf-8")), mark)
        run_doors(mark)
        return 0
    return check(RECORD, asked.counter, COUNTERS[asked.counter](chosen()), update=asked.update)


if __name__ == "__main__":
    sys.exit(main())
