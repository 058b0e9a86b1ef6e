"""Mistral: ``[TOOL_CALLS]``, then ``name[ARGS]{…}`` for each call or one JSON list; reasoning in ``[THINK]``.

* ``[TOOL_CALLS]name[ARGS]{…}`` (tokenizer v11 and later): Ministral-3-14B-Reasoning-2512, Devstral-Small-2507.
* ``[TOOL_CALLS]name[CALL_ID]123456789[ARGS]{…}``: Mistral-Small-3.2-24B-Instruct-2506.
* ``[TOOL_CALLS][{"name": …, "arguments": …, "id": …}]`` (v3 to v7): Mistral-Nemo-Instruct-2407.

Magistral-Small-2506 reasons in plain ``<think>`` text, as its system prompt asks; later models have tokens for it.

Ids are nine letters or digits: the templates of Mistral-Nemo and Mistral-Small-3.2 raise for any other id.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, NamedBody, Reasoning, Tools
from .._family import Entry, Evidence, template, turn, vllm

TURN = turn("[/INST]", "</s>")

# Some models close what [TOOL_CALLS] opened (Ollama's tools_test.go).
STRAY = ("[/TOOL_CALLS]",)
NAMED = Tools(
    call_open=Marker("[TOOL_CALLS]"),
    body=NamedBody(name_close=Marker("[ARGS]"), id_open=Marker("[CALL_ID]")),
    stray_closes=STRAY,
)
JSON_LIST = Tools(
    section_open=Marker("[TOOL_CALLS]"),
    list_open=Marker("["),
    list_close=Marker("]"),
    stray_closes=STRAY,
    list_optional=True,
    separator=Marker(", "),
    body=JsonBody(id_key="id"),
)

REASONING = Format(
    name="mistral",
    turn=TURN,
    reasoning=Reasoning(open=Marker("[THINK]"), close=Marker("[/THINK]")),
    special_tokens=("</s>", "[THINK]", "[/THINK]"),
)

MAGISTRAL = REASONING.extend(
    name="magistral",
    reasoning__open=Marker("<think>\n", ("[THINK]",)),
    reasoning__close=Marker("\n</think>\n\n", ("[/THINK]",)),
)

MISTRAL = Format(
    name="mistral",
    turn=TURN,
    tools=(NAMED, JSON_LIST),
    ids="alphanumeric9",
    special_tokens=("</s>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
)

ENTRIES = (
    Entry(
        name="mistral",
        kind="reasoning",
        format=REASONING,
        aliases=("ministral",),
        models=("mistralai/Magistral-*", "mistralai/Ministral-3-*-Reasoning-*"),
        engines=("vllm", "sglang", "dynamo", "ollama"),
        evidence=(
            template("mistralai-Ministral-3-14B-Reasoning-2512.jinja"),
            Evidence(
                "report", "mistralai/Magistral-Small-2507 README.md", note="[THINK] and [/THINK] are special tokens"
            ),
        ),
    ),
    Entry(
        name="magistral",
        kind="reasoning",
        format=MAGISTRAL,
        models=("mistralai/Magistral-Small-2506",),
        evidence=(vllm("vllm/parser/mistral.py", "v11 tokenizers have plain-text markers of reasoning"),),
    ),
    Entry(
        name="mistral",
        kind="tool",
        format=MISTRAL,
        aliases=("ministral",),
        models=("mistralai/*",),
        model_types=("mistral3", "mixtral"),
        headers=("[/INST]", "[/TOOL_RESULTS]"),
        engines=("vllm", "sglang", "vllm.rs", "llama.cpp", "dynamo", "ollama"),
        evidence=(
            template("mistralai-Ministral-3-14B-Reasoning-2512.jinja"),
            template("unsloth-mistral-Devstral-Small-2507.jinja"),
            template("Mistral-Small-3.2-24B-Instruct-2506.jinja"),
            template("mistralai-Mistral-Nemo-Instruct-2407.jinja"),
        ),
    ),
    Entry(
        name="mistral_v3",
        kind="tool",
        format=MISTRAL.extend(name="mistral_v3", tools=(JSON_LIST, NAMED)),
        models=("mistralai/Mistral-Nemo-Instruct-2407", "mistralai/Mistral-7B-Instruct-v0.3"),
        evidence=(template("mistralai-Mistral-Nemo-Instruct-2407.jinja"),),
    ),
)
