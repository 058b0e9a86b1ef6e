"""A million rows through ``untemplate batch``: by one process, and by several that are killed and resumed.

``python -m benchmarks.million [--rows N] [--folder FOLDER]`` writes rows of 2.2 kB (1.1 kB of output with
thoughts, text and calls, 1.1 kB of tools), runs them, and compares both results byte for byte. A million rows need 6 GB
in the folder.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from untemplate._internal.render import render
from untemplate.formats import named

FORMAT: Final = "hermes+qwen3"
NAMES: Final = ("search_flights", "get_weather", "book_table", "send_message")
FIELDS: Final = ("city", "day", "passengers", "note")
WORDS: Final = (
    "the",
    "table",
    "shows",
    "that",
    "prices",
    "fall",
    "late",
    "in",
    "spring",
    "so",
    "wait",
    "if",
    "you",
    "can",
)


def tools() -> list[dict[str, Any]]:
    """Return tools of 1.1 kB."""
    described = {name: {"type": "string", "description": f"The {name}."} for name in FIELDS}
    described["passengers"] = {"type": "integer", "minimum": 1}
    parameters = {"type": "object", "properties": described, "required": ["city"]}
    return [
        {"type": "function", "function": {"name": name, "description": f"Use {name}.", "parameters": parameters}}
        for name in NAMES
    ]


def output(seed: int) -> str:
    """Return an output of about 1.1 kB; one in fifty is cut."""
    dice = random.Random(seed)

    def prose(count: int) -> str:
        return " ".join(dice.choices(WORDS, k=count)).capitalize() + "."

    def call() -> dict[str, Any]:
        arguments = {"city": dice.choice(WORDS), "passengers": dice.randrange(1, 9), "note": f'{prose(9)} "ok" é漢\n'}
        return {"type": "function", "function": {"name": dice.choice(NAMES), "arguments": arguments}}

    calls = [call() for _ in range(dice.randrange(4))]
    message = {"reasoning": prose(50), "content": prose(80 - 20 * len(calls)), "tool_calls": calls}
    text = render(named(FORMAT), {key: value for key, value in message.items() if value})
    return text[: dice.randrange(len(text))] if seed % 50 == 0 else text


def write(path: Path, count: int) -> None:
    """Write the rows: 10,000 different outputs, again and again, each row with its number."""
    offered = json.dumps(tools())
    bodies = [f'"output": {json.dumps(output(seed))}, "tools": {offered}}}\n' for seed in range(min(count, 10_000))]
    with path.open("w", encoding="utf-8") as file:
        for at in range(count):
            file.write(f'{{"id": {at}, {bodies[at % len(bodies)]}')
    print(f"{count:,} rows of {path.stat().st_size / count / 1000:.2f} kB", flush=True)


def command(rows: Path, result: Path, processes: int, *more: str) -> list[str]:
    fixed = ["--format", FORMAT, "--keep", "id", "--quiet", "--processes", str(processes)]
    return [sys.executable, "-m", "untemplate", "batch", str(rows), "-o", str(result), *fixed, *more]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path("build/million"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    rows, one, many = (given.folder / name for name in ("rows.jsonl", "one.jsonl", "many.jsonl"))
    for old in given.folder.glob("*.jsonl*"):
        old.unlink()
    write(rows, given.rows)
    start = time.perf_counter()
    subprocess.run(command(rows, one, 1), check=True)
    whole = time.perf_counter() - start
    print(f"one process: {whole:.0f} s", flush=True)

    processes = max(2, os.cpu_count() or 2)
    killed = subprocess.Popen(command(rows, many, processes))
    time.sleep(whole / 4)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    done = sum(1 for _ in (many.parent / f"{many.name}.partial").open("rb"))
    print(f"{processes} processes: killed after {whole / 4:.0f} s, with about {done:,} rows written", flush=True)
    start = time.perf_counter()
    subprocess.run(command(rows, many, processes, "--resume"), check=True)
    print(f"resumed: {time.perf_counter() - start:.0f} s more", flush=True)
    same = filecmp.cmp(one, many, shallow=False)
    print(f"{one.stat().st_size / 1e9:.2f} GB of results, {'the same bytes' if same else 'NOT the same'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
