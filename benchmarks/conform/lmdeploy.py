"""LMDeploy's tool and reasoning parsers, as its server uses them. The package needs CUDA to be installed."""

from __future__ import annotations

from typing import Any

from lmdeploy.serve.openai.protocol import ChatCompletionRequest
from lmdeploy.serve.openai.reasoning_parser import ReasoningParserManager
from lmdeploy.serve.openai.tool_parser import ToolParserManager
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from .program import Unsupported, name_of, serve, stream_of

PARSERS = {
    "hermes": ("qwen", "qwen-qwq"),
    "internlm": ("internlm", None),
    "llama3_json": ("llama3", None),
    "qwen3_coder": ("qwen3coder", "qwen-qwq"),
}
"""Formats → the names of their tool parser and their reasoning parser."""
SETTINGS = (None,)


def answer(request: dict[str, Any], form: dict[str, Any], setting: None) -> dict[str, Any]:
    name = name_of(request)
    if name not in PARSERS:
        raise Unsupported("it has no parser for this format")
    stream = stream_of(request, form, ids=False)
    words = Tokenizer(models.WordLevel({token: i for i, token in enumerate(stream["special"])}, stream["special"][0]))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token=stream["special"][0])
    tool, reasoning = PARSERS[name]
    text, thought = "".join(request["pieces"]), ""
    asked = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}], tools=request["tools"])
    if reasoning and "reasoning" in form:
        thought, text = ReasoningParserManager.get(reasoning)(tokenizer).extract_reasoning_content(text, asked)
    parsed = ToolParserManager.get(tool)(tokenizer).extract_tool_calls(text or "", asked)
    calls = [(call.function.name, call.function.arguments) for call in parsed.tool_calls or ()]
    return {"reasoning": thought, "content": parsed.content, "calls": calls}


if __name__ == "__main__":
    serve(SETTINGS, answer)
