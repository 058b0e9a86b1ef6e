"""Qwen3's reasoning: ``<think>`` … ``</think>``, opened by the model or by the generation prompt.

The template of Qwen3-0.6B writes no block, or an empty one if reasoning is off; that of Qwen3.5-4B always writes a
block, open or empty; that of QwQ-32B opens one. The prompt decides, so the start state without a prompt is closed.
"""

from __future__ import annotations

from ...format import Format, Marker, Reasoning
from .._family import TURN_ENDS, Entry, report, sglang, template, turn

QWEN3 = Format(
    name="qwen3",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n\n"), repeats=True),
    special_tokens=(*TURN_ENDS, "<think>", "</think>"),
)

ENTRIES = (
    Entry(
        name="qwen3",
        kind="reasoning",
        format=QWEN3,
        aliases=(
            "interns1",
            "dots",
            "nanbeige",
            "qwen35",
            "qwen36",
            "qwen38",
            "qwen3_8",
        ),
        models=(
            "Qwen/Qwen3-*",
            "Qwen/Qwen3.5-*",
            "Qwen/Qwen3.6-*",
            "HuggingFaceTB/SmolLM3-3B",
            "Qwen/Qwen3.8-*",
            "OpenGVLab/InternVL3_5-*",
            "internlm/Intern-S1*",
            "internlm/Intern-S2-*",
            "inclusionAI/Ring-*",
        ),
        model_types=("qwen3_moe", "qwen3_5", "qwen3_5_moe"),
        engines=("vllm", "sglang", "dynamo", "ollama", "tensorrt-llm"),
        evidence=(
            template("Qwen-Qwen3-0.6B.jinja"),
            template("Qwen3.5-4B.jinja"),
            sglang("parser/reasoning_parser.py", "interns1 is Qwen3Detector"),
            report("ai-dynamo/dynamo#6422", "Qwen3 reasons again after content"),
        ),
    ),
    Entry(
        name="qwen3-thinking",
        kind="reasoning",
        format=QWEN3.extend(name="qwen3-thinking", reasoning__start="open"),
        aliases=("qwen3.5", "ornith", "qwen3-vl-thinking", "qwen3_5"),
        models=("Qwen/Qwen3-*-Thinking-2507", "Qwen/QwQ-32B"),
        engines=("sglang", "ollama", "tensorrt-llm"),
        evidence=(template("Qwen-QwQ-32B.jinja"),),
    ),
)
