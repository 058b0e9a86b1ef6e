"""Muse Glimmer: messages with recipients, ``<|start|>assistant to=self<|message|>`` … ``<|eom|>``; calls in ATEM tags.

The recipient ``self`` is reasoning, ``user`` is content, and a tool's name is a call. The header of a call and its tags
both name the tool, which a Format cannot describe: the header stays in the content, so the tool entry is unverified.
"""

from __future__ import annotations

from ..format import Content, Format, Marker, NamedBody, Reasoning, TaggedArguments, Tools, Turn
from .family import Entry, vllm

TURN = Turn(start=Marker("<|start|>assistant"), end=Marker("<|end_of_text|>"))
CONTENT = Content(
    open=Marker(
        "<|start|>assistant to=user<|message|>",
        # Models leave out the recipient, or write their namespace, before a call (Ollama's glimmer_test.go).
        (
            " to=user<|message|>",
            "<|message|>",
            "<|start|>assistant<|message|>",
            " to=muse<|message|>",
            "<|start|>assistant to=muse<|message|>",
        ),
    ),
    close=Marker("<|eot|>"),
)
TOKENS = ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>")

REASONING = Format(
    name="muse",
    turn=TURN,
    reasoning=Reasoning(
        open=Marker(" to=self<|message|>", ("<|start|>assistant to=self<|message|>",)),
        close=Marker("<|eom|>"),
        repeats=True,
    ),
    content=CONTENT,
    special_tokens=TOKENS,
)

MUSE = Format(
    name="muse",
    turn=TURN,
    content=CONTENT,
    tools=(
        Tools(
            section_open=Marker("<atem:function_calls>\n"),
            section_close=Marker("</atem:function_calls><|eom|>", ("</atem:function_calls>",)),
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
    special_tokens=TOKENS,
)

ENTRIES = (
    Entry(
        name="muse",
        kind="reasoning",
        format=REASONING,
        aliases=("muse_glimmer", "musespark1x", "glimmer"),
        models=("muse-glimmer",),
        engines=("vllm", "sglang", "ollama"),
        evidence=(vllm("examples/tool_chat_template_muse_glimmer.jinja"),),
    ),
    Entry(
        name="muse",
        kind="tool",
        format=MUSE,
        aliases=("muse_glimmer", "musespark1x", "glimmer"),
        models=("muse-glimmer",),
        engines=("vllm", "sglang", "ollama"),
        evidence=(vllm("examples/tool_chat_template_muse_glimmer.jinja", "but for the headers of calls"),),
        verified=False,
    ),
)
