"""Metrics, a log line for each request, and raw outputs if the operator asks for them.

* A request is counted once, at its end. Nothing is counted per token.
* Logs contain no prompt, no output and no API key. Raw outputs go to a separate file, which the operator has to name.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from untemplate.errors import SettingsError

from .errors import ApiError
from .generation import Ended, Usage
from .manager.model import Model
from .notes import Notes
from .request_context import RequestContext, current

if TYPE_CHECKING:
    from .settings import Settings

_log: Final = logging.getLogger("untemplate.gateway")
_TOLD: Final = 1000
"""Most remarks on requests that are logged."""
_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_GAPS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_WORST: Final = ("incomplete", "invalid_json", "invalid_arguments", "unknown_tool", "recovered")
"""Statuses of calls, the worst first."""


def outcome(ended: Ended, model: Model, *, offered: bool) -> str:
    """Return the outcome of an output.

    ``ok``, the worst status of its calls, ``dropped_call`` if a policy dropped one, or ``fell_back_to_content`` if
    tools were offered and the content contains a marker that begins calls.
    """
    statuses = {call.status for call in ended.parsed.tool_calls}
    for status in _WORST:
        if status in statuses:
            return status
    if ended.finish_reason == "error":
        return "incomplete"
    if any(diagnostic.code == "dropped_call" for diagnostic in ended.parsed.diagnostics):
        return "dropped_call"
    content = ended.parsed.content
    if offered and content and any(marker in content for marker in model.call_markers):
        return "fell_back_to_content"
    return "ok"


@dataclass(slots=True, eq=False)
class Record:
    """One request, for metrics and the log."""

    id: str
    dialect: str
    """The dialect of its API, or the name of its endpoint."""
    began: float = field(default_factory=time.perf_counter)
    first: float | None = None
    """The time of the first chunk of output."""
    longest_gap: float = 0.0
    """Most seconds between two chunks of output."""
    context: RequestContext = field(default_factory=RequestContext)
    client: str = ""
    """The client's address, as far as a trusted proxy or the connection shows it."""
    asked: str = ""
    """Method and path."""
    requested: str = ""
    """The model's name in the request."""
    model: Model | None = None
    stream: bool = False
    status: int = 500
    usage: Usage = field(default_factory=Usage)
    ended: Sequence[Ended] = ()
    offered: bool = False
    """True if tools were offered."""
    error: str | None = None
    param: str | None = None
    detail: str = ""
    """More about the error; only for the log."""
    owner: str = ""
    """The name of the API key, or an empty text; stored responses belong to it."""
    key: str | None = None
    """The name of the API key."""
    stopped: ApiError | None = None
    """Why the gateway has stopped its work; ``None`` also while the server shuts down."""
    after: Callable[[], None] | None = None
    """Called when the request has ended and was counted."""

    def fail(self, error: ApiError) -> None:
        """Record why the request failed."""
        self.error, self.param, self.detail = error.message[:200], error.param, error.detail


class Metrics:
    """Metrics for Prometheus. Each gateway has its own registry, so that one process can run several gateways."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"untemplate_{name}", about, labels, registry=registry)

        def histogram(name: str, about: str, *labels: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
            return Histogram(f"untemplate_{name}", about, labels, buckets=buckets, registry=registry)

        model, gaps = ("model", "format"), "From first to last output, for each token after the first"
        self.requests = counter("requests", "Requests, by dialect, model and status", "dialect", "model", "status")
        self.running = Gauge(
            "untemplate_requests_running",
            "Requests that are being answered",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.seconds = histogram("request_seconds", "From request to last byte", "dialect", "model")
        self.first = histogram("time_to_first_token_seconds", "From request to first output", "model")
        self.per_token = histogram("time_per_output_token_seconds", gaps, "model", buckets=_GAPS)
        silence = "Longest silence of each stream, from chunk to chunk"
        self.gap = histogram("longest_time_between_tokens_seconds", silence, "model", buckets=_GAPS)
        self.queue = histogram("queue_seconds", "Waiting for a place at the engine", "model")
        self.upstream_errors = counter("upstream_errors", "Failed attempts at upstreams, by code", "model", "code")
        self.upstream_retries = counter("upstream_retries", "Attempts at upstreams after a failed one", "model")
        key = "by API key (the first 8 hex digits of its SHA-256)"
        self.key_requests = counter("key_requests", f"Requests, {key}", "key")
        self.key_tokens = counter("key_tokens", "Tokens, by API key: prompt, completion", "key", "kind")
        invalid = "What was no valid HTTP request, or not in time, by status"
        self.refused = counter("refused_connections", invalid, "status")
        kinds = "prompt, cached (of the prompt), completion, reasoning (of the completion)"
        self.tokens = counter("tokens", f"Tokens: {kinds}", "model", "kind")
        outcomes = ("ok", *reversed(_WORST), "dropped_call", "fell_back_to_content")
        self.outputs = counter("outputs", f"Outputs: {', '.join(outcomes)}", *model, "outcome")
        self.calls = counter("tool_calls", "Tool calls, by status", *model, "status")
        self.diagnostics = counter("diagnostics", "Diagnostics of outputs, by code", *model, "code")
        failed = "Errors of the engine's own parsers; the output was sent unparsed"
        self.parser_errors = counter("parser_errors", failed, "parser")

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format: with several workers, those of all of them."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def count(self, record: Record) -> None:
        """Count a request that has ended."""
        model = "" if record.model is None else record.model.name
        self.requests.labels(record.dialect, model, str(record.status)).inc()
        self.seconds.labels(record.dialect, model).observe(time.perf_counter() - record.began)
        self._count_times(record, model)
        usage = record.usage
        for kind, count in (
            ("prompt", usage.prompt_tokens),
            ("cached", usage.cached_tokens),
            ("completion", usage.completion_tokens),
            ("reasoning", usage.reasoning_tokens),
        ):
            if count:
                self.tokens.labels(model, kind).inc(count)
                if record.key is not None and kind in ("prompt", "completion"):
                    self.key_tokens.labels(record.key, kind).inc(count)
        if record.key is not None:
            self.key_requests.labels(record.key).inc()
        if record.model is None:
            return
        fmt = record.model.parser.format
        for ended in record.ended:
            self.outputs.labels(model, fmt.name, outcome(ended, record.model, offered=record.offered)).inc()
            for call in ended.parsed.tool_calls:
                self.calls.labels(model, fmt.name, call.status).inc()
            for diagnostic in ended.parsed.diagnostics:
                self.diagnostics.labels(model, fmt.name, diagnostic.code).inc()

    def _count_times(self, record: Record, model: str) -> None:
        """Count the times of a request, and its failed attempts at upstreams."""
        if record.first is not None:
            self.first.labels(model).observe(record.first - record.began)
            self.queue.labels(model).observe(record.context.queued)
            if record.usage.completion_tokens > 1:
                spent = time.perf_counter() - record.first
                self.per_token.labels(model).observe(spent / (record.usage.completion_tokens - 1))
                self.gap.labels(model).observe(record.longest_gap)
        for code in record.context.errors:
            self.upstream_errors.labels(model, code).inc()
        if record.context.retries:
            self.upstream_retries.labels(model).inc(record.context.retries)


class NotesLog:
    """Logs each remark on requests once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, notes: Notes) -> None:
        for text in notes.texts:
            if text not in self._told and len(self._told) < _TOLD:  # clients write parts of these texts
                self._told.add(text)
                _log.info("note on requests: %s", _printable(text))


def log_request(record: Record) -> None:
    """Log one line for a request that has ended."""
    fmt = None if record.model is None else record.model.parser.format
    fields: dict[str, Any] = {
        "request": record.id,
        "client": record.client or None,
        "asked": record.asked or None,
        "dialect": record.dialect,
        "model": None if record.model is None else record.model.name,
        "format": None if fmt is None else fmt.name,
        "status": record.status,
        "stream": record.stream,
        "seconds": round(time.perf_counter() - record.began, 4),
        "first": None if record.first is None else round(record.first - record.began, 4),
        "prompt_tokens": record.usage.prompt_tokens,
        "completion_tokens": record.usage.completion_tokens,
        "reasoning_tokens": record.usage.reasoning_tokens,
        "finish": [ended.finish_reason for ended in record.ended],
        "calls": [call.status for ended in record.ended for call in ended.parsed.tool_calls],
        "diagnostics": sorted({d.code for ended in record.ended for d in ended.parsed.diagnostics}),
        "key": record.key,
        "error": record.error,
        "detail": record.detail or None,
        "param": record.param,
    }
    if record.model is not None:
        fields["outcome"] = [outcome(ended, record.model, offered=record.offered) for ended in record.ended]
    kept = {key: value for key, value in fields.items() if value not in (None, [], 0) or key == "status"}
    level = logging.WARNING if record.status >= 500 else logging.INFO
    _log.log(level, "%s %s", record.dialect, record.status, extra={"fields": kept})


class JsonFormatter(logging.Formatter):
    """Formats each record as a JSON object: ``time``, ``level``, ``logger``, ``message``, and a request's fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update(fields)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


class TextFormatter(logging.Formatter):
    """Formats records for people: the message, then a request's fields."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            shown = " ".join(f"{k}={_short(v)}" for k, v in fields.items() if k not in ("dialect", "status"))
            text = f"{text} {shown}"
        return text


def _short(value: Any) -> str:
    return _printable(",".join(map(str, value)) if isinstance(value, list) else str(value))


def _printable(text: str) -> str:
    """Return a text that may quote the client: it must not begin a new line or move the cursor."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class RawLog:
    """Appends raw outputs to a file, one JSON object a line (``--log-raw``)."""

    def __init__(self, path: str) -> None:
        try:
            self._file = logging.FileHandler(path, encoding="utf-8")
        except OSError as error:
            raise SettingsError(f"log_raw {path}: {error.strerror or error}") from None

    def write(self, record: Record) -> None:
        """Write the outputs of a request that has ended."""
        if record.model is None:
            return
        fmt = record.model.parser.format
        for ended in record.ended:
            line = {
                "request": record.id,
                "choice": ended.index,
                "model": record.model.name,
                "format": fmt.name,
                "finish_reason": ended.finish_reason,
                "outcome": outcome(ended, record.model, offered=record.offered),
                "raw": ended.raw,
                "message": ended.parsed.message(),
            }
            self._file.handle(logging.makeLogRecord({"msg": json.dumps(line)}))

    def close(self) -> None:
        self._file.close()


def _with_request(record: logging.LogRecord) -> bool:
    """Add the id of the request during which something is logged."""
    context = current.get()
    if context is not None and not hasattr(record, "fields"):
        record.fields = {"request": context.headers.get("x-request-id")}
    return True


def log_to_stderr(settings: Settings) -> None:
    """Send everything that the gateway and its server log to one handler on stderr."""
    text = TextFormatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else text)
    handler.addFilter(_with_request)
    for name, level in (("untemplate", settings.log_level.upper()), ("uvicorn", "WARNING")):
        log = logging.getLogger(name)
        log.handlers = [handler]
        log.propagate = False
        log.setLevel(level)
