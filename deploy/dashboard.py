"""Write the Grafana dashboard of the gateway's metrics: ``python deploy/dashboard.py > deploy/grafana.json``."""

from __future__ import annotations

import json
from typing import Any

RATE = "[$__rate_interval]"


def rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{RATE}))"


def quantile(metric: str, share: float = 0.95) -> str:
    return f"histogram_quantile({share}, sum by (le, model) (rate({metric}_bucket{RATE})))"


PANELS: tuple[tuple[str, str, str, str], ...] = (
    ("Requests", "reqps", rate("untemplate_requests_total", "model, status"), "{{model}} {{status}}"),
    ("Running requests", "short", "sum(untemplate_requests_running)", "running"),
    ("Output tokens", "short", rate("untemplate_tokens_total", "model, kind"), "{{model}} {{kind}}"),
    ("Time to first token, p95", "s", quantile("untemplate_time_to_first_token_seconds"), "{{model}}"),
    ("Time per output token, p95", "s", quantile("untemplate_time_per_output_token_seconds"), "{{model}}"),
    ("Longest time between tokens, p95", "s", quantile("untemplate_longest_time_between_tokens_seconds"), "{{model}}"),
    ("Duration, p95", "s", quantile("untemplate_request_seconds"), "{{model}}"),
    ("Queue, p95", "s", quantile("untemplate_queue_seconds"), "{{model}}"),
    ("Outcomes of outputs", "short", rate("untemplate_outputs_total", "model, outcome"), "{{model}} {{outcome}}"),
    ("Tool calls", "short", rate("untemplate_tool_calls_total", "model, status"), "{{model}} {{status}}"),
    ("Diagnostics", "short", rate("untemplate_diagnostics_total", "model, code"), "{{model}} {{code}}"),
    ("Failed attempts at upstreams", "short", rate("untemplate_upstream_errors_total", "model, code"), "{{code}}"),
    ("Retries at upstreams", "short", rate("untemplate_upstream_retries_total", "model"), "{{model}}"),
    ("Requests by API key", "reqps", rate("untemplate_key_requests_total", "key"), "{{key}}"),
)
"""Title, unit, query and legend."""


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    panels = [
        {
            "id": i + 1,
            "type": "timeseries",
            "title": title,
            "datasource": {"type": "prometheus", "uid": "${source}"},
            "gridPos": {"h": 8, "w": 8, "x": i % 3 * 8, "y": i // 3 * 8},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "targets": [{"refId": "A", "expr": query, "legendFormat": legend}],
        }
        for i, (title, unit, query, legend) in enumerate(PANELS)
    ]
    return {
        "title": "untemplate",
        "uid": "untemplate",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": panels,
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1))
