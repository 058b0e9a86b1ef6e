"""GigaChat 3: a message of the role ``function call`` that holds one JSON object.

The template of GigaChat3-10B-A1.8B shows it (macro ``render_function_call``, namespace ``add_tokens``). The model ends
its own message and opens the next one.
"""

from __future__ import annotations

from ..format import Format, JsonBody, Marker, Tools
from .family import Entry, template, turn

GIGACHAT3 = Format(
    name="gigachat3",
    turn=turn("assistant<|role_sep|>\n", "<|message_sep|>\n\n", "</s>"),
    tools=(
        Tools(
            call_open=Marker(
                "<|message_sep|>\n\nfunction call<|role_sep|>\n",
                # The second is GigaChat 3.1's (vllm#47907).
                ("function call<|role_sep|>", "<|function_call|>"),
            ),
            body=JsonBody(),
        ),
    ),
    special_tokens=("</s>", "<|message_sep|>", "<|role_sep|>"),
)

ENTRIES = (
    Entry(
        name="gigachat3",
        kind="tool",
        format=GIGACHAT3,
        models=("ai-sage/GigaChat3-*",),
        headers=("assistant<|role_sep|>",),
        engines=("vllm", "sglang", "llama.cpp"),
        evidence=(template("GigaChat3-10B-A1.8B.jinja"),),
    ),
)
