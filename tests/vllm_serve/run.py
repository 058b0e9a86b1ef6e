"""Serve tiny checkpoints with the real vLLM, and check what the official OpenAI client receives: `make test-vllm`.

Every checkpoint recites known messages in the format of one model family (`checkpoint.py`). The chat templates are
those of vLLM's source distribution. Each message is requested whole and streamed, through

* vLLM's own server with the plugin,
* `untemplate serve --engine vllm`, with untemplate's parsers and with vLLM's,
* `untemplate serve --upstream` and `--upstream-chat` in front of vLLM's server.

vLLM's own server with the plugin is also asked in every API, way and choice of tools (`matrix.py`): for each family,
with two API server processes, with a data parallel size of 2, and with the weights of the demonstration model.

Prints two tables, and exits with 1 if a message differs. ``--record`` writes the second, of which docs/vllm-tests.md
has a copy.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from openai import OpenAI

from tests.vllm_serve.answers import TOOLS, read
from tests.vllm_serve.checkpoint import write_checkpoint
from tests.vllm_serve.demo_model import write_demo_checkpoint
from tests.vllm_serve.matrix import COLUMNS, Matrix
from untemplate import OutputParser
from untemplate.templates import ChatTemplate

EXAMPLES = "examples/tool_chat_template_{}.jinja"
RUST = "rust/src/chat/tests/templates/{}.jinja"
FAMILIES: dict[str, tuple[str, str]] = {
    # name: chat template in vLLM's source distribution, end of the turn
    "qwen3": (RUST.format("qwen3"), "<|im_end|>"),
    "qwen3.5": (RUST.format("qwen35"), "<|im_end|>"),
    "gemma4": (EXAMPLES.format("gemma4"), "<turn|>"),
    "hunyuan": (EXAMPLES.format("hunyuan_a13b"), "<|eos|>"),
    "deepseek_v3": (EXAMPLES.format("deepseekv3"), "<｜end▁of▁sentence｜>"),
    "deepseek_v3.1": (EXAMPLES.format("deepseekv31"), "<｜end▁of▁sentence｜>"),
    "granite": (EXAMPLES.format("granite"), "<|end_of_text|>"),
    "llama3.1": (EXAMPLES.format("llama3.1_json"), "<|eot_id|>"),
    "mistral": (EXAMPLES.format("mistral"), "</s>"),
    "hermes": (EXAMPLES.format("hermes"), "<|im_end|>"),
}
TOKENS = {"llama3.1": ("<|python_tag|>",)}
"""Special tokens that vLLM's parser needs and the chat template does not write."""
IN_PROCESS = ("qwen3", "hermes")
"""Families that the gateway also runs in its own process. The template of the second has no reasoning."""
WORDS = "Plain words, nothing else – as it should be."
ANSWER = "It will rain in both cities."
THOUGHT = "Two places were asked for: I should look up either."
KEEPS_WHITE_SPACE = "--engine vllm, vLLM's parsers"
"""The way whose texts are compared without outer white space: vLLM's parsers keep what touches a marker."""


class Case(NamedTuple):
    """One message, and the request that makes the checkpoint recite it."""

    name: str
    script: int
    request: dict[str, Any]
    message: dict[str, Any]


def calls_of(parser: OutputParser) -> list[tuple[str, dict[str, Any]]]:
    """Return two calls, or one if the format has no more."""
    both = [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "New York", "days": 3})]
    message = {"role": "assistant", "tool_calls": _tool_calls(both)}
    return both if parser.expressible(message) is None else both[:1]


def _tool_calls(calls: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {"id": f"callid{number:03}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(calls)
    ]


def make(folder: Path, template: Path, eos: str, tokens: Sequence[str] = ()) -> tuple[OutputParser, list[Case]]:
    """Write a checkpoint for a chat template; return its parser and its messages. ``tokens``: more special tokens.

    The calls follow a thought, unless the prompt has closed reasoning. There a grammar may begin with the calls, and
    the weights only recite what begins as their text does.
    """
    source = template.read_text(encoding="utf-8")
    loaded = ChatTemplate(source, eos_token=eos)
    parser = OutputParser.for_model(folder.name, template=loaded)
    prompt = loaded.render([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    reasoning = {"reasoning": THOUGHT} if parser.has_reasoning else {}
    calls = calls_of(parser)
    marker = parser.format.reasoning.close.text.strip() if parser.format.reasoning is not None else ""
    closed = bool(marker) and prompt.rstrip().endswith(marker)
    messages: list[dict[str, Any]] = [
        {"content": WORDS},
        {**reasoning, "content": ANSWER},
        {**({} if closed else reasoning), "calls": calls},
    ]
    texts = []
    for message in messages:
        wire = {"role": "assistant", **{k: v for k, v in message.items() if k != "calls"}}
        if "calls" in message:
            wire["tool_calls"] = _tool_calls(message["calls"])
        texts.append(_without_overlap(prompt, parser.render(wire)))
    special = {*tokens, *parser.format.special_tokens, *re.findall(r"<\|[^|<>\s]{1,30}\|>", source)}
    write_checkpoint(folder, source, sorted(special), eos, texts)
    offered: dict[str, Any] = {"tools": TOOLS}
    plain = {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}} if reasoning else {}
    return parser, [
        Case("content", 0, {**offered, **plain}, messages[0]),
        Case("reasoning", 1, {}, messages[1]),
        Case("calls", 2, offered, messages[2]),
        Case("calls, required", 2, {**offered, "tool_choice": "required"}, messages[2]),
    ]


def _without_overlap(prompt: str, text: str) -> str:
    """Return the text without the beginning that the prompt ends with already, such as `<think>`."""
    sizes = (size for size in range(min(len(text), 40), 0, -1) if prompt.endswith(text[:size]))
    return text[next(sizes, 0) :]


# -- Servers ------------------------------------------------------------------------------------------------------


@contextmanager
def serving(command: Sequence[str], port: int, log: Path) -> Iterator[str]:
    """Run a server; yield its URL when it answers."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with {process.returncode}: see {log}")
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5).read()
                break
            except OSError:
                time.sleep(1)
        else:
            raise RuntimeError(f"{command[0]} did not answer in ten minutes: see {log}")
        yield url + "/v1"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


ENGINE = ("--dtype", "float32", "--enforce-eager", "--max-model-len", "4096", "--max-num-seqs", "50")
PLUGIN = ("--enable-auto-tool-choice", "--tool-call-parser", "untemplate", "--reasoning-parser", "untemplate")
SERVERS = {
    "two API server processes": ("--api-server-count", "2"),
    "data parallel of 2": ("--data-parallel-size", "2"),
}
"""Other ways to run the server of the first family."""
DEMO = "demonstration model"
MATRIX = Path(__file__).with_name("recorded") / "matrix.json"
"""The recorded table: columns, and row → cells."""


def vllm_serve(folder: Path, *arguments: str) -> list[str]:
    return [
        str(Path(sys.executable).parent / "vllm"),
        "serve",
        str(folder),
        "--served-model-name",
        "m",
        *ENGINE,
        *arguments,
    ]


def gateway(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "untemplate", "serve", *arguments, "--name", "m"]


# -- Messages -----------------------------------------------------------------------------------------------------


def question(case: Case) -> str:
    return f"Recite <|script_{case.script}|> now."


def ask(url: str, case: Case, *, stream: bool) -> dict[str, Any]:
    """Return the message that the client receives, in the form of `Case.message`, with its finish reason."""
    client = OpenAI(base_url=url, api_key="none", timeout=120)
    request: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": question(case)}],
        "temperature": 0,
        "max_tokens": 500,
        **case.request,
    }
    if not stream:
        choice = client.chat.completions.create(**request).choices[0]
        calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
        return _message(_reasoning(choice.message), choice.message.content, calls, choice.finish_reason)
    reasoning, content, reason = "", "", None
    streamed: dict[int, list[str]] = {}
    for chunk in client.chat.completions.create(stream=True, **request):
        for one in chunk.choices:
            reasoning += _reasoning(one.delta) or ""
            content += one.delta.content or ""
            for part in one.delta.tool_calls or ():
                call = streamed.setdefault(part.index, ["", ""])
                if part.function is not None:
                    call[0] += part.function.name or ""
                    call[1] += part.function.arguments or ""
            reason = one.finish_reason or reason
    return _message(reasoning, content, [(name, arguments) for name, arguments in streamed.values()], reason)


def _reasoning(part: Any) -> str | None:
    found: str | None = getattr(part, "reasoning", None) or getattr(part, "reasoning_content", None)
    return found


def _message(
    reasoning: str | None, content: str | None, calls: Sequence[tuple[str, str]], reason: str | None
) -> dict[str, Any]:
    message: dict[str, Any] = {"finish_reason": reason}
    if reasoning:
        message["reasoning"] = reasoning
    if content:
        message["content"] = content
    if calls:
        message["calls"] = [(name, read(arguments)) for name, arguments in calls]
    return message


def _stripped(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without white space around its texts, and without empty ones."""
    texts = {field: message[field].strip() for field in ("reasoning", "content") if field in message}
    others = {field: value for field, value in message.items() if field not in texts}
    return others | {field: text for field, text in texts.items() if text}


class Results:
    """The table: for each family and way, the cases that came back as expected."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, int, int]] = []
        self.wrong: list[str] = []
        self.matrix: dict[str, list[str]] = {}

    def ask_everything(self, name: str, url: str, log: Path, asked: str, message: dict[str, Any]) -> None:
        """Request one message in every way."""
        matrix = Matrix(url, log, asked, message)
        matrix.check()
        self.matrix[name] = matrix.cells
        self.wrong += [f"{name}, {problem}" for problem in matrix.wrong]
        print("\n".join(f"DIFFERS: {name}, {problem}" for problem in matrix.wrong))
        print(f"{name}: {dict(zip(COLUMNS, matrix.cells, strict=True))}", flush=True)

    def check(self, family: str, way: str, url: str, cases: Sequence[Case]) -> None:
        """Request every case, whole and streamed."""
        right = 0
        for case in cases:
            reason = "tool_calls" if "calls" in case.message else "stop"
            expected = {**case.message, "finish_reason": reason}
            for stream in (False, True):
                try:
                    found: Any = ask(url, case, stream=stream)
                except Exception as error:
                    found = f"{type(error).__name__}: {error}"
                if way == KEEPS_WHITE_SPACE and isinstance(found, dict):
                    found = _stripped(found)
                if found == expected:
                    right += 1
                    continue
                label = f"{family}, {way}, {case.name}, {'streamed' if stream else 'whole'}"
                print(f"DIFFERS: {label}\n  expected {expected}\n  found    {found}", flush=True)
                self.wrong.append(label)
        self.rows.append((family, way, right, 2 * len(cases)))
        print(f"{family}, {way}: {right} of {2 * len(cases)}", flush=True)

    def compare_abilities(self, family: str, url: str, thinks: bool, log: Path) -> None:
        """Compare what the gateway says of its model: in ``/v1/models``, ``/api/show`` and its table at the start."""
        root = url.removesuffix("/v1")
        listed = json.load(urllib.request.urlopen(f"{url}/models", timeout=60))["data"][0]["untemplate"]
        asked = urllib.request.Request(f"{root}/api/show", b'{"model": "m"}', {"Content-Type": "application/json"})
        shown = json.load(urllib.request.urlopen(asked, timeout=60))["capabilities"]
        (row,) = re.findall(r"^  m +\S+ +(yes|no) +(yes|no) ", log.read_text("utf-8"), re.MULTILINE)
        found = {
            "/v1/models": (listed["reasoning"], listed["tools"]),
            "/api/show": ("thinking" in shown, "tools" in shown),
            "start": (row[0] == "yes", row[1] == "yes"),
        }
        if set(found.values()) != {(thinks, True)}:
            label = f"{family}, abilities (thinking, tools)"
            print(f"DIFFERS: {label}\n  expected {(thinks, True)}\n  found    {found}", flush=True)
            self.wrong.append(label)

    def page(self) -> str:
        """Return the table as Markdown."""
        ways = list(dict.fromkeys(way for _, way, _, _ in self.rows))
        lines = ["| family | " + " | ".join(ways) + " |", "| --- |" + " --- |" * len(ways)]
        for family in dict.fromkeys(row[0] for row in self.rows):
            cells = {way: f"{right} of {total}" for one, way, right, total in self.rows if one == family}
            lines.append(f"| {family} | " + " | ".join(cells.get(way, "") for way in ways) + " |")
        return "\n".join(lines) + "\n"


def check_demo(results: Results, work: Path) -> None:
    """Serve the demonstration model; what the plugin makes of its output is what the library makes of it."""
    folder, log = work / "demo", work / "demo.log"
    write_demo_checkpoint(folder)
    parser = OutputParser.for_model(str(folder))
    asked = "What is the weather in Oslo and Bergen?"
    with serving(vllm_serve(folder, *PLUGIN, "--max-model-len", "1024"), free_port(), log) as url:
        template = ChatTemplate.load(folder)
        prompt = template.render([{"role": "user", "content": asked}], tools=TOOLS, add_generation_prompt=True)
        request = {"model": "m", "prompt": prompt, "temperature": 0, "max_tokens": 300, "skip_special_tokens": False}
        text = httpx.post(f"{url}/completions", json=request, timeout=120).json()["choices"][0]["text"]
        parsed = parser.parse(text, tools=TOOLS, prompt=prompt)
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in parsed.tool_calls]
        print(f"{DEMO}: {text!r}", flush=True)
        if parsed.reasoning and len(calls) > 1 and not parsed.content:
            results.ask_everything(DEMO, url, log, asked, {"reasoning": parsed.reasoning, "calls": calls})
        else:
            results.wrong.append(f"{DEMO}: not a thought and two calls: {text!r}")


def name_vllm() -> None:
    """Give the CPU build of vLLM the name that vLLM looks for: it is installed as `vllm-cpu`."""
    with suppress(PackageNotFoundError):
        version("vllm")
        return
    found = f"{version('vllm-cpu')}+cpu"
    folder = Path(str(distribution("vllm-cpu").locate_file(f"vllm-{found}.dist-info")))
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {found}\n", encoding="utf-8")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--source", type=Path, required=True, help="vLLM's unpacked source distribution")
    options.add_argument("--work", type=Path, required=True, help="folder for checkpoints and logs")
    options.add_argument("--family", action="append", help="only this one, or demo (repeatable)")
    options.add_argument("--plugin", action="store_true", help="only vLLM's own server with the plugin")
    options.add_argument("--record", action="store_true", help="record the second table")
    given = options.parse_args()
    name_vllm()
    results = Results()
    for family in [one for one in FAMILIES if one in (given.family or FAMILIES)]:
        template, eos = FAMILIES[family]
        folder = given.work / family
        parser, cases = make(folder, given.source / template, eos, TOKENS.get(family, ()))
        print(f"{family}: {parser!r}", flush=True)
        log = given.work / f"{family}.log"
        with serving(vllm_serve(folder, *PLUGIN), free_port(), log) as url:
            results.check(family, "plugin", url, cases)
            results.ask_everything(family, url, log, question(cases[2]), cases[2].message)
            for way in ("--upstream", "--upstream-chat") if not given.plugin else ():
                log = given.work / f"{family}{way}.log"
                command = gateway(way, url, "--chat-template", str(given.source / template))
                with serving(command, free_port(), log) as front:
                    results.check(family, way, front, cases)
        for name, arguments in SERVERS.items() if family == next(iter(FAMILIES)) else ():
            log = given.work / f"{family}-{name.replace(' ', '-')}.log"
            with serving(vllm_serve(folder, *PLUGIN, *arguments), free_port(), log) as url:
                results.ask_everything(f"{family}, {name}", url, log, question(cases[2]), cases[2].message)
        if family in IN_PROCESS and not given.plugin:
            with serving(vllm_serve(folder), free_port(), given.work / f"{family}-bare.log") as url:
                log = given.work / f"{family}-bare--upstream-chat.log"
                command = gateway("--upstream-chat", url, "--chat-template", str(given.source / template))
                with serving(command, free_port(), log) as front:
                    results.check(family, "--upstream-chat, vLLM without parsers", front, cases)
            names = {"untemplate": "untemplate", "vllm": "vLLM"}
            for backend in names:
                log = given.work / f"{family}-{backend}.log"
                command = gateway(
                    str(folder), "--engine", "vllm", "--parser-backend", backend, "--set", "vllm.dtype=float32",
                    "--vllm-max-model-len", "4096", "--set", "vllm.enforce_eager=true",
                )  # fmt: skip
                with serving(command, free_port(), log) as url:
                    results.compare_abilities(family, url, parser.has_reasoning, log)
                    results.check(family, f"--engine vllm, {names[backend]}'s parsers", url, cases)
    if "demo" in (given.family or ["demo"]):
        check_demo(results, given.work)
    print(results.page())
    if given.record:
        known = json.loads(MATRIX.read_text(encoding="utf-8"))["rows"] if given.family else {}
        table = {"columns": COLUMNS, "rows": known | results.matrix}
        MATRIX.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 1 if results.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
