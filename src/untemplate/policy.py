"""Policies: named settings for decisions on which applications differ.

* Every field has a documented default. Output that follows its Format is the same under every policy at its default.
* An unknown value is an error that lists the valid ones.
* A policy that needs a whole call (``unknown_tools``, ``malformed_arguments``, ``repair``, ``cut_calls``,
  ``recovered_calls``, ``strict`` and ``parallel_calls``, when not at their default) emits that call in one delta, when
  it closes.
  ``cut_calls="forward_or_content"`` does not need one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, Final, Literal, get_args, get_type_hints

from ._internal.record import Record, record

__all__ = ["STREAMED_CALLS", "WHOLE_CALLS", "Policy", "strict_from_environment", "typed"]

_STRICT = ("UNTEMPLATE_STRICT_TOOL_CALL", "VLLM_RS_STRICT_TOOL_CALL")


@cache
def _choices() -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the fields of a policy with their valid values; an empty tuple where any value of the type is valid."""
    hints = get_type_hints(Policy)
    return tuple((f.name, get_args(hints[f.name])) for f in fields(Policy))


@record()
class Policy(Record):
    """How malformed output is treated. Immutable; give one to a parser or to one request."""

    unknown_tools: Literal["forward", "content", "drop"] = "forward"
    """A call of a tool that was not offered is passed on, becomes content again (markup included), or is dropped and
    reported.
    """
    drafts: Literal["recover", "immediately", "never"] = "recover"
    """A call inside reasoning counts if the output ends on it, counts as soon as it is complete, or never counts."""
    unclosed_reasoning: Literal["reasoning", "content"] = "reasoning"
    """Reasoning that is still open when the output ends with ``stop`` stays reasoning, or becomes the content. With
    ``content`` all reasoning is buffered until it closes.
    """
    malformed_arguments: Literal["as_written", "repaired", "content"] = "as_written"
    """Arguments that are not a JSON object are passed on as written; they are repaired (syntax only, if ``repair`` is
    ``none``); or the call becomes content again.
    """
    repair: Literal["none", "syntax", "schema"] = "none"
    """Arguments are not repaired, unless ``malformed_arguments`` is ``repaired``; their JSON syntax is repaired; or
    also values, keys and names, by the tool's schema.
    """
    cut_calls: Literal["forward", "content", "drop", "forward_or_content"] = "forward"
    """A call that the output was cut in is passed on as far as it was written, becomes content again, or is dropped and
    reported. ``content`` and ``drop`` buffer each call until it closes. ``forward_or_content`` passes on what can
    stream; a cut call of which nothing was passed on becomes content.
    """
    recovered_calls: Literal["forward", "content", "drop"] = "forward"
    """A call of which a part was ended, dropped or read again, or that writes a parameter twice (``recovered``), is
    passed on, becomes content again, or is dropped and reported.
    """
    text_after_calls: Literal["keep", "drop"] = "keep"
    """Content after the first call is kept or dropped."""
    length_with_calls: Literal["length", "tool_calls"] = "length"
    """The finish reason of an output that was cut after at least one whole call."""
    outer_white_space: Literal["keep", "trim"] = "keep"
    """White space before and after the content as a whole is kept or removed."""
    marker_white_space: Literal["drop", "keep"] = "drop"
    """White space between text and a marker is dropped with the marker; or it is kept, except the white space that the
    Format itself writes there.
    """
    strict: bool | None = None
    """Drop calls that do not match their tool's schema. ``None``: as set in the environment, else off."""
    parallel_calls: Literal["all", "first", "first_rest_as_content"] = "all"
    """All calls are passed on; or only the first, and the others are dropped and reported, or become content."""
    reasoning_field: Literal["reasoning", "reasoning_content", "both", "inline"] = "reasoning"
    """The field for reasoning in dumps of messages and deltas; ``inline``: reasoning stays in the content, with its
    markers.
    """
    spelled_markers: Literal["format", "text", "marker"] = "format"
    """A marker that is one token in the vocabulary, but was written with several ordinary ones, is text or a
    marker; ``format``: as the Format says, which is text for most. This is known only with token ids.
    """
    quoted_calls: Literal["evidence", "call", "content"] = "evidence"
    """A call that the text before it shows to be quoted is content, and one in a code fence is a call; both are
    reported, but not inline code. Or all are calls; or those in fences are content as well. A token id that proves the
    marker outweighs the text.
    """
    max_held: int = 1 << 20
    """Most characters buffered while their meaning is undecided. Beyond that a possible call becomes content, a tagged
    value a string, and reasoning stays reasoning.
    """

    def __post_init__(self) -> None:
        for name, valid in _choices():
            value = getattr(self, name)
            if name == "strict":
                if value is not None and not isinstance(value, bool):
                    raise ValueError(f"policy strict: {value!r} is not one of: True, False, None")
            elif valid and value not in valid:
                raise ValueError(f"policy {name}: {value!r} is not one of: {', '.join(map(repr, valid))}")
        if not isinstance(self.max_held, int) or isinstance(self.max_held, bool) or self.max_held < 1:
            raise ValueError(f"policy max_held: {self.max_held!r} is not a positive number of characters")

    def resolved(self) -> Policy:
        """Return a copy in which ``strict`` is decided: from the environment, if the policy leaves it open.

        Raises:
            ValueError: the environment variable has an invalid value.
        """
        return replace(self, strict=strict_from_environment()) if self.strict is None else self

    @property
    def shows_cut_calls(self) -> bool:
        """True if a cut call of which nothing was passed on becomes content."""
        return self.cut_calls in ("content", "forward_or_content")

    @property
    def needs_no_filter(self) -> bool:
        """True if no filter is needed between the machine and the deltas."""
        return (
            not self.needs_whole_calls
            and all(
                getattr(self, name) == default
                for name, default in (
                    ("unclosed_reasoning", "reasoning"),
                    ("text_after_calls", "keep"),
                    ("outer_white_space", "keep"),
                )
            )
            and self.reasoning_field != "inline"
        )

    @property
    def needs_whole_calls(self) -> bool:
        """True if a policy needs whole calls."""
        return (
            self.unknown_tools != "forward"
            or self.malformed_arguments != "as_written"
            or self.repair != "none"
            or self.cut_calls in ("content", "drop")
            or self.recovered_calls != "forward"
            or self.parallel_calls != "all"
            or bool(self.strict)
        )

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> Policy:
        """Return a Policy from names and values, as flags or a request have them.

        ``reasoning_format`` (``auto``, ``none``, ``deepseek``) is llama.cpp's name for ``reasoning_field``.

        Raises:
            ValueError: an unknown name or value; lists the valid ones.
        """
        known = {f.name for f in fields(cls)}
        values = dict(settings)
        if "reasoning_format" in values:
            given = values.pop("reasoning_format")
            mapped = {"auto": "reasoning", "none": "inline", "deepseek": "reasoning_content"}
            if given not in mapped:
                raise ValueError(f"policy reasoning_format: {given!r} is not one of: 'auto', 'none', 'deepseek'")
            values["reasoning_field"] = mapped[given]
        for name in values:
            if name not in known:
                raise ValueError(f"policy {name}: there is none; there are: {', '.join(sorted(known))}")
        return cls(**values)


WHOLE_CALLS: Final = Policy(cut_calls="content")
"""The policy of interfaces that have no word for a cut call: their callers run every call that they get. So a cut call
is content there, and a whole call before it stays a call.
"""
STREAMED_CALLS: Final = Policy(cut_calls="forward_or_content")
"""The policy of streams of such interfaces whose end shows that a call was cut. What was sent cannot be taken back."""

_SWITCH = {"true": True, "1": True, "false": False, "0": False, "none": None}


def typed(name: str, value: Any) -> Any:
    """Convert a value that was written as text to the type that the policy of this name takes. A text that cannot be
    converted stays text, and `Policy` reports the problem.
    """
    if not isinstance(value, str):
        return value
    default = getattr(Policy(), name, "")
    if default is None:
        return _SWITCH.get(value.lower(), value)
    return int(value) if isinstance(default, int) and value.isdecimal() and value.isascii() else value


def strict_from_environment(environ: Mapping[str, str] | None = None) -> bool:
    """Return the value of the strict switch: ``UNTEMPLATE_STRICT_TOOL_CALL``, else its alias
    ``VLLM_RS_STRICT_TOOL_CALL``.

    Raises:
        ValueError: a value other than 1, true, 0 or false.
    """
    values = os.environ if environ is None else environ
    for name in _STRICT:
        value = values.get(name)
        if value is not None:
            if value.lower() in ("1", "true"):
                return True
            if value.lower() in ("0", "false", ""):
                return False
            raise ValueError(f"{name}: {value!r} is not one of: 1, true, 0, false")
    return False
