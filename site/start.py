"""Runs in the browser: makes an inspector, and answers its requests. Requests and answers are JSON text."""

import json
import time
from typing import Any

time.thread_time = time.perf_counter  # a browser's Python has no clock of its thread; a parse has its own worker

from untemplate._internal.inspector import Inspector, InspectorError  # noqa: E402


class NoModels:
    """A browser has no models: the page takes their templates and formats."""

    def names(self) -> list[str]:
        return []

    def find(self, name: str) -> Any:
        raise ValueError(f"model: {name!r} is not in your browser; paste its chat template, or name a format")


_inspector = Inspector(NoModels())


def answer(route: str, body: str) -> str:
    try:
        return json.dumps({"value": _inspector.answer(route, json.loads(body))})
    except InspectorError as error:
        return json.dumps({"error": str(error)})
