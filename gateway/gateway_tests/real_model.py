"""The demonstration model under llama.cpp with a gateway, and texts that it can be made to write, token by token."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest

from untemplate import OutputParser
from untemplate.grammar import Grammar
from untemplate_gateway.engines.base import EngineChunk, Job
from untemplate_gateway.engines.llamacpp import LlamaCppEngine
from untemplate_gateway.manager.model import Model
from untemplate_gateway.settings import LlamaCpp

from .server import Running, running

pytest.importorskip("xllamacpp")
FOLDER = Path(__file__).parents[2] / "demo/src/untemplate_demo"
GGUF = FOLDER / "untemplate-demo.gguf"
if not FOLDER.is_dir():  # A checkout has it: there a file that is gone is an error.
    pytest.skip("the demonstration model is not there", allow_module_level=True)

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "the city"}},
    "required": ["city"],
}
FUNCTION = {"name": "get_weather", "description": "The weather in a city", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}
FIXED = {
    "type": "object",
    "properties": {"level": {"const": 3}, "room": {"const": "hall"}},
    "required": ["level", "room"],
    "additionalProperties": False,
}
"""Parameters that have one value."""
VOLUME = {"level": 3, "room": "hall"}
SET_VOLUME = {"name": "set_volume", "description": "Set the volume", "strict": True, "parameters": FIXED}
ASKED: list[Any] = [{"role": "user", "content": "What is the weather in Rosenheim?"}]
HELLO: list[Any] = [{"role": "user", "content": "Hello! Who are you?"}]
HOT = {"min_p": 0, "top_k": 0, "top_p": 1}
"""Any token is possible: by default llama.cpp removes unlikely tokens before it applies the temperature."""


class Dictated(LlamaCppEngine):
    """Writes a text that the grammar ``rule`` allows, if there is one."""

    rule: str | None = None

    def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        if self.rule is not None:
            job = msgspec.structs.replace(job, grammar=Grammar("gbnf", f"root ::= {self.rule}\n", by_id=True))
        return super().generate(job)

    def of_text(self, text: str) -> str:
        """Return the rule that allows only this text, with its special tokens only by their ids."""
        ids = self.vocabulary().get_vocab()
        parts = [part for part in re.split(r"(</?(?:think|tool_call)>)", text) if part]
        return " ".join(f"<[{ids[part]}]>" if part in ids else json.dumps(part, ensure_ascii=False) for part in parts)


@contextlib.contextmanager
def demo(slots: int) -> Iterator[Running]:
    """Run a gateway with the model. With one slot, the same request gives the same output; with several, other requests
    in the batch change the last digits of llama.cpp's results. The context shifts, so that an output never ends by
    itself.
    """
    assert GGUF.is_file(), f"{GGUF} is gone"

    async def load() -> Model:
        extra = {"endpoint_metrics": True, "ctx_shift": True}
        engine = Dictated(GGUF, LlamaCpp(n_parallel=slots, threads=1, extra=extra))
        await engine.start()
        template = engine.template()
        assert template is not None
        parser = OutputParser.from_template(template, tokenizer=engine.vocabulary())
        return Model(name="demo", engine=engine, parser=parser, template=template, context_length=engine.context_length)

    with running(load=load) as gateway:
        yield gateway


def engine_of(gateway: Running) -> Dictated:
    engine = gateway.app.manager.get("demo").engine
    assert isinstance(engine, Dictated)
    return engine


@contextlib.contextmanager
def dictated(gateway: Running, text: str) -> Iterator[None]:
    """Make the model write this text inside of the block."""
    with _ruled(gateway, engine_of(gateway).of_text(text)):
        yield


def babbling(gateway: Running) -> contextlib.AbstractContextManager[None]:
    """Make the model write random letters inside of the block."""
    return _ruled(gateway, "[a-z]{60,90}")


@contextlib.contextmanager
def _ruled(gateway: Running, rule: str) -> Iterator[None]:
    engine = engine_of(gateway)
    engine.rule = rule
    try:
        yield
    finally:
        engine.rule = None


def ask(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": messages, "temperature": 0, "max_tokens": 300, **more}


def chat(client: openai.OpenAI, messages: list[Any], **more: Any) -> Any:
    return client.chat.completions.create(**ask(messages, **more)).choices[0]


def streamed(client: openai.OpenAI, messages: list[Any], **more: Any) -> Any:
    with client.chat.completions.stream(**ask(messages, **more)) as stream:
        for _ in stream:
            pass
        return stream.current_completion_snapshot.choices[0]


def calls_of(message: Any) -> list[tuple[str, Any]]:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


def said(choice: Any) -> tuple[Any, ...]:
    """Return all parts of a choice."""
    message = choice.message
    reasoning = getattr(message, "reasoning", None)
    return reasoning, message.content or None, calls_of(message), choice.finish_reason
