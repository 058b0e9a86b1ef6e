"""Lists that most outputs never put anything into.

Each object of an open stream costs memory and time of the garbage collector. So all outputs share one empty list, and
an output has a list of its own from the first item on. A list that is empty is replaced and never changed.
"""

from __future__ import annotations

from typing import Final, TypeVar

_Item = TypeVar("_Item")

NO_TEXTS: Final[list[str]] = []


def grown(items: list[_Item], item: _Item) -> list[_Item]:
    """Return the list with one item more: itself, or a new one in place of an empty one, which outputs share."""
    if items:
        items.append(item)
        return items
    return [item]
