"""Formats of no family: ``passthrough`` (all text is content), ``identity`` (no reasoning), ``json`` (bare JSON calls).

vllm.rs has parsers with the names ``passthrough`` and ``json``, vLLM has a reasoning parser ``identity``. Templates
without tool markup (gemma-2-2b-it, Phi-3.5-mini-instruct, rwkv-world) need passthrough only.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Tools
from .._family import TURN_ENDS, Entry, Evidence, template, turn, vllm

VLLM_RS = "guoqingbao/vllm.rs src"

# A fence instead of the list's brackets, or around them. It is bare: a call needs an offered name at a line's start.
FENCED = Tools(
    body=JsonBody(),
    list_open=Marker("```json\n", ("```json\n[", "```json[", "```json [")),
    list_close=Marker("\n```", ("]\n```", "]```")),
    separator=Marker(", ", ("; ", "\n")),
)

# Small models write one bracket too many (ollama#17638).
SURPLUS = ("}", "]")

JSON = Format(
    name="json",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(
        Tools(
            body=JsonBody(),
            list_open=Marker("["),
            list_close=Marker("]"),
            list_optional=True,
            separator=Marker(", ", ("; ", "\n")),
            stray_closes=SURPLUS,
        ),
        FENCED,
    ),
    special_tokens=TURN_ENDS,
)

# Their chat templates, or their makers' documents, have neither reasoning nor calls.
_CONTENT_ONLY = """
    meta-llama/Llama-2-*-chat* meta-llama/Meta-Llama-3-8B-Instruct* meta-llama/Meta-Llama-3-70B-Instruct*
    Qwen/Qwen-*-Chat* Qwen/Qwen1.5-*-Chat* Qwen/CodeQwen1.5-*-Chat* Qwen/Qwen2-*-Instruct* google/gemma-2b-it
    google/gemma-7b-it google/gemma-2-*-it google/gemma-3n-*-it google/medgemma-*-it microsoft/phi-2
    microsoft/Phi-3-* microsoft/Phi-3.5-* microsoft/phi-4
    deepseek-ai/deepseek-coder-*-instruct deepseek-ai/deepseek-llm-*-chat deepseek-ai/deepseek-math-*-instruct
    deepseek-ai/deepseek-math-*-rl deepseek-ai/deepseek-moe-*-chat deepseek-ai/DeepSeek-V2-*Chat
    deepseek-ai/DeepSeek-V2 deepseek-ai/DeepSeek-Coder-V2-*Instruct deepseek-ai/DeepSeek-Prover-V2-*
    internlm/internlm-chat-* allenai/OLMoE-*-Instruct allenai/OLMoE-*-SFT CohereForAI/aya-expanse-*
    OpenGVLab/InternVL2-* OpenGVLab/InternVL2_5-* OpenGVLab/InternVL3-* openbmb/MiniCPM-* Qwen/Qwen2-VL-*-Instruct*
    Qwen/Qwen2-Audio-*-Instruct moonshotai/Moonlight-*-Instruct moonshotai/Kimi-VL-*-Instruct xverse/XVERSE-*-Chat
    vivo-ai/BlueLM-*-Chat* Infinigence/Megrez-3B-Instruct FlagAlpha/Atom-7B-Chat HuggingFaceH4/zephyr-7b-beta
    hfl/llama-3-chinese-*-instruct hfl/chinese-alpaca-2-* databricks/dbrx-instruct alpindale/WizardLM-2-*
    OrionStarAI/Orion-14B-Chat IDEA-CCNL/Ziya2-13B-Chat zai-org/glm-edge-*b-chat zai-org/chatglm2-6b*
    zai-org/LongWriter-* Qwen/QVQ-72B-Preview Tele-AI/TeleChat-12B* Tele-AI/telechat-7B
    TeleAI/TeleChat-52B deepseek-ai/deepseek-vl* OpenGVLab/InternVL-Chat-V1-5* OpenGVLab/Mini-InternVL-*
    internlm/internlm-xcomposer2* allenai/Molmo* sensenova/SenseNova-SI-* IEITYuan/Yuan2-* zai-org/cogvlm*
    zai-org/cogagent* zai-org/glm-4v-9b zai-org/glm-edge-v-2b HuggingFaceM4/Idefics3-* mistral-community/pixtral-*
"""

ENTRIES = (
    Entry(
        name="identity",
        kind="reasoning",
        format=Format(name="identity"),
        aliases=("passthrough",),
        models=("any",),
        evidence=(vllm("vllm/reasoning/identity_reasoning_parser.py"),),
    ),
    Entry(
        name="passthrough",
        kind="tool",
        format=Format(name="passthrough"),
        aliases=("role_colon",),
        models=("any", *_CONTENT_ONLY.split()),
        engines=("vllm.rs", "ollama"),
        evidence=(
            template("google-gemma-2-2b-it.jinja"),
            template("microsoft-Phi-3.5-mini-instruct.jinja"),
            Evidence("engine", f"{VLLM_RS}/server/parser.rs", "2026-11-22"),
        ),
    ),
    Entry(
        name="json",
        kind="tool",
        format=JSON,
        models=("any",),
        engines=("vllm.rs", "sglang"),
        evidence=(Evidence("engine", f"{VLLM_RS}/tools/parser.rs", "2026-11-22"),),
    ),
)
