"""The report in its forms: counts, exit codes, JUnit, a page without scripts, a badge."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from untemplate._internal.cli import main
from untemplate._internal.cli.check import Progress
from untemplate.check._junit import junit
from untemplate.check._model import Capabilities, Report, Result
from untemplate.check._page import badge, page
from untemplate.check._statistics import interval, share
from untemplate.check._text import described, summary

from .fakes import fake
from .hostile import serving
from .test_faults import no_calls

EVIL = "<script>alert(1)</script>\x1b[31m\x00\ud800\u202e&\"'"


def report(*results: Result) -> Report:
    found = Capabilities(server="vllm", version="1.0", model=EVIL, format="hermes", apis=("chat",), way="choice")
    return Report(
        untemplate="0", url="http://h/v1", date="2026-11-22T10:00:00+00:00", capabilities=found, results=list(results)
    )


HOSTILE = report(
    Result(id="given/a/whole", verdict="fail", reason=EVIL, raw=EVIL, got={"content": EVIL}, replay=f"curl '{EVIL}'"),
    Result(id="given/b/whole", verdict="pass"),
    Result(id="given/c/whole", verdict="cannot", reason="no way"),
    Result(id="given/d/whole", verdict="soft", reason="white space", counts={"share": "4 of 5"}),
)


def test_a_page_has_no_script_and_escapes_everything() -> None:
    text = page(HOSTILE)
    text.encode()
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\u202e]", text)
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=|\son\w+=", text)


def test_junit_is_valid_xml_with_its_counts() -> None:
    suite = ET.fromstring(junit(HOSTILE))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [["failure"], [], ["skipped"], ["system-out"]]
    assert "<script>alert(1)</script>" in (suite[0][0].text or "")


def test_a_badge_counts_what_was_judged() -> None:
    assert "tool parsing: 2 of 3" in badge(HOSTILE)
    assert "#c9413b" in badge(HOSTILE)
    good = badge(report(Result(id="a", verdict="pass")))
    assert "1 of 1" in good
    assert "#2a9d5c" in good
    assert "#888" in badge(report(Result(id="a", verdict="cannot")))
    ET.fromstring(good)


def test_text_is_harmless() -> None:
    text = described(HOSTILE)
    assert "\x1b" not in text
    assert "cannot 1 checks: no way" in text
    assert summary(HOSTILE) == (
        "1 passed, 1 differ in white space, or in a reading on which servers differ, 1 failed, 1 cannot be tested here"
    )


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"), [(0, 0, 0, 1), (0, 10, 0, 0.278), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1)]
)
def test_intervals(hits: int, total: int, low: float, high: float) -> None:
    """Wilson's intervals as tables have them (Newcombe 1998, method 3)."""
    assert interval(hits, total) == (pytest.approx(low, abs=0.001), pytest.approx(high, abs=0.001))


def test_a_share_in_words() -> None:
    assert share(4, 5) == "4 of 5 (38–96 %)"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("junit", "html", "badge")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    only = ["--only", "given/rendered/one call", "--only", "given/rendered/plain"]
    with serving(fake("vllm")) as server:
        code = main(["check", "--base-url", server.url, "--format", "hermes", *only, *options])
    out = capsys.readouterr().out
    assert code == 0
    assert "4 passed (" in out
    assert all(path.stat().st_size > 300 for path in files.values())
    with serving(fake("vllm", whole=no_calls)) as server:
        code = main(["check", "--base-url", server.url, "--format", "hermes", *only, "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert code == 3
    assert [result["verdict"] for result in shown["results"]] == ["pass", "pass", "fail", "pass"]
    failed = shown["results"][2]
    assert failed["reason"] == "1 call expected, no calls came"
    assert failed["expected"]["calls"] == [{"name": "get_weather", "arguments": '{"city": "Rome"}'}]
    assert failed["replay"].startswith(f"curl -sS {server.url}/v1/chat/completions -H 'content-type: application/json'")


def test_a_key_comes_from_a_variable_that_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    assert main(["check", "--base-url", "http://h", "--api-key-env", "NO_SUCH_KEY"]) == 2
    assert capsys.readouterr().err == (
        "untemplate: error: --api-key-env NO_SUCH_KEY: this variable is not set, or empty\n"
    )


def test_a_model_of_unknown_format(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(fake("vllm")) as server:
        assert main(["check", "--base-url", server.url]) == 2
    assert capsys.readouterr().err == (
        "untemplate: error: the format of m is not known: name it with --format or --template\n"
    )


def test_the_parity_page(tmp_path: Path) -> None:
    """`benchmarks/parity.py` makes the page from reports; texts of servers are code in it."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(msgspec.to_builtins(msgspec.structs.replace(HOSTILE, results=[
        Result(id="behaviour/parallel calls", verdict="fail", reason="a | b `c`"),
        Result(id="given/a/whole", verdict="pass"),
        Result(id="given/b/whole", verdict="soft", reason="white space"),
        Result(id="behaviour/cut/length", verdict="cannot", reason="no way"),
    ]))))  # fmt: skip
    script = Path(__file__).parents[2] / "benchmarks" / "parity.py"
    done = subprocess.run([sys.executable, script, f"mine={path}"], capture_output=True, text=True, check=True)
    assert "| given texts, whole | 2 of 2 (1 soft) |\n" in done.stdout
    assert "| behaviour/cut | – |\n" in done.stdout
    assert "| `behaviour/parallel calls` | `` a \\| b `c` `` | vllm-project/vllm#9451 |\n" in done.stdout
    assert "| 1 | `no way` |\n" in done.stdout


def test_progress_outside_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line every ten seconds, so that a long run is not silent and a short one writes nothing."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress = Progress()
    for seconds, number in ((0, 0), (9, 1), (10, 2), (15, 3), (21, 4)):
        now = 100.0 + seconds
        progress(f"given/{number}\x1b", number, 9)
    progress.clear()
    assert capsys.readouterr().err == "2/9 given/2\\x1b\n4/9 given/4\\x1b\n"
