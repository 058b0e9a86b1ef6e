"""The regular expressions of tagged calls: they match what the renderer writes, and find what the readers find."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.laws.strategies import FORMATS
from untemplate import OutputParser
from untemplate._internal.backends import format as format_backend
from untemplate._internal.machine.compiler import compile_format
from untemplate._internal.machine.lexer import Literals
from untemplate._internal.machine.tagged import compiler
from untemplate._internal.machine.tagged.fast import _decided, compile_fast
from untemplate._internal.machine.tagged.program import TaggedSyntax
from untemplate.format import Format, NamedBody, TaggedArguments

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "maybe": {"type": ["string", "null"]}},
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("get", "put")]
CALLS = [
    ("get", '{"city": "Paris", "days": 3, "maybe": "no"}'),
    ("put", '{"city": "two\\nlines\\n", "other": " x ", "a b": ""}'),
    ("get", '{"city": "</parameter> <a> </arg_value>"}'),
]
TAGGED = sorted(
    name
    for name, fmt in FORMATS.items()
    if any(isinstance(way.body, NamedBody) and isinstance(way.body.arguments, TaggedArguments) for way in fmt.tools)
)


def outputs(fmt: Format) -> list[str]:
    calls = [{"type": "function", "function": {"name": name, "arguments": text}} for name, text in CALLS]
    whole = OutputParser(format=fmt).render({"role": "assistant", "content": "Hi.", "tool_calls": calls})
    return [whole, whole + "and text", whole[: len(whole) * 2 // 3], whole.replace("\n", ""), whole.replace(">", ">\n")]


def stream(parser: OutputParser, output: str, size: int, spans: bool) -> list[Any]:
    """Return what comes out after each piece of this size, and the result."""
    found = parser.stream(tools=TOOLS, seed=1, spans=spans, collect=True)
    pieces = [output[i : i + size] for i in range(0, len(output), size)]
    deltas: list[Any] = [found.feed(piece) for piece in pieces]
    return [*deltas, found.finish("stop"), found.result()]


@pytest.mark.parametrize("name", TAGGED)
def test_the_expressions_find_what_the_readers_find(name: str, monkeypatch: pytest.MonkeyPatch):
    fmt = FORMATS[name]
    regular = OutputParser(format=fmt)
    stream(regular, "x", 1, False)
    monkeypatch.setattr(format_backend, "program_of", compile_format)  # without its cache
    monkeypatch.setattr(compiler, "compile_fast", lambda syntax: None)
    stepwise = OutputParser(format=fmt)
    for output in outputs(fmt):
        for size in (1, 5, len(output)):
            for spans in (False, True):
                assert stream(regular, output, size, spans) == stream(stepwise, output, size, spans), (output, size)


def test_every_tagged_format_writes_keys_and_closes_that_match(monkeypatch: pytest.MonkeyPatch):
    compiled: list[TaggedSyntax] = []

    def compile_and_keep(syntax: TaggedSyntax) -> None:
        compile_fast(syntax)
        compiled.append(syntax)

    monkeypatch.setattr(compiler, "compile_fast", compile_and_keep)
    for name in TAGGED:
        compiled.clear()
        output = outputs(FORMATS[name])[0]
        compile_format(FORMATS[name])
        written = [s for s in compiled if s.frame.path == "tools[0]" and s.fast.ends and not s.type_ends.tags]
        for syntax in written[:1]:
            match = syntax.fast.key.search(output)
            assert match is not None, name
            assert match["key"] == "city", name
            assert any(end.search(output) for end in syntax.fast.ends.values()), name


def test_a_literal_that_may_become_a_longer_one_does_not_match():

    expression = re.compile(_decided("</a>", (Literals({"</a>": 0, "</a></a>": 1}),)))
    assert [expression.match(text) is not None for text in ("</a>x", "</a><b>", "</a>\n")] == [True, True, True]
    assert [expression.match(text) for text in ("</a>", "</a><", "</a></a", "</a></a>")] == [None] * 4
