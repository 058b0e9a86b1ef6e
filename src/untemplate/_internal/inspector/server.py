"""Serves the inspector alone, to this machine only, with nothing but Python's own server."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from ...selection import select
from ...templates import ChatTemplate
from ..output_parser import OutputParser
from .inspector import Inspector, InspectorError
from .page import FILES, HEADERS, read_file

_NAMES: Final = ("127.0.0.1", "localhost", "::1")
_MAX_BODY: Final = 16 * 1024 * 1024


class LocalModels:
    """Models that the user of this machine names: folders, GGUF files and hub ids."""

    def names(self) -> list[str]:
        return []

    def find(self, name: str) -> tuple[OutputParser, ChatTemplate | None]:
        """Return a model's parser and its chat template.

        Raises:
            ValueError: there is no such model.
        """
        selection = select(name)
        return OutputParser.from_format(selection.format), selection.template


def make_server(port: int, site: str = "") -> ThreadingHTTPServer:
    """Return a server on a loopback address.

    Args:
        port: 0 for any free one.
        site: address of a site with the inspector, for links to cases.

    Raises:
        OSError: the port is in use.
    """
    inspector = Inspector(LocalModels(), site)

    class Handler(_Handler):
        answers = inspector

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request. Pages of other origins are refused, and so are other names of this machine, which may be
    those of a foreign page (DNS rebinding)."""

    answers: Inspector
    server_version = "untemplate"
    sys_version = ""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if not self._is_own_page():
            self._reply(403, {"error": "this host or origin is not allowed here"})
        elif path in ("/", "/inspect"):
            self.send_response(307)
            self.send_header("Location", "/inspect/")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path.startswith("/inspect/") and path.removeprefix("/inspect/") in FILES:
            name, media_type = FILES[path.removeprefix("/inspect/")]
            self._send(200, media_type.decode(), read_file(name))
        else:
            self._reply(404, {"error": f"there is nothing at {path}"})

    def do_POST(self) -> None:
        route = urlsplit(self.path).path.removeprefix("/inspect/api/")
        size = self.headers.get("Content-Length", "")
        if not self._is_own_page() or self.headers.get_content_type() != "application/json":
            self._reply(403, {"error": "this host, origin or type of body is not allowed here"})
        elif route not in self.answers.routes:
            self._reply(404, {"error": f"there is nothing at {self.path}"})
        elif not size.isdecimal() or int(size) > _MAX_BODY:
            self._reply(413, {"error": f"a body has at most {_MAX_BODY} bytes"})
        else:
            self._answer(route, self.rfile.read(int(size)))

    def _answer(self, route: str, body: bytes) -> None:
        try:
            self._reply(200, self.answers.answer(route, json.loads(body)))
        except InspectorError as error:
            self._reply(400, {"error": str(error)})
        except (ValueError, RecursionError):
            self._reply(400, {"error": "the body is not JSON"})

    def _is_own_page(self) -> bool:
        host = self.headers.get("Host", "")
        origin = self.headers.get("Origin")
        return urlsplit(f"//{host}").hostname in _NAMES and (origin is None or urlsplit(origin).netloc == host)

    def _reply(self, status: int, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, media_type: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS:
            self.send_header(name.decode(), value.decode())
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests hold the outputs of models."""
