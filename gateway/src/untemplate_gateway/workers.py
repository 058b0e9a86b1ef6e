"""Several processes on one port, each with the whole gateway.

* A worker that dies is replaced. A worker whose supervisor has died ends: its pipe closes.
* At SIGHUP they are replaced one after another by workers with the settings as they are now. If the first of them does
  not start, the old ones continue.
* They share the response store (a temporary file, unless the settings name one) and the metrics page.
* Each loads its own models. Limits of connections, requests and API keys hold for each worker.
"""

from __future__ import annotations

import contextlib
import logging
import math
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn

from .connections import allow_open_files, server_config
from .deferred import DeferredGateway
from .manager.checkpoint import CheckpointError
from .manager.loading import check_model
from .observe import log_to_stderr
from .settings import Settings, SettingsError

_log: Final = logging.getLogger("untemplate.gateway")
_NOT_STARTED: Final = 3
"""Exit status of a worker whose server could not start; the log has the reason."""


def check_workers(settings: Settings) -> None:
    """Check that the models can be served by several processes.

    Raises:
        SettingsError: a model cannot be loaded, or its engine runs in processes of its own.
    """
    tables = {f"models.{name}: ": table.settings for name, table in settings.models.items()} or {"": settings}
    for where, one in tables.items():
        try:
            engine = check_model(one)
        except (SettingsError, CheckpointError) as error:
            raise SettingsError(f"{where}{error}") from None
        if engine == "vllm":
            problem = "workers: vLLM runs processes of its own; put a gateway with --upstream in front"
            raise SettingsError(f"{where}{problem}")
        if engine == "llamacpp":
            _log.warning("%severy one of %d workers loads the model %s", where, settings.workers, one.model)


def run_workers(
    settings: Settings, bound: socket.socket, again: Callable[[], Settings], ready: Callable[[], None]
) -> None:
    """Run the workers until a signal ends them.

    Args:
        settings: with ``workers`` above 1.
        bound: the socket to listen on.
        again: returns the settings as they are now. The address and the number of workers stay.
        ready: called once, when the first worker answers.

    Raises:
        SettingsError: a worker did not start; the log has the reason.
    """
    with tempfile.TemporaryDirectory(prefix="untemplate-") as folder:

        def settings_of(now: Settings) -> Settings:
            same = {name: getattr(settings, name) for name in ("host", "port", "uds", "workers")}
            if now.response_ttl and not now.response_store:
                same["response_store"] = str(Path(folder, "responses.sqlite"))
            return msgspec.structs.replace(now, **same)

        def settings_again() -> Settings:
            now = again()
            check_workers(now)
            return settings_of(now)

        metrics = Path(folder, "metrics")
        metrics.mkdir()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)  # read by the workers when they import prometheus_client
        _Supervisor(settings_of(settings), bound, settings_again, ready).run()


class _Worker:
    """A worker process."""

    def __init__(self, settings: Settings, bound: socket.socket) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(settings, bound, theirs))
        self.process.start()
        theirs.close()
        self.ready = False
        """True after its server has started."""

    def lives(self) -> bool:
        """Update ``ready``. Return False if the process has ended."""
        with contextlib.suppress(OSError, EOFError):
            self.ready = self.ready or (self._pipe.poll() and self._pipe.recv_bytes() == b"ready")
        return self.process.is_alive()

    def end(self) -> None:
        """End the process, and drop its part of the metrics that do not outlive a process."""
        from prometheus_client.multiprocess import mark_process_dead

        self.process.terminate()
        self.process.join()
        self._pipe.close()
        mark_process_dead(self.process.pid)  # type: ignore[no-untyped-call]


class _Supervisor:
    def __init__(
        self, settings: Settings, bound: socket.socket, again: Callable[[], Settings], ready: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._bound = bound
        self._again = again
        self._ready: Callable[[], None] | None = ready
        self._ends = threading.Event()
        self._reloads = False
        self._workers: list[_Worker] = []

    def run(self) -> None:
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)
        try:
            self._workers = [self._started() for _ in range(self._settings.workers)]
            while not self._ends.wait(0.1):
                if self._reloads:
                    self._reloads = False
                    self._reload()
                self._watch()
        finally:
            self._bound.close()  # otherwise new connections would wait for workers that take no more
            for worker in self._workers:
                worker.process.terminate()
            for worker in self._workers:
                worker.end()

    def _on_signal(self, number: int, frame: Any) -> None:
        if hasattr(signal, "SIGHUP") and number == signal.SIGHUP:
            self._reloads = True
        else:
            self._ends.set()

    def _started(self) -> _Worker:
        return _Worker(self._settings, self._bound)

    def _watch(self) -> None:
        """Replace workers that have ended.

        Raises:
            SettingsError: one could not start.
        """
        for i, worker in enumerate(self._workers):
            if worker.lives():
                continue
            worker.end()
            if worker.process.exitcode == _NOT_STARTED:
                raise SettingsError("workers: one did not start; the log above has the reason")
            _log.warning("worker %d ended; another one takes its place", worker.process.pid)
            self._workers[i] = self._started()
        if self._ready is not None and any(worker.ready for worker in self._workers):
            self._bound.listen(2048)  # the worker is about to do it as well
            self._ready()
            self._ready = None

    def _reload(self) -> None:
        before = self._settings
        try:
            self._settings = self._again()
        except Exception as error:  # the server continues after any error
            _log.error("reload: %s; the workers are unchanged", error)
            return
        for i, old in enumerate(self._workers):
            new = self._started()
            while new.lives() and not new.ready and not self._ends.wait(0.1):
                pass
            if not new.ready:
                new.end()
                self._settings = before
                _log.error("reload: a new worker did not start; %d of %d are replaced", i, len(self._workers))
                return
            self._workers[i] = new
            old.end()
        _log.info("reload: all workers are replaced")


# -- In the process ------------------------------------------------------------------------------------------------


def _work(settings: Settings, bound: socket.socket, pipe: Connection) -> None:
    log_to_stderr(settings)
    sys.setswitchinterval(0.001)
    allow_open_files(settings.max_connections)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    config = server_config(
        DeferredGateway(settings, lambda: pipe.send_bytes(b"ready")),
        settings,
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_grace),
    )
    server = uvicorn.Server(config)
    server.run(sockets=[bound])
    if not server.started:
        sys.exit(_NOT_STARTED)


def _end_with(pipe: Connection) -> None:
    """End this process when the supervisor's end of the pipe is closed."""
    with contextlib.suppress(OSError, EOFError):
        pipe.recv_bytes()
    os.kill(os.getpid(), signal.SIGTERM)
