"""Quote calls in content, and count how many of them other projects' parsers and untemplate call.

``python -m benchmarks.peers.quotations --page docs/injected-text.md`` runs every peer that has an environment (`make
bench-peers-install`) and writes the table of the page. ``--peer NAME`` reads the jobs from stdin and prints the results
of one peer as JSON; it runs in that peer's environment.

* The contexts are those of ``untemplate._internal.backends.quotations``. A quotation is called if the message has a
  call.
* A peer counts for a format if one of its configurations reads a real call after content. Of those that do, the one
  with the fewest quotations that are called counts.
* llama.cpp's server runs with a model that writes the output byte by byte (``tests.llamacpp_playback``). It needs chat
  templates of the formats, which belong to other projects: ``UNTEMPLATE_SHARED`` names their folder.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, Final

from .failures import WORD, _run, _version

FORMATS: Final = (
    *("hermes", "qwen3_coder", "deepseek_v31", "gpt-oss", "glm45", "kimi_k2", "minimax_m2", "mistral", "gemma4"),
    *("seed_oss", "granite4", "step3p5", "hunyuan_a13b", "llama3_json", "phi4_mini_json", "internlm"),
)
LLAMACPP: Final = {
    "hermes": "Qwen-Qwen3-0.6B.jinja",
    "qwen3_coder": "Qwen3-Coder.jinja",
    "deepseek_v31": "deepseek-ai-DeepSeek-V3.1.jinja",
    "gpt-oss": "openai-gpt-oss-120b.jinja",
    "glm45": "GLM-4.6.jinja",
    "kimi_k2": "moonshotai-Kimi-K2.jinja",
    "minimax_m2": "MiniMax-M2.jinja",
    "mistral": "unsloth-mistral-Devstral-Small-2507.jinja",
    "gemma4": "google-gemma-4-31B-it.jinja",
    "seed_oss": "ByteDance-Seed-OSS.jinja",
    "granite4": "ibm-granite-granite-4.0.jinja",
    "llama3_json": "meta-llama-Llama-3.1-8B-Instruct.jinja",
}
"""Format -> chat template of a model that writes it."""
COLUMNS: Final = {
    "vllm": ("vLLM", "vLLM, with ids"),
    "sglang": ("SGLang",),
    "llamacpp": ("llama.cpp",),
}
"""Peer -> its columns."""


def jobs() -> list[dict[str, Any]]:
    """Return what the peers get: per format the tools, the special tokens, and the parts of each output."""
    from untemplate._internal.backends.quotations import TOOLS, WRITERS, sample_of
    from untemplate.formats import lookup, named

    found = []
    for name in FORMATS:
        fmt = lookup("tool", name).format
        tokens = (*fmt.special_tokens, *named(name).special_tokens, "<think>", "</think>")
        sample = sample_of(fmt)
        assert sample is not None
        before, call, after = sample
        end = () if fmt.turn.end is None else (fmt.turn.end.text,)
        outputs = {context: (before, write(call), after) for context, write in WRITERS.items()}
        found.append(
            {
                "format": name,
                "special": list(dict.fromkeys((*(text for text in end if text in tokens), *tokens))),
                "tools": TOOLS,
                "real": (before, "Look.", call) if fmt.channels is None else None,
                "call": call,
                "outputs": outputs,
            }
        )
    return found


# -- Peers ----------------------------------------------------------------------------------------------------------

Reader = Callable[[tuple[str, str, str], bool], Any]
"""Reads an output of three parts; true if the second one is spelled by ordinary tokens."""


def vllm(job: Mapping[str, Any]) -> Iterator[tuple[str, Reader]]:
    """Yield the configurations of vLLM. It gets token ids."""
    from . import vllm as peer

    name, special = job["format"], job["special"]
    if name not in peer.PARSERS:
        return
    tokens = re.compile("|".join(map(re.escape, sorted(special, key=len, reverse=True))) + "|" + WORD)
    words = re.compile(WORD)
    texts = [part for parts in _parts(job) for part in parts]
    found = (word for text in texts for way in (tokens, words) for word in way.findall(text))
    known = dict.fromkeys([*special, *found])
    vocabulary = {word: i for i, word in enumerate(known)}
    stream = {"format": name, "special": special, "vocabulary": vocabulary, "tools": job["tools"], "way": "split"}
    made = peer.tokenizer(stream)
    for reasoning, thinking in product(peer.PARSERS[name][1:] or (None,), (True, False)):

        def read(parts: tuple[str, str, str], spelled: bool, reasoning: Any = reasoning, think: bool = thinking) -> Any:
            before, body, after = parts
            pieces = [*tokens.findall(before), *(words if spelled else tokens).findall(body), *tokens.findall(after)]
            deltas = [(piece, [vocabulary[piece]]) for piece in pieces]
            return _run(peer.Candidate({**stream, "deltas": deltas}, made, reasoning, "", think))

        yield f"{reasoning}, {thinking}", read


def sglang(job: Mapping[str, Any]) -> Iterator[tuple[str, Reader]]:
    """Yield the configurations of SGLang. It gets text."""
    from . import sglang as peer

    if job["format"] not in peer.PARSERS:
        return
    pieces = re.compile("|".join(map(re.escape, sorted(job["special"], key=len, reverse=True))) + "|" + WORD)
    for forced in (None, False, True):

        def read(parts: tuple[str, str, str], spelled: bool, forced: Any = forced) -> Any:
            deltas = [(piece, ()) for piece in pieces.findall("".join(parts))]
            stream = {"format": job["format"], "tools": job["tools"], "way": "split", "deltas": deltas}
            return _run(peer.Candidate(stream, forced))

        yield f"{forced}", read


_OPENED: Final = ("", "Hm.\n</think>\n\n", "<think>\nHm.\n</think>\n\n")
"""Beginnings of an output: templates open reasoning in the prompt, or leave it to the model."""


def llamacpp(job: Mapping[str, Any]) -> Iterator[tuple[str, Reader]]:
    """Yield the configurations of llama.cpp's server."""
    from tests.llamacpp_playback import Playback
    from tests.public import SHARED

    if job["format"] not in LLAMACPP:
        return
    ends = [text for text in job["special"] if text not in job["call"]]

    def output_of(parts: Sequence[str], opened: str) -> str:
        text = "".join(parts)
        for end in ends:
            text = text.removesuffix(end)
        return opened + text

    outputs = [output_of(parts, opened) for parts in _parts(job) for opened in _OPENED]
    source = (SHARED / "templates" / LLAMACPP[job["format"]]).read_text("utf-8")
    playback = Playback(source, outputs)
    for settings, opened in product(({}, {"enable_thinking": True}, {"enable_thinking": False}), _OPENED):

        def read(parts: tuple[str, str, str], spelled: bool, settings: Any = settings, opened: str = opened) -> Any:
            asked = [{"role": "user", "content": "Hi"}]
            fields = {"tools": job["tools"], "chat_template_kwargs": settings}
            message = playback.ask(asked, output_of(parts, opened), **fields).message
            if message is None:
                return "no message"
            calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
            return (message.get("reasoning_content") or "", message.get("content") or "", calls)

        yield f"{settings}, {opened}", read


def _parts(job: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [*map(tuple, job["outputs"].values()), _real_of(job)]


def _real_of(job: Mapping[str, Any]) -> tuple[str, str, str]:
    return tuple(job["real"]) if job["real"] else ("", job["call"], "")  # type: ignore[return-value]


READERS: Final[Mapping[str, Any]] = {"vllm": vllm, "sglang": sglang, "llamacpp": llamacpp}


def called(peer: str, job: Mapping[str, Any]) -> list[list[str]] | None:
    """Return the contexts whose quotation a peer calls, without ids and with them; ``None`` without real calls."""
    best: list[list[str]] | None = None
    for _, read in READERS[peer](job):
        try:
            real = read(_real_of(job), False)
        except Exception as error:  # a configuration that does not take these tokens
            print(f"{job['format']}: {error!r}", file=sys.stderr)
            continue
        if isinstance(real, str) or len(real[2]) != 1:
            print(f"{job['format']}: a real call is read as {real!r}", file=sys.stderr)
            continue
        found = []
        for spelled in (False, True)[: len(COLUMNS[peer])]:
            read_ = {context: read(tuple(parts), spelled) for context, parts in job["outputs"].items()}
            found.append([context for context, got in read_.items() if not isinstance(got, str) and got[2]])
        best = found if best is None else min(best, found, key=lambda one: sum(map(len, one)))
        if peer == "llamacpp":
            break  # one request takes long
    return best


# -- The table ------------------------------------------------------------------------------------------------------


def results_of(peer: str, found: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return a peer's version and results, from its environment; ``None`` without one."""
    python = sys.executable if peer == "llamacpp" else f"build/peers/{peer}/bin/python"
    if not Path(python).exists():
        return None
    results: dict[str, Any] = {}
    name, environ = "", {**os.environ, "PYTHONPATH": "src"}
    # llama.cpp can end its process, so each format has one of its own.
    for group in [[job] for job in found] if peer == "llamacpp" else [list(found)]:
        done = subprocess.run(
            [python, "-m", __spec__.name, "--peer", peer],
            input=json.dumps(group), capture_output=True, text=True, check=False, env=environ,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"peer"')]
        if not lines:
            raise RuntimeError(f"{peer}: {done.stderr[-2000:]}")
        name = lines[0]["peer"]
        results |= lines[0]["results"]
    return {"name": name, "results": results}


def table() -> str:
    """Return the table of the page: a row for each format, a column or two for each peer."""
    from untemplate._internal.backends.quotations import quoted_calls
    from untemplate.formats import lookup

    found = jobs()
    peers = {peer: got for peer in READERS if (got := results_of(peer, found)) is not None}
    heads = ["format", "untemplate", "untemplate, with ids", *(title for peer in peers for title in COLUMNS[peer])]
    rows = [heads, ["---"] + ["---:"] * (len(heads) - 1)]
    for job in found:
        ours = quoted_calls(lookup("tool", job["format"]).format)
        assert ours is not None
        cells = [str(len(ours.without_ids)), str(len(ours.with_ids))]
        for peer, got in peers.items():
            theirs = got["results"][job["format"]]
            cells += ["-"] * len(COLUMNS[peer]) if theirs is None else [str(len(one)) for one in theirs]
        rows.append([f"`{job['format']}`", *cells])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    measured = ", ".join(got["name"] for got in peers.values())
    return "\n".join([*lines, "", f"Measured on {date.today().isoformat()} with {measured}."])


MARKS: Final = ("<!-- made by benchmarks/peers/quotations.py -->\n\n", "<!-- end of other parsers -->")


def main() -> int:
    arguments = argparse.ArgumentParser(description="Quoted calls in other projects' parsers.")
    arguments.add_argument("--peer", choices=[*READERS], help="print the results of one peer, in its environment")
    arguments.add_argument("--page", type=Path, help="page whose table is written again; without it, it is printed")
    given = arguments.parse_args()
    logging.disable(logging.CRITICAL)
    if given.peer:
        results = {job["format"]: called(given.peer, job) for job in json.load(sys.stdin)}
        print(json.dumps({"peer": _version(given.peer), "results": results}), flush=True)
        os._exit(0)  # llama.cpp's threads need not end in order
    made = table()
    if given.page is None:
        print(made)
        return 0
    before, start, rest = given.page.read_text("utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not start or not end:
        raise ValueError(f"{given.page}: the lines {MARKS[0].strip()} and {MARKS[1]} are missing")
    given.page.write_text(f"{before}{start}{made}\n\n{end}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
