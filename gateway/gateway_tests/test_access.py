"""Hosts, origins, API keys and their limits."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from untemplate_gateway.access import Access, is_loopback
from untemplate_gateway.errors import ApiError
from untemplate_gateway.settings import Settings

from .scripted import scripted
from .server import LONG, running


def refused(settings: dict[str, Any], host: str, origin: str = "") -> str:
    """Return the reason why a request is refused; ``""`` if it is not."""
    headers = [(b"host", host.encode()), *([(b"origin", origin.encode())] if origin else [])]
    try:
        Access(Settings(**settings)).check_page({"headers": headers})
    except ApiError as error:
        return error.message if error.status == 403 else str(error.status)
    return ""


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "app.localhost", "LOCALHOST."])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "localhost.example", "10.0.0.1", "::", "127.0.0.1.example"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


class TestHosts:
    @pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "localhost"])
    def test_own_names(self, host: str) -> None:
        assert refused({}, host) == ""

    def test_a_domain_that_points_here(self) -> None:
        wanted = "the host 'rebound.example' is not allowed here; --allowed-host NAME allows one"
        assert refused({}, "rebound.example:8000") == wanted
        assert refused({"allowed_hosts": ("box",)}, "rebound.example") == wanted

    def test_what_the_operator_allows(self) -> None:
        assert refused({"allowed_hosts": ("box",)}, "BOX:8000") == ""
        assert refused({"allowed_hosts": ("box",), "host": "0.0.0.0"}, "other") != ""

    def test_with_keys_or_on_other_addresses_every_name_is_allowed(self) -> None:
        assert refused({"api_keys": ("k",)}, "a.example") == ""
        assert refused({"host": "0.0.0.0"}, "a.example") == ""
        assert refused({"uds": "/tmp/x"}, "a.example") == ""


class TestOrigins:
    @pytest.mark.parametrize("origin", ["https://a.example", "null", "http://localhost:3000", "http://[::1"])
    def test_other_pages(self, origin: str) -> None:
        wanted = f"web pages of {origin!r} are not allowed here; --cors-origin ORIGIN allows them"
        assert refused({}, "localhost:8000", origin) == wanted
        assert refused({"api_keys": ("k",)}, "localhost:8000", origin) == wanted

    def test_its_own_pages_and_those_that_cors_allows(self) -> None:
        assert refused({}, "localhost:8000", "http://localhost:8000") == ""
        assert refused({"cors_origins": ("https://a.example",)}, "localhost", "https://a.example") == ""
        assert refused({"cors_origins": ("*",)}, "localhost", "null") == ""

    def test_the_answer_has_the_shape_of_the_api(self) -> None:
        with running([scripted("x")]) as gateway:
            found = httpx.get(gateway.url + "/api/tags", headers={"origin": "https://a.example"}, timeout=LONG)
            problem = "web pages of 'https://a.example' are not allowed here; --cors-origin ORIGIN allows them"
            assert (found.status_code, found.json()) == (403, {"error": problem})


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def key_of(clock: Clock, **settings: Any) -> Any:
    access = Access(Settings(api_keys=("k",), **settings), clock)
    return access.key_of({"headers": [(b"x-api-key", b"k")]})


def too_much(key: Any) -> tuple[int, str, dict[str, str]]:
    with pytest.raises(ApiError) as caught:
        key.begin()
    return caught.value.status, caught.value.message, caught.value.headers


class TestLimitsOfKeys:
    def test_requests_per_minute(self) -> None:
        clock = Clock()
        key = key_of(clock, key_requests_per_minute=2)
        for _ in range(2):
            key.begin()
            key.end(0)
        problem = "this API key may use 2 requests per minute; try again"
        assert too_much(key) == (429, problem, {"Retry-After": "30"})
        clock.now = 30
        key.begin()
        assert too_much(key)[0] == 429

    def test_tokens_per_minute(self) -> None:
        clock = Clock()
        key = key_of(clock, key_tokens_per_minute=60)
        key.begin()
        key.end(90)
        assert too_much(key) == (429, "this API key may use 60 tokens per minute; try again", {"Retry-After": "31"})
        clock.now = 31
        key.begin()

    def test_concurrent_requests(self) -> None:
        key = key_of(Clock(), key_concurrent_requests=1)
        key.begin()
        problem = "this API key may have 1 concurrent requests; try again"
        assert too_much(key) == (429, problem, {"Retry-After": "1"})
        key.end(0)
        key.begin()

    def test_use_is_counted_by_a_name_that_is_not_the_key(self) -> None:
        ask = {"messages": [{"role": "user", "content": "Hi"}]}
        headers = {"x-api-key": "s3cret"}
        with running([scripted("x y z")], api_keys=("s3cret",), key_concurrent_requests=1) as gateway:
            for _ in range(2):
                url = gateway.url + "/v1/chat/completions"
                assert httpx.post(url, json=ask, headers=headers, timeout=LONG).status_code == 200
            text = httpx.get(gateway.url + "/metrics", headers=headers, timeout=LONG).text
        name = "1ec1c26b"
        assert f'untemplate_key_requests_total{{key="{name}"}} 2.0' in text
        assert f'untemplate_key_tokens_total{{key="{name}",kind="prompt"}} 14.0' in text
        assert "s3cret" not in text
