"""A filter of lm-evaluation-harness that scores the answer of a model and not its thoughts. Needs `lm-eval`.

A task names it in its YAML: `filter: [{function: custom, filter_fn: !function utils.answers}]`.
"""

from __future__ import annotations

from lm_eval.filters.custom import CustomFilter

from untemplate.integrations.lm_eval import text_filter

answers = text_filter("qwen3")

custom = CustomFilter(filter_fn=answers)
responses = [["<think>\nNot Lyon.\n</think>\n\nParis"], ["Rome"]]
print(list(custom.apply(responses, docs=[])))

# Prints:
# [['Paris'], ['Rome']]
