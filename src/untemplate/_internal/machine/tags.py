"""Kinds of literals inside a call and inside a message header.

The readers use this module as a whole: ``tags.CALL_CLOSE``. mypyc replaces each name by its value.
"""

from __future__ import annotations

from typing import Final

# Around calls.
SECTION_OPEN: Final = 14
SECTION_CLOSE: Final = 0
LIST_OPEN: Final = 1
LIST_CLOSE: Final = 2
CALL_OPEN: Final = 3
CALL_CLOSE: Final = 4
SEPARATOR: Final = 6
TURN_END: Final = 15

# The name and the id.
NAME_OPEN: Final = 5
NAME_CLOSE: Final = 7
ID_OPEN: Final = 8
EMPTY_CLOSE: Final = 22
"""Ends a name and its call: there are no arguments."""

# The arguments.
ARGUMENTS_CLOSE: Final = 9
KEY_OPEN: Final = 10
"""Begins an argument, or all of them."""
KEY_CLOSE: Final = 11
TYPE_OPEN: Final = 23
VALUE_OPEN: Final = 12
VALUE_CLOSE: Final = 13
VALUE_STEM: Final = 20
"""The beginning of a value's close, such as ``</parameter``, which a misspelled close has too."""
ELEMENT_CLOSE: Final = 21
"""The text before the name of an element that ends."""
OTHER_OPEN: Final = 24
OTHER_CLOSE: Final = 25
"""A tag that models write in place of a value's close: that of a key, or one that is named after the argument. It is
not one if the value has opened it."""

# A message header.
HEADER_OPEN: Final = 16
HEADER_PART: Final = 17
HEADER_CLOSE: Final = 18
HEADER_BODY: Final = 19

OPENERS: Final = (CALL_OPEN, SECTION_OPEN, NAME_OPEN)
"""Kinds of literals that begin a call."""
CLOSES: Final = (ARGUMENTS_CLOSE, CALL_CLOSE, SECTION_CLOSE)
"""The closes around a value, innermost first."""
