"""IFM K2 Horizon: a name, then ``<ifm|arg_key>`` and ``<ifm|arg_value>`` pairs, in ``<ifm|tool_call>``.

* The reasoning effort of a request chooses between three pairs of tags. The prompt ends with the opening one.
* A request also chooses the layout of calls: pairs (the default), pairs with the type of each value between key and
  value, or a JSON object in each ``<ifm|tool_call>``. The parser reads all three.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, NamedBody, Reasoning, TaggedArguments, Tools
from .._family import Entry, sglang, turn, vllm

TURN = turn("<|ifm|im_start|>assistant\n", "<|ifm|im_end|>")
MODELS = ("IFM/K2-Horizon-*",)

REASONING = Format(
    name="k2_horizon",
    turn=TURN,
    reasoning=Reasoning(
        open=Marker("<ifm|think>\n", ("<ifm|think_fast>", "<ifm|think_faster>")),
        close=Marker("</ifm|think>", ("</ifm|think_fast>", "</ifm|think_faster>")),
        start="open",
    ),
    special_tokens=(
        "<|ifm|im_end|>",
        "<ifm|think>",
        "</ifm|think>",
        "<ifm|think_fast>",
        "</ifm|think_fast>",
        "<ifm|think_faster>",
        "</ifm|think_faster>",
    ),
)

PAIRS = Tools(
    section_open=Marker("<ifm|tool_calls>\n"),
    section_close=Marker("\n</ifm|tool_calls>"),
    call_open=Marker("<ifm|tool_call>"),
    body=NamedBody(
        name_close=Marker("\n"),
        arguments=TaggedArguments(
            key_open=Marker("<ifm|arg_key>"),
            key_close=Marker("</ifm|arg_key>\n"),
            type_open=Marker("<ifm|arg_type>"),
            type_close=Marker("</ifm|arg_type>\n"),
            type_written=False,
            value_open=Marker("<ifm|arg_value>"),
            value_close=Marker("</ifm|arg_value>\n"),
        ),
    ),
    call_close=Marker("</ifm|tool_call>"),
    separator=Marker("\n"),
)

JSON = Tools(
    section_open=PAIRS.section_open,
    section_close=PAIRS.section_close,
    call_open=PAIRS.call_open,
    body=JsonBody(),
    call_close=PAIRS.call_close,
    separator=Marker("\n"),
)

K2_HORIZON = Format(
    name="k2_horizon",
    turn=TURN,
    tools=(PAIRS, JSON),
    special_tokens=(
        "<|ifm|im_end|>",
        "<ifm|tool_calls>",
        "</ifm|tool_calls>",
        "<ifm|tool_call>",
        "</ifm|tool_call>",
        "<ifm|arg_key>",
        "</ifm|arg_key>",
        "<ifm|arg_type>",
        "</ifm|arg_type>",
        "<ifm|arg_value>",
        "</ifm|arg_value>",
    ),
)

ENTRIES = (
    Entry(
        name="k2_horizon",
        kind="reasoning",
        format=REASONING,
        models=MODELS,
        engines=("vllm", "sglang"),
        evidence=(
            vllm("vllm/reasoning/k2_horizon_reasoning_parser.py"),
            sglang("parser/reasoning_parser.py", "K2V3Detector"),
        ),
    ),
    Entry(
        name="k2_horizon",
        kind="tool",
        format=K2_HORIZON,
        models=MODELS,
        headers=("<|ifm|im_start|>assistant",),
        engines=("vllm", "sglang"),
        evidence=(
            vllm("vllm/tool_parsers/k2_horizon_tool_parser.py"),
            sglang("function_call/k2_v3_detector.py"),
        ),
    ),
)
