"""Tencent Hunyuan A13B, Hy3 and Hy4.

* A13B writes a JSON list in ``<tool_calls>``, inside the ``<answer>`` that follows ``<think>``.
* The dense models (0.5B to 7B) write a name and fenced JSON in ``<tool_call>``, inside ``<tool_calls>``.
* Hy3 writes a name, ``<tool_sep>``, and ``<arg_key>`` and ``<arg_value>`` pairs with a newline between them. Hy4 writes
  the same without newline and separator.
* The checkpoints of Hy3 and Hy4 end every tag in ``:opensource>``, that of Hy3-preview does not. Each checkpoint
  chooses this ending, so both spellings are accepted.
"""

from __future__ import annotations

from ...format import Content, Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, Evidence, report, sglang, turn, vllm

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

HUNYUAN_HERMES = Format(
    name="hunyuan_hermes",
    turn=turn("<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁2｜>"),
    content=CONTENT,
    tools=(
        Tools(
            section_open=Marker("<tool_calls>\n"),
            section_close=Marker("\n</tool_calls>"),
            call_open=Marker("<tool_call>"),
            call_close=Marker("\n```</tool_call>", ("\n```\n</tool_call>", "```</tool_call>")),
            separator=Marker("\n"),
            body=NamedBody(name_close=Marker("\n```json\n")),
        ),
    ),
    special_tokens=("<｜hy_place▁holder▁no▁2｜>",),
)

SUFFIX = ":opensource"


def _plain(tag: str, after: str = "") -> Marker:
    """Return a marker as Hy3-preview spells it; the ending of Hy3's checkpoint is accepted."""
    return Marker(tag + after, (f"{tag[:-1]}{SUFFIX}>",))


def _suffixed(tag: str, after: str = "") -> Marker:
    """Return a marker as Hy4's checkpoint spells it; the plain tag is accepted."""
    return Marker(f"{tag[:-1]}{SUFFIX}>{after}", (tag,))


HY_TURN = turn("<｜hy_Assistant｜>", "<｜hy_eos｜>", f"<｜hy_eos{SUFFIX}｜>", "<|eos|>")

HY3_REASONING = Format(
    name="hy_v3",
    turn=HY_TURN,
    reasoning=Reasoning(open=_plain("<think>"), close=_plain("</think>")),
    special_tokens=("<｜hy_eos｜>", "<think>", "</think>"),
)

HY3 = Format(
    name="hy_v3",
    turn=HY_TURN,
    tools=(
        Tools(
            section_open=_plain("<tool_calls>", "\n"),
            section_close=_plain("</tool_calls>"),
            call_open=_plain("<tool_call>"),
            body=NamedBody(
                name_close=_plain("<tool_sep>", "\n"),
                arguments=TaggedArguments(
                    key_open=_plain("<arg_key>"),
                    key_close=_plain("</arg_key>", "\n"),
                    value_open=_plain("<arg_value>"),
                    value_close=_plain("</arg_value>", "\n"),
                ),
            ),
            call_close=_plain("</tool_call>", "\n"),
        ),
    ),
    special_tokens=(
        "<｜hy_eos｜>",
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

HY4_REASONING = HY3_REASONING.extend(
    name="hy_v4",
    reasoning__open=_suffixed("<think>"),
    reasoning__close=_suffixed("</think>"),
    special_tokens=("<｜hy_eos:opensource｜>", "<think:opensource>", "</think:opensource>"),
)

HY4 = Format(
    name="hy_v4",
    turn=HY_TURN,
    tools=(
        Tools(
            section_open=_suffixed("<tool_calls>", "\n"),
            section_close=_suffixed("</tool_calls>"),
            call_open=_suffixed("<tool_call>"),
            body=NamedBody(
                arguments=TaggedArguments(
                    key_open=_suffixed("<arg_key>"),
                    key_close=_suffixed("</arg_key>"),
                    value_open=_suffixed("<arg_value>"),
                    value_close=_suffixed("</arg_value>"),
                ),
            ),
            call_close=_suffixed("</tool_call>", "\n"),
        ),
    ),
    special_tokens=(
        "<｜hy_eos:opensource｜>",
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
        aliases=(
            "hy3",
            "hy_v3_preview",
        ),
        models=("tencent/Hy3*",),
        engines=("vllm",),
        evidence=(vllm("vllm/reasoning/hy_v3_reasoning_parser.py"),),
    ),
    Entry(
        name="hy_v4",
        kind="reasoning",
        format=HY4_REASONING,
        models=("tencent/Hy4*",),
        model_types=("hy_v4_vl",),
        engines=("vllm",),
        evidence=(vllm("vllm/reasoning/hy_v4_reasoning_parser.py", "takes the tags' ending from the vocabulary"),),
    ),
    Entry(
        name="hunyuan_hermes",
        kind="tool",
        format=HUNYUAN_HERMES,
        models=("tencent/Hunyuan-*-Instruct*",),
        evidence=(
            Evidence("engine", "modelscope/ms-swift swift/agent_template/hermes.py", "2026-11-23", "HunyuanHermes"),
        ),
    ),
    Entry(
        name="hy_v3",
        kind="tool",
        format=HY3,
        aliases=(
            "hy3",
            "hy_v3_preview",
        ),
        models=("tencent/Hy3*",),
        headers=("<｜hy_Assistant｜>", f"<｜hy_Assistant{SUFFIX}｜>"),
        engines=("vllm",),
        evidence=(
            Evidence("template", "Fisher-Ju/Hy3-preview chat_template.jinja", "2026-11-22"),
            vllm("vllm/tool_parsers/hy_v3_tool_parser.py"),
            vllm("tests/tool_parsers/test_hy_v3_tool_parser.py", "newlines"),
            sglang("function_call/hunyuan_detector.py", "Hy3's tokens have an ending, those of the preview none"),
            report("jundot/omlx#2108", "Hy3's tags end in :opensource"),
        ),
    ),
    Entry(
        name="hy_v4",
        kind="tool",
        format=HY4,
        models=("tencent/Hy4*",),
        model_types=("hy_v4_vl",),
        engines=("vllm",),
        evidence=(
            vllm("vllm/tool_parsers/hy_v4_tool_parser.py", "takes the tags' ending from the vocabulary"),
            vllm("tests/tool_parsers/test_hy_v4_tool_parser.py", "tags that end in :opensource"),
        ),
    ),
)
