"""The status ``ok`` for every Format: arguments that are not a JSON object never have it, whatever the policy."""

from __future__ import annotations

import re

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.render import render
from untemplate.format import Format, LiteralArguments, NamedBody

from .strategies import FORMATS, TOOLS

MESSAGE = {"content": None, "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "MARK"}}}]}
OBJECT = re.compile(r'\{\s*"city"\s*:\s*"MARK"\s*\}')
JSON = {
    name: raw
    for name, fmt in FORMATS.items()
    if fmt.tools or fmt.channels is not None
    for raw in [render(fmt, MESSAGE)]
    if OBJECT.search(raw)
}
LITERAL = {
    name: (body.arguments, render(fmt, MESSAGE))
    for name, fmt in FORMATS.items()
    for body in [way.body for way in fmt.tools[:1]]
    if isinstance(body, NamedBody) and isinstance(body.arguments, LiteralArguments)
}
WORDS = ["4", "[1]", "NaN", "Infinity", "-Infinity", '{"ratio": NaN}', '{"ratio": -Infinity}']
POLICIES = [
    Policy(),
    Policy(repair="syntax"),
    Policy(repair="schema", unknown_tools="drop"),
    Policy(malformed_arguments="repaired"),
    Policy(malformed_arguments="content"),
    Policy(cut_calls="drop", strict=True),
]


def statuses(fmt: Format, raw: str) -> set[str | None]:
    """Return the statuses of the calls of an output under every policy, with and without tools."""
    parsers = [OutputParser.from_format(fmt, policy=policy) for policy in POLICIES]
    found = [parser.parse(raw, tools=tools) for parser in parsers for tools in (None, TOOLS)]
    return {call.status for parsed in found for call in parsed.tool_calls}


@pytest.mark.parametrize("name", JSON)
def test_arguments_that_are_not_an_object_are_not_ok(name: str) -> None:
    assert "ok" in statuses(FORMATS[name], JSON[name])
    for word in WORDS:
        raw = OBJECT.sub(lambda _, word=word: word, JSON[name])  # type: ignore[misc]
        assert not statuses(FORMATS[name], raw) & {"ok", "recovered"}, raw


@pytest.mark.parametrize("name", LITERAL)
def test_words_that_json_does_not_have_are_not_ok(name: str) -> None:
    arguments, rendered = LITERAL[name]
    quote = "|".join(map(re.escape, arguments.quotes))
    quoted = re.compile(f"(?:{quote})MARK(?:{quote})")
    for word in ("NaN", "Infinity", "-Infinity"):
        raw = quoted.sub(word, rendered)
        assert word in raw
        assert "ok" not in statuses(FORMATS[name], raw), raw
