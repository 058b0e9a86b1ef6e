"""H Company's Holo 2: the reasoning of DeepSeek V3.1, on unless the request turns it off.

vLLM registers ``holo2`` as ``DeepSeekV3ReasoningWithThinkingParser``.
"""

from __future__ import annotations

from ...format import Format, Marker, Reasoning
from .._family import Entry, turn, vllm

ENTRIES = (
    Entry(
        name="holo2",
        kind="reasoning",
        format=Format(
            name="holo2",
            turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
            reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>"), start="open"),
            special_tokens=("<|im_end|>", "<think>", "</think>"),
        ),
        models=("Hcompany/Holo2-*",),
        engines=("vllm",),
        evidence=(vllm("vllm/reasoning/__init__.py"),),
    ),
)
