"""The abilities of models, derived from their templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.public import SHARED, needs_templates
from untemplate.analysis import prepare
from untemplate.selection import select
from untemplate.templates import ChatTemplate
from untemplate_gateway.manager.capabilities import ModelCapabilities, detect_capabilities
from untemplate_gateway.manager.checkpoint import open_checkpoint

from .models import TEMPLATE, gguf_model, safetensors_model


def test_a_gguf_file(tmp_path: Path):
    found = detect_capabilities(open_checkpoint(gguf_model(tmp_path / "m.gguf")))
    assert found == ModelCapabilities(
        family="qwen2",
        supports_thinking=False,
        supports_tools=True,
        default_enable_thinking=False,
        reasoning_parser=None,
        tool_call_parser="hermes",
        chat_template=TEMPLATE,
        evidence=(
            "the GGUF file gives its type as qwen2",
            "format hermes: model type qwen2; certified",
            "its template writes tool calls, and they are read back",
        ),
    )
    assert detect_capabilities(str(tmp_path / "m.gguf")) == found
    assert found.to_dict()["evidence"] == list(found.evidence)
    assert "chat_template" not in found.to_dict()


def test_a_folder(tmp_path: Path):
    found = detect_capabilities(str(safetensors_model(tmp_path)))
    assert (found.family, found.tool_call_parser) == ("qwen2", "hermes")
    assert found.evidence[0] == "config.json gives its type as qwen2"
    (tmp_path / "model.safetensors").unlink()
    assert detect_capabilities(str(tmp_path)) == found


def test_a_configuration_alone():
    found = detect_capabilities("org/unknown", {"model_type": "qwen2"}, TEMPLATE)
    assert (found.family, found.tool_call_parser, found.supports_tools) == ("qwen2", "hermes", True)


def test_a_template_without_reasoning_has_no_reasoning_parser():
    """Qwen3-Instruct: with a reasoning parser of vLLM's, all of its answers would be reasoning."""
    found = detect_capabilities("org/x", {"model_type": "qwen3"}, TEMPLATE)
    assert (found.supports_thinking, found.reasoning_parser, found.tool_call_parser) == (False, None, "hermes")


def test_thinking_that_can_be_switched():
    source = TEMPLATE.replace(
        "{{ '<|im_start|>assistant\\n' }}",
        "{{ '<|im_start|>assistant\\n' }}{% if enable_thinking is defined and not enable_thinking %}"
        "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}",
    )
    found = detect_capabilities("org/x", {"model_type": "qwen3"}, source)
    assert (found.supports_thinking, found.default_enable_thinking) == (True, True)
    assert (found.reasoning_parser, found.tool_call_parser) == ("qwen3", "hermes")
    assert "enable_thinking turns thinking on and off; it is on by default" in found.evidence
    off = source.replace("is defined and not enable_thinking", "is not defined or not enable_thinking")
    found = detect_capabilities("org/x", {"model_type": "qwen3"}, off)
    assert (found.supports_thinking, found.default_enable_thinking) == (True, False)
    opened = TEMPLATE.replace("assistant\\n' }}{% endif", "assistant\\n<think>\\n' }}{% endif")
    found = detect_capabilities("org/x", {"model_type": "qwen3"}, opened)
    assert (found.supports_thinking, found.default_enable_thinking) == (True, True)
    assert "its prompt opens reasoning" in found.evidence


def test_a_model_of_a_thinking_family_that_does_not_think():
    found = detect_capabilities("org/x", {"model_type": "qwen3"}, TEMPLATE)
    assert (found.supports_thinking, found.default_enable_thinking, found.supports_tools) == (False, False, True)
    said = "its template knows no reasoning: it does not contain the markers of its format"
    assert said in found.evidence


def test_a_template_without_tools():
    plain = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    selection = select(enforce="hermes")
    certified = prepare(ChatTemplate(plain)).certify(selection.format)
    from dataclasses import replace

    selection = replace(selection, chosen=replace(selection.chosen, certificate=certified))
    found = detect_capabilities("org/x", template=plain, selection=selection)
    assert not found.supports_tools
    said = "its template renders no tool calls: --chat-template can give it one that does"
    assert said in found.evidence


def test_nothing_is_known():
    found = detect_capabilities()
    assert found.family == "unknown"
    assert not found.supports_thinking
    assert not found.supports_tools
    assert found.evidence == ("format passthrough: everything is content",)


def test_a_template_that_cannot_be_read(tmp_path: Path):
    safetensors_model(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    found = detect_capabilities(str(tmp_path))
    assert found.chat_template is None
    assert found.tool_call_parser == "hermes"
    assert found.evidence[1].startswith(f"no chat template: {tmp_path}: has no chat template")


@needs_templates
@pytest.mark.parametrize(
    ("name", "thinks", "calls", "default"),
    [
        ("Qwen-Qwen3-0.6B", True, True, True),
        ("Qwen-Qwen2.5-7B-Instruct", False, True, False),
        ("deepseek-ai-DeepSeek-V3.1", True, True, False),
        ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", True, True, True),
        ("GLM-4.6", True, True, True),
        ("openai-gpt-oss-120b", True, True, True),
        ("google-gemma-4-31B-it", True, True, False),
        ("google-gemma-2-2b-it", False, False, False),
        ("microsoft-Phi-3.5-mini-instruct", False, False, False),
        ("mistralai-Ministral-3-14B-Reasoning-2512", True, True, True),
        ("meta-llama-Llama-3.1-8B-Instruct", False, True, False),
    ],
)
def test_templates_of_models(name: str, thinks: bool, calls: bool, default: bool):
    found = detect_capabilities(None, template=str(SHARED / "templates" / f"{name}.jinja"))
    assert (found.supports_thinking, found.supports_tools, found.default_enable_thinking) == (thinks, calls, default)
