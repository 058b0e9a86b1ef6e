"""GLM 4.5 to 5, Ling 3 and Laguna: a name, then ``<arg_key>`` and ``<arg_value>`` pairs, in ``<tool_call>``.

The template of GLM-4.6 writes a newline after name, keys and values, that of GLM-4.7-Flash writes none. Strings are
written as they are, everything else as JSON; the tool's schema decides which it is.

Ling 3 writes the format of GLM-4.7, with or without a newline after the name, and reasons only on request. Poolside's
Laguna writes it as well, and reasons unless the request turns it off.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, report, sglang, template, turn, vllm

TOKENS = (
    "<|user|>",
    "<|observation|>",
    "<|endoftext|>",
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
)
ENDS = ("<|user|>", "<|observation|>", "<|endoftext|>")
# GLM-4.7 closes a key twice: <arg_key>path</arg_key></arg_key> (vllm#54971).
KEY_DRIFT = ("</arg_key></arg_key>",)

GLM45_REASONING = Format(
    name="glm45",
    turn=turn("<|assistant|>", *ENDS),
    reasoning=Reasoning(open=Marker("\n<think>"), close=Marker("</think>\n"), repeats=True),
    special_tokens=("<|user|>", "<|observation|>", "<|endoftext|>", "<think>", "</think>"),
)

# A JSON object in the same tags, which Laguna writes now and then (Ollama's LagunaParser).
OBJECT = Tools(call_open=Marker("<tool_call>"), body=JsonBody(), call_close=Marker("</tool_call>"))

GLM45 = Format(
    name="glm45",
    turn=turn("<|assistant|>", *ENDS),
    tools=(
        Tools(
            call_open=Marker("\n<tool_call>"),
            body=NamedBody(
                name_close=Marker("\n"),
                arguments=TaggedArguments(
                    key_open=Marker("<arg_key>"),
                    key_close=Marker("</arg_key>\n", KEY_DRIFT),
                    value_open=Marker("<arg_value>"),
                    value_close=Marker("</arg_value>\n"),
                ),
            ),
            call_close=Marker("</tool_call>"),
        ),
        OBJECT,
    ),
    special_tokens=TOKENS,
)

GLM47_REASONING = GLM45_REASONING.extend(
    name="glm47", reasoning__open=Marker("<think>"), reasoning__close=Marker("</think>")
)

GLM47 = GLM45.extend(
    name="glm47",
    tools__0__call_open=Marker("<tool_call>"),
    tools__0__body__name_close=None,
    tools__0__body__arguments__key_close=Marker("</arg_key>", KEY_DRIFT),
    tools__0__body__arguments__value_close=Marker("</arg_value>"),
)

ENTRIES = (
    Entry(
        name="glm45",
        kind="reasoning",
        format=GLM45_REASONING,
        aliases=(
            "glm45_moe",
            "glm4_5",
        ),
        models=(
            "zai-org/GLM-4.5*",
            "zai-org/GLM-4.6*",
        ),
        model_types=("glm4_moe",),
        engines=("vllm", "sglang", "dynamo"),
        evidence=(
            template("GLM-4.6.jinja"),
            report("ai-dynamo/dynamo#6422", "GLM-4.5 and GLM-5 reason again after content"),
        ),
    ),
    Entry(
        name="glm47",
        kind="reasoning",
        format=GLM47_REASONING,
        aliases=(
            "glm47_moe",
            "glm-4.7",
            "glm4_7",
            "glm5",
            "glm5_1",
            "glm5_3",
        ),
        models=("zai-org/GLM-4.7*", "zai-org/GLM-5*"),
        model_types=("glm4_moe_lite",),
        engines=("vllm", "ollama"),
        evidence=(template("GLM-4.7-Flash.jinja"),),
    ),
    Entry(
        name="glm45",
        kind="tool",
        format=GLM45,
        aliases=(
            "glm",
            "glm45_moe",
            "glm-ocr",
            "glm4_5",
        ),
        models=(
            "zai-org/GLM-4.5*",
            "zai-org/GLM-4.6*",
        ),
        model_types=("glm4_moe",),
        architectures=(("glm4moe", "glm4_moe"),),
        headers=("<|assistant|>",),
        engines=("vllm", "sglang", "vllm.rs", "dynamo", "ollama"),
        evidence=(template("GLM-4.6.jinja"),),
    ),
    Entry(
        name="glm47",
        kind="tool",
        format=GLM47,
        aliases=(
            "glm47_moe",
            "glm-4.7",
            "glm4_7",
            "glm5",
            "glm5_1",
            "glm5_3",
        ),
        models=("zai-org/GLM-4.7*", "zai-org/GLM-5*"),
        model_types=("glm4_moe_lite",),
        engines=("vllm", "sglang", "vllm.rs", "dynamo", "ollama"),
        evidence=(template("GLM-4.7-Flash.jinja"),),
    ),
    Entry(
        name="ling3",
        kind="reasoning",
        format=GLM47_REASONING.extend(name="ling3"),
        models=("inclusionAI/Ling-3*",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/parser/ling3.py"),),
    ),
    Entry(
        name="ling3",
        kind="tool",
        format=GLM47.extend(name="ling3"),
        models=("inclusionAI/Ling-3*",),
        engines=("vllm", "sglang"),
        evidence=(
            vllm("vllm/parser/ling3.py"),
            sglang("function_call/ling3_detector.py"),
        ),
    ),
    Entry(
        name="poolside_v1",
        kind="reasoning",
        format=GLM47_REASONING.extend(name="poolside_v1", reasoning__start="open"),
        aliases=(
            "poolside-v1",
            "laguna",
            "laguna_s21",
            "laguna_xs2",
            "laguna_xs21",
            "laguna_m1",
        ),
        models=("poolside/Laguna-*",),
        engines=("vllm", "sglang", "ollama", "tensorrt-llm"),
        evidence=(vllm("vllm/reasoning/poolside_v1_reasoning_parser.py"),),
    ),
    Entry(
        name="poolside_v1",
        kind="tool",
        format=GLM47.extend(name="poolside_v1"),
        aliases=(
            "poolside-v1",
            "laguna",
            "laguna_s21",
            "laguna_xs2",
            "laguna_xs21",
            "laguna_m1",
        ),
        models=("poolside/Laguna-*",),
        engines=("vllm", "sglang", "ollama"),
        evidence=(vllm("vllm/tool_parsers/poolside_v1_tool_parser.py"),),
    ),
)
