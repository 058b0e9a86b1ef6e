"""Data that an analysis produces: guesses, hypotheses, and llama.cpp's names for what was found.

A guess is a possible fragment of a Format and the comparison that it comes from. A hypothesis is a whole Format made of
guesses, with its score. Variants, marker fields, and modes of reasoning and content have the names of llama.cpp's
template auto-parser.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Final

from ..format import (
    Channels,
    ElementArguments,
    Format,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    NamedBody,
    TaggedArguments,
    Tools,
)
from ..format._markers import text_of

JSON_NATIVE: Final = "json-native"
TAG_WITH_JSON: Final = "tagged-json"
TAG_WITH_TAGGED: Final = "tagged-args"
BRACKET_TAG: Final = "bracket-tag"
PREFIXED_INDEXED: Final = "prefixed-indexed"
RECIPIENT_BASED: Final = "recipient-based"
MARKDOWN_BLOCK: Final = "markdown-block"
NAME_AS_KEY: Final = "name-as-key"
PYTHONIC: Final = "pythonic"
CHANNEL: Final = "channel"


@dataclass(frozen=True, slots=True)
class ReasoningGuess:
    """Reasoning between these markers; ``open`` is ``None`` if reasoning begins with the output."""

    open: str | None
    close: str
    source: str
    repeats: bool = False
    starts_open: bool = False


@dataclass(frozen=True, slots=True)
class ContentGuess:
    """Markers around content (none: plain content), and the end of the turn in that case."""

    open: str
    close: str
    written: str
    end: str
    source: str
    other: tuple[str, str] | None = None
    """The markers that content has before a call, if they are others."""


@dataclass(frozen=True, slots=True)
class ToolsGuess:
    """One syntax of calls."""

    tools: Tools
    ids: str
    variant: str
    source: str
    ends: tuple[str, ...] = ()
    """Ends of a turn with calls, if they differ from the ends of other turns."""


@dataclass(frozen=True, slots=True)
class ChannelsGuess:
    """A turn as messages with headers."""

    channels: Channels
    header: str
    variant: str
    source: str
    tools: Tools | None = None
    """Syntax of calls in messages to tools, if that is not just the arguments."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One Format that was measured."""

    format: Format
    score: float
    variant: str
    sources: tuple[str, ...]
    """The comparisons that it comes from."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "score": round(self.score, 4),
            "variant": self.variant,
            "sources": list(self.sources),
            "format": json.loads(self.format.to_json(indent=None)),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerRegistry:
    """llama.cpp's ``marker_registry``: every marker as the template writes it, "" for one that it does not write."""

    reasoning_start: str = ""
    reasoning_end: str = ""
    content_start: str = ""
    content_end: str = ""
    tool_section_start: str = ""
    tool_section_end: str = ""
    per_call_start: str = ""
    per_call_end: str = ""
    call_separator: str = ""
    func_name_prefix: str = ""
    func_name_suffix: str = ""
    func_close: str = ""
    args_start: str = ""
    args_end: str = ""
    arg_name_prefix: str = ""
    arg_name_suffix: str = ""
    arg_value_prefix: str = ""
    arg_value_suffix: str = ""
    arg_separator: str = ""
    code_block_marker: str = ""
    id_marker: str = ""
    function_namespace: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the markers that exist."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisResult:
    """llama.cpp's ``diff_analysis_result`` for the Format that was chosen."""

    reasoning: str = "none"
    """``none``, ``optional`` or ``forced-open``: a prompt leaves it open, by default or with thinking switched on."""
    content: str = "plain"
    """``plain``, ``always-wrapped`` or ``wrapped-with-reasoning``."""
    variant: str = ""
    """Structure of calls (``tagged-json`` …); "" without calls."""
    arguments: str = "json"
    """``json``, ``tagged``, ``tagged-typed`` or ``literal``; "" without calls."""
    markers: MarkerRegistry = MarkerRegistry()
    name_field: str = "name"
    args_field: str = "arguments"
    id_field: str = ""
    """Fields of a call in JSON. Other calls have the first two as they are by default."""
    supports_tools: bool = False
    supports_parallel_calls: bool = False
    requires_nonnull_content: bool = False
    preserved_tokens: tuple[str, ...] = ()

    @property
    def tools(self) -> str:
        """``variant``, by llama.cpp's name."""
        return self.variant

    @property
    def args(self) -> str:
        """``arguments``, by llama.cpp's name."""
        return self.arguments

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return found | {"markers": self.markers.to_dict(), "preserved_tokens": list(self.preserved_tokens)}


def describe(
    fmt: Format, variant: str, *, parallel: bool, nonnull_content: bool, opened: bool = False
) -> AnalysisResult:
    """Describe a Format in the terms of llama.cpp's auto-parser. ``opened``: a prompt leaves reasoning open."""
    markers: dict[str, str] = {}
    reasoning, content = "none", "plain"
    if fmt.reasoning is not None:
        markers["reasoning_start"] = text_of(fmt.reasoning.open)
        markers["reasoning_end"] = fmt.reasoning.close.text
        forced = opened or fmt.reasoning.open is None or fmt.reasoning.start == "open"
        reasoning = "forced-open" if forced else "optional"
    if fmt.content is not None:
        markers["content_start"] = fmt.content.open.text
        markers["content_end"] = fmt.content.close.text
        content = "always-wrapped" if fmt.content.written == "always" else "wrapped-with-reasoning"
    names: dict[str, str] = {}
    arguments = ""
    if fmt.channels is not None:
        arguments = "json"
        _describe_channels(fmt.channels, markers)
        if fmt.channels.has_reasoning:
            reasoning = "optional"
    if fmt.tools:
        arguments = _describe_tools(fmt.tools[0], markers, names)
        if variant == MARKDOWN_BLOCK:
            markers["code_block_marker"] = markers.get("tool_section_start") or markers.get("per_call_start", "")
    return AnalysisResult(
        reasoning=reasoning,
        content=content,
        variant=variant,
        arguments=arguments,
        markers=MarkerRegistry(**markers),
        supports_tools=bool(variant),
        supports_parallel_calls=parallel,
        requires_nonnull_content=nonnull_content,
        preserved_tokens=fmt.special_tokens,
        **names,
    )


def _describe_channels(channels: Channels, markers: dict[str, str]) -> None:
    markers["per_call_start"] = channels.open.text + channels.role
    markers["per_call_end"] = text_of(channels.call_close or channels.close)
    markers["func_name_prefix"] = text_of(channels.recipient) + channels.namespace
    markers["args_start"] = (channels.call_body or channels.body).text
    markers["function_namespace"] = channels.namespace
    if channels.reasoning_body is not None:
        markers["reasoning_start"] = channels.open.text + channels.role + channels.reasoning_body.text
        markers["reasoning_end"] = text_of(channels.close)
    elif channels.reasoning:
        front = channels.open.text + channels.role + text_of(channels.channel or channels.recipient)
        markers["reasoning_start"] = front + channels.reasoning[0] + channels.body.text
        markers["reasoning_end"] = text_of(channels.close)
    front = text_of(channels.channel) if channels.channel is not None else channels.open.text
    markers["content_start"] = front + "".join(channels.content[:1]) + channels.body.text


def _describe_tools(tools: Tools, markers: dict[str, str], names: dict[str, str]) -> str:
    markers["tool_section_start"] = text_of(tools.section_open, tools.list_open)
    markers["tool_section_end"] = text_of(tools.list_close, tools.section_close)
    markers["per_call_start"] = text_of(tools.call_open)
    markers["per_call_end"] = text_of(tools.call_close)
    markers["call_separator"] = text_of(tools.separator)
    body = tools.body
    if isinstance(body, JsonBody):
        if not body.name_is_key:
            names |= {"name_field": body.name_key, "args_field": body.arguments_key}
        names["id_field"] = body.id_key or ""
        markers["args_start"], markers["args_end"] = "{", "}"
        return "json"
    return _describe_named(body, markers)


def _describe_named(body: NamedBody, markers: dict[str, str]) -> str:
    before, _, behind = body.name.partition("{name}")
    markers["func_name_prefix"] = text_of(body.name_open) + before
    markers["func_name_suffix"] = behind + text_of(body.name_close)
    markers["func_close"] = text_of(body.arguments_close)
    markers["id_marker"] = text_of(body.id_open)
    markers["function_namespace"] = before if "{index}" in behind and '"' not in behind else ""
    arguments = body.arguments
    if isinstance(arguments, JsonArguments):
        markers["args_start"], markers["args_end"] = "{", "}"
        return "json"
    if isinstance(arguments, LiteralArguments):
        markers["args_start"], markers["args_end"] = arguments.open, arguments.close
        markers["arg_name_suffix"] = arguments.assign
        markers["arg_value_prefix"] = markers["arg_value_suffix"] = arguments.quotes[0]
        markers["arg_separator"] = arguments.separator
        return "literal"
    if isinstance(arguments, ElementArguments):
        markers["arg_name_prefix"], markers["arg_name_suffix"] = arguments.open.text, arguments.name_close
        markers["arg_value_suffix"] = arguments.close.text
        return "element"
    return _describe_tagged(arguments, markers)


def _describe_tagged(arguments: TaggedArguments, markers: dict[str, str]) -> str:
    markers["arg_name_prefix"] = arguments.key_open.text
    markers["arg_name_suffix"] = arguments.key.partition("{key}")[2] + arguments.key_close.text
    markers["arg_value_prefix"] = text_of(arguments.value_open)
    markers["arg_value_suffix"] = arguments.value_close.text
    return "tagged" if arguments.key == "{key}" else "tagged-typed"
