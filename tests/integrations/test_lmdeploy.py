"""``untemplate.integrations.lmdeploy`` with the parsers of LMDeploy's wheel: ``make test-integrations``.

Its engine needs CUDA, so its packages are not run: only the modules of the parsers and of the protocol are.
"""

from __future__ import annotations

import json
import logging
import sys
from types import ModuleType
from typing import Any

import pytest

from untemplate import OutputParser

from .helper import FLAT, TIME, TOOLS, modules_only, shows

modules_only("lmdeploy", "lmdeploy", "lmdeploy.serve", "lmdeploy.serve.openai")
_utils: Any = ModuleType("lmdeploy.utils")
_utils.get_logger = logging.getLogger
sys.modules.setdefault("lmdeploy.utils", _utils)

from lmdeploy.serve.openai.protocol import ChatCompletionRequest  # noqa: E402
from lmdeploy.serve.parsers import ResponseParserManager  # noqa: E402
from lmdeploy.serve.parsers.tool_parser import ToolParserManager  # noqa: E402

from untemplate.integrations.lmdeploy import register  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:max_tokens is deprecated")
NAMES = register()
MESSAGES: list[dict[str, Any]] = [
    {"content": "Certainly: a < b, and {c}."},
    {"tool_calls": [FLAT]},
    {"content": "One moment.", "tool_calls": [FLAT, TIME]},
]
QUOTED = {"id": "x", "type": "function", "function": {"name": "find", "arguments": {"q": "a</tool_call>b"}}}


def server(name: str, **more: Any) -> Any:
    """Return the response parser of a request, as the server makes it."""
    cls = type("Fresh", (ResponseParserManager.get("default"),), {})
    cls.set_parsers(None, name)
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, **more}
    return cls(ChatCompletionRequest(**asked))


def said(messages: list[Any]) -> tuple[str, list[tuple[str, Any]]]:
    content, calls = "", {}
    for message in messages:
        content += message.content or ""
        for call in message.tool_calls or ():
            one = calls.setdefault(call.index, ["", ""])
            one[0] += call.function.name or ""
            one[1] += call.function.arguments or ""
    return content, [(name, json.loads(arguments)) for name, arguments in calls.values()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_every_format_streamed(name: str, size: int) -> None:
    """LMDeploy reads reasoning before that, so the outputs have none."""
    named = OutputParser.named(name.removeprefix("untemplate:"))
    parser = OutputParser.from_format(named.format.extend(reasoning=None))
    for message in MESSAGES:
        if parser.expressible(message) is not None:
            continue
        text = parser.render(message)
        reader = server(name)
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        found = [one for piece in pieces for one, _ in reader.stream_chunk(piece, [0])]
        found += [one for one, _ in reader.stream_chunk("", [], final=True)]
        content, calls = said(found)
        wanted = [(one["function"]["name"], one["function"]["arguments"]) for one in message.get("tool_calls", ())]
        assert (content.strip(), calls) == (message.get("content", ""), wanted), text


def test_a_last_marker_in_a_string_does_not_end_the_block() -> None:
    text = OutputParser.named("hermes").render({"tool_calls": [QUOTED]})
    _, calls, _ = server("untemplate:hermes").parse_complete(text)
    assert [json.loads(call.function.arguments) for call in calls] == [{"q": "a</tool_call>b"}]


def test_a_tool_that_was_not_offered_is_left_out() -> None:
    text = OutputParser.named("hermes").render({"tool_calls": [{**FLAT, "function": {"name": "g", "arguments": {}}}]})
    assert server("untemplate:hermes").parse_complete(text)[1] is None


def test_required_calls_have_a_structural_tag() -> None:
    tag = server("untemplate:hermes", tool_choice="required").request.response_format
    assert tag["type"] == "structural_tag"
    assert "<tool_call>" in json.dumps(tag)


def test_the_parsers_are_theirs() -> None:
    assert "untemplate:hermes" in ToolParserManager.module_dict
    assert "untemplate:mistral" not in ToolParserManager.module_dict


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert shows("lmdeploy_parsers.py", capsys)
