"""Formats of no family: ``passthrough`` (text as it comes), ``identity`` (no reasoning) and ``json`` (bare JSON calls).

Rests on spec 5, which names ``passthrough`` and ``json``; ``identity`` is vLLM's reasoning parser of that name. The
templates without tool markup (gemma-2-2b-it, Phi-3.5-mini-instruct, rwkv-world) need nothing more than passthrough.
"""

from __future__ import annotations

from ..format import Format, JsonBody, Marker, Tools
from .family import TURN_ENDS, Entry, Evidence, template, turn, vllm

VLLM_RS = "guoqingbao/vllm.rs src/tools/parser.rs"

# A fence in place of the list's brackets, or around them: still bare, so only for an offered name at a line's start.
FENCED = Tools(
    body=JsonBody(),
    list_open=Marker("```json\n", ("```json\n[", "```json[", "```json [")),
    list_close=Marker("\n```", ("]\n```", "]```")),
    separator=Marker(", ", ("; ", "\n")),
)

JSON = Format(
    name="json",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(
        Tools(
            body=JsonBody(),
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", ", ("; ", "\n")),
        ),
        FENCED,
    ),
    special_tokens=TURN_ENDS,
)

ENTRIES = (
    Entry(
        name="identity",
        kind="reasoning",
        format=Format(name="identity"),
        aliases=("passthrough",),
        models=("any",),
        engines=("vllm",),
        evidence=(vllm("vllm/reasoning/identity_reasoning_parser.py"),),
    ),
    Entry(
        name="passthrough",
        kind="tool",
        format=Format(name="passthrough"),
        models=("any",),
        engines=("vllm.rs",),
        evidence=(
            template("google-gemma-2-2b-it.jinja"),
            template("microsoft-Phi-3.5-mini-instruct.jinja"),
            Evidence("engine", VLLM_RS, "2026-11-22"),
        ),
    ),
    Entry(
        name="json",
        kind="tool",
        format=JSON,
        models=("any",),
        engines=("vllm.rs", "sglang"),
        evidence=(Evidence("engine", VLLM_RS, "2026-11-22"),),
    ),
)
