"""``untemplate.integrations.xinference`` in the real package: ``make test-integrations``."""

from __future__ import annotations

from typing import Any

import pytest

theirs = pytest.importorskip("xinference.model.llm.tool_parsers", reason="needs xinference")

from xinference.model.llm.tool_parsers.abstract_tool_parser import request_tools_var  # noqa: E402

from untemplate._internal.output_parser import OutputParser  # noqa: E402
from untemplate._internal.render import expressible, render  # noqa: E402
from untemplate.formats import lookup  # noqa: E402
from untemplate.integrations.xinference import register  # noqa: E402

from .helper import FLAT, TIME, TOOLS  # noqa: E402

register()
MESSAGES: list[dict[str, Any]] = [
    {"content": "Certainly: a < b, and {c}."},
    {"tool_calls": [FLAT]},
    {"content": "One moment.", "tool_calls": [FLAT, TIME]},
]
NEEDS_MORE = {name for one in ("gpt-oss", "gemma4") for name in (one, *lookup("tool", one).aliases)}
"""A stream gives the last call of these formats with the token that follows it."""
OURS = sorted(name for name in theirs.TOOL_PARSERS if name.startswith("untemplate:"))


@pytest.fixture(autouse=True)
def _tools() -> Any:
    token = request_tools_var.set(TOOLS)
    yield
    request_tools_var.reset(token)


def read(parser: Any, text: str, size: int) -> tuple[str, list[tuple[str, Any]]]:
    """Return the content and the calls of a stream."""
    content, calls, so_far = "", [], ""
    previous = [""]
    for at in range(0, len(text), size):
        delta = text[at : at + size]
        so_far += delta
        for event in parser.extract_tool_calls_streaming(previous, so_far, delta) or ():
            content += event[0] or ""
            calls += [(event[1], event[2])] if event[1] else []
        previous.append(so_far)
    return content, calls


@pytest.mark.parametrize("name", OURS)
def test_every_format_whole_and_streamed(name: str):
    parser = theirs.TOOL_PARSERS[name]()
    fmt = OutputParser.named(name.removeprefix("untemplate:")).format.extend(reasoning=None)
    for message in MESSAGES:
        if expressible(fmt, message) is not None:
            continue
        text = render(fmt, message)
        expected = [(one["function"]["name"], one["function"]["arguments"]) for one in message.get("tool_calls", [])]
        whole = parser.extract_tool_calls(text)
        assert [(name, arguments) for _, name, arguments in whole if name] == expected, text
        assert "".join(content for content, *_ in whole if content) == message.get("content", ""), text
        for size in (1, 7):
            content, calls = read(parser, text, size)
            if len(calls) < len(expected) and name.removeprefix("untemplate:") in NEEDS_MORE:
                content, calls = read(parser, text + fmt.turn.end.text, size)
            assert (content.rstrip(), calls) == (message.get("content", ""), expected), text


def test_a_cut_call_stays_content():
    text = 'So: <tool_call>\n{"name": "find", "arguments": {"q": "te'
    assert theirs.TOOL_PARSERS["untemplate:hermes"]().extract_tool_calls(text) == [(text, None, None)]
