"""``untemplate.integrations.mistral_common`` with the vocabularies of the package: ``make test-integrations``."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

pytest.importorskip("mistral_common", reason="needs mistral-common")

from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

from untemplate import OutputParser
from untemplate.integrations.mistral_common import Tokenizer

from .helper import TOOLS

ARGUMENTS = {"q": "Zürich ☀️ 你好", "limit": 3}
CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "find", "arguments": json.dumps(ARGUMENTS)}}


@pytest.fixture(
    scope="module",
    params=[
        "tekken_240911.json",
        "mistral_instruct_tokenizer_241114.model.v7",
        "mistral_instruct_tokenizer_240323.model.v3",
    ],
)
def theirs(request: pytest.FixtureRequest) -> Any:
    return MistralTokenizer.from_file(str(files("mistral_common") / "data" / request.param))


def test_calls_that_the_package_writes(theirs: Any):
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    answer = {"role": "tool", "tool_call_id": "abcdefghi", "name": "find", "content": "1"}
    ids = theirs.encode_chat_completion(ChatCompletionRequest(messages=[*messages, answer], tools=TOOLS)).tokens
    own = theirs.instruct_tokenizer.tokenizer
    begin = ids.index(own.get_special_token("[TOOL_CALLS]"))
    turn = ids[begin : ids.index(own.eos_id, begin) + 1]
    output = OutputParser.named("mistral", tokenizer=Tokenizer(theirs)).parse_tokens(turn).output
    assert [(call.function.name, json.loads(call.function.arguments)) for call in output.tool_calls] == [
        ("find", ARGUMENTS)
    ]
    assert (output.content, output.diagnostics) == (None, [])


def test_every_id_has_a_token_of_its_own(theirs: Any):
    own = theirs.instruct_tokenizer.tokenizer
    assert sorted(Tokenizer(own).get_vocab().values()) == list(range(own.n_words))


def test_a_marker_that_ordinary_tokens_spell_is_text(theirs: Any):
    own = theirs.instruct_tokenizer.tokenizer
    ids = own.encode('[TOOL_CALLS][{"name": "find", "arguments": {}}]', bos=False, eos=True)
    output = OutputParser.named("mistral", tokenizer=Tokenizer(theirs)).parse_tokens(ids).output
    assert output.tool_calls == []
