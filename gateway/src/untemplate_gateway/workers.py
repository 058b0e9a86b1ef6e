"""Several processes on one port, each with the whole gateway.

* A worker that dies is replaced. A worker whose supervisor has died ends: its pipe closes.
* At SIGHUP they are replaced one after another by workers with the settings as they are now. If the first of them does
  not start, the old ones continue.
* They share the response store (a temporary file, unless the settings name one) and the metrics page.
* Each loads its own models. Limits of connections, requests and API keys hold for each worker.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from .asgi import Receive, Send
from .connections import ServerConfig, allow_open_files
from .deferred import DeferredGateway
from .manager.checkpoint import CheckpointError
from .manager.loading import check_model
from .observe import log_to_stderr
from .settings import Settings, SettingsError

_log: Final = logging.getLogger("untemplate.gateway")
_ANSWERS: Final = 10
"""Seconds in which a worker that runs must answer its supervisor."""
_LOADS: Final = 600
"""Seconds in which a worker must have loaded its models when it takes the place of another."""


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
        supervisor = _Supervisor(_config(settings_of(settings)), bound, lambda: _config(settings_again()), ready)
        supervisor.run()
        if supervisor.failed:
            raise SettingsError("workers: one did not start; the log above has the reason")


def _config(settings: Settings) -> ServerConfig:
    return ServerConfig(
        _WorkerGateway(settings),
        settings,
        lifespan="on",
        workers=settings.workers,
        timeout_worker_healthcheck=_ANSWERS,
    )


class _Supervisor(Multiprocess):
    """uvicorn's supervisor: it replaces workers that have ended, and one after another at SIGHUP.

    Args:
        config: of the workers.
        again: returns the configuration by the settings as they are now.
        ready: called once, when the first worker answers.
    """

    def __init__(
        self, config: ServerConfig, bound: socket.socket, again: Callable[[], ServerConfig], ready: Callable[[], None]
    ) -> None:
        super().__init__(config, [bound])
        self._again = again
        self._ready: Callable[[], None] | None = ready
        self.failed = False
        """True if a worker could not start; its log has the reason."""

    def keep_subprocess_alive(self) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        before = list(self.processes)
        super().keep_subprocess_alive()
        for worker in before:
            if worker not in self.processes:
                mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
                _log.warning("worker %d ended; another one takes its place", worker.pid)
        self.failed = any(worker.exitcode == STARTUP_FAILURE for worker in self.processes)
        if self._ready is not None and any(worker.is_ready(1) for worker in self.processes):
            self._ready()
            self._ready = None

    def handle_hup(self) -> None:
        before, workers = self.config, list(self.processes)
        try:
            self.config = self._again()
        except Exception as error:  # the server continues after any error
            _log.error("reload: %s; the workers are unchanged", error)
            return
        self.config.timeout_worker_healthcheck = _LOADS
        self.restart_all()
        self.config.timeout_worker_healthcheck = _ANSWERS
        replaced = sum(worker not in self.processes for worker in workers)
        if replaced == len(workers):
            _log.info("reload: all workers are replaced")
        elif not self.should_exit.is_set():
            self.config = before
            _log.error("reload: a new worker did not start; %d of %d are replaced", replaced, len(workers))

    def terminate_all(self) -> None:
        for bound in self.sockets:
            bound.close()  # otherwise new connections would wait for workers that take no more
        super().terminate_all()


class _WorkerGateway(DeferredGateway):
    """The gateway in a worker process."""

    async def _live(self, receive: Receive, send: Send) -> None:
        log_to_stderr(self.settings)
        sys.setswitchinterval(0.001)
        allow_open_files(self.settings.max_connections)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        threading.Thread(target=_end_with_supervisor, daemon=True).start()
        await super()._live(receive, send)


def _end_with_supervisor() -> None:
    """End this process when its supervisor has ended: the pipe between them closes."""
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)
