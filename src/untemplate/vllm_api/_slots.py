"""The state of one call in a ParserEngine, and ids of calls.

A slot belongs to a possible call from its opener on, even if it turns out not to be a call.
"""

from __future__ import annotations

from .._internal.machine.ids import new_id, new_seed
from ._config_arguments import ArgumentReader

__all__ = ["ToolCallSlot", "make_tool_call_id"]

_PATTERNS = {"kimi_k2": "functions.{name}:{index}"}


def make_tool_call_id(id_type: str = "random", func_name: str | None = None, idx: int | None = None) -> str:
    """Return a new id for a call.

    Args:
        id_type: ``random`` (``call_`` and 24 hex digits), ``alphanumeric9`` (Mistral), ``kimi_k2``
            (``functions.name:index``), or a pattern of your own that holds ``{name}`` or ``{index}``.
        func_name, idx: the tool, and the call's number, counted from the beginning of the history; for patterns.

    Raises:
        ValueError: an unknown id type.
    """
    index = 0 if idx is None else idx
    pattern = _PATTERNS.get(id_type, id_type)
    if id_type in ("random", "alphanumeric9") or "{name}" in pattern or "{index}" in pattern:
        return new_id(pattern, new_seed(), func_name or "", index)
    raise ValueError(
        f"id_type: {id_type!r} is not one of: 'random', 'alphanumeric9', 'kimi_k2', or a pattern with {{name}} or "
        "{index}"
    )


class ToolCallSlot:
    """One call of a stream.

    Attributes:
        id, name: as far as they are known.
        name_sent: True once the call has committed: its first delta has been made.
        index: its number among the calls that have committed; until it has, its number among all slots.
        string_keys: arguments that must be strings (``None``: all that are written as strings).
        streamed_json: the converted arguments that were sent so far.
        ended: True if nothing more can come. closed: True if its own end ended it. cut: the end of the output did.
        rejected: True if its name is not that of an offered tool.
        reader: reads arguments if there is no converter, or finds the name in them.
    """

    __slots__ = (
        "_parts",
        "closed",
        "cut",
        "ended",
        "id",
        "index",
        "name",
        "name_sent",
        "reader",
        "rejected",
        "streamed_json",
        "string_keys",
    )

    def __init__(self) -> None:
        self.id: str = ""
        self.name: str = ""
        self.name_sent: bool = False
        self.index: int = -1
        self.string_keys: set[str] | None = None
        self.streamed_json: str = ""
        self.ended: bool = False
        self.closed: bool = False
        self.cut: bool = False
        self.rejected: bool = False
        self.reader: ArgumentReader | None = None
        self._parts: list[str] = []

    @property
    def args(self) -> str:
        """The raw arguments so far, while they are needed: for a converter, or until the name is known."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def append_args(self, value: str) -> None:
        """Add to the raw arguments."""
        self._parts.append(value)

    def clear_args(self) -> None:
        """Release the raw arguments."""
        self._parts = []
