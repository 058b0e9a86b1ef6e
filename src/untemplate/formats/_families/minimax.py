"""MiniMax M1, M2 and M3.

* M2 writes ``<invoke name="…">`` with one ``<parameter name="…">`` per argument, in ``<minimax:tool_call>`` (template
  of MiniMax-M2, variables ``toolcall_begin_token`` and ``toolcall_end_token``, the assistant branch). The prompt always
  ends with ``<think>\\n``. Values are not escaped (vllm#44060).
* M1 writes JSON objects, one per line, in ``<tool_calls>``.
* M3 begins every tag with ``]<]minimax[>[``, names elements after arguments and nests them. Models leave the prefix
  out now and then. Its reasoning is in ``<mm:think>``. The prefix and both markers of reasoning are tokens
  (llama.cpp#24523, MiniMax-Provider-Verifier#17).
"""

from __future__ import annotations

from ...format import ElementArguments, Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, Evidence, sglang, template, turn, vllm

TURN = turn("]~b]ai\n", "[e~[")

M2_REASONING = Format(
    name="minimax_m2",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n\n"), start="open"),
    special_tokens=("[e~[", "<think>", "</think>"),
)

M2_INLINE = M2_REASONING.extend(
    name="minimax_m2_append_think",
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>"), start="open", inline=True),
)

M2 = Format(
    name="minimax_m2",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("\n<minimax:tool_call>\n"),
            section_close=Marker("</minimax:tool_call>"),
            call_open=Marker('<invoke name="'),
            body=NamedBody(
                name_close=Marker('">\n'),
                arguments=TaggedArguments(
                    key_open=Marker('<parameter name="'),
                    key_close=Marker('">'),
                    value_close=Marker("</parameter>\n"),
                ),
            ),
            call_close=Marker("</invoke>\n"),
            optional=("section",),
        ),
    ),
    special_tokens=("[e~[", "<minimax:tool_call>", "</minimax:tool_call>"),
)

M1 = Format(
    name="minimax",
    turn=turn("<beginning_of_sentence>ai name=assistant\n", "<end_of_sentence>"),
    tools=(
        Tools(
            section_open=Marker("<tool_calls>\n"),
            section_close=Marker("\n</tool_calls>"),
            separator=Marker("\n"),
            body=JsonBody(),
        ),
    ),
    special_tokens=("<end_of_sentence>",),
)

M3_REASONING = Format(
    name="minimax_m3",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<mm:think>"), close=Marker("</mm:think>")),
    special_tokens=("[e~[", "<mm:think>", "</mm:think>"),
)

PREFIX = "]<]minimax[>["
M3 = Format(
    name="minimax_m3",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker(f"{PREFIX}<tool_call>\n", ("<tool_call>",)),
            section_close=Marker(f"{PREFIX}</tool_call>", ("</tool_call>",)),
            call_open=Marker(f'{PREFIX}<invoke name="', ('<invoke name="',)),
            body=NamedBody(
                name_close=Marker('">'),
                arguments=ElementArguments(
                    open=Marker(f"{PREFIX}<", ("<",)),
                    close=Marker(f"{PREFIX}</", ("</",)),
                ),
            ),
            call_close=Marker(f"{PREFIX}</invoke>\n", ("</invoke>",)),
        ),
    ),
    special_tokens=("[e~[", PREFIX),
)

ENTRIES = (
    Entry(
        name="minimax_m2",
        kind="reasoning",
        format=M2_REASONING,
        aliases=("minimax",),
        models=("MiniMaxAI/MiniMax-M2*",),
        engines=("vllm", "sglang", "dynamo", "tensorrt-llm"),
        evidence=(template("MiniMax-M2.jinja"),),
    ),
    Entry(
        name="minimax_m2",
        kind="tool",
        format=M2,
        aliases=("minimax-m2",),
        models=("MiniMaxAI/MiniMax-M2*",),
        architectures=(("minimax-m2", "minimax_m2"),),
        headers=("]~b]ai",),
        engines=("vllm", "sglang", "vllm.rs", "dynamo"),
        evidence=(template("MiniMax-M2.jinja"),),
    ),
    Entry(
        name="minimax_m2_append_think",
        kind="reasoning",
        format=M2_INLINE,
        aliases=("minimax-append-think", "minimax_append_think"),
        models=("MiniMaxAI/MiniMax-M2*",),
        engines=("vllm", "sglang", "dynamo", "tensorrt-llm"),
        evidence=(vllm("vllm/reasoning/minimax_m2_reasoning_parser.py", "<think> before the output, all content"),),
    ),
    Entry(
        name="minimax_m3",
        kind="reasoning",
        format=M3_REASONING,
        aliases=("minimax-m3",),
        models=("MiniMaxAI/MiniMax-M3*",),
        engines=("vllm", "sglang", "tensorrt-llm"),
        evidence=(vllm("vllm/reasoning/minimax_m3_reasoning_parser.py"),),
    ),
    Entry(
        name="minimax",
        kind="tool",
        format=M1,
        models=("MiniMaxAI/MiniMax-M1-*",),
        headers=("<beginning_of_sentence>ai name=assistant",),
        evidence=(
            vllm("examples/tool_chat_template_minimax_m1.jinja"),
            Evidence("engine", "MiniMax-AI/MiniMax-M1 docs/function_call_guide.md", "2026-11-22", "one object a line"),
        ),
    ),
    Entry(
        name="minimax_m3",
        kind="tool",
        format=M3,
        aliases=("minimax-m3", "minimax_m3_nom"),
        models=("MiniMaxAI/MiniMax-M3*",),
        engines=("vllm", "sglang"),
        evidence=(
            vllm("vllm/parser/minimax_m3.py", "elements that nest, each tag after a prefix"),
            sglang("function_call/minimax_m3.py", "an array is a repeated item"),
        ),
    ),
)
