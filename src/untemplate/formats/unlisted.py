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
    "cwm": (
        "facebook/cwm writes free text as a tool's input, between `<tool: bash>` and `</tool>`. The system prompt "
        "chooses its layout for each tool (PROMPTING_GUIDE.md of facebookresearch/cwm), so arguments cannot be read "
        "from it. vLLM's parser (#31340) was not merged. `passthrough+qwen3` reads the reasoning"
    ),
}
"""Name → reason, without a full stop."""
