"""Hermes: a JSON object in ``<tool_call>`` tags. Qwen2.5, Qwen3, QwQ, Hermes 2 Pro and MiMo-VL write it.

Rests on the templates of Qwen2.5-7B-Instruct, Qwen3-0.6B, QwQ-32B, Hermes-2-Pro-Llama-3-8B and MiMo-VL: all write
``<tool_call>\\n{"name": …, "arguments": …}\\n</tool_call>``, calls a newline apart. Models leave the newlines out.
"""

from __future__ import annotations

from ..format import Format, JsonBody, Marker, Tools
from ._common import turn
from .registry import Entry

TOOLS = Tools(
    body=JsonBody(),
    call_open=Marker("<tool_call>\n"),
    call_close=Marker("\n</tool_call>"),
    # Several objects in one pair of tags, as a list: Qwen2.5 and Qwen3 do it (sglang Qwen25Detector, llama.cpp tests).
    separator=Marker("\n"),
)

HERMES = Format(
    name="hermes",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(TOOLS,),
    special_tokens=("<|im_end|>", "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="hermes",
        kind="tool",
        format=HERMES,
        aliases=("qwen", "qwen25", "qwen3_json"),
        models=(
            "Qwen/Qwen2.5-*",
            "Qwen/Qwen3-*",
            "Qwen/QwQ-32B",
            "NousResearch/Hermes-2-Pro-*",
            "NousResearch/Hermes-3-*",
            "XiaomiMiMo/MiMo-VL-*",
        ),
        engines=("vllm", "sglang", "vllm.rs", "llama.cpp", "dynamo"),
        evidence=(
            "template: Qwen-Qwen2.5-7B-Instruct.jinja",
            "template: Qwen-Qwen3-0.6B.jinja",
            "template: Qwen-QwQ-32B.jinja",
            "template: NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja",
            "template: MiMo-VL.jinja",
            "case",
        ),
    ),
)
