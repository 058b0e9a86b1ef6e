"""No request is answered with a 5xx: schemathesis tests the gateway's own OpenAPI document.

`make test` sends a dozen requests per endpoint, `make laws` some thousands.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .scripted import scripted
from .server import LONG, Running, running

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    schemathesis = pytest.importorskip("schemathesis")

from untemplate_gateway.protocols.openapi import document

OUTPUT = '<think>\nHm.\n</think>\n\nSure.\n<tool_call>\n{"name": "f", "arguments": {"x": "a"}}\n</tool_call>'
PATHS = [(method, path) for path, methods in document("0")["paths"].items() for method in methods]
EVERY = pytest.mark.parametrize(("method", "path"), PATHS, ids=[path for _, path in PATHS])
ALLOWED = {501}
"""The status for features that the engine does not have."""


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
    hold(gateway, method, path, 6)


@pytest.mark.exhaustive
@EVERY
def test_no_5xx_often(gateway: Running, method: str, path: str) -> None:
    hold(gateway, method, path, 2000)


FIELDS = (
    *("messages", "prompt", "input", "tools", "tool_choice", "response_format", "format", "options", "text", "stop"),
    *("chat_template_kwargs", "logit_bias", "thinking", "reasoning", "stream_options", "system", "instructions", "n"),
    *(
        "max_tokens",
        "logprobs",
        "template",
        "tokens",
        "token_ids",
        "policy",
        "spans",
        "untemplate",
        "metadata",
        "model",
    ),
    *("continue_final_message", "thinking_budget", "think", "keep_alive", "stop_sequences", "seed", "echo", "suffix"),
)
KEYS = (
    *("role", "content", "type", "function", "name", "parameters", "arguments", "tool_calls", "id", "schema", "$ref"),
    *("json_schema", "properties", "required", "items", "enum", "allOf", "anyOf", "text", "documents", "self", "#"),
    *("user", "assistant", "tool", "object", "string", "json_object", "input_schema", "tool_use", "tool_result"),
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(KEYS) | st.text(max_size=5)
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(KEYS), v, max_size=4), max_leaves=12
)
MESSAGES = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100}
RIGHT: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": "Hi"},
    "/v1/completions": {"prompt": "Hi"},
    "/api/chat": {"messages": MESSAGES["messages"], "model": "scripted"},
    "/api/generate": {"prompt": "Hi", "model": "scripted"},
    "/api/show": {"model": "scripted"},
    "/v1/embeddings": {"input": "Hi"},
    "/v1/rerank": {"query": "Hi", "documents": ["Hi"]},
    "/api/embed": {"input": "Hi"},
    "/api/embeddings": {"prompt": "Hi"},
    "/tokenize": {"prompt": "Hi"},
    "/detokenize": {"tokens": [65]},
    "/parse": {"text": OUTPUT},
}


@EVERY
def test_one_or_two_fields_that_are_any_json(gateway: Running, method: str, path: str) -> None:
    if method != "post":
        return
    with httpx.Client(base_url=gateway.url, timeout=LONG) as client:

        @settings(max_examples=6, suppress_health_check=list(HealthCheck), deadline=None, database=None)
        @given(fields=st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=2))
        def law(fields: dict[str, Any]) -> None:
            response = client.post(path, json={**RIGHT.get(path, MESSAGES), **fields})
            assert response.status_code < 500 or response.status_code in ALLOWED, (fields, response.text)

        law()


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
        response = httpx.post(gateway.url + path, json=body, timeout=LONG)
        assert response.status_code < 500, (body, response.text)
