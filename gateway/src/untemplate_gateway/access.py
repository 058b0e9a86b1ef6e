"""Access to the gateway: which hosts and web pages may address it, which keys it takes, and how much each key may use.

* Without API keys on a loopback address, requests must name a loopback host: a web page whose domain points at
  127.0.0.1 (DNS rebinding) is refused.
* A request from a web page of another origin is refused, unless CORS allows that origin.
* API keys are kept as digests. Logs and metrics name a key by the first digits of its SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs, urlsplit

from .asgi import Scope, headers_of, is_gemini, path_of
from .errors import ApiError, overloaded
from .settings import Settings

_MINUTE: Final = 60.0
_EXCEEDED: Final = "rate_limit_exceeded"


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """True if a host name or address means this machine only."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_private(settings: Settings) -> bool:
    """True if only programs of this machine reach the gateway, as far as the settings show it."""
    return not settings.uds and is_loopback(settings.host)


def is_personal(settings: Settings) -> bool:
    """True if the gateway is private and has no API keys: keys on a loopback address mean a proxy in front."""
    return is_private(settings) and not settings.api_keys


class Access:
    """The access rules of one gateway.

    Args:
        settings: hosts, origins, keys and limits.
        clock: seconds, monotonic.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._keys: list[Key] = []
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Apply settings that were read again. Keys that remain keep what they have used."""
        self._origins = settings.cors_origins
        self._hosts = frozenset(name.strip("[]").rstrip(".").lower() for name in settings.allowed_hosts)
        self._checks_hosts = is_personal(settings) or bool(self._hosts)
        known = {key.digest: key for key in self._keys}
        digests = [hashlib.sha256(key.encode()).digest() for key in settings.api_keys]
        self._keys = [known.get(digest) or Key(digest, self._clock) for digest in digests]
        for key in self._keys:
            key.limit(settings)

    def check_page(self, scope: Scope) -> None:
        """Check the ``Host`` and ``Origin`` headers.

        Raises:
            ApiError: 403, the host or the origin is not allowed.
        """
        headers = scope.get("untemplate.headers") or headers_of(scope)
        host = headers.get(b"host", "")
        if self._checks_hosts and host:
            name = _host_name(host)
            if name not in self._hosts and not is_loopback(name):
                raise _forbidden(f"the host {name!r} is not allowed here; --allowed-host NAME allows one")
        origin = headers.get(b"origin", "")
        if origin and not self._allows(origin) and _host_of(origin) != host.lower():
            raise _forbidden(f"web pages of {origin!r} are not allowed here; --cors-origin ORIGIN allows them")

    def cors_headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Return the CORS headers of a response."""
        origin = (scope.get("untemplate.headers") or headers_of(scope)).get(b"origin", "")
        if not origin or not self._allows(origin):
            return []
        if "*" in self._origins:
            return [(b"access-control-allow-origin", b"*")]
        return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]

    def _allows(self, origin: str) -> bool:
        return "*" in self._origins or origin in self._origins

    def key_of(self, scope: Scope) -> Key | None:
        """Return the API key of a request; ``None`` if the gateway has no keys.

        Raises:
            ApiError: 401, the request has no valid key.
        """
        if not self._keys:
            return None
        headers = headers_of(scope)
        given = headers.get(b"authorization", "")
        text = given[7:].strip() if given[:7].lower() == "bearer " else headers.get(b"x-api-key", "")
        text = text or headers.get(b"x-goog-api-key", "")
        if not text and is_gemini(path_of(scope)):  # Google's clients may send it in the URL
            (text,) = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("key", [""])[:1]
        digest = hashlib.sha256(text.encode("latin-1", "replace")).digest()
        # All keys are compared, so that the time taken does not depend on which one matches.
        found = [key for key in self._keys if hmac.compare_digest(digest, key.digest)]
        if not found:
            problem = "no valid API key: send it as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'"
            raise ApiError(401, problem, type="authentication_error", code="invalid_api_key")
        return found[0]


class Key:
    """An API key, and how much it has used."""

    def __init__(self, digest: bytes, clock: Callable[[], float]) -> None:
        self.digest = digest
        self.name = digest.hex()[:8]
        """The key's name in logs and metrics."""
        self._most = 0
        self._running = 0
        self._requests = _Allowance(clock)
        self._tokens = _Allowance(clock)

    def limit(self, settings: Settings) -> None:
        """Apply the limits of these settings."""
        self._most = settings.key_concurrent_requests
        self._requests.limit(settings.key_requests_per_minute)
        self._tokens.limit(settings.key_tokens_per_minute)

    def begin(self, *, counts: bool = True) -> None:
        """Count a request that begins.

        Args:
            counts: False if it has been admitted before, and only takes a place now.

        Raises:
            ApiError: 429, the key has reached a limit.
        """
        if self._most and self._running >= self._most:
            raise overloaded(f"this API key may have {self._most} concurrent requests", code=_EXCEEDED)
        for allowance, unit in ((self._requests, "requests"), (self._tokens, "tokens")):
            wait = counts and allowance.wait()
            if wait:
                problem = f"this API key may use {allowance.per_minute} {unit} per minute"
                raise overloaded(problem, wait, code=_EXCEEDED)
        self._requests.use(counts)
        self._running += 1

    def end(self, tokens: int) -> None:
        """Count the end of a request that `begin` has admitted, and the tokens that it used."""
        self._running -= 1
        self._tokens.use(tokens)


class _Allowance:
    """An amount per minute that refills evenly. Use may exceed it; `wait` then includes the debt."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.per_minute = 0
        self._clock = clock
        self._left = 0.0
        self._at = clock()

    def limit(self, per_minute: int) -> None:
        """Change the amount. What has been used remains used."""
        self._refill()
        self._left += per_minute - self.per_minute
        self.per_minute = per_minute

    def _refill(self) -> None:
        now = self._clock()
        self._left = min(self.per_minute, self._left + (now - self._at) * self.per_minute / _MINUTE)
        self._at = now

    def wait(self) -> int:
        """Return the seconds until some of the amount is free again; 0 if some is free now."""
        if not self.per_minute:
            return 0
        self._refill()
        missing = min(1.0, self.per_minute) - self._left
        return math.ceil(missing * _MINUTE / self.per_minute) if missing > 0 else 0

    def use(self, amount: float) -> None:
        if self.per_minute:
            self._refill()
            self._left -= amount


def _forbidden(problem: str) -> ApiError:
    return ApiError(403, problem, type="permission_error", code="forbidden")


def _host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


def _host_of(origin: str) -> str:
    """Return host and port of an origin; empty for ``null``."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
