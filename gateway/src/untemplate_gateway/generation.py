"""Requests and their results, independent of the dialect.

A `Generation` uses the terms of Chat Completions: OpenAI's messages, reasoning of earlier turns as
``reasoning_content``, tools as ``{"type": "function", "function": {…}}``. Each dialect translates its requests into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from untemplate.messages import ParsedOutput

from .notes import Notes


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling parameters. ``None`` stands for the engine's default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    """Token id as text → bias."""
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    """Tokens that end the output; they are not part of it."""
    min_tokens: int | None = None
    """Least tokens of output before a token may end it."""
    ignore_eos: bool | None = None
    """True to ignore tokens that end an output."""

    def given(self) -> dict[str, Any]:
        """Return the parameters that are set."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class Constraint(msgspec.Struct, frozen=True):
    """A restriction of the raw output that the client has written for its engine."""

    kind: str
    """``grammar`` (in the engine's own language), ``regex`` or ``choice`` (a list of texts)."""
    value: str | tuple[str, ...]
    field: str
    """The field of the request."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning settings. ``None`` stands for the template's default."""

    enabled: bool | None = None
    effort: str | None = None
    """``none`` · ``minimal`` · ``low`` · ``medium`` · ``high`` · ``xhigh``, as in the request."""
    budget: int | None = None
    """Most tokens of reasoning, after which it is closed."""

    @property
    def off(self) -> bool:
        """True if the request asks for no reasoning."""
        return self.enabled is False or self.budget == 0 or self.effort == "none"


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One request. What is settled on its way is settled in copies."""

    model: str = ""
    messages: list[dict[str, Any]] | None = None
    prompt: str | list[int] | None = None
    """A raw prompt instead of messages: no template is applied."""
    further_prompts: list[str | list[int]] = []
    """Raw prompts after ``prompt``. Each is answered by ``n`` choices of its own."""
    tools: list[dict[str, Any]] | None = None
    """``None`` and ``[]`` offer no tools."""
    tool_choice: Any = None
    """``None`` (auto) or OpenAI's: ``auto``, ``required``, ``none``, a named function, ``allowed_tools``."""
    parallel_tool_calls: bool = True
    response_format: dict[str, Any] | None = None
    """OpenAI's: ``{"type": "json_schema", "json_schema": {…}}``, ``{"type": "json_object"}``, or ``None`` for text."""
    constraint: Constraint | None = None
    """Excludes ``response_format`` and required calls."""
    documents: list[dict[str, Any]] | None = None
    """Documents for chat templates that know them."""
    n: int = 1
    """Choices for each prompt."""
    stop: tuple[str, ...] = ()
    """Strings that end the content. They have no effect in reasoning, markup and arguments."""
    max_tokens: int | None = None
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    logprobs: int | None = None
    """``None`` for none, ``0`` for those of the tokens, ``k`` for those of the k likeliest tokens as well."""
    thinking: Thinking = msgspec.field(default_factory=Thinking)
    template_kwargs: dict[str, Any] = {}
    continue_final_message: bool = False
    """True if the model continues the last message, which is the assistant's."""
    include_reasoning: bool = True
    reasoning_field: str = "reasoning"
    """Name of the field for reasoning in messages of Chat Completions, from the policy."""
    parse: bool = True
    """``False`` returns the raw output as content (``/v1/completions``)."""
    echo: bool = False
    """Repeat the raw prompt before the output (``/v1/completions``). With ``logprobs``, the engine itself does it and
    reports those of the prompt."""
    stream: bool = False
    include_usage: bool = False
    """End the stream with a chunk that reports the usage, in dialects where this is optional."""
    diagnostics: bool = False
    """Report statuses of calls, and diagnostics (``"untemplate": {"diagnostics": true}``)."""
    raw: bool = False
    """Report the raw output (``"untemplate": {"raw": true}``)."""
    token_ids: bool = False
    """Return the token ids of the prompt and of the output."""
    by_token: bool = False
    """Report log probabilities for all tokens, in step with their ids, and not for those of the content."""
    repeated: dict[str, Any] = {}
    """Fields of the request that the response of its dialect repeats (metadata, instructions)."""
    keep: Callable[[dict[str, Any]], bool] | None = None
    """Called with the whole response before its end is sent, to store it."""
    extra: dict[str, Any] = {}
    """Fields that the gateway does not know. Engines that pass requests on send them; for others they are noted."""
    notes: Notes = msgspec.field(default_factory=Notes)
    """Remarks on the request."""

    @property
    def choices(self) -> int:
        """The number of all choices."""
        return self.n * (1 + len(self.further_prompts))

    def raw_prompt(self, choice: int) -> str | list[int] | None:
        """Return the raw prompt that a choice answers."""
        number = choice // self.n
        return self.further_prompts[number - 1] if number else self.prompt


class TokenLogprob(msgspec.Struct, gc=False):
    """A token's log probability, and those of the likeliest tokens in its place."""

    token: str
    logprob: float | None
    """``None`` for the first token of a prompt, which follows none."""
    top: list[tuple[str, float]] = []
    id: int | None = None


Logprobs = list[TokenLogprob] | None


class Usage(msgspec.Struct, gc=False):
    """Numbers of tokens, and times."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of the completion tokens."""
    cached_tokens: int = 0
    """Part of the prompt tokens."""
    prompt_ns: int = 0
    """Nanoseconds until the first token; 0 if they are not known."""
    completion_ns: int = 0
    """Nanoseconds from the first token to the last."""

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Meta(msgspec.Struct, kw_only=True):
    """Id, time and model name of a response, and the tokens of its prompts."""

    id: str
    """Hex digits; each dialect adds its prefix."""
    created: int
    """Seconds since the epoch."""
    model: str
    prompt_ids: list[list[int] | None] = []
    """Set before the output begins, if token ids are asked for; ``None`` for a prompt whose tokens are not known."""

    def prompt_ids_of(self, request: Generation, choice: int) -> list[int] | None:
        """Return the token ids of the prompt that a choice answers; ``None`` if they are not known."""
        return self.prompt_ids[choice // request.n] if self.prompt_ids else None


class Ended(msgspec.Struct, kw_only=True):
    """One finished choice."""

    index: int
    finish_reason: str
    """``stop`` · ``length`` · ``tool_calls`` · ``content_filter`` · ``error``."""
    parsed: ParsedOutput
    raw: str = ""
    stop: str | None = None
    """The stop string that ended the content."""
    logprobs: list[TokenLogprob] | None = None
    """Log probabilities of the content's tokens."""
    stop_token: int | None = None
    """The token of ``stop_token_ids`` that ended the output."""
    token_ids: list[int] | None = None
    """Ids of the output, if they are asked for and the engine reports them."""
    last_ids: list[int] | None = None
    """Those that came after the last delta."""
    usage: Usage = msgspec.field(default_factory=Usage)
