"""Gemma 4: ``call:name{key:<|"|>text<|"|>,n:1}`` in ``<|tool_call>`` … ``<tool_call|>``; reasoning in a channel.

The template of gemma-4-31B-it shows both (macro ``format_argument``, the tool_calls branch). A string is written
between two ``<|"|>`` tokens without escapes. The channel of reasoning may open again. Models also write
``name(key="v")`` (omlx#1886, hermes-agent#7449) and ``key=value`` (ollama#17882), which every parser of literals
accepts.
"""

from __future__ import annotations

from ...format import Format, LiteralArguments, Marker, NamedBody, Reasoning, Tools
from .._family import Entry, template, turn

TURN = turn("<|turn>model\n", "<turn|>", "<|tool_response>", "<eos>")

REASONING = Format(
    name="gemma4",
    turn=TURN,
    reasoning=Reasoning(
        # Ollama's Gemma4Parser takes the channel's name off the thoughts, if it is there.
        open=Marker("<|channel>thought\n", ("<|channel>",)),
        # Models name the next channel in place of the close (the "response" after "thought").
        close=Marker("\n<channel|>", ("<|channel>response\n",)),
        repeats=True,
    ),
    special_tokens=("<turn|>", "<|tool_response>", "<|channel>", "<channel|>"),
)

CALL_OPEN = Marker(
    "<|tool_call>call:",
    # Models write the opener without "call" (vllm#54778), and "call:" without the opener
    # (vLLM's test_gemma4_regex_and_bare_calls.py).
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
            # The template writes <|tool_response> next, and models write it themselves as well (Ollama's Gemma4Parser).
            call_close=Marker("<tool_call|>", ("<tool_call|><|tool_response>",)),
        ),
    ),
    special_tokens=("<turn|>", "<|tool_response>", "<|tool_call>", "<tool_call|>", '<|"|>'),
)

ENTRIES = (
    Entry(
        name="gemma4",
        kind="reasoning",
        format=REASONING,
        aliases=("gemma-4",),
        models=("google/gemma-4-*",),
        engines=("vllm", "dynamo", "ollama", "sglang", "tensorrt-llm"),
        evidence=(template("google-gemma-4-31B-it.jinja"),),
    ),
    Entry(
        name="gemma4",
        kind="tool",
        format=GEMMA4,
        aliases=(
            "gemma-4",
            "gemma4-no-thinking",
            "gemma",
        ),
        models=("google/gemma-4-*",),
        headers=("<|turn>model", "<tool_response|>"),
        engines=("vllm", "sglang", "dynamo", "ollama"),
        evidence=(template("google-gemma-4-31B-it.jinja"),),
    ),
)
