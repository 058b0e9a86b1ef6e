"""Calls of mlx-lm's server, read by untemplate: with the real package, ``make test-integrations``."""

from __future__ import annotations

import json

import pytest

from untemplate._internal.output_parser import OutputParser

from .helper import TOOLS

utils = pytest.importorskip("mlx_lm.tokenizer_utils", reason="needs mlx-lm")
server = pytest.importorskip("mlx_lm.server", reason="needs mlx-lm")
tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

from untemplate.integrations.mlx_lm import install  # noqa: E402


def wrapped() -> object:
    vocabulary = {word: i for i, word in enumerate(["[UNK]", "<tool_call>", "</tool_call>", "<think>", "</think>"])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    return utils.TokenizerWrapper(fast)


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "kimi_k2", "minimax_m2", "deepseek_v31"])
def test_calls_between_the_markers_are_read(name: str) -> None:
    tokenizer = wrapped()
    parser = install(tokenizer, name)
    call = {"id": "functions.weather:0", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    text = OutputParser.named(name).render({"role": "assistant", "tool_calls": [call]})
    start, end = tokenizer.tool_call_start, tokenizer.tool_call_end
    between = text[text.index(start) + len(start) : text.rindex(end)]
    formatted = server.ToolCallFormatter(tokenizer.tool_parser, TOOLS)([between])
    assert tokenizer.has_tool_calling
    assert parser.format.tools
    assert [one["function"]["name"] for one in formatted] == ["weather"]
    assert [json.loads(one["function"]["arguments"]) for one in formatted] == [{"city": "Rome"}]


def test_a_cut_call_is_left_out() -> None:
    tokenizer = wrapped()
    install(tokenizer, "hermes")
    formatter = server.ToolCallFormatter(tokenizer.tool_parser, None)
    assert formatter(['{"name": "f", "arguments": {"x']) == []


def test_a_format_without_two_markers_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"^format 'llama3_json': mlx-lm finds calls between two markers, and its calls do not have both$",
    ):
        install(wrapped(), "llama3_json")


def test_only_a_tokenizer_of_mlx_lm() -> None:
    with pytest.raises(TypeError, match=r"^install\(\) tokenizer: expected mlx-lm's TokenizerWrapper, got object$"):
        install(object())
