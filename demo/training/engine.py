"""A client for llama.cpp's HTTP server, which runs on this machine through ``xllamacpp``."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any


class Engine:
    """One model, served to this process only."""

    def __init__(self, path: Path, threads: int = 1, context: int = 1024) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.warmup = False
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.verbosity = -1
        self._server = xllamacpp.Server(params)
        self._address = self._server.listening_address

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request and return the whole answer."""
        request = urllib.request.Request(
            self._address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def tokenize(self, text: str) -> list[int]:
        """Return the token ids of a text, as the model gets them."""
        return self.post("/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]

    def complete(self, prompt: str, **settings: Any) -> dict[str, Any]:
        """Return the answer of llama.cpp's ``/completion``."""
        return self.post("/completion", {"prompt": prompt, "cache_prompt": False, **settings})
