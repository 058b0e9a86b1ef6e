"""The held-out evaluation: the GGUF file under llama.cpp, on conversations that training cannot have made.

Rules of this module:

* Four sets, all with unseen values: the everyday tools that training knows; all tools that it can have made; unseen
  tools (their names and their parameters' names); unseen phrasings. ``words.py`` says what keeps them apart.
* The output is what untemplate's own parser, made from the shipped chat template, says it is.
* Everything is counted per conversation: a call is right only if every call of the turn is, letter for letter.
* ``--card`` writes the numbers into the model card, between two comments; what is said around them is by hand.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from chat import prompt
from conversations import Conversation, Side, Writer

from engine import Engine
from untemplate import OutputParser
from untemplate.validation import validate

SETS = {
    "everyday tools": Side(values=True, everyday=1.0),
    "unseen values": Side(values=True),
    "unseen tools": Side(values=True, tools=True),
    "unseen phrasings": Side(values=True, phrasings=True),
}
DECODINGS = [
    # what it is called, the temperature, with the grammar, with thinking
    ("greedy", 0.0, False, True),
    ("greedy, grammar", 0.0, True, True),
    ("temperature 0.7", 0.7, False, True),
    ("temperature 0.7, grammar", 0.7, True, True),
    ("greedy, thinking off", 0.0, False, False),
]
CALLS, ANSWERS, QUIET = "calls", "answer", "none"
MOST = 480
TRIGGER_WORD = 1  # llama.cpp's COMMON_GRAMMAR_TRIGGER_TYPE_WORD
COLUMNS = ("decision", "tool name", "arguments", "answer", "valid calls")


def kind_of(conversation: Conversation) -> str:
    return conversation.kind if conversation.kind in (CALLS, ANSWERS) else QUIET


def collect(name: str, side: Side, count: int) -> list[Conversation]:
    """As many that call, half as many that answer from a result, half as many that do neither."""
    wanted = {CALLS: count, ANSWERS: count // 2, QUIET: count // 2}
    found: list[Conversation] = []
    n = 0
    while any(wanted.values()):
        conversation = Writer(random.Random(f"evaluation:{name}:{n}"), side).conversation()
        n += 1
        kind = kind_of(conversation)
        if wanted[kind] and len(prompt(conversation)) < 2600:
            wanted[kind] -= 1
            found.append(conversation)
    return found


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]


def contains(content: str, text: str) -> bool:
    """Whether a text stands in the content, and not as a part of a longer word or number."""
    return re.search(rf"(?<![\w.]){re.escape(text)}(?![\w])", content) is not None


class Evaluation:
    """One model, one way to decode."""

    def __init__(self, engines: list[Engine], parser: OutputParser, temperature: float, grammar: bool) -> None:
        self.engines, self.parser, self.temperature, self.grammar = engines, parser, temperature, grammar
        self.misses: list[str] = []

    def settings(self, conversation: Conversation) -> dict[str, Any]:
        settings: dict[str, Any] = {"n_predict": MOST, "temperature": self.temperature, "seed": 1}
        if self.temperature:
            settings |= {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
        if self.grammar and conversation.tools:
            grammar = self.parser.grammar(
                conversation.tools,
                "auto",
                dialect="gbnf",
                strict=True,
                reasoning="closed" if conversation.thinking else "off",
            )
            settings |= {
                "grammar": grammar.text,
                "grammar_lazy": grammar.lazy,
                "grammar_triggers": [{"type": TRIGGER_WORD, "value": t.value} for t in grammar.triggers],
                "preserved_tokens": list(grammar.preserved_tokens),
            }
        return settings

    def write(self, conversations: list[Conversation]) -> list[str]:
        """What the model writes, raw: each engine takes the next conversation when it is free."""
        free: queue.SimpleQueue[Engine] = queue.SimpleQueue()
        for engine in self.engines:
            free.put(engine)

        def one(conversation: Conversation) -> str:
            engine = free.get()
            try:
                return str(engine.complete(prompt(conversation), **self.settings(conversation))["content"])
            finally:
                free.put(engine)

        with ThreadPoolExecutor(len(self.engines)) as pool:
            return list(pool.map(one, conversations))

    def run(self, conversations: list[Conversation]) -> dict[str, tuple[int, int]]:
        """Counts per column: right, of how many."""
        right: Counter[str] = Counter()
        of: Counter[str] = Counter()

        def count(column: str, good: bool) -> bool:
            right[column] += good
            of[column] += 1
            return good

        for conversation, raw in zip(conversations, self.write(conversations), strict=True):
            asked = prompt(conversation)
            parsed = self.parser.parse(raw, tools=conversation.tools or None, prompt=asked)
            expected = calls_of(conversation.messages[-1])
            schemas = {t["function"]["name"]: t["function"].get("parameters") or {} for t in conversation.tools}
            written: list[tuple[str, Any]] = []
            for call in parsed.tool_calls:
                name, arguments = call.function.name, call.function.arguments or "{}"
                try:
                    value = json.loads(arguments)
                except ValueError:
                    value = arguments
                written.append((name, value))
                count("valid calls", name in schemas and not validate(arguments, schemas[name]))
            good = count("decision", bool(written) == bool(expected))
            if expected:
                good &= count("tool name", [n for n, _ in written] == [n for n, _ in expected])
                good &= count("arguments", written == expected)
            if conversation.kind == ANSWERS:
                good &= count("answer", all(contains(parsed.content or "", t) for t in conversation.must))
            if not good:
                self.misses.append(
                    f"{asked[-900:]}\n>>> {raw}\n=== {json.dumps(conversation.messages[-1], ensure_ascii=False)}"
                )
        return {c: (right[c], of[c]) for c in COLUMNS if of[c]}


def percent(cell: tuple[int, int] | None) -> str:
    return f"{100 * cell[0] / cell[1]:.1f} %" if cell else "-"


def speed(path: Path) -> tuple[float, float]:
    """Seconds to load, and tokens per second on one core while writing."""
    begun = time.perf_counter()
    engine = Engine(path)
    loaded = time.perf_counter() - begun
    asked = "<|im_start|>user\nCount to 30<|im_end|>\n<|im_start|>assistant\n"
    best = 0.0
    for _ in range(5):
        answer = engine.complete(asked, n_predict=256, temperature=0, ignore_eos=True)
        best = max(best, answer["timings"]["predicted_per_second"])
    return loaded, best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument(
        "--count", type=int, default=200, help="of conversations that call, per set; half as many of each other kind"
    )
    parser.add_argument("--engines", type=int, default=2, help="that write at the same time")
    parser.add_argument("--quick", action="store_true", help="greedy and without a grammar only")
    parser.add_argument("--misses", type=Path, help="where to write what went wrong")
    parser.add_argument("--card", type=Path, help="the model card to put the table into")
    options = parser.parse_args()
    output_parser = OutputParser.from_template(options.template.read_text())
    loaded, rate = speed(options.model)
    engines = [Engine(options.model) for _ in range(options.engines)]
    lines = ["| set | decoding | " + " | ".join(COLUMNS) + " |", "| --- | --- |" + " ---: |" * len(COLUMNS)]
    print("\n".join(lines), flush=True)
    misses: list[str] = []
    for name, side in SETS.items():
        conversations = collect(name, side, options.count)
        for decoding, temperature, grammar, thinking in DECODINGS[:1] if options.quick else DECODINGS:
            run = Evaluation(engines, output_parser, temperature, grammar)
            cells = run.run([replace(c, thinking=thinking) for c in conversations])
            lines.append(f"| {name} | {decoding} | " + " | ".join(percent(cells.get(c)) for c in COLUMNS) + " |")
            print(lines[-1], flush=True)
            misses += [f"##### {name}, {decoding}\n{m}\n" for m in run.misses]
    lines += [
        "",
        f"{options.count} conversations per set that need calls, {options.count // 2} that are answered from results, "
        f"{options.count // 2} that need neither.",
        f"Loaded in {loaded:.2f} s; {rate:.0f} tokens per second on one core.",
    ]
    print("\n".join(lines[-3:]))
    if options.misses:
        options.misses.write_text("\n".join(misses))
    if options.card:
        card = options.card.read_text()
        table = "\n".join(lines)
        options.card.write_text(
            re.sub(
                r"(<!-- evaluation[^\n]*-->\n).*?(<!-- end)", lambda m: f"{m[1]}\n{table}\n\n{m[2]}", card, flags=re.S
            )
        )


if __name__ == "__main__":
    main()
