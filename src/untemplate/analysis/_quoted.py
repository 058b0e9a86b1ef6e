"""How a Format reads quoted calls, as a certificate reports it. ``_internal/backends/quotations.py`` measures it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

Provable = Literal["yes", "partly", "no"]
"""All, some or none of the openers of calls hold a token that the vocabulary has."""
CONTEXTS: Final = (
    *("prose", "lines of its own", "an unknown XML element", "a fence", "a fence with a language"),
    *("a diff in a fence", "inline code", "double backticks", "a block quote", "a table", "quotation marks"),
    *("a JSON string", "a JSON string without escapes"),
)
"""Contexts of content in which a call is quoted."""


@dataclass(frozen=True, slots=True)
class QuotedCalls:
    """Contexts in which a quoted call is called.

    Attributes:
        provable: can token ids prove the format's calls.
        without_ids: the contexts in which a quotation is called, if the output comes without token ids.
        silent: those of them without any diagnostic.
        with_ids: the same as ``without_ids``, with token ids.
        of_model: True if the tokens are those of the model's tokenizer; False if they are those that the Format lists.
    """

    provable: Provable
    without_ids: tuple[str, ...]
    silent: tuple[str, ...]
    with_ids: tuple[str, ...]
    of_model: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "provable": self.provable,
            "tokens": "model" if self.of_model else "format",
            "contexts": len(CONTEXTS),
            "without_ids": list(self.without_ids),
            "silent": list(self.silent),
            "with_ids": list(self.with_ids),
        }

    def __str__(self) -> str:
        whose = "the model's tokens" if self.of_model else "the tokens of the format's list"
        return (
            f"a call quoted in {len(CONTEXTS)} ways runs in {len(self.without_ids)} of them "
            f"({len(self.silent)} without a report); with its markers' token ids, in {len(self.with_ids)}; "
            f"ids prove its calls: {self.provable} ({whose}); see docs/injected-text.md"
        )
