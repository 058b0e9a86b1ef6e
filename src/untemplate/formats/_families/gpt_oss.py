"""gpt-oss (Harmony): a turn is messages with headers. The channel marks reasoning or content, the recipient a call.

The parts of a header come in any order: the template writes `` to=functions.x<|channel|>commentary json``, the model
``<|channel|>commentary to=functions.x <|constrain|>json`` (OpenAI's description of the format).
"""

from __future__ import annotations

from ...format import Channels, Format, Marker, Turn
from .._family import Entry, Evidence, template

HARMONY = "openai/harmony docs/format.md"

GPT_OSS = Format(
    name="gpt-oss",
    turn=Turn(start=Marker("<|start|>assistant"), end=Marker("<|return|>", ("<|endoftext|>",))),
    channels=Channels(
        open=Marker("<|start|>"),
        role="assistant",
        channel=Marker("<|channel|>"),
        recipient=Marker(" to="),
        constraint=Marker(" <|constrain|>"),
        body=Marker("<|message|>"),
        close=Marker("<|end|>"),
        call_close=Marker("<|call|>"),
        namespace="functions.",
        reasoning=("analysis",),
        content=("final", "commentary"),
        preamble="commentary",
        call_channel="commentary",
        call_constraint="json",
    ),
    special_tokens=(
        "<|return|>",
        "<|call|>",
        "<|start|>",
        "<|end|>",
        "<|channel|>",
        "<|constrain|>",
        "<|message|>",
    ),
)

ENTRIES = (
    Entry(
        name="gpt-oss",
        kind="reasoning",
        format=GPT_OSS,
        aliases=("openai_gptoss", "gptoss", "gpt_oss"),
        models=("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
        engines=("vllm", "sglang", "dynamo"),
        evidence=(
            template("openai-gpt-oss-120b.jinja"),
            Evidence("engine", HARMONY, "2026-11-22", "headers as the model writes them"),
        ),
    ),
    Entry(
        name="gpt-oss",
        kind="tool",
        format=GPT_OSS,
        aliases=("openai", "openai_gptoss", "gptoss", "gpt_oss", "harmony"),
        models=("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
        architectures=(("gpt-oss", "gpt_oss"),),
        headers=("<|start|>assistant",),
        engines=("vllm", "sglang", "llama.cpp", "dynamo", "ollama"),
        evidence=(
            template("openai-gpt-oss-120b.jinja"),
            Evidence("engine", HARMONY, "2026-11-22", "headers as the model writes them"),
        ),
    ),
)
