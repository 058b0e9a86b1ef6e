"""Parse back what the template renders, and compare.

* A check is one rendering: a prompt, the output of the model, and the message that it means. It depends on no
  hypothesis, so all Formats are measured alike.
* What the template cannot render is not a failure; the certificate reports it as ``no``. What it renders in a form that
  nobody could parse, and what no check covers, is ``cannot say``.
* White space around reasoning and content is ignored, since templates trim it. Arguments are compared as JSON. Ids are
  compared where the template writes the id of the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from .._internal.jsontext.equality import equal_values
from .._internal.machine.compiler import compile_format
from .._internal.machine.events import EventReceiver
from .._internal.machine.ids import new_id
from .._internal.machine.machine import Machine
from .._internal.machine.program import Program
from .._internal.machine.start import start
from .._internal.machine.tentative_calls import DRAFTS_RECOVER
from ..format import Format
from ..tools import ToolSet
from ._checks import CAPABILITIES, Check, Finding
from ._doubts import Doubt, doubted
from ._quoted import QuotedCalls
from ._traits import NO_TRAITS, Remark, Traits

_NO_TOOLS: Final = ToolSet(None)


class _Collected(EventReceiver):
    """Collect a message from parser events."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.texts: list[str] = []
        self.calls: list[tuple[str, list[str]]] = []
        self.ids: list[str] = []
        self.recovered: bool = False
        """True if a part of a call was dropped or read again."""

    def reasoning(self, text: str) -> None:
        self.thoughts.append(text)

    def content(self, text: str) -> None:
        self.texts.append(text)

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self.calls.append((name, []))

    def arguments(self, index: int, text: str) -> None:
        self.calls[index][1].append(text)

    @property
    def raw(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Return everything that must not depend on how the output was split."""
        calls = tuple((name, "".join(arguments)) for name, arguments in self.calls)
        return "".join(self.thoughts), "".join(self.texts), calls


class Runner:
    """Parse with one Format as OutputParser does, without its conveniences."""

    def __init__(self, fmt: Format) -> None:
        self.format = fmt
        self.program: Program = compile_format(fmt)
        self._ids = partial(new_id, fmt.ids if "{" in fmt.ids else "call_{index}", b"")
        self._tools: dict[int, ToolSet] = {}

    def machine(self, prompt: str, tools: list[dict[str, Any]] | None) -> Machine:
        known = _NO_TOOLS
        if tools is not None:
            known = self._tools.get(id(tools)) or self._tools.setdefault(id(tools), ToolSet(tools))
        machine = Machine(self.program, known, EventReceiver(), self._ids, b"", 0, 1 << 16, DRAFTS_RECOVER)
        start(machine, prompt)
        return machine

    def parse(self, check: Check, step: int = 0) -> _Collected:
        """Parse the output of a check, whole or ``step`` characters at a time."""
        machine = self.machine(check.prompt, check.tools)
        sink = _Collected()
        machine.receiver = sink
        output = check.output
        if step:
            for at in range(0, len(output), step):
                machine.feed(output[at : at + step])
        elif output:
            machine.feed(output)
        machine.finish()
        sink.ids = [call.model_id or call.id for call in machine.calls]
        sink.recovered = any(call.recovered for call in machine.calls)
        return sink


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one check: empty if it passed, else the difference."""

    check: Check
    problem: str

    @property
    def passed(self) -> bool:
        return not self.problem

    @property
    def failure(self) -> FailedCheck:
        return FailedCheck(self.check.name, self.check.output, self.problem)


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A failed check as the certificate stores it."""

    check: str
    output: str
    problem: str


@dataclass(slots=True)
class Certificate:
    """Capabilities of a template, and the result of parsing each with a Format."""

    capabilities: dict[str, Finding] = field(default_factory=dict)
    """Per capability: ``yes`` (it parsed back), ``no`` (the template cannot write it), ``failed`` (written, not
    parsed), ``cannot say`` (not measured, or written in a form that nobody could parse). A check may fail although its
    capability is ``yes``: checks of one group show the same message in different places of the conversation, and one of
    them has to pass."""
    score: float = 0.0
    """Share of the groups of checks of which one passed, by weight, from 0 to 1. Every failed check costs a little."""
    checks: int = 0
    """Number of checks."""
    failed: tuple[FailedCheck, ...] = ()
    """The failed checks."""
    runner_up: str = ""
    """Name and score of the next best hypothesis."""
    traits: Traits = NO_TRAITS
    """Properties of the template, whatever the Format."""
    quoted_calls: QuotedCalls | None = None
    """The contexts in which a quoted call is called, and whether token ids prove calls; ``None`` without calls, and if
    it was not measured."""

    @property
    def certified(self) -> bool:
        """True if no capability is ``failed``."""
        return self.checks > 0 and "failed" not in self.capabilities.values()

    def doubt(self, doubts: Mapping[str, Doubt], reasons: Mapping[str, str]) -> None:
        """Turn ``no`` into ``cannot say`` where there is a doubt. Add a remark for each ability that cannot be said.

        Args:
            doubts: by ability, why it may exist although no rendering shows it.
            reasons: why abilities could not be measured, if that is not the Format's doing.
        """
        about: dict[Doubt, list[str]] = {}
        for ability, finding in self.capabilities.items():
            if finding == "cannot say":
                reason = reasons.get(ability, "it only follows from how prompts end, and did not parse back")
                about.setdefault(Doubt(reason), []).append(ability)
        for ability, doubt in doubted(self.capabilities, doubts).items():
            self.capabilities[ability] = "cannot say"
            about.setdefault(doubt, []).append(ability)
        remarks = [Remark("not_measured", f"{', '.join(a)}: {d.reason}", d.line) for d, a in about.items()]
        self.traits = replace(self.traits, remarks=(*self.traits.remarks, *remarks))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "certified": self.certified,
            "score": round(self.score, 4),
            "checks": self.checks,
            "capabilities": dict(self.capabilities),
            "failed": [{"check": f.check, "output": f.output, "problem": f.problem} for f in self.failed],
            "runner_up": self.runner_up,
            "quoted_calls": None if self.quoted_calls is None else self.quoted_calls.to_dict(),
            "traits": self.traits.to_dict(),
        }


def certify(
    fmt: Format,
    checks: Sequence[Check],
    *,
    steps: Iterable[int] = (),
    unmeasured: Mapping[str, Finding] | None = None,
    needed: float = 0.0,
) -> Certificate:
    """Run all checks.

    Args:
        steps: also split the outputs into pieces of that many characters.
        unmeasured: findings for capabilities of which no check is known, or some are missing.
        needed: stop at the first failure after which the score cannot reach this one.
    """
    runner = Runner(fmt)
    sizes = tuple(steps)
    allowed = (1.0 - needed) * sum({(c.kind, c.group): c.weight for c in checks}.values())
    outcomes: list[Outcome] = []
    for check in checks:
        outcomes.append(Outcome(check, _run(runner, check, sizes)))
        if not outcomes[-1].passed and check.alone:
            allowed -= check.weight
            if needed and allowed < -0.1:
                break  # the checks that are left count as passed, so the score is an upper bound
    # Checks of one group show the same message in different places of the conversation. One of them must pass.
    weights: dict[tuple[str, str], float] = {}
    best: dict[tuple[str, str], float] = {}
    for check in checks:
        weights[check.kind, check.group] = max(weights.get((check.kind, check.group), 0.0), check.weight)
    for o in outcomes:
        group = (o.check.kind, o.check.group)
        best[group] = max(best.get(group, 0.0), o.check.weight if o.passed else 0.0)
    total, passed = sum(weights.values()), sum(best.get(group, weight) for group, weight in weights.items())
    # The number of passed places breaks ties.
    passed += 0.001 * sum(o.passed for o in outcomes)
    total += 0.001 * len(outcomes)
    failed = tuple(o.failure for o in outcomes if not o.passed)
    return Certificate(_table(outcomes, unmeasured or {}), passed / total if total else 0.0, len(outcomes), failed)


def _table(outcomes: Sequence[Outcome], unmeasured: Mapping[str, Finding]) -> dict[str, Finding]:
    table: dict[str, Finding] = dict.fromkeys(CAPABILITIES, "no")
    for name in CAPABILITIES:
        groups: dict[str, bool] = {}
        for o in outcomes:
            if o.check.kind == name and o.check.rendered:
                groups[o.check.group] = groups.get(o.check.group, False) or o.passed
        inferred = [o.passed for o in outcomes if o.check.kind == name and not o.check.rendered]
        if groups and not all(groups.values()):
            table[name] = "failed"
        elif name in unmeasured:
            table[name] = unmeasured[name]
        elif groups:
            table[name] = "yes"
        elif inferred:
            table[name] = "yes" if all(inferred) else "cannot say"
    return table


def _run(runner: Runner, check: Check, steps: tuple[int, ...]) -> str:
    try:
        whole = runner.parse(check)
        problem = _compare(whole, check)
        for step in () if problem else steps:
            if runner.parse(check, step).raw != whole.raw:
                problem = f"cut every {step} characters it reads otherwise"
    except RecursionError as error:  # an engine that recurses too deeply is a failed check, not the end of the analysis
        return f"{type(error).__name__}: {error}"
    return problem


def _compare(got: _Collected, check: Check) -> str:
    thoughts, texts, calls = got.raw
    if check.reasoning is not None and thoughts.strip() != check.reasoning.strip():
        return f"reasoning {thoughts!r}"
    if check.content is not None and texts.strip() != check.content.strip():
        return f"content {texts!r}"
    if len(calls) != len(check.calls):
        return f"{len(calls)} calls"
    for (name, arguments), (wanted, values) in zip(calls, check.calls, strict=True):
        if name != wanted:
            return f"name {name!r}"
        try:
            found = json.loads(arguments)
        except ValueError:
            return f"arguments {arguments!r} are no JSON"
        if not equal_values(found, values):
            return f"arguments {arguments!r}"
    # A call without arguments may lack markers that others have, and an awkward string may hold some.
    if got.recovered and check.kind not in ("no_arguments", "awkward_strings"):
        return "a call is read, but as recovered: a part of it was dropped or read again"
    if check.ids and got.ids != list(check.ids):
        return f"ids {got.ids!r}"
    return ""
