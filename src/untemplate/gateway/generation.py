"""What a request asks for, whatever the dialect it came in; and what came of it.

Rules of this module:

* A `Generation` is in the terms of Chat Completions: messages as OpenAI has them, reasoning of earlier turns as
  ``reasoning_content``, tools as ``{"type": "function", "function": {…}}``. Each dialect translates into it.
* Data only.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..messages import ParsedOutput

__all__ = ["Ended", "Generation", "Meta", "Sampling", "Thinking", "TokenLogprob", "Usage"]


class Sampling(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How tokens are chosen. ``None``: as the engine does by default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    """Token id, as text → bias."""
    seed: int | None = None


class Thinking(msgspec.Struct, kw_only=True):
    """Whether and how long the model may think. ``None``: as its template does by default."""

    enabled: bool | None = None
    effort: str | None = None
    """``none`` · ``minimal`` · ``low`` · ``medium`` · ``high`` · ``xhigh``, as the request has it."""
    budget: int | None = None
    """Tokens of reasoning after which it is closed."""

    @property
    def off(self) -> bool:
        """Whether none is wanted."""
        return self.enabled is False or self.budget == 0 or self.effort == "none"


class Generation(msgspec.Struct, kw_only=True):
    """One request."""

    model: str = ""
    messages: list[dict[str, Any]] | None = None
    prompt: str | list[int] | None = None
    """Raw, instead of messages: no template is applied."""
    tools: list[dict[str, Any]] | None = None
    """``None`` and ``[]``: none are offered."""
    tool_choice: Any = None
    """``None`` (auto) or as OpenAI has it: ``auto``, ``required``, ``none``, a named function, ``allowed_tools``."""
    parallel_tool_calls: bool = True
    response_format: dict[str, Any] | None = None
    """OpenAI's: ``{"type": "json_schema", "json_schema": {…}}``, ``{"type": "json_object"}``, or ``None`` for text."""
    n: int = 1
    stop: tuple[str, ...] = ()
    """Strings that end the content. They count neither in reasoning nor in markup and arguments."""
    max_tokens: int | None = None
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    logprobs: int | None = None
    """``None``: none; ``0``: of the tokens themselves; ``k``: and of the k likeliest."""
    thinking: Thinking = msgspec.field(default_factory=Thinking)
    template_kwargs: dict[str, Any] = {}
    continue_final_message: bool = False
    """The last message is the assistant's, and the model goes on with it."""
    include_reasoning: bool = True
    reasoning_field: str = "reasoning"
    """The policy's: what Chat Completions calls reasoning in its messages."""
    parse: bool = True
    """``False``: the output is given out raw, as content (``/v1/completions``)."""
    echo: bool = False
    """Give the raw prompt back before the output (``/v1/completions``)."""
    stream: bool = False
    include_usage: bool = False
    """A last chunk with usage, in streams whose dialect asks for it."""
    diagnostics: bool = False
    """``"untemplate": {"diagnostics": true}``: statuses of calls and what was odd."""
    raw: bool = False
    """``"untemplate": {"raw": true}``: the raw output."""
    repeated: dict[str, Any] = {}
    """What the dialect's own response says again of the request (metadata, instructions). Nobody else reads it."""
    extra: dict[str, Any] = {}
    """Fields that the gateway does not know. An engine that passes requests on takes them; others make them a 400."""


class TokenLogprob(msgspec.Struct, gc=False):
    """A token's log probability, and those of the likeliest in its place."""

    token: str
    logprob: float
    top: list[tuple[str, float]] = []
    id: int | None = None


class Usage(msgspec.Struct, gc=False):
    """Tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Of the completion's."""
    cached_tokens: int = 0
    """Of the prompt's."""
    prompt_ns: int = 0
    """Nanoseconds up to the first token; 0: not known."""
    completion_ns: int = 0
    """Nanoseconds from there to the last."""

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Meta(msgspec.Struct, kw_only=True):
    """What identifies a response."""

    id: str
    """Hex digits; each dialect puts its prefix before them."""
    created: int
    """Seconds since the epoch."""
    model: str


class Ended(msgspec.Struct, kw_only=True):
    """One choice, ended."""

    index: int
    finish_reason: str
    """``stop`` · ``length`` · ``tool_calls`` · ``content_filter`` · ``error``."""
    parsed: ParsedOutput
    raw: str = ""
    stop: str | None = None
    """The stop string that ended it."""
    logprobs: list[TokenLogprob] | None = None
    """Of the tokens of its content."""
    usage: Usage = msgspec.field(default_factory=Usage)
