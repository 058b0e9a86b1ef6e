"""Triggers: where a lazy grammar switches on.

Rule of this module: calls begin with the section's marker, else with the call's, else with the name's; a token where
the vocabulary has it, else the words. Calls with no marker have a pattern, which holds only where the output begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..format import Format, JsonBody
from .build import first_piece
from .calls import Spelling
from .choose import Tool
from .rules import Token

__all__ = ["Trigger", "triggers"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """``token``: this special token (``id``). ``word``: these words, anywhere. ``pattern``: a regular expression that
    the output must match from its beginning; the grammar begins at its first group."""

    type: Literal["token", "word", "pattern"]
    value: str
    id: int | None = None


def triggers(fmt: Format, spelling: Spelling, tools: Sequence[Tool]) -> tuple[Trigger, ...]:
    """The triggers of a Format; none if nothing can tell a call."""
    if fmt.channels is not None:
        return ()
    if not fmt.tools:
        return ()
    first = first_piece(fmt, spelling)
    if isinstance(first, Token):
        return (Trigger("token", first.text, first.id),)
    if first is not None:
        return (Trigger("word", first),)
    way = fmt.tools[0]
    if way.list_open is not None:
        opened = r"\s*".join(re.escape(part) for part in way.list_open.text.split())
        if isinstance(way.body, JsonBody):
            return (Trigger("pattern", rf"^\s*({opened}\s*\{{[\s\S]*)"),)
        names = "|".join(re.escape(t.name) for t in tools)
        return (Trigger("pattern", rf"^\s*({opened}\s*(?:{names})[\s\S]*)"),)
    if isinstance(way.body, JsonBody):
        key = re.escape(way.body.constants[0][0] if way.body.constants else way.body.nested_key or way.body.name_key)
        if way.body.name_is_key:
            key = "(?:" + "|".join(re.escape(t.name) for t in tools) + ")"
        return (Trigger("pattern", rf'^\s*(\{{\s*"{key}"[\s\S]*)'),)
    return ()
