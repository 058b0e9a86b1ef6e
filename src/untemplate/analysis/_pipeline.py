"""Run one analysis, from template to Format.

Reasoning and content are decided first, then calls, then channels, which combine both. Every template gets an answer,
except one that renders nothing: that is an `AnalysisError` with the reason.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, ParamSpec, TypeVar

from ..errors import AnalysisError, UntemplateError
from ..format import Format
from ._build import Candidate, best_of, build, build_channels
from ._certify import Certificate, Runner, certify
from ._channels import channels_guesses
from ._checks import Check, Finding, checks_of
from ._content import content_guesses
from ._doubts import Doubt, doubts_of, render_doubtful
from ._probes import ASKED, NAMES, CallSamples, Prober, Style, Template
from ._reasoning import ReasoningSamples, dropping_literals, find_reasoning, leaves_open, reasoning_guesses
from ._result import AnalysisResult, ContentGuess, Hypothesis, ReasoningGuess, ToolsGuess, describe
from ._tools import find_calls, tools_guesses
from ._traits import Traits, find_traits
from ._turns import TurnFrame, find_frame

__all__ = ["Analysis", "AnalysisError", "Prepared", "analyze_template", "prepare"]


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _contained(step: Callable[_P, _R]) -> Callable[_P, _R]:
    """Turn any failure into an `AnalysisError`. A template is hostile input, and a server must start with any."""

    @functools.wraps(step)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return step(*args, **kwargs)
        except UntemplateError:
            raise
        except Exception as error:
            raise AnalysisError(f"the analysis failed, please report the template: {error!r:.200}") from error

    return run


@dataclass(slots=True)
class Analysis:
    """Result of analysing one template."""

    format: Format
    certificate: Certificate
    result: AnalysisResult
    hypotheses: tuple[Hypothesis, ...] = ()
    """All Formats that were measured in the last step, best first."""
    log: tuple[str, ...] = ()
    """One line per comparison, in order."""
    renders: int = 0
    seconds: float = 0.0
    from_cache: bool = False
    template_sha256: str = ""
    example_prompt: str = ""
    """The end of a prompt, with an output that parsed back and shows as much as the template can write."""
    example_output: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, for ``explain --json``."""
        return {
            "format": json.loads(self.format.to_json(indent=None)),
            "certificate": self.certificate.to_dict(),
            "result": self.result.to_dict(),
            "hypotheses": [h.to_dict() for h in self.hypotheses],
            "example": {"prompt": self.example_prompt, "output": self.example_output},
            "log": list(self.log),
            "renders": self.renders,
            "seconds": round(self.seconds, 4),
            "from_cache": self.from_cache,
            "template_sha256": self.template_sha256,
        }


@dataclass(slots=True)
class Prepared:
    """A template rendered and compared: what every Format is measured with."""

    template: Template
    prober: Prober
    frame: TurnFrame
    calls: CallSamples | None
    reasoning: ReasoningSamples
    droppers: list[str]
    checks: list[Check]
    unmeasured: dict[str, Finding]
    reasons: dict[str, str]
    traits: Traits
    doubts: dict[str, Doubt]
    seconds: float

    @_contained
    def certify(self, fmt: Format) -> Certificate:
        """Measure any Format, such as one of the catalogue, against this template."""
        certificate = certify(fmt, self.checks, steps=STEPS, unmeasured=self.unmeasured)
        certificate.traits = self.traits
        certificate.doubt(self.doubts, self.reasons)
        thinking_off(self.frame, fmt, certificate)
        return certificate


STEPS: Final = (3,)
"""Sizes, in characters, of the pieces that outputs are also cut into."""


@_contained
def prepare(template: Template) -> Prepared:
    """Render what analysis and certification need.

    Raises:
        AnalysisError: the template renders no conversation; the message gives the reason.
    """
    began = time.perf_counter()
    observed = getattr(template, "observed", None)
    prober = Prober(
        template if observed is None else observed(),
        eos=getattr(template, "eos_token", "") or "",
        end=getattr(template, "end_token", "") or "",
    )
    prompt = prober.settle()
    if prompt is None:
        reasons = "; ".join(list(prober.errors)[:3]) or "the user's message does not show up"
        raise AnalysisError(f"not a chat template: it renders no conversation: {reasons}")
    frame = find_frame(prober, prompt)
    calls = find_calls(frame)
    if calls is not None:
        frame.learn_end(calls.end)
    reasoning = find_reasoning(frame, Style() if calls is None else calls.style)
    droppers = dropping_literals(frame)
    checks = checks_of(frame, reasoning, calls, droppers)
    render_doubtful(prober, calls)
    traits = find_traits(frame, calls, reasoning, droppers)
    return Prepared(
        template, prober, frame, calls, reasoning, droppers, checks.all, checks.unmeasured, checks.reasons, traits,
        doubts_of(frame), time.perf_counter() - began,
    )  # fmt: skip


@_contained
def analyze_template(template: Template, prepared: Prepared | None = None) -> Analysis:
    """Analyse without a cache.

    Raises:
        AnalysisError: the template renders no conversation, or turns that no Format describes; the message gives the
            reason.
    """
    ready = prepared or prepare(template)
    began = time.perf_counter()
    candidates = _candidates(ready)
    ranked = best_of(candidates, ready.checks)
    best = ranked[0]
    certificate = ready.certify(best.format)
    if len(ranked) > 1:
        certificate.runner_up = f"{ranked[1].variant or 'no calls'}, {ranked[1].score:.3f}"
    fmt = replace(best.format, name=f"inferred-{template.sha256[:12]}")
    result = describe(
        fmt,
        best.variant,
        parallel=certificate.capabilities.get("parallel_calls") == "yes",
        nonnull_content=ready.calls is not None and ready.calls.style.no_content != "null",
        opened=_opened_by_a_prompt(ready.frame, fmt),
    )
    example = _example(ready, certificate)
    return Analysis(
        fmt,
        certificate,
        result,
        tuple(Hypothesis(c.format, c.score, c.variant, c.sources) for c in ranked[:8]),
        tuple(ready.frame.log),
        ready.prober.renders,
        ready.seconds + time.perf_counter() - began,
        template_sha256=template.sha256,
        example_prompt=example[0],
        example_output=example[1],
    )


def _example(ready: Prepared, certificate: Certificate) -> tuple[str, str]:
    """Return prompt and output of the passed check that shows most parts of a message."""
    wrong = {f.check for f in certificate.failed}
    shown = [c for c in ready.checks if c.name not in wrong and c.kind not in ("prompt", "awkward_strings")]
    if not shown:
        return "", ""
    best = max(shown, key=lambda c: (bool(c.reasoning) + bool(c.content) + bool(c.calls), -len(c.output)))
    at = best.prompt.rfind(ready.frame.header) if ready.frame.header else -1
    return best.prompt[max(at, 0) :], best.output


def _opened_by_a_prompt(frame: TurnFrame, fmt: Format) -> bool:
    """True if a prompt leaves reasoning open, whether or not a variable has to switch it on."""
    reasoning = fmt.reasoning
    if reasoning is None or reasoning.open is None:
        return False
    return any(
        leaves_open(tail, reasoning.open.text, reasoning.close.text) for tail in frame.tails.values() if tail.strip()
    )


def _candidates(ready: Prepared) -> list[Candidate]:
    frame, samples, calls, checks = ready.frame, ready.reasoning, ready.calls, ready.checks
    front = None if calls is None else calls.one[: calls.one.index(NAMES[0])]
    guesses: list[ReasoningGuess | None] = [*reasoning_guesses(frame, samples, front, ready.droppers), None]
    tools_of: dict[tuple[str | None, ...], list[ToolsGuess | None]] = {}

    def ways(r: ReasoningGuess | None, c: ContentGuess) -> list[ToolsGuess | None]:
        known = (*(() if r is None else (r.open, r.close)), c.open, c.close)
        if known not in tools_of:
            found: list[ToolsGuess | None] = []
            if calls is not None:
                found += tools_guesses(frame, calls, known)
            tools_of[known] = found or [None]
        return tools_of[known]

    # Decide reasoning and content first, with the likeliest call syntax.
    first: list[tuple[Candidate, ReasoningGuess | None, ContentGuess]] = []
    for r in guesses:
        for c in content_guesses(frame, r, samples, calls):
            candidate = build(frame, r, c, ways(r, c)[0])
            if candidate is not None:
                first.append((candidate, r, c))
    pairs = {id(candidate): (r, c) for candidate, r, c in first}
    ranked = best_of([candidate for candidate, _, _ in first], checks)
    result = list(ranked[:3])
    if ranked:
        r, c = pairs[id(ranked[0])]
        for way in ways(r, c)[1:]:
            candidate = build(frame, r, c, way)
            if candidate is not None:
                result.append(candidate)
    for guess in channels_guesses(frame, samples, calls):
        candidate = build_channels(frame, guess)
        if candidate is not None:
            result.append(candidate)
    if not result:
        candidate = build(frame, None, None, None)
        if candidate is None:
            raise AnalysisError(
                f"no Format can be built for turns that begin with {frame.header!r} and end with {frame.end!r}"
            )
        result.append(candidate)
    return result


def thinking_off(frame: TurnFrame, fmt: Format, certificate: Certificate) -> None:
    """Set ``thinking_off`` if a prompt can switch reasoning off and this Format then begins in content."""
    if fmt.reasoning is None and (fmt.channels is None or not fmt.channels.has_reasoning):
        return
    runner = Runner(fmt)
    inside: list[bool] = []
    closed = False
    close = fmt.reasoning.close.text.strip() if fmt.reasoning is not None else ""
    for settings, tail in frame.tails.items():
        prompt = frame.prober.prompt([{"role": "user", "content": ASKED}], Style(settings=settings))
        if prompt is not None and prompt.endswith(tail):
            reasoning = runner.machine(prompt, None).in_reasoning
            inside.append(reasoning)
            closed = closed or (not reasoning and bool(tail.strip()) and close in tail)
    if closed or (True in inside and False in inside):
        certificate.capabilities["thinking_off"] = "yes"
