"""Python processes of the gateway's own, which read requests from stdin and write answers to stdout.

A `Worker` does what a client can make long. It takes Python's lock from no stream, and can be ended at any time: when
its client leaves, when it takes too long, or when the gateway closes.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .threads import stopped_by

_MEMORY: Final = 2 << 30
"""Bytes of address space of a worker."""
_LENGTH: Final = struct.Struct("!I")


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


@dataclass(slots=True, eq=False)
class Worker:
    """A process that answers one job after the other, started with its first one.

    Args:
        program: Python code that calls `serve`.
    """

    program: str
    process: subprocess.Popen[bytes] | None = None
    killed: bool = False
    asking: bool = False

    def ask(self, job: bytes) -> bytes:
        """Send a job to the process and return the answer. Blocks.

        Raises:
            RuntimeError: the process has ended.
        """
        self.asking = True
        try:
            answer = self._asked(job)
        except (OSError, ValueError):
            answer = None
        finally:
            self.asking = False
        if answer is None:
            self._close_pipes()
            raise RuntimeError("the worker process has ended")
        return answer

    def _asked(self, job: bytes) -> bytes | None:
        if self.process is None:
            self.process = start_python(self.program)
            if self.killed:
                self.kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        _send(self.process.stdin, job)
        return _receive(self.process.stdout)

    def _close_pipes(self) -> None:
        if self.process is not None:
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # unsent bytes are lost
                        pipe.close()

    def kill(self) -> None:
        """End the process. If `ask` is waiting, it fails."""
        self.killed = True
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if not self.asking:
                self._close_pipes()


class Workers:
    """Worker processes of one program. One is started when all others work.

    Args:
        program: Python code that calls `serve`.
    """

    def __init__(self, program: str) -> None:
        self.program = program
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()

    def ask(self, job: bytes) -> bytes:
        """Return a worker's answer. Blocks; the worker is ended when the client of this thread's work leaves.

        Raises:
            Abandoned: the client has left.
            RuntimeError: the process has ended.
        """
        worker = self.idle.pop() if self.idle else Worker(self.program)
        self.busy.add(worker)
        try:
            with stopped_by(worker.kill):
                answer = worker.ask(job)
        finally:
            self.busy.discard(worker)
        self.idle.append(worker)
        return answer

    def close(self) -> None:
        """End all workers. Jobs that run fail."""
        for worker in (*self.idle, *self.busy):
            worker.kill()
        self.idle.clear()


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer jobs from stdin on stdout until stdin ends: the program of a worker process."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with contextlib.suppress(AttributeError, OSError):
        os.nice(5)  # requests go first
    while (data := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, answer(data))


def _send(file: Any, data: bytes) -> None:
    file.write(_LENGTH.pack(len(data)) + data)
    file.flush()


def _receive(file: Any) -> bytes | None:
    """Return the next message; ``None`` at the end of the file."""
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(head)[0]
    data: bytes = file.read(size)
    return data if len(data) == size else None
