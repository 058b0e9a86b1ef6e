"""Compare the plugin and vLLM's own parsers on cut calls, in the real vLLM server.

usage: python -m tests.vllm_serve.cut_answers --source build/vllm/0.33.0 --work build/vllm/work [--family NAME]

Each checkpoint recites two calls (`run.py`). Every answer is requested from the three APIs, whole and streamed, cut by
``max_tokens`` after each token and by stop strings, and judged as `matrix.py` does. Prints the counts, and exits with 1
if the plugin serves more broken calls than vLLM's parsers, or answers with an error. `make test-vllm` has no need of
vLLM's counts, because the plugin may serve none.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.vllm_serve.matrix import AUTO, Matrix
from tests.vllm_serve.run import FAMILIES, PLUGIN, TOKENS, free_port, make, name_vllm, question, serving, vllm_serve

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


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--source", type=Path, required=True, help="vLLM's unpacked source distribution")
    options.add_argument("--work", type=Path, required=True, help="folder for checkpoints and logs")
    options.add_argument("--family", action="append", help="only this one (repeatable)")
    given = options.parse_args()
    name_vllm()
    wrong = 0
    for family in given.family or PARSERS:
        template, eos = FAMILIES[family]
        folder = given.work / family
        _, cases = make(folder, given.source / template, eos, TOKENS.get(family, ()))
        case = cases[2]
        tool, reasoning = PARSERS[family]
        own = ["--enable-auto-tool-choice", "--tool-call-parser", tool]
        own += ["--reasoning-parser", reasoning] if reasoning else []
        results: dict[str, Counter[str]] = {}
        for way, flags in {"vLLM": own, "plugin": PLUGIN}.items():
            log = given.work / f"{family}-cuts-{way}.log"
            with (
                serving(vllm_serve(folder, *flags), free_port(), log) as url,
                httpx.Client(base_url=url, timeout=120) as client,
                ThreadPoolExecutor(8) as pool,
            ):
                cuts = list(Matrix(url, log, question(case), case.message).cuts(client, pool, AUTO))
            results[way] = Counter(
                f"{cut.way.api} {'streamed' if cut.way.stream else 'whole'}: {cut.kind}" for cut in cuts if cut.kind
            )
            print(f"{family}, {way}, {len(cuts)} cuts: {dict(sorted(results[way].items()))}", flush=True)
        for key, ours in results["plugin"].items():
            if key.endswith((": served", ": error")) and ours > results["vLLM"][key]:
                wrong += 1
                print(f"WORSE: {family}, {key}: {ours}, vLLM {results['vLLM'][key]}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
