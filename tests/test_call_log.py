"""Every dropped call and every invalid one that is kept is a logged warning."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from untemplate import OutputParser, Policy
from untemplate.formats import named

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]


def call(name: str, arguments: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


CUT = '<tool_call>{"name": "f", "arguments": {"a": "secret'
CASES = [
    (call("g", "{}"), "call of 'g': the tool was not offered"),
    (
        call("f", '{"a": "secret"}'),
        "call of 'f': its arguments do not fit the tool's schema ($.b missing, $.a type)",
    ),
    (call("f", '{"a": secret}'), "call of 'f': its arguments are not a JSON object"),
    (CUT, "call of 'f': the output ended inside it"),
    (call("g\\nh" + "x" * 200, "{}"), f"call of 'g\\nh{'x' * 77}': the tool was not offered"),
]


def logged(raw: str, caplog: pytest.LogCaptureFixture, *, collect: bool = True, **policy: Any) -> list[str]:
    parser = OutputParser.named("hermes", policy=Policy(**policy))
    caplog.clear()
    with caplog.at_level(logging.WARNING, "untemplate"):
        stream = parser.stream(tools=TOOLS, collect=collect)
        for character in raw:
            stream.feed(character)
        stream.finish()
        if collect:
            stream.result()
            stream.result()
    assert all(record.name == "untemplate" and record.levelname == "WARNING" for record in caplog.records)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(("raw", "reason"), CASES)
def test_kept_and_dropped_calls(raw: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    assert logged(raw, caplog) == [f"kept {reason}"]
    assert logged(raw, caplog, repair="syntax") == [f"kept {reason}"]
    assert logged(raw, caplog, strict=True) == [f"dropped {reason}"]


def test_the_policies_that_drop(caplog: pytest.LogCaptureFixture) -> None:
    good = call("f", '{"a": 1, "b": 2}')
    assert logged(good, caplog) == []
    assert logged(good, caplog, strict=True) == []
    assert logged(call("g", "{}"), caplog, unknown_tools="drop") == ["dropped call of 'g': the tool was not offered"]
    assert logged(CUT, caplog, cut_calls="drop") == ["dropped call of 'f': the output ended inside it"]
    assert logged(good + good, caplog, parallel_calls="first") == ["dropped call of 'f': it is not the first call"]


@pytest.mark.parametrize("policy", [{"unknown_tools": "content"}, {"parallel_calls": "first_rest_as_content"}])
def test_a_call_that_becomes_content_is_not_dropped(policy: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    raw = call("f", '{"a": 1, "b": 2}') + call("g", "{}")
    assert logged(raw, caplog, **policy) == []


def test_a_stream_that_keeps_nothing_warns_of_what_it_knows(caplog: pytest.LogCaptureFixture) -> None:
    found = [logged(raw, caplog, collect=False) for raw, _ in CASES]
    assert found == [[f"kept {CASES[0][1]}"], [], [], [f"kept {CASES[3][1]}"], [f"kept {CASES[4][1]}"]]
    assert logged(CASES[1][0], caplog, collect=False, strict=True) == [f"dropped {CASES[1][1]}"]


def test_unknown_tools_means_that_no_name_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "untemplate"):
        OutputParser.named("hermes").parse(call("g", "{}"))
    assert caplog.records == []


_CUT = """
import logging
from untemplate import OutputParser
CONFIGURE
for name in "fg":
    OutputParser.named("hermes").parse('<tool_call>{"name": "%s", "arguments": {"x' % name)
"""


@pytest.mark.parametrize(
    ("configure", "shown"),
    [
        (
            "",
            "kept call of 'f': the output ended inside it (further warnings of untemplate are not shown: configure "
            "logging)\n",
        ),
        ("logging.getLogger('untemplate').addHandler(logging.NullHandler())", ""),
        (
            "logging.basicConfig(format='%(message)s')",
            "kept call of 'f': the output ended inside it\nkept call of 'g': the output ended inside it\n",
        ),
    ],
)
def test_a_process_that_does_not_listen_shows_one_warning(configure: str, shown: str) -> None:
    code = _CUT.replace("CONFIGURE", configure)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True)
    assert (done.stdout, done.stderr) == ("", shown)


def test_a_measure_of_quoted_calls_leaves_the_log_as_it_is(caplog: pytest.LogCaptureFixture):
    """Servers measure several models at once, in threads, while others are parsed."""
    formats = [named(name) for name in ("hermes", "mistral", "qwen3_coder", "glm45")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda fmt: OutputParser.from_format(fmt).quoted_calls, formats * 4))
    with caplog.at_level("WARNING", logger="untemplate"):
        OutputParser.named("hermes").parse('<tool_call>{"name": "f", "argu')
    assert [record.getMessage() for record in caplog.records] == ["kept call of 'f': the output ended inside it"]
