"""Names that have no Format, each with the reason. Engines use them, or people ask for them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

__all__ = ["UNLISTED", "UNLISTED_MODELS", "reason_for_model"]

_TEMPLATE: Final = "reads the layout from the checkpoint's response_template; so does `for_model`"

UNLISTED: Final[dict[str, str]] = {
    "beam": f"vLLM's parser of that name {_TEMPLATE}",
    "hf": f"vLLM's parser of that name {_TEMPLATE}",
    "response_template": f"SGLang's parser of that name {_TEMPLATE}",
    "default": "Dynamo's parser of that name tries the markers of several families",
    "qwen_dotted": "the source of SGLang's gateway parser of that name could not be read",
    **dict.fromkeys(
        ("tml_v0", "kimi_k31_pro"),
        "tinker-cookbook's renderer of that name needs the package tml_renderers, whose source is not public",
    ),
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

NO_CHAT: Final = "not a model of conversations (base model, embeddings, reranker, reward model, recognition of text)"
NO_MARKERS: Final = "writes a tool's name and a JSON object on two lines, without any marker, so answers would be calls"
NO_TEMPLATE: Final = "no public chat template or document of its outputs is known"

_NO_CHAT: Final = """
    *-base* *_base* *base-hf *embed* *rerank* *reward* *-rm-* *-prm-* *ocr* *gte-* Qwen/Qwen-*b Qwen/Qwen1.5-*b
    Qwen/Qwen1.5-*2.7B Qwen/Qwen2-*b Qwen/CodeQwen1.5-7B Qwen/Qwen-VL google/gemma-*b google/gemma-3n-E?B
    meta-llama/Llama-2-*b-hf meta-llama/Meta-Llama-3-*b hfl/chinese-llama-2-* hfl/llama-3-chinese-8b
    internlm/internlm*b xverse/XVERSE-* deepseek-ai/Janus-* allenai/OLMoE-1B-7B-0??? moonshotai/Moonlight-16B-A3B
    FlagAlpha/Atom-7B mistral-community/Mixtral-* alpindale/Mistral-7B-v0.2-hf hpcai-tech/grok-1
    zai-org/codegeex2-6b zai-org/glm-4-9b *-AQLM-* Qwen/Qwen-Audio DAMO-NLP/SeqGPT-* deepseek-ai/DeepSeek-V2-Lite
    DAMO-NLP-MT/polylm-13b *-pt *-pretrain* *bert* *gme-* *clip* *florence* *paligemma* *diffusion* *guard*
"""

UNLISTED_MODELS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (NO_MARKERS, ("zai-org/GLM-4-*-0414", "zai-org/glm-4-9b-chat*", "zai-org/chatglm3-6b*")),
    (
        NO_CHAT,
        tuple(_NO_CHAT.split()),
    ),
    (NO_TEMPLATE, ("*",)),
)
"""Reason → patterns of the ids of models that have no Format."""


def reason_for_model(model: str) -> str:
    """Return the reason why a model has no Format; "" if none is known.

    >>> reason_for_model("zai-org/GLM-4-9B-0414").startswith("writes a tool's name")
    True
    """
    for reason, patterns in UNLISTED_MODELS:
        if any(fnmatchcase(model.lower(), pattern.lower()) for pattern in patterns):
            return reason
    return ""
