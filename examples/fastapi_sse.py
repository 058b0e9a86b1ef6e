"""A Chat Completions endpoint with server-sent events, in front of an engine of your own.

`engine` stands for whatever generates: it yields text and token ids as they come. Run the file to see one request
answered in process; `uvicorn examples.fastapi_sse:app` serves it. Needs `fastapi` (and `httpx` for the request below).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from untemplate import DeltaMessage, OutputParser

app = FastAPI()
parser = OutputParser.named("hermes", reasoning="qwen3")  # one for the process


async def engine(prompt: str) -> AsyncIterator[tuple[str, list[int]]]:
    """Yield the output of a model in pieces."""
    for piece in ("<think>\nLook it ", "up.\n</think>\n\n<tool", '_call>\n{"name": "search", "arg'):
        yield piece, []
    yield 'uments": {"q": "tea"}}\n</tool_call>', []


async def chunks(body: dict[str, Any]) -> AsyncIterator[str]:
    """Yield the events of one response: role first, finish reason last."""

    def event(delta: dict[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"

    def dumped(deltas: list[DeltaMessage]) -> list[str]:
        return [event(delta.model_dump(exclude_none=True)) for delta in deltas]

    prompt = "…"  # rendered from body["messages"] with the chat template of the model
    stream = parser.stream(tools=body.get("tools"), tool_choice=body.get("tool_choice"), prompt=prompt, seed=1)
    yield event({"role": "assistant"})
    async for text, token_ids in engine(prompt):
        for line in dumped(stream.feed(text, token_ids)):
            yield line
    for line in dumped(stream.finish("stop")):
        yield line
    yield event({}, stream.finish_reason)
    yield "data: [DONE]\n\n"


@app.post("/v1/chat/completions")
async def chat(body: dict[str, Any]) -> StreamingResponse:
    return StreamingResponse(chunks(body), media_type="text/event-stream")


async def main() -> None:
    import httpx

    tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://example") as client:
        answer = await client.post("/v1/chat/completions", json={"messages": [], "tools": tools})
    for line in answer.text.split("\n\n"):
        if line.startswith("data: {"):
            choice = json.loads(line.removeprefix("data: "))["choices"][0]
            print(*choice["delta"], choice["finish_reason"])


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# role None
# reasoning None
# reasoning None
# tool_calls None
# tool_calls None
# tool_calls
