"""Convert vectors to fixtures of canitoolcall, and its fixtures to vectors.

    python -m untemplate.integrations.canitoolcall export --format hermes --model Qwen/Qwen3-0.6B > hermes.jsonl
    python -m untemplate.integrations.canitoolcall import --format hermes+qwen3 --to FOLDER fixtures.jsonl
    untemplate conform --vectors FOLDER

* A fixture, in version 0.1 of their form, has no statuses, rules and tokens. Vectors that need them are left out: calls
  that are not whole, and vectors of the level ``ids``. Nor are there fixtures without tools.
* A fixture that expects an error becomes no vector: a parser returns a message for every output.
* Licence and source of a fixture stay with its vector. Its token ids are left out, as their texts are not known.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .._internal.output_parser import OutputParser

__all__ = ["fixture_of", "vector_of"]

_SOURCE: Final = "https://github.com/untemplate/untemplate"
_LEVELS: Final = {"truncated": "cut", "malformed": "slipped", "marker-in-arguments": "quoted"}
"""Tags of fixtures → levels of vectors. Any other fixture is clean."""


def fixture_of(vector: Mapping[str, Any], model: str, version: str) -> dict[str, Any] | None:
    """Return a vector as a fixture, or None if a fixture cannot have its meaning.

    Args:
        vector: as in ``vectors.jsonl``, with its list of tools.
        model: id on the hub of a model that writes the format.
        version: of the vectors.
    """
    expect = vector["expect"]
    whole = all(call["status"] == "ok" for call in expect["tool_calls"])
    if not whole or not vector["tools"] or "tokens" in vector or "policy" in vector:
        return None
    family = re.sub(r"[^a-z0-9.-]", "-", vector["format"].lower())
    calls = [{"name": call["name"], "arguments": json.loads(call["arguments"])} for call in expect["tool_calls"]]
    fixture = {
        "id": f"{family}/{vector['id'].partition('/')[2].lower()}",
        "family": family,
        "models": [model],
        "spec_version": "0.1",
        "provenance": {"kind": "spec_example", "source_url": _SOURCE, "revision": version, "license": "CC0-1.0"},
        "tools": vector["tools"],
        "raw_output": vector["output"],
        "expected": {
            "content": expect["content"] or None,
            "reasoning_content": expect["reasoning"] or None,
            "tool_calls": calls,
        },
        "tags": list(_tags(vector)),
        "notes": f"{vector['why']} Rules: {', '.join(vector['rules'])}.",
    }
    return fixture if vector["prompt"] is None else {**fixture, "generation_prompt": vector["prompt"]}


def _tags(vector: Mapping[str, Any]) -> Iterator[str]:
    expect = vector["expect"]
    yield ("no-call", "single-call", "parallel-calls")[min(len(expect["tool_calls"]), 2)]
    if expect["reasoning"]:
        yield "reasoning"
    if expect["content"] and expect["tool_calls"]:
        yield "text-before-call" if vector["output"].startswith(expect["content"]) else "x-text"
    if vector["level"] in ("cut", "slipped"):
        yield {"cut": "truncated", "slipped": "malformed"}[vector["level"]]
    yield f"x-{vector['level']}"


def vector_of(fixture: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return a fixture as a vector of the format ``name``, or None if it expects an error."""
    if "expected" not in fixture:
        return None
    expected, provenance = fixture["expected"], fixture["provenance"]
    calls = [
        {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False), "status": "ok"}
        for call in expected.get("tool_calls") or ()
    ]
    level = next((_LEVELS[tag] for tag in fixture["tags"] if tag in _LEVELS), "clean")
    return {
        "id": f"{name}/canitoolcall.{fixture['id'].partition('/')[2]}",
        "format": name,
        "level": level,
        "rules": [],
        "tools": fixture["tools"],
        "prompt": fixture.get("generation_prompt"),
        "finish_reason": "length" if level == "cut" else "stop",
        "output": fixture["raw_output"],
        "expect": {
            "reasoning": expected.get("reasoning_content") or "",
            "content": expected.get("content") or "",
            "tool_calls": calls,
        },
        "why": fixture.get("notes") or "A fixture of canitoolcall.",
        "found": f"{provenance['source_url']} ({provenance['license']})",
    }


def _import(fixtures: Iterable[Mapping[str, Any]], name: str, folder: Path) -> int:
    """Write the files that ``untemplate conform --vectors`` reads. Return the number of vectors."""
    vectors = [vector for one in fixtures if (vector := vector_of(one, name)) is not None]
    tools = {vector["id"]: vector["tools"] for vector in vectors if vector["tools"]}
    written = [{**vector, "tools": vector["id"] if vector["tools"] else []} for vector in vectors]
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(vector, ensure_ascii=False) + "\n" for vector in written)
    form = json.loads(OutputParser.named(name).format.to_json())
    (folder / "vectors.jsonl").write_text(lines, "utf-8")
    (folder / "tools.json").write_text(json.dumps(tools, ensure_ascii=False), "utf-8")
    (folder / "formats.json").write_text(json.dumps({name: form}, ensure_ascii=False), "utf-8")
    (folder / "manifest.json").write_text(json.dumps({"version": "canitoolcall", "known": []}), "utf-8")
    return len(vectors)


def main(argv: list[str] | None = None) -> int:
    arguments = argparse.ArgumentParser(description="Convert vectors to fixtures of canitoolcall, and back.")
    commands = arguments.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="print the vectors of a format as fixtures")
    export.add_argument("--model", required=True, help="id on the hub of a model that writes the format")
    imported = commands.add_parser("import", help="write fixtures as a folder for untemplate conform --vectors")
    imported.add_argument("files", nargs="+", type=Path, metavar="FILE", help="fixtures, one a line")
    imported.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="folder to write")
    for command in (export, imported):
        command.add_argument("--format", required=True, metavar="NAME", help="the format")
    given = arguments.parse_args(argv)
    if given.command == "import":
        fixtures = [json.loads(line) for file in given.files for line in file.read_text("utf-8").split("\n") if line]
        print(f"{_import(fixtures, given.format, given.to)} of {len(fixtures)} fixtures")
        return 0
    from untemplate_vectors import manifest, vectors

    for vector in vectors():
        fixture = fixture_of(vector, given.model, manifest()["version"]) if vector["format"] == given.format else None
        if fixture is not None:
            print(json.dumps(fixture, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
