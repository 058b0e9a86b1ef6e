"""untemplate inside Ray Serve LLM: a replica on a local Ray, with the CPU build of vLLM (``make test-integrations``).

The deployment is called by its handle. The model is a tiny checkpoint that recites an output.
"""

from __future__ import annotations

import asyncio
import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="needs Ray")
llm = pytest.importorskip("ray.serve.llm", reason="needs ray[serve] and vLLM")

from ray import serve  # noqa: E402
from ray.serve.llm.openai_api_models import ChatCompletionRequest  # noqa: E402

from tests.vllm_serve.checkpoint import write_checkpoint  # noqa: E402

TEMPLATE = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
OUTPUT = (
    '<think>\nLook it up.\n</think>\n\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
)
SPECIAL = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


@pytest.fixture
def handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    if not entry_points(group="vllm.general_plugins", name="untemplate"):
        pytest.fail("untemplate is not installed here as a package, so vLLM does not find its plugin")
    write_checkpoint(tmp_path / "model", TEMPLATE, SPECIAL, "<|im_end|>", [OUTPUT])
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "400")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    config = llm.LLMConfig(
        model_loading_config={"model_id": "tiny", "model_source": str(tmp_path / "model")},
        engine_kwargs={
            "tool_call_parser": "untemplate", "reasoning_parser": "untemplate", "enable_auto_tool_choice": True,
            "dtype": "float32", "enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 8,
        },
        runtime_env={"env_vars": {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}},
        accelerator_config={"kind": "cpu"},
        deployment_config={"num_replicas": 1, "health_check_timeout_s": 600, "ray_actor_options": {"num_cpus": 0.5}},
    )  # fmt: skip
    ray.init(num_cpus=max(2, os.cpu_count() or 2), include_dashboard=False)
    serve.start(proxy_location="Disabled")
    yield serve.run(llm.build_llm_deployment(config), name="tiny", route_prefix=None)
    serve.shutdown()
    ray.shutdown()


def test_the_worker_parses_reasoning_and_calls(handle: Any):
    request = ChatCompletionRequest(
        model="tiny", messages=[{"role": "user", "content": "<|script_0|>"}], tools=TOOLS, max_tokens=200, temperature=0
    )

    async def ask() -> Any:
        return [answer async for answer in handle.options(stream=True).chat.remote(request)]

    (answer,) = asyncio.run(ask())
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.reasoning == "Look it up."
    assert [(call.function.name, call.function.arguments) for call in choice.message.tool_calls] == [
        ("weather", '{"city": "Oslo"}')
    ]
