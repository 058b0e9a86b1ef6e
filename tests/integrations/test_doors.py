"""The law of ``tests/laws/test_doors.py`` at the doors of other packages, with the real packages.

``make test-integrations`` runs the test of each package in its environment.
"""

from __future__ import annotations

import asyncio
import json
import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.laws.test_doors import (
    TOOLS,
    Case,
    Door,
    Message,
    as_message,
    cases,
    check_door,
    ids_of,
    in_vocabulary,
    is_whole,
    words,
)
from tests.laws.test_doors import added as message_of
from untemplate.format import Format
from untemplate.formats import named, names
from untemplate.messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall


def check(name: str, door: Door) -> None:
    rng = random.Random(name)
    for case in cases(named(name), rng):
        check_door(name, door, named(name), case, rng)


def as_delta(delta: Any) -> DeltaMessage:
    # LiteLLM's type writes `type` into each delta of a call.
    calls = [
        DeltaToolCall(
            call.index,
            call.id,
            call.type if call.id else None,
            DeltaFunctionCall(call.function.name, call.function.arguments),
        )
        for call in delta.tool_calls or ()
    ]
    return DeltaMessage(content=delta.content, reasoning=getattr(delta, "reasoning_content", None), tool_calls=calls)


def test_litellm_keeps_the_law() -> None:
    types = pytest.importorskip("litellm.types.utils", reason="needs litellm")
    for name in names():
        _litellm(name, types)


def _litellm(name: str, types: Any) -> None:
    from untemplate.integrations.litellm import TextParser

    parser = TextParser({"m": name})
    data = {"model": "m", "tools": TOOLS}

    def whole(fmt: Format, case: Case) -> Message:
        choice = types.Choices(message=types.Message(content=case.text), finish_reason="stop")
        response = types.ModelResponse(choices=[choice])
        asyncio.run(parser.async_post_call_success_hook(data, None, response))
        found = response.choices[0].message
        calls = [call.function for call in found.tool_calls or ()]
        return as_message(getattr(found, "reasoning_content", None), found.content, calls)

    async def chunks(pieces: list[str]) -> Any:
        for piece, reason in [*((piece, None) for piece in pieces), ("", "stop")]:
            choice = types.StreamingChoices(index=0, delta=types.Delta(content=piece), finish_reason=reason)
            yield types.ModelResponseStream(choices=[choice])

    async def parsed(pieces: list[str]) -> list[Any]:
        stream = parser.async_post_call_streaming_iterator_hook(None, chunks(pieces), data)
        return [choice.delta async for chunk in stream for choice in chunk.choices]

    def streamed(fmt: Format, case: Case, pieces: list[str]) -> Message:
        deltas = map(as_delta, asyncio.run(parsed(pieces)))
        return message_of([delta for delta in deltas if delta.content or delta.reasoning or delta.tool_calls])

    check(name, Door(whole, streamed))


def test_sglang_keeps_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sglang.srt.parser.response_template", reason="needs SGLang")
    from . import test_sglang as theirs

    monkeypatch.setattr(theirs, "OFFERED", [theirs.Tool(**tool) for tool in TOOLS])
    monkeypatch.setattr(theirs, "TOOLS", TOOLS)
    for name in names():
        _sglang(name, theirs)


def _sglang(name: str, theirs: Any) -> None:
    label = f"untemplate:{name}"

    def calls_of(found: list[tuple[str, str]]) -> list[Any]:
        return [SimpleNamespace(name=called, arguments=arguments) for called, arguments in found]

    def whole(fmt: Format, case: Case) -> Message:
        reasoning, content, calls = theirs.whole(label, case.text, case.prompt)
        return as_message(reasoning, content, calls_of(calls))

    def streamed(fmt: Format, case: Case, pieces: list[str]) -> Message:
        stream = theirs.Streamed(label, case.prompt)
        reasoning, content, calls = stream.parse_pieces(pieces)
        return as_message(reasoning, content, calls_of(calls))

    check(name, Door(whole, streamed))


def check_whole(name: str, read: Any) -> None:
    """Test what of the law concerns whole outputs: nothing is lost, and a cut call is not a call."""
    for case in cases(named(name), random.Random(name)):
        found = read(case)
        if found is None:
            continue
        text, calls = found
        told = f"{case.text!r} after {case.prompt!r}"
        assert words(text + "".join(arguments for _, _, arguments in calls)) == words(case.text), told
        assert all(map(is_whole, calls)), told


def test_verl_keeps_the_law() -> None:
    theirs = pytest.importorskip("verl.experimental.agent_loop.tool_parser", reason="needs verl")
    schemas = pytest.importorskip("verl.tools.schemas")
    import untemplate.integrations.verl  # noqa: F401

    described = [{**tool, "function": {"description": "", **tool["function"]}} for tool in TOOLS]
    for tool in described:
        tool["function"]["parameters"] = {"required": [], **tool["function"]["parameters"]}
    tools = [schemas.OpenAIFunctionToolSchema.model_validate(tool) for tool in described]
    for name in names():
        if named(name).special_tokens:
            _verl(name, theirs, tools)


def _verl(name: str, theirs: Any, tools: list[Any]) -> None:
    def read(case: Case) -> tuple[str, list[tuple[str, str, str]]] | None:
        if not in_vocabulary(named(name), case):
            return None
        parser = theirs.ToolParser.get_tool_parser(f"untemplate:{name}", case.tokenizer)
        text, calls = asyncio.run(parser.extract_tool_calls(ids_of(case._replace(prompt=case.text)), tools))
        return text, [("", call.name, call.arguments) for call in calls]

    check_whole(name, read)


def test_transformers_keeps_the_law() -> None:
    pytest.importorskip("transformers.utils.chat_template_utils", reason="needs transformers")
    for name in names():
        _transformers(name)


def _transformers(name: str) -> None:
    from untemplate.integrations.transformers import install

    def read(case: Case) -> tuple[str, list[tuple[str, str, str]]]:
        tokenizer = SimpleNamespace(get_vocab=case.tokenizer.get_vocab)
        install(tokenizer, name)
        found = tokenizer.parse_response(case.text, prefix=case.prompt, tools=TOOLS)
        calls = [call["function"] for call in found.get("tool_calls", ())]
        text = "\n".join((found.get("reasoning_content") or "", found.get("content") or ""))
        return text, [("", call["name"], json.dumps(call["arguments"])) for call in calls]

    check_whole(name, read)
