"""The prompt of a request: its messages rendered by the model's chat template.

* Variables in the request's ``chat_template_kwargs`` override those derived from its other fields, which override the
  operator's.
* Where the template has no switch for reasoning, unwanted reasoning is opened and closed in the prompt, with the
  markers of the Format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from untemplate.errors import ContentPartError
from untemplate.templates import ChatTemplate, TemplateError, TemplateLimitError
from untemplate.templates._history import TemplateNeeds, for_template, template_needs
from untemplate.templates._message_markers import TOOL_ROLES

from .errors import ApiError, bad_request, unsupported
from .generation import Generation, Thinking
from .images import taken_out
from .manager.model import Model
from .rendering import render
from .threads import work_here

_UNTRUSTED: Final[dict[str, tuple[str, ...]]] = {"off": (), "tools": TOOL_ROLES, "all": ("user", *TOOL_ROLES)}
"""Values of ``neutralize_markers``, and the roles of the messages in which markers are broken."""
_UNSET: Final = Thinking()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The input of an engine."""

    text: str | list[int]
    known: str | None
    """The prompt as text, for the parser's start state; ``None`` if it is not known."""
    images: tuple[bytes, ...] = ()


def make_prompts(model: Model, request: Generation) -> list[Prompt]:
    """Return the request's prompts, of which most requests have one.

    Raises:
        ApiError: as `make_prompt`, or one is too long.
    """
    prompts = [make_prompt(model, request), *map(_raw, request.further_prompts)]
    for prompt in prompts:
        check_length(model, prompt.text, "messages" if request.prompt is None else "prompt")
    return prompts


def guarded(model: Model, request: Generation) -> Generation:
    """Return a request with the model's markers in messages broken, if the operator wants it. Note those that stay."""
    messages, broken = request.messages, _UNTRUSTED[model.neutralize_markers]
    if messages is None:
        return request
    if broken:
        messages = model.message_markers.neutralized(messages, broken)
        request = msgspec.structs.replace(request, messages=messages)
    left = [role for role in _UNTRUSTED["all"] if role not in broken]
    for role, marker in model.message_markers.find(messages, left):
        what = "all" if role == "user" else "tools"
        request.notes.add(
            f"a {role} message holds {marker!r}, a marker of the model: as a token in the prompt it could end the "
            f"message (neutralize_markers: {what} breaks it)"
        )
    return request


def _raw(prompt: str | list[int]) -> Prompt:
    return Prompt(prompt, prompt if isinstance(prompt, str) else None)


def make_prompt(model: Model, request: Generation) -> Prompt:
    """Render the prompt of a request.

    Raises:
        ApiError: there is no template, or it refuses the messages.
    """
    if request.prompt is not None:
        return _raw(request.prompt)
    assert request.messages is not None
    template = model.template
    if template is None:
        if model.engine.takes.messages:
            return Prompt("", None)
        raise ApiError(
            400,
            f"model {model.name!r} has no chat template: start the server with --chat-template, or send a raw prompt to"
            " /v1/completions",
            param="messages",
            code="no_chat_template",
        )
    try:
        needs = template_needs(template)
        text, images = _render(model, request, needs)
    except TemplateLimitError as error:
        raise bad_request("messages", f"the chat template exceeded a limit: {error}") from None
    except TemplateError as error:
        if model.engine.takes.messages:
            return Prompt("", None)
        raise bad_request("messages", f"the model's chat template cannot render them: {error}") from None
    if (
        request.thinking != _UNSET
        and request.thinking.off
        and not needs.switches
        and not (needs.effort and request.thinking.effort)
    ):
        text = _closed(model, text)
    return Prompt("" if model.engine.takes.messages else text, text, images)


def check_length(model: Model, prompt: str | list[int], param: str) -> None:
    """Refuse a prompt that cannot fit into the model's context, without tokenizing it.

    Raises:
        ApiError: 400, it is too long.
    """
    context = model.context_length
    if not context:
        return
    most = context * model.longest_token if isinstance(prompt, str) else context
    if len(prompt) > most:
        unit = "characters" if isinstance(prompt, str) else "tokens"
        problem = f"{param}: {len(prompt)} {unit} do not fit into the context of {context} tokens"
        raise ApiError(400, problem, param=param, code="context_length_exceeded")


def _render(model: Model, request: Generation, needs: TemplateNeeds) -> tuple[str, tuple[bytes, ...]]:
    """Return the prompt and its images."""
    assert model.template is not None
    assert request.messages is not None
    takes = model.engine.takes
    images: list[bytes] = []
    messages = _texts_only(request.messages) if takes.messages else request.messages
    if takes.images is not None:
        messages, images = taken_out(messages, takes.images)
    try:
        messages = for_template(messages, needs, model.parser.format, images=takes.images == "")
    except ContentPartError as error:
        raise bad_request(error.where, error.problem) from None
    tools = request.tools if request.tools and request.tool_choice != "none" else None
    settings = {**model.template_kwargs, **_thinking(model, request, needs), **request.template_kwargs}
    for name in ("self", "messages", "tools", "add_generation_prompt", "continue_final_message"):
        if name in settings:
            raise unsupported(f"chat_template_kwargs.{name}", "cannot be set by requests")
    documents = settings.pop("documents", request.documents)
    if documents is not None and not (isinstance(documents, list) and all(isinstance(d, dict) for d in documents)):
        raise bad_request("chat_template_kwargs.documents", "must be a list of objects")
    if documents and "documents" not in model.template.variables:
        request.notes.ignored("documents", "the model's template does not show them")
    text = (ChatTemplate.render if work_here.get() is None else render)(
        model.template,
        messages,
        tools=tools,
        documents=documents,
        add_generation_prompt=not request.continue_final_message,
        continue_final_message=request.continue_final_message,
        **settings,
    )
    if takes.images and text.count(takes.images) != len(images):
        raise bad_request("messages", f"contain {takes.images!r}, which stands for an image")
    return text, tuple(images)


def _texts_only(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages without parts other than text: the rendering is only used to find the start state."""
    kept = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            message = {**message, "content": [p for p in content if isinstance(p, str) or p.get("type") == "text"]}
        kept.append(message)
    return kept


def _thinking(model: Model, request: Generation, needs: TemplateNeeds) -> dict[str, Any]:
    """Return the template's variables for the request's reasoning settings."""
    settings: dict[str, Any] = {}
    thinking = request.thinking
    if thinking == _UNSET:
        return settings
    enabled = thinking.enabled
    if thinking.off:
        enabled = False
    elif enabled is None and (thinking.effort is not None or thinking.budget is not None):
        enabled = True
    if enabled is not None:
        settings.update(dict.fromkeys(needs.switches, enabled))
    if thinking.effort is not None and not needs.effort and not thinking.off:
        request.notes.ignored("reasoning_effort", "the model's template has no setting for it")
    if thinking.enabled and not needs.switches and not model.parser.has_reasoning:
        request.notes.ignored("enable_thinking", "the model has no reasoning")
    if needs.effort and thinking.effort is not None:
        settings["reasoning_effort"] = "low" if thinking.effort == "none" and not needs.switches else thinking.effort
    return settings


def _closed(model: Model, text: str) -> str:
    """Close reasoning at the end of the prompt, so that the output begins with the answer."""
    reasoning = model.parser.format.reasoning
    if reasoning is None:
        return text
    opened = model.parser.stream(prompt=text).in_reasoning
    if opened:
        return text + reasoning.close.text
    return text + reasoning.open.text + reasoning.close.text if reasoning.open is not None else text
