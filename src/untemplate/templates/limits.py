"""The limits of a template: generous to every chat template in use, final for the others. ``meter.py`` applies them."""

from __future__ import annotations

from typing import Final

TIME_LIMIT: Final = 1.0
"""Seconds that one rendering may take, and ``TIME_PER`` more per character of input."""
TIME_PER: Final = 5e-6
"""Some templates go through the whole conversation for every message."""
COMPILE_LIMIT: Final = 0.4
"""Seconds that reading a template, and then translating it, may take each. Those in use take some 0.02."""
MAX_SOURCE: Final = 250_000
"""Characters of a template. The longest in use have some 17 000."""
MAX_TOKENS: Final = 12_000
"""Tokens of a template, as Jinja's lexer counts. The longest in use have some 2500."""
STEPS: Final = 5_000_000
"""Expressions and statements that one rendering may evaluate, and ``STEPS_PER`` more per character of input."""
STEPS_PER: Final = 50
SIZE: Final = 2_000_000
"""Characters that one value, or the prompt, may have, and ``SIZE_PER`` more per character of input."""
SIZE_PER: Final = 8
TOTAL: Final = 64
"""All values made by one rendering together, in multiples of the size that one may have."""
ELEMENT: Final = 8
PIECE: Final = 64
"""What an element of a list of new strings counts as."""
WIDTH: Final = 4096
"""The widest column, deepest indentation or longest number that a template may ask for."""
BITS: Final = 20_000
"""Bits of an integer."""
LONG: Final = 5000
"""From this length on, a value that is only looked at asks for the time."""
INDENT: Final = 64
"""The deepest step of indentation in JSON."""
