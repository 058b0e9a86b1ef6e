"""Parse 1,000 pieces of text about tool calls with every format that has calls, and compare the calls with the list.

usage: python -m tests.phantom.run [--show] [FORMAT …]

The pieces are in ``tests/data/phantom``; nobody called a tool in them. ``calls.json`` there lists each piece that is,
character for character, what a model writes to call, with the reason. A call that is not listed is a phantom call.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from untemplate import OutputParser
from untemplate.formats import entries

DATA: Final = Path(__file__).parents[1] / "data" / "phantom"
LISTED: Final = DATA / "calls.json"


def _tool(name: str, *required: str, **types: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS: Final = [
    _tool("get_weather", "city", city="string", unit="string"),
    _tool("search", "query", query="string"),
    _tool("add", "a", "b", a="number", b="number"),
    _tool("send_email", "to", to="string", subject="string", body="string"),
    _tool("read_file", "path", path="string"),
    _tool("run_command", "command", command="string"),
]


def pieces() -> dict[str, str]:
    """Return the pieces by name: the file, and the number in the file."""
    found: dict[str, str] = {}
    for path in sorted(DATA.glob("*.txt")):
        for i, piece in enumerate(path.read_text("utf-8").split("\n%%\n"), 1):
            found[f"{path.stem}:{i}"] = piece.removesuffix("\n")
    return found


def formats() -> list[str]:
    """Return the names of the formats with calls, reasoning included where the name has both."""
    return [entry.name for entry in entries() if entry.kind == "tool" and entry.name != "passthrough"]


def calls(parser: OutputParser, text: str) -> list[tuple[str, str, str]]:
    """Return name, arguments and status of each call."""
    found = parser.parse(text, tools=TOOLS).tool_calls
    return [(call.function.name, call.function.arguments, call.status) for call in found]


def found_calls(names: Sequence[str]) -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Yield (format, piece, calls) wherever there are calls."""
    texts = pieces()
    for name in names:
        parser = OutputParser.named(name)
        for piece, text in texts.items():
            made = calls(parser, text)
            if made:
                yield name, piece, made


def listed() -> set[tuple[str, str]]:
    """Return (format, piece) of the listed calls."""
    reasons: dict[str, dict[str, list[str]]] = json.loads(LISTED.read_text("utf-8"))
    return {(name, piece) for group in reasons.values() for piece, names in group.items() for name in names}


def main() -> int:
    arguments = argparse.ArgumentParser(description="Look for phantom calls in text about tool calls.")
    arguments.add_argument("formats", nargs="*", metavar="FORMAT", help="formats to check (default: all)")
    arguments.add_argument("--show", action="store_true", help="print each call that is not listed")
    given = arguments.parse_args()
    names = given.formats or formats()
    allowed = listed()
    phantom: Counter[str] = Counter()
    made = 0
    texts = pieces()
    for name, piece, found in found_calls(names):
        if (name, piece) in allowed:
            made += 1
            continue
        phantom[name] += 1
        if given.show:
            print(f"{name} {piece}: {found}\n    {texts[piece]!r}")
    print(f"{len(texts)} pieces, {len(names)} formats: {made} listed calls, {sum(phantom.values())} phantom calls")
    for name, count in phantom.most_common():
        print(f"  {name}: {count}")
    return 1 if phantom else 0


if __name__ == "__main__":
    sys.exit(main())
