"""Outputs for the tests of the inspector, and what its pages compute from a view, written again in Python."""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

from untemplate._internal.inspector import Case

HERMES = 'Sure. <tool_call>\n{"name": "f", "arguments": {"x": "a b"}}\n</tool_call>'
HOSTILE = (
    "<think>Hm 😀.</think>\n\n<b onclick=alert(1)>x</b><script>document.title='broken'</script>"
    "<img src=x onerror=\"document.title='broken'\">&lt;i&gt; \u202egnp.exe\u200b\x07"
    '<tool_call>\n{"name": "f", "arguments": {"code": "</script><script>document.title=1</script>"}}\n</tool_call>'
    "</tool_call>"
)
CASES = [
    Case(text=HERMES, format="hermes"),
    Case(text=HOSTILE, format="hermes+qwen3"),
    Case(text="", format="hermes"),
    Case(text="plain text, and a < b", format="hermes+qwen3"),
    Case(text="hm</think>yes", format="hermes+qwen3", prompt="<|im_start|>assistant\n<think>\n"),
    Case(text='<tool_call>{"name": "f", "arguments": {"x": ', format="hermes", finish_reason="length"),
    Case(text='<think>a<tool_call>{"name": "f", "arguments": {}}</tool_call> no</think>b', format="hermes+qwen3"),
    Case(text='`<tool_call>{"name": "f", "arguments": {}}</tool_call>`', format="hermes"),
    Case(text='[{"name": "f", "arguments": {"x": 1}}]', format="llama3_json", tools=[]),
    Case(text="[f(x=1, y='a😀b')]", format="pythonic"),
    Case(
        text="<tool_call>\n<function=f>\n<parameter=n>\n12\n</parameter>\n</function>\n</tool_call>",
        format="qwen3_coder",
        tools=[
            {
                "type": "function",
                "function": {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            }
        ],
    ),
    Case(
        text="<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
        '<|constrain|>json<|message|>{"x": 1}<|call|>',
        format="gpt-oss",
    ),
    Case(text="Done.<|im_end|>\n", format="hermes"),
    Case(text=HERMES, format="hermes", policy={"unknown_tools": "drop"}, tools=[]),
    Case(text=HERMES, format="hermes", policy={"repair": "syntax"}),
    Case(
        format="hermes",
        tokens=[(9, "Sure."), (1, "<tool_call>"), (8, '{"name": "f", "arg'), (7, 'uments": {}}'), (2, "</tool_call>")],
    ),
]


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def length_at(view: dict[str, Any], field: int, place: int) -> int:
    """Return the length of a field of the message after a place, as ``time.js`` does."""
    runs = [run for run in view["growth"] if run[1] == field]
    index = bisect_right([run[0] for run in runs], place) - 1
    if index < 0:
        return 0
    start, _, length, steps = runs[index]
    return int(length + min(place - start, steps - 1))


def events(deltas: list[dict[str, Any]], finish_reason: str) -> str:
    """Return deltas as a server sends them."""
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
