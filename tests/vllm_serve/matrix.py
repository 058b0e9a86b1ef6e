"""Ask the real vLLM server for one message in every API, way and choice of tools, whole and cut.

The checkpoint recites reasoning and two calls. They are requested

* whole and streamed, from each API, with each choice of tools: the answer is the message, and with ``none`` the calls
  are text;
* cut by ``max_tokens`` and by stop strings: with ``auto`` after every token, with the other choices at some places;
* aborted by the client, after which the server runs no request;
* by fifty clients at once, in every way.

A call is *broken* if it is not one of the two. A cut answer is wrong if it *serves* a broken call, that is, tells the
client to run it: all whole answers with a call do, streams whose finish reason asks for calls, and items that are
marked as completed. It is wrong, too, if nothing is left of the output after its first tokens, which may be markers.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.vllm_serve.answers import APIS, CHOICES, Answer, ask, body, judge, read

BY_LIMIT, BY_STOP, ABORTED, AT_ONCE = "cut by max_tokens", "cut by stop", "aborted", "50 at once"
COLUMNS = (*APIS, BY_LIMIT, BY_STOP, ABORTED, AT_ONCE)
STOPS = ("Paris", "city", "New", "name", "get_", "3", "}", "arguments")
CLIENTS = 50
MARKERS = 6
"""Most tokens at the start of an output that may be nothing but markers."""


class Way(NamedTuple):
    """How a message is requested."""

    api: str
    stream: bool
    choice: str

    def __str__(self) -> str:
        return f"{self.api}, {'streamed' if self.stream else 'whole'}, {self.choice}"


class Cut(NamedTuple):
    """Where an answer is cut, and what is wrong with it: see `judge`."""

    way: Way
    limit: int
    stop: str | None
    kind: str
    what: Any

    @property
    def column(self) -> str:
        return BY_LIMIT if self.stop is None else BY_STOP

    @property
    def is_wrong(self) -> bool:
        return self.kind in ("error", "served") or (self.kind == "empty" and self.limit > MARKERS)

    def __str__(self) -> str:
        return f"{self.way}, {self.stop or self.limit}: {self.kind} {self.what}"


WAYS = [Way(*way) for way in product(APIS, (False, True), CHOICES)]
AUTO = [way for way in WAYS if way.choice == "auto"]


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
        self._right: Counter[str] = Counter()
        self._total: Counter[str] = Counter()
        self.wrong: list[str] = []

    def check(self) -> None:
        """Request everything."""
        with self._client() as client, ThreadPoolExecutor(8) as pool:
            self._whole(client, pool, WAYS)
            for cut in self.cuts(client, pool, WAYS):
                self._count(cut.column, str(cut), not cut.is_wrong)
            list(pool.map(lambda way: self._abort(client, way), WAYS))
            running = self._running(client)
            self._count(ABORTED, f"{running} requests still run", not running)
        ways = random.Random(0).choices(WAYS, k=CLIENTS)
        with self._client() as client, ThreadPoolExecutor(CLIENTS) as pool:
            self._whole(client, pool, ways, AT_ONCE)
        if "Traceback" in self._log.read_text("utf-8", errors="replace"):
            self.wrong.append(f"a traceback in {self._log}")

    def _whole(self, client: httpx.Client, pool: Executor, ways: Sequence[Way], column: str | None = None) -> None:
        """Request answers that are not cut; count each in a column, by default that of its API."""
        for way, answer in zip(ways, pool.map(lambda way: self._ask(client, way, 500), ways), strict=True):
            problem = self._problem(way, answer)
            self._count(column or way.api, f"{way}: {problem}", not problem)

    def cuts(self, client: httpx.Client, pool: Executor, ways: Sequence[Way]) -> Iterator[Cut]:
        """Cut answers: after every token and by all stop strings with ``auto``, at some places with other choices."""
        request = body("chat", self._asked, 500, stream=False)
        tokens = int(client.post(APIS["chat"], json=request).json()["usage"]["completion_tokens"])
        asked: list[tuple[Way, int, str | None]] = []
        for way in ways:
            every = way.choice == "auto"
            limits = range(1, tokens) if every else (tokens // 4, tokens // 2, tokens * 3 // 4, tokens - 2)
            asked += [(way, limit, None) for limit in limits]
            asked += [(way, tokens + 8, stop) for stop in (STOPS if every else ("Paris", "}"))]
        answers = pool.map(lambda one: self._ask(client, *one), asked)
        for one, answer in zip(asked, answers, strict=True):
            yield Cut(*one, *judge(answer, self._calls))

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, timeout=300, limits=httpx.Limits(max_connections=CLIENTS))

    def _count(self, column: str, label: str, is_right: bool) -> None:
        self._total[column] += 1
        if is_right:
            self._right[column] += 1
        else:
            self.wrong.append(f"{column}: {label}")

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
        calls = [(name, read(arguments)) for name, arguments in answer.calls]
        # Streamed by Chat Completions, the finish reason of a call that the client has named is `stop`, as OpenAI's.
        asks = not (way.stream and way.api == "chat" and way.choice == "named")
        expected = self._reasoning, "", self._calls, asks
        found = answer.reasoning, answer.content, calls, answer.asks
        return "" if found == expected else f"expected {expected}, found {found}"

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

    def _running(self, client: httpx.Client) -> int:
        """Wait until no request runs; return how many do after 30 seconds."""
        running = 0.0
        for _ in range(30):
            text = client.get(self._url.removesuffix("/v1") + "/metrics").text
            running = sum(map(float, re.findall(r"^vllm:num_requests_running\{.*\} (\S+)$", text, re.MULTILINE)))
            if not running:
                break
            time.sleep(1)
        return int(running)

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        return [f"{self._right[column]} of {self._total[column]}" for column in COLUMNS]
