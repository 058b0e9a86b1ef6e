"""Downloads from the hub while the gateway runs, each in a process of its own: it can be ended at any time."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import msgspec

from ..processes import start_python
from . import hub
from .checkpoint import CheckpointError
from .loading import locate
from .manager import Report

_PROGRAM = "from untemplate_gateway.manager.downloading import serve; serve()"


class _Line(msgspec.Struct):
    """Line that the process writes: a step, or how it ended."""

    step: str = ""
    problem: str = ""
    done: bool = False


async def download(name: str, report: Report) -> None:
    """Download a model, unless it is on disk. Cancelling this ends the download.

    Raises:
        HubError: it cannot be downloaded; the message has the remedy.
    """
    process = start_python(_PROGRAM)
    assert process.stdin is not None
    assert process.stdout is not None
    reader = asyncio.StreamReader()
    transport: asyncio.ReadTransport | None = None
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), process.stdout
        )
        process.stdin.write(msgspec.json.encode(name) + b"\n")
        process.stdin.flush()
        while line := await reader.readline():
            found = msgspec.json.decode(line, type=_Line)
            if found.problem:
                raise hub.HubError(found.problem)
            if found.done:
                return
            report(found.step)
        raise hub.HubError(f"{name}: the download ended unexpectedly; the server's log may have the reason")
    except OSError as error:
        raise hub.HubError(f"{name}: the download ended unexpectedly: {error}") from None
    finally:
        process.kill()
        process.wait()
        if transport is not None:
            transport.close()
        process.stdin.close()


# -- In the process ------------------------------------------------------------------------------------------------


def serve() -> None:
    """Download the model that the first line of stdin names. The process ends when stdin does."""
    answer = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # for whatever huggingface_hub prints
    name: str = msgspec.json.decode(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()

    def write(line: _Line) -> None:
        answer.write(msgspec.json.encode(line) + b"\n")

    try:
        locate(name, lambda step: write(_Line(step=step)))
    except (hub.HubError, CheckpointError) as error:
        write(_Line(problem=str(error)))
    else:
        write(_Line(done=True))


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
