"""The offered name that a misspelt name means.

A name with another meaning is not a misspelling. Short words, first letters and digits carry the meaning (``get`` and
``set``, ``v1`` and ``v2``), so they must be equal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

_MAX_NAME: Final = 256
"""Characters. Nothing is near a longer name."""
_MARKS: Final = re.compile(r"[\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the one of ``names`` (tools, or keys) that ``name`` means; None if it is none of them, or more than one.

    In this order: the name itself; the same letters and digits (``getWeather``, ``Get-Weather``); a name after a
    namespace (``mcp:files:read`` for ``read``); the same words, up to two of them with one slip (``get_wether``). A
    slip is a letter too many, missing or swapped in a word of four or more, a wrong letter in one of six or more, or an
    ``s`` at the end of three or more; the first letter is right. So ``get`` is not ``set``, ``min_price`` not
    ``max_price``, ``turn_on`` not ``turn_off``.
    """
    offered = dict.fromkeys(names)
    if name in offered:
        return name
    if not name or len(name) > _MAX_NAME:
        return None
    for alike in (_same_letters, _namespaced, _same_words):
        found = [other for other in offered if 0 < len(other) <= _MAX_NAME and alike(name, other)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _same_letters(name: str, other: str) -> bool:
    return _letters(name) == _letters(other) != ""


def _namespaced(name: str, other: str) -> bool:
    # omlx#1854: ``google:mcp:text_generation:create-pdf-file`` for ``create-pdf-file``
    return name.endswith(other) and len(name) > len(other) and name[-len(other) - 1] in ":./"


def _same_words(name: str, other: str) -> bool:
    ours, theirs = _words(name), _words(other)
    slips = [(a, b) for a, b in zip(ours, theirs, strict=False) if a != b]
    return len(ours) == len(theirs) and 1 <= len(slips) <= 2 and all(_slip(a, b) for a, b in slips)


# The names of a request are compared with every wrong name in it.


@functools.lru_cache(maxsize=1024)
def _letters(name: str) -> str:
    return _MARKS.sub("", name).casefold()


@functools.lru_cache(maxsize=1024)
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(_HUMP.sub("_", name)))


def _slip(a: str, b: str) -> bool:
    if len(a) > len(b):
        a, b = b, a
    if a[0] != b[0] or a[0].isdecimal() or len(b) - len(a) > 1:
        return False
    same = 0
    while same < len(a) and a[same] == b[same]:
        same += 1
    if len(a) < len(b):
        plural = same == len(a) and b[-1] == "s"
        return a[same:] == b[same + 1 :] and len(a) >= (3 if plural else 4)
    swapped = a[same : same + 2] == b[same : same + 2][::-1] and a[same + 2 :] == b[same + 2 :]
    return (swapped and len(a) >= 4) or (a[same + 1 :] == b[same + 1 :] and len(a) >= 6)
