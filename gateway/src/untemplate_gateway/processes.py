"""Python processes of the gateway's own, which read requests from stdin and write answers to stdout."""

from __future__ import annotations

import os
import subprocess
import sys


def python_environment() -> dict[str, str]:
    """Return the environment of a process that imports from where this process imports."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def start_python(program: str) -> subprocess.Popen[bytes]:
    """Run a program of a line or two in a new process, with pipes for stdin and stdout.

    It imports from where this process imports, and Ctrl-C in a terminal does not reach it.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=python_environment(),
        start_new_session=True,
    )
