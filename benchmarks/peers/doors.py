"""Untemplate inside the servers of the peers: its parsers next to theirs, in their environments.

A door is a program of this folder that prints a Markdown table.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.worker import ROOT

from .measure import PEERS, environment

__all__ = ["DOORS", "run"]

DOORS = {"vllm": "benchmarks.peers.doors_vllm", "sglang": "benchmarks.peers.doors_sglang"}


def run(peers: Iterable[str], folder: Path, write: Callable[[str], object] = print) -> dict[str, str]:
    """Return the table of each installed peer that has a door, by the peer's name.

    `folder` holds the build of untemplate that is measured.

    Raises:
        subprocess.CalledProcessError: a program has failed.
    """
    tables = {}
    for peer in peers:
        python = environment(peer)
        if peer not in DOORS or not python.is_file():
            continue
        path = os.pathsep.join((str(folder), str(ROOT)))
        variables = {**os.environ, "PYTHONPATH": path, "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
        found = subprocess.run(
            [str(python), "-m", DOORS[peer]], cwd=ROOT, env=variables, check=True, stdout=subprocess.PIPE, text=True
        )
        lines = [line for line in found.stdout.splitlines() if line.startswith("|")]
        tables[PEERS[peer]] = "\n".join(lines) + "\n"
        write(f"Inside {PEERS[peer]}\n\n{tables[PEERS[peer]]}")
    return tables
