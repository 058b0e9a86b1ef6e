"""Limits on the work that one grammar may take and on what it may hold.

Schemas come with requests. Some small schemas describe very large grammars, and engines need a time that grows with
the square of the alternatives they are offered. Every walk over a schema spends steps from one :class:`Budget` per
grammar; beyond a limit a :class:`GrammarError` names the tool and the keyword.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ..errors import GrammarError
from ._places import at, whose

__all__ = [
    "MAX_ALTERNATIVES",
    "MAX_CHARACTERS",
    "MAX_DEPTH",
    "MAX_RULES",
    "MAX_STEPS",
    "STEP_CHARACTERS",
    "Budget",
    "check_size",
]

MAX_STEPS: Final = 100_000
"""Most schemas and keywords visited for one grammar. A request with 64 tools of 30 parameters takes about 10,000."""
STEP_CHARACTERS: Final = 16
"""Characters of names and values that count as a step."""
MAX_DEPTH: Final = 96
"""Deepest nesting of schemas."""
MAX_ALTERNATIVES: Final = 5_000
"""Most tools, properties, values of ``enum`` and ``const`` and alternatives of ``anyOf`` and ``oneOf``, together.
llama.cpp takes 1.3 s for the first token of an ``enum`` with 5,000 values and 5.3 s with 10,000."""
MAX_RULES: Final = 20_000
"""Most rules that a grammar may hold."""
MAX_CHARACTERS: Final = 500_000
"""Most characters of a grammar's text."""


@final
class Budget:
    """The steps and alternatives that one grammar has used."""

    def __init__(self) -> None:
        self.tool: str = ""
        """The tool that the last step was spent on."""
        self.steps: int = 0
        self.alternatives: int = 0

    def step(self, count: int, tool: str, path: str, keyword: str) -> None:
        """Spend ``count`` steps on ``keyword``.

        Raises:
            GrammarError: the grammar takes more than :data:`MAX_STEPS`.
        """
        self.tool = tool
        self.steps += count
        if self.steps > MAX_STEPS:
            raise GrammarError(
                f"{whose(tool)}{at(path)}: {keyword!r} makes the schema too complex "
                f"(a grammar may take {MAX_STEPS:,} steps)"
            )

    def offer(self, count: int, tool: str, path: str, keyword: str) -> None:
        """Add ``count`` alternatives.

        Raises:
            GrammarError: the grammar holds more than :data:`MAX_ALTERNATIVES`.
        """
        self.alternatives += count
        if self.alternatives > MAX_ALTERNATIVES:
            raise GrammarError(
                f"{whose(tool)}{at(path)}: {keyword!r} makes the grammar too large "
                f"(it may hold {MAX_ALTERNATIVES:,} tools, properties, values and alternatives)"
            )


def check_size(text: str, schemas: Mapping[str, str]) -> None:
    """Check the size of a finished grammar. ``schemas``: name → JSON text of the schemas in it, for the message.

    Raises:
        GrammarError: it is larger than :data:`MAX_CHARACTERS` or has more than :data:`MAX_RULES` rules.
    """
    for count, most, what in (
        (len(text), MAX_CHARACTERS, "characters"),
        (text.count("\n"), MAX_RULES, "rules"),
    ):
        if count > most:
            largest = max(schemas, key=lambda name: len(schemas[name]), default="")
            raise GrammarError(
                f"the grammar has {count:,} {what}, more than {most:,}; the largest schema is that of {whose(largest)}"
            )
