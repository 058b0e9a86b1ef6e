"""Bundled outputs of several formats, each with the message that it means.

The demonstration shows them, and the gateway's engine ``replay`` makes up outputs of their formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from ..output_parser import OutputParser

__all__ = ["Example", "examples", "pieces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One bundled output. The fields are the keys of its file; ``expect`` is as in :func:`untemplate.testing.check`."""

    title: str
    format: str
    output: str
    expect: dict[str, Any]
    reasoning: str | None = None
    prompt: str | None = None
    tools: list[Any] | None = None
    finish_reason: str = "stop"

    @property
    def parser(self) -> OutputParser:
        return OutputParser.named(self.format, reasoning=self.reasoning)


def examples() -> list[Example]:
    """Return the bundled outputs, in order."""
    found = sorted((f for f in files(__package__).iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    return [_example(json.loads(f.read_text("utf-8"))) for f in found]


def _example(data: dict[str, Any]) -> Example:
    return Example(**{**data, "output": "".join(data["output"])})


_PIECE: Final = re.compile(r" ?\w{1,6}|\n+|[^\w\n]{1,2}")


def pieces(text: str, special: Iterable[str]) -> list[str]:
    """Cut the text into pieces about as long as tokens; special tokens are one piece each."""
    whole = set(special)
    cuts = re.split(f"({'|'.join(map(re.escape, sorted(whole, key=len, reverse=True)))})", text) if whole else [text]
    return [piece for cut in cuts for piece in ([cut] if cut in whole else _PIECE.findall(cut))]
