"""Policies: what people disagree about, as named settings.

Rule of this module: every field has a documented default, and a value that does not exist is an error that lists those
that do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args, get_type_hints

__all__ = ["Policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How unclean output is treated. Immutable; give one to a parser or to one request."""

    drafts: Literal["recover", "immediately", "never"] = "recover"
    """A call inside reasoning: it counts if the output ends on it; as soon as it is read; not at all."""
    spelled_markers: Literal["text", "marker"] = "text"
    """A marker that is one token in the vocabulary, but came as several ordinary ones (known only with token ids)."""
    max_held: int = 1 << 20
    """Characters that may be held while it is open whether they are a call (arguments before the name, a draft). Beyond
    it they are text."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for f in fields(self):
            value = getattr(self, f.name)
            valid = get_args(hints[f.name])
            if valid and value not in valid:
                raise ValueError(f"policy {f.name}: {value!r} is not one of: {', '.join(map(repr, valid))}")
        if not isinstance(self.max_held, int) or self.max_held < 1:
            raise ValueError(f"policy max_held: {self.max_held!r} is not a positive number of characters")
