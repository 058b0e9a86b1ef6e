"""A model of BFCL whose calls untemplate reads. Needs `bfcl-eval`.

`python -m untemplate.integrations.bfcl generate --model untemplate/ORG/MODEL` runs the benchmark. This file gives the
handler one recorded answer, and BFCL's own checker judges it.
"""

from __future__ import annotations

from types import SimpleNamespace

from bfcl_eval.constants.enums import Language, ReturnFormat
from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

from untemplate import OutputParser
from untemplate.integrations.bfcl import register

OUTPUT = '<think>\nEasy.\n</think>\n\n<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'
NUMBER = {"type": "integer", "description": "A number."}
FUNCTION = {
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {"type": "dict", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]},
}

name = register("org/model")
handler = MODEL_CONFIG_MAPPING[name].model_handler("org/model", 0, name, True)
handler._parser = OutputParser.named("hermes", reasoning="qwen3")  # with a real model, its chat template decides
answer = SimpleNamespace(
    choices=[SimpleNamespace(text=OUTPUT, finish_reason="stop")],
    usage=SimpleNamespace(prompt_tokens=9, completion_tokens=30),
    untemplate=(None, None),
)
parsed = handler._parse_query_response_prompting(answer)
calls = handler.decode_ast(parsed["model_responses"], ReturnFormat.PYTHON, False)
print("calls:", calls)
print("reasoning:", parsed["reasoning_content"])
truth = [{"add": {"a": [2], "b": [3]}}]
print("valid:", ast_checker([FUNCTION], calls, truth, Language.PYTHON, "simple_python", name)["valid"])

# Prints:
# calls: [{'add': {'a': 2, 'b': 3}}]
# reasoning: Easy.
# valid: True
