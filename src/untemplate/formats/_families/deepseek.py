"""DeepSeek R1, V3, V3.1, V3.2, V4 and V4.1.

* R1 and V3 write the kind, the name, and the arguments in a JSON fence (template of R1-Distill-Qwen-32B, lines 17-21).
  Some distilled models leave out the newline before the closing fence.
* V3.1 writes the name, ``<｜tool▁sep｜>`` and the arguments (template of V3.1, the tool_calls branch).
* V3.2 and V4 write DSML: ``invoke`` and ``parameter`` tags, with an attribute that marks strings (template of V3.2, the
  tool_calls branch). The section of V3.2 is ``function_calls``, that of V4 ``tool_calls``. V4.1 has a space after
  ``｜DSML｜`` and calls the section ``calls``.

R1 always reasons, and its prompt ends with ``<think>\\n``. From V3.1 on the prompt ends with ``<think>`` or
``</think>``.
"""

from __future__ import annotations

from ...format import Format, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import TURN_ENDS, Entry, template, turn, vllm

TURN = turn("<｜Assistant｜>", "<｜end▁of▁sentence｜>")
EOS = "<｜end▁of▁sentence｜>"
TOOL_TOKENS = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁sep｜>",
)

# -- Reasoning ------------------------------------------------------------------------------------------------------

R1 = Format(
    name="deepseek_r1",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n\n"), start="open"),
    special_tokens=(*TURN_ENDS, "<think>", "</think>"),
)

V3_REASONING = Format(
    name="deepseek_v3",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>")),
    special_tokens=(EOS, "<think>", "</think>"),
)

# -- Tools ----------------------------------------------------------------------------------------------------------

SECTION_OPEN = Marker(
    "<｜tool▁calls▁begin｜>",
    # Other spellings of distilled models (llama.cpp common/chat.cpp, DeepSeek R1 handler, 2025-02).
    ("<｜tool_calls_begin｜>", "<｜tool calls begin｜>", "<｜tool\\_calls\\_begin｜>", "<｜tool▁calls｜>"),
)
SECTION_CLOSE = Marker("<｜tool▁calls▁end｜>")

V3 = Format(
    name="deepseek_v3",
    turn=TURN,
    tools=(
        Tools(
            section_open=SECTION_OPEN,
            section_close=SECTION_CLOSE,
            call_open=Marker("<｜tool▁call▁begin｜>function<｜tool▁sep｜>"),
            body=NamedBody(name_close=Marker("\n```json\n"), arguments_close=Marker("\n```")),
            call_close=Marker("<｜tool▁call▁end｜>"),
            separator=Marker("\n"),
            optional=("section",),
        ),
    ),
    special_tokens=(EOS, *TOOL_TOKENS),
)

V31 = Format(
    name="deepseek_v31",
    turn=TURN,
    tools=(
        Tools(
            section_open=SECTION_OPEN,
            section_close=SECTION_CLOSE,
            call_open=Marker("<｜tool▁call▁begin｜>"),
            body=NamedBody(name_close=Marker("<｜tool▁sep｜>")),
            call_close=Marker("<｜tool▁call▁end｜>"),
            optional=("section",),
        ),
    ),
    special_tokens=(EOS, *TOOL_TOKENS),
)


def _dsml(word: str) -> tuple[str, ...]:
    """Return misspellings of a DSML tag: ``<‖DSML‖``, ``<｜｜DSML｜｜`` (GenericAgent#804: 911 in 28 history files)."""
    return (word.replace("｜DSML｜", "‖DSML‖"), word.replace("｜DSML｜", "｜｜DSML｜｜"))


def _tag(text: str) -> Marker:
    return Marker(text, _dsml(text))


def _dsml_tools(*words: str, space: str = "") -> Tools:
    """Return calls in DSML. ``words`` are names of the section, the canonical one first; any of them may close it."""
    opens = [f"<｜DSML｜{space}{word}>" for word in words]
    closes = [f"</｜DSML｜{space}{word}>" for word in words]
    return Tools(
        section_open=Marker(f"\n\n{opens[0]}\n", (*opens[1:], *(drift for text in opens for drift in _dsml(text)))),
        section_close=Marker(closes[0], (*closes[1:], *(drift for text in closes for drift in _dsml(text)))),
        call_open=_tag(f'<｜DSML｜{space}invoke name="'),
        body=NamedBody(
            name_close=Marker('">\n'),
            # V4 closes the tag of a call without arguments (sglang#23915: 5 % of trials).
            empty_close=Marker('"/>', ('" />',)),
            arguments=TaggedArguments(
                key_open=_tag(f'<｜DSML｜{space}parameter name="'),
                key='{key}" string="{string}',
                key_close=Marker('">'),
                value_close=_tag(f"</｜DSML｜{space}parameter>\n"),
            ),
        ),
        call_close=_tag(f"</｜DSML｜{space}invoke>\n"),
        # In long contexts models leave out the section's opener (vllm#48931).
        optional=("section",),
    )


V32 = Format(
    name="deepseek_v32",
    turn=TURN,
    tools=(_dsml_tools("function_calls"),),
    special_tokens=(EOS, "｜DSML｜"),
)

V4 = Format(
    name="deepseek_v4",
    turn=TURN,
    # ``toolcalls``: vllm#51914.
    tools=(_dsml_tools("tool_calls", "toolcalls"),),
    special_tokens=(EOS, "｜DSML｜"),
)

V41 = Format(
    name="deepseek_v41",
    turn=TURN,
    tools=(_dsml_tools("calls", space=" "),),
    special_tokens=(EOS, "｜DSML｜"),
)

ENTRIES = (
    Entry(
        name="deepseek_r1",
        kind="reasoning",
        format=R1,
        aliases=("deepseek-r1",),
        models=("deepseek-ai/DeepSeek-R1*", "Qwen/QwQ-32B", "zai-org/GLM-Z1-*"),
        engines=("vllm", "sglang", "dynamo", "tensorrt-llm"),
        evidence=(
            template("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja"),
            template("deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja"),
            template("llama-cpp-deepseek-r1.jinja"),
        ),
    ),
    Entry(
        name="deepseek_v3",
        kind="reasoning",
        format=V3_REASONING,
        aliases=("deepseek-v3", "deepseek_v31", "deepseek-v31", "deepseek3", "cogito", "basic", "nemotron_deci"),
        models=("deepseek-ai/DeepSeek-V3.1*",),
        engines=("vllm", "sglang", "ollama", "dynamo"),
        evidence=(template("deepseek-ai-DeepSeek-V3.1.jinja"),),
    ),
    Entry(
        name="deepseek_v32",
        kind="reasoning",
        format=V3_REASONING.extend(name="deepseek_v32"),
        models=("deepseek-ai/DeepSeek-V3.2*",),
        evidence=(template("deepseek-ai-DeepSeek-V3.2.jinja"),),
    ),
    Entry(
        name="deepseek_v4",
        kind="reasoning",
        format=V3_REASONING.extend(name="deepseek_v4"),
        aliases=("deepseek-v4",),
        models=("deepseek-ai/DeepSeek-V4*",),
        engines=("vllm", "sglang", "tensorrt-llm"),
        evidence=(vllm("vllm/parser/deepseek_v4.py"),),
    ),
    Entry(
        name="deepseek_v41",
        kind="reasoning",
        format=V3_REASONING.extend(name="deepseek_v41"),
        aliases=("deepseek-v41",),
        models=("deepseek-ai/DeepSeek-V4.1*",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/parser/deepseek_v41.py"),),
    ),
    Entry(
        name="deepseek_v3",
        kind="tool",
        format=V3,
        aliases=("deepseekv3", "deepseek", "cogito"),
        models=(
            "deepseek-ai/DeepSeek-V3-*",
            "deepseek-ai/DeepSeek-R1*",
            "deepseek-ai/DeepSeek-V3",
            "deepseek-ai/DeepSeek-V2.5*",
        ),
        headers=("<｜Assistant｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁end｜>"),
        engines=("vllm", "sglang", "vllm.rs", "llama.cpp", "dynamo", "ollama", "tensorrt-llm"),
        evidence=(
            template("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja"),
            template("llama-cpp-deepseek-r1.jinja"),
        ),
    ),
    Entry(
        name="deepseek_v31",
        kind="tool",
        format=V31,
        aliases=(
            "deepseekv31",
            "deepseek_v3_1",
            "deepseek3",
            "deepseekv3.1",
            "deepseek31",
            "deepseek-v3.1",
        ),
        models=("deepseek-ai/DeepSeek-V3.1*",),
        engines=("vllm", "sglang", "dynamo", "ollama", "tensorrt-llm"),
        evidence=(template("deepseek-ai-DeepSeek-V3.1.jinja"),),
    ),
    Entry(
        name="deepseek_v32",
        kind="tool",
        format=V32,
        aliases=(
            "deepseekv32",
            "deepseek_v3_2",
            "deepseek32",
            "deepseek-v3.2",
            "deepseek-v32",
        ),
        models=("deepseek-ai/DeepSeek-V3.2*",),
        engines=("vllm", "sglang", "dynamo", "tensorrt-llm"),
        evidence=(template("deepseek-ai-DeepSeek-V3.2.jinja"),),
    ),
    Entry(
        name="deepseek_v4",
        kind="tool",
        format=V4,
        aliases=("deepseekv4", "deepseek-v4"),
        models=("deepseek-ai/DeepSeek-V4*",),
        engines=("vllm", "sglang", "dynamo"),
        evidence=(vllm("vllm/parser/deepseek_v4.py"),),
    ),
    Entry(
        name="deepseek_v41",
        kind="tool",
        format=V41,
        aliases=(
            "deepseekv41",
            "deepseek-v4.1",
        ),
        models=("deepseek-ai/DeepSeek-V4.1*",),
        engines=("vllm", "sglang"),
        evidence=(vllm("vllm/parser/deepseek_v41.py"),),
    ),
)
