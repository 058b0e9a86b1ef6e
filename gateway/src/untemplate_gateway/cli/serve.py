"""``untemplate serve``: run the gateway.

Every problem with settings, files and models is reported on one line, before the server answers its first request.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from untemplate._internal.cli.common import UsageError, print_text, table
from untemplate._internal.terminal import coloured, painted
from untemplate.errors import SettingsError

if TYPE_CHECKING:
    from types import FrameType

    import uvicorn

    from ..app import Gateway
    from ..connections import ServerConfig
    from ..manager import Manager, Model
    from ..settings import Settings
    from ..settings.sources import Resolved

_log: Final = logging.getLogger("untemplate.gateway")


# -- Arguments ----------------------------------------------------------------------------------------------------


def add_arguments(serve: argparse.ArgumentParser) -> None:
    """Add the options, each made from the declaration of its setting."""
    from ..settings import fields

    serve.set_defaults(run=run, otherwise=_settings_as_options)
    serve.add_argument("model", nargs="?", default=argparse.SUPPRESS, metavar="MODEL", help="what to serve (see above)")
    serve.add_argument("--config", metavar="FILE", help="settings as TOML (also UNTEMPLATE_CONFIG)")
    serve.add_argument("--show-settings", action="store_true", help="print all settings with their sources, and exit")
    serve.add_argument("--tour", action="store_true", help="ask the first model a few questions and print its answers")
    serve.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        dest="setting set",
        default=argparse.SUPPRESS,
        help="any setting by its key in the file: --set max_choices=4 (repeatable)",
    )
    groups = {title: serve.add_argument_group(title) for title in dict.fromkeys(one.title for one in fields())}
    for one in fields():
        if one.path == "model" or not one.flag:
            continue
        group = groups[one.title]
        text = one.description.replace("%", "%%")
        shown = one.default if not (one.is_list or one.is_dict) else None
        if shown not in (None, ""):
            text += f" (default: {str(shown).lower() if isinstance(shown, bool) else shown})"
        options: dict[str, Any] = {"dest": f"setting {one.path}", "default": argparse.SUPPRESS, "help": text}
        if one.type is bool:
            group.add_argument(one.flag, action=argparse.BooleanOptionalAction, **options)
        elif one.is_list or one.is_dict:
            group.add_argument(one.flag, action="append", metavar=one.metavar, **options)
        else:
            group.add_argument(one.flag, metavar=one.metavar, **options)


def _settings_as_options() -> dict[str, str]:
    """Return the settings without an option, as one would look like, and how to give them."""
    from ..settings import fields

    return {
        f"--{one.path.replace('_', '-').replace('.', '-')}": f"--set {one.path}=VALUE"
        for one in fields()
        if not one.flag
    }


def _resolved(arguments: argparse.Namespace) -> Resolved:
    from ..settings.sources import resolve

    given = vars(arguments)
    flags = {name.removeprefix("setting "): value for name, value in given.items() if name.startswith("setting ")}
    if "model" in given:
        flags["model"] = given["model"]
    return resolve(file=arguments.config, flags=flags)


# -- Serving ------------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> None:
    try:
        _run(arguments)
    except SettingsError as error:
        raise UsageError(str(error)) from None


def _run(arguments: argparse.Namespace) -> None:
    resolved = _resolved(arguments)
    if arguments.show_settings:
        print_text(resolved.to_toml())
        return
    from uvicorn.loops.auto import auto_loop_factory

    from ..deferred import prepare_process

    def again() -> Settings:
        return _resolved(arguments).settings

    settings = resolved.settings
    _check_public(settings)
    prepare_process(settings)
    # Bind the port before the model is loaded: an occupied port is then reported before minutes of loading.
    if settings.workers > 1:
        from ..workers import run_workers

        with _bound(settings) as bound:
            run_workers(settings, bound, again, lambda: _greet_of_workers(_url(settings, bound), settings))
        return
    with _bound(settings) as bound, asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(_serve(settings, bound, arguments.tour, again))


def _greet_of_workers(url: str, settings: Settings) -> None:
    if settings.log_format == "json":
        _log.info("listening", extra={"fields": {"url": url, "workers": settings.workers}})
        return
    print_text(f"\nuntemplate serves on {url} with {settings.workers} workers; {url}/v1/models lists the models\n")
    sys.stdout.flush()


def _check_public(settings: Settings) -> None:
    """Refuse to serve a public address to everyone by mistake."""
    from ..access import is_loopback

    if settings.uds or settings.api_keys or settings.insecure or is_loopback(settings.host):
        return
    raise UsageError(
        f"host {settings.host}: anyone who reaches this address could use the gateway; set API keys (--api-key-file "
        "FILE or UNTEMPLATE_API_KEY), or allow it with --insecure"
    )


async def _serve(settings: Settings, bound: socket.socket, show: bool, again: Callable[[], Settings]) -> None:
    from ..connections import ServerConfig, read_certificate
    from ..deferred import open_gateway

    read_certificate(None, settings)
    app = await open_gateway(settings)
    config = ServerConfig(app, settings)
    reloading = asyncio.create_task(_at_sighup(partial(_reload, app, again, config)))
    try:
        await _listen(config, app.manager, settings, bound, show and not settings.uds)
    finally:
        reloading.cancel()
        await app.manager.close(timeout=0)


async def _at_sighup(again: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Call a function at each SIGHUP; calls run one after the other."""
    if hasattr(signal, "SIGHUP"):
        came = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, came.set)
        while await came.wait():
            came.clear()
            await again()


async def _reload(app: Gateway, again: Callable[[], Settings], config: ServerConfig) -> None:
    """Read the settings again: first keys, limits and TLS files, then the models, which may take minutes."""
    from ..connections import read_certificate
    from ..manager.opening import reload_models

    try:
        settings = again()
        _check_public(settings)
        read_certificate(config.limits.tls, settings)
    except Exception as error:  # the server continues after any error
        _log.error("reload: %s; nothing is changed", error)
        return
    note = ""
    try:
        fixed = app.apply(settings)
        if (config.limits.tls is None) != (not settings.tls_cert):
            fixed.append("tls_cert")
        config.limits.apply(settings)
        note = f"; a restart is needed for {', '.join(fixed)}" if fixed else ""
        names = await reload_models(app.manager, settings, lambda what: _log.info("reload: %s", what))
    except Exception as error:
        _log.error("reload: %s; the models are unchanged%s", error, note)
    else:
        _log.info("reload: serving %s%s", ", ".join(names), note)


async def _listen(
    config: uvicorn.Config, manager: Manager, settings: Settings, bound: socket.socket, show: bool
) -> None:
    """Run the server until a signal ends it. Running requests may finish within the grace period."""
    import uvicorn

    tours: list[asyncio.Task[None]] = []

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                url = _url(settings, bound)
                _greet(url, manager, settings)
                if show:
                    tours.append(asyncio.create_task(_tour(url, _first(manager), settings)))

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # uvicorn's server raises the signal again at the end; without this, the exit code would not be 0.
            if self.should_exit:
                self.force_exit = True
                # Requests that are cut off would log tracebacks, which help nobody.
                logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
                return
            self.should_exit = True
            for task in tours:
                task.get_loop().call_soon_threadsafe(task.cancel)
            _log.info("shutting down: running requests may take %g s more", settings.shutdown_grace)

    await Server(config).serve(sockets=[bound])


async def _tour(url: str, model: str, settings: Settings) -> None:
    from ..engines.wire import WireError
    from ..tour import tour

    log = logging.getLogger("untemplate")
    level = log.level
    # Log lines for each request would interrupt the printed conversation.
    log.setLevel(logging.WARNING)
    try:
        with contextlib.suppress(WireError):  # the server is shutting down
            await tour(url, model, key=settings.api_keys[0] if settings.api_keys else "")
            print_text(f"The gateway keeps serving at {url}; Ctrl-C ends it.")
            sys.stdout.flush()
    finally:
        log.setLevel(level)


@contextlib.contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    """Yield the socket to listen on."""
    host, port, path = settings.host, settings.port, settings.uds
    with contextlib.ExitStack() as stack:
        try:
            if path:
                found: tuple[Any, ...] = (socket.AF_UNIX, socket.SOCK_STREAM, 0, "", path)
            else:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            family, kind, protocol, _, address = found
            bound = stack.enter_context(socket.socket(family, kind, protocol))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if path and Path(path).is_socket():  # of a server that was killed
                os.unlink(path)
            bound.bind(address)
            if path:
                stack.callback(_remove, path, os.stat(path).st_ino)
                os.chmod(path, 0o666)  # as uvicorn
        except OSError as error:
            where = f"uds {path}" if path else f"cannot listen on {host}:{port}"
            hint = "; --port 0 chooses a free one" if not path and error.errno == errno.EADDRINUSE else ""
            raise UsageError(f"{where}: {error.strerror or error}{hint}") from None
        yield bound


def _remove(path: str, inode: int) -> None:
    """Remove the file of a Unix socket, unless another server has taken its place."""
    with contextlib.suppress(FileNotFoundError):
        if os.stat(path).st_ino == inode:
            os.unlink(path)


def _url(settings: Settings, bound: socket.socket) -> str:
    """Return the URL of the server as seen from this machine."""
    scheme = "https" if settings.tls_cert else "http"
    if settings.uds:
        return f"{scheme}://localhost{settings.root_path}"
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{settings.root_path}"


# -- What it says -------------------------------------------------------------------------------------------------


def _first(manager: Manager) -> str:
    """Return the name of the model for an example: one that is loaded, if there is one."""
    return next((model.name for model in manager.list()), "") or manager.unloaded()[0][0]


def _greet(url: str, manager: Manager, settings: Settings) -> None:
    """Show the address, the models and a sample request: on stdout for people, in the log for programs."""
    from ..advice import advice_on_quotations

    models = manager.list()
    unloaded = [name for name, _ in manager.unloaded()]
    advice = {model.name: text for model in models if (text := advice_on_quotations(model))}
    if settings.log_format == "json":
        fields = {"url": url, "models": [*(model.name for model in models), *unloaded], "quoted_calls": advice}
        _log.info("listening", extra={"fields": fields})
        return
    colour = coloured(sys.stdout)
    heads = ("MODEL", "FORMAT", "THINKING", "TOOLS", "CONTEXT")
    rows = [*(_row(model) for model in models), *((name, "loaded on demand", "", "", "") for name in unloaded)]
    where = f"{url} ({settings.uds})" if settings.uds else url
    lines = [
        "",
        painted([("untemplate serves on ", ""), (where, "title")], colour=colour),
        "",
        *(f"  {line}" for line in table(heads, rows).split("\n")),
        *(f"  {name}: {text}" for name, text in advice.items()),
        "",
        *(f"  {line}" for line in _example(url, _first(manager), models, settings)),
        "",
    ]
    print_text("\n".join(lines))
    sys.stdout.flush()


def _row(model: Model) -> tuple[str, ...]:
    context = str(model.context_length or "")
    parser = str(model.details.get("parser") or model.parser.format.name)
    return (
        model.name,
        parser,
        "yes" if model.thinks else "no",
        "generic" if model.generic_tools else "yes" if model.calls_tools else "no",
        context,
    )


def _example(url: str, name: str, models: Sequence[Model], settings: Settings) -> list[str]:
    chats = not models or models[0].chats
    path = "/v1/chat/completions" if chats else "/v1/completions"
    body: dict[str, Any] = {"model": name, "messages": [{"role": "user", "content": "Who are you?"}]}
    if not chats:
        body = {"model": name, "prompt": "6 times 7 is", "max_tokens": 64}
    body["stream"] = True
    options = f"--unix-socket {settings.uds} " if settings.uds else ""
    key = ' -H "Authorization: Bearer $API_KEY"' if settings.api_keys else ""
    return [
        f"curl -N {options}{url}{path}{key} \\",
        f"  -H 'Content-Type: application/json' -d '{json.dumps(body)}'",
    ]
