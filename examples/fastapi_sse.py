"""A Chat Completions endpoint with server-sent events, in front of an engine of your own.

`engine` stands for whatever generates: it yields text and token ids as they come. Run the file to see one request
answered in process; `uvicorn examples.fastapi_sse:app` serves it. Needs `fastapi` and `openai` (and `httpx` for
the request below).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from untemplate import OutputParser
from untemplate.integrations.openai import ChatChunks

app = FastAPI()
parser = OutputParser.named("hermes", reasoning="qwen3")  # one for the process


async def engine(prompt: str) -> AsyncIterator[tuple[str, list[int]]]:
    """Yield the output of a model in pieces."""
    for piece in ("<think>\nLook it ", "up.\n</think>\n\n<tool", '_call>\n{"name": "search", "arg'):
        yield piece, []
    yield 'uments": {"q": "tea"}}\n</tool_call>', []


async def chunks(body: dict[str, Any]) -> AsyncIterator[str]:
    """Yield the events of one response: role first, finish reason last."""
    prompt = "…"  # rendered from body["messages"] with the chat template of the model
    stream = parser.stream(tools=body.get("tools"), tool_choice=body.get("tool_choice"), prompt=prompt, seed=1)
    made = ChatChunks(stream, model="my-model")
    async for text, token_ids in engine(prompt):
        for chunk in made.feed(text, token_ids):
            yield f"data: {chunk.model_dump_json(exclude_unset=True)}\n\n"
    for chunk in made.finish("stop"):
        yield f"data: {chunk.model_dump_json(exclude_unset=True)}\n\n"
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
