"""NVIDIA Nemotron Nano v2 and Nemotron 3.

* Nano v2 writes a JSON list in ``<TOOLCALL>`` (template of NVIDIA-Nemotron-Nano-v2, the tool_calls branch). The prompt
  ends with ``<think>\\n``, or with ``<think></think>`` if reasoning is off.
* Nemotron 3 and 3.5 write the format of Qwen3-Coder, and their prompts end like that of Nano v2.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Reasoning, Tools
from .._family import Entry, report, template, turn, vllm
from . import qwen3_coder

NANO_TURN = turn("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>\n")

NANO_REASONING = Format(
    name="nemotron_nano_v2",
    turn=NANO_TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n"), start="open"),
    special_tokens=("<SPECIAL_12>",),
)

NANO = Format(
    name="nemotron_nano_v2",
    turn=NANO_TURN,
    tools=(
        Tools(
            section_open=Marker("\n<TOOLCALL>"),
            section_close=Marker("</TOOLCALL>"),
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<SPECIAL_12>",),
)

V3_REASONING = Format(
    name="nemotron_v3",
    turn=qwen3_coder.QWEN3_CODER.turn,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n"), start="open"),
    special_tokens=("<|im_end|>", "<think>", "</think>"),
)

ENTRIES = (
    Entry(
        name="nemotron_nano_v2",
        kind="reasoning",
        format=NANO_REASONING,
        models=("nvidia/NVIDIA-Nemotron-Nano-*-v2",),
        engines=("llama.cpp",),
        evidence=(template("NVIDIA-Nemotron-Nano-v2.jinja"),),
    ),
    Entry(
        name="nemotron_v3",
        kind="reasoning",
        format=V3_REASONING,
        aliases=(
            "nemotron_3",
            "nemotron_35",
            "nemotron3_ultra",
            "nemotron-3-nano",
            "nemotron-3.5-nano",
            "nemotron3",
            "nemotron_nano",
            "nemotron-v3",
            "nano-v3",
        ),
        models=("nvidia/NVIDIA-Nemotron-3-*", "nvidia/NVIDIA-Nemotron-3.5-*"),
        engines=("vllm", "sglang", "ollama", "dynamo", "tensorrt-llm"),
        evidence=(
            vllm("vllm/parser/nemotron_v3.py"),
            report("PrimeIntellect-ai/prime-rl#3237", "3.5 Lightning prefills <think> and calls as 3 does"),
        ),
    ),
    Entry(
        name="nemotron_nano_v2",
        kind="tool",
        format=NANO,
        aliases=("nemotron_deci", "nemotron_json"),
        models=("nvidia/NVIDIA-Nemotron-Nano-*-v2", "nvidia/Llama-3_*-Nemotron-*"),
        headers=("<SPECIAL_11>Assistant",),
        engines=("llama.cpp", "dynamo"),
        evidence=(
            template("NVIDIA-Nemotron-Nano-v2.jinja"),
            vllm("vllm/tool_parsers/nemotron_json_tool_parser.py", "not merged"),
        ),
    ),
    Entry(
        name="nemotron_v3",
        kind="tool",
        format=qwen3_coder.QWEN3_CODER.extend(name="nemotron_v3"),
        aliases=(
            "nemotron_3",
            "nemotron_35",
            "nemotron3_ultra",
            "nemotron-3-nano",
            "nemotron-3.5-nano",
            "nemotron3",
            "nemotron",
        ),
        models=("nvidia/NVIDIA-Nemotron-3-*", "nvidia/NVIDIA-Nemotron-3.5-*"),
        engines=("ollama", "dynamo"),
        evidence=(
            vllm("vllm/parser/nemotron_v3.py"),
            report("smg-project/smg#2112", "the templates of 3 and 3.5 have Qwen3-Coder's tags"),
        ),
    ),
)
