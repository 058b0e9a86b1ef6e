"""What argument writers share.

Rules of this module:

* ``step(cursor, out)`` reads from the cursor as far as the text decides, puts JSON text, and answers.
* After DONE or NO_MATCH the cursor stands at the first character that is not the value's.
* A writer looks at each character once; what it keeps is bounded or handed on.
* ``passes(text, out)`` is the short way for text inside a long string: if nothing in it has to be looked at, it is put
  and the answer is True; else nothing has happened.
"""

from __future__ import annotations

from typing import final


class ArgumentWriter:
    """Takes JSON text."""

    def put(self, text: str) -> None: ...


@final
class BufferedWriter(ArgumentWriter):
    """Keeps what is put, if it is not more than ``limit`` characters."""

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.parts: list[str] = []
        self.size: int = 0

    @property
    def overflown(self) -> bool:
        """Whether it was more, and has not been kept."""
        return self.size > self.limit

    def put(self, text: str) -> None:
        self.size += len(text)
        if self.size > self.limit:
            self.parts = []
        else:
            self.parts.append(text)

    def take(self) -> str:
        text = "".join(self.parts)
        self.parts = []
        self.size = 0
        return text
