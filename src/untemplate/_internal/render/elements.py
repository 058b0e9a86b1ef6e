"""Checks whether the arguments of a call can be written as elements and are read back as they were.

The rules are those of :mod:`.expressible`: in doubt the answer is no.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...format import ElementArguments
from ...format._spelling import json_text
from ..jsontext.well_formed import MAX_DEPTH
from ..schemas.reading import SchemaNode
from .reasons import Inexpressible
from .shared import MAX_KEY, WS, becomes

__all__ = ["ElementRules", "elements_problem"]

_NOT_IN_NAME: Final = re.compile(r"[<>\r\n]")


@dataclass(frozen=True, slots=True)
class ElementRules:
    """The literals that decide where elements begin and end."""

    arguments: ElementArguments
    markers: tuple[str, ...]
    """Spellings of the markers around the arguments, and of what may follow them."""


def elements_problem(rules: ElementRules, members: Mapping[str, Any], node: SchemaNode) -> Inexpressible | None:
    """Return the reason why arguments cannot be written; ``None`` if they can. ``node``: the tool's schema."""
    return _members(rules, members, node, ())


def _members(
    rules: ElementRules, members: Mapping[str, Any], node: SchemaNode, around: tuple[str, ...]
) -> Inexpressible | None:
    for key, value in members.items():
        if not _names_element(rules, key):
            return Inexpressible.KEY_CHARACTERS
        problem = _value(rules, value, node.child(key), (*around, key), frozenset(node.properties()))
        if problem is not None:
            return problem
    return None


def _names_element(rules: ElementRules, key: str) -> bool:
    """True if a key can be the name in a tag, and neither tag reads as another marker."""
    arguments = rules.arguments
    if not key or key != key.strip(WS) or key[0] == "/" or len(key) > MAX_KEY or _NOT_IN_NAME.search(key):
        return False
    if (key + arguments.name_close).find(arguments.name_close) != len(key):
        return False
    opened, closed = (before + key + arguments.name_close for before in (arguments.open.text, arguments.close.text))
    return not opened.startswith(arguments.close.spellings) and not any(
        tag.startswith(text) or text.startswith(tag) for tag in (opened, closed) for text in rules.markers
    )


def _value(
    rules: ElementRules, value: Any, node: SchemaNode, around: tuple[str, ...], siblings: frozenset[str]
) -> Inexpressible | None:
    if len(around) > MAX_DEPTH:
        return Inexpressible.VALUE_TYPE
    if isinstance(value, (Mapping, list, tuple)):
        return _container(rules, value, node, around)
    text = value if isinstance(value, str) else json_text(value)
    if _may_end(rules, text, around, siblings):
        return Inexpressible.MARKER_IN_VALUE
    opened = text.lstrip(WS)
    if (node.is_object or node.is_array) and opened.startswith(rules.arguments.open.text):
        return Inexpressible.MARKER_IN_VALUE
    return None if becomes(value, text, node.param) else Inexpressible.VALUE_TYPE


def _container(
    rules: ElementRules,
    value: Mapping[str, Any] | list[Any] | tuple[Any, ...],
    node: SchemaNode,
    around: tuple[str, ...],
) -> Inexpressible | None:
    """Return the reason why an object or an array is not read back from its elements."""
    item = rules.arguments.item
    first = next(iter(value), None) if isinstance(value, Mapping) else item
    if _read_as_array(rules, node, first if value else None) != (not isinstance(value, Mapping)):
        return Inexpressible.VALUE_TYPE
    if isinstance(value, Mapping):
        return _members(rules, value, node, around)
    problems = (_value(rules, x, node.items(), (*around, item), frozenset((item,))) for x in value)
    return next((problem for problem in problems if problem is not None), None)


def _read_as_array(rules: ElementRules, node: SchemaNode, first: str | None) -> bool | None:
    """Return True if an element whose first inner element is ``first`` (``None``: it is empty) is read as an array,
    False if it is read as an object, and ``None`` if it is read as text."""
    if not (node.is_object or node.is_array):
        return None
    if first is None:
        empty = node.param is not None and "string" not in node.param.types
        return node.is_array if empty else None
    item = first == rules.arguments.item and first not in node.properties()
    return node.is_array and (item or not node.is_object)


def _may_end(rules: ElementRules, text: str, around: tuple[str, ...], siblings: frozenset[str]) -> bool:
    """True if a text holds, or forms with its close tag, a marker at which it might end."""
    arguments = rules.arguments
    end = arguments.name_close
    close = f"{arguments.close.text}{around[-1]}{end}"
    tags = [f"{before}{name}{end}" for before in arguments.close.spellings for name in around]
    tags += [f"{before}{name}{end}" for before in arguments.open.spellings for name in siblings]
    literals = (*tags, *rules.markers, *arguments.open.spellings, *arguments.close.spellings)
    if any(tag in text for tag in (*tags, *rules.markers)):
        return True
    whole = text + close
    if any(whole.startswith(literal, at) for literal in literals for at in _ends(text, literal)):
        return True
    # A tag that is begun in the text may reach into its close.
    if _NOT_IN_NAME.match(arguments.close.text):
        return False
    begun = max(text.rfind(before) for before in (*arguments.open.spellings, *arguments.close.spellings))
    return begun >= 0 and end not in text[begun:] and not _NOT_IN_NAME.search(text, begun + 1)


def _ends(text: str, literal: str) -> range:
    """Return the places at the end of the text at which a literal could begin and end after the text."""
    return range(max(len(text) - len(literal) + 1, 0), len(text))
