"""Kimi K2, K3, and the older Kimi-VL and Kimi-Dev.

* K2 names a call ``functions.{name}:{index}``, which is also its id. The index continues through the conversation
  (template of Kimi-K2-Instruct, ``tool_call_counter``).
* K3 writes everything as ``<|open|>tag attr="…"<|sep|>`` … ``<|close|>tag<|sep|>``. Attributes are escaped; values have
  a type and no escapes (template of Kimi-K3, macros ``open_tag``, ``xtml_type``, ``render_assistant``). Indices begin
  at 1 in every turn, so they are not ids (vllm#50295).
* Kimi-VL and Kimi-Dev reason in ``◁think▷``, which SGLang and Dynamo call ``kimi``.
"""

from __future__ import annotations

from ...format import Content, Format, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, sglang, template, turn, vllm

K2_TURN = turn("<|im_assistant|>assistant<|im_middle|>", "<|im_end|>", "[EOS]")

K2_REASONING = Format(
    name="kimi_k2",
    turn=K2_TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>")),
    special_tokens=("<|im_end|>", "<think>", "</think>"),
)

K2 = Format(
    name="kimi_k2",
    turn=K2_TURN,
    tools=(
        Tools(
            section_open=Marker("<|tool_calls_section_begin|>", ("<|tool_call_section_begin|>",)),
            section_close=Marker("<|tool_calls_section_end|>", ("<|tool_call_section_end|>",)),
            call_open=Marker("<|tool_call_begin|>"),
            body=NamedBody(name="functions.{name}:{index}", name_close=Marker("<|tool_call_argument_begin|>")),
            call_close=Marker("<|tool_call_end|>"),
            optional=("section",),
        ),
    ),
    ids="functions.{name}:{index}",
    special_tokens=(
        "<|im_end|>",
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
    ),
)

K3_TURN = turn(
    '<|open|>message role="assistant"<|sep|>',
    "<|close|>message<|sep|><|end_of_msg|>",
    "<|close|>message<|sep|>",
    "<|end_of_msg|>",
)
K3_CONTENT = Content(open=Marker("<|open|>response<|sep|>"), close=Marker("<|close|>response<|sep|>"))
K3_TOKENS = ("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>")

K3_REASONING = Format(
    name="kimi_k3",
    turn=K3_TURN,
    reasoning=Reasoning(open=Marker("<|open|>think<|sep|>"), close=Marker("<|close|>think<|sep|>"), start="open"),
    content=K3_CONTENT,
    special_tokens=K3_TOKENS,
)

K3 = Format(
    name="kimi_k3",
    turn=K3_TURN,
    content=K3_CONTENT,
    tools=(
        Tools(
            section_open=Marker("<|open|>tools<|sep|>"),
            section_close=Marker("<|close|>tools<|sep|>"),
            call_open=Marker('<|open|>call tool="'),
            body=NamedBody(
                name='{name}" index="{index}',
                name_close=Marker('"<|sep|>'),
                arguments=TaggedArguments(
                    key_open=Marker('<|open|>argument key="'),
                    key='{key}" type="{type}',
                    key_close=Marker('"<|sep|>'),
                    value_close=Marker("<|close|>argument<|sep|>"),
                    key_escape="xml",
                ),
                escape="xml",
                index_base=1,
            ),
            call_close=Marker("<|close|>call<|sep|>"),
            optional=("section",),
        ),
    ),
    special_tokens=K3_TOKENS,
)

ENTRIES = (
    Entry(
        name="kimi_k2",
        kind="reasoning",
        format=K2_REASONING,
        aliases=(
            "kimi_k25",
            "kimi_k26",
        ),
        models=(
            "moonshotai/Kimi-K2-Thinking",
            "moonshotai/Kimi-K2.5",
            "moonshotai/Kimi-K2.6*",
            "moonshotai/Kimi-K2.7*",
        ),
        engines=("vllm", "sglang", "dynamo", "tensorrt-llm"),
        evidence=(
            template("Kimi-K2-Thinking.jinja"),
            vllm("vllm/reasoning/kimi_k2_reasoning_parser.py"),
        ),
    ),
    Entry(
        name="kimi",
        kind="reasoning",
        format=K2_REASONING.extend(
            name="kimi",
            reasoning__open=Marker("◁think▷"),
            reasoning__close=Marker("◁/think▷"),
            special_tokens=("<|im_end|>",),
        ),
        models=("moonshotai/Kimi-VL-A3B-Thinking*", "moonshotai/Kimi-Dev-72B"),
        engines=("sglang", "dynamo"),
        evidence=(sglang("parser/reasoning_parser.py", "KimiDetector reads ◁think▷"),),
    ),
    Entry(
        name="kimi_k3",
        kind="reasoning",
        format=K3_REASONING,
        models=("moonshotai/Kimi-K3",),
        engines=("vllm", "sglang", "tensorrt-llm"),
        evidence=(template("Kimi-K3.jinja"),),
    ),
    Entry(
        name="kimi_k2",
        kind="tool",
        format=K2,
        aliases=(
            "kimik2",
            "kimi_k25",
            "kimi_k26",
        ),
        models=(
            "moonshotai/Kimi-K2-*",
            "moonshotai/Kimi-K2.5",
            "moonshotai/Kimi-K2*",
        ),
        model_types=("kimi_k25",),
        headers=("<|im_assistant|>assistant<|im_middle|>",),
        engines=("vllm", "sglang", "vllm.rs", "dynamo", "tensorrt-llm"),
        evidence=(
            template("Kimi-K2-Instruct.jinja"),
            template("moonshotai-Kimi-K2.jinja"),
        ),
    ),
    Entry(
        name="kimi_k3",
        kind="tool",
        format=K3,
        models=("moonshotai/Kimi-K3",),
        headers=('<|open|>message role="assistant"<|sep|>',),
        engines=("vllm", "sglang"),
        evidence=(template("Kimi-K3.jinja"),),
    ),
)
