"""Hermes: a JSON object in ``<tool_call>`` tags, written by Qwen2.5, Qwen3, QwQ, Hermes 2 Pro and MiMo-VL.

The templates of Qwen2.5-7B-Instruct, Qwen3-0.6B, QwQ-32B, Hermes-2-Pro-Llama-3-8B and MiMo-VL all write
``<tool_call>\\n{"name": …, "arguments": …}\\n</tool_call>``, with a newline between calls. Models leave the newlines
out. The template of SmolLM3 asks for the same in its system message.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Tools
from .._family import TURN_ENDS, Entry, Evidence, sglang, template, turn

TRANSFORMERS = "huggingface/transformers docs/source/en/chat_response_parsing.md"

TOOLS = Tools(
    body=JsonBody(),
    call_open=Marker("<tool_call>\n"),
    call_close=Marker("\n</tool_call>"),
    separator=Marker("\n"),
)

# Several calls as a list in one pair of tags, which SGLang's Qwen25Detector accepts as well (2026-11-22).
LIST = Tools(
    body=JsonBody(),
    section_open=Marker("<tool_call>\n"),
    section_close=Marker("\n</tool_call>"),
    list_open=Marker("["),
    list_close=Marker("]"),
    separator=Marker(", "),
)

HERMES = Format(
    name="hermes",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(TOOLS, LIST),
    special_tokens=(*TURN_ENDS, "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="hermes",
        kind="tool",
        format=HERMES,
        aliases=(
            "qwen",
            "qwen25",
            "qwen3_json",
            "trinity",
            "qwen3-vl-instruct",
            "qwen3-vl-thinking",
            "json_tools",
            "qwen2d5",
            "qwen3_vl",
            "youtu",
        ),
        models=(
            "Qwen/Qwen2.5-*",
            "Qwen/Qwen3-*",
            "Qwen/QwQ-32B",
            "NousResearch/Hermes-2-Pro-*",
            "NousResearch/Hermes-3-*",
            "XiaomiMiMo/MiMo-VL-*",
            "arcee-ai/Trinity-*",
            "tencent/Youtu-LLM-*",
            "Qwen/QwQ-32B*",
            "stepfun-ai/Step3-VL-*",
            "inclusionAI/Ling-*",
            "inclusionAI/Ring-*",
        ),
        model_types=("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next"),
        architectures=(("qwen2moe", "qwen2_moe"), ("qwen3moe", "qwen3_moe"), ("qwen3next", "qwen3_next")),
        headers=("<|im_start|>assistant",),
        engines=("vllm", "sglang", "vllm.rs", "llama.cpp", "dynamo", "ollama", "tensorrt-llm"),
        evidence=(
            template("Qwen-Qwen2.5-7B-Instruct.jinja"),
            template("Qwen-Qwen3-0.6B.jinja"),
            template("Qwen-QwQ-32B.jinja"),
            template("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja"),
            template("MiMo-VL.jinja"),
            sglang("function_call/trinity_detector.py", "Trinity writes what Qwen2.5 writes"),
        ),
    ),
    Entry(
        name="smollm3",
        kind="tool",
        format=HERMES.extend(name="smollm3"),
        models=("HuggingFaceTB/SmolLM3-3B",),
        evidence=(
            Evidence("template", "EricLBuehler/mistral.rs chat_templates/smollm3.jinja"),
            Evidence("engine", TRANSFORMERS, "2026-11-22", "an output of SmolLM"),
        ),
    ),
)
