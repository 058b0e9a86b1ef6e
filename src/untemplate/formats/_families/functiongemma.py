"""FunctionGemma: ``call:name{key:<escape>text<escape>}`` in ``<start_function_call>`` … ``<end_function_call>``."""

from __future__ import annotations

from ...format import Format, LiteralArguments, Marker, NamedBody, Tools
from .._family import Entry, turn, vllm

FUNCTIONGEMMA = Format(
    name="functiongemma",
    turn=turn("<start_of_turn>model\n", "<end_of_turn>", "<start_function_response>"),
    tools=(
        Tools(
            call_open=Marker("<start_function_call>call:"),
            body=NamedBody(
                arguments=LiteralArguments(
                    open="{",
                    close="}",
                    assign=":",
                    separator=",",
                    quotes=("<escape>", '"', "'"),
                    escapes=False,
                    words=("true", "false", "null"),
                    quoted_keys=False,
                ),
            ),
            call_close=Marker("<end_function_call>"),
        ),
    ),
    special_tokens=(
        "<end_of_turn>",
        "<start_function_response>",
        "<start_function_call>",
        "<end_function_call>",
        "<escape>",
    ),
)

ENTRIES = (
    Entry(
        name="functiongemma",
        kind="tool",
        format=FUNCTIONGEMMA,
        aliases=("function_gemma",),
        models=("google/functiongemma-270m-it",),
        headers=("<start_of_turn>model",),
        engines=("vllm", "ollama"),
        evidence=(vllm("vllm/tool_parsers/functiongemma_tool_parser.py"),),
    ),
)
