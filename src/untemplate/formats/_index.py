"""The index of the catalogue. Made by `make docs` from the modules in this folder; do not edit."""

# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Final, Literal

ROWS: Final[
    dict[str, tuple[tuple[Literal['reasoning', 'tool'], str, tuple[str, ...], tuple[str, ...], tuple[str, ...], bool], ...]]
] = {
    # module: ((kind, name, aliases, models, model_types, verified), ...)
    'apertus': (
        ('reasoning', 'apertus', ('apertus2509',), ('swiss-ai/Apertus-*-Instruct-2509',), (), True),
        ('tool', 'apertus', ('apertus2509',), ('swiss-ai/Apertus-*-Instruct-2509',), (), True),
    ),
    'apriel': (
        ('reasoning', 'apriel_1.5', (), ('ServiceNow-AI/Apriel-1.5-15b-Thinker',), (), True),
        ('reasoning', 'apriel_1.6', (), ('ServiceNow-AI/Apriel-1.6-15b-Thinker',), (), True),
        ('tool', 'apriel_1.5', (), ('ServiceNow-AI/Apriel-1.5-15b-Thinker',), (), True),
        ('tool', 'apriel_1.6', (), ('ServiceNow-AI/Apriel-1.6-15b-Thinker',), (), True),
    ),
    'cohere': (
        ('reasoning', 'cohere_command3', ('command_r7b',), ('CohereLabs/c4ai-command-r7b-12-2024', 'CohereLabs/c4ai-command-a-03-2025'), (), True),
        ('tool', 'cohere_command3', ('command_r7b',), ('CohereLabs/c4ai-command-r7b-12-2024', 'CohereLabs/c4ai-command-a-03-2025'), (), True),
        ('reasoning', 'cohere_command4', ('cohere',), ('CohereLabs/command-4-*',), (), True),
        ('tool', 'cohere_command4', ('cohere',), ('CohereLabs/command-4-*',), (), True),
        ('tool', 'command_r_plus', (), ('CohereLabs/c4ai-command-r-plus', 'CohereLabs/c4ai-command-r-v01'), (), True),
    ),
    'deepseek': (
        ('reasoning', 'deepseek_r1', ('deepseek-r1',), ('deepseek-ai/DeepSeek-R1*', 'Qwen/QwQ-32B'), (), True),
        ('reasoning', 'deepseek_v3', ('deepseek-v3', 'deepseek_v31', 'deepseek-v31', 'deepseek3', 'cogito', 'basic', 'nemotron_deci'), ('deepseek-ai/DeepSeek-V3.1*',), (), True),
        ('reasoning', 'deepseek_v32', (), ('deepseek-ai/DeepSeek-V3.2*',), (), True),
        ('reasoning', 'deepseek_v4', ('deepseek-v4',), ('deepseek-ai/DeepSeek-V4*',), (), True),
        ('reasoning', 'deepseek_v41', ('deepseek-v41',), ('deepseek-ai/DeepSeek-V4.1*',), (), True),
        ('tool', 'deepseek_v3', ('deepseekv3', 'deepseek', 'cogito'), ('deepseek-ai/DeepSeek-V3-*', 'deepseek-ai/DeepSeek-R1*'), (), True),
        ('tool', 'deepseek_v31', ('deepseekv31', 'deepseek_v3_1', 'deepseek3'), ('deepseek-ai/DeepSeek-V3.1*',), (), True),
        ('tool', 'deepseek_v32', ('deepseekv32', 'deepseek_v3_2'), ('deepseek-ai/DeepSeek-V3.2*',), (), True),
        ('tool', 'deepseek_v4', ('deepseekv4', 'deepseek-v4'), ('deepseek-ai/DeepSeek-V4*',), (), True),
        ('tool', 'deepseek_v41', ('deepseekv41',), ('deepseek-ai/DeepSeek-V4.1*',), (), True),
    ),
    'dots': (
        ('tool', 'dots', (), ('rednote-hilab/dots.*',), (), True),
    ),
    'ernie': (
        ('reasoning', 'ernie45', (), ('baidu/ERNIE-4.5-*-Thinking',), (), True),
        ('tool', 'ernie45', (), ('baidu/ERNIE-4.5-*-Thinking',), (), True),
    ),
    'firefunction': (
        ('tool', 'firefunction_v2', (), ('fireworks-ai/llama-3-firefunction-v2',), (), True),
    ),
    'functionary': (
        ('tool', 'functionary_v3.1', ('functionary_v31',), ('meetkai/functionary-medium-v3.1', 'meetkai/functionary-small-v3.1'), (), True),
        ('tool', 'functionary_v3.2', ('functionary_v32',), ('meetkai/functionary-medium-v3.2', 'meetkai/functionary-small-v3.2'), (), True),
    ),
    'functiongemma': (
        ('tool', 'functiongemma', (), ('google/functiongemma-270m-it',), (), True),
    ),
    'gemma4': (
        ('reasoning', 'gemma4', ('gemma-4',), ('google/gemma-4-*',), (), True),
        ('tool', 'gemma4', ('gemma-4', 'gemma4-no-thinking'), ('google/gemma-4-*',), (), True),
    ),
    'generic': (
        ('tool', 'generic', (), ('any',), (), True),
    ),
    'gigachat': (
        ('tool', 'gigachat3', (), ('ai-sage/GigaChat3-*',), (), True),
        ('reasoning', 'gigachat35', (), ('ai-sage/GigaChat3.5-*-Reasoning',), (), True),
        ('tool', 'gigachat35', (), ('ai-sage/GigaChat3.5-*',), (), True),
    ),
    'glm': (
        ('reasoning', 'glm45', ('glm45_moe',), ('zai-org/GLM-4.5*', 'zai-org/GLM-4.6*'), ('glm4_moe',), True),
        ('reasoning', 'glm47', ('glm47_moe', 'glm-4.7'), ('zai-org/GLM-4.7*', 'zai-org/GLM-5*'), ('glm4_moe_lite',), True),
        ('tool', 'glm45', ('glm', 'glm45_moe', 'glm-ocr'), ('zai-org/GLM-4.5*', 'zai-org/GLM-4.6*'), ('glm4_moe',), True),
        ('tool', 'glm47', ('glm47_moe', 'glm-4.7'), ('zai-org/GLM-4.7*', 'zai-org/GLM-5*'), ('glm4_moe_lite',), True),
        ('reasoning', 'ling3', (), ('inclusionAI/Ling-3*',), (), True),
        ('tool', 'ling3', (), ('inclusionAI/Ling-3*',), (), True),
        ('reasoning', 'poolside_v1', ('poolside-v1', 'laguna'), ('poolside/Laguna-*',), (), True),
        ('tool', 'poolside_v1', ('poolside-v1', 'laguna'), ('poolside/Laguna-*',), (), True),
    ),
    'gpt_oss': (
        ('reasoning', 'gpt-oss', ('openai_gptoss', 'gptoss', 'gpt_oss'), ('openai/gpt-oss-20b', 'openai/gpt-oss-120b'), (), True),
        ('tool', 'gpt-oss', ('openai', 'openai_gptoss', 'gptoss', 'gpt_oss', 'harmony'), ('openai/gpt-oss-20b', 'openai/gpt-oss-120b'), (), True),
    ),
    'granite': (
        ('reasoning', 'granite', (), ('ibm-granite/granite-3.2-*',), (), True),
        ('reasoning', 'granite33', (), ('ibm-granite/granite-3.3-*',), (), True),
        ('tool', 'granite', (), ('ibm-granite/granite-3.*',), (), True),
        ('tool', 'granite4', (), ('ibm-granite/granite-4.*',), (), True),
        ('tool', 'granite-20b-fc', (), ('ibm-granite/granite-20b-functioncalling',), (), True),
        ('reasoning', 'granite_thinking_parser', (), ('ibm-granite/granite-4.2-*',), (), True),
        ('tool', 'granite_thinking_parser', (), ('ibm-granite/granite-4.2-*',), (), True),
    ),
    'hermes': (
        ('tool', 'hermes', ('qwen', 'qwen25', 'qwen3_json', 'trinity', 'qwen3-vl-instruct', 'qwen3-vl-thinking'), ('Qwen/Qwen2.5-*', 'Qwen/Qwen3-*', 'Qwen/QwQ-32B', 'NousResearch/Hermes-2-Pro-*', 'NousResearch/Hermes-3-*', 'XiaomiMiMo/MiMo-VL-*', 'arcee-ai/Trinity-*'), ('qwen2', 'qwen2_moe', 'qwen3', 'qwen3_moe', 'qwen3_next'), True),
        ('tool', 'smollm3', (), ('HuggingFaceTB/SmolLM3-3B',), (), True),
    ),
    'holo': (
        ('reasoning', 'holo2', (), ('Hcompany/Holo2-*',), (), True),
    ),
    'hunyuan': (
        ('reasoning', 'hunyuan_a13b', ('hunyuan',), ('tencent/Hunyuan-A13B-Instruct',), (), True),
        ('tool', 'hunyuan_a13b', ('hunyuan',), ('tencent/Hunyuan-A13B-Instruct',), (), True),
        ('reasoning', 'hy_v3', (), ('tencent/Hy3*',), (), True),
        ('reasoning', 'hy_v4', (), ('tencent/Hy4*',), (), True),
        ('tool', 'hy_v3', (), ('tencent/Hy3*',), (), True),
        ('tool', 'hy_v4', (), ('tencent/Hy4*',), (), True),
    ),
    'hyperclovax': (
        ('reasoning', 'hyperclovax_seed_think', (), ('naver-hyperclovax/HyperCLOVAX-SEED-Think-*',), (), True),
        ('tool', 'hyperclovax_seed_think', (), ('naver-hyperclovax/HyperCLOVAX-SEED-Think-*',), (), True),
    ),
    'inkling': (
        ('reasoning', 'inkling', (), ('thinkingmachines/Inkling*',), (), True),
        ('tool', 'inkling', (), ('thinkingmachines/Inkling*',), (), False),
    ),
    'internlm': (
        ('tool', 'internlm', ('internlm2', 'interns1'), ('internlm/internlm2_5-*-chat', 'internlm/internlm3-*-instruct'), (), True),
    ),
    'iquest': (
        ('reasoning', 'iquest_q1', (), ('IQuestLab/IQuest-Q1*',), (), True),
        ('tool', 'iquest_q1', (), ('IQuestLab/IQuest-Q1*',), (), True),
    ),
    'jamba': (
        ('tool', 'jamba', (), ('ai21labs/AI21-Jamba-*',), (), True),
    ),
    'k2_horizon': (
        ('reasoning', 'k2_horizon', (), ('IFM/K2-Horizon-*',), (), True),
        ('tool', 'k2_horizon', (), ('IFM/K2-Horizon-*',), (), True),
    ),
    'kimi': (
        ('reasoning', 'kimi_k2', ('kimi_k25',), ('moonshotai/Kimi-K2-Thinking', 'moonshotai/Kimi-K2.5'), (), True),
        ('reasoning', 'kimi', (), ('moonshotai/Kimi-VL-A3B-Thinking*', 'moonshotai/Kimi-Dev-72B'), (), True),
        ('reasoning', 'kimi_k3', (), ('moonshotai/Kimi-K3',), (), True),
        ('tool', 'kimi_k2', ('kimik2',), ('moonshotai/Kimi-K2-*', 'moonshotai/Kimi-K2.5'), ('kimi_k25',), True),
        ('tool', 'kimi_k3', (), ('moonshotai/Kimi-K3',), (), True),
    ),
    'lfm2': (
        ('reasoning', 'lfm2-thinking', (), ('LiquidAI/LFM2.5-*-Thinking',), (), True),
        ('tool', 'lfm2', ('lfm2-thinking',), ('LiquidAI/LFM2-*', 'LiquidAI/LFM2.5-*'), (), True),
    ),
    'llama': (
        ('tool', 'llama3_json', ('llama3', 'llama'), ('meta-llama/Llama-3.1-*', 'meta-llama/Llama-3.2-*', 'meta-llama/Llama-3.3-*'), ('mllama',), True),
        ('tool', 'llama4_pythonic', (), ('meta-llama/Llama-4-*',), ('llama4',), True),
        ('tool', 'llama4_json', (), ('meta-llama/Llama-4-*',), ('llama4',), True),
    ),
    'longcat': (
        ('reasoning', 'longcat', ('longcat_2601',), ('meituan-longcat/LongCat-Flash-Thinking*', 'meituan-longcat/LongCat-2*'), (), True),
        ('tool', 'longcat', (), ('meituan-longcat/LongCat-Flash-*',), (), True),
        ('tool', 'longcat_2601', (), ('meituan-longcat/LongCat-Flash-Thinking-2601', 'meituan-longcat/LongCat-Flash-Thinking-ZigZag', 'meituan-longcat/LongCat-Flash-Lite', 'meituan-longcat/LongCat-2*'), (), True),
    ),
    'mimo': (
        ('reasoning', 'mimo', (), ('XiaomiMiMo/MiMo-V2*',), (), True),
        ('tool', 'mimo', (), ('XiaomiMiMo/MiMo-V2*',), (), True),
    ),
    'minicpm': (
        ('reasoning', 'minicpmv', (), ('openbmb/MiniCPM-V-*',), (), True),
        ('tool', 'minicpm5', (), ('openbmb/MiniCPM5-*',), (), True),
    ),
    'minimax': (
        ('reasoning', 'minimax_m2', ('minimax',), ('MiniMaxAI/MiniMax-M2*',), (), True),
        ('tool', 'minimax_m2', ('minimax-m2',), ('MiniMaxAI/MiniMax-M2*',), (), True),
        ('reasoning', 'minimax_m2_append_think', ('minimax-append-think', 'minimax_append_think'), ('MiniMaxAI/MiniMax-M2*',), (), True),
        ('reasoning', 'minimax_m3', ('minimax-m3',), ('MiniMaxAI/MiniMax-M3*',), (), True),
        ('tool', 'minimax', (), ('MiniMaxAI/MiniMax-M1-*',), (), True),
        ('tool', 'minimax_m3', ('minimax-m3', 'minimax_m3_nom'), ('MiniMaxAI/MiniMax-M3*',), (), True),
    ),
    'mistral': (
        ('reasoning', 'mistral', ('ministral',), ('mistralai/Magistral-*', 'mistralai/Ministral-3-*-Reasoning-*'), (), True),
        ('reasoning', 'magistral', (), ('mistralai/Magistral-Small-2506',), (), True),
        ('tool', 'mistral', ('ministral',), ('mistralai/*',), ('mistral3', 'mixtral'), True),
        ('tool', 'mistral_v3', (), ('mistralai/Mistral-Nemo-Instruct-2407', 'mistralai/Mistral-7B-Instruct-v0.3'), (), True),
    ),
    'muse': (
        ('reasoning', 'muse', ('muse_glimmer', 'musespark1x', 'glimmer'), ('muse-glimmer',), (), True),
        ('tool', 'muse', ('muse_glimmer', 'musespark1x', 'glimmer'), ('muse-glimmer',), (), False),
    ),
    'nemotron': (
        ('reasoning', 'nemotron_nano_v2', (), ('nvidia/NVIDIA-Nemotron-Nano-*-v2',), (), True),
        ('reasoning', 'nemotron_v3', ('nemotron_3', 'nemotron-3-nano', 'nemotron-3.5-nano', 'nemotron3', 'nemotron_nano'), ('nvidia/NVIDIA-Nemotron-3-*',), (), True),
        ('tool', 'nemotron_nano_v2', ('nemotron_deci', 'nemotron_json'), ('nvidia/NVIDIA-Nemotron-Nano-*-v2', 'nvidia/Llama-3_*-Nemotron-*'), (), True),
        ('tool', 'nemotron_v3', ('nemotron_3', 'nemotron-3-nano', 'nemotron-3.5-nano', 'nemotron3'), ('nvidia/NVIDIA-Nemotron-3-*',), (), True),
    ),
    'olmo': (
        ('reasoning', 'olmo3', ('olmo3-think',), ('allenai/Olmo-3-*-Think',), (), True),
        ('tool', 'olmo3', (), ('allenai/Olmo-3-*-Instruct',), (), True),
    ),
    'phi': (
        ('tool', 'phi4_mini_json', ('phi4',), ('microsoft/Phi-4-mini-instruct', 'microsoft/Phi-4-mini-reasoning'), (), True),
    ),
    'plain': (
        ('reasoning', 'identity', ('passthrough',), ('any',), (), True),
        ('tool', 'passthrough', (), ('any',), (), True),
        ('tool', 'json', (), ('any',), (), True),
    ),
    'plamo': (
        ('reasoning', 'plamo3', (), ('pfnet/plamo-3-*',), (), True),
        ('tool', 'plamo3', (), ('pfnet/plamo-3-*',), (), True),
    ),
    'pythonic': (
        ('tool', 'pythonic', ('gemma3',), ('meta-llama/Llama-3.2-*', 'Team-ACE/ToolACE-8B', 'fixie-ai/ultravox-v0_4-ToolACE-8B', 'google/gemma-3-*'), ('gemma3_text',), True),
    ),
    'qwen3': (
        ('reasoning', 'qwen3', ('interns1', 'dots', 'nanbeige'), ('Qwen/Qwen3-*', 'Qwen/Qwen3.5-*', 'Qwen/Qwen3.6-*', 'HuggingFaceTB/SmolLM3-3B'), ('qwen3_moe', 'qwen3_5', 'qwen3_5_moe'), True),
        ('reasoning', 'qwen3-thinking', ('qwen3.5', 'ornith', 'qwen3-vl-thinking'), ('Qwen/Qwen3-*-Thinking-2507', 'Qwen/QwQ-32B'), (), True),
    ),
    'qwen3_coder': (
        ('tool', 'qwen3_coder', ('qwen3_xml', 'qwen_coder', 'nemotron_nano', 'qwen3-coder', 'qwen3.5', 'ornith', 'nanbeige', 'iquest_coder'), ('Qwen/Qwen3-Coder-*', 'Qwen/Qwen3.5-*', 'Qwen/Qwen3.6-*', 'nvidia/NVIDIA-Nemotron-3-*'), ('qwen3_5', 'qwen3_5_moe'), True),
    ),
    'seed_oss': (
        ('reasoning', 'seed_oss', (), ('ByteDance-Seed/Seed-OSS-36B-Instruct',), (), True),
        ('tool', 'seed_oss', (), ('ByteDance-Seed/Seed-OSS-36B-Instruct',), (), True),
    ),
    'solar': (
        ('reasoning', 'solar_open2', (), ('upstage/Solar-Open2-*', 'upstage/Solar-Pro-4*'), (), True),
        ('tool', 'solar_open2', (), ('upstage/Solar-Open2-*', 'upstage/Solar-Pro-4*'), ('solar_open2',), True),
    ),
    'spark': (
        ('tool', 'spark25', ('spark3',), ('XHToken/Spark-X2.5-*',), ('spark2_5',), True),
    ),
    'step': (
        ('reasoning', 'step3', (), ('stepfun-ai/step3',), ('step3_vl',), True),
        ('reasoning', 'step3p5', (), ('stepfun-ai/Step-3.5-Flash', 'stepfun-ai/Step-3.7-Flash'), (), True),
        ('tool', 'step3', (), ('stepfun-ai/step3',), ('step3_vl',), True),
        ('tool', 'step3p5', (), ('stepfun-ai/Step-3.5-Flash', 'stepfun-ai/Step-3.7-Flash'), (), True),
        ('reasoning', 'step5', (), ('stepfun-ai/Step-5*',), (), True),
        ('tool', 'step5', (), ('stepfun-ai/Step-5*',), (), True),
    ),
    'telechat': (
        ('reasoning', 'telechat4', ('xing4_0',), ('XingChen-AGI/Xing4.0-*', 'Tele-AI/TeleChat4*'), (), True),
        ('tool', 'telechat4', ('xing4_0',), ('XingChen-AGI/Xing4.0-*', 'Tele-AI/TeleChat4*'), (), True),
    ),
    'xlam': (
        ('tool', 'xlam', (), ('Salesforce/Llama-xLAM-2-*', 'Salesforce/xLAM-*'), (), True),
    ),
}

HEADERS: Final[tuple[str, ...]] = (
    '<|assistant_start|>',
    '<|begin_assistant|>',
    '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>',
    '<｜Assistant｜>',
    '<｜tool▁outputs▁end｜>',
    '<｜tool▁output▁end｜>',
    '<start_of_turn>model',
    '<|turn>model',
    '<tool_response|>',
    'assistant<|role_sep|>',
    '<|assistant|>',
    '<|start|>assistant',
    '<|start_of_role|>assistant<|end_of_role|>',
    '<|im_start|>assistant',
    '<|extra_0|>',
    '<｜hy_Assistant｜>',
    '<｜hy_Assistant:opensource｜>',
    '<|message_model|>',
    '<|iquest_assistant|>',
    '<|ifm|im_start|>assistant',
    '<|im_assistant|>assistant<|im_middle|>',
    '<|open|>message role="assistant"<|sep|>',
    '<|start_header_id|>assistant<|end_header_id|>',
    '<|header_start|>assistant<|header_end|>',
    ']~b]ai',
    '<beginning_of_sentence>ai name=assistant',
    '[/INST]',
    '[/TOOL_RESULTS]',
    '<SPECIAL_11>Assistant',
    '<seed:bos>assistant',
    '<|im:start|>assistant<|im:content|>',
    '<|Bot|>',
    '<|BOT|>assistant',
    '<_bot>',
)
"""Texts after which an assistant's output begins, of all families."""

MODEL_TYPES: Final[dict[str, str]] = {
    'gemma3': 'gemma3_text',
    'glm4moe': 'glm4_moe',
    'gpt-oss': 'gpt_oss',
    'minimax-m2': 'minimax_m2',
    'qwen2moe': 'qwen2_moe',
    'qwen3moe': 'qwen3_moe',
    'qwen3next': 'qwen3_next',
}
"""GGUF architecture to model type, where the two differ."""
