"""Python processes of the gateway's own.

A `Worker` calls functions that a client can make long. It takes Python's lock from no stream, and can be ended at any
time: when its client leaves, when it takes too long, or when the gateway closes. Functions and the gateway's own
arguments are pickled; what clients have sent is JSON, which holds Python's lock for a third of the time.

A template that breaks out of its sandbox in a worker has not got the gateway: answers are JSON, and errors are made
again from a table. Nor has it got the next client: an answer has the number of its job, and a worker whose answer does
not fit is killed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from untemplate import errors

from .errors import ApiError
from .threads import BUDGET, Kind, stopped_by, work

_MEMORY: Final = 2 << 30
"""Bytes of address space of a worker."""
_HEAD: Final = struct.Struct("!QI")
"""Number of a job, and bytes of the job or its answer."""
_LONGEST: Final = 64 << 20
"""Most bytes of an answer."""
_ERRORS: Final[dict[str, type[Exception]]] = {
    one.__name__: one
    for one in (
        *(getattr(errors, name) for name in errors.__all__),
        *(ValueError, TypeError, AttributeError, LookupError, RecursionError, MemoryError),
    )
}
"""The errors of workers that the gateway knows; all others are a ``RuntimeError``."""
_Failure = tuple[str, str, dict[str, str | int | tuple[str, ...] | None]]
"""An error of a worker: its name in the table, its text, its attributes."""


class WorkerEnded(ApiError, RuntimeError):
    """A worker has ended before it could answer: it was killed, by the system too, or its answer was another's."""

    def __init__(self) -> None:
        problem = "the worker process has ended"
        super().__init__(503, problem, type="server_error", code="worker_ended", headers={"Retry-After": "1"})


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


def packed(function: Callable[..., Any], /, *own: Any, **sent: Any) -> bytes:
    """Return a call as the job of a worker.

    Args:
        function: one of a module; it returns what JSON can hold.
        own: arguments that come from the gateway, pickled.
        sent: arguments that clients have sent, as JSON.
    """
    return pickle.dumps((function, own, msgspec.json.encode(sent)), pickle.HIGHEST_PROTOCOL)


@dataclass(slots=True, eq=False)
class Worker:
    """A process that does one job after the other, started with its first one.

    Args:
        program: Python code that calls `serve`.
    """

    program: str
    process: subprocess.Popen[bytes] | None = None
    killed: bool = False

    def ask(self, job: bytes) -> bytes:
        """Send a job to the process and return the answer. Blocks.

        Raises:
            WorkerEnded: the process has ended, or the answer is not one to this job.
        """
        number, answer = secrets.randbits(64), None
        try:
            if self.process is None:
                self.process = start_python(self.program)
                if self.killed:
                    self.kill()
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            send(self.process.stdin, number, job)
            answer = receive(self.process.stdout, _LONGEST)
        except (OSError, ValueError):
            pass
        if answer is None or answer[0] != number:
            self.end()
            raise WorkerEnded
        return answer[1]

    def kill(self) -> None:
        """Tell the process to end, at once. If `ask` is waiting, it fails when the process has ended."""
        self.killed = True
        if self.process is not None:
            self.process.kill()

    def end(self) -> None:
        """End the process and wait for it. Blocks: freeing gigabytes takes a second."""
        self.kill()
        if self.process is not None:
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # unsent bytes are lost
                        pipe.close()

    @property
    def runs(self) -> bool:
        """True if the process can do another job. The system may have ended it, for want of memory."""
        return not self.killed and self.process is not None and self.process.poll() is None


class Workers:
    """Worker processes for one kind of work. One is started when all others work.

    Args:
        program: Python code that calls `serve`.
    """

    def __init__(self, program: str = "from untemplate_gateway.processes import serve; serve()") -> None:
        self.program = program
        self.kind = Kind(2, "untemplate-waiting")
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()

    def do(self, job: bytes, kind: Any = Any) -> Any:
        """Return the result of a job (`packed`). Blocks; the worker is ended when the client of this thread's work
        leaves.

        Args:
            kind: the type of the result.

        Raises:
            Abandoned: the client has left.
            WorkerEnded: the process has ended.
            Exception: the function has raised it.
        """
        worker = self._idle() or Worker(self.program)
        self.busy.add(worker)
        try:
            with stopped_by(worker.kill):
                answer = worker.ask(job)
            if answer[:1] == b"=":
                return msgspec.json.decode(answer[1:], type=kind)
            failure = msgspec.json.decode(answer[1:], type=_Failure)
        except msgspec.DecodeError:
            worker.kill()
            raise
        finally:
            self.busy.discard(worker)
            if worker.runs:
                self.idle.append(worker)
            else:
                worker.end()  # its client may have left after the answer
        raise _error(*failure)

    def _idle(self) -> Worker | None:
        """Take a worker that waits for a job."""
        with contextlib.suppress(IndexError):  # another thread may take the last one
            while True:
                worker = self.idle.pop()
                if worker.runs:
                    return worker
                worker.end()
        return None

    async def run(self, job: bytes, kind: Any = Any, seconds: float = BUDGET) -> Any:
        """Return the result of a job, when its owner's turn has come. Raises as `do` and `work`."""
        return await work(self.kind, partial(self.do, job, kind), seconds)

    def close(self) -> None:
        """End all workers. Jobs that run fail."""
        for worker in (*self.idle, *self.busy):
            worker.kill()
        while self._idle() is not None:
            pass


def _error(name: str, text: str, attributes: dict[str, Any]) -> Exception:
    """Make an error of a worker again."""
    kind = _ERRORS.get(name, RuntimeError)
    error = kind.__new__(kind)
    error.args = (text,)
    error.__dict__.update(attributes)
    return error


# -- In the process --------------------------------------------------------------------------------------------------


def serve() -> None:
    """Do jobs from stdin until it ends: the program of a worker process."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with contextlib.suppress(AttributeError, OSError):
        os.nice(5)  # requests go first
    while (job := receive(sys.stdin.buffer)) is not None:
        send(sys.stdout.buffer, job[0], _answer(job[1]))


def _answer(data: bytes) -> bytes:
    """Return the result of a job, or the error that it has raised instead."""
    try:
        function, own, sent = pickle.loads(data)
        return b"=" + msgspec.json.encode(function(*own, **msgspec.json.decode(sent)))
    except Exception as error:
        name = next((one.__name__ for one in type(error).__mro__ if _ERRORS.get(one.__name__) is one), "")
        with contextlib.suppress(Exception):  # attributes may be anything
            if name:
                text = str(error).encode("utf-8", "replace").decode()  # a template may have written half an emoji
                return b"!" + msgspec.json.encode((name, text, vars(error)))
        return b"!" + msgspec.json.encode(("", ascii(f"{type(error).__name__}: {error}")[1:-1], {}))


def send(file: Any, number: int, data: bytes) -> None:
    """Write a message with its number."""
    file.write(_HEAD.pack(number, len(data)))
    file.write(data)
    file.flush()


def receive(file: Any, longest: int = 1 << 32) -> tuple[int, bytes] | None:
    """Return the next message and its number; ``None`` at the end of the file, or if it is longer."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    number, size = _HEAD.unpack(head)
    data = file.read(size) if size <= longest else b""
    return (number, data) if len(data) == size else None
