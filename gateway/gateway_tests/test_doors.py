"""The law for every door, at the gateway: a request has the message of `OutputParser`, whole and streamed.

For all formats of the catalogue: outputs of `tests.laws.test_doors`, cut at a place (at each in `make laws`). The
engine writes them in pieces of any size. Nothing is lost at the end, and a cut call never makes the finish reason
`tool_calls`.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from tests.laws.test_doors import TOOLS, outputs, words
from untemplate import OutputParser
from untemplate.formats import named, names
from untemplate.templates import ChatTemplate
from untemplate_gateway.engines.base import Takes
from untemplate_gateway.generation import Generation
from untemplate_gateway.manager.model import Model
from untemplate_gateway.protocols.chat.response import ChatWriter, respond_chat
from untemplate_gateway.session import Session

from .scripted import Scripted
from .test_session import META

TEMPLATE = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
ASK = [{"role": "user", "content": "Hi"}]
Message = dict[str, Any]


def model(parser: OutputParser, text: str, size: int) -> Model:
    return Model(
        name="scripted", engine=Scripted(text, size=size, takes=Takes(logprobs=True)), parser=parser, template=TEMPLATE
    )


def as_message(parts: list[dict[str, Any]]) -> Message:
    calls: dict[int, list[str]] = {}
    for part in parts:
        for number, call in enumerate(part.get("tool_calls") or ()):
            found = calls.setdefault(call.get("index", number), ["", ""])
            found[0] += call["function"].get("name") or ""
            found[1] += call["function"].get("arguments") or ""
    text = {name: "".join(part.get(name) or "" for part in parts) for name in ("reasoning", "content")}
    return {**text, "calls": list(calls.values())}


async def whole(served: Model) -> tuple[Message, str]:
    request = Generation(messages=ASK, tools=TOOLS)
    session = Session(served, request, META)
    usage = await session.whole()
    (choice,) = respond_chat(request, session.ended, usage, META)["choices"]
    return as_message([choice["message"]]), choice["finish_reason"]


async def streamed(served: Model) -> tuple[Message, str]:
    request = Generation(messages=ASK, tools=TOOLS)
    events = [frame async for frame in Session(served, request, META).frames(ChatWriter(request, META))]
    lines = [line[6:] for line in b"".join(events).decode().split("\n\n") if line.startswith("data: {")]
    chunks = [choice for line in lines for choice in json.loads(line)["choices"]]
    return as_message([choice["delta"] for choice in chunks]), chunks[-1]["finish_reason"]


def check(name: str, rng: random.Random | None) -> None:
    parser = OutputParser.from_format(named(name))
    for text in outputs(parser.format):
        for end in range(1, len(text) + 1) if rng is None else {len(text), rng.randrange(1, len(text) + 1)}:
            cut = text[:end]
            served = model(parser, cut, (rng or random).choice((1, 3, len(cut))))
            found = asyncio.run(whole(served))
            parsed = parser.parse(cut, tools=TOOLS, prompt=served.engine.jobs[-1].prompt)  # type: ignore[attr-defined]
            expected = as_message([parsed.message(reasoning_field="reasoning")])
            assert found == (expected, parsed.finish_reason), cut
            assert asyncio.run(streamed(served)) == found, cut
            assert words(json.dumps(expected)) == words(cut), cut
            last = parsed.tool_calls[-1:]
            assert not (found[1] == "tool_calls" and last and last[0].status == "incomplete"), cut


@pytest.mark.parametrize("name", names())
def test_a_request_has_the_message_of_the_parser(name: str) -> None:
    check(name, random.Random(name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", names())
def test_a_request_has_the_message_of_the_parser_with_every_cut(name: str) -> None:
    check(name, None)
