"""llama.cpp's server, from the package ``xllamacpp``, in a process of its own.

``xllamacpp`` holds Python's lock while it loads a model: in the gateway's process, all streams would stop for as long.
A process also gives back its memory when it ends, and takes nothing else with it when it crashes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from untemplate._internal.suggestions import close_names, did_you_mean

from ..processes import start_python
from .base import EngineError

_PROGRAM: Final = "from untemplate_gateway.engines.llamacpp_server import serve; serve()"


class _Started(msgspec.Struct):
    """Line that the process writes: the URL of the server, or why there is none."""

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
        self._order = msgspec.json.encode([path, parameters, extra]) + b"\n"
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def load(self) -> None:
        """Start the process, and wait until the model is loaded. Blocks; `close` ends the wait.

        Raises:
            EngineError: a parameter is wrong, or llama.cpp cannot load the model.
        """
        self._process = process = start_python(_PROGRAM)
        if self._closed:
            process.kill()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self._order)
            process.stdin.flush()
            started = msgspec.json.decode(process.stdout.readline(), type=_Started)
        except (OSError, ValueError, msgspec.DecodeError):
            problem = f"llama.cpp's process ended while it loaded the model ({_ended(process)})"
            started = _Started(problem=problem)
        if started.problem:
            self.close()
            raise EngineError(started.problem, status=500, code=started.code)
        self.url = started.url

    def end(self, wait: float = 0.0) -> str:
        """Return how the process ended; empty if it still runs after some seconds."""
        try:
            if self._process is None or self._process.wait(wait) is None:
                return ""
        except subprocess.TimeoutExpired:
            return ""
        return _ended(self._process)

    def close(self) -> None:
        """End the process."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):  # unsent bytes are lost
                    assert pipe is not None
                    pipe.close()


def _ended(process: subprocess.Popen[bytes]) -> str:
    code = process.wait()
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


# -- In the process ------------------------------------------------------------------------------------------------


def serve() -> None:
    """Serve the model that the first line of stdin names, until stdin ends."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # for whatever llama.cpp prints
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the gateway ends this process, after the last stream
        path, parameters, extra = msgspec.json.decode(sys.stdin.buffer.readline())
        started, _running = _started(path, parameters, extra)
        answer.write(msgspec.json.encode(started) + b"\n")
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
