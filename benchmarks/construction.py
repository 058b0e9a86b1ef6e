"""CPU time before the first delta: imports, parsers, and the fixed costs of a request.

    python -m benchmarks.construction [--base FOLDER]

Each round is a new process. Bytecode is cached, as in an installation. The least time of all rounds counts. FOLDER is
another checkout, whose figures come first.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.compare import source_folder
from benchmarks.streams import TOOLS
from benchmarks.worker import ROOT

TOKENS = 150_000
SPECIAL = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
PROMPT = (
    f"<|im_start|>user\n{'The harbour was quiet in the morning. ' * 1_000}<|im_end|>\n<|im_start|>assistant\n<think>\n"
)
TEXT = "Hello, how are you?!"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "unit": "celsius"}}\n</tool_call>'

IMPORTS = """
import time
began = time.process_time()
import untemplate
one = time.process_time()
untemplate.OutputParser
two = time.process_time()
import json
print(json.dumps({"`import untemplate`": one - began, "its first use: the import of `OutputParser`": two - one}))
"""


class Words:
    """A tokenizer with a large vocabulary."""

    def __init__(self) -> None:
        tokens = [*SPECIAL, *(f"w{number}" for number in range(TOKENS - len(SPECIAL)))]
        self._vocabulary = {token: number for number, token in enumerate(tokens)}

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary

    def __len__(self) -> int:
        return len(self._vocabulary)


def once(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def each(work: Callable[[], object], runs: int = 200) -> float:
    """Return the least average of some turns. The garbage collector is off, as in `timeit`."""
    work()
    gc.disable()
    found = min(once(lambda: [work() for _ in range(runs)]) for _ in range(5))
    gc.enable()
    return found / runs


def parsers() -> dict[str, float]:
    """Return CPU seconds by name, in a process that has parsed nothing yet."""
    from untemplate import OutputParser

    def plain() -> OutputParser:
        return OutputParser.named("hermes", reasoning="qwen3")

    def with_ids() -> OutputParser:
        return OutputParser.named("hermes", reasoning="qwen3", tokenizer=tokenizer)

    tokenizer, one_tool = Words(), TOOLS[:1]
    found = {"the first parser of a format": once(plain), "another one": each(plain)}
    found[f"the first parser with a tokenizer of {TOKENS:,} tokens"] = once(with_ids)
    found["another one with this tokenizer"] = each(with_ids)
    parser, by_id = plain(), with_ids()
    found["the first output with ids of special tokens"] = once(lambda: by_id.parse("<think>", token_ids=[2]))
    found["`stream()`"] = each(parser.stream)
    found["`stream(tools=…)`, one tool"] = each(lambda: parser.stream(tools=one_tool))
    found["`stream(tools=…, prompt=…)`, 38,000 characters"] = each(lambda: parser.stream(tools=one_tool, prompt=PROMPT))
    found["`stream(tools=…)`, with the tokenizer"] = each(lambda: by_id.stream(tools=one_tool))
    found["`parse` of 20 characters, one tool"] = each(lambda: parser.parse(TEXT, tools=one_tool))
    found["`parse` of one call, one tool"] = each(lambda: parser.parse(CALL, tools=one_tool))
    return found


def measured(folder: Path, cache: str) -> dict[str, float]:
    """Return the figures of two new processes that import untemplate from a folder."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, float] = {}
    for code in (IMPORTS, "import json; from benchmarks.construction import parsers; print(json.dumps(parsers()))"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{folder}: {done.stderr[-2000:]}")
        found |= json.loads(done.stdout)
    return found


def table(columns: dict[str, dict[str, float]]) -> str:
    """Return the figures as Markdown, in microseconds."""
    names = list(dict.fromkeys(name for figures in columns.values() for name in figures))
    lines = [f"| step | {' | '.join(f'{title}, µs' for title in columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    for name in names:
        cells = (figures.get(name) for figures in columns.values())
        lines.append(f"| {name} | {' | '.join('' if cell is None else _micro(cell) for cell in cells)} |")
    return "\n".join(lines)


def _micro(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro:,.0f}" if micro >= 100 else f"{micro:.1f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.construction", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--base", type=Path, metavar="FOLDER", help="another checkout, to compare with")
    parser.add_argument("--rounds", type=int, default=7, help="processes of each kind (default: 7)")
    chosen = parser.parse_args(arguments)
    folders = {"before": source_folder(chosen.base)} if chosen.base else {}
    folders["now" if chosen.base else "time"] = ROOT / "src"
    best: dict[str, dict[str, float]] = {title: {} for title in folders}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(chosen.rounds):
            for title, folder in folders.items():
                for name, seconds in measured(folder, cache).items():
                    best[title][name] = min(seconds, best[title].get(name, seconds))
    print(table(best))
    return 0


if __name__ == "__main__":
    sys.exit(main())
