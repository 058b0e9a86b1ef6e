"""Drive real clients through a tool loop to its answer, and write a page with the results.

usage: python -m tests.clients.run --python PYTHON --node FOLDER [--only TEXT] [--page FILE] [--model-file GGUF]

Each client talks to four gateways: replay (made-up outputs), demo (a small real model), a scripted upstream, and
SmolLM2 with generic tools. A tool loop passes if the client exits with 0 and the answer contains the result of the
tool; what SmolLM2 answers is not judged, nor that it calls without end. Command line agents run a command in a folder
of their own, on the scripted upstream only: their prompts do not fit into the context of the small models, and made-up
arguments are no commands.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from .upstream import SECRET, serving

HERE: Final = Path(__file__).parent
DRIVERS: Final = HERE / "drivers"
TEMPLATE: Final = HERE.parents[1] / "demo/src/untemplate_demo/chat_template.jinja"
SECONDS: Final = 240
BACKENDS: Final = ("replay", "demo", "scripted", "smollm2")
PYTHON: Final = {
    "openai_chat": ("openai", "Chat Completions"),
    "openai_responses": ("openai", "Responses, with previous_response_id"),
    "anthropic_runner": ("anthropic", "Messages, tool runner"),
    "ollama_chat": ("ollama", "/api/chat"),
    "litellm_chat": ("litellm", "Chat Completions"),
    "langchain_openai": ("langchain-openai", "Chat Completions"),
    "langchain_anthropic": ("langchain-anthropic", "Messages"),
    "langchain_ollama": ("langchain-ollama", "/api/chat"),
    "langchain_google": ("langchain-google-genai", "Gemini"),
    "google_genai": ("google-genai", "Gemini"),
    "pydantic_ai": ("pydantic-ai-slim", "Chat Completions"),
    "openai_agents": ("openai-agents", "Responses"),
    "instructor_tools": ("instructor", "Chat Completions, a required call"),
    "smolagents": ("smolagents", "Chat Completions"),
    "haystack": ("haystack-ai", "Chat Completions"),
    "agno": ("agno", "Chat Completions"),
    "huggingface_hub": ("huggingface_hub", "Chat Completions"),
}
NODE: Final = {
    "openai": ("openai", "Chat Completions, runTools"),
    "anthropic": ("@anthropic-ai/sdk", "Messages"),
    "ollama": ("ollama", "/api/chat"),
    "google": ("@google/genai", "Gemini"),
}
AI_SDK: Final = {
    "chat": ("@ai-sdk/openai-compatible", "Chat Completions"),
    "responses": ("@ai-sdk/openai", "Responses, stored"),
    "anthropic": ("@ai-sdk/anthropic", "Messages"),
    "google": ("@ai-sdk/google", "Gemini"),
}
AGENTS: Final = {
    "codex": ("@openai/codex", "Responses"),
    "claude": ("@anthropic-ai/claude-code", "Messages"),
    "opencode": ("opencode-ai", "Chat Completions"),
    "qwen": ("@qwen-code/qwen-code", "Chat Completions"),
    "gemini": ("@google/gemini-cli", "Gemini"),
}
ASKED: Final = "Run the command `cat secret.txt` and tell me its output."


@dataclass(frozen=True)
class Tools:
    """Places of the installed clients."""

    python: str
    node: Path


@contextmanager
def gateway(*arguments: str) -> Iterator[str]:
    """Run a gateway in a process of its own; yield its URL."""
    command = [sys.executable, "-m", "untemplate", "serve", *arguments, "--port", "0", "--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    killer = threading.Timer(SECONDS, process.kill)
    killer.start()
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"untemplate serves on (\S+)", line):
                killer.cancel()
                threading.Thread(target=process.stdout.read, daemon=True).start()
                yield found[1]
                return
        raise RuntimeError(f"the gateway did not start: {' '.join(command)}")
    finally:
        killer.cancel()
        process.terminate()
        process.wait()


def ran(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[bool, str]:
    """Run a client; return True if it exits with 0, and its output."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return False, f"no answer within {SECONDS} s: {str(error.stdout)[-500:]}"
    return done.returncode == 0, done.stdout if done.returncode == 0 else done.stdout[-300:] + done.stderr[-1500:]


def agent(name: str, url: str, model: str, tools: Tools, home: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command of an agent and its environment. It may run commands without asking."""
    program = str(tools.node / "node_modules/.bin" / name)
    environment = {"HOME": str(home), "PWD": str(home.parent), "XDG_CONFIG_HOME": str(home / ".config"), "CI": "1"}
    if name == "codex":
        settings = {
            "model_provider": '"gateway"',
            "model_providers.gateway.name": '"gateway"',
            "model_providers.gateway.base_url": f'"{url}/v1"',
            "model_providers.gateway.wire_api": '"responses"',
        }
        options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
        program_options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", model]
        return [program, "exec", *program_options, *options, ASKED], environment
    if name == "claude":
        own = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "ANTHROPIC_MODEL": model}
        own |= {"ANTHROPIC_SMALL_FAST_MODEL": model, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        return [program, "-p", ASKED, "--allowedTools", "Bash"], {**environment, **own}
    if name == "opencode":
        provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{url}/v1", "apiKey": "none"}}
        provider["models"] = {model: {"name": model}}
        config = {"provider": {"gateway": provider}, "permission": {"bash": "allow"}, "autoupdate": False}
        return [program, "run", "-m", f"gateway/{model}", ASKED], {
            **environment,
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        }
    if name == "gemini":
        own = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none", "GEMINI_MODEL": model}
        own |= {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_TELEMETRY_ENABLED": "false"}
        (home / ".gemini").mkdir()
        (home / ".gemini/settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
        return [program, "--yolo", "-m", model, "-p", ASKED], {**environment, **own}
    own = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": model}
    return [program, "--yolo", "--auth-type", "openai", "-p", ASKED], {**environment, **own}


def loop(client: str, backend: str, url: str, model: str, tools: Tools) -> tuple[str, str]:
    """Drive one client on one gateway. Return ``pass``, ``fail`` or ``-``, and the output of a failure."""
    result = SECRET if backend == "scripted" else '{"temperature": 17}'
    kind, _, name = client.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        environment = {"NODE_PATH": str(tools.node / "node_modules")}
        at = Path(folder)
        if kind == "python":
            command = [tools.python, str(DRIVERS / "python_clients.py"), name, url, model, result]
        elif kind in ("ai-sdk", "node"):
            driver = "ai_sdk.mjs" if kind == "ai-sdk" else "node_clients.mjs"
            command, at = ["node", str(DRIVERS / driver), name, url, model, result], tools.node
        else:
            if backend != "scripted":
                return "-", ""
            home = Path(folder) / "home"
            home.mkdir()
            (at / "secret.txt").write_text(SECRET)
            command, environment = agent(name, url, model, tools, home)
        exited, said = ran(command, at, environment)
    if backend == "smollm2":
        good = exited or "no answer" in said  # of the driver: the model calls tools again and again
        return ("pass", "") if good else ("fail", said)
    expected = "17" if backend == "demo" else result
    # Some clients nest the result in JSON.
    return ("pass", "") if exited and expected in said.replace("\\", "") else ("fail", said)


def versions(tools: Tools) -> dict[str, str]:
    """Return the installed version of each package."""
    found = {}
    for package, _ in (*AI_SDK.values(), *NODE.values(), *AGENTS.values()):
        found["node " * (package in ("openai", "ollama")) + package] = json.loads(
            (tools.node / "node_modules" / package / "package.json").read_text()
        )["version"]
    names = [package for package, _ in PYTHON.values()]
    program = "import sys\nfrom importlib.metadata import version\nprint(*map(version, sys.argv[1:]))"
    shown = subprocess.run([tools.python, "-c", program, *names], capture_output=True, text=True, check=True).stdout
    return found | dict(zip(names, shown.split(), strict=True))


def page(results: dict[str, dict[str, str]], found: dict[str, str]) -> str:
    """Return the page."""
    about = {f"python:{n}": a for n, a in PYTHON.items()} | {f"ai-sdk:{n}": a for n, a in AI_SDK.items()}
    about |= {f"agent:{n}": a for n, a in AGENTS.items()} | {f"node:{n}": a for n, a in NODE.items()}
    rows = []
    for client, row in results.items():
        package, api = about[client]
        package = "node " * (client in ("node:openai", "node:ollama")) + package  # PyPI has these names, too
        cells = [row[backend] for backend in BACKENDS]
        rows.append(f"| {package} {found[package]} | {api} | {' | '.join(cells)} |")
    return _PAGE.format(version=metadata.version("untemplate"), rows="\n".join(rows))


_PAGE: Final = """# Clients

<!-- Made by `make test-clients`. Do not edit. -->

Each client was driven through a tool loop to its answer: the model calls a tool, the client runs it, and the answer
contains the result. The gateways were `untemplate serve replay:hermes`, `untemplate serve demo`, `untemplate serve
--upstream URL` in front of a scripted server, and `untemplate serve smollm2`, whose answers are not judged. Command
line agents were driven on the scripted server only: their prompts do not fit into the context of small models.

untemplate {version}.

| client | API | replay | demo | scripted upstream | SmolLM2 |
| --- | --- | --- | --- | --- | --- |
{rows}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Drive real clients through a tool loop to its answer.")
    parser.add_argument("--python", required=True, help="Python that has the Python clients")
    parser.add_argument("--node", required=True, type=Path, help="folder with node_modules")
    parser.add_argument("--only", default="", help="clients whose name matches this expression")
    parser.add_argument("--page", type=Path, help="file to write")
    parser.add_argument("--model-file", required=True, metavar="GGUF", help="SmolLM2")
    given = parser.parse_args()
    # Clients run in folders of their own.
    tools = Tools(str(Path(given.python).absolute()), given.node.absolute())
    clients = [*(f"python:{n}" for n in PYTHON), *(f"ai-sdk:{n}" for n in AI_SDK), *(f"node:{n}" for n in NODE)]
    clients += [f"agent:{n}" for n in AGENTS]
    clients = [client for client in clients if re.search(given.only, client)]
    results: dict[str, dict[str, str]] = {client: {} for client in clients}
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        upstream = stack.enter_context(serving())
        urls = {
            "replay": (stack.enter_context(gateway("replay:hermes", "--replay-speed", "0")), "hermes"),
            "demo": (stack.enter_context(gateway("demo", "--name", "demo")), "demo"),
            "scripted": (
                stack.enter_context(gateway("--upstream", upstream, "--chat-template", str(TEMPLATE))),
                "scripted",
            ),
            "smollm2": (stack.enter_context(gateway(given.model_file, "--name", "smollm2")), "smollm2"),
        }
        jobs = {(c, b): pool.submit(loop, c, b, *urls[b], tools) for c in clients for b in BACKENDS}
        for (client, backend), job in jobs.items():
            verdict, said = job.result()
            results[client][backend] = verdict
            print(f"{client:32} {backend:9} {verdict}", flush=True)
            if said:
                print("    " + said.strip().replace("\n", "\n    "), flush=True)
    if given.page is not None:
        given.page.write_text(page(results, versions(tools)))
    return any("fail" in row.values() for row in results.values())


if __name__ == "__main__":
    sys.exit(main())
