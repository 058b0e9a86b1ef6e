"""Replay outputs of reported failures through a peer's parser and untemplate, cut in two between any two tokens.

Run it in the environment of a peer, from the folder of the checkout: ``python -m benchmarks.peers.failures``. It prints
a row for the table in ``docs/why.md`` for each failure: how many of the cuts give a wrong message.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import product
from typing import Any, Final

from untemplate import OutputParser

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
    (9, "arguments that are not JSON, then content", "hermes",
     f'{THOUGHT}<tool_call>\n{{"name": "write", "arguments": {{"path": }}}}\n</tool_call>\n{CALL}',
     ("Hm.", "", [("write", {"not_json": '{"path": }'}), _call(path="a.txt", text="b")])),
    (11, "a delimiter inside an argument", "qwen3_coder",
     THOUGHT + CODER.format(_parameter("text", "Write </parameter> to end it.") + _parameter("path", "a")),
     ("Hm.", "", [_call(text="Write </parameter> to end it.", path="a")])),
    (12, "white space of a value", "qwen3_coder", THOUGHT + CODER.format(_parameter("text", "  two\n\n")),
     ("Hm.", "", [_call(text="  two\n\n")])),
    (13, "a value of a type", "qwen3_coder", THOUGHT + CODER.format(_parameter("lines", "3")),
     ("Hm.", "", [_call(lines=3)])),
    (20, "a call without arguments", "qwen3_coder", THOUGHT + CODER.format(""), ("Hm.", "", [_call()])),
)  # fmt: skip
"""Number in the page *Failure modes*, name, format, raw output, (reasoning, content, calls)."""

SPECIAL: Final = ("<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")


def plain(reasoning: str | None, content: str | None, calls: list[tuple[str, str]]) -> Any:
    """Return a message without white space at the edges of its texts; arguments as values."""

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return {"not_json": text}

    return (reasoning or "").strip(), (content or "").strip(), [(name, value(text or "")) for name, text in calls]


def ours(fmt: str, pieces: list[str]) -> Any:
    stream = OutputParser.named(FORMATS[fmt]).stream(tools=TOOLS, collect=True)
    for piece in pieces:
        stream.feed(piece)
    stream.finish("stop")
    parsed = stream.result()
    return plain(parsed.reasoning, parsed.content, [(c.function.name, c.function.arguments) for c in parsed.tool_calls])


def vllm(fmt: str, raw: str) -> list[Any]:
    """Return vLLM's messages: whole, then for each cut. The best of its configurations counts."""
    from . import vllm as peer

    pattern = re.compile("|".join(map(re.escape, SPECIAL)) + "|" + peer.WORD)
    tokens = pattern.findall(raw)
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *dict.fromkeys(t for t in tokens if t not in SPECIAL)])}
    stream = {"format": fmt, "special": list(SPECIAL), "vocabulary": vocabulary, "tools": TOOLS, "way": "split"}
    made = peer.tokenizer(stream)
    found = []
    for cut in range(1, len(tokens)):
        parts = [tokens[:cut], tokens[cut:]]
        deltas = [("".join(part), [vocabulary[t] for t in part]) for part in parts]
        ways = []
        for reasoning, thinking in product(peer.PARSERS[fmt][1:], (True, False)):
            candidate = peer.Candidate({**stream, "deltas": deltas}, made, reasoning, "", thinking)
            results: list[Any] = []
            try:
                candidate.prepare()(results.append)
                message = candidate.message(results)
                ways.append(plain(message["reasoning"], message["content"], message["calls"]))
            except Exception as error:
                ways.append(f"raises {type(error).__name__}")
        found.append(ways)
    return found


def main() -> int:
    from . import vllm as peer

    print(f"| | failure | cuts | {' '.join(peer.version().values())} | untemplate |")
    print("| --- | --- | ---: | ---: | ---: |")
    for number, title, fmt, raw, (reasoning, content, calls) in FAILURES:
        wanted = (reasoning.strip(), content.strip(), calls)
        ways = vllm(fmt, raw)
        best = min(sum(way[i] != wanted for way in ways) for i in range(len(ways[0])))
        cuts = range(1, len(raw))
        wrong = sum(ours(fmt, [raw[:cut], raw[cut:]]) != wanted for cut in cuts)
        print(f"| {number} | {title} | {len(ways)} | {best} | {wrong} of {len(cuts)} |", flush=True)
        example = next((way[0] for way in ways if way[0] != wanted), None)
        if example is not None:
            print(f"{title}: {example}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
