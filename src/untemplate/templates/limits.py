"""The limits of a template: generous to every chat template in use, final for the others. ``meter.py`` applies them."""

from __future__ import annotations

from typing import Final

TIME_LIMIT: Final = 1.0
"""Seconds that one rendering may take."""
MAX_SOURCE: Final = 400_000
"""Characters of a template. The longest in use have some 30 000."""
MAX_TOKENS: Final = 60_000
"""Tokens of a template, as Jinja's lexer counts. The longest in use have some 5000."""
STEPS: Final = 5_000_000
"""Expressions and statements that one rendering may evaluate, and ``STEPS_PER`` more per character of input."""
STEPS_PER: Final = 50
SIZE: Final = 4_000_000
"""Characters that one value, or the prompt, may have, and ``SIZE_PER`` more per character of input."""
SIZE_PER: Final = 8
TOTAL: Final = 32
"""All values made by one rendering together, in multiples of the size that one may have."""
ELEMENT: Final = 8
PIECE: Final = 64
"""What an element of a list of new strings counts as."""
WIDTH: Final = 4096
"""The widest column, deepest indentation or longest number that a template may ask for."""
BITS: Final = 20_000
"""Bits of an integer."""
