"""Muse Glimmer: messages with recipients, ``<|start|>assistant to=self<|message|>`` … ``<|eom|>``; calls in ATEM tags.

The recipient ``self`` is reasoning, ``user`` is content, and a tool's name is a call. The header of a call and its tags
both name the tool; models leave out the recipient of a call, or write their namespace before it.
"""

from __future__ import annotations

from ...format import Channels, Format, Marker, NamedBody, TaggedArguments, Tools, Turn
from .._family import Entry, sglang, vllm

MUSE = Format(
    name="muse",
    turn=Turn(start=Marker("<|start|>assistant"), end=Marker("<|eot|>", ("<|end_of_text|>",))),
    channels=Channels(
        open=Marker("<|start|>"),
        role="assistant",
        recipient=Marker(" to="),
        body=Marker("<|message|>"),
        close=Marker("<|eom|>"),
        reasoning=("self",),
        content=("user", "muse"),
    ),
    tools=(
        Tools(
            section_open=Marker("<atem:function_calls>\n"),
            section_close=Marker("</atem:function_calls>"),
            call_open=Marker('<atem:invoke name="'),
            body=NamedBody(
                name_close=Marker('">\n'),
                arguments=TaggedArguments(
                    key_open=Marker('<atem:parameter name="'),
                    key_close=Marker('">'),
                    value_close=Marker("</atem:parameter>\n"),
                ),
            ),
            call_close=Marker("</atem:invoke>\n"),
            optional=("section",),
        ),
    ),
    special_tokens=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
)

TEMPLATE = vllm("examples/tool_chat_template_muse_glimmer.jinja")

ENTRIES = (
    Entry(
        name="muse",
        kind="reasoning",
        format=MUSE,
        aliases=("muse_glimmer", "musespark1x", "muse_spark", "glimmer"),
        models=("muse-glimmer", "meta-models/Muse-Glimmer-*"),
        engines=("vllm", "sglang", "ollama"),
        evidence=(TEMPLATE,),
    ),
    Entry(
        name="muse",
        kind="tool",
        format=MUSE,
        aliases=("muse_glimmer", "musespark1x", "muse_spark", "glimmer"),
        models=("muse-glimmer", "meta-models/Muse-Glimmer-*"),
        engines=("vllm", "sglang", "ollama"),
        evidence=(TEMPLATE, sglang("function_call/muse_glimmer_detector.py")),
    ),
)
