"""No request whatever is answered with a 5xx: schemathesis over the gateway's own OpenAPI document.

`make test` asks a few dozen times per endpoint, `make laws` some thousands of times.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from .scripted import scripted
from .server import Running, running

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    schemathesis = pytest.importorskip("schemathesis")

from untemplate.serving.protocols.openapi import document

OUTPUT = '<think>\nHm.\n</think>\n\nSure.\n<tool_call>\n{"name": "f", "arguments": {"x": "a"}}\n</tool_call>'
PATHS = [(method, path) for path, methods in document("0")["paths"].items() for method in methods]
EVERY = pytest.mark.parametrize(("method", "path"), PATHS, ids=[path for _, path in PATHS])
ALLOWED = {501}
"""What the engine cannot do."""


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running([scripted(OUTPUT)], any_model_name=True) as running_:
        yield running_


def hold(gateway: Running, method: str, path: str, examples: int) -> None:
    operation = schemathesis.openapi.from_dict(document("0"))[path][method]

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None, database=None)
    @given(case=operation.as_strategy())
    def law(case: Any) -> None:
        response = case.call(base_url=gateway.url)
        assert response.status_code < 500 or response.status_code in ALLOWED, (case.body, response.text)
        if response.status_code >= 400:
            assert "error" in response.json()

    law()


@EVERY
def test_no_5xx(gateway: Running, method: str, path: str) -> None:
    hold(gateway, method, path, 20)


@pytest.mark.exhaustive
@EVERY
def test_no_5xx_often(gateway: Running, method: str, path: str) -> None:
    hold(gateway, method, path, 2000)


BODIES: list[Any] = [
    None,
    1,
    "x",
    [],
    {},
    {"messages": 1},
    {"messages": [1]},
    {"input": [[]]},
    {"prompt": {}},
    {"text": 1},
]


@EVERY
def test_wrong_types(gateway: Running, method: str, path: str) -> None:
    if method != "post":
        return
    for body in BODIES:
        response = httpx.post(gateway.url + path, json=body)
        assert response.status_code < 500, (body, response.text)
