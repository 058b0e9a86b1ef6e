"""Evaluate the GGUF file under llama.cpp, on conversations that training cannot have made.

* Four generated sets have unseen values: everyday tools that training knows; all tools that training can make; unseen
  tools (with unseen names of tools and parameters); unseen phrasings. ``words.py`` explains the separation. A
  conversation counts as one with calls only if training cannot have made at least one value of its calls.
* One set was written by hand, not by the generator (``by_hand.py``).
* untemplate parses the output, with the parser inferred from the shipped chat template.
* The figures count conversations, except for the share of valid calls. The calls of a turn are right only if every one
  is right to the letter; calls that are made at once have no order.
* If a complete call under the grammar does not fit its schema, the program ends with an error.
* ``--card`` writes the figures into the model card, between two comments; the text around them is written by hand.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import re
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import by_hand
from chat import prompt
from conversations import Conversation, Side, Writer
from engine import Engine
from everyday import COMMANDS, MONEY, ROOMS
from words import ADJECTIVES, COLOURS, DAYS, DOMAINS, EXTENSIONS, held_out

from untemplate import OutputParser
from untemplate._internal.schemas.validation import validate

SETS = {
    "everyday tools": Side(values=True, everyday=1.0),
    "unseen values": Side(values=True),
    "unseen tools": Side(values=True, tools=True),
    "unseen phrasings": Side(values=True, phrasings=True),
}
DECODINGS = [
    # name, temperature, with the grammar, with thinking
    ("greedy", 0.0, False, True),
    ("greedy, grammar", 0.0, True, True),
    ("temperature 0.7", 0.7, False, True),
    ("temperature 0.7, grammar", 0.7, True, True),
    ("greedy, thinking off", 0.0, False, False),
]
CALLS, ANSWERS, QUIET = "calls", "answer", "none"
MOST = 480
MOST_PROMPT = 2600  # characters: with the answer, it fits into the context of 1024 tokens
TRIGGER_WORD = 1  # llama.cpp's COMMON_GRAMMAR_TRIGGER_TYPE_WORD
# Words that the generator draws from both groups: its short lists, times, and symbols of a few capitals.
SHARED = {
    word.lower()
    for texts in (MONEY, ROOMS, DAYS, COLOURS, ADJECTIVES, COMMANDS, DOMAINS, EXTENSIONS)
    for text in texts
    for word in re.findall(r"\w+", text)
} | {"the", "chez", "https", "http", "www", "com", "org", "net"}
ON_BOTH_SIDES = re.compile(r"\d\d:\d\d|[A-Z]{2,4}")
COLUMNS = ("decision", "tool name", "arguments", "answer", "valid calls", "cut")
BY_HAND = "by hand"


def kind_of(conversation: Conversation) -> str:
    return conversation.kind if conversation.kind in (CALLS, ANSWERS) else QUIET


def is_unseen(call: dict[str, Any], tools: list[dict[str, Any]]) -> bool:
    """True if training cannot have made one of the call's values."""
    function = call["function"]
    schemas = {t["function"]["name"]: t["function"].get("parameters") or {} for t in tools}
    properties = schemas[function["name"]].get("properties", {})
    values = [v for k, v in function["arguments"].items() if "enum" not in properties[k] and not isinstance(v, bool)]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value
        elif is_unseen_text(value) if isinstance(value, str) else abs(value) > 100:
            return True
    return False


def is_unseen_text(text: str) -> bool:
    """True if a text has a word, number or code that training cannot have."""
    if ON_BOTH_SIDES.fullmatch(text):
        return False
    if re.fullmatch(r"(?=.*\d)[\w#-]+", text) and held_out(text):
        return True
    parts = re.findall(r"[^\W\d_]{3,}|\d{3,}", text)
    return any(held_out(part) and part.lower() not in SHARED for part in parts)


def collect(name: str, side: Side, count: int) -> list[Conversation]:
    """Return this many conversations with calls, half as many with answers from results, and half as many that do
    neither although tools are offered.
    """
    wanted = {CALLS: count, ANSWERS: count // 2, QUIET: count // 2}
    found: list[Conversation] = []
    n = 0
    while any(wanted.values()):
        conversation = Writer(random.Random(f"evaluation 2:{name}:{n}"), side).conversation()
        n += 1
        kind = kind_of(conversation)
        if not wanted[kind] or not conversation.tools or len(prompt(conversation)) > MOST_PROMPT:
            continue
        if kind == CALLS and not any(is_unseen(c, conversation.tools) for c in conversation.messages[-1]["tool_calls"]):
            continue
        wanted[kind] -= 1
        found.append(conversation)
    return found


def calls_of(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and arguments; arguments are JSON text, because 1 is neither 1.0 nor true."""
    return sorted(
        (c["function"]["name"], canonical(c["function"]["arguments"])) for c in message.get("tool_calls") or ()
    )


def canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


def contains(content: str, text: str) -> bool:
    """True if the content contains a text that is not part of a longer word or number."""
    return re.search(rf"(?<![\w.-]){re.escape(text)}(?!\w|\.\d)", content) is not None


class Evaluation:
    """The evaluation of one model with one way to decode."""

    def __init__(self, engines: list[Engine], parser: OutputParser, temperature: float, grammar: bool) -> None:
        self.engines, self.parser, self.temperature, self.grammar = engines, parser, temperature, grammar
        self.misses: list[str] = []
        self.unfit: list[str] = []
        """Complete calls that do not fit their schema."""

    def settings(self, conversation: Conversation) -> dict[str, Any]:
        settings: dict[str, Any] = {"n_predict": MOST, "temperature": self.temperature}
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

    def write(self, conversations: list[Conversation]) -> list[tuple[str, bool]]:
        """Return the raw output for each conversation, and True if the limit cut it. Each engine takes the next
        conversation when it is free.
        """
        free: queue.SimpleQueue[Engine] = queue.SimpleQueue()
        for engine in self.engines:
            free.put(engine)

        def one(seed: int, conversation: Conversation) -> tuple[str, bool]:
            engine = free.get()
            try:
                answer = engine.complete(prompt(conversation), seed=seed, **self.settings(conversation))
                return answer["content"], answer["stop_type"] == "limit"
            finally:
                free.put(engine)

        with ThreadPoolExecutor(len(self.engines)) as pool:
            return list(pool.map(one, range(len(conversations)), conversations))

    def run(self, conversations: list[Conversation]) -> dict[str, tuple[int, int]]:
        """Return for each column the number of right cases, and of all cases."""
        right: Counter[str] = Counter()
        of: Counter[str] = Counter()

        def count(column: str, good: bool) -> bool:
            right[column] += good
            of[column] += 1
            return good

        for conversation, (raw, cut) in zip(conversations, self.write(conversations), strict=True):
            asked = prompt(conversation)
            parsed = self.parser.parse(raw, tools=conversation.tools or None, prompt=asked)
            expected = calls_of(conversation.messages[-1])
            schemas = {t["function"]["name"]: t["function"].get("parameters") or {} for t in conversation.tools}
            written: list[tuple[str, str]] = []
            count("cut", cut)
            for call in parsed.tool_calls:
                name, arguments = call.function.name, call.function.arguments or "{}"
                try:
                    written.append((name, canonical(json.loads(arguments))))
                except ValueError:
                    written.append((name, arguments))
                fits = name in schemas and not validate(arguments, schemas[name])
                if not cut and not count("valid calls", fits):
                    self.unfit.append(raw)
            written.sort()
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
    """Return the seconds to load, and the generated tokens per second on one core."""
    begun = time.perf_counter()
    engine = Engine(path)
    loaded = time.perf_counter() - begun
    asked = "<|im_start|>user\nCount to 30<|im_end|>\n<|im_start|>assistant\n"
    rates = []
    for _ in range(5):
        answer = engine.complete(asked, n_predict=256, temperature=0, ignore_eos=True)
        rates.append(answer["timings"]["predicted_per_second"])
    return loaded, statistics.median(rates)


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
    unfit: list[str] = []
    sets = {name: collect(name, side, options.count) for name, side in SETS.items()}
    for name, conversations in {**sets, BY_HAND: by_hand.conversations()}.items():
        for decoding, temperature, grammar, thinking in DECODINGS[:1] if options.quick else DECODINGS:
            run = Evaluation(engines, output_parser, temperature, grammar)
            cells = run.run([replace(c, thinking=thinking) for c in conversations])
            lines.append(f"| {name} | {decoding} | " + " | ".join(percent(cells.get(c)) for c in COLUMNS) + " |")
            print(lines[-1], flush=True)
            misses += [f"##### {name}, {decoding}\n{m}\n" for m in run.misses]
            if grammar:
                unfit += run.unfit
    called = sum(bool(calls) for _, _, calls in by_hand.ROWS)
    lines += [
        "",
        f"{options.count} conversations per set that need calls, {options.count // 2} that are answered from results, "
        f"{options.count // 2} that need neither; by hand, {called} that need calls and {len(by_hand.ROWS) - called} "
        "that don't.",
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
    if unfit:
        raise SystemExit("\n".join(["under the grammar, and yet these don't fit their schemas:", *unfit]))


if __name__ == "__main__":
    main()
