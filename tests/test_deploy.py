"""The files in deploy/: they name metrics, settings and options that exist, and the image's steps run."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

from untemplate_gateway.observe import Metrics
from untemplate_gateway.settings import BY_PATH, fields

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.exists(), reason="deploy/ belongs to the repository, not to the sdist")


def test_the_dashboard_is_made_from_its_script_and_asks_for_metrics_that_exist():
    spec = importlib.util.spec_from_file_location("dashboard", DEPLOY / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.dashboard()
    assert json.loads((DEPLOY / "grafana.json").read_text()) == made
    known: set[str] = set()
    for metric in Metrics().registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(metric.type, ("",))
        known |= {metric.name + suffix for suffix in suffixes}
    asked = {name for panel in made["panels"] for name in re.findall(r"untemplate_\w+", panel["targets"][0]["expr"])}
    assert asked - known == set()


def test_the_files_name_variables_and_extras_that_exist():
    variables = {name for one in fields() for name in one.env}
    used: set[str] = set()
    for path in (DEPLOY / "Dockerfile", DEPLOY / "compose.yaml"):
        used |= set(re.findall(r"UNTEMPLATE_[A-Z_]+", path.read_text()))
    assert used - variables == set()
    extras = tomllib.loads((ROOT / "gateway/pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = [path.read_text() for path in DEPLOY.iterdir() if path.is_file() and path.suffix != ".json"]
    named = {one for text in texts for group in re.findall(r"gateway\[([\w,-]+)\]|EXTRAS=([\w,-]+)", text)
             for one in "".join(group).split(",")}  # fmt: skip
    assert named - set(extras) == set()


def test_the_image_copies_what_exists_and_does_not_run_as_root():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    assert [word for word in copied if not (ROOT / word).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{word}" for word in copied} <= set(ignored)
    user = max(i for i, line in enumerate(lines) if line.startswith("USER "))
    assert lines[user] != "USER root"
    assert all(not line.startswith(("RUN", "COPY")) for line in lines[user:])


def test_the_unit_waits_longer_than_running_requests_may_take():
    unit = (DEPLOY / "untemplate.service").read_text()
    wait = re.search(r"TimeoutStopSec=(\d+)", unit)
    assert wait is not None
    assert float(wait[1]) > BY_PATH["shutdown_grace"].default
