"""A grammar for one request, and how servers are asked to decode under it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..errors import GrammarError
from ._triggers import Trigger

__all__ = ["SERVERS", "Dialect", "Grammar"]

Dialect = Literal["gbnf", "lark", "structural_tag"]

SERVERS: Final[dict[str, tuple[Dialect, ...]]] = {
    "llama.cpp": ("gbnf", "lark"),
    "vllm": ("structural_tag", "lark"),
    "sglang": ("structural_tag", "lark"),
}
"""The dialects that each server takes."""
_TRIGGERS: Final = {"token": 0, "word": 1, "pattern": 3}
"""llama.cpp's numbers for kinds of triggers: its 2 is a pattern anywhere, its 3 one that the whole output matches."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar for one request."""

    dialect: Dialect
    text: str
    """The grammar; a structural tag as JSON text."""
    lazy: bool = False
    """True if it constrains only from the first trigger. Otherwise it describes the whole output."""
    triggers: tuple[Trigger, ...] = ()
    preserved_tokens: tuple[str, ...] = ()
    """Special tokens that must have text in the output."""
    by_id: bool = False
    """True if special tokens are named by id. Otherwise they are text, which ordinary tokens may spell as well: a
    parser that is given token ids should then take spelled markers for markers
    (``Policy(spelled_markers="marker")``)."""
    notes: tuple[str, ...] = ()
    """Keywords of the request that are not enforced, and other remarks."""
    json: Any = field(default=None, compare=False)
    """The structural tag as a value; ``None`` for the other dialects."""

    def request(self, server: str) -> dict[str, Any]:
        """The fields that a request to ``server`` needs: ``"llama.cpp"`` (``/completion``, or ``/v1/completions``),
        ``"vllm"`` or ``"sglang"`` (``/v1/completions``, ``/v1/chat/completions``).

        Raises:
            GrammarError: the server is not known, or does not take this dialect.
        """
        takes = SERVERS.get(server)
        if takes is None:
            raise GrammarError(f"server {server!r} is not one of: {', '.join(map(repr, SERVERS))}")
        if self.dialect not in takes:
            raise GrammarError(f"{server} does not take {self.dialect!r}, but: {', '.join(map(repr, takes))}")
        if server == "llama.cpp":
            fields: dict[str, Any] = {"grammar": self.text, "preserved_tokens": list(self.preserved_tokens)}
            if self.lazy:
                fields["grammar_lazy"] = True
                fields["grammar_triggers"] = [
                    {"type": _TRIGGERS[t.type], "value": t.value, **({} if t.id is None else {"token": t.id})}
                    for t in self.triggers
                ]
            return fields
        if server == "vllm":
            word = "grammar" if self.dialect == "lark" else "structural_tag"
            return {"structured_outputs": {word: self.text}}
        return {"ebnf": self.text} if self.dialect == "lark" else {"response_format": self.json}
