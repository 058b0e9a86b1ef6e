"""OpenTelemetry traces: one span for each request for model output, with the names of the GenAI conventions.

The SDK's own variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_SERVICE_NAME`` …) configure it. Spans contain no prompt
and no output. The trace continues the client's and is continued at upstreams (``traceparent``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from untemplate._internal.installed import install_command
from untemplate.errors import SettingsError

from .observe import Record

_COMPLETIONS: Final = ("completions", "generate")


class Tracing:
    """Makes spans.

    Raises:
        SettingsError: the packages are missing.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import propagate, trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            command = install_command("untemplate-gateway", "otel")
            raise SettingsError(f"traces: need OpenTelemetry: {command}") from None
        name = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "untemplate")}
        self._provider = TracerProvider(resource=Resource.create(name))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("untemplate")
        self._propagate: Any = propagate
        self._trace: Any = trace

    @contextmanager
    def span(self, record: Record) -> Iterator[None]:
        """Open the span of a request, and fill it from the record when the request has ended."""
        headers = record.context.headers
        parent = self._propagate.extract(headers)
        kind = self._trace.SpanKind.SERVER
        # The texts of exceptions may quote the prompt.
        quiet = {"record_exception": False, "set_status_on_exception": False}
        with self._tracer.start_as_current_span(record.dialect, context=parent, kind=kind, **quiet) as span:
            self._propagate.inject(headers)
            try:
                yield
            finally:
                self._fill(span, record)

    def _fill(self, span: Any, record: Record) -> None:
        model = "" if record.model is None else record.model.name
        span.update_name(f"{record.dialect} {model}".rstrip())
        usage = record.usage
        reasons = [ended.finish_reason for ended in record.ended]
        attributes = {
            "gen_ai.operation.name": "text_completion" if record.dialect in _COMPLETIONS else "chat",
            "gen_ai.provider.name": "untemplate",
            "gen_ai.request.model": record.requested or model,
            "gen_ai.response.model": model,
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.response.finish_reasons": reasons,
            "http.response.status_code": record.status,
            "untemplate.request_id": record.id,
            "untemplate.stream": record.stream,
        }
        for name, value in attributes.items():
            if value not in ("", []):
                span.set_attribute(name, value)
        if record.error is not None or record.status >= 500:
            span.set_attribute("error.type", str(record.status))
            span.set_status(self._trace.StatusCode.ERROR, record.error)

    def close(self) -> None:
        """Send the spans that are left."""
        self._provider.shutdown()
