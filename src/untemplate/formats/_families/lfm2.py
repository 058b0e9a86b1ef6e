"""Liquid LFM2: a list of Python calls in ``<|tool_call_start|>`` … ``<|tool_call_end|>``, or the same list as JSON.

llama.cpp#23838 shows ``<|tool_call_start|>[web_search_exa(query='…', numResults=5)]``. The template of LFM2-8B-A1B
writes no calls, that of LFM2.5-8B-A1B does. Models leave out the brackets around a single call (Ollama's
``lfm2_test.go``), or the tokens as well. Thinking models reason in ``<think>``, and only if they choose to.
"""

from __future__ import annotations

from ...format import Format, JsonBody, LiteralArguments, Marker, NamedBody, Tools
from .._family import Entry, Evidence, report, template, turn
from . import qwen3

SECTION_OPEN, SECTION_CLOSE = Marker("<|tool_call_start|>"), Marker("<|tool_call_end|>")

REASONING = qwen3.QWEN3.extend(
    name="lfm2-thinking", reasoning__open=Marker("<think>"), reasoning__close=Marker("</think>")
)

LFM2 = Format(
    name="lfm2",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(
        Tools(
            section_open=SECTION_OPEN,
            section_close=SECTION_CLOSE,
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", "),
            body=NamedBody(arguments=LiteralArguments()),
        ),
        Tools(
            section_open=SECTION_OPEN,
            section_close=SECTION_CLOSE,
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", "),
            body=JsonBody(),
        ),
        Tools(body=NamedBody(arguments=LiteralArguments())),
    ),
    special_tokens=("<|im_end|>", "<|tool_call_start|>", "<|tool_call_end|>"),
)

ENTRIES = (
    Entry(
        name="lfm2-thinking",
        kind="reasoning",
        format=REASONING,
        models=("LiquidAI/LFM2.5-*-Thinking",),
        engines=("ollama",),
        evidence=(Evidence("engine", "ollama/ollama model/parsers/lfm2.go"),),
    ),
    Entry(
        name="lfm2",
        kind="tool",
        format=LFM2,
        aliases=("lfm2-thinking",),
        models=("LiquidAI/LFM2-*", "LiquidAI/LFM2.5-*"),
        engines=("vllm", "sglang", "llama.cpp", "ollama"),
        evidence=(
            template("LFM2-8B-A1B.jinja"),
            template("LFM2.5-8B-A1B.jinja"),
            report("ggml-org/llama.cpp#23838", "a call as the model wrote it"),
        ),
    ),
)
