"""Ray Serve LLM with untemplate's parsers in its workers, and one question to a replica. Needs `ray[serve]` and vLLM.

Usage: `python examples/ray_serve_llm.py MODEL REQUIREMENT`. MODEL is a hub id or a folder, REQUIREMENT is what pip
installs in the workers. An endpoint for HTTP is `serve.run(build_openai_app({"llm_configs": [config]}))`. The model of
the tests recites an output, on a CPU.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import ray
from ray import serve
from ray.serve.llm import LLMConfig, build_llm_deployment
from ray.serve.llm.openai_api_models import ChatCompletionRequest

MODEL, REQUIREMENT = sys.argv[1:] or ("Qwen/Qwen3-0.6B", "untemplate")
QUESTION = "Weather in Oslo? <|script_0|>"  # the last word chooses the output of the tests' model
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]

# Settings for a machine without a GPU. With one, leave them out.
ENGINE = {"dtype": "float32", "enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 8}
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
ACTORS = {"num_replicas": 1, "health_check_timeout_s": 600, "ray_actor_options": {"num_cpus": 0.5}}

config = LLMConfig(
    model_loading_config={"model_id": "my-model", "model_source": MODEL},
    engine_kwargs={
        "tool_call_parser": "untemplate",
        "reasoning_parser": "untemplate",
        "enable_auto_tool_choice": True,
        **ENGINE,
    },
    runtime_env={"pip": [REQUIREMENT], "config": {"setup_timeout_seconds": 1800}, "env_vars": ENVIRONMENT},
    accelerator_config={"kind": "cpu"},
    deployment_config=ACTORS,
)


async def ask(handle: Any) -> Any:
    request = ChatCompletionRequest(
        model="my-model", messages=[{"role": "user", "content": QUESTION}], tools=TOOLS, temperature=0, max_tokens=200
    )
    (answer,) = [answer async for answer in handle.options(stream=True).chat.remote(request)]
    return answer.choices[0]


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
serve.start(proxy_location="Disabled")
choice = asyncio.run(ask(serve.run(build_llm_deployment(config), route_prefix=None)))
print("reasoning:", choice.message.reasoning)
for call in choice.message.tool_calls:
    print("call:", call.function.name, call.function.arguments)
print("finish reason:", choice.finish_reason)
serve.shutdown()
ray.shutdown()

# Prints:
# reasoning: Look it up.
# call: weather {"city": "Oslo"}
# finish reason: tool_calls
