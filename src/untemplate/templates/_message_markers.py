"""Markers in the texts of messages.

A tool result or the text of a user goes through the chat template into the prompt. Most engines tokenize the prompt as
one text, so a marker in a message becomes the special token that it spells: the text ends its own message. To break a
marker, an invisible character (U+200B) is put after its first one. The model reads almost the same text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["TOOL_ROLES", "MessageMarkers"]

TOOL_ROLES: Final = ("tool", "function", "ipython", "observation")
"""Roles of messages that hold the results of tools."""
_BREAK: Final = "\u200b"


class MessageMarkers:
    """Finds and breaks markers in the texts of messages.

    Args:
        markers: the markers; those of one character are ignored.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        rests: defaultdict[str, list[str]] = defaultdict(list)
        for marker in sorted({marker for marker in markers if len(marker) > 1}, key=len, reverse=True):
            rests[marker[0]].append(re.escape(marker[1:]))
        # Each match is one character, so that markers that overlap are all found.
        found = (f"{re.escape(first)}(?=({'|'.join(others)}))" for first, others in rests.items())
        self._pattern = re.compile("|".join(found)) if rests else None

    def find(self, messages: Sequence[Mapping[str, Any]], roles: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield role and marker of each message with one of these roles that holds a whole marker: the first one."""
        if self._pattern is None:
            return
        for message in messages:
            if message.get("role") in roles:
                found = next(filter(None, map(self._pattern.search, _texts(message.get("content")))), None)
                if found is not None:
                    yield str(message["role"]), found.group() + str(found[found.lastindex or 0])

    def neutralized(self, messages: Sequence[Mapping[str, Any]], roles: Collection[str]) -> list[dict[str, Any]]:
        """Return the messages, with the markers broken in those that have one of these roles."""
        return [
            {**message, "content": self._broken(message["content"])}
            if message.get("role") in roles and "content" in message
            else dict(message)
            for message in messages
        ]

    def _broken(self, value: Any) -> Any:
        """Return a value with all markers in its texts broken, keys included."""
        if isinstance(value, str):
            return value if self._pattern is None else self._pattern.sub(rf"\g<0>{_BREAK}", value)
        if isinstance(value, Mapping):
            return {self._broken(key): self._broken(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._broken(item) for item in value]
        return value


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts of a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
