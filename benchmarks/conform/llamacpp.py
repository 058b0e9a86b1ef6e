"""llama.cpp's real server, with a model that writes the vector (``tests/llamacpp_playback``). It gets text, at once.
The server makes its parser from a chat template, so each format is asked with a public template of one of its models.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

from tests.llamacpp_playback import Answer, Playback
from tests.public import SHARED

from .llamacpp_templates import TEMPLATES
from .program import Unsupported, by_token, without_end

SETTINGS: Final = (None,)
MOST: Final = 20_000  # characters of an output


def main() -> None:
    formats = json.loads(sys.stdin.readline())["formats"]
    requests = [json.loads(line) for line in sys.stdin]
    answers: dict[int, dict[str, Any]] = {}
    groups: dict[str, list[tuple[int, Any, str]]] = {}
    for number, request in enumerate(requests):
        try:
            output = _output(request, formats[request["format"]])
            groups.setdefault(request["format"], []).append((number, request["tools"], output))
        except Unsupported as reason:
            answers[number] = {"unsupported": str(reason)}
    for name, asked in groups.items():
        answers.update(_answers(TEMPLATES[name], asked))
    for number, request in enumerate(requests):
        print(json.dumps({"id": request["id"], **answers[number]}), flush=True)


def _output(request: dict[str, Any], form: dict[str, Any]) -> str:
    if not request["tools"] or request["prompt"] is not None:
        raise Unsupported("it is asked with tools and without a prompt")
    if "tokens" in request or by_token() or len(request["pieces"]) > 1:
        raise Unsupported("it gets text, at once")
    if request["format"] not in TEMPLATES:
        raise Unsupported("there is no public template of this format")
    output = "".join(without_end(request["pieces"], form))
    if not 0 < len(output) <= MOST:
        raise Unsupported("the output is empty, or too long")
    return output


def _answers(template: str, asked: list[tuple[int, Any, str]]) -> dict[int, dict[str, Any]]:
    """Return the answers with one template, from processes of their own: llama.cpp ends the process on some outputs."""
    source = (SHARED / "templates" / f"{template}.jinja").read_text("utf-8")
    found: dict[int, dict[str, Any]] = {}
    while asked:
        program = [sys.executable, "-m", "benchmarks.conform.llamacpp", "--work"]
        work = json.dumps([source, asked])
        done = subprocess.run(program, input=work, capture_output=True, text=True, check=False)
        found.update(json.loads(line) for line in done.stdout.splitlines())
        left = [one for one in asked if one[0] not in found]
        found.update((one[0], {"unsupported": "the process ended"}) for one in left[:1])
        asked = left[1:]
    return found


def work() -> None:
    """Answer what ``_answers`` asks."""
    source, asked = json.load(sys.stdin)
    playback = Playback(source, [output for _, _, output in asked])
    for number, tools, output in asked:
        answer = playback.ask([{"role": "user", "content": "Hi"}], output, tools=tools, parallel_tool_calls=True)
        print(json.dumps([number, _given(answer)]), flush=True)
    os._exit(0)  # the server's threads need not end in order


def _given(answer: Answer) -> dict[str, Any]:
    message = answer.message
    if message is None:
        asked = not answer.problem.startswith(("the prompt is too long", "the template does not"))
        return {"message": {"content": answer.problem}} if asked else {"unsupported": answer.problem}
    if not answer.exact:
        return {"unsupported": "its grammar forbids this output"}
    calls = [one["function"] for one in message.get("tool_calls") or ()]
    texts = {"reasoning": message.get("reasoning_content") or "", "content": message.get("content") or ""}
    return {"message": {**texts, "tool_calls": [{key: one[key] for key in ("name", "arguments")} for one in calls]}}


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--work"] else main()
