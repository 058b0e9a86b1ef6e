"""Traces, sent by the real SDK to a collector that only listens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from untemplate_gateway.engines.base import Job

from ..scripted import scripted
from ..server import LONG, running, soon

trace_service = pytest.importorskip(
    "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs OpenTelemetry (make test-scaling)"
)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    yield bodies
    server.shutdown()
    server.server_close()


def test_a_request_is_a_span_of_the_clients_trace(collector: list[bytes]):
    model = scripted("<think>\nHm.\n</think>\n\nHello.")
    asked = {"model": model.name, "messages": [{"role": "user", "content": "secret"}]}
    with running([model], traces=True) as gateway:
        for headers in ({"traceparent": PARENT}, {"traceparent": "nonsense"}):
            url = gateway.url + "/v1/chat/completions"
            assert httpx.post(url, json=asked, headers=headers, timeout=LONG).status_code == 200
        assert httpx.post(url, json={**asked, "model": "none"}, timeout=LONG).status_code == 404
    spans = []
    for body in collector:
        request = trace_service.ExportTraceServiceRequest.FromString(body)
        spans += [span for r in request.resource_spans for s in r.scope_spans for span in s.spans]
        assert b"secret" not in body
        assert b"Hello" not in body
    assert [span.name for span in spans] == ["chat scripted", "chat scripted", "chat"]
    assert (spans[0].trace_id.hex(), spans[0].parent_span_id.hex()) == tuple(PARENT.split("-")[1:3])
    assert spans[1].parent_span_id == b""
    found = {one.key: one.value for one in spans[0].attributes}
    assert found["gen_ai.operation.name"].string_value == "chat"
    assert found["gen_ai.request.model"].string_value == "scripted"
    assert found["gen_ai.usage.output_tokens"].int_value > 0
    assert found["gen_ai.response.finish_reasons"].array_value.values[0].string_value == "stop"
    failed = {one.key: one.value for one in spans[2].attributes}
    assert (failed["error.type"].string_value, failed["http.response.status_code"].int_value) == ("404", 404)


def test_the_text_of_an_exception_is_not_sent(collector: list[bytes]):
    def fail(job: Job) -> str:
        raise RuntimeError("secret")

    model = scripted(fail)
    with running([model], traces=True) as gateway:
        asked = {"model": model.name, "messages": [{"role": "user", "content": "secret"}]}
        assert httpx.post(gateway.url + "/v1/chat/completions", json=asked, timeout=LONG).status_code == 500
    [body] = collector
    assert b"secret" not in body
    [span] = trace_service.ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    assert (span.status.code, list(span.events)) == (2, [])


@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_leaves_is_the_status_499(collector: list[bytes], begun: bool):
    model = scripted("xxx\1" if begun else "\1")  # then it waits
    with running([model], traces=True) as gateway:
        asked = {"model": model.name, "messages": [{"role": "user", "content": "Hi"}], "stream": begun}
        if begun:
            with httpx.stream("POST", gateway.url + "/v1/chat/completions", json=asked, timeout=LONG) as stream:
                next(stream.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(gateway.url + "/v1/chat/completions", json=asked, timeout=0.3)
        assert soon(lambda: gateway.app.answers.running == 0)
    [body] = collector
    [span] = trace_service.ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    found = {one.key: one.value for one in span.attributes}
    assert found["http.response.status_code"].int_value == 499
    assert span.status.message == "the client closed the connection, or does not read"


def test_a_request_without_a_valid_key_is_a_span(collector: list[bytes]):
    with running([scripted("x")], traces=True, api_keys=("secret",)) as gateway:
        assert httpx.post(gateway.url + "/v1/chat/completions", json={}, timeout=LONG).status_code == 401
    [body] = collector
    [span] = trace_service.ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    assert {one.key: one.value.int_value for one in span.attributes}["http.response.status_code"] == 401
