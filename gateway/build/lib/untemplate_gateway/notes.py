"""Remarks on a request: fields that have no effect here, and fields that are applied in an unusual way.

The response carries them in the header ``X-Untemplate-Notes`` and, where diagnostics are asked for, in its body. The
log has each one once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .errors import unsupported

_MOST: Final = 16
_NEUTRAL: Final[tuple[Any, ...]] = (None, False, "", [], {})


class Notes(msgspec.Struct, kw_only=True):
    """The remarks on one request."""

    refuse_unknown: bool = True
    """True if fields that the gateway does not know are errors."""
    texts: list[str] = []
    names: Mapping[str, str] = {}
    """Field of a `Generation` → the client's name of it, where they differ."""

    def add(self, text: str) -> None:
        """Add a remark; the first 16 are kept."""
        if len(self.texts) < _MOST and text not in self.texts:
            self.texts.append(text)

    def ignored(self, path: str, why: str) -> None:
        """Note that a field has no effect."""
        self.add(f"{self.names.get(path, path)}: {why}; ignored")

    def unknown(self, path: str, value: Any) -> None:
        """Note a field that the gateway does not know.

        Raises:
            ApiError: such fields are refused, and the value is not a neutral one such as ``false`` or ``[]``.
        """
        if value is False or (value in _NEUTRAL and value != 0):
            return
        if self.refuse_unknown:
            raise unsupported(path)
        self.add(f"{path}: unknown field; ignored")

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the response header with all remarks; no header without remarks."""
        if not self.texts:
            return []
        text = " | ".join(self.texts)
        shown = text.encode("ascii", "backslashreplace")
        return [(b"x-untemplate-notes", bytes(c if 32 <= c < 127 else 63 for c in shown))]
