"""Tencent Hunyuan A13B, Hy3 and Hy4.

* A13B writes a JSON list in ``<tool_calls>``, inside the ``<answer>`` that follows ``<think>``.
* Hy3 writes a name, ``<tool_sep>``, and ``<arg_key>`` and ``<arg_value>`` pairs with a newline between them. Hy4 writes
  the same without newline and separator.
* The checkpoint of Hy4 ends every tag in ``:opensource>``. Each checkpoint chooses this ending, so plain tags are
  accepted.
"""

from __future__ import annotations

from ..format import Content, Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .family import Entry, turn, vllm

TURN = turn("<|extra_0|>", "<|eos|>")
CONTENT = Content(open=Marker("<answer>\n"), close=Marker("\n</answer>"), written="with_reasoning")

REASONING = Format(
    name="hunyuan_a13b",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n")),
    content=CONTENT,
    special_tokens=("<|eos|>",),
)

HUNYUAN_A13B = Format(
    name="hunyuan_a13b",
    turn=TURN,
    content=CONTENT,
    tools=(
        Tools(
            section_open=Marker("<tool_calls>"),
            section_close=Marker("</tool_calls>"),
            list_open=Marker("["),
            list_close=Marker("]"),
            separator=Marker(", "),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<|eos|>",),
)

HY_TURN = turn("<｜hy_Assistant｜>", "<|eos|>")

HY3_REASONING = Format(
    name="hy_v3",
    turn=HY_TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>")),
    special_tokens=("<|eos|>", "<think>", "</think>"),
)

HY3 = Format(
    name="hy_v3",
    turn=HY_TURN,
    tools=(
        Tools(
            section_open=Marker("<tool_calls>\n"),
            section_close=Marker("</tool_calls>"),
            call_open=Marker("<tool_call>"),
            body=NamedBody(
                name_close=Marker("<tool_sep>\n"),
                arguments=TaggedArguments(
                    key_open=Marker("<arg_key>"),
                    key_close=Marker("</arg_key>\n"),
                    value_open=Marker("<arg_value>"),
                    value_close=Marker("</arg_value>\n"),
                ),
            ),
            call_close=Marker("</tool_call>\n"),
        ),
    ),
    special_tokens=(
        "<|eos|>",
        "<tool_calls>",
        "</tool_calls>",
        "<tool_call>",
        "</tool_call>",
        "<tool_sep>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
    ),
)


def _hy4(tag: str, after: str = "") -> Marker:
    """Return a marker as Hy4's checkpoint spells it; the plain tag is accepted."""
    return Marker(f"{tag[:-1]}:opensource>{after}", (tag,))


HY4_REASONING = HY3_REASONING.extend(
    name="hy_v4",
    reasoning__open=_hy4("<think>"),
    reasoning__close=_hy4("</think>"),
    special_tokens=("<|eos|>", "<think:opensource>", "</think:opensource>"),
)

HY4 = Format(
    name="hy_v4",
    turn=HY_TURN,
    tools=(
        Tools(
            section_open=_hy4("<tool_calls>", "\n"),
            section_close=_hy4("</tool_calls>"),
            call_open=_hy4("<tool_call>"),
            body=NamedBody(
                arguments=TaggedArguments(
                    key_open=_hy4("<arg_key>"),
                    key_close=_hy4("</arg_key>"),
                    value_open=_hy4("<arg_value>"),
                    value_close=_hy4("</arg_value>"),
                ),
            ),
            call_close=_hy4("</tool_call>", "\n"),
        ),
    ),
    special_tokens=(
        "<|eos|>",
        "<tool_calls:opensource>",
        "</tool_calls:opensource>",
        "<tool_call:opensource>",
        "</tool_call:opensource>",
        "<arg_key:opensource>",
        "</arg_key:opensource>",
        "<arg_value:opensource>",
        "</arg_value:opensource>",
    ),
)

ENTRIES = (
    Entry(
        name="hunyuan_a13b",
        kind="reasoning",
        format=REASONING,
        aliases=("hunyuan",),
        models=("tencent/Hunyuan-A13B-Instruct",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/reasoning/hunyuan_a13b_reasoning_parser.py"),),
    ),
    Entry(
        name="hunyuan_a13b",
        kind="tool",
        format=HUNYUAN_A13B,
        aliases=("hunyuan",),
        models=("tencent/Hunyuan-A13B-Instruct",),
        headers=("<|extra_0|>",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/tool_parsers/hunyuan_a13b_tool_parser.py"),),
    ),
    Entry(
        name="hy_v3",
        kind="reasoning",
        format=HY3_REASONING,
        models=("tencent/Hy3-preview",),
        engines=("vllm",),
        evidence=(vllm("vllm/reasoning/hy_v3_reasoning_parser.py"),),
    ),
    Entry(
        name="hy_v4",
        kind="reasoning",
        format=HY4_REASONING,
        models=("tencent/Hy4-preview",),
        engines=("vllm",),
        evidence=(vllm("vllm/tool_parsers/hy_v4_tool_parser.py", "the tags' ending, think included"),),
    ),
    Entry(
        name="hy_v3",
        kind="tool",
        format=HY3,
        models=("tencent/Hy3-preview",),
        headers=("<｜hy_Assistant｜>",),
        engines=("vllm",),
        evidence=(vllm("vllm/tool_parsers/hy_v3_tool_parser.py", "and its tests"),),
    ),
    Entry(
        name="hy_v4",
        kind="tool",
        format=HY4,
        models=("tencent/Hy4-preview",),
        engines=("vllm",),
        evidence=(vllm("vllm/tool_parsers/hy_v4_tool_parser.py", "and its tests"),),
    ),
)
