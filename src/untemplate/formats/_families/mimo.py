"""Xiaomi MiMo V2: Qwen3-Coder's tags with each value on the line of its tags; reasoning in ``<think>``.

Values are unchanged text. MiMo-VL is older and writes the format of Hermes.
"""

from __future__ import annotations

from ...format import Format, Marker
from .._family import Entry, report, sglang, turn, vllm
from . import qwen3, qwen3_coder

MIMO = Format(
    name="mimo",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=qwen3_coder.QWEN3_CODER.extend(
        tools__0__body__arguments__key_close=Marker(">"),
        tools__0__body__arguments__value_close=Marker("</parameter>\n"),
        tools__0__body__arguments__trim=0,
    ).tools,
    special_tokens=("<|im_end|>", "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="mimo",
        kind="reasoning",
        format=qwen3.QWEN3.extend(name="mimo"),
        models=("XiaomiMiMo/MiMo-V2*", "XiaomiMiMo/MiMo-7B-RL*", "XiaomiMiMo/MiMo-7B-SFT"),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/parser/mimo.py", "reasons as Qwen3 does"),),
    ),
    Entry(
        name="mimo",
        kind="tool",
        format=MIMO,
        models=("XiaomiMiMo/MiMo-V2*",),
        engines=("vllm", "sglang"),
        evidence=(
            sglang("function_call/mimo_detector.py"),
            vllm("vllm/parser/mimo.py", "values are verbatim"),
            report("vllm-project/vllm#57933", "values keep their newlines"),
        ),
    ),
)
