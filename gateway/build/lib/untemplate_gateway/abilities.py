"""Checks if a model and its engine can do what a request asks for.

Settings that can be left out without harm are noted; all others are refused.
"""

from __future__ import annotations

from .engines.base import Takes
from .errors import bad_request, unsupported
from .generation import Generation
from .manager.model import Model


def check_request(model: Model, request: Generation) -> None:
    """Refuse what the engine cannot do.

    Raises:
        ApiError: names the field.
    """
    takes = model.engine.takes
    _check_sampling(model, request)
    if request.by_token and not takes.token_ids:
        raise unsupported("prompt", "needs an engine that reports token ids")
    if takes.messages:
        if request.prompt is not None:
            raise unsupported("prompt", "needs an upstream that completes raw prompts (--upstream)")
        if request.thinking.budget:
            request.notes.ignored("thinking_budget", "needs an upstream that completes raw prompts (--upstream)")
            request.thinking.budget = None
        return
    for name in sorted(request.extra):
        request.notes.unknown(name, request.extra[name])
    _check_choice(takes, request)
    _check_logprobs(takes, request)
    if request.thinking.budget and model.parser.reasoning_close is None:
        request.notes.ignored("thinking_budget", "the gateway cannot close the reasoning of this model's format")
        request.thinking.budget = None


def _check_choice(takes: Takes, request: Generation) -> None:
    """Refuse a tool choice without tools. Without a grammar, allowed tools are the only ones offered.

    Raises:
        ApiError: names the field.
    """
    choice = request.tool_choice
    if choice in (None, "auto", "none"):
        return
    if not request.tools:
        raise bad_request("tool_choice", "needs tools")
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if allowed is not None and takes.grammar is None and not takes.tool_choice:
        names = {one["function"]["name"] for one in allowed["tools"]}
        request.tools = [tool for tool in request.tools if tool["function"]["name"] in names]
        request.tool_choice = "required" if allowed["mode"] == "required" else None
        request.notes.add("tool_choice: the model is shown the allowed tools only, because the engine takes no grammar")


def _check_logprobs(takes: Takes, request: Generation) -> None:
    """Refuse log probabilities that the engine does not report.

    Raises:
        ApiError: names the field.
    """
    if request.logprobs is None:
        return
    if not takes.logprobs:
        raise unsupported("logprobs", "this engine reports no log probabilities")
    if request.echo and not takes.prompt_logprobs:
        problem = "with logprobs needs an engine that reports those of prompts (--upstream: vLLM, SGLang)"
        raise unsupported("echo", problem)


def _check_sampling(model: Model, request: Generation) -> None:
    """Note the sampling parameters that the engine does not know, and refuse restrictions that it cannot follow.

    Raises:
        ApiError: names the field.
    """
    takes = model.engine.takes
    for name in ("stop_token_ids", "min_tokens", "ignore_eos"):
        if getattr(request.sampling, name) and name not in takes.sampling:
            request.notes.ignored(name, "this engine does not know it")
            setattr(request.sampling, name, None)
    constraint = request.constraint
    if constraint is None:
        return
    if constraint.kind not in takes.constraints:
        raise unsupported(constraint.field, f"this engine takes no {constraint.kind}")
    if request.tool_choice not in (None, "auto", "none"):
        raise bad_request("tool_choice", f"excludes {constraint.field}")
