"""llama.cpp through ``xllamacpp``: its own HTTP server, on this machine, and the one call that is made to it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any


class Engine:
    """One model, served to this process."""

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
        """One request, whole."""
        request = urllib.request.Request(
            self._address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def tokenize(self, text: str) -> list[int]:
        """Text as the ids that the model gets."""
        return self.post("/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]

    def complete(self, prompt: str, **settings: Any) -> dict[str, Any]:
        """What llama.cpp's ``/completion`` answers."""
        return self.post("/completion", {"prompt": prompt, "cache_prompt": False, **settings})
