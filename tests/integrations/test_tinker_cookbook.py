"""``untemplate.integrations.tinker_cookbook`` in the real package: ``make test-integrations``."""

from __future__ import annotations

from typing import Any

import pytest

renderers = pytest.importorskip("tinker_cookbook.renderers", reason="needs tinker-cookbook")

from untemplate.integrations.tinker_cookbook import register  # noqa: E402

from .helper import TOOLS, tokenizer  # noqa: E402

register()
SPECIAL = ("<|im_start|>", "<tool_call>", "</tool_call>")
END = "<|im_end|>"
OUTPUT = (
    "<think>\nLook it up.\n</think>\n\nOne moment."
    '<tool_call>\n{"name": "find", "arguments": {"q": "tea"}}\n</tool_call>' + END
)


@pytest.fixture(scope="module")
def made() -> Any:
    return tokenizer(*SPECIAL)


@pytest.fixture(scope="module")
def renderer(made: Any) -> Any:
    return renderers.get_renderer("untemplate", made, model_name="m")


def test_an_answer_becomes_their_message(made: Any, renderer: Any):
    message, ended = renderer.parse_response(made.encode(OUTPUT, add_special_tokens=False))
    assert ended == renderers.ParseTermination.STOP_SEQUENCE
    assert message["content"] == [
        {"type": "thinking", "thinking": "Look it up."},
        {"type": "text", "text": "One moment."},
    ]
    (call,) = message["tool_calls"]
    assert (call.function.name, call.function.arguments) == ("find", '{"q": "tea"}')


def test_a_cut_answer_is_malformed(made: Any, renderer: Any):
    message, ended = renderer.parse_response(made.encode(OUTPUT[: OUTPUT.index("tea")], add_special_tokens=False))
    assert ended == renderers.ParseTermination.MALFORMED
    assert "tool_calls" not in message
    assert [one.error for one in message["unparsed_tool_calls"]] == ["incomplete"]


def test_the_prompt_is_what_the_template_writes(made: Any, renderer: Any):
    prefix = renderer.create_conversation_prefix_with_tools([TOOLS[0]["function"]])
    asked = [*prefix, {"role": "user", "content": "Tea?"}]
    written = made.apply_chat_template(asked[1:], tools=TOOLS[:1], add_generation_prompt=True, tokenize=False)
    assert made.decode(renderer.build_generation_prompt(asked).to_ints()) == written
    assert made.decode(renderer.build_generation_prompt(asked, prefill="Yes").to_ints()) == written + "Yes"


@pytest.mark.parametrize(
    ("mode", "trained"),
    [
        ("last_assistant_message", ["It is tea." + END]),
        ("last_assistant_turn", [OUTPUT, "It is tea." + END]),
        ("all_assistant_messages", ["Hello!" + END, OUTPUT, "It is tea." + END]),
    ],
)
def test_weights_are_on_what_the_model_writes(made: Any, renderer: Any, mode: str, trained: list[str]):
    turn, _ = renderer.parse_response(made.encode(OUTPUT, add_special_tokens=False))
    conversation = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Tea?"},
        turn,
        {"role": "tool", "content": "green"},
        {"role": "assistant", "content": "It is tea."},
    ]
    example, weights = renderer.build_supervised_example(conversation, renderers.TrainOnWhat(mode))
    ids = example.to_ints()
    assert len(ids) == len(weights)
    runs: list[list[int]] = [[]]
    for token, weight in zip(ids, weights.tolist(), strict=True):
        runs[-1].append(token) if weight else runs.append([])
    assert [made.decode(run) for run in runs if run] == trained
    assert made.decode(ids) == made.apply_chat_template(
        [renderer.to_openai_message(one) for one in conversation[:3]]
        + [{**renderer.to_openai_message(turn), "tool_calls": [
            {"type": "function", "function": {"name": "find", "arguments": {"q": "tea"}}}]}]
        + [renderer.to_openai_message(one) for one in conversation[4:]],
        tokenize=False,
    )  # fmt: skip


def test_a_bridge_keeps_the_sampled_ids(made: Any, renderer: Any):
    asked = [{"role": "user", "content": "Tea?"}]
    sampled = [*renderer.build_generation_prompt(asked).to_ints(), *made.encode(OUTPUT, add_special_tokens=False)]
    added = renderer.bridge(sampled, [{"role": "tool", "content": "green"}])
    assert made.decode(added) == f"\n<|im_start|>tool\ngreen{END}\n<|im_start|>assistant\n"


def test_other_modes_are_refused(renderer: Any):
    with pytest.raises(renderers.RendererError) as caught:
        renderer.build_supervised_example([{"role": "user", "content": "Hi"}], renderers.TrainOnWhat.ALL_MESSAGES)
    assert str(caught.value) == "all_messages: only turns of the assistant can be trained, or all tokens"
