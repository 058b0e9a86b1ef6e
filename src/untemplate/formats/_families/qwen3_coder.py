"""Qwen3-Coder: ``<function=name>`` with one ``<parameter=key>`` tag per argument, inside ``<tool_call>``.

The templates of Qwen3-Coder and Qwen3.5-4B put each value on lines of its own: one newline on each side is markup.
Objects and lists are JSON. Everything else is plain text, whose type the tool's schema decides. Between content and the
first call both write an empty line.

The models leave out ``<tool_call>`` and begin with ``<function=`` (ollama#16686, ollama#17353, ollama#18530,
Qwen3-Coder#475, llama.cpp#16932), hence ``optional``.
"""

from __future__ import annotations

from ...format import Format, Marker, NamedBody, TaggedArguments, Tools
from .._family import TURN_ENDS, Entry, template, turn, vllm

TOOLS = Tools(
    call_open=Marker("<tool_call>\n"),
    body=NamedBody(
        name_open=Marker("<function="),
        name_close=Marker(">\n"),
        arguments=TaggedArguments(
            key_open=Marker("<parameter="),
            key_close=Marker(">\n"),
            value_close=Marker("\n</parameter>\n"),
            trim=1,
        ),
        arguments_close=Marker("</function>\n"),
    ),
    call_close=Marker("</tool_call>"),
    separator=Marker("\n", ("\n\n",)),
    optional=("call",),
)

QWEN3_CODER = Format(
    name="qwen3_coder",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(TOOLS,),
    special_tokens=(*TURN_ENDS, "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="qwen3_coder",
        kind="tool",
        format=QWEN3_CODER,
        aliases=(
            "prime_qwen3",
            "qwen3_5",
            "qwen3_xml",
            "qwen_coder",
            "nemotron_nano",
            "qwen3-coder",
            "qwen3.5",
            "ornith",
            "nanbeige",
            "iquest_coder",
            "qwen3coder",
            "interns2-preview",
            "interns2preview",
            "qwen35",
            "qwen36",
            "qwen38",
            "qwen3_8",
            "qwen_xml",
        ),
        models=(
            "Qwen/Qwen3-Coder-*",
            "Qwen/Qwen3.5-*",
            "Qwen/Qwen3.6-*",
            "nvidia/NVIDIA-Nemotron-3-*",
            "Qwen/Qwen3.8-*",
            "internlm/Intern-S2-*",
        ),
        model_types=("qwen3_5", "qwen3_5_moe"),
        engines=("vllm", "sglang", "vllm.rs", "llama.cpp", "dynamo", "ollama", "tensorrt-llm"),
        evidence=(
            template("Qwen3-Coder.jinja"),
            template("Qwen3.5-4B.jinja"),
            vllm("vllm/tool_parsers/iquest_coder_tool_parser.py", "not merged"),
        ),
    ),
)
