"""Outputs for a dialect's writer: recorded ones, and some with every kind of error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import pytest

from untemplate._internal.output_parser import OutputParser
from untemplate_gateway.choice import ChoiceStream
from untemplate_gateway.engines.base import EngineChunk
from untemplate_gateway.errors import ApiError, EngineError
from untemplate_gateway.generation import Ended, Generation, Meta, TokenLogprob, Usage
from untemplate_gateway.prompt import Prompt
from untemplate_gateway.protocols.base import Dialect
from untemplate_gateway.protocols.encoding import encode

META = Meta(id="0123456789abcdef", created=1_700_000_000, model="acme-1")
USAGE = Usage(prompt_tokens=30, completion_tokens=12, reasoning_tokens=5, cached_tokens=8)
ERROR = EngineError("the upstream closed the connection")


@dataclass
class Story:
    name: str
    raw: str
    format: str = "hermes"
    reasoning: str | None = "qwen3"
    prompt: str | None = None
    tools: list[Any] | None = None
    finish_reason: str = "stop"
    request: dict[str, Any] = field(default_factory=dict)


def _recorded() -> Iterator[Story]:
    for path in sorted(files("untemplate._internal.examples").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".json"):
            found = json.loads(path.read_text(encoding="utf-8"))
            yield Story(
                path.name.removesuffix(".json"),
                "".join(found["output"]),
                found["format"],
                found.get("reasoning"),
                found.get("prompt"),
                found.get("tools"),
                found["finish_reason"],
            )


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


STORIES = [
    *_recorded(),
    Story("plain", "Hello, wörld – “quoted”."),
    Story("nothing", ""),
    Story("thoughts only", "<think>\nHm."),
    Story("thoughts cut", "<think>\nHm.", finish_reason="length"),
    Story("text cut", "Once upon a", finish_reason="length"),
    Story("two calls", call("f", '{"x": 1}') + "\n" + call("g", "{}")),
    Story("text after a call", "A." + call("f", "{}") + "\nB."),
    Story("a call that was cut", 'A.<tool_call>\n{"name": "f", "arguments": {"path": "/tm', finish_reason="length"),
    Story("a call cut before its arguments", 'A.<tool_call>\n{"name": "f", "arguments": ', finish_reason="length"),
    Story("a call that ends early", '<tool_call>\n{"name": "f", "arguments": {"a": 1'),
    Story("a call in bad JSON", "A." + call("f", "{\"a\": oops, 'b': 1,}")),
    Story("lone surrogates", "a\ud800b" + call("f", '{"t": "\udc80"}')),
    Story("line ends", "a\u2028b\u2029c\x85d\x0be\r\nf" + call("f", '{"t": "\u2028"}')),
    Story("a stop string", "One. STOP" + call("f", "{}"), request={"stop": ("STOP",)}),
    Story("no reasoning shown", "<think>\nHm.\n</think>\n\nYes.", request={"include_reasoning": False}),
    Story("looked inside", "A." + call("f", "{}"), request={"diagnostics": True, "raw": True}),
    Story("filtered", "Well", finish_reason="content_filter"),
    Story("large numbers", call("f", '{"n": 123456789012345678901234567890}')),
]
CUTS = [1, 3, 7, 10**6]

every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
every_cut = pytest.mark.parametrize("cut", CUTS)


def request(story: Story, **more: Any) -> Generation:
    return Generation(model="acme-1", tools=story.tools, **{**story.request, **more})


def whole(dialect: Dialect, story: Story, ended: Ended, **more: Any) -> Any:
    """Return the whole response to the story's request, as its client reads it."""
    return json.loads(encode(dialect.respond(request(story, **more), [ended], USAGE, META)))


def play(
    story: Story, cut: int, dialect: Dialect, *, asked: Generation | None = None, error: ApiError | None = None
) -> tuple[bytes, Ended]:
    """Return the bytes of the story's stream, and its finished choice. The output is fed in pieces of ``cut``
    characters."""
    asked = asked or request(story)
    parser = OutputParser.named(story.format, reasoning=story.reasoning)
    stream = parser.stream(
        tools=story.tools, prompt=story.prompt, collect=True, spans=asked.logprobs is not None, seed="story"
    )
    choice = ChoiceStream(0, asked, stream, Prompt("", None))
    writer = dialect.writer(asked, META)
    out = [writer.begin(Usage(prompt_tokens=30, cached_tokens=8))]
    raw = story.raw
    for at in range(0, len(raw), cut):
        text = raw[at : at + cut]
        tokens = [TokenLogprob(c, -0.5, [(c, -0.5)]) for c in text] if asked.logprobs is not None else None
        out += [writer.delta(0, *step) for step in choice.feed(EngineChunk(text, logprobs=tokens))]
        if choice.stopped is not None:
            break
    choice.finish_reason = story.finish_reason
    steps, ended = choice.finish("error" if error is not None else None)
    out += [writer.delta(0, *step) for step in steps]
    out.append(writer.finish(ended))
    out.append(writer.end(USAGE) if error is None else writer.error(error))
    return b"".join(out), ended


def events(data: bytes) -> list[tuple[str, Any]]:
    """Return server-sent events as (name, data)."""
    found = []
    assert data.endswith(b"\n\n")
    for block in data[:-2].split(b"\n\n"):
        name, line = block.split(b"\n")
        assert name.startswith(b"event: ")
        assert line.startswith(b"data: ")
        assert len(line.decode().splitlines()) == 1
        found.append((name[7:].decode(), json.loads(line[6:])))
    return found


def lines(data: bytes) -> list[Any]:
    """Return lines of JSON, split as httpx splits them."""
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode().splitlines()]


def letter(text: str) -> dict[str, Any]:
    """Return the log probabilities of a token in the stories' engine, as the APIs show them."""
    shown = {"token": text, "logprob": -0.5, "bytes": list(text.encode())}
    return {**shown, "top_logprobs": [shown]}
