"""Formats of no family: ``passthrough`` (all text is content), ``identity`` (no reasoning), ``json`` (bare JSON calls).

vllm.rs has parsers with the names ``passthrough`` and ``json``, vLLM has a reasoning parser ``identity``. Templates
without tool markup (gemma-2-2b-it, Phi-3.5-mini-instruct, rwkv-world) need passthrough only.
"""

from __future__ import annotations

from ..format import Format, JsonBody, Marker, Tools
from .family import TURN_ENDS, Entry, Evidence, template, turn, vllm

VLLM_RS = "guoqingbao/vllm.rs src"

# A fence instead of the list's brackets, or around them. It is bare: a call needs an offered name at a line's start.
FENCED = Tools(
    body=JsonBody(),
    list_open=Marker("```json\n", ("```json\n[", "```json[", "```json [")),
    list_close=Marker("\n```", ("]\n```", "]```")),
    separator=Marker(", ", ("; ", "\n")),
)

# Small models write one bracket too many (ollama#17638).
SURPLUS = ("}", "]")

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
            stray_closes=SURPLUS,
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
        evidence=(vllm("vllm/reasoning/identity_reasoning_parser.py"),),
    ),
    Entry(
        name="passthrough",
        kind="tool",
        format=Format(name="passthrough"),
        aliases=("role_colon",),
        models=("any",),
        engines=("vllm.rs", "ollama"),
        evidence=(
            template("google-gemma-2-2b-it.jinja"),
            template("microsoft-Phi-3.5-mini-instruct.jinja"),
            Evidence("engine", f"{VLLM_RS}/server/parser.rs", "2026-11-22"),
        ),
    ),
    Entry(
        name="json",
        kind="tool",
        format=JSON,
        models=("any",),
        engines=("vllm.rs", "sglang"),
        evidence=(Evidence("engine", f"{VLLM_RS}/tools/parser.rs", "2026-11-22"),),
    ),
)
