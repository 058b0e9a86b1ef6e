"""Raw outputs of language models and the messages that they mean. ``data/`` holds plain files for any language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["FOLDER", "formats", "manifest", "vectors"]

FOLDER: Final = Path(__file__).parent / "data"
"""The folder with the files."""


def vectors() -> Iterator[dict[str, Any]]:
    """Yield the vectors, sorted by id, each with its list of tools."""
    tools = json.loads((FOLDER / "tools.json").read_text("utf-8"))
    with (FOLDER / "vectors.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            vector = json.loads(line)
            yield {**vector, "tools": tools[vector["tools"]] if vector["tools"] else vector["tools"]}


def formats() -> dict[str, dict[str, Any]]:
    """Return the formats by name, in their JSON form."""
    found: dict[str, dict[str, Any]] = json.loads((FOLDER / "formats.json").read_text("utf-8"))
    return found


def manifest() -> dict[str, Any]:
    """Return version, counts by level, and the ids of the vectors that untemplate gets wrong."""
    found: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text("utf-8"))
    return found
