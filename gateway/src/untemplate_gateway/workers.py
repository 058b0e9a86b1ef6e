"""Several processes on one port, each with the whole gateway.

* uvicorn's supervisor starts them, and restarts one that dies.
* At SIGHUP they are replaced one after another by workers with the settings as they are now. If the first of them does
  not start, the old ones continue.
* They share the response store (a temporary file, unless the settings name one) and the metrics page.
* Each loads its own models. Limits of connections, requests and API keys hold for each worker.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from .connections import allow_open_files, server_options
from .deferred import DeferredGateway
from .manager.checkpoint import CheckpointError
from .manager.loading import check_model
from .observe import log_to_stderr
from .settings import Settings, SettingsError

_log: Final = logging.getLogger("untemplate.gateway")
_HANGS: Final = 60.0
"""Seconds after which a worker that does not answer is ended."""


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
            raise SettingsError(
                f"{where}workers: vLLM runs processes of its own; put a gateway with --upstream in front"
            )
        if engine == "llamacpp":
            _log.warning("%severy one of %d workers loads the model %s", where, settings.workers, one.model)


def run_workers(
    settings: Settings, bound: socket.socket | None, again: Callable[[], Settings], ready: Callable[[], None]
) -> None:
    """Run the workers until a signal ends them.

    Args:
        settings: with ``workers`` above 1.
        again: returns the settings as they are now. The address and the number of workers stay.
        bound: the socket to listen on; ``None`` for the Unix socket of the settings.
        ready: called once, when the first worker answers.

    Raises:
        SettingsError: a worker did not start; the log has the reason.
    """
    with tempfile.TemporaryDirectory(prefix="untemplate-") as folder:

        def config_of(now: Settings) -> _WorkerConfig:
            same = {name: getattr(settings, name) for name in ("host", "port", "uds", "workers")}
            if now.response_ttl and not now.response_store:
                same["response_store"] = str(Path(folder, "responses.sqlite"))
            return _worker_config(msgspec.structs.replace(now, **same))

        metrics = Path(folder, "metrics")
        metrics.mkdir()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)  # read by the workers when they import prometheus_client

        def config_again() -> _WorkerConfig:
            now = again()
            check_workers(now)
            return config_of(now)

        config = config_of(settings)
        sockets = [bound or config.bind_socket()]
        workers = _Workers(config, sockets, config_again, ready)
        workers.run()
        if any(process.exitcode == STARTUP_FAILURE for process in workers.processes):
            raise SettingsError("workers: one did not start; the log above has the reason")


class _Worker(Process):
    """A worker process. Its pings do not block, so a busy machine neither delays signals nor ends a slow worker."""

    ready = False
    """True after the worker has answered that its server has started."""
    _pinged: float | None = None
    """When the ping was sent that is not answered yet."""

    def check(self) -> bool:
        """Update ``ready``. Return False if the worker has ended, or was ready and does not answer any more."""
        try:
            if self._pinged is None:
                self.parent_conn.send(b"ping")
                self._pinged = time.monotonic()
            if self.parent_conn.poll(0.01):
                self.ready, self._pinged = self.parent_conn.recv(), None
        except (OSError, EOFError):
            return False
        hangs = self.ready and self._pinged is not None and time.monotonic() - self._pinged > _HANGS
        return self.process.is_alive() and not hangs


class _Workers(Multiprocess):
    processes: list[_Worker]  # type: ignore[assignment]

    def __init__(
        self,
        config: uvicorn.Config,
        sockets: list[socket.socket],
        again: Callable[[], uvicorn.Config],
        ready: Callable[[], None],
    ) -> None:
        super().__init__(config, sockets)
        self._again = again
        self._ready: Callable[[], None] | None = ready

    def init_processes(self) -> None:
        self.processes = [self._start() for _ in range(self.processes_num)]

    def _start(self) -> _Worker:
        worker = _Worker(self.config, self.sockets)
        worker.start()
        return worker

    def handle_hup(self) -> None:
        before = self.config
        try:
            self.config = self._again()
        except Exception as error:  # the server continues after any error
            _log.error("reload: %s; the workers are unchanged", error)
            return
        for i, old in enumerate(self.processes):
            new = self._start_and_wait()
            if new is None:
                self.config = before
                _log.error("reload: a new worker did not start; %d of %d are replaced", i, len(self.processes))
                return
            old.terminate()
            _join(old)
            self.processes[i] = new
        _log.info("reload: all workers are replaced")

    def _start_and_wait(self) -> _Worker | None:
        """Return a new worker when it answers, which may take minutes; ``None`` if it ends, or the server does."""
        new = self._start()
        while not new.ready:
            if not new.check() or {signal.SIGTERM, signal.SIGINT} & set(self.signal_queue):
                new.kill()
                new.join()
                return None
            time.sleep(0.1)
        return new

    def keep_subprocess_alive(self) -> None:
        for i, worker in enumerate(self.processes):
            if worker.check() or self.should_exit.is_set():
                continue
            worker.kill()  # it may still run, without an answer
            _join(worker)
            if worker.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            _log.warning("worker %d ended; another one takes its place", worker.pid)
            self.processes[i] = self._start()
        if self._ready is not None and any(worker.ready for worker in self.processes):
            self._ready()
            self._ready = None


def _join(worker: _Worker) -> None:
    """Wait until the worker has ended, and drop its part of the metrics that do not outlive a process."""
    from prometheus_client.multiprocess import mark_process_dead

    worker.join()
    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


class _WorkerConfig(uvicorn.Config):
    """A server's configuration that is made anew in each worker, because much of it cannot be sent to a process."""

    settings: Settings

    def __reduce__(self) -> Any:
        return _worker_config, (self.settings, True)


def _worker_config(settings: Settings, inside: bool = False) -> _WorkerConfig:
    if inside:
        log_to_stderr(settings)
        sys.setswitchinterval(0.001)
        allow_open_files(settings.max_connections)
    config = _WorkerConfig(
        DeferredGateway(settings),
        **server_options(settings),
        uds=settings.uds or None,
        workers=settings.workers,
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_grace),
    )
    config.settings = settings
    return config
