"""``untemplate.integrations.transformers.install`` on real tokenizers, and in TRL.

``make test-integrations`` runs it with torch, transformers and TRL, and the example, which trains a model two steps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("trl", reason="needs TRL")

from untemplate.integrations.transformers import install

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))
import trl_grpo  # noqa: E402

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        },
    }
]
OUTPUT = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call><|im_end|>'
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 3}}}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    made = trl_grpo.tokenizer()
    install(made)
    return made


def ids(tokenizer: Any, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_text_and_ids_give_the_same_message(tokenizer: Any):
    expected = {"role": "assistant", "tool_calls": [CALL]}
    assert tokenizer.parse_response(OUTPUT, prefix="", tools=TOOLS) == expected
    assert tokenizer.parse_response(ids(tokenizer, OUTPUT), prefix=[], tools=TOOLS) == expected


def test_a_batch(tokenizer: Any):
    batch = [ids(tokenizer, OUTPUT), ids(tokenizer, "Five.<|im_end|>")]
    assert tokenizer.parse_response(batch, prefix="", tools=TOOLS) == [
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "Five."},
    ]


def test_functions_are_tools(tokenizer: Any):
    assert tokenizer.parse_response(OUTPUT, prefix="", tools=[trl_grpo.add])["tool_calls"] == [CALL]


def test_a_cut_call_is_content_and_not_run(tokenizer: Any):
    message = tokenizer.parse_response('<tool_call>\n{"name": "add", "arguments": {"a": 2', prefix="", tools=TOOLS)
    assert message == {"role": "assistant", "content": '<tool_call>\n{"name": "add", "arguments": {"a": 2'}


def test_a_template_is_saved(tokenizer: Any, tmp_path: Path):
    tokenizer.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    assert saved["response_template"]["fields"]["tool_calls"]["content"] == "json"


def test_a_wrong_number_of_prompts(tokenizer: Any):
    with pytest.raises(ValueError, match=r"parse_response\(\) prefix: 3 for 2 outputs"):
        tokenizer.parse_response(["a", "b"], prefix=["", "", ""])


def test_a_tokenizer_without_a_template():
    made = trl_grpo.tokenizer()
    made.chat_template = None
    with pytest.raises(ValueError, match="has no chat template: name a format, as `untemplate formats` lists them"):
        install(made)


def test_trl_parses_with_it(tokenizer: Any):
    from trl.chat_template_utils import parse_response

    assert parse_response(tokenizer, ids(tokenizer, OUTPUT), prefix=[], tools=TOOLS)["tool_calls"] == [CALL]
