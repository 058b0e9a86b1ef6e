"""A loaded model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from untemplate._internal.output_parser import OutputParser
from untemplate.format import Marker, NamedBody
from untemplate.templates import ChatTemplate
from untemplate.templates._message_markers import MessageMarkers

from ..engines.base import Engine

if TYPE_CHECKING:
    from .capabilities import ModelCapabilities

Report = Callable[[str], None]
"""Called with the progress of a load, in a few words."""
Loader = Callable[[Report], Awaitable["Model"]]
"""Loads a model and starts its engine. If it fails, it cleans up after itself."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Everything that requests for one model share. Immutable."""

    name: str
    """The name that clients use."""
    engine: Engine
    parser: OutputParser
    template: ChatTemplate | None = None
    """``None`` if the engine takes messages, or if the model has no template: it then answers raw prompts only."""
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    """The template's variables for requests that do not set them."""
    neutralize_markers: Literal["off", "tools", "all"] = "off"
    """The messages in which the model's markers are broken: none, tool results, or also those of users."""
    generic_tools: bool = False
    """True if the template knows no tools, and the gateway shows them to the model in the form ``generic``."""
    capabilities: ModelCapabilities | None = None
    context_length: int | None = None
    longest_token: int = 256
    """Most characters of a token. Limits the length of a prompt that can fit into the context."""
    created: int = 0
    aliases: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    """Details for ``show`` and Ollama's ``/api/show``: family, parameters, quantization, size, digest …"""

    @cached_property
    def call_markers(self) -> tuple[str, ...]:
        """Markers that begin calls, as far as they are more than one character (``[`` is too common in text)."""
        markers: list[Marker | None] = []
        for tools in self.parser.format.tools:
            markers += [tools.section_open, tools.call_open]
            if isinstance(tools.body, NamedBody):
                markers.append(tools.body.name_open)
        return tuple({text for m in markers if m is not None for text in m.spellings if len(text) > 1})

    @cached_property
    def message_markers(self) -> MessageMarkers:
        """The markers that no text of a message should hold."""
        return MessageMarkers(self.parser.prompt_markers)

    @property
    def chats(self) -> bool:
        """True if the model can answer messages; False if it takes raw prompts only."""
        return self.template is not None or self.engine.takes.messages

    @property
    def thinks(self) -> bool:
        """True if the model reasons. Its parser may know reasoning nevertheless, because the model's type has it."""
        found = self.capabilities
        return self.chats and (self.parser.has_reasoning if found is None else found.supports_thinking)

    @property
    def calls_tools(self) -> bool:
        """True if the model can call tools, shown to it by its template or by the gateway."""
        found = self.capabilities
        return self.chats and (self.parser.has_tools if found is None else found.supports_tools)
