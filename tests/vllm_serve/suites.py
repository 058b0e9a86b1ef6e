"""Run vLLM's own parser tests on untemplate: `make test-vllm`.

usage: python -m tests.vllm_serve.suites --source FOLDER [--record] [--only SUITE]

* ``engine``: vLLM 0.25's declarative parser files, on untemplate's ``ParserEngine``.
* ``tool_parsers``, ``reasoning``: the tests of vLLM 0.33, with its parser classes replaced by untemplate's plugin. They
  run once more with vLLM's classes, because only a test that vLLM passes here shows a difference.

``recorded/`` holds the tests that do not pass, with the beginning of their error. One more is an error of this run.
``--record`` writes them anew, and the page docs/vllm-tests.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
PAGE: Final = ROOT / "docs" / "vllm-tests.md"
PASSED: Final = "passed"
NOT_RUN: Final = ("skipped", "untouched")


class Suite(NamedTuple):
    """Tests of one version of vLLM, and the plugin that puts untemplate in."""

    version: str
    folder: str
    confcut: str
    plugin: str
    title: str
    compares: bool
    """True if the tests run once more with vLLM's own classes."""


SUITES: Final = {
    "engine": Suite(
        "0.25.0",
        "tests/parser/engine",
        "tests/parser",
        "untemplate_engine",
        "declarative parser files on untemplate's `ParserEngine`",
        False,
    ),
    "tool_parsers": Suite(
        "0.33.0", "tests/tool_parsers", "tests/tool_parsers", "untemplate_parsers", "tool parsers", True
    ),
    "reasoning": Suite("0.33.0", "tests/reasoning", "tests/reasoning", "untemplate_parsers", "reasoning parsers", True),
    "parser": Suite("0.33.0", "tests/parser", "tests/parser", "untemplate_parsers", "parsers of both", True),
}

REASONS: Final = (
    # pattern over the test and its error, reason; the first that fits
    (r"XPASS\(strict\)", "vLLM's own parser is expected to fail here, and untemplate passes"),
    (r"tool_choice_none|ToolCallFiltering|leaked into content|implicit_end",
     "with `tool_choice: none` untemplate drops nothing: markup of calls stays in the content as text"),
    (r"AttributeError|TypeError: int\(\)|streaming_wrapper_unwrap|unwrap_parallel_streaming|DID NOT RAISE|<class |"
     r"Tool index should be initialized|just_forward_text|multi_invoke_indices|TestEventsToDelta|TestPostToolContent",
     "reads attributes, errors or intermediate deltas of vLLM's implementation"),
    (r"DeferralFinish|deferred_channel_end|ToolPreambleFinish|premature_close_brace|args_buffer_flushed",
     "text is sent as soon as it is known, and a marker at the end whose text never comes ends nothing"),
    (r"drop_tokens_removed|drops_via_text|literal_tool_tag",
     "special tokens are dropped, and markers are accepted, where their ids prove them"),
    (r"ContentWhitespaceHandling", "white space next to a marker belongs to the marker"),
    (r"structural_tag|StructuredOutputs|structured_outputs|adjust_request|AdjustRequest|tag_registry|strict",
     "structural tags and requests: untemplate writes its own tags, in the model's format"),
    (r"test_(apertus|hy_v3)_tool_parser.*[Ss]treaming", "the token ids in the test are not those of its text"),
    (r"malformed_input\[True\]", "one parser object reads several outputs; in the plugin it reads one"),
    (r"wrapper|wrapped|alias_|extra_arguments|duplicate_param|case_sensitive_param|echoed",
     "arguments and names stay as the model wrote them"),
    (r"unknown_tool|mismatched|filters_unknown", "calls of unknown tools and with other arguments are calls"),
    (r"invalid_json|malformed|incomplete|missing_function_end|invalid_funcall",
     "a call that was cut is content of a whole answer; one that is broken stays a call, with its status"),
    (r"null|number_(param|whole)|leading_zero|isinstance\(5\.0", "values keep the type that the model wrote"),
    (r"content_after|surrounding|after_tool|interleaved|noise_between|suffix text|hellohi|Thank you",
     "text after a call is content"),
    (r"is_reasoning_end|assert (False|True) (==|is) (True|False)\b.*is_reasoning|reasoning_end|extract_content_ids|"
     r"count_reasoning",
     "`is_reasoning_end` and its relatives are False until a marker has come"),
    (r"append_reasoning", "without thoughts, vLLM's `append_think` still writes the tags; untemplate writes none"),
)  # fmt: skip
REASONS_BY_TEST: Final[dict[str, str]] = json.loads((HERE / "recorded" / "reasons.json").read_text(encoding="utf-8"))
"""Test, class or file → reason, for tests that no pattern explains. A parameter may be cut; the longest name counts."""
START: Final = "no prompt is given: untemplate reads the start state from it, vLLM's parser assumes open reasoning"
SPACE: Final = "white space next to a marker belongs to the marker"
OTHER: Final = "another answer"
_EQUAL: Final = re.compile(r"assert ((['\"]).*?\2|None) == ((['\"]).*?\4|None)", re.DOTALL)


def reason(test: str, error: str) -> str:
    """Return the reason why a test does not pass: the one written for the test, else that of a pattern."""
    written = [
        name for name in REASONS_BY_TEST if re.match(re.escape(name) + ("" if "[" in name else r"(\[|::|$)"), test)
    ]
    if written:
        return REASONS_BY_TEST[max(written, key=len)]
    for pattern, found in REASONS:
        if re.search(pattern, f"{test} {error}", re.DOTALL):
            return found
    if "/reasoning/" in test and re.search(r"assert None == ['\"]|is_reasoning|assert (False|True)\b", error):
        return START
    equal = _EQUAL.search(error)
    if equal is not None and _bare(equal[1]) == _bare(equal[3]):
        return SPACE
    return OTHER


def _bare(text: str) -> str:
    return re.sub(r"\\n|\s|^None$|['\"]", "", text)


def run(source: Path, suite: Suite, *, redirected: bool = True) -> dict[str, str]:
    """Run the tests; return the outcome of each."""
    folder = (source / suite.version).resolve()
    path = [folder, ROOT / "src", HERE / "plugins"]
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = Path(scratch) / "outcomes.json"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "UNTEMPLATE_OUTCOMES": str(outcomes),
            "HF_HUB_OFFLINE": "1",
            "VLLM_LOGGING_LEVEL": "ERROR",
        }
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "untemplate_outcomes", *(("-p", suite.plugin) * redirected),
             "-p", "no:cacheprovider", "--no-header", "--tb=no", "--continue-on-collection-errors", "-W", "ignore",
             f"--confcutdir={suite.confcut}", suite.folder],
            cwd=folder, env=environment, check=False, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        if not outcomes.exists():
            raise RuntimeError(f"the tests of vLLM {suite.version} in {suite.folder} did not run")
        found: dict[str, str] = json.loads(outcomes.read_text(encoding="utf-8"))
        return found


class Result(NamedTuple):
    """The outcome of one suite."""

    passed: int
    failed: dict[str, str]
    """Test → the beginning of its error."""


def judge(suite: Suite, source: Path) -> Result:
    """Run a suite; a test that vLLM's own classes do not pass here does not count."""
    return compare(run(source, suite), run(source, suite, redirected=False) if suite.compares else {})


def compare(found: dict[str, str], theirs: dict[str, str]) -> Result:
    """Return the result of a suite, from the outcomes with untemplate and with vLLM's own classes."""
    failed = {}
    for test, outcome in found.items():
        if outcome in (PASSED, *NOT_RUN):
            continue
        if theirs.get(test, PASSED) in (PASSED, *NOT_RUN):
            failed[test] = re.sub(r"0x[0-9a-f]+", "0x", " ".join(outcome.split()))[:240]
    return Result(Counter(found.values())[PASSED], failed)


def table(name: str, result: Result) -> list[str]:
    """Return the part of the page for one suite."""
    suite = SUITES[name]
    total = result.passed + len(result.failed)
    counts = Counter(reason(*one) for one in result.failed.items())
    lines = [f"## vLLM {suite.version}: {suite.title}", "", f"{result.passed:,} of {total:,} tests pass.", ""]
    lines += ["| the others | tests |", "| --- | --- |"]
    lines += [f"| {why} | {count} |" for why, count in counts.most_common()]
    others = sorted(
        {re.sub(r"\[.*", "", test) for test, error in result.failed.items() if reason(test, error) == OTHER}
    )
    if others:
        lines += ["", f"Tests with {OTHER}:", "", *(f"- `{test}`" for test in others)]
    return [*lines, ""]


HEAD: Final = """\
# vLLM's own tests

<!-- Written by `python -m tests.vllm_serve.suites --record`. -->

`make test-vllm` runs tests of vLLM's source distributions on untemplate. Tests that use no class of untemplate's do not
count, and neither do tests that vLLM's own classes do not pass in the same environment. One tokenizer of bytes replaces
all tokenizers of the hub. In vLLM a request without tools can still have calls. The tests depend on it, so this
difference is taken away.

The reasons why tests do not pass are those of `recorded/reasons.json`, which names tests, or come from patterns over
names and errors. After each table come the tests without a reason: there untemplate may be wrong.
"""
VERSIONS: Final = """\
## Parser files by version

Every minor version of vLLM from 0.25 on was seen. Each has parser files that declare a config. `make test-vllm` makes
each config on untemplate's `ParserEngine`. Where a Format of the same family writes calls, the parser reads two of
them, whole and streamed by token. The others are made, and no Format writes what they read.

"""
SERVER: Final = """\
## One message in every way

vLLM 0.32's own server, the CPU build, runs the plugin on a checkpoint of one family. It recites two calls, in most
families after a thought. Chat Completions, Responses and Anthropic's messages are asked whole and streamed,
each with `auto`, `required`, a named function and `none`. *Cut* answers end at `max_tokens` (with `auto` after every
token, otherwise at four places) or at a stop string. One is right if it tells no client to run a call that was cut, and
something is left of it. *Aborted*: clients leave in the middle of an answer, in all 24 ways, and then no request runs.
*At once*: fifty clients, in random ways. The demonstration model, a Llama, has trained weights.
"""
FIXTURES: Final = """\
## The fixtures of canitoolcall in vLLM

[canitoolcall](conformance.md) 0.1.1 has recorded outputs and the messages that they mean. Here the plugin and the
parsers of vLLM 0.33 replay them with the code of vLLM's server, whole and in several splits. A parser is right if every
replay gives the message, white space around texts aside. The tokenizers are made from the fixtures, because those of
the models are not in any package. gpt-oss is left out: vLLM reads it with an encoding from the network. Most fixtures
that the plugin fails end inside a call: vLLM has no [policy](policies.md#cut_calls) to drop it.
"""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--source", type=Path, required=True, help="folder with vLLM's unpacked source distributions")
    options.add_argument("--record", action="store_true", help="record the tests that do not pass, and write the page")
    options.add_argument("--only", choices=SUITES, action="append", help="only this suite (repeatable)")
    given = options.parse_args()
    lost = 0
    for name in given.only or SUITES:
        result = judge(SUITES[name], given.source)
        file = HERE / "recorded" / f"{name}.json"
        print(
            f"{name}: {result.passed} tests of vLLM {SUITES[name].version} pass, {len(result.failed)} do not",
            flush=True,
        )
        if given.record:
            made = {"passed": result.passed, "failed": dict(sorted(result.failed.items()))}
            file.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            continue
        if not file.exists():
            print(f"{name}: nothing is recorded to compare with")
            continue
        recorded = json.loads(file.read_text(encoding="utf-8"))["failed"]
        for test in sorted(set(result.failed) - set(recorded)):
            lost += 1
            print(f"no longer passes: {test}\n  {result.failed[test]}")
    if given.record:
        PAGE.write_text(page(), encoding="utf-8")
    return 1 if lost else 0


def page() -> str:
    """Return the page, from the recorded results."""
    lines = [HEAD]
    for name in SUITES:
        file = HERE / "recorded" / f"{name}.json"
        if file.exists():
            recorded = json.loads(file.read_text(encoding="utf-8"))
            lines += table(name, Result(recorded["passed"], recorded["failed"]))
    lines += versions()
    lines += server()
    from tests.vllm_serve import fixtures  # needs packages that the rest does not

    lines += [FIXTURES, *fixtures.table(json.loads(fixtures.RECORDED.read_text(encoding="utf-8")))]
    return "\n".join(lines).rstrip() + "\n"


def server() -> list[str]:
    """Return the part of the page about the real server."""
    file = HERE / "recorded" / "matrix.json"
    if not file.exists():
        return []
    recorded = json.loads(file.read_text(encoding="utf-8"))
    head = ["server", *recorded["columns"]]
    lines = [SERVER, f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    return [*lines, *(f"| {' | '.join((name, *cells))} |" for name, cells in recorded["rows"].items()), ""]


def versions() -> list[str]:
    """Return the part of the page about the parser files of each version."""
    recorded: dict[str, dict[str, str]] = json.loads((HERE / "recorded" / "configs.json").read_text(encoding="utf-8"))
    lines = [VERSIONS.rstrip("\n"), "", "| vLLM | files | read two calls | made only |", "| --- | --- | --- | --- |"]
    for version, files in recorded.items():
        only = [f"`{file}`" for file, told in files.items() if told != "two calls"]
        lines.append(f"| {version} | {len(files)} | {len(files) - len(only)} | {', '.join(only)} |")
    return [*lines, ""]


if __name__ == "__main__":
    sys.exit(main())
