"""``untemplate.integrations.lm_eval`` in a real evaluation: ``make test-integrations``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

lm_eval = pytest.importorskip("lm_eval", reason="needs lm-eval")

from lm_eval.api.model import LM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

from untemplate.integrations.lm_eval import text_filter  # noqa: E402

UTILS = """\
from datasets import Dataset
from untemplate.integrations.lm_eval import text_filter

answers = text_filter("qwen3")

def data(**_):
    return {"test": Dataset.from_list([{"question": "Capital of France?", "answer": "Paris"}] * 2)}
"""
TASK = """\
task: capitals
custom_dataset: !function utils.data
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["<|im_end|>"]}
filter_list:
  - name: answers
    filter: [{function: custom, filter_fn: !function utils.answers}, {function: take_first}]
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


class Recorded(LM):
    """Answers with a recorded output."""

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        return ["<think>\nFrance: Paris, not Lyon.\n</think>\n\nParis" for _ in requests]

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: Any, disable_tqdm: bool = False) -> Any:
        raise NotImplementedError


def test_an_evaluation_scores_the_content(tmp_path: Path):
    (tmp_path / "utils.py").write_text(UTILS, "utf-8")
    (tmp_path / "capitals.yaml").write_text(TASK, "utf-8")
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    results = lm_eval.simple_evaluate(
        model=Recorded(), tasks=["capitals"], task_manager=manager, bootstrap_iters=0, log_samples=True
    )
    assert results["results"]["capitals"]["exact_match,answers"] == 1.0
    assert {sample["filtered_resps"][0] for sample in results["samples"]["capitals"]} == {"Paris"}


def test_calls_are_dicts():
    apply = text_filter("hermes", "tool_calls")
    text = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    assert apply([[text, "No."]], None) == [[[{"name": "f", "arguments": '{"a": 1}'}], []]]


def test_a_part_that_does_not_exist():
    problem = r"^text_filter\(\) part: 'answer' is not one of: 'content', 'reasoning', 'tool_calls'$"
    with pytest.raises(ValueError, match=problem):
        text_filter("hermes", "answer")  # type: ignore[arg-type]
