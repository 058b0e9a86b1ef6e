"""StepFun's Step 3 and Step 3.5.

* Step 3 writes StepTML, ``<steptml:invoke name="…">``, between tokens with full-width bars.
* Step 3.5 and 3.7 write the format of Qwen3-Coder.
* Step Audio 2 writes ``function``, the name and a JSON object, each on a line of its own, in ``<tool_call>``.
* Step 5 writes the same, and reasons as DeepSeek R1 does.

The prompts of the others end with ``<think>\\n``.
"""

from __future__ import annotations

from ...format import Format, JsonArguments, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, template, turn, vllm
from . import qwen3_coder

STEP3_TURN = turn("<|BOT|>assistant\n", "<|EOT|>")

STEP3_REASONING = Format(
    name="step3",
    turn=STEP3_TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n"), start="open"),
    special_tokens=("<|EOT|>", "<think>", "</think>"),
)

STEP3P5_REASONING = Format(
    name="step3p5",
    turn=qwen3_coder.QWEN3_CODER.turn,
    reasoning=STEP3_REASONING.reasoning,
    special_tokens=("<|im_end|>", "<think>", "</think>"),
)

STEP3 = Format(
    name="step3",
    turn=STEP3_TURN,
    tools=(
        Tools(
            section_open=Marker("<｜tool_calls_begin｜>\n"),
            section_close=Marker("<｜tool_calls_end｜>"),
            call_open=Marker("<｜tool_call_begin｜>function<｜tool_sep｜>"),
            body=NamedBody(
                name_open=Marker('<steptml:invoke name="'),
                name_close=Marker('">\n'),
                arguments=TaggedArguments(
                    key_open=Marker('<steptml:parameter name="'),
                    key_close=Marker('">'),
                    value_close=Marker("</steptml:parameter>\n"),
                ),
                arguments_close=Marker("</steptml:invoke>"),
            ),
            call_close=Marker("<｜tool_call_end｜>\n"),
            optional=("section", "call"),
        ),
    ),
    special_tokens=(
        "<|EOT|>",
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
        "<｜tool_call_begin｜>",
        "<｜tool_call_end｜>",
        "<｜tool_sep｜>",
    ),
)

STEP_AUDIO_2 = Format(
    name="step_audio_2",
    turn=STEP3_TURN,
    tools=(
        Tools(
            call_open=Marker("<tool_call>function\n"),
            body=NamedBody(name_close=Marker("\n"), arguments=JsonArguments()),
            call_close=Marker("</tool_call>"),
        ),
    ),
    special_tokens=("<|EOT|>", "<tool_call>", "</tool_call>"),
)

ENTRIES = (
    Entry(
        name="step3",
        kind="reasoning",
        format=STEP3_REASONING,
        models=("stepfun-ai/step3",),
        model_types=("step3_vl",),
        engines=("vllm", "sglang", "dynamo"),
        evidence=(vllm("vllm/reasoning/step3_reasoning_parser.py"),),
    ),
    Entry(
        name="step3p5",
        kind="reasoning",
        format=STEP3P5_REASONING,
        models=("stepfun-ai/Step-3.5-Flash", "stepfun-ai/Step-3.7-Flash"),
        engines=("vllm", "sglang"),
        evidence=(
            template("StepFun3.5-Flash.jinja"),
            template("StepFun3.7-Flash.jinja"),
            vllm("vllm/parser/step3p5.py", "the prompt ends with the opener"),
        ),
    ),
    Entry(
        name="step3",
        kind="tool",
        format=STEP3,
        models=("stepfun-ai/step3",),
        model_types=("step3_vl",),
        headers=("<|BOT|>assistant",),
        engines=("vllm", "sglang", "vllm.rs"),
        evidence=(vllm("vllm/tool_parsers/step3_tool_parser.py"),),
    ),
    Entry(
        name="step3p5",
        kind="tool",
        format=qwen3_coder.QWEN3_CODER.extend(name="step3p5"),
        models=("stepfun-ai/Step-3.5-Flash", "stepfun-ai/Step-3.7-Flash"),
        engines=("vllm", "sglang"),
        evidence=(
            template("StepFun3.5-Flash.jinja"),
            template("StepFun3.7-Flash.jinja"),
            vllm("vllm/tool_parsers/step3p5_tool_parser.py"),
        ),
    ),
    Entry(
        name="step_audio_2",
        kind="tool",
        format=STEP_AUDIO_2,
        models=("stepfun-ai/Step-Audio-2-*",),
        model_types=("step_audio_2",),
        evidence=(
            vllm("vllm/tool_parsers/step_audio_2_tool_parser.py", "commit 8b1dd2a, not merged; three lines per call"),
        ),
    ),
    Entry(
        name="step5",
        kind="reasoning",
        format=STEP3P5_REASONING.extend(name="step5"),
        models=("stepfun-ai/Step-5*",),
        engines=("vllm",),
        evidence=(vllm("vllm/reasoning/__init__.py", "step5 is DeepSeekR1ReasoningParser"),),
    ),
    Entry(
        name="step5",
        kind="tool",
        format=qwen3_coder.QWEN3_CODER.extend(name="step5"),
        models=("stepfun-ai/Step-5*",),
        engines=("vllm",),
        evidence=(vllm("vllm/tool_parsers/step5_tool_parser.py"),),
    ),
)
