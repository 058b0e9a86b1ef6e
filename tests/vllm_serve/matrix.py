"""Ask the real vLLM server for one message in every API, way and choice of tools, whole and cut: part of `run.py`.

The checkpoint recites reasoning and two calls. They are requested

* whole and streamed, from each API, with each choice of tools: the answer is the message, and with ``none`` the calls
  are text;
* cut by ``max_tokens`` and by a stop string: no answer tells the client to run a call that was cut;
* aborted by the client, after which the server runs no request;
* by fifty clients at once, in every way.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.vllm_serve.answers import APIS, CHOICES, Answer, ask, body, judge

CUTS = ("cut by max_tokens", "cut by stop")
COLUMNS = (*APIS, *CUTS, "aborted", "50 at once")
STOPS = ("Paris", "}")
CLIENTS = 50


class Way(NamedTuple):
    """How a message is requested."""

    api: str
    stream: bool
    choice: str

    def __str__(self) -> str:
        return f"{self.api}, {'streamed' if self.stream else 'whole'}, {self.choice}"


WAYS = [Way(*way) for way in product(APIS, (False, True), CHOICES)]


class Matrix:
    """The answers of one server.

    Args:
        url: its API, with ``/v1``.
        log: its log.
        asked: the text of the request.
        message: the expected message: ``reasoning`` (optional) and ``calls``.
    """

    def __init__(self, url: str, log: Path, asked: str, message: dict[str, Any]) -> None:
        self._url, self._log, self._asked = url, log, asked
        self._reasoning: str = message.get("reasoning", "")
        self._calls: list[tuple[str, dict[str, Any]]] = message["calls"]
        self.right: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.wrong: list[str] = []

    def check(self) -> None:
        """Request everything."""
        with self._client() as client, ThreadPoolExecutor(8) as pool:
            for way, answer in zip(WAYS, pool.map(lambda way: self._ask(client, way, 500), WAYS), strict=True):
                self._count(way.api, str(way), self._problem(way, answer))
            tokens = self._tokens(client)
            all_cuts: dict[str, list[tuple[int, str | None]]] = {
                CUTS[0]: [(limit, None) for limit in (tokens // 4, tokens // 2, tokens * 3 // 4, tokens - 2)],
                CUTS[1]: [(tokens + 8, stop) for stop in STOPS],
            }
            for column, cuts in all_cuts.items():
                asked = list(product(WAYS, cuts))
                answers = pool.map(lambda one: self._ask(client, one[0], *one[1]), asked)
                for (way, cut), answer in zip(asked, answers, strict=True):
                    kind, what = judge(answer, self._calls)
                    self._count(column, f"{way}, {cut}", f"{kind} {what}" if kind not in ("", "shown") else "")
            list(pool.map(lambda way: self._abort(client, way), WAYS))
            self._count("aborted", "the server", self._busy(client))
        self._at_once()
        if "Traceback" in self._log.read_text("utf-8", errors="replace"):
            self.wrong.append(f"a traceback in {self._log}")

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, timeout=300, limits=httpx.Limits(max_connections=CLIENTS))

    def _count(self, column: str, label: str, problem: str) -> None:
        self.total[column] += 1
        if problem:
            self.wrong.append(f"{column}: {label}: {problem}")
        else:
            self.right[column] += 1

    def _ask(self, client: httpx.Client, way: Way, limit: int, stop: str | None = None) -> Answer | str:
        request = body(way.api, self._asked, limit, stop=stop, stream=way.stream, choice=way.choice)
        return ask(client, way.api, request)

    def _problem(self, way: Way, answer: Answer | str) -> str:
        """Return what is wrong with an answer that was not cut."""
        if isinstance(answer, str):
            return answer
        if way.choice == "none":
            written = [name for name, _ in self._calls] + [str(v) for _, found in self._calls for v in found.values()]
            as_text = not answer.calls and all(word in answer.content for word in written)
            return "" if as_text and answer.reasoning == self._reasoning else f"expected text, found {answer}"
        calls = [(name, json.loads(arguments)) for name, arguments in answer.calls]
        # Streamed by Chat Completions, the finish reason of a call that the client has named is `stop`, as OpenAI's.
        asks = not (way.stream and way.api == "chat" and way.choice == "named")
        expected = self._reasoning, "", self._calls, asks
        found = answer.reasoning, answer.content, calls, answer.asks
        return "" if found == expected else f"expected {expected}, found {found}"

    def _tokens(self, client: httpx.Client) -> int:
        request = body("chat", self._asked, 500, stream=False)
        return int(client.post(APIS["chat"], json=request).json()["usage"]["completion_tokens"])

    def _abort(self, client: httpx.Client, way: Way) -> None:
        """Leave in the middle of an answer."""
        request = body(way.api, self._asked, 500, stream=way.stream, choice=way.choice)
        if way.stream:
            with client.stream("POST", APIS[way.api], json=request) as response:
                for number, _ in enumerate(response.iter_lines()):
                    if number == 12:
                        break
        else:
            with suppress(httpx.TimeoutException):
                client.post(APIS[way.api], json=request, timeout=httpx.Timeout(300, read=0.05))

    def _busy(self, client: httpx.Client) -> str:
        """Wait until no request runs; return how many do after 30 seconds."""
        running = 0.0
        for _ in range(30):
            text = client.get(self._url.removesuffix("/v1") + "/metrics").text
            running = sum(map(float, re.findall(r"^vllm:num_requests_running\{.*\} (\S+)$", text, re.MULTILINE)))
            if not running:
                return ""
            time.sleep(1)
        return f"{running:.0f} requests still run"

    def _at_once(self) -> None:
        ways = random.Random(0).choices(WAYS, k=CLIENTS)
        with self._client() as client, ThreadPoolExecutor(CLIENTS) as pool:
            for way, answer in zip(ways, pool.map(lambda way: self._ask(client, way, 500), ways), strict=True):
                self._count("50 at once", str(way), self._problem(way, answer))

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        return [f"{self.right[column]} of {self.total[column]}" for column in COLUMNS]
