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
import tempfile
import threading
from collections.abc import Callable
from typing import Final

import msgspec
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from .asgi import Receive, Send
from .connections import ServerConfig
from .deferred import DeferredGateway, prepare_process
from .manager.checkpoint import CheckpointError
from .manager.loading import check_model
from .settings import Settings, SettingsError

_log: Final = logging.getLogger("untemplate.gateway")
_SECONDS: Final = 600
"""Time in which a worker that takes the place of another must have loaded its models."""


def _check(settings: Settings) -> None:
    """Raise a `SettingsError` if the models cannot be served by several processes."""
    tables = {f"models.{name}: ": table.settings for name, table in settings.models.items()} or {"": settings}
    for where, one in tables.items():
        try:
            engine = check_model(one)
        except (SettingsError, CheckpointError) as error:
            raise SettingsError(f"{where}{error}") from None
        if engine == "vllm":
            raise SettingsError(f"{where}workers: vLLM has its own processes; put a gateway with --upstream in front")
        if engine == "llamacpp":
            _log.warning("%severy one of %d workers loads the model %s", where, settings.workers, one.model)


def run_workers(
    settings: Settings, bound: socket.socket, again: Callable[[], Settings], ready: Callable[[], None]
) -> None:
    """Run the workers until a signal ends them.

    Args:
        again: returns the settings as they are now. The address and the number of workers stay.
        ready: called once, when the first worker answers.

    Raises:
        SettingsError: a worker did not start; the log has the reason.
    """
    with tempfile.TemporaryDirectory(prefix="untemplate-") as folder:

        def config(now: Settings) -> ServerConfig:
            _check(now)
            same = {name: getattr(settings, name) for name in ("host", "port", "uds", "workers")}
            if now.response_ttl and not now.response_store:
                same["response_store"] = os.path.join(folder, "responses.sqlite")
            now = msgspec.structs.replace(now, **same)
            return ServerConfig(
                *(_WorkerGateway(now), now), lifespan="on", workers=now.workers, timeout_worker_healthcheck=_SECONDS
            )

        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # read by the workers when they import prometheus_client
        supervisor = _Supervisor(config(settings), bound, lambda: config(again()), ready)
        supervisor.run()
        if supervisor.failed:
            raise SettingsError("workers: one did not start; the log above has the reason")


class _Supervisor(Multiprocess):
    """uvicorn's supervisor. It replaces workers that have ended, and at SIGHUP one after another."""

    failed = False  # True if a worker could not start; its log has the reason

    def __init__(
        self, config: ServerConfig, bound: socket.socket, again: Callable[[], ServerConfig], ready: Callable[[], None]
    ) -> None:
        super().__init__(config, [bound])
        self._again = again
        self._ready: Callable[[], None] | None = ready

    def keep_subprocess_alive(self) -> None:
        for i, worker in enumerate(self.processes):
            if worker.process.is_alive():  # uvicorn would also end one that imports slowly
                continue
            worker.join()
            mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
            if worker.exitcode == STARTUP_FAILURE:
                self.failed = True
                self.should_exit.set()
                return
            _log.warning("worker %d ended; another one takes its place", worker.pid)
            self.processes[i] = Process(self.config, self.sockets)
            self.processes[i].start()
        if self._ready is not None and any(worker.is_ready(0.1) for worker in self.processes):
            self._ready()
            self._ready = None

    def handle_hup(self) -> None:
        before, workers = self.config, list(self.processes)
        try:
            self.config = self._again()
        except Exception as error:  # the server continues after any error
            _log.error("reload: %s; the workers are unchanged", error)
            return
        self.restart_all()
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
        prepare_process(self.settings)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        threading.Thread(target=_end_with_supervisor, daemon=True).start()
        await super()._live(receive, send)


def _end_with_supervisor() -> None:
    """End this process when its supervisor has ended: the pipe between them closes."""
    supervisor = multiprocessing.parent_process()
    assert supervisor is not None
    supervisor.join()
    os.kill(os.getpid(), signal.SIGTERM)
