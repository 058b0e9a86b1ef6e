"""A process that runs one parser library over streams and reports CPU times. `Worker` starts it and asks it.

    python -m benchmarks.worker MODULE [FOLDER]

MODULE is an adapter, such as `benchmarks.adapter`: it has a `version()` and `candidates(stream)`, see `Candidate`.
FOLDER is put first on the import path.

A request and its answer are one line of JSON each. The process runs in the environment of the library that it
measures, so this module and the adapters import nothing else but the standard library and that one.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent


class Candidate(Protocol):
    """One parser of a library that can read a stream."""

    name: str
    kind: str

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        """Return the function that parses the stream once; what a request costs before its first delta is done here.

        It is called with `None` when it is timed, and with a function that takes each result when it is checked.
        """

    def message(self, results: list[Any]) -> dict[str, Any]:
        """Return reasoning, content and calls (name, arguments as JSON text) that the collected results add up to."""


def measured(candidate: Candidate, seconds: float) -> float:
    """Return the thread's CPU seconds for one run, averaged over runs that fill `seconds` together.

    As in `timeit`, the garbage collector is off while the clock runs.
    """
    number, used = 1, 0.0
    while True:
        runs = [candidate.prepare() for _ in range(number)]
        gc.collect()
        gc.disable()
        try:
            began = time.thread_time()
            for run in runs:
                run(None)
            used = time.thread_time() - began
        finally:
            gc.enable()
        if used >= seconds or number >= 10_000:
            return used / number
        number = min(10_000, max(number * 2, int(number * seconds / max(used, 1e-6)) + 1))


def prepared(candidate: Candidate, seconds: float) -> float:
    """Return the CPU seconds that one call of `prepare` takes."""
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
    for line in sys.stdin:
        try:
            answer = {"answer": service.answer(json.loads(line))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class WorkerError(Exception):
    """The library failed on a request, or its process ended."""


class Worker:
    """The other end: a worker process that answers one request at a time."""

    def __init__(self, module: str, *, python: str = sys.executable, folder: str | Path | None = None) -> None:
        arguments = [python, "-m", "benchmarks.worker", module]
        if folder is not None:
            arguments.append(str(folder))
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            arguments,
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
            WorkerError: the library raised, or the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **details}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerError(f"the worker process ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.terminate()
        self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.path.insert(0, sys.argv[2])
    serve(sys.argv[1])
