"""``untemplate.integrations.bfcl`` in BFCL's own commands, on recorded outputs: ``make test-integrations``.

A small server answers completion requests with an output for each question. BFCL renders the prompts, asks, and scores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("bfcl_eval", reason="needs bfcl-eval")

from bfcl_eval.constants.enums import Language
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

from untemplate.integrations.bfcl import UntemplateHandler, register

from .helper import tokenizer

ROOT = Path(__file__).parents[2]
MODEL = register("test/recorded")
CALL = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
THOUGHT = "<think>\nMaybe <tool_call> or not.\n</think>\n\n"
OUTPUTS = {
    "area of a triangle with a base of 10": THOUGHT + CALL % ("calculate_triangle_area", '{"base": 10, "height": 5}'),
    "factorial of 5": CALL % ("math_factorial", '{"number": 5}'),
    "hypotenuse": "I cannot.",
}
"""A part of each question, and the recorded output. In BFCL's data the second function is `math.factorial`."""


class Server(BaseHTTPRequestHandler):
    """Answers as a completion endpoint."""

    def do_GET(self) -> None:
        self._send({"object": "list", "data": []})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked["skip_special_tokens"] is False
        prompt = asked["prompt"]
        text = next(output for part, output in OUTPUTS.items() if part in prompt)
        choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        made = {"id": "x", "object": "text_completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
        self._send(made)

    def _send(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


def bfcl(folder: Path, url: str, *arguments: str) -> str:
    environ = os.environ | {
        "BFCL_PROJECT_ROOT": str(folder), "REMOTE_OPENAI_BASE_URL": url, "PYTHONPATH": str(ROOT / "src"),
    }  # fmt: skip
    command = [sys.executable, "-m", "untemplate.integrations.bfcl", *arguments, "--model", MODEL]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_benchmark_runs_and_scores(tmp_path: Path, url: str):
    model = tmp_path / "model"
    tokenizer().save_pretrained(model)
    (model / "config.json").write_text('{"model_type": "qwen2", "max_position_embeddings": 4096}', "utf-8")
    ids = {"simple_python": ["simple_python_0", "simple_python_1", "simple_python_2"]}
    (tmp_path / "test_case_ids_to_generate.json").write_text(json.dumps(ids), "utf-8")
    bfcl(tmp_path, url, "generate", "--run-ids", "--skip-server-setup", "--local-model-path", str(model))
    (file,) = (tmp_path / "result").rglob("*simple_python_result.json")
    results = {found["id"]: found for found in map(json.loads, file.read_text("utf-8").splitlines())}
    assert {name: found["result"] for name, found in results.items()} == {
        "simple_python_0": [{"calculate_triangle_area": {"base": 10, "height": 5}}],
        "simple_python_1": [{"math_factorial": {"number": 5}}],
        "simple_python_2": "I cannot.",
    }
    assert results["simple_python_0"]["reasoning_content"] == "Maybe <tool_call> or not."
    bfcl(tmp_path, url, "evaluate", "--test-category", "simple_python", "--partial-eval")
    (file,) = (tmp_path / "score").rglob("*simple_python_score.json")
    score, *wrong = map(json.loads, file.read_text("utf-8").splitlines())
    assert (score["correct_count"], score["total_count"]) == (2, 3)
    assert [found["id"] for found in wrong] == ["simple_python_2"]


FUNCTIONS = [
    {
        "name": "convert.money",
        "description": "Convert.",
        "parameters": {
            "type": "dict",
            "properties": {
                "amount": {"type": "float", "description": "How much."},
                "to": {"type": "string", "description": "The currency."},
            },
            "required": ["amount", "to"],
        },
    }
]


@pytest.fixture
def handler() -> Any:
    made = UntemplateHandler("test/recorded", 0, MODEL, True)
    made.tokenizer = tokenizer()
    return made


def answer(handler: Any, text: str) -> dict[str, Any]:
    entry = {"id": "simple_python_0", "question": [[{"role": "user", "content": "Hi"}]], "function": FUNCTIONS}
    data = handler.add_first_turn_message_prompting(
        handler._pre_query_processing_prompting(entry), entry["question"][0]
    )
    prompt = handler._format_prompt(data["message"], data["function"])
    assert '"name": "convert_money"' in prompt
    response = SimpleNamespace(
        choices=[SimpleNamespace(text=text, finish_reason="stop")],
        usage=SimpleNamespace(prompt_tokens=1, completion_tokens=2),
        untemplate=(prompt, data["function"]),
    )
    return handler._parse_query_response_prompting(response)


def test_calls_are_checked_by_bfcl(handler: Any):
    found = answer(handler, CALL % ("convert_money", '{"amount": 2.5, "to": "EUR"}'))
    calls = handler.decode_ast(found["model_responses"], None, False)
    truth = [{"convert.money": {"amount": [2.5], "to": ["EUR"]}}]
    assert ast_checker(FUNCTIONS, calls, truth, Language.PYTHON, "simple_python", MODEL)["valid"]
    assert handler.decode_execute(calls, False) == ["convert_money(amount=2.5,to='EUR')"]


def test_results_of_calls_are_messages(handler: Any):
    found = answer(handler, CALL % ("convert_money", '{"amount": 2.5, "to": "EUR"}'))
    data = handler._add_assistant_message_prompting({"message": []}, found)
    data = handler._add_execution_results_prompting(data, ["3.1"], found)
    assistant, tool = data["message"]
    assert assistant["tool_calls"][0]["function"] == {
        "name": "convert_money",
        "arguments": {"amount": 2.5, "to": "EUR"},
    }
    assert tool == {"role": "tool", "tool_call_id": assistant["tool_calls"][0]["id"], "content": "3.1"}


def test_an_answer_without_calls(handler: Any):
    found = answer(handler, "I cannot.")
    with pytest.raises(ValueError, match=r"^the answer has no calls: 'I cannot\.'$"):
        handler.decode_ast(found["model_responses"], None, False)


def test_a_cut_call_is_left_out(handler: Any):
    assert answer(handler, (CALL % ("convert_money", '{"amount": 2.5}'))[:50])["model_responses"] == ""
