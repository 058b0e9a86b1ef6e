"""Llama 3.1, 3.2, 3.3 and 4.

* Llama 3 writes a bare JSON object, ``{"name": …, "parameters": …}`` (template of Llama-3.1-8B-Instruct, the tool_calls
  branch), also after ``<|python_tag|>``. ``; `` separates several calls (lemonade#1562). Its built-in tools are called
  with ``<|python_tag|>name.call(key="value")`` (the same template, the builtin_tools branch). Llama 4's
  ``<|python_start|>`` and ``<|python_end|>`` are read too: its users name the JSON parser for it (vllm#16214).
* Llama 4 writes Python calls in ``<|python_start|>[…]<|python_end|>``, the same list without markers, and JSON like
  Llama 3 in either place (vllm#46863, vllm#16214).
"""

from __future__ import annotations

from ...format import Format, JsonBody, LiteralArguments, Marker, NamedBody, Tools
from .._family import Entry, report, template, turn, vllm
from . import plain

BODY = JsonBody(arguments_key="parameters", accepted_arguments_keys=("arguments",))

BARE_JSON = Tools(body=BODY, separator=Marker("; "), stray_closes=plain.SURPLUS)

LLAMA3_JSON = Format(
    name="llama3_json",
    turn=turn("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", "<|eom_id|>"),
    tools=(
        BARE_JSON,
        Tools(
            body=BODY,
            section_open=Marker("<|python_tag|>", ("<|python_start|>",)),
            separator=Marker("; "),
            stray_closes=("<|python_end|>",),
        ),
        Tools(
            body=NamedBody(name_close=Marker(".call"), arguments=LiteralArguments()),
            section_open=Marker("<|python_tag|>"),
            separator=Marker("; "),
            stray_closes=("<|python_end|>",),
        ),
    ),
    special_tokens=("<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
)

PYTHON_LIST = Tools(
    body=NamedBody(arguments=LiteralArguments()),
    list_open=Marker("["),
    list_close=Marker("]"),
    separator=Marker(", "),
)
SECTION_OPEN, SECTION_CLOSE = Marker("<|python_start|>"), Marker("<|python_end|>")

LLAMA4_PYTHONIC = Format(
    name="llama4_pythonic",
    turn=turn("<|header_start|>assistant<|header_end|>\n\n", "<|eot|>", "<|eom|>"),
    tools=(
        Tools(
            section_open=SECTION_OPEN,
            section_close=SECTION_CLOSE,
            body=PYTHON_LIST.body,
            list_open=PYTHON_LIST.list_open,
            list_close=PYTHON_LIST.list_close,
            separator=PYTHON_LIST.separator,
        ),
        Tools(section_open=SECTION_OPEN, section_close=SECTION_CLOSE, body=BODY, separator=Marker("; ")),
        PYTHON_LIST,
        BARE_JSON,
    ),
    special_tokens=("<|eot|>", "<|eom|>", "<|python_start|>", "<|python_end|>"),
)

LLAMA4_JSON = Format(
    name="llama4_json",
    turn=LLAMA4_PYTHONIC.turn,
    tools=(
        BARE_JSON,
        Tools(section_open=SECTION_OPEN, section_close=SECTION_CLOSE, body=BODY, separator=Marker("; ")),
    ),
    special_tokens=LLAMA4_PYTHONIC.special_tokens,
)

ENTRIES = (
    Entry(
        name="llama3_json",
        kind="tool",
        format=LLAMA3_JSON,
        aliases=(
            "llama3",
            "llama",
            "llama_3",
        ),
        models=(
            "meta-llama/Llama-3.1-*",
            "meta-llama/Llama-3.2-*",
            "meta-llama/Llama-3.3-*",
            "meta-llama/Meta-Llama-3.1-*",
        ),
        model_types=("mllama",),
        headers=("<|start_header_id|>assistant<|end_header_id|>",),
        engines=("vllm", "sglang", "vllm.rs", "llama.cpp", "dynamo"),
        evidence=(
            template("meta-llama-Llama-3.1-8B-Instruct.jinja"),
            template("meta-llama-Llama-3.2-3B-Instruct.jinja"),
            template("meta-llama-Llama-3.3-70B-Instruct.jinja"),
        ),
    ),
    Entry(
        name="llama4_pythonic",
        kind="tool",
        format=LLAMA4_PYTHONIC,
        models=("meta-llama/Llama-4-*",),
        model_types=("llama4",),
        headers=("<|header_start|>assistant<|header_end|>",),
        engines=("vllm",),
        evidence=(vllm("vllm/tool_parsers/llama4_pythonic_tool_parser.py"),),
    ),
    Entry(
        name="llama4_json",
        kind="tool",
        format=LLAMA4_JSON,
        aliases=("llama4",),
        models=("meta-llama/Llama-4-*",),
        model_types=("llama4",),
        engines=("vllm",),
        evidence=(report("vllm-project/vllm#46863", "Llama 4 writes JSON calls"),),
    ),
)
