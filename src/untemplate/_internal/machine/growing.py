"""Lists and other collections that most outputs never put anything into.

Each object of an open stream costs memory and time of the garbage collector. So all outputs share one empty collection
of a kind, and an output has one of its own from the first item on. One that is empty is replaced and never changed.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

_Item = TypeVar("_Item")
_Collection = TypeVar("_Collection", bound=Any)

NO_TEXTS: Final[list[str]] = []


def grown(items: list[_Item], item: _Item) -> list[_Item]:
    """Return the list with one item more: itself, or a new one in place of an empty one, which outputs share."""
    if items:
        items.append(item)
        return items
    return [item]


def own(items: _Collection) -> _Collection:
    """Return a collection that may be changed: itself, or a new one in place of an empty one, which outputs share."""
    found: _Collection = items or type(items)()
    return found
