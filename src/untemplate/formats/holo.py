"""H Company's Holo 2: DeepSeek V3.1's reasoning, which is on unless the request says otherwise.

Rests on vLLM vllm/reasoning/__init__.py: ``holo2`` is ``DeepSeekV3ReasoningWithThinkingParser`` (read 2026-11-21).
"""

from __future__ import annotations

from ..format import Format, Marker, Reasoning
from .family import Entry, turn, vllm

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
