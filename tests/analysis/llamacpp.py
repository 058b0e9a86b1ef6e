"""Compare the analysis with llama.cpp's own, on the scenarios of the round trip.

llama.cpp (package ``xllamacpp``) gets each template, infers its parser and reads each scenario's output. The output
comes from a model that writes it byte by byte (``tests.llamacpp_playback``): llama.cpp's own grammar restricts each.
llama.cpp gets several attempts: thinking as the template sets it, on and off; the output with and without the opener of
reasoning, which its prompt may already hold, and without the tag that ends the turn.

``python -m tests.analysis.llamacpp [FILE…]`` prints the table as a page. What llama.cpp said is kept in ``build``,
so that a run may be stopped and started again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, Final

from tests.analysis.roundtrip import SYSTEM, TOOLS, Renderer, Report, Scenario, Shape, report_of, scenarios_of
from tests.llamacpp_playback import Playback
from tests.public import SHARED, WILD

__all__ = ["Answers", "page"]

READ: Final = "read"
REFUSED: Final = "refused"
"""llama.cpp's grammar for these tools does not allow the output."""
ERROR: Final = "error"
"""llama.cpp answers with an error: it cannot render the conversation, or the output does not fit its parser."""
_SWITCH: Final = "enable_thinking"
_LAST_TAG: Final = re.compile(r"\s*(?:<[^<>\n]*>|\[[^\[\]\n]*\])\s*\Z")


def attempts(scenario: Scenario, output: str) -> list[str]:
    """Return the spellings of an output that llama.cpp may read."""
    found = [output]
    if scenario.reasoning:
        found.append(output[output.index(scenario.reasoning) :])
    return list(dict.fromkeys(text for one in found for text in (one, _LAST_TAG.sub("", one)) if text.strip()))


class Answers:
    """llama.cpp with one template, and a model that writes given outputs byte by byte."""

    def __init__(self, source: str, outputs: Sequence[str]) -> None:
        self._playback = Playback(source, outputs)
        self.settings: list[dict[str, Any]] = [{}]
        if _SWITCH in source:
            self.settings += [{_SWITCH: True}, {_SWITCH: False}]

    def ask(self, messages: list[dict[str, Any]], tools: Any, settings: dict[str, Any], output: str) -> Any:
        """Return llama.cpp's message for an output, or a word for the reason why it has none."""
        fields: dict[str, Any] = {"chat_template_kwargs": settings}
        if tools is not None:
            fields |= {"tools": tools, "parallel_tool_calls": True}
        answer = self._playback.ask(messages, output, **fields)
        if answer.message is None:
            return f"{ERROR}: {answer.problem}"
        return answer.message if answer.exact else REFUSED


def verdict(answers: Answers, scenario: Scenario, output: str) -> str:
    """Return ``read``, ``refused``, or the difference at the first attempt."""
    found: list[str] = []
    tools = TOOLS if scenario.calls or scenario.place == "results" else None
    conversation = Renderer("").conversation(scenario, Shape("text"))[:-1]
    asked: list[list[dict[str, Any]]] = [conversation, [{"role": "system", "content": SYSTEM}, *conversation]]
    for messages, settings, text in product(asked, answers.settings, attempts(scenario, output)):
        answer = answers.ask(messages, tools, settings, text)
        found.append(answer if isinstance(answer, str) else difference(scenario, answer) or READ)
        if found[-1] == READ:
            return READ
    return next((problem for problem in found if not problem.startswith(ERROR)), found[0])


def difference(scenario: Scenario, message: dict[str, Any]) -> str:
    """Return the difference between a scenario and llama.cpp's message, "" without one."""
    if (message.get("reasoning_content") or "").strip() != scenario.reasoning.strip():
        return f"reasoning {message.get('reasoning_content')!r}"
    if (message.get("content") or "").strip() != scenario.content.strip():
        return f"content {message.get('content')!r}"
    calls = [call["function"] for call in message.get("tool_calls") or []]
    if [call["name"] for call in calls] != [name for name, _ in scenario.calls]:
        return f"calls {[call['name'] for call in calls]}"
    for call, (_, arguments) in zip(calls, scenario.calls, strict=True):
        try:
            same = json.dumps(json.loads(call["arguments"]), sort_keys=True) == json.dumps(arguments, sort_keys=True)
        except ValueError:
            same = False
        if not same:
            return f"arguments {call['arguments']!r}"
    return ""


# -- One template, in a process of its own: llama.cpp ends the process on some ------------------------------------

KEPT: Final = Path(__file__).resolve().parents[2] / "build" / "llamacpp"
"""Verdicts of earlier runs, one file per template: a run that was stopped continues where it was."""
_NO_ANSWER: Final = ""
_STARTED: Final = "the server runs"
_LONGEST: Final = 1800
"""Seconds for one template."""


def work(path: str, kept: str) -> None:
    """Append llama.cpp's verdict on each scenario of a template to a file, unless it is there already."""
    source = Path(path).read_text(encoding="utf-8")
    known = _read_kept(Path(kept))
    scenarios = [one for one in scenarios_of(source) if _key(one[0], one[2]) not in known]
    if scenarios:
        answers = Answers(source, [text for scenario, _, output in scenarios for text in attempts(scenario, output)])
        print(_STARTED, flush=True)
        for scenario, _, output in scenarios:
            _keep(Path(kept), _key(scenario, output), verdict(answers, scenario, output))
    os._exit(0)  # the server's threads need not end in order


def _key(scenario: Scenario, output: str) -> str:
    return f"{scenario.name}: {output}"


def _keep(kept: Path, key: str, said: str) -> None:
    with kept.open("a", encoding="utf-8") as file:
        file.write(json.dumps([key, said]) + "\n")


def _read_kept(kept: Path) -> dict[str, str]:
    return dict(map(json.loads, kept.read_text(encoding="utf-8").splitlines())) if kept.exists() else {}


def verdicts(path: Path) -> dict[str, str]:
    """Return llama.cpp's verdict by scenario, from another process. A scenario that ends the process has none."""
    source = path.read_bytes()
    kept = KEPT / version("xllamacpp") / f"{path.stem}-{sha256(source).hexdigest()[:12]}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    keys = {scenario.name: _key(scenario, output) for scenario, _, output in scenarios_of(source.decode())}
    command = [sys.executable, "-m", "tests.analysis.llamacpp", "--work", str(path), str(kept)]
    while missing := [key for key in keys.values() if key not in _read_kept(kept)]:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST, check=False)
        if "Traceback" in done.stderr and "xllamacpp.pyx" not in done.stderr:
            raise RuntimeError(f"{path.name}: {done.stderr}")  # an error of this script
        left = [key for key in missing if key not in _read_kept(kept)]
        for key in left[:1] if _STARTED in done.stdout else left:  # it ended the process, or the server does not start
            _keep(kept, key, _NO_ANSWER)
    found = _read_kept(kept)
    return {name: found[key] for name, key in keys.items()}


# -- The page -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """The judgement of one kind of difference."""

    side: str
    """``untemplate`` or ``llama.cpp``: who does not read it."""
    template: str
    """Expression for the names of templates."""
    scenario: str
    """Expression for the names of scenarios."""
    said: str
    """Expression for the beginning of what came instead."""
    judgement: str

    def fits(self, side: str, template: str, scenario: str, said: str) -> bool:
        return side == self.side and all(
            re.match(expression, text, re.DOTALL)
            for expression, text in ((self.template, template), (self.scenario, scenario), (self.said, said))
        )


_OURS, _THEIRS = "untemplate", "llama.cpp"
JUDGED: Final = (
    Judged(_THEIRS, "", "", r"\Z", "Its server does not start with the template."),
    Judged(_THEIRS, "", "", "error: Unable to generate", "Its Jinja cannot run the template with tools."),
    Judged(
        _THEIRS, "", "", "error: .* peg-native", "Its parser expects another syntax of calls, and refuses the answer."
    ),
    Judged(
        _THEIRS, ".*deepseek", "", REFUSED, "Its grammar allows only the arguments of its own probe (`AA_ARG_FST_AA`)."
    ),
    Judged(_THEIRS, ".*(laguna|glm4moe)", "typed: parent", REFUSED, "It reads `null` as text: the schema allows both."),
    Judged(
        _THEIRS,
        "",
        "typed: (enabled|parent)",
        REFUSED,
        "The template writes Python's `True` and `None`; its grammar wants JSON's words.",
    ),
    Judged(
        _THEIRS,
        ".*gemma-?4",
        ".*content and call",
        REFUSED,
        "The template writes content after the call, which its grammar ends with.",
    ),
    Judged(
        _THEIRS,
        ".*llama4",
        "(two|three) calls",
        REFUSED,
        "The template writes nothing between two calls; its grammar wants a comma.",
    ),
    Judged(
        _THEIRS,
        ".*mistral_small",
        "",
        r"content .\[/INST\]",
        "The template begins answers with `[/INST]`, which stays in the content.",
    ),
    Judged(
        _THEIRS,
        "axolotl__llama4",
        "content and call",
        "content",
        "Nothing but the content comes before the calls, so they stay in it.",
    ),
    Judged(_THEIRS, "", "", r"reasoning", "It takes the answer for reasoning."),
    Judged(_THEIRS, ".*(cohere2|hunyuan)", "", r"content ", "A marker around the answer stays in the content."),
    Judged(_THEIRS, "", "", r"content ", "It finds no syntax of calls, so they stay in the content."),
    Judged(
        _OURS,
        ".*mistral_small",
        "",
        "content",
        "The template begins answers with `[/INST]`, which stays in the content.",
    ),
    Judged(
        _OURS,
        ".*hunyuan",
        "plain, after",
        "content",
        "After results the template begins answers with another header, which stays in the content.",
    ),
    Judged(
        _OURS,
        ".*llama4(\\b|_pythonic)",
        "content and call",
        "content",
        "Nothing but the content comes before the calls, so they stay in it.",
    ),
    Judged(
        _OURS,
        ".*llama4_json",
        "",
        "",
        "The template writes several calls, or content and a call, without anything between them.",
    ),
    Judged(_OURS, ".*gemma3_pythonic", "", "", "The template writes no comma between arguments: nobody can read them."),
)
"""Every difference fits one of these; the first one counts."""


def judgement(side: str, template: str, scenario: str, said: str) -> str:
    """Return the judgement of a difference."""
    return next((one.judgement for one in JUDGED if one.fits(side, template, scenario, said)), "**Not judged.**")


_GROUPS: Final = {"parallel_calls": "several calls", "awkward_strings": "strings", "no_arguments": "calls"}
_TYPES: Final = ("number", "boolean", "null", "object", "array")


def group(scenario: Scenario) -> str:
    """Return the word of the table for a scenario."""
    ability = scenario.abilities[0]
    return "types" if ability in _TYPES else _GROUPS.get(ability, ability.replace("_", " "))


@dataclass
class Row:
    """One template: its scenarios, and those that each side does not read."""

    report: Report
    theirs: dict[str, str]

    @property
    def lost(self) -> list[Scenario]:
        return [r.scenario for r in self.report.wrong]

    @property
    def lost_by_llama(self) -> list[Scenario]:
        return [r.scenario for r in self.report.results if self.theirs.get(r.scenario.name) != READ]

    @property
    def differences(self) -> Iterator[tuple[str, str]]:
        """The side and the judgement of each scenario that a side does not read."""
        name = Path(self.report.name).stem
        for result in self.report.wrong:
            yield _OURS, judgement(_OURS, name, result.scenario.name, result.problem)
        for scenario in self.lost_by_llama:
            said = self.theirs.get(scenario.name, _NO_ANSWER)
            yield _THEIRS, judgement(_THEIRS, name, scenario.name, said)

    def line(self) -> str:
        total = len(self.report.results)
        cells = [f"`{Path(self.report.name).stem}`", str(total), str(total - len(self.lost)), words(self.lost)]
        return " | ".join([*cells, str(total - len(self.lost_by_llama)), words(self.lost_by_llama)])


def words(scenarios: Sequence[Scenario]) -> str:
    """Return the groups of some scenarios, with their numbers."""
    return ", ".join(f"{name} {count}" for name, count in Counter(map(group, scenarios)).items())


def page(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of docs/llamacpp.md."""
    total = sum(len(r.report.results) for r in rows)
    ours = total - sum(len(r.lost) for r in rows)
    theirs = total - sum(len(r.lost_by_llama) for r in rows)
    certified = [r for r in rows if r.report.certified]
    kept = sum(len(r.report.results) for r in certified)
    theirs_lost = [r.theirs.get(s.name, "") for r in rows for s in r.lost_by_llama]
    refused, failed = theirs_lost.count(REFUSED), sum(problem.startswith(ERROR) for problem in theirs_lost)
    untaken = sum(not any(r.theirs.values()) for r in rows)
    yield f"""\
# Next to llama.cpp

llama.cpp infers a parser from a chat template as well, and has handlers for some families. This page compares the two
on {len(rows)} public templates. Each template writes the messages of a fixed list of scenarios: content, reasoning, one
call and several, awkward strings, values of each type. A scenario that a template cannot write does not count. Then
`OutputParser.from_template` and llama.cpp read the text. It is read if reasoning, content, names and arguments are
those of the message; white space around reasoning and content is ignored.

Measured on {date.today().isoformat()} with untemplate {version("untemplate")} and xllamacpp {version("xllamacpp")} by
`make compare-llamacpp`, which writes this page.

| | untemplate | llama.cpp |
| --- | --- | --- |
| scenarios read, of {total} | {ours} ({share(ours, total)}) | {theirs} ({share(theirs, total)}) |
| templates with every scenario read, of {len(rows)} | {sum(not r.lost for r in rows)} | \
{sum(not r.lost_by_llama for r in rows)} |
| scenarios not read of the {len(certified)} certified templates, of {kept} | \
{sum(len(r.lost) for r in certified)} | {sum(len(r.lost_by_llama) for r in certified)} |

llama.cpp reads the output of a model that writes it byte by byte, as far as its grammar allows. It gets several
attempts for each scenario: thinking as the template sets it, on and off; the output with and without the opener of
reasoning; with and without the last tag.
Of the {len(theirs_lost)} scenarios that it does not read, {refused} have text that its own grammar for the tools
forbids, and {failed} end in an error. Another {theirs_lost.count("")} have no answer, most of them in {untaken}
templates on which it does not start. The others come back with another message.

The lists name what was not read, with the number of scenarios. A template that refuses tools or reasoning has fewer
scenarios.

| template | scenarios | untemplate reads | not read | llama.cpp reads | not read |
| --- | --- | --- | --- | --- | --- |"""
    for row in rows:
        yield f"| {row.line()} |"
    yield from _judgements(rows)


def _judgements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of differences, each kind judged once."""
    yield "\n## Why\n\n| not read by | scenarios | templates | judgement |\n| --- | ---: | --- | --- |"
    found: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        for kind in row.differences:
            found.setdefault(kind, Counter())[Path(row.report.name).stem] += 1
    for (side, said), names in sorted(found.items(), key=lambda item: (item[0][0], -item[1].total())):
        yield f"| {side} | {names.total()} | {', '.join(f'`{name}`' for name in names)} | {said} |"


def share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def main(arguments: Sequence[str]) -> None:
    """Print the page."""
    if arguments[:1] == ["--work"]:
        work(arguments[1], arguments[2])
        return
    paths = [Path(a) for a in arguments] or WILD
    if not paths:
        sys.exit(f"no templates in {SHARED / 'templates' / 'wild'}: pass files, or set UNTEMPLATE_SHARED")
    rows = []
    for path in paths:
        report = report_of(path)
        if report.results:
            rows.append(Row(report, verdicts(path)))
        print(f"{path.name}: {len(report.results)}", file=sys.stderr)
    print("\n".join(page(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
