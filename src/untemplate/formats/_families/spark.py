"""iFlytek Spark X2.5 and Spark 3: the calls of GLM 4.7.

The template of Spark-X2.5-4B writes no newline after the name (sglang#37608); SGLang's detector shows one. Quantized
models also write ``<|tool_call|>`` … ``<|/tool_call|>`` (tabbyAPI#480). No source shows the token that ends the turn.
"""

from __future__ import annotations

from ...format import Marker
from .._family import TURN_ENDS, Entry, report, sglang, turn, vllm
from . import glm

SPARK25 = glm.GLM47.extend(name="spark25", turn=turn("<|Bot|>", *TURN_ENDS), tools=glm.GLM47.tools[:1]).extend(
    tools__0__call_open=Marker("<tool_call>", ("<|tool_call|>",)),
    tools__0__call_close=Marker("</tool_call>", ("<|/tool_call|>",)),
    special_tokens=("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
)

ENTRIES = (
    Entry(
        name="spark25",
        kind="tool",
        format=SPARK25,
        aliases=("spark3",),
        models=("XHToken/Spark-X2.5-*",),
        model_types=("spark2_5",),
        headers=("<|Bot|>",),
        engines=("sglang",),
        evidence=(
            sglang("function_call/spark25_detector.py"),
            report("sgl-project/sglang#37608", "the template's layout"),
            report("theroyallab/tabbyAPI#480", "tokens in place of the tags"),
            vllm("vllm/tool_parsers/spark3_tool_parser.py", "not merged"),
        ),
    ),
)
