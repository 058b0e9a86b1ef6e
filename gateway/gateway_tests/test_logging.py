"""The log of the gateway."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from untemplate_gateway.observe import log_to_stderr
from untemplate_gateway.request_context import RequestContext, current
from untemplate_gateway.settings import Settings


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    found = [logging.getLogger(name) for name in ("untemplate", "uvicorn")]
    before = [(log.handlers, log.propagate, log.level) for log in found]
    yield
    for log, (handlers, propagate, level) in zip(found, before, strict=True):
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)


def test_warnings_during_a_request_have_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(Settings(model="replay", log_format="json"))
    token = current.set(RequestContext(headers={"x-request-id": "request-1"}))
    try:
        logging.getLogger("untemplate").warning("kept call of %r: the tool was not offered", "f")
    finally:
        current.reset(token)
    logging.getLogger("untemplate").warning("of no request")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["message"], first["request"]) == ("kept call of 'f': the tool was not offered", "request-1")
    assert "request" not in second
