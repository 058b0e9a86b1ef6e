"""InternLM 2.5 and 3: a JSON object between ``<|action_start|><|plugin|>`` and ``<|action_end|>``."""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Tools
from .._family import Entry, sglang, turn, vllm

INTERNLM = Format(
    name="internlm",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(
        Tools(
            call_open=Marker("<|action_start|><|plugin|>\n", ("<|action_start|> <|plugin|>",)),
            call_close=Marker("<|action_end|>"),
            body=JsonBody(arguments_key="parameters", accepted_arguments_keys=("arguments",)),
        ),
    ),
    special_tokens=("<|im_end|>", "<|action_start|>", "<|action_end|>", "<|plugin|>"),
)

ENTRIES = (
    Entry(
        name="internlm",
        kind="tool",
        format=INTERNLM,
        aliases=(
            "internlm2",
            "interns1",
            "intern-s1",
        ),
        models=(
            "internlm/internlm2_5-*-chat",
            "internlm/internlm3-*-instruct",
            "internlm/Intern-S1*",
            "internlm/internlm2_5-*-chat*",
            "internlm/internlm2-chat-*",
        ),
        engines=("vllm", "sglang"),
        evidence=(
            vllm("vllm/tool_parsers/internlm2_tool_parser.py"),
            sglang("function_call/function_call_parser.py", "interns1 is InternlmDetector"),
        ),
    ),
)
