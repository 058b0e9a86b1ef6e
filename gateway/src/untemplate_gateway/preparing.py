"""Requests as a model takes them: settings that its engine can follow, prompts, parsers and jobs.

* Settings that can be left out without harm are noted; all others are refused.
* The request itself does not change: what is settled here is settled in a copy.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from msgspec.structs import replace as changed

from untemplate._internal.output_parser import OutputParser
from untemplate.grammar import Grammar
from untemplate.policy import Policy

from .choice import ChoiceStream
from .engines.base import Job, Takes
from .errors import ApiError, bad_request, unsupported
from .forcing import forced_opening
from .generation import Generation, Meta
from .json_answers import JsonAnswer
from .manager.model import Model
from .prompt import Prompt, guarded, make_prompts
from .threads import in_thread


class Prepared:
    """A request as its model can follow it.

    Args:
        model: the model that answers.
        request: the request as it came.
        meta: id, time and model name of the response.

    Raises:
        ApiError: this model or engine cannot do what a field of the request asks for.
    """

    def __init__(self, model: Model, request: Generation, meta: Meta) -> None:
        request = _settled(model, request)
        self.wanted = None if request.response_format is None else JsonAnswer.of(model, request)
        """The JSON that the prompt asks for."""
        if self.wanted is not None:
            offered = bool(request.tools) and request.tool_choice != "none"
            request = changed(request, messages=self.wanted.asked(request.messages or [], tools=offered))
        request = guarded(model, request)
        self.prompts = make_prompts(model, request)
        forced = request.tool_choice not in (None, "auto", "none")
        self.opening = forced_opening(model, request, self.prompts[0].known) if forced else ""
        """The beginning of the output, which the prompt ends with; it forces a call."""
        if self.opening and isinstance(request.tool_choice, dict):
            request = changed(request, parallel_tool_calls=False)
        self.model = model
        self.meta = meta
        self.request = request
        self._policy = _policy(model.parser.policy, request) if request.parse else None

    def choices(self) -> list[ChoiceStream]:
        """Return the choices of each prompt, one prompt after the other."""
        n = self.request.n
        return [self.choice(i, self.prompts[i // n]) for i in range(n * len(self.prompts))]

    def choice(self, index: int, prompt: Prompt) -> ChoiceStream:
        """Return a choice that answers a prompt."""
        request = self.request
        parser = self.model.parser if request.parse else _raw()
        try:
            stream = parser.stream(
                tools=request.tools or [],
                tool_choice="none" if request.tool_choice == "none" else None,
                prompt=prompt.known,
                prompt_token_ids=prompt.text if isinstance(prompt.text, list) else None,
                prefill=self.opening,
                messages=request.messages,
                policy=self._policy,
                collect=True,
                spans=request.logprobs is not None and not request.by_token,
                seed=f"{self.meta.id}/{index}",
            )
        except ValueError as error:  # the parameters of a tool are not a schema
            raise bad_request("tools", str(error)) from None
        # Without a fixed text that closes reasoning, only the template can apply a budget of 0.
        budget = None if self.model.parser.reasoning_close is None else request.thinking.budget
        return ChoiceStream(index, request, stream, prompt, budget)

    def job(self, choice: ChoiceStream, grammar: Grammar | None) -> Job:
        """Return the engine's job for a choice."""
        request, takes = self.request, self.model.engine.takes
        sampling = request.sampling
        if (number := choice.index % request.n) and sampling.seed is not None:
            sampling = changed(sampling, seed=sampling.seed + number)
        prompt = choice.prompt.text
        return Job(
            id=f"{self.meta.id}-{choice.index}",
            model=self.model.name,
            prompt=prompt + self.opening if isinstance(prompt, str) else prompt,
            max_tokens=request.max_tokens,
            sampling=sampling,
            logprobs=request.logprobs,
            echo=request.echo and request.logprobs is not None,
            in_reasoning=choice.stream.in_reasoning,
            raw=request.prompt is not None,
            grammar=grammar,
            constraint=request.constraint,
            images=choice.prompt.images,
            request=request if takes.messages or takes.tool_choice else None,
        )

    def spell_markers(self) -> None:
        """Let markers of ordinary tokens count: under some grammars the model writes them so. Choices are made anew."""
        self._policy = replace(self._policy or self.model.parser.policy, spelled_markers="marker")

    async def asked_again(self, messages: list[dict[str, Any]]) -> Prompt | None:
        """Return the prompt of further messages; ``None`` if they are too long."""
        try:
            [prompt] = await in_thread(_prompts, self.model, changed(self.request, messages=messages))
        except ApiError:
            return None
        return prompt


def _prompts(model: Model, request: Generation) -> list[Prompt]:
    return make_prompts(model, guarded(model, request))


@cache
def _raw() -> OutputParser:
    """Return the parser of raw output: nothing is markup."""
    return OutputParser.named("passthrough")


def _policy(policy: Policy, request: Generation) -> Policy | None:
    """Return the request's policy; ``None`` if it is the parser's."""
    if not request.parallel_tool_calls and policy.parallel_calls == "all":
        return replace(policy, parallel_calls="first")
    return None


# -- Settings ------------------------------------------------------------------------------------------------------


def _settled(model: Model, request: Generation) -> Generation:
    """Return a request without the settings that have no effect here."""
    takes, notes = model.engine.takes, request.notes
    changes: dict[str, Any] = {"reasoning_field": model.parser.policy.reasoning_field}
    names = ("stop_token_ids", "min_tokens", "ignore_eos")
    left_out = [name for name in names if getattr(request.sampling, name) and name not in takes.sampling]
    for name in left_out:
        notes.ignored(name, "this engine does not know it")
    if left_out:
        changes["sampling"] = changed(request.sampling, **dict.fromkeys(left_out))
    _check_constraint(takes, request)
    if request.by_token and not takes.token_ids:
        raise unsupported("prompt", "needs an engine that reports token ids")
    why = ""
    if takes.messages:
        why = "needs an upstream that completes raw prompts (--upstream)"
        if request.prompt is not None:
            raise unsupported("prompt", why)
    else:
        for name in sorted(request.extra):
            notes.unknown(name, request.extra[name])
        changes |= _tool_choice(takes, request)
        _check_logprobs(takes, request)
        if model.parser.reasoning_close is None:
            why = "the gateway cannot close the reasoning of this model's format"
    if request.thinking.budget and why:
        notes.ignored("thinking_budget", why)
        changes["thinking"] = changed(request.thinking, budget=None)
    return changed(request, **changes)


def _check_constraint(takes: Takes, request: Generation) -> None:
    constraint = request.constraint
    if constraint is None:
        return
    if constraint.kind not in takes.constraints:
        raise unsupported(constraint.field, f"this engine takes no {constraint.kind}")
    if request.tool_choice not in (None, "auto", "none"):
        raise bad_request("tool_choice", f"excludes {constraint.field}")


def _tool_choice(takes: Takes, request: Generation) -> dict[str, Any]:
    """Return what changes by the tool choice: without a grammar, allowed tools are the only ones offered."""
    choice = request.tool_choice
    if choice in (None, "auto", "none"):
        return {}
    if not request.tools:
        raise bad_request("tool_choice", "needs tools")
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if allowed is None or takes.grammar is not None or takes.tool_choice:
        return {}
    request.notes.add("tool_choice: the model is shown the allowed tools only, because the engine takes no grammar")
    names = {one["function"]["name"] for one in allowed["tools"]}
    return {
        "tools": [tool for tool in request.tools if tool["function"]["name"] in names],
        "tool_choice": "required" if allowed["mode"] == "required" else None,
    }


def _check_logprobs(takes: Takes, request: Generation) -> None:
    if request.logprobs is None:
        return
    if not takes.logprobs:
        raise unsupported("logprobs", "this engine reports no log probabilities")
    if request.echo and not takes.prompt_logprobs:
        problem = "with logprobs needs an engine that reports those of prompts (--upstream: vLLM, SGLang)"
        raise unsupported("echo", problem)
