"""Cohere Command R7B, Command A, Command 4 and Command R+.

* Command R7B and A write regions between ``<|START_…|>`` and ``<|END_…|>`` tokens: THINKING, RESPONSE and ACTION
  (template of command-r7b-12-2024, the assistant branch). Some models write TEXT for RESPONSE. Calls are numbered
  through the conversation (``tool_idx``), and the number is the call's id. Models also write a single call without the
  list (lightseekorg/smg, ``crates/tool_parser/tests/tool_parser_cohere.rs``).
* Command 4 writes the same with TEXT.
* Command R+ writes ``Action:`` and a JSON list in a fence (template of command-r-plus, ``tool_use``, the assistant
  branch). A single call without the list is read too.
"""

from __future__ import annotations

from ...format import Content, Format, JsonBody, Marker, Reasoning, Tools
from .._family import Entry, sglang, template, turn, vllm

TURN = turn("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>")
CONTENT = Content(
    open=Marker("<|START_RESPONSE|>", ("<|START_TEXT|>",)),
    close=Marker("<|END_RESPONSE|>", ("<|END_TEXT|>",)),
)
CONTENT_TOKENS = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")

COMMAND3_REASONING = Format(
    name="cohere_command3",
    turn=TURN,
    reasoning=Reasoning(open=Marker("<|START_THINKING|>"), close=Marker("<|END_THINKING|>")),
    content=CONTENT,
    special_tokens=("<|END_OF_TURN_TOKEN|>", "<|START_THINKING|>", "<|END_THINKING|>", *CONTENT_TOKENS),
)

COMMAND3 = Format(
    name="cohere_command3",
    turn=TURN,
    content=CONTENT,
    tools=(
        Tools(
            section_open=Marker("<|START_ACTION|>"),
            section_close=Marker("<|END_ACTION|>"),
            list_open=Marker("[\n    "),
            list_close=Marker("\n]"),
            list_optional=True,
            separator=Marker(",\n    "),
            body=JsonBody(
                name_key="tool_name",
                arguments_key="parameters",
                accepted_arguments_keys=(),
                id_key="tool_call_id",
            ),
        ),
    ),
    ids="{index}",
    special_tokens=("<|END_OF_TURN_TOKEN|>", "<|START_ACTION|>", "<|END_ACTION|>", *CONTENT_TOKENS),
)

TEXT = Content(
    open=Marker("<|START_TEXT|>", ("<|START_RESPONSE|>",)),
    close=Marker("<|END_TEXT|>", ("<|END_RESPONSE|>",)),
)
COMMAND4_REASONING = COMMAND3_REASONING.extend(name="cohere_command4", content=TEXT)
COMMAND4 = COMMAND3.extend(name="cohere_command4", content=TEXT)

COMMAND_R_PLUS = Format(
    name="command_r_plus",
    turn=TURN,
    tools=(
        Tools(
            section_open=Marker("\nAction:\n```json\n", ("Action: ```json", "Action:```json", "Action:\n```")),
            section_close=Marker("```\n"),
            list_open=Marker("[\n"),
            list_close=Marker("\n]"),
            list_optional=True,
            separator=Marker(",\n"),
            body=JsonBody(name_key="tool_name", arguments_key="parameters", accepted_arguments_keys=()),
        ),
    ),
    special_tokens=("<|END_OF_TURN_TOKEN|>",),
)

ENTRIES = (
    Entry(
        name="cohere_command3",
        kind="reasoning",
        format=COMMAND3_REASONING,
        aliases=("command_r7b",),
        models=("CohereLabs/c4ai-command-r7b-12-2024", "CohereLabs/c4ai-command-a-03-2025"),
        engines=("vllm",),
        evidence=(template("CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja"),),
    ),
    Entry(
        name="cohere_command3",
        kind="tool",
        format=COMMAND3,
        aliases=("command_r7b",),
        models=("CohereLabs/c4ai-command-r7b-12-2024", "CohereLabs/c4ai-command-a-03-2025"),
        headers=("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",),
        engines=("vllm", "llama.cpp"),
        evidence=(template("CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja"),),
    ),
    Entry(
        name="cohere_command4",
        kind="reasoning",
        format=COMMAND4_REASONING,
        aliases=("cohere",),
        models=("CohereLabs/command-4-*",),
        engines=("vllm", "sglang", "ollama"),
        evidence=(
            vllm("vllm/parser/cohere_command.py"),
            sglang("parser/reasoning_parser.py", "CohereCommand4Detector reads START_THINKING and START_TEXT"),
        ),
    ),
    Entry(
        name="cohere_command4",
        kind="tool",
        format=COMMAND4,
        aliases=("cohere",),
        models=("CohereLabs/command-4-*",),
        engines=("vllm", "sglang", "ollama"),
        evidence=(sglang("function_call/cohere_command4_detector.py"),),
    ),
    Entry(
        name="command_r_plus",
        kind="tool",
        format=COMMAND_R_PLUS,
        models=("CohereLabs/c4ai-command-r-plus", "CohereLabs/c4ai-command-r-v01"),
        evidence=(template("CohereForAI-c4ai-command-r-plus-tool_use.jinja"),),
    ),
)
