"""Names that have no Format, each with the reason. Engines use them, or people ask for them."""

from __future__ import annotations

from typing import Final

__all__ = ["UNLISTED"]

_TEMPLATE: Final = "reads the layout from the checkpoint's response_template; so does `for_model`"

UNLISTED: Final[dict[str, str]] = {
    "beam": f"vLLM's parser of that name {_TEMPLATE}",
    "hf": f"vLLM's parser of that name {_TEMPLATE}",
    "response_template": f"SGLang's parser of that name {_TEMPLATE}",
    "default": "Dynamo's parser of that name tries the markers of several families",
    "qwen_dotted": "the source of SGLang's gateway parser of that name could not be read",
    "tml_v0": "tinker-cookbook's renderer of that name needs the package tml_renderers, whose source is not public",
    **dict.fromkeys(
        ("glm4", "chatglm4"),
        "GLM-4 writes a name and a JSON object on two lines, without any marker, so answers would be calls",
    ),
    **dict.fromkeys(
        ("react", "react_en", "react_zh", "react_grpo", "toolbench"),
        "ReAct's lines (`Action:`) come from a system prompt, and no model was trained on them as markup",
    ),
    **dict.fromkeys(
        ("qwen_en", "qwen_zh", "qwen_en_parallel", "qwen_zh_parallel"),
        "Qwen-Agent's lines (`✿FUNCTION✿:`) come from a system prompt; give the agent's own parser the content",
    ),
    "cwm": (
        "facebook/cwm writes free text as a tool's input, between `<tool: bash>` and `</tool>`. The system prompt "
        "chooses its layout for each tool (PROMPTING_GUIDE.md of facebookresearch/cwm), so arguments cannot be read "
        "from it. vLLM's parser (#31340) was not merged. `passthrough+qwen3` reads the reasoning"
    ),
}
"""Name → reason, without a full stop."""
