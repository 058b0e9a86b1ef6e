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
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import httpx

from tests.vllm_serve.answers import APIS, ask, body, judge
from tests.vllm_serve.run import FAMILIES, Case, free_port, make, name_vllm, serving, vllm_serve

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


def count(url: str, case: Case, shown: list[str]) -> Counter[str]:
    """Request every cut; return the counts, by API and way."""
    found: Counter[str] = Counter()
    asked = f"Recite <|script_{case.script}|> now."
    whole = httpx.post(url + APIS["chat"], json=body("chat", asked, 400, stream=False), timeout=120)
    tokens = whole.json()["usage"]["completion_tokens"]
    cuts: list[tuple[int, str | None]] = [(limit, None) for limit in range(1, tokens)]
    cuts += [(tokens + 8, stop) for stop in STOPS]
    with httpx.Client(base_url=url, timeout=120) as client, ThreadPoolExecutor(4) as pool:
        for api, stream in product(APIS, (False, True)):
            way = f"{api} {'streamed' if stream else 'whole'}"
            requests = [body(api, asked, limit, stop=stop, stream=stream) for limit, stop in cuts]
            answers = pool.map(partial(ask, client, api), requests)
            for (limit, stop), answer in zip(cuts, answers, strict=True):
                found["cuts"] += 1
                kind, what = judge(answer, case.message["calls"])
                if kind:
                    found[f"{way}: {kind}"] += 1
                    if kind != "shown":
                        shown.append(f"{way} {limit} {stop}: {what}")
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
