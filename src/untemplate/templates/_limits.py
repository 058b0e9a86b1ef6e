"""Limits of a chat template. Every known one stays far below them. ``_meter.py`` applies them."""

from __future__ import annotations

from typing import Final

TIME_LIMIT: Final = 1.0
"""Seconds that one rendering may take, plus ``TIME_PER`` per character of input."""
TIME_PER: Final = 5e-6
"""Seconds per character of input. Some templates walk the whole conversation for every message."""
COMPILE_LIMIT: Final = 1.0
"""Seconds for reading a template, and again for translating it. Known ones take about 0.02, but in a process with many
objects a garbage collection, which may fall into them, takes several tenths."""
MAX_SOURCE: Final = 250_000
"""Characters of a template. The longest known ones have about 17,000."""
MAX_TOKENS: Final = 12_000
"""Tokens of a template, as Jinja's lexer counts them. The longest known ones have about 2,500."""
STEPS: Final = 5_000_000
"""Expressions and statements that one rendering may evaluate, plus ``STEPS_PER`` per character of input."""
STEPS_PER: Final = 50
"""Expressions and statements per character of input."""
SIZE: Final = 2_000_000
"""Characters of one value, or of the prompt, plus ``SIZE_PER`` per character of input."""
SIZE_PER: Final = 8
"""Characters of one value per character of input."""
TOTAL: Final = 64
"""Size of all values made by one rendering, in multiples of the limit for one value."""
ELEMENT: Final = 8
"""Size, in characters, that one element of a container counts as."""
PIECE: Final = 64
"""Size, in characters, that one element of a list of new strings counts as."""
WIDTH: Final = 4096
"""Largest width of a column, depth of indentation or number of digits that a template may ask for."""
BITS: Final = 20_000
"""Bits of an integer."""
LONG: Final = 5000
"""Length from which on reading a value counts as steps."""
INDENT: Final = 64
"""Largest step of indentation in JSON."""
