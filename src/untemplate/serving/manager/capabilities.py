"""What a model can do, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ModelCapabilities"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapabilities:
    """What a model can do (spec 1), and why that is believed."""

    family: str = "unknown"
    """The type in ``config.json`` (``qwen3``), GGUF's architecture, or the format's name."""
    supports_thinking: bool = False
    supports_tools: bool = False
    default_enable_thinking: bool = True
    """Whether it thinks when a request does not say."""
    reasoning_parser: str | None = None
    """The catalogue's name, or that of what was inferred."""
    tool_call_parser: str | None = None
    chat_template: str | None = None
    """The source of the template that prompts are rendered with."""
    evidence: tuple[str, ...] = ()
    """One sentence for each thing that was looked at."""
