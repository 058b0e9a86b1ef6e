"""Inkling: a turn is blocks, each ``<|message_model|>`` [name] ``<|content_kind|>`` text ``<|end_message|>``.

The text of a tool block is ``{"name": …, "args": {…}}``. Its header may name the tool as well, which a Format cannot
describe: such a name stays in the content, so the tool entry is unverified.
"""

from __future__ import annotations

from ..format import Content, Format, JsonBody, Marker, Reasoning, Tools
from .family import Entry, turn, vllm

TURN = turn("<|message_model|>", "<|content_model_end_sampling|>")
# The end of a text block equals the end of a thinking block, so it needs the token after it to close content.
CONTENT = Content(
    open=Marker("<|message_model|><|content_text|>", ("<|content_text|>",)),
    close=Marker("<|end_message|><|content_model_end_sampling|>"),
)
TOKENS = ("<|message_model|>", "<|content_text|>", "<|end_message|>", "<|content_model_end_sampling|>")

REASONING = Format(
    name="inkling",
    turn=TURN,
    reasoning=Reasoning(
        open=Marker("<|content_thinking|>", ("<|message_model|><|content_thinking|>",)),
        close=Marker("<|end_message|>"),
        repeats=True,
    ),
    content=CONTENT,
    special_tokens=("<|content_thinking|>", *TOKENS),
)

INKLING = Format(
    name="inkling",
    turn=TURN,
    content=CONTENT,
    tools=(
        Tools(
            call_open=Marker("<|message_model|><|content_invoke_tool_json|>", ("<|content_invoke_tool_json|>",)),
            body=JsonBody(arguments_key="args", accepted_arguments_keys=("arguments", "parameters")),
            call_close=Marker("<|end_message|>"),
        ),
    ),
    special_tokens=("<|content_invoke_tool_json|>", *TOKENS),
)

ENTRIES = (
    Entry(
        name="inkling",
        kind="reasoning",
        format=REASONING,
        models=("thinkingmachines/Inkling*",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/parser/inkling.py"),),
    ),
    Entry(
        name="inkling",
        kind="tool",
        format=INKLING,
        models=("thinkingmachines/Inkling*",),
        headers=("<|message_model|>",),
        engines=("vllm", "sglang", "dynamo"),
        evidence=(vllm("vllm/parser/inkling.py", "but for the name in a header"),),
        verified=False,
    ),
)
