"""Phi-4-mini: a JSON list after the word ``functools``, or between ``<|tool_call|>`` and ``<|/tool_call|>``.

The second is in the template of a pull request to llama.cpp (#12288) that is not merged.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Tools
from .._family import Entry, Evidence, report, turn, vllm

DYNAMO = "ai-dynamo/dynamo docs/agents/tool-calling.md"

PHI4_MINI_JSON = Format(
    name="phi4_mini_json",
    turn=turn("<|assistant|>", "<|end|>"),
    tools=(
        Tools(
            section_open=Marker("functools"),
            list_open=Marker("["),
            list_close=Marker("]"),
            separator=Marker(", "),
            body=JsonBody(),
        ),
        Tools(
            section_open=Marker("<|tool_call|>"),
            section_close=Marker("<|/tool_call|>"),
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|end|>", "<|tool_call|>", "<|/tool_call|>"),
)

ENTRIES = (
    Entry(
        name="phi4_mini_json",
        kind="tool",
        format=PHI4_MINI_JSON,
        aliases=("phi4",),
        models=("microsoft/Phi-4-mini-instruct", "microsoft/Phi-4-mini-reasoning", "microsoft/Phi-4-multimodal-*"),
        engines=("vllm", "dynamo"),
        evidence=(
            vllm("vllm/tool_parsers/phi4mini_tool_parser.py"),
            vllm("examples/tool_chat_template_phi4_mini.jinja", "asks for functools"),
            Evidence("engine", DYNAMO, "2026-11-22", "phi4 reads Phi-4"),
            report("ggml-org/llama.cpp#12288", "its template writes <|tool_call|>"),
        ),
    ),
)
