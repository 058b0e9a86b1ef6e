"""Renders a message as the assistant turn that a Format's models write, and reports which messages they cannot write.

>>> from untemplate.formats import named
>>> render(named("kimi_k2"), {"reasoning": "Greet.", "content": "Hi."})
'<think>Greet.</think>Hi.'
>>> str(expressible(named("hermes"), {"reasoning": "Greet.", "content": "Hi."}))
'no_reasoning'
"""

from .expressible import expressible
from .reasons import REASONS, Inexpressible
from .turn import render

__all__ = ["REASONS", "Inexpressible", "expressible", "render"]
