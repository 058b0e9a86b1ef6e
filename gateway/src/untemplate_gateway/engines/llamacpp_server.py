"""llama.cpp's server, from the package ``xllamacpp``, in a process of its own.

``xllamacpp`` holds Python's lock while it loads a model: in the gateway's process, all streams would stop for as long.
A process also gives back its memory when it ends, and takes nothing else with it when it crashes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from untemplate._internal.suggestions import close_names, did_you_mean

from ..processes import Worker, WorkerEnded, receive, send
from .base import EngineError

_PROGRAM: Final = "from untemplate_gateway.engines.llamacpp_server import serve; serve()"


class _Started(msgspec.Struct):
    """The answer of the process: the URL of the server, or the reason that there is no server."""

    url: str = ""
    problem: str = ""
    code: str = "model_not_loaded"


class LlamaCppServer:
    """A server for one model.

    Args:
        path: the model's file.
        parameters: llama.cpp's parameters by their names in xllamacpp, with dots.
        extra: the user's own parameters; errors name them.
    """

    def __init__(self, path: str, parameters: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        self.url = ""
        self._order = msgspec.json.encode([path, parameters, extra])
        self._worker = Worker(_PROGRAM)

    def load(self) -> None:
        """Start the process, and wait until the model is loaded. Blocks; `close` ends the wait.

        Raises:
            EngineError: a parameter is wrong, or llama.cpp cannot load the model.
        """
        try:
            started = msgspec.json.decode(self._worker.ask(self._order), type=_Started)
        except WorkerEnded:
            started = _Started(problem=f"llama.cpp's process ended while it loaded the model ({self.end()})")
        if started.problem:
            self.close()
            raise EngineError(started.problem, status=500, code=started.code)
        self.url = started.url

    def end(self, wait: float = 0.0) -> str:
        """Return how the process ended; empty if it still runs after some seconds."""
        process = self._worker.process
        if process is None:
            return ""
        try:
            code = process.wait(wait)
        except subprocess.TimeoutExpired:
            return ""
        if code >= 0:
            return f"exit status {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def close(self) -> None:
        """End the process."""
        self._worker.end()


# -- In the process ------------------------------------------------------------------------------------------------


def serve() -> None:
    """Serve the model that the first job names, until stdin ends."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # for whatever llama.cpp prints
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the gateway ends this process, after the last stream
        order = receive(sys.stdin.buffer)
        assert order is not None
        started, _running = _started(*msgspec.json.decode(order[1]))
        send(answer, order[0], msgspec.json.encode(started))
    sys.stdin.buffer.read()
    os._exit(0)  # without closing the server, which may wait for outputs that run


def _started(path: str, parameters: Mapping[str, Any], extra: Mapping[str, Any]) -> tuple[_Started, Any]:
    import xllamacpp

    params = xllamacpp.CommonParams()
    try:
        for name, value in {"model.path": path, **parameters, **extra}.items():
            _set(params, name, value)
    except ValueError as error:
        return _Started(problem=str(error), code="bad_setting"), None
    try:
        server = xllamacpp.Server(params)
    except Exception as error:
        problem = (
            f"{path}: llama.cpp cannot load it: {str(error) or type(error).__name__}. Is the file whole, its "
            "architecture one that this version of xllamacpp knows, and is there memory for its context (n_ctx)?"
        )
        return _Started(problem=problem), None
    return _Started(url=server.listening_address), server


def _set(params: Any, name: str, value: Any) -> None:
    """Set a parameter; ``name`` may have dots.

    Raises:
        ValueError: the name is unknown, or the value has the wrong type.
    """
    *outer, last = name.split(".")
    at = params
    for part in outer:
        at = getattr(at, part, None)
    if at is None or not hasattr(at, last):
        hint = did_you_mean(close_names(last, [n for n in dir(at or params) if not n.startswith("_")], 1))
        raise ValueError(f"llamacpp.extra: xllamacpp has no parameter {name!r}{hint}")
    try:
        setattr(at, last, value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"llamacpp.extra: {name}={value!r} is not valid: {error}") from None
