"""A scripted server of ``/v1/completions``: it calls a tool that the prompt offers, then repeats the tool's result.

It writes as models of the Hermes family do, so that the gateway in front of it has something to parse.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "umbrella-4711"
"""The result of the weather tool, and the content of the file that command line agents read."""
_CALLS: dict[str, dict[str, Any]] = {
    "get_weather": {"city": "Ulm"},
    "Bash": {"command": "cat secret.txt", "description": "Read the file"},
    "bash": {"command": "cat secret.txt", "description": "Read the file"},
    "run_shell_command": {"command": "cat secret.txt", "is_background": False},
    "exec_command": {"cmd": "cat secret.txt"},
    "shell": {"command": ["cat", "secret.txt"]},
    "shell_command": {"command": "cat secret.txt"},
    "local_shell": {"command": ["cat", "secret.txt"]},
}
"""Tool → the arguments with which it is called, in order of preference."""


def output(prompt: str) -> str:
    """Return the output of the model."""
    if forced := re.search(r'"name": "(\w+)", "arguments":\s*$', prompt):  # the gateway has begun the call
        return f" {json.dumps(_CALLS[forced[1]])}}}\n</tool_call><|im_end|>"
    asked = prompt.rpartition("<|im_start|>user")[2]
    results = re.findall(r"<\|im_start\|>tool\n(.*?)<\|im_end\|>", asked, re.DOTALL)
    if results:
        return f"The tool returned: {results[-1]}<|im_end|>"
    offered = set(re.findall(r'"name": "(\w+)"', prompt.partition("</tools>")[0]))
    for name, arguments in _CALLS.items():
        if name in offered:
            call = json.dumps({"name": name, "arguments": arguments})
            return f"One moment.\n<tool_call>\n{call}\n</tool_call><|im_end|>"
    return "Hello.<|im_end|>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._send(json.dumps({"data": [{"id": "scripted", "max_model_len": 200000}]}).encode(), "application/json")
        else:
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = output(body["prompt"])
        pieces = [text[i : i + 7] for i in range(0, len(text), 7)]
        events = [{"choices": [{"index": 0, "text": piece, "finish_reason": None}]} for piece in pieces]
        usage = {"prompt_tokens": len(body["prompt"]) // 4, "completion_tokens": len(pieces)}
        events.append({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": usage})
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._send(data.encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[str]:
    """Run the server; yield its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
