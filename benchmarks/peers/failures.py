"""Replay outputs of reported failures through other projects' parsers and untemplate, cut in two at every token.

``python -m benchmarks.peers.failures --page docs/why.md`` runs every peer that has an environment (`make
bench-peers-install`) and writes the table of the page: how many of the cuts give a wrong message. ``--peer NAME``
prints the results of one peer as JSON; it runs in that peer's environment.

llama.cpp reads the output of a model that writes it byte by byte (``tests.analysis.llamacpp``). It needs
chat templates of the formats, which belong to other projects: ``UNTEMPLATE_SHARED`` names their folder.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, Final

TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": "write",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "lines": {"type": "integer"}},
            },
        },
    }
]
FORMATS: Final = {"hermes": "hermes+qwen3", "qwen3_coder": "qwen3_coder+qwen3"}
"""Name in the adapters of peers → name in untemplate's catalogue."""
LLAMACPP: Final = {"hermes": "Qwen-Qwen3-0.6B.jinja", "qwen3_coder": "Qwen3.5-4B.jinja"}
"""Name in the adapters of peers → chat template of a model that writes it."""
CALL: Final = '<tool_call>\n{"name": "write", "arguments": {"path": "a.txt", "text": "b"}}\n</tool_call>'
CODER: Final = "<tool_call>\n<function=write>\n{}</function>\n</tool_call>"
THOUGHT: Final = "<think>\nHm.\n</think>\n\n"


def _parameter(name: str, value: str) -> str:
    return f"<parameter={name}>\n{value}\n</parameter>\n"


def _call(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return "write", arguments


FAILURES: Final[tuple[tuple[int, str, str, str, tuple[str, str, list[tuple[str, dict[str, Any]]]]], ...]] = (
    (1, "several markers in one delta", "hermes", f"{THOUGHT}{CALL}\n{CALL}",
     ("Hm.", "", [_call(path="a.txt", text="b")] * 2)),
    (2, "a marker in pieces", "hermes", f"{THOUGHT}Use a <tool or <b>.",
     ("Hm.", "Use a <tool or <b>.", [])),
    (4, "a call in reasoning that never closes", "hermes", f"<think>\nHm.\n{CALL}",
     ("Hm.", "", [_call(path="a.txt", text="b")])),
    (5, "a call that the model only considered", "hermes", f"<think>\nMaybe {CALL}? No.\n</think>\n\nHello.",
     (f"Maybe {CALL}? No.", "Hello.", [])),
    (9, "arguments that are not JSON, then another call", "hermes",
     f'{THOUGHT}<tool_call>\n{{"name": "write", "arguments": {{"path": }}}}\n</tool_call>\n{CALL}',
     ("Hm.", "", [("write", {"not_json": '{"path": }'}), _call(path="a.txt", text="b")])),
    (11, "a delimiter inside an argument", "qwen3_coder",
     THOUGHT + CODER.format(_parameter("text", "Write </parameter> to end it.") + _parameter("path", "a")),
     ("Hm.", "", [_call(text="Write </parameter> to end it.", path="a")])),
    (12, "white space of a value", "qwen3_coder", THOUGHT + CODER.format(_parameter("text", "  two\n\n")),
     ("Hm.", "", [_call(text="  two\n\n")])),
    (13, "a value that has a type", "qwen3_coder", THOUGHT + CODER.format(_parameter("lines", "3")),
     ("Hm.", "", [_call(lines=3)])),
    (20, "a call without arguments", "qwen3_coder", THOUGHT + CODER.format(""), ("Hm.", "", [_call()])),
)  # fmt: skip
"""Number in the page *Failure modes*, name, format, raw output, (reasoning, content, calls)."""

REPORTS: Final = {
    1: "sglang#31915, vllm#55082, vllm#48347",
    2: "sglang#36691, sglang#24995",
    4: "vllm#39056, vllm#16511",
    5: "verl#4757, lmstudio#1592, sglang#38624",
    9: "vllm#50690, ollama#12884",
    11: "vllm#44060, Rapid-MLX#1515",
    12: "vllm#48846, vllm#49567",
    13: "vllm#43238, vllm#46924",
    20: "vllm#44326, vllm#48131",
}
"""Number → who reported it."""

WORD: Final = r" ?[A-Za-z]{1,6}|\d{1,3}| +(?= )|\s|[^\sA-Za-z\d]"
"""A token that is not special, as vLLM's adapter cuts them."""
SPECIAL: Final = ("<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")


def plain(reasoning: str | None, content: str | None, calls: list[tuple[str, str]]) -> Any:
    """Return a message without white space at the edges of its texts; arguments as values."""

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return {"not_json": text}

    return (reasoning or "").strip(), (content or "").strip(), [(name, value(text or "")) for name, text in calls]


def pieces_of(raw: str) -> list[str]:
    """Return an output in tokens: special ones, words, and other characters."""
    return re.findall("|".join(map(re.escape, SPECIAL)) + "|" + WORD, raw)


def cuts_of(pieces: Sequence[str]) -> Iterator[list[Sequence[str]]]:
    """Yield the output cut in two at every place; then every piece alone."""
    for cut in range(1, len(pieces)):
        yield [pieces[:cut], pieces[cut:]]
    yield [[piece] for piece in pieces]


def ours(fmt: str, raw: str) -> Iterator[list[Any]]:
    """Yield untemplate's message for each cut. It gets text, cut between any two characters."""
    from untemplate import OutputParser

    parser = OutputParser.named(FORMATS[fmt])
    for parts in cuts_of(raw):
        stream = parser.stream(tools=TOOLS, collect=True)
        for part in parts:
            stream.feed("".join(part))
        stream.finish("stop")
        parsed = stream.result()
        calls = [(call.function.name, call.function.arguments) for call in parsed.tool_calls]
        yield [plain(parsed.reasoning, parsed.content, calls)]


def _run(candidate: Any) -> Any:
    results: list[Any] = []
    try:
        candidate.prepare()(results.append)
        message = candidate.message(results)
    except Exception as error:
        return f"raises {type(error).__name__}"
    return plain(message["reasoning"], message["content"], message["calls"])


def vllm(fmt: str, raw: str) -> Iterator[list[Any]]:
    """Yield vLLM's messages for each cut, one for each of its configurations. It gets token ids."""
    from . import vllm as peer

    pieces = pieces_of(raw)
    words = dict.fromkeys(piece for piece in pieces if piece not in SPECIAL)
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *words])}
    stream = {"format": fmt, "special": list(SPECIAL), "vocabulary": vocabulary, "tools": TOOLS, "way": "split"}
    made = peer.tokenizer(stream)
    for parts in cuts_of(pieces):
        deltas = [("".join(part), [vocabulary[piece] for piece in part]) for part in parts]
        yield [
            _run(peer.Candidate({**stream, "deltas": deltas}, made, reasoning, "", thinking))
            for reasoning, thinking in product(peer.PARSERS[fmt][1:], (True, False))
        ]


def sglang(fmt: str, raw: str) -> Iterator[list[Any]]:
    """Yield SGLang's messages for each cut, one for each of its configurations. It gets text."""
    from . import sglang as peer

    for parts in cuts_of(pieces_of(raw)):
        deltas = [("".join(part), ()) for part in parts]
        yield [_run(one) for one in peer.candidates({"format": fmt, "tools": TOOLS, "way": "split", "deltas": deltas})]


def transformers(fmt: str, raw: str) -> Iterator[list[Any]]:
    """Yield the messages of transformers' response parser for each cut. It gets text."""
    from . import transformers as peer

    for parts in cuts_of(pieces_of(raw)):
        deltas = [("".join(part), ()) for part in parts]
        yield [_run(one) for one in peer.candidates({"format": fmt, "tools": TOOLS, "way": "split", "deltas": deltas})]


def llamacpp(fmt: str, raw: str) -> Iterator[list[Any]]:
    """Yield llama.cpp's messages for the whole output, one for each attempt."""
    from tests.analysis.llamacpp import Answers
    from tests.public import SHARED

    texts = [raw, raw.removeprefix("<think>\n")]  # its prompt may already hold the opener
    answers = Answers((SHARED / "templates" / LLAMACPP[fmt]).read_text("utf-8"), texts)
    found = []
    for text, settings in product(texts, ({}, {"enable_thinking": True}, {"enable_thinking": False})):
        message = answers.ask([{"role": "user", "content": "Hi"}], TOOLS, settings, text)
        if isinstance(message, dict):
            calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
            found.append(plain(message.get("reasoning_content"), message.get("content"), calls))
        else:
            found.append(message)
    yield found


READERS: Final = {"vllm": vllm, "sglang": sglang, "transformers": transformers, "llamacpp": llamacpp}


def judged(reader: Any, number: int) -> dict[str, Any]:
    """Return the cuts of one failure, the wrong ones, and True if the pieces one by one give the right message.

    For llama.cpp the whole output is the only piece. The best of a peer's configurations counts.
    """
    _, _, fmt, raw, (reasoning, content, calls) = next(failure for failure in FAILURES if failure[0] == number)
    wanted = (reasoning.strip(), content.strip(), calls)
    ways = list(reader(fmt, raw))
    wrong = [[way[i] != wanted for way in ways] for i in range(len(ways[0]))]
    best = min(wrong, key=sum)
    example = next((repr(way[wrong.index(best)]) for way, bad in zip(ways, best, strict=True) if bad), None)
    return {"cuts": len(ways) - 1, "wrong": sum(best[:-1]), "right": not best[-1], "example": example}


def _version(peer: str) -> str:
    if peer == "llamacpp":
        from importlib.metadata import version

        return f"llama.cpp (xllamacpp {version('xllamacpp')})"
    from importlib import import_module

    found = import_module(f".{peer}", __package__).version()
    return f"{found['name']} {found['version']}"


def results_of(peer: str) -> dict[str, Any] | None:
    """Return what a peer says of every failure, from its environment; ``None`` without one."""
    python = sys.executable if peer == "llamacpp" else f"build/peers/{peer}/bin/python"
    if not Path(python).exists():
        return None
    found: dict[str, Any] = {}
    # llama.cpp can end its process, so each failure has one of its own.
    groups = [[n] for n, *_ in FAILURES] if peer == "llamacpp" else [[n for n, *_ in FAILURES]]
    for numbers in groups:
        command = [python, "-m", __spec__.name, "--peer", peer, *map(str, numbers)]
        environ = {**os.environ, "PYTHONPATH": "src"}
        done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"peer"')]
        if not lines:
            raise RuntimeError(f"{peer}: {done.stderr[-2000:]}")
        found["name"] = lines[0]["peer"]
        found.setdefault("results", {}).update(lines[0]["results"])
    return found


def table() -> str:
    """Return the table of the page: a row for each failure, a column for each peer."""
    found = [one for peer in READERS if (one := results_of(peer)) is not None]
    names = [one["name"].split()[0] for one in found]
    rows = [["failure", "reported in", *names, "untemplate"], ["---"] * 2 + ["---:"] * (len(found) + 1)]
    for number, title, *_ in FAILURES:
        results = [one["results"][str(number)] for one in found]
        for name, result in zip(names, results, strict=True):
            if result["example"] is not None:
                print(f"{number} {title}, {name}: {result['example']}", file=sys.stderr)
        cells = [_cell(result) for result in (*results, judged(ours, number))]
        rows.append([f"{number}: {title}", REPORTS[number], *cells])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    measured = f"Measured on {date.today().isoformat()} with {', '.join(one['name'] for one in found)}."
    return "\n".join([*lines, "", measured])


def _cell(result: dict[str, Any]) -> str:
    word = "right" if result["right"] else "forbidden" if result["example"] == "'refused'" else "wrong"
    return f"{result['wrong']}/{result['cuts']}, {word}" if result["cuts"] else word


MARKS: Final = ("<!-- made by benchmarks/peers/failures.py -->\n\n", "<!-- end -->")


def main() -> int:
    arguments = argparse.ArgumentParser(description="Outputs of reported failures in other projects' parsers.")
    arguments.add_argument("--peer", choices=[*READERS], help="print the results of one peer, in its environment")
    arguments.add_argument("--page", type=Path, help="page whose table is written again; without it, it is printed")
    arguments.add_argument("numbers", nargs="*", type=int, help="failures (default: all)")
    given = arguments.parse_args()
    logging.getLogger("untemplate").setLevel(logging.ERROR)  # the outputs are broken on purpose
    if given.peer:
        numbers = given.numbers or [number for number, *_ in FAILURES]
        results = {number: judged(READERS[given.peer], number) for number in numbers}
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
