"""What a reader returns when it cannot return a place in the text: four signals for the whole machine.

* Readers and literals return one ``int``. Places in the text are 0 or more, so every signal is negative, and
  ``result >= 0`` is true for places only.
* The signals are module constants and not members of an enum: mypyc replaces a ``Final`` int by its value, and the
  interpreter reads it with one look-up instead of two.
"""

from __future__ import annotations

from typing import Final

MORE: Final = -1
"""The text that has come ends too early to decide: feed more."""
NO_MATCH: Final = -2
"""The text is not what is looked for: not this literal, not a legal value, not a header, not a call."""
DONE: Final = -3
"""What was being read has ended. The cursor is at the first character after it."""
AGAIN: Final = -4
"""A reader's phase has changed and there may be more to read. It never leaves the reader."""
