"""Signs at the end of a sentence, by what they decide."""

from __future__ import annotations

from typing import Final

BEFORE_MARKER: Final = frozenset(".!?。！？:")
"""After such a sentence, in any language, a marker may begin what is the model's own."""
OF_PROSE: Final = (".", ":", "?", "!")
"""A line that ends so is no command of a shell."""
IN_NAME: Final = (".", "!", "?")
"""A cut name that ends so is prose. A colon is part of names, such as ``functions.f:0``."""
