"""Triggers: where a lazy grammar switches on.

Rule of this module: calls begin with the section's marker, else with the call's, else with the name's; a token where
the vocabulary has it, else the words. Calls with no marker have a pattern, which holds only where the output begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..format import Format, JsonBody, Tools
from ._build import first_marker
from ._choose import Tool

__all__ = ["Trigger", "triggers"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """``token``: this special token (``id``). ``word``: these words, anywhere. ``pattern``: a regular expression that
    the output must match from its beginning; the grammar begins at its first group."""

    type: Literal["token", "word", "pattern"]
    value: str
    id: int | None = None


def triggers(fmt: Format, tokens: Mapping[str, int], tools: Sequence[Tool]) -> tuple[Trigger, ...]:
    """The triggers of a Format; none if calls begin like text. ``tokens``: the special tokens that have ids."""
    if fmt.channels is not None or not fmt.tools:
        return ()
    first = first_marker(fmt)
    if first is not None:
        # A marker of several tokens is a word: its first token may begin other markers as well.
        return (Trigger("token", first, tokens[first]) if first in tokens else Trigger("word", first),)
    begins = _beginning(fmt.tools[0], "|".join(re.escape(tool.name) for tool in tools))
    return () if begins is None else (Trigger("pattern", rf"^\s*({begins}[\s\S]*)"),)


def _beginning(way: Tools, names: str) -> str | None:
    """Return a pattern for the beginning of calls without a marker; ``None`` if they begin like text."""
    body = way.body
    if way.list_open is not None:
        opened = r"\s*".join(re.escape(part) for part in way.list_open.text.split())
        return rf"{opened}\s*" + (r"\{" if isinstance(body, JsonBody) else f"(?:{names})")
    if not isinstance(body, JsonBody):
        return None
    key = re.escape(body.constants[0][0] if body.constants else body.nested_key or body.name_key)
    key = f"(?:{names})" if body.name_is_key else key
    return rf'\{{\s*"{key}"'
