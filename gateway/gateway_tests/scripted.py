"""An engine that writes given outputs and records its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from untemplate._internal.output_parser import OutputParser
from untemplate.formats import named
from untemplate.templates import ChatTemplate
from untemplate_gateway.engines.base import Engine, EngineChunk, EngineError, Health, Job, Takes
from untemplate_gateway.engines.replay import ReplayEngine, example_formats
from untemplate_gateway.generation import TokenLogprob, Usage
from untemplate_gateway.manager.model import Model

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def replay(name: str, **settings: Any) -> ReplayEngine:
    """Return the replay engine of a format; its reasoning is that of the bundled example."""
    return ReplayEngine(example_formats().get(name) or named(name), **settings)


class Scripted(Engine):
    """Writes ``outputs`` in turn, in pieces of ``size`` characters. At ``"\\x00"`` in an output the engine fails; at
    ``"\\x01"`` it waits until it is closed.
    """

    kind = "scripted"

    def __init__(
        self,
        outputs: str | Sequence[str] | Callable[[Job], str],
        *,
        size: int = 3,
        reason: str = "stop",
        takes: Takes | None = None,
    ) -> None:
        self.outputs = [outputs] if isinstance(outputs, str) else outputs
        self.size = size
        self.reason = reason
        self.takes = takes or Takes(logprobs=True, grammar="gbnf")
        self.gate = asyncio.Event()
        """Nothing is written until it is set."""
        self.gate.set()
        self.jobs: list[Job] = []
        self.closed: list[str] = []
        """Jobs that were stopped before their end."""

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    async def health(self) -> Health:
        return Health(True)

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        return list(text.encode())

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        return bytes(t % 256 for t in token_ids).decode("utf-8", "replace")

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        self.jobs.append(job)
        text = self.outputs(job) if callable(self.outputs) else self.outputs[(len(self.jobs) - 1) % len(self.outputs)]
        count = 0
        done = False
        try:
            await self.gate.wait()
            for start in range(0, len(text), self.size):
                await asyncio.sleep(0)
                part = text[start : start + self.size]
                if "\0" in part:
                    if part[0] != "\0":
                        yield EngineChunk(part[: part.index("\0")])
                    raise EngineError("the engine broke")
                if "\1" in part:
                    await asyncio.sleep(3600)
                count += 1
                if job.max_tokens is not None and count > job.max_tokens:
                    yield EngineChunk(finish_reason="length", usage=Usage(7, count - 1))
                    done = True
                    return
                yield EngineChunk(part, logprobs=[TokenLogprob(part, -0.5)] if job.logprobs is not None else None)
            yield EngineChunk(finish_reason=self.reason, usage=Usage(7, count))
            done = True
        finally:
            if not done:
                self.closed.append(job.id)


def scripted(outputs: Any, *, format: str = "hermes", reasoning: str | None = "qwen3", **settings: Any) -> Model:
    """Return a model with given outputs."""
    return Model(
        name="scripted",
        engine=Scripted(outputs, **settings),
        parser=OutputParser.named(format, reasoning=reasoning),
        template=ChatTemplate(TEMPLATE),
    )
