"""A hub on loopback: answers the requests of huggingface_hub from a dict."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Repos = dict[str, dict[str, bytes] | str]
"""Repository → its files, or ``gated``."""


def commit(repo: str) -> str:
    return hashlib.sha1(repo.encode()).hexdigest()


@contextmanager
def fake_hub(repos: Repos) -> Iterator[tuple[str, list[str]]]:
    """Run a hub; yield its URL, and the list of requested paths."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            asked.append(f"{self.command} /{path}")
            parts = path.split("/")
            repo = "/".join(parts[2:4] if parts[0] == "api" else parts[:2])
            found = repos.get(repo)
            if found is None:
                self.fail(404, "RepoNotFound", "Repository not found")
            elif isinstance(found, str):
                self.fail(403, "GatedRepo", "Access to this model is restricted")
            elif parts[0] == "api" and "tree" in parts:
                self.send(json.dumps([_entry(name, data) for name, data in found.items()]).encode())
            elif parts[0] == "api" and parts[4:5] == ["revision"] and parts[5] not in ("main", commit(repo)):
                self.fail(404, "RevisionNotFound", "Invalid rev id")
            elif parts[0] == "api":
                siblings = [
                    {"rfilename": name, "size": len(data), **_entry(name, data)} for name, data in found.items()
                ]
                self.send(json.dumps({"id": repo, "sha": commit(repo), "siblings": siblings}).encode())
            elif "/".join(parts[4:]) in found:
                self.send(found["/".join(parts[4:])], repo)
            else:
                self.fail(404, "EntryNotFound", "Entry not found")

        def send(self, data: bytes, repo: str = "") -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            if repo:
                self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
                self.send_header("X-Repo-Commit", commit(repo))
                self.send_header("Accept-Ranges", "bytes")
            else:
                self.send_header("Content-Type", "application/json")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def fail(self, status: int, code: str, message: str) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", message)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _entry(name: str, data: bytes) -> dict[str, Any]:
    return {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
