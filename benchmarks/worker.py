"""A process that runs one parser library over streams and reports CPU times. `Worker` starts it and sends it requests.

    python -m benchmarks.worker MODULE [FOLDER]

MODULE is an adapter, such as `benchmarks.adapter`: it has a `version()` and `candidates(stream)`, see `Candidate`.
FOLDER is put first on the import path.

A request and its answer are one line of JSON each. The process runs in the environment of the library that it
measures, so this module and the adapters import only that library and the standard library.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent


LIMIT = 20.0
"""CPU seconds that a request may take. Some parsers never return on some streams."""


START = 180.0
"""Seconds that the import of a library may take. Some import torch."""


class Candidate(Protocol):
    """One parser of a library that can read a stream."""

    name: str
    kind: str

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        """Return the function that parses the stream once. The work for a request before its first delta is done here.

        The function is called with `None` when it is timed, and with a callback for each result when it is checked.
        """

    def message(self, results: list[Any]) -> dict[str, Any]:
        """Return the message that the collected results add up to: reasoning, content and calls (name, arguments as
        JSON text)."""


def measured(candidate: Candidate, seconds: float) -> float:
    """Return the thread's CPU seconds for one run: the average over runs that take `seconds` together.

    As in `timeit`, the garbage collector is off during the measurement.
    """
    number, used = 1, 0.0
    while True:
        preparing = time.thread_time()
        runs = [candidate.prepare() for _ in range(number)]
        preparing = time.thread_time() - preparing
        gc.collect()
        gc.disable()
        try:
            began = time.thread_time()
            for run in runs:
                run(None)
            used = time.thread_time() - began
        finally:
            gc.enable()
        if used >= seconds or preparing >= 5 * seconds or number >= 10_000:
            return used / number
        number = min(10_000, max(number * 2, int(number * seconds / max(used, 1e-6)) + 1))


def prepared(candidate: Candidate, seconds: float) -> float:
    """Return the CPU seconds of one call of `prepare`."""
    number = 1
    while True:
        began = time.thread_time()
        for _ in range(number):
            candidate.prepare()
        used = time.thread_time() - began
        if used >= seconds or number >= 10_000:
            return used / number
        number *= 4


class Service:
    """Answers requests with the candidates that it has loaded."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.loaded: list[Candidate] = []

    def answer(self, request: dict[str, Any]) -> Any:
        match request["do"]:
            case "version":
                return self.adapter.version()
            case "load":
                self.loaded = list(self.adapter.candidates(request["stream"]))
                return [{"name": candidate.name, "kind": candidate.kind} for candidate in self.loaded]
            case "parse":
                candidate = self.loaded[request["candidate"]]
                results: list[Any] = []
                candidate.prepare()(results.append)
                return candidate.message(results)
            case "time":
                return measured(self.loaded[request["candidate"]], request["seconds"])
            case "prepare":
                return prepared(self.loaded[request["candidate"]], request["seconds"])
            case unknown:
                raise ValueError(f"do: {unknown!r} is not one of: version, load, parse, time, prepare")


def serve(module: str) -> None:
    """Answer requests until the input ends. Whatever the library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    service = Service(importlib.import_module(module))
    signal.signal(signal.SIGPROF, _too_long)
    gc.collect()
    gc.freeze()  # otherwise every collection before a measurement would walk through all imported modules
    for line in sys.stdin:
        try:
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            answer = {"answer": service.answer(json.loads(line))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _too_long(*_: object) -> None:
    raise TimeoutError(f"not done after {LIMIT:.0f} seconds of CPU time")


class WorkerError(Exception):
    """The library failed on a request, or its process ended."""


class Worker:
    """The client's side: a worker process that answers one request at a time. A process that hangs is ended and
    restarted."""

    def __init__(
        self, module: str, *, python: str = sys.executable, folder: str | Path | None = None, patience: float = 30.0
    ) -> None:
        self._arguments = [python, "-m", "benchmarks.worker", module]
        if folder is not None:
            self._arguments.append(str(folder))
        self._patience = patience
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        self._answered = False
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        environment.pop("PYTHONPATH", None)
        return subprocess.Popen(
            self._arguments,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def ask(self, do: str, **details: Any) -> Any:
        """Return the answer to a request.

        Raises:
            WorkerError: the library raised, or the process has ended or was ended because it did not answer in time.
        """
        if self._process.poll() is not None:
            self.close()
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(self._patience + (0 if self._answered else START), process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps({"do": do, **details}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            raise WorkerError(f"the worker process ended with status {process.wait()}")
        self._answered = True
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.path.insert(0, sys.argv[2])
    serve(sys.argv[1])
