"""Requests to the server that is checked: with a rate limit, a budget of tokens, deadlines and few retries.

Every problem of the connection is one line that names the remedy. The key is sent, and replaced by the name of its
variable in all that is kept.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

import httpx
import msgspec

from .._internal.sse import EventReader
from ._model import json_of

_AGAIN: Final = frozenset((429, 502, 503, 504))
_ATTEMPTS: Final = 3
_LONGEST_WAIT: Final = 30.0
"""Seconds. A server that asks for a longer wait is not asked again."""
_LONGEST: Final = 16 * 1024 * 1024
"""Bytes of a response."""
_SHOWN: Final = 200
"""Characters of an error that are kept."""


class Unusable(Exception):
    """The server cannot be checked at all; the message is one line."""


class NoAnswer(Exception):
    """A request was not answered, or its response broke off; the message is one line."""


class Late(NoAnswer):
    """A response was not whole when its time was up: a slow machine or a model that does not end explains it too."""


class OutOfBudget(Exception):
    """The budget of tokens is used up."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a run."""

    rate: float = 0.0
    """Requests per minute; 0 for no limit."""
    tokens: int = 0
    """Most tokens of prompts and outputs; 0 for no limit."""
    timeout: float = 120.0
    """Seconds for one response."""


class Answer(msgspec.Struct, kw_only=True):
    """A response to a request."""

    status: int
    headers: Mapping[str, str] = {}
    text: str = ""
    """The body of a response that is not a stream."""
    value: Any = None
    """The body as JSON; ``None`` if it is not JSON."""
    events: list[str] = []
    """Data of the events of a stream."""

    @property
    def ok(self) -> bool:
        return self.status == 200

    @property
    def problem(self) -> str:
        """The error in one line; empty without one."""
        return "" if self.ok else f"HTTP {self.status}: {_error_text(self.value) or _line(self.text)}".rstrip(": ")


class Server:
    """The server that is checked.

    Args:
        url: base URL as OpenAI's clients take it; ``/v1`` is added if it has no path.
        key: API key, or empty.
        key_name: name of the environment variable of the key.
        limits: rate, budget and timeout.

    Raises:
        Unusable: the URL or the key is invalid.
    """

    def __init__(self, url: str, *, key: str = "", key_name: str = "", limits: Limits = Limits()) -> None:  # noqa: B008
        self.url: str = _base(url)
        self.key_name = key_name
        self._key = key
        self.limits = limits
        self.requests: int = 0
        self.answered: int = 0
        self.tokens: int = 0
        self._next = 0.0
        headers = {"authorization": f"Bearer {key}"} if key else {}
        anthropic = {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
        root = re.sub(r"/v\d+$", "", self.url)
        self._prefix = self.url[len(root) :]
        self._root = _checked(root)
        self._headers = {"accept-encoding": "identity", **headers}
        self._anthropic = {**self._headers, **anthropic}
        try:
            "".join(self._headers.values()).encode("latin-1")
        except UnicodeEncodeError as error:
            raise Unusable(f"--api-key-env: {error.object[error.start]!r} is not allowed in a key") from None
        # The server's own time is measured from the first byte, so none but the connection has a timeout of httpx.
        timeout = httpx.Timeout(limits.timeout, connect=10)
        self._client = httpx.AsyncClient(timeout=timeout, limits=httpx.Limits(max_connections=None))

    async def close(self) -> None:
        await self._client.aclose()

    def hidden(self, text: str) -> str:
        """Return the text with the name of the key's variable in place of the key."""
        return text.replace(self._key, f"${self.key_name}") if self._key else text

    def curl(self, path: str, body: Any) -> str:
        """Return a shell command that sends a request again."""
        data = body.decode("utf-8", "replace") if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False)
        quoted = self.hidden(data).replace("'", "'\\''")
        key = f' -H "authorization: Bearer ${self.key_name}"' if self._key else ""
        return f"curl -sS {self.url}{path} -H 'content-type: application/json'{key} -d '{quoted}'"

    async def get(self, path: str, *, root: bool = False) -> Answer:
        """Request a path below the base URL; with ``root``, below the server's root."""
        return await self._asked("GET", path if root else self._prefix + path, None)

    async def post(self, path: str, body: Any, *, root: bool = False) -> Answer:
        """Send a request and return its answer, whatever its status. ``body`` may be bytes, sent as they are.

        Raises:
            NoAnswer: the server did not answer, or broke off.
            OutOfBudget: the budget is used up.
        """
        if self.limits.tokens and self.tokens >= self.limits.tokens:
            raise OutOfBudget(f"the budget of {self.limits.tokens} tokens is used up")
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        answer = await self._asked("POST", path if root else self._prefix + path, data)
        self.tokens += _used(answer)
        return answer

    async def _asked(self, method: str, path: str, body: bytes | None) -> Answer:
        for attempt in range(_ATTEMPTS):
            await self._turn()
            try:
                answer = await self._once(method, path, body)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if attempt + 1 < _ATTEMPTS:
                    await asyncio.sleep(0.2 * 2**attempt)
                    continue
                raise NoAnswer(f"{self.url} cannot be reached: {_why(error)}") from None
            except (TimeoutError, httpx.TimeoutException):
                problem = f"no whole response within {self.limits.timeout:g} s"
                raise Late(f"{self.url} is silent: {problem} (--timeout)") from None
            except (httpx.RemoteProtocolError, httpx.DecodingError, httpx.InvalidURL, ValueError) as error:
                if "disconnected" in str(error) or "closed" in str(error):
                    raise NoAnswer(f"{self.url} closed the connection in the middle of a response") from None
                raise NoAnswer(f"{self.url} does not speak HTTP as expected: {error}") from None
            except httpx.HTTPError:
                raise NoAnswer(f"{self.url} closed the connection in the middle of a response") from None
            self.answered += 1
            wait = _wait(answer.headers.get("retry-after"), attempt)
            if answer.status not in _AGAIN or attempt + 1 == _ATTEMPTS or wait > _LONGEST_WAIT:
                return answer
            await asyncio.sleep(wait)
        raise AssertionError

    async def _turn(self) -> None:
        """Wait until the rate limit allows the next request."""
        if self.limits.rate:
            now = time.monotonic()
            self._next = max(self._next, now) + 60 / self.limits.rate
            await asyncio.sleep(max(0.0, self._next - 60 / self.limits.rate - now))
        self.requests += 1

    async def _once(self, method: str, path: str, body: bytes | None) -> Answer:
        headers = self._anthropic if path.endswith("/messages") else self._headers
        if body is not None:
            headers = {**headers, "content-type": "application/json"}
        request = self._client.stream(method, self._root + path, content=body, headers=headers)
        async with asyncio.timeout(self.limits.timeout), request as response:
            if "event-stream" in response.headers.get("content-type", ""):
                reader, found = EventReader(), []
                async for chunk in response.aiter_bytes():
                    found += reader.feed(chunk)
                found += reader.end()
                events = [self.hidden(event.decode("utf-8", "replace")) for event in found]
                return Answer(status=response.status_code, headers=response.headers, events=events)
            text = self.hidden((await _body(response)).decode("utf-8", "replace"))
        return Answer(status=response.status_code, headers=response.headers, text=text, value=json_of(text))


async def _body(response: httpx.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > _LONGEST:
            raise ValueError(f"the response is longer than {_LONGEST} bytes")
    return b"".join(parts)


def _checked(url: str) -> str:
    """Return a URL that requests can be sent to.

    Raises:
        Unusable: it is not one.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise Unusable(f"--base-url: {url!r} is not an http:// or https:// URL")
    return url


def _why(error: httpx.TransportError) -> str:
    """Return the reason why there is no connection: the system's words for it."""
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection within 10 s"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)


def _base(url: str) -> str:
    url = re.sub(r"(?<=://)[^/?#]*@", "", url).split("?")[0].split("#")[0].rstrip("/")
    return url if "/" in url.partition("://")[2] else f"{url}/v1"


def _line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]


def _error_text(value: Any) -> str:
    """Return the message of an error object, in the shapes that servers use."""
    for _ in range(3):
        if not isinstance(value, dict):
            break
        value = next((value[key] for key in ("error", "message", "detail") if value.get(key)), None)
    return _line(value if isinstance(value, str) else json.dumps(value)) if value else ""


def _used(answer: Answer) -> int:
    """Return the tokens that a response counts; for one without a count, an estimate."""
    values = [answer.value] if answer.value is not None else [json_of(event) for event in answer.events[-8:]]
    for value in reversed(values):
        for holder in (value, value.get("response") if isinstance(value, dict) else None):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                return sum(n for key, n in usage.items() if key in _COUNTED and isinstance(n, int))
    return (len(answer.text) + sum(map(len, answer.events))) // 64


_COUNTED: Final = frozenset(("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"))


def _wait(header: str | None, attempt: int) -> float:
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return 0.5 * 2.0**attempt
