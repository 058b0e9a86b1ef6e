"""Policies: what people disagree about, as named settings.

Rules of this module:

* Every field has a documented default; clean output is the same under the defaults as under no policy at all.
* A value that does not exist is an error that lists those that do.
* A policy that has to see a whole call (``unknown_tools``, ``malformed_arguments``, ``repair``, ``strict``,
  ``parallel_calls`` when not at their default) sends that call in one delta, at its close.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

__all__ = ["Policy", "strict_from_environment", "typed"]

_STRICT = ("UNTEMPLATE_STRICT_TOOL_CALL", "VLLM_RS_STRICT_TOOL_CALL")


@cache
def _choices() -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The fields of a policy with the values that they may have; none are given where any will do."""
    hints = get_type_hints(Policy)
    return tuple((f.name, get_args(hints[f.name])) for f in fields(Policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How unclean output is treated. Immutable; give one to a parser or to one request."""

    unknown_tools: Literal["forward", "content", "drop"] = "forward"
    """A call of a tool that was not offered: passed on; text again, markup included; dropped and reported."""
    drafts: Literal["recover", "immediately", "never"] = "recover"
    """A call inside reasoning: it counts if the output ends on it; as soon as it is read; not at all."""
    unclosed_reasoning: Literal["reasoning", "content"] = "reasoning"
    """Reasoning that an output ends in with ``stop``: stays reasoning; is the answer (all of it is held till then)."""
    malformed_arguments: Literal["as_written", "repaired", "content"] = "as_written"
    """Arguments that are no JSON object: passed on; mended as far as ``repair`` allows; the call is text again."""
    repair: Literal["none", "syntax", "schema"] = "none"
    """How much may be mended: nothing; JSON syntax; that, and values, keys and names by the tool's schema."""
    text_after_calls: Literal["keep", "drop"] = "keep"
    length_with_calls: Literal["length", "tool_calls"] = "length"
    """The finish reason of an output that was cut after at least one whole call."""
    outer_white_space: Literal["keep", "trim"] = "keep"
    """White space around the content as a whole."""
    strict: bool | None = None
    """Drop calls that do not match their tool's schema. ``None``: what the environment says, else off."""
    parallel_calls: Literal["all", "first", "first_rest_as_content"] = "all"
    """``first``: further calls are dropped and reported."""
    reasoning_field: Literal["reasoning", "reasoning_content", "both", "inline"] = "reasoning"
    """The field that dumps of messages and deltas use; ``inline``: left in content, with its markers."""
    spelled_markers: Literal["text", "marker"] = "text"
    """A marker that is one token in the vocabulary, but came as several ordinary ones (known only with token ids)."""
    max_held: int = 1 << 20
    """Characters that may be held while it is open whether they are a call. Beyond it they are text."""

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
        """The same with ``strict`` decided: by the environment, where the policy leaves it open.

        Raises:
            ValueError: the environment holds a value that is not one.
        """
        return replace(self, strict=strict_from_environment()) if self.strict is None else self

    @property
    def is_default(self) -> bool:
        """Whether nothing has to stand between the machine and what it tells."""
        return (
            not self.judges_calls
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
    def judges_calls(self) -> bool:
        """Whether any policy has to see calls whole."""
        return (
            self.unknown_tools != "forward"
            or self.malformed_arguments != "as_written"
            or self.repair != "none"
            or self.parallel_calls != "all"
            or bool(self.strict)
        )

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> Policy:
        """A Policy from names and values, as flags or a request carry them; ``reasoning_format`` (``auto``, ``none``,
        ``deepseek``: llama.cpp's word) stands for ``reasoning_field``.

        Raises:
            ValueError: a name or value that does not exist; lists the valid ones.
        """
        known = {f.name for f in fields(cls)}
        values = dict(settings)
        if "reasoning_format" in values:
            spoken = values.pop("reasoning_format")
            mapped = {"auto": "reasoning", "none": "inline", "deepseek": "reasoning_content"}
            if spoken not in mapped:
                raise ValueError(f"policy reasoning_format: {spoken!r} is not one of: 'auto', 'none', 'deepseek'")
            values["reasoning_field"] = mapped[spoken]
        for name in values:
            if name not in known:
                raise ValueError(f"policy {name}: there is none; there are: {', '.join(sorted(known))}")
        return cls(**values)


_SWITCH = {"true": True, "1": True, "false": False, "0": False, "none": None}


def typed(name: str, value: Any) -> Any:
    """A value that was written as text, as what the policy of this name takes; what cannot be that stays text, and
    `Policy` says what is wrong with it."""
    if not isinstance(value, str):
        return value
    default = getattr(Policy(), name, "")
    if default is None:
        return _SWITCH.get(value.lower(), value)
    return int(value) if isinstance(default, int) and value.isdecimal() and value.isascii() else value


def strict_from_environment(environ: Mapping[str, str] | None = None) -> bool:
    """The strict switch: ``UNTEMPLATE_STRICT_TOOL_CALL``, else its alias ``VLLM_RS_STRICT_TOOL_CALL``.

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
