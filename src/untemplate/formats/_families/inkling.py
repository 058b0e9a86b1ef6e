"""Inkling: a turn is blocks, each ``<|message_model|>`` [name] ``<|content_kind|>`` text ``<|end_message|>``.

The text of a tool block is ``{"name": …, "args": {…}}``. Its header may name the tool as well, or alone.
"""

from __future__ import annotations

from ...format import Channels, Format, JsonBody, Marker, Tools
from .._family import Entry, sglang, turn, vllm

INKLING = Format(
    name="inkling",
    turn=turn("<|message_model|>", "<|content_model_end_sampling|>"),
    channels=Channels(
        open=Marker("<|message_model|>"),
        body=Marker("<|content_text|>"),
        reasoning_body=Marker("<|content_thinking|>"),
        call_body=Marker("<|content_invoke_tool_json|>"),
        close=Marker("<|end_message|>"),
    ),
    tools=(Tools(body=JsonBody(arguments_key="args", accepted_arguments_keys=("arguments", "parameters"))),),
    special_tokens=(
        "<|message_model|>",
        "<|content_text|>",
        "<|content_thinking|>",
        "<|content_invoke_tool_json|>",
        "<|end_message|>",
        "<|content_model_end_sampling|>",
    ),
)

ENTRIES = (
    Entry(
        name="inkling",
        kind="reasoning",
        format=INKLING,
        models=("thinkingmachines/Inkling*",),
        model_types=("inkling2_loop",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/parser/inkling.py"),),
    ),
    Entry(
        name="inkling",
        kind="tool",
        format=INKLING,
        models=("thinkingmachines/Inkling*",),
        model_types=("inkling2_loop",),
        headers=("<|message_model|>",),
        engines=("vllm", "sglang", "dynamo"),
        evidence=(
            vllm("vllm/parser/inkling.py", "a header may name the tool"),
            sglang("function_call/inkling_detector.py"),
        ),
    ),
)
