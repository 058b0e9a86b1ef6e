"""The abilities of each public template, written down by reading it. Certificates must agree.

`TABLE` maps a template's file name to its abilities; it has no others. `FIELDS` explains each name. Some abilities of
certificates are not here: ``content`` and ``several_turns`` hold for every template, ``integer`` if ``number`` does,
``awkward_strings`` if ``calls`` does.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FIELDS", "TABLE", "row"]

FIELDS: Final[dict[str, str]] = {
    "system": "a system message is written, not refused or left out",
    "tool_results": "a message of role `tool` is written after the calls",
    "content_wrapped": "content stands behind a mark of its own in every turn",
    "reasoning": "a turn of content has reasoning: `reasoning_written`, or `reasoning_dropped`",
    "reasoning_written": "the template writes a message's reasoning before its content, in some turn of a conversation",
    "reasoning_dropped": "it writes none, but cuts it off content at its closing mark, and prompts open it",
    "thinking_off": "with some variable the prompt ends behind closed reasoning, or no longer inside it",
    "calls": "an assistant's `tool_calls` are written",
    "parallel_calls": "more than one call in a turn",
    "no_arguments": "a call with no arguments",
    "content_with_calls": "content before or after calls, in one turn, as content",
    "reasoning_with_calls": "a message's reasoning before its calls, in one turn",
    "ids": "the id that a message gives its call is written, in some turn of a conversation",
    "numbered": "calls carry a number that the template makes up (not a field of certificates)",
    "string": "an argument that is a string",
    "number": "an argument that is a number",
    "boolean": "an argument that is true or false, in JSON's words or Python's",
    "null": "an argument that is null, in JSON's word or Python's",
    "array": "an argument that is a list",
    "object": "an argument that is an object",
}
"""Every field, in one line."""

_ROLES: Final = frozenset(("system", "tool_results"))
_CALL: Final = frozenset(("calls", "no_arguments", "string", "number", "boolean", "null", "array", "object"))
_CALLS: Final = _CALL | {"parallel_calls"}
_TALK: Final = _CALLS | {"content_with_calls"}
_WRITTEN: Final = frozenset(("reasoning", "reasoning_written"))
_DROPPED: Final = frozenset(("reasoning", "reasoning_dropped"))
_OFF: Final = frozenset(("thinking_off",))
_ALL: Final = _ROLES | _TALK | _WRITTEN | {"reasoning_with_calls"}
"""Everything but wrapped content, ids and a switch."""

TABLE: Final[dict[str, frozenset[str]]] = {
    # Reasoning is a block of type `thoughts` in a mapping as content; calls may be a block too, arguments as text.
    # enable_thinking changes a word of the system turn, not where the answer begins.
    "Apertus-8B-Instruct.jinja": _ALL,
    # Reasoning in the last turn only; it has a closing mark only. Ids in every turn but the last.
    "Apriel-1.6-15b-Thinker-fixed.jinja": _ALL | {"ids"},
    # Values that are no strings are Python's: True, None, ['a']. thinking_budget=0 closes reasoning.
    "ByteDance-Seed-OSS.jinja": _ALL | _OFF,
    "CohereForAI-c4ai-command-r-plus-tool_use.jinja": _ROLES | _TALK,
    # Reasoning only where there are calls, content only where there are none. A running number as tool_call_id.
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja": _ROLES
    | _CALLS
    | _OFF
    | {"content_wrapped", "reasoning_with_calls", "numbered"},
    "GLM-4.6.jinja": _ALL | _OFF,
    "GLM-4.7-Flash.jinja": _ALL | _OFF,
    # Only the first call is written.
    "GigaChat3-10B-A1.8B.jinja": _ROLES | _CALL | {"content_with_calls"},
    # functions.name:0, whatever the id.
    "Kimi-K2-Instruct.jinja": _ROLES | _TALK | {"numbered"},
    # thinking=false opens the response.
    "Kimi-K3.jinja": _ALL | _OFF | {"content_wrapped", "numbered"},
    # Tools are declared, calls are not written.
    "LFM2-8B-A1B.jinja": _ROLES,
    "MiMo-VL.jinja": _ROLES | _TALK,
    # The prompt opens reasoning, always.
    "MiniMax-M2.jinja": _ALL,
    # Content is left out where there are calls.
    "Mistral-Small-3.2-24B-Instruct-2506.jinja": _ROLES | _CALLS | {"ids"},
    # /no_think is read from messages; no variable does it.
    "NVIDIA-Nemotron-Nano-v2.jinja": _ROLES | _TALK | _DROPPED,
    # Content is left out where there are calls.
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja": _ROLES | _CALLS,
    "Qwen-QwQ-32B.jinja": _ROLES | _TALK | _DROPPED | _OFF,
    "Qwen-Qwen2.5-7B-Instruct.jinja": _ROLES | _TALK,
    "Qwen-Qwen3-0.6B.jinja": _ALL | _OFF,
    # True, None: Python's words for what is neither a string, nor a list, nor a mapping.
    "Qwen3-Coder.jinja": _ROLES | _TALK,
    "Qwen3.5-4B.jinja": _ALL | _OFF,
    # Calls only where content is null, arguments as text. The turn ends after the second call, and each one after it.
    # No model can write that, so its parallel calls are not one turn.
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja": _ROLES | _CALL | _DROPPED,
    # Content beside calls becomes a second turn after theirs.
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja": _ROLES | _CALLS | _DROPPED | _OFF,
    "deepseek-ai-DeepSeek-V3.1.jinja": _ROLES | _TALK | _DROPPED | _OFF,
    # Reasoning after the last user message only, and with thinking=true.
    "deepseek-ai-DeepSeek-V3.2.jinja": _ALL | _OFF,
    "fireworks-ai-llama-3-firefunction-v2.jinja": _ROLES | _TALK,
    # Raises for a system message; roles alternate, so there is no place for a tool's.
    "google-gemma-2-2b-it.jinja": frozenset(),
    # Reasoning only where there are calls. Content is written after them.
    "google-gemma-4-31B-it.jinja": _ROLES | _TALK | _OFF | {"reasoning_with_calls"},
    # Tools are declared, calls are not written. Reasoning is described in the system turn (thinking=true), no more.
    "ibm-granite-granite-3.3-2B-Instruct.jinja": _ROLES,
    "ibm-granite-granite-4.0.jinja": _ROLES | _TALK,
    # Calls only where content is empty.
    "llama-cpp-deepseek-r1.jinja": _ROLES | _CALLS | _DROPPED,
    "llama-cpp-rwkv-world.jinja": _DROPPED | _OFF | {"system"},
    "meetkai-functionary-medium-v3.1.jinja": _ROLES | _TALK,
    # >>>all before content. Arguments as text.
    "meetkai-functionary-medium-v3.2.jinja": _ROLES | _TALK | {"content_wrapped"},
    # Raises for two calls; content is left out where there is one.
    "meta-llama-Llama-3.1-8B-Instruct.jinja": _ROLES | _CALL,
    "meta-llama-Llama-3.2-3B-Instruct.jinja": _ROLES | _CALL,
    "meta-llama-Llama-3.3-70B-Instruct.jinja": _ROLES | _CALL,
    "microsoft-Phi-3.5-mini-instruct.jinja": frozenset(("system",)),
    # Reasoning is a part of type `thinking` in the content.
    "mistralai-Ministral-3-14B-Reasoning-2512.jinja": _ALL,
    # Content is left out where there are calls.
    "mistralai-Mistral-Nemo-Instruct-2407.jinja": _ROLES | _CALLS | {"ids"},
    "moonshotai-Kimi-K2.jinja": _ROLES | _TALK | {"numbered"},
    # Reasoning in the last turn, or before a call. Only the first call. Content beside a call is written as reasoning.
    "openai-gpt-oss-120b.jinja": _ROLES | _CALL | _WRITTEN | {"content_wrapped", "reasoning_with_calls"},
    # With add_thoughts=true a `thought` is written: after content, before calls. Ids in every turn but the last.
    "unsloth-Apriel-1.5.jinja": _ROLES | _TALK | {"ids", "reasoning_with_calls"},
    "unsloth-mistral-Devstral-Small-2507.jinja": _ROLES | _TALK,
}


def row(name: str) -> dict[str, bool]:
    """Return every field of one template, true or false."""
    able = TABLE[name]
    return {field: field in able for field in FIELDS}
