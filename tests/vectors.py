"""Build the data of ``untemplate-vectors``: renderings of our own messages in every format, what can be made of them
(``vectors_more``), the cases of ``vectors/cases``, and what is written by hand. ``python -m tests.vectors`` writes the
files, and the lines of the specification that name vectors; `tests/test_conform.py` fails if they are not up to date.

The message of a rendering is the one that it was rendered from, so the expectation does not depend on the parser. A cut
rendering means the beginning of that message: text as far as it came, and a call that is not whole.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import vectors_rules as rules
from tests.vectors_decided import decided
from tests.vectors_hand import FORMATS, vectors_by_hand
from tests.vectors_more import Family, deep_argument, vectors_of
from untemplate import OutputParser, formats
from untemplate._internal.conform import Outcome, own_parser, run
from untemplate.format import Format
from untemplate.formats import IncompatibleFormatsError

ROOT = Path(__file__).parents[1]
DATA = ROOT / "vectors/src/untemplate_vectors/data"
CODES = ROOT / "tests/data/vector_diagnostics.json"
"""The diagnostics of each vector that has some. ``--diagnostics`` writes what untemplate reports; read what changed."""
CASES = ROOT / "vectors/cases"
VERSION = "3"
DISPUTED: dict[str, str] = {}
"""Vectors that parsers may read differently, with the reason. They count for nobody."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "deep": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "options": {"type": "object", "properties": {"mode": {"type": "string"}}},
                },
            },
        },
    }
    for name in ("write_file", "list_files")
]
CODE = 'def f(x):\n    if x < 3 and x > 1:\n        print("hi", \'there\')\n    return {"a": [1]}'
ONE = ("write_file", {"path": "notes/a.txt", "text": "Hello, world."})
TWO = ("list_files", {"path": "notes", "deep": True})
SAID = "Here is the plan:\n\n1. Write.\n2. Look."
THOUGHT = "The user wants a file.\n\nI write it."
MESSAGES: dict[str, tuple[str, str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "content": ("", SAID, ()),
    "content-with-code": ("", f"Run `ls` first:\n\n```python\n{CODE}\n```\n\nThen a < b && c > d.", ()),
    "unicode": ("", "naïve — 你好 🎉 {x} [1] <b>bold</b>", ()),
    "reasoning": (THOUGHT, SAID, ()),
    "call": ("", "", (ONE,)),
    "content-and-call": ("", "I write it.", (ONE,)),
    "reasoning-and-call": (THOUGHT, "", (ONE,)),
    "all-parts": (THOUGHT, "I write it.", (ONE,)),
    "two-calls": ("", "", (ONE, TWO)),
    "three-calls": ("", "", (ONE, TWO, ("write_file", {"path": "b", "text": "two\nlines"}))),
    "no-arguments": ("", "", (("list_files", {}),)),
    "types": ("", "", (("list_files", {"count": 42, "deep": False, "tags": ["a", "b"], "options": {"mode": "x"}}),)),
    "code-in-an-argument": ("", "", (("write_file", {"path": "f.py", "text": CODE}),)),
    "quotes-in-an-argument": (
        "",
        "",
        (("write_file", {"path": "q", "text": "say \"hi\" and it's Anna's \\ C:\\new"}),),
    ),
    "like-other-types": ("", "", (("write_file", {"path": "0042", "text": "true"}),)),
    "empty-string": ("", "", (("write_file", {"path": "e", "text": ""}),)),
    "nested": ("", "", (("list_files", {"options": {"mode": "a", "more": {"x": [1, {"y": None}]}}}),)),
    "lists-in-content": ("", "* one\n* two\n  * three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted", ()),
    "json-in-an-argument": ("", "", (("write_file", {"path": "j", "text": '{"a": [1, 2], "b": {"c": null}}'}),)),
    "unicode-argument": ("", "", (("write_file", {"path": "你好", "text": "naïve — 🎉\ttab"}),)),
    "false-and-zero": ("", "", (("list_files", {"count": 0, "deep": False, "tags": []}),)),
    "five-calls": ("", "", (ONE, TWO, ONE, TWO, ONE)),
    "json-in-content": ("", 'The answer is {"a": [1, 2]}, as JSON.', ()),
    "two-calls-after-everything": (THOUGHT, "First, then second.", (ONE, TWO)),
    "unknown-tool": ("", "", (("delete_file", {"path": "a"}),)),
    "wrong-type": ("", "", (("list_files", {"count": "a dozen"}),)),
    "deep-argument": ("", "", (("list_files", deep_argument()),)),
    "long-argument": ("", "", (("write_file", {"path": "l", "text": "A line of text.\n" * 40}),)),
}
DERIVED = ("unknown-tool", "wrong-type", "deep-argument")
"""Messages that only other vectors are made from."""


def build() -> list[dict[str, Any]]:
    """Return all vectors, sorted by id."""
    found = [*_rendered(), *_corpus(), *vectors_by_hand(), *decided()]
    codes = json.loads(CODES.read_text("utf-8"))
    return sorted((_whole(vector, codes) for vector in found), key=lambda vector: str(vector["id"]))


def _whole(vector: dict[str, Any], codes: dict[str, list[str]]) -> dict[str, Any]:
    """Return a vector with all its keys, in order. ``codes``: the diagnostics of each that has some."""
    usual = {"tools": TOOLS, "prompt": None, "finish_reason": "stop", "found": "untemplate"}
    every = {**usual, **vector, "diagnostics": codes.get(vector["id"], [])}
    if vector["id"] in DISPUTED:
        every["policy"] = DISPUTED[vector["id"]]
    context = ("id", "format", "level", "rules", "tools", "prompt", "finish_reason", "output", "tokens")
    return {key: every[key] for key in (*context, "expect", "diagnostics", "why", "policy", "found") if key in every}


def diagnostics_of(vectors: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the codes that untemplate reports of each vector, if it reports some."""
    requests = [
        {**{key: one.get(key) for key in ("id", "format", "tools", "prompt", "finish_reason")},
         "pieces": [one["output"]], **({"tokens": [one["tokens"]]} if "tokens" in one else {})}
        for one in vectors
    ]  # fmt: skip
    answers = own_parser(definitions_of(vectors))(iter(requests))
    found = {answer["id"]: sorted(set(answer["diagnostics"])) for answer in answers}
    return {name: codes for name, codes in sorted(found.items()) if codes}


def _names() -> list[str]:
    """Return the canonical names of the catalogue; one for formats that are equal."""
    distinct: dict[Any, str] = {}
    for name in sorted({entry.name for entry in formats.entries()}):
        distinct.setdefault(OutputParser.named(name).format, name)
    return sorted(distinct.values())


def _rendered() -> Iterator[dict[str, Any]]:
    for name in _names():
        parser = OutputParser.named(name)
        ids = parser.format.ids
        family = Family(name, parser, {kind: _message(*parts, ids) for kind, parts in MESSAGES.items()})
        nested = family.output("call")
        if nested is not None:
            family.add(
                "own-call-in-an-argument", _message("", "", (("write_file", {"path": "c", "text": nested}),), ids)
            )
        for kind, (reasoning, content, _) in MESSAGES.items():
            output = None if kind in DERIVED else family.output(kind)
            if output is None:
                continue
            expect = family.expect(kind)
            shown = tuple(rules.of_rendering(kind, expect, family.form))
            yield family.vector(
                kind, "clean", output, expect, shown, "What the format's models write for this message."
            )
            if kind == "content-and-call":
                yield from _quotation(family, output)
            if kind in ("content", "reasoning"):
                yield from _cuts(family, output, reasoning, content)
        yield from vectors_of(family)


def _id(ids: str, name: str, index: int) -> str:
    """Return the id of a call, as a format makes it."""
    if "{" in ids:
        return ids.format(name=name, index=index)
    return f"c{index:08d}" if ids == "alphanumeric9" else f"call_{index:024d}"


def _message(reasoning: str, content: str, calls: Any, ids: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning:
        message["reasoning"] = reasoning
    if calls:
        message["tool_calls"] = [
            {"id": _id(ids, n, i), "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in enumerate(calls)
        ]
    return message


def _cuts(family: Family, output: str, reasoning: str, content: str) -> Iterator[dict[str, Any]]:
    """Yield an output that ends in the middle of a word: what came of the message is the message."""
    for part, text in (("reasoning", reasoning), ("content", content)):
        if text and output.count(text) == 1:
            size = len(text) - 3
            expect = {"reasoning": reasoning, "content": "", "tool_calls": []} | {part: text[:size]}
            cut = output[: output.index(text) + size]
            why = "An output that ends early means what it has said so far."
            kind = f"{part}-cut" if not reasoning or part == "reasoning" else f"{part}-after-reasoning-cut"
            yield family.vector(kind, "cut", cut, expect, ("K1",), why) | {"finish_reason": "length"}


def _quotation(family: Family, output: str) -> Iterator[dict[str, Any]]:
    """Yield a call in inline code, which is text."""
    before, _, call = output.partition("I write it.")
    call = call.strip()
    turn = family.parser.format.turn
    end = turn.end.text.strip() if turn.end else ""
    call = call.removesuffix(end).strip() if end else call
    if before.strip() or "\n" in call or "`" in call:
        return
    text = f"It writes `{call}` here."
    expect = {"reasoning": "", "content": text, "tool_calls": []}
    yield family.vector("inline-code", "quoted", text, expect, ("Q7",), "A call between two backticks is text.")


def _corpus() -> Iterator[dict[str, Any]]:
    for path in sorted(CASES.glob("*.json")):
        for record in json.loads(path.read_text("utf-8")):
            name = record["format"] + (f"+{record['reasoning']}" if "reasoning" in record else "")
            expect = {key: record["expect"][key] for key in ("reasoning", "content", "tool_calls")}
            cut = record.get("finish_reason") == "length"
            level = "cut" if cut else rules.level_of_corpus(record["id"], _level(expect))
            yield {
                "id": f"{name}/corpus.{record['id']}", "format": name, "level": level,
                "rules": rules.of_corpus(record["id"]), "tools": record.get("tools"), "prompt": record.get("prompt"),
                "finish_reason": "length" if cut else "stop", "output": record["raw"], "expect": expect,
                "why": record["why"],
            }  # fmt: skip


def _level(expect: dict[str, Any]) -> str:
    good = all(call["status"] == "ok" for call in expect["tool_calls"])
    return "clean" if good else "slipped"


def known(vectors: list[dict[str, Any]]) -> list[str]:
    """Return the ids of the vectors that untemplate gets wrong, whole."""
    definitions = definitions_of(vectors)
    logging.getLogger("untemplate").setLevel(logging.ERROR)
    return sorted(r.id for r in run(vectors, own_parser(definitions), splits=0) if r.outcome is not Outcome.RIGHT)


def definitions_of(vectors: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON form of each format that the vectors name."""
    found = {}
    for name in sorted({vector["format"] for vector in vectors}):
        if name in FORMATS:
            own = Format.from_json(json.dumps({"version": 1, "name": name, **FORMATS[name]}))
            found[name] = json.loads(own.to_json(indent=None))
            continue
        try:
            found[name] = json.loads(OutputParser.named(name).format.to_json(indent=None))
        except IncompatibleFormatsError:
            continue
    return found


def with_named_tools(vectors: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the vectors with the names of their lists of tools, and the lists by name: most vectors share a few."""
    named: dict[str, Any] = {}
    written = []
    for vector in vectors:
        tools = vector["tools"]
        if tools:
            base = name = "+".join(tool["function"]["name"] for tool in tools)
            number = 1
            while named.setdefault(name, tools) != tools:
                number += 1
                name = f"{base}.{number}"
            vector = vector | {"tools": name}
        written.append(vector)
    return written, dict(sorted(named.items()))


def files() -> dict[str, str]:
    """Return the content of each file."""
    vectors = build()
    written, tools = with_named_tools(vectors)
    counts = Counter(vector["level"] for vector in vectors)
    shown = rules.shown(vectors)
    manifest = {
        "version": VERSION,
        "vectors": dict(sorted(counts.items())),
        "rules": {rule: len(ids) for rule, ids in shown.items() if ids},
        "known": known(vectors),
    }
    return {
        "vectors.jsonl": "".join(json.dumps(vector, ensure_ascii=False) + "\n" for vector in written),
        "tools.json": json.dumps(tools, ensure_ascii=False, indent=1) + "\n",
        "formats.json": json.dumps(definitions_of(vectors), ensure_ascii=False, indent=1) + "\n",
        "manifest.json": json.dumps(manifest, indent=1) + "\n",
    }


if __name__ == "__main__":
    if "--diagnostics" in sys.argv:
        lines = [f"{json.dumps(one)}: {json.dumps(codes)}" for one, codes in diagnostics_of(build()).items()]
        CODES.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    for name, text in files().items():
        (DATA / name).write_text(text, "utf-8")
        print(f"{DATA / name}: {len(text)} characters")
    shown = rules.shown(rules.load(DATA))
    for page in rules.PAGES:
        page.write_text(rules.with_table(rules.with_vectors(page.read_text("utf-8"), shown), shown), "utf-8")
