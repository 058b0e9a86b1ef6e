"""Cut two calls at every token in the real vLLM server, with the plugin and with vLLM's own parsers: `make test-vllm`.

Each checkpoint recites two calls (`run.py`). Every answer is requested from the three APIs, whole and streamed, cut by
``max_tokens`` after each token and by stop strings. A call is *broken* if it is not one of the two. A broken call is
*served* if the answer does not show that it was cut: it is in a whole answer, in a stream whose finish reason asks for
calls, or in an item that is marked as completed. An answer is *empty* if it has neither text nor call:
after white space at the start of the turn, or markers of empty reasoning.

Prints the counts, and exits with 1 if the plugin serves more broken calls than vLLM's parsers in any format, serves one
in a whole answer, or answers with an error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.vllm_serve.run import FAMILIES, TOOLS, Case, free_port, make, name_vllm, serving, vllm_serve

PARSERS: dict[str, tuple[str, str | None]] = {
    # family: vLLM's names of its tool parser and reasoning parser
    "qwen3": ("hermes", "qwen3"),
    "qwen3.5": ("qwen3_coder", "qwen3"),
    "gemma4": ("gemma4", "gemma4"),
    "hunyuan": ("hunyuan_a13b", "hunyuan_a13b"),
    "deepseek_v3": ("deepseek_v3", None),
    "deepseek_v3.1": ("deepseek_v31", None),
    "granite": ("granite", None),
    "llama3.1": ("llama3_json", None),
    "mistral": ("mistral", None),
    "hermes": ("hermes", None),
}
TOKENS = {"llama3.1": ("<|python_tag|>",)}
"""Special tokens that vLLM's parser needs and the chat template does not write."""
STOPS = ("Paris", "city", "New", "name", "get_", "3", "}", "arguments")
APIS = ("chat", "responses", "anthropic")
Answer = tuple[list[tuple[str, str]], bool, bool]
"""The calls, whether the answer shows that it was cut, and whether there is anything in it."""


def body(api: str, script: int, limit: int, stop: str | None, stream: bool) -> dict[str, Any]:
    asked = f"Recite <|script_{script}|> now."
    common: dict[str, Any] = {"model": "m", "temperature": 0, "stream": stream}
    if api == "responses":
        tools = [{"type": "function", **TOOLS[0]["function"]}]
        return {
            **common,
            "input": asked,
            "tools": tools,
            "max_output_tokens": limit,
            **({"stop": [stop]} if stop else {}),
        }
    common |= {"messages": [{"role": "user", "content": asked}], "max_tokens": limit}
    if api == "chat":
        return {**common, "tools": TOOLS, **({"stop": [stop]} if stop else {})}
    function = TOOLS[0]["function"]
    tools = [{"name": function["name"], "description": function["description"], "input_schema": function["parameters"]}]
    return {**common, "tools": tools, **({"stop_sequences": [stop]} if stop else {})}


PATHS = {"chat": "/chat/completions", "responses": "/responses", "anthropic": "/messages"}


def answer(client: httpx.Client, api: str, stream: bool, script: int, limit: int, stop: str | None) -> Answer | None:
    """Return the answer; ``None`` if it is an error."""
    response = client.post(PATHS[api], json=body(api, script, limit, stop, stream))
    if response.status_code != 200:
        return None
    if not stream:
        return READ[api](response.json())
    return STREAMED[api](list(_events(response.text)))


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            yield json.loads(line[5:])


def chat(found: dict[str, Any]) -> Answer:
    choice = found["choices"][0]
    message = choice["message"]
    calls = [(one["function"]["name"], one["function"]["arguments"]) for one in message.get("tool_calls") or ()]
    # Clients run the calls of a whole answer.
    return calls, False, bool(calls or message.get("content") or message.get("reasoning"))


def chat_streamed(events: list[dict[str, Any]]) -> Answer:
    calls: dict[int, list[str]] = {}
    reason, said = None, False
    for choice in (choice for event in events for choice in event.get("choices", ())):
        reason = choice.get("finish_reason") or reason
        delta = choice["delta"]
        said = said or bool(delta.get("content") or delta.get("reasoning"))
        for part in delta.get("tool_calls") or ():
            call = calls.setdefault(part["index"], ["", ""])
            function = part.get("function") or {}
            call[0] += function.get("name") or ""
            call[1] += function.get("arguments") or ""
    return [(name, arguments) for name, arguments in calls.values()], reason != "tool_calls", said or bool(calls)


def responses(found: dict[str, Any]) -> Answer:
    calls, said = [], False
    for item in found["output"]:
        if item["type"] == "function_call":
            calls.append((item["name"], item["arguments"]))
        said = said or any(part.get("text") for part in item.get("content") or ())
    return calls, False, said or bool(calls)


def responses_streamed(events: list[dict[str, Any]]) -> Answer:
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return responses({"output": items})


def anthropic(found: dict[str, Any]) -> Answer:
    calls = [(one["name"], json.dumps(one["input"])) for one in found["content"] if one["type"] == "tool_use"]
    said = any(one.get("text") or one.get("thinking") for one in found["content"])
    return calls, False, said or bool(calls)


def anthropic_streamed(events: list[dict[str, Any]]) -> Answer:
    calls: dict[int, list[str]] = {}
    reason, said = None, False
    for event in events:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            calls[event["index"]] = [event["content_block"]["name"], ""]
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            said = said or bool(delta.get("text") or delta.get("thinking"))
            if delta.get("partial_json"):
                calls[event["index"]][1] += delta["partial_json"]
        elif event["type"] == "message_delta":
            reason = event["delta"].get("stop_reason")
    return [(name, arguments) for name, arguments in calls.values()], reason != "tool_use", said or bool(calls)


READ = {"chat": chat, "responses": responses, "anthropic": anthropic}
STREAMED = {"chat": chat_streamed, "responses": responses_streamed, "anthropic": anthropic_streamed}


def is_broken(call: tuple[str, str], case: Case) -> bool:
    try:
        return (call[0], json.loads(call[1])) not in case.message["calls"]
    except ValueError:
        return True


def count(url: str, case: Case, shown: list[str]) -> Counter[str]:
    """Request every cut; return the counts, by API and way."""
    found: Counter[str] = Counter()
    whole = httpx.post(url + PATHS["chat"], json=body("chat", case.script, 400, None, False), timeout=120)
    tokens = whole.json()["usage"]["completion_tokens"]
    cuts: list[tuple[int, str | None]] = [(limit, None) for limit in range(1, tokens)]
    cuts += [(tokens + 8, stop) for stop in STOPS]
    with httpx.Client(base_url=url, timeout=120) as client, ThreadPoolExecutor(4) as pool:
        for api in APIS:
            for stream in (False, True):
                way = f"{api} {'streamed' if stream else 'whole'}"
                ask = partial(answer, client, api, stream, case.script)
                for (limit, stop), one in zip(cuts, pool.map(lambda cut, ask=ask: ask(*cut), cuts), strict=True):
                    found["cuts"] += 1
                    if one is None:
                        found[f"{way}: error"] += 1
                        shown.append(f"{way} {limit} {stop}: error")
                        continue
                    calls, shows, said = one
                    broken = [call for call in calls if is_broken(call, case)]
                    if broken:
                        found[f"{way}: {'shown' if shows else 'served'}"] += 1
                        if not shows:
                            shown.append(f"{way} {limit} {stop}: {broken}")
                    elif not said:
                        found[f"{way}: empty"] += 1
                        shown.append(f"{way} {limit} {stop}: nothing")
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--source", type=Path, required=True, help="vLLM's unpacked source distribution")
    options.add_argument("--work", type=Path, required=True, help="folder for checkpoints and logs")
    options.add_argument("--family", action="append", help="only this one (repeatable)")
    options.add_argument("--verbose", action="store_true", help="show each call that the plugin serves")
    given = options.parse_args()
    name_vllm()
    wrong = 0
    for family in given.family or PARSERS:
        template, eos = FAMILIES[family]
        folder = given.work / f"{family}-cuts"
        _, cases = make(folder, given.source / template, eos, TOKENS.get(family, ()))
        case = cases[2]
        tool, reasoning = PARSERS[family]
        names = {"vllm": (tool, reasoning), "plugin": ("untemplate", "untemplate")}
        results = {}
        for way, (calls, thinks) in names.items():
            flags = ["--enable-auto-tool-choice", "--tool-call-parser", calls]
            flags += ["--reasoning-parser", thinks] if thinks else []
            shown: list[str] = []
            with serving(vllm_serve(folder, *flags), free_port(), given.work / f"{family}-cuts-{way}.log") as url:
                results[way] = count(url, case, shown)
            print(f"{family}, {way}: {dict(sorted(results[way].items()))}", flush=True)
            if given.verbose and way == "plugin":
                print("\n".join(shown), flush=True)
        for key in results["plugin"]:
            ours, theirs = results["plugin"][key], results["vllm"][key]
            if key.endswith((": served", ": error")) and (ours > theirs or not key.endswith("streamed: served")):
                wrong += 1
                print(f"WORSE: {family}, {key}: {ours}, vLLM {theirs}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
