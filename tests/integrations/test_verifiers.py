"""``untemplate.integrations.template_renderer`` in renderers, as verifiers uses it: ``make test-integrations``."""

from __future__ import annotations

from typing import Any

import pytest

renderers = pytest.importorskip("renderers", reason="needs renderers")
pytest.importorskip("verifiers", reason="needs verifiers")

from renderers.configs import CustomRendererConfig  # noqa: E402

from .helper import TOOLS, call, tokenizer  # noqa: E402

SPECIAL = ("<|im_start|>", "<tool_call>", "</tool_call>")
PATH = "untemplate.integrations.template_renderer.TemplateRenderer"
ANSWER = '<tool_call>\n{"name": "find", "arguments": {"q": "tea"}}\n</tool_call><|im_end|>'
ASKED: list[Any] = [{"role": "user", "content": "Tea?"}]
RESULT: list[Any] = [{"role": "tool", "content": "green"}]


@pytest.fixture(scope="module")
def made() -> Any:
    return tokenizer(*SPECIAL)


@pytest.fixture(scope="module")
def renderer(made: Any) -> Any:
    return renderers.create_renderer(made, CustomRendererConfig(import_path=PATH, format="hermes+qwen3"))


def ids(made: Any, text: str) -> list[int]:
    return list(made.encode(text, add_special_tokens=False))


def test_it_is_a_renderer(renderer: Any):
    assert isinstance(renderer, renderers.Renderer)


def test_a_response(made: Any, renderer: Any):
    parsed = renderer.parse_response(ids(made, "<think>\nHm.\n</think>\n\nSo." + ANSWER), tools=TOOLS)
    assert (parsed.reasoning_content, parsed.content) == ("Hm.", "So.")
    assert [(one.name, one.arguments, one.status) for one in parsed.tool_calls] == [
        ("find", {"q": "tea"}, renderers.ToolCallParseStatus.OK)
    ]


def test_masks_are_of_what_the_model_writes(made: Any, renderer: Any):
    turn = {"role": "assistant", "content": "", "tool_calls": [call("find", q="tea")]}
    rendered = renderer.render([*ASKED, turn, *RESULT], tools=TOOLS, add_generation_prompt=True)
    sampled = [one for one, mask in zip(rendered.token_ids, rendered.sampled_mask, strict=True) if mask]
    assert made.decode(sampled) == ANSWER
    assert {*rendered.message_indices} == {-1, 1}
    written = made.apply_chat_template([*ASKED, turn, *RESULT], tools=TOOLS, add_generation_prompt=True, tokenize=False)
    assert made.decode(rendered.token_ids) == written


def test_a_bridge_extends_the_sampled_ids(made: Any, renderer: Any):
    prompt, completion = renderer.render_ids(ASKED, add_generation_prompt=True), ids(made, ANSWER)
    bridged = renderer.bridge_to_next_turn(prompt, completion, RESULT)
    assert bridged.token_ids[: len(prompt) + len(completion)] == [*prompt, *completion]
    turn = {"role": "assistant", "content": "", "tool_calls": [call("find", q="tea")]}
    written = made.apply_chat_template([*ASKED, turn, *RESULT], add_generation_prompt=True, tokenize=False)
    assert made.decode(bridged.token_ids) == written
    assert renderer.bridge_to_next_turn(prompt, completion, [{"role": "assistant", "content": "x"}]) is None


def test_verifiers_builds_it(made: Any, monkeypatch: pytest.MonkeyPatch):
    """The pool of verifiers makes its renderers from such a configuration."""
    import asyncio

    from verifiers.v1.clients import train

    monkeypatch.setattr("renderers.base.load_tokenizer", lambda name: made)
    pool = train.ElasticRendererPool(
        "m", CustomRendererConfig(import_path=PATH), chat_template_kwargs=None, multiplex=1
    )

    async def acquired() -> Any:
        async with pool.acquire() as slot:
            return slot.renderer

    assert type(asyncio.run(acquired())).__name__ == "TemplateRenderer"
