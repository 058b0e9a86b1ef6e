"""Gemma 4: ``call:name{key:<|"|>text<|"|>,n:1}`` in ``<|tool_call>`` … ``<tool_call|>``; thoughts in a channel.

Rests on the template of gemma-4-31B-it (macro ``format_argument``, the tool_calls branch) and on the cases. A string
stands between two ``<|"|>`` tokens and is not escaped. The thought channel may open again (tpl-0087, tpl-0088).
``name(key="v")`` (omlx#1854) and ``key=value`` (ollama#17882) need no word here: a reader of literals takes both.
"""

from __future__ import annotations

from ..format import Format, LiteralArguments, Marker, NamedBody, Reasoning, Tools
from .family import Entry, template, turn

TURN = turn("<|turn>model\n", "<turn|>", "<|tool_response>", "<eos>")

REASONING = Format(
    name="gemma4",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<|channel>thought\n"), close=Marker("\n<channel|>"), repeats=True),
    special_tokens=("<turn|>", "<|tool_response>", "<|channel>", "<channel|>"),
)

CALL_OPEN = Marker(
    "<|tool_call>call:",
    # The opener comes without "call", and "call:" without the opener (omlx#1854, #1886; hermes-agent#7449).
    ("<|tool_call>:", "call:"),
)

GEMMA4 = Format(
    name="gemma4",
    turn=TURN,
    tools=(
        Tools(
            call_open=CALL_OPEN,
            body=NamedBody(
                arguments=LiteralArguments(
                    open="{",
                    close="}",
                    assign=":",
                    separator=",",
                    quotes=('<|"|>', '"', "'"),
                    escapes=False,
                    words=("true", "false", "null"),
                    quoted_keys=False,
                ),
            ),
            call_close=Marker("<tool_call|>"),
        ),
    ),
    special_tokens=("<turn|>", "<|tool_response>", "<|tool_call>", "<tool_call|>", '<|"|>'),
)

ENTRIES = (
    Entry(
        name="gemma4",
        kind="reasoning",
        format=REASONING,
        models=("google/gemma-4-*",),
        engines=("vllm", "dynamo"),
        evidence=(template("google-gemma-4-31B-it.jinja"),),
    ),
    Entry(
        name="gemma4",
        kind="tool",
        format=GEMMA4,
        models=("google/gemma-4-*",),
        headers=("<|turn>model", "<tool_response|>"),
        engines=("vllm", "sglang", "dynamo"),
        evidence=(template("google-gemma-4-31B-it.jinja"),),
    ),
)
