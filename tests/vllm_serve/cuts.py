"""Count the calls that are served although the output was cut in them, by the plugin and by vLLM's own parsers.

usage: python -m tests.vllm_serve.cuts

For each of ten formats an output of two calls is cut after every token. Each cut is parsed whole, and streamed one
token at a time, as vLLM's server does it. A call is *broken* if it is not one of the two. A cut has *vanished* if
neither text nor call is left of it. Streams are also counted for a request with a stop string, whose finish reason does
not show that a call was cut.

Prints a table of the cuts with broken calls, and of those that vanished. Exits with 1 if a whole output, or a stream of
a request with a stop string, has a broken call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).with_name("plugins")))

from untemplate_outcomes import tokenizer  # type: ignore[import-not-found]
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager

from tests.vllm_serve.agreement import CALLS, TOOLS, Message, streamed
from tests.vllm_serve.overhead import FAMILIES, pieces
from untemplate import OutputParser
from untemplate.integrations.vllm import register

MESSAGE: Final = {"role": "assistant", "tool_calls": CALLS}


def cuts(text: str, special: Sequence[str]) -> list[list[tuple[str, list[int]]]]:
    """Return the output, cut after each of its tokens, in tokens with their ids."""
    tokens = [(one, ids) for piece, ids in pieces(text, special) for one, ids in _single(piece, ids)]
    return [tokens[:end] for end in range(1, len(tokens))]


def _single(piece: str, ids: list[int]) -> list[tuple[str, list[int]]]:
    return [(piece, ids)] if len(ids) == 1 else [(letter, tokenizer().encode(letter)) for letter in piece]


def is_broken(call: tuple[str, str]) -> bool:
    name, arguments = call
    try:
        found = {"name": name, "arguments": json.loads(arguments)}
    except ValueError:
        return True
    return found not in [{**one["function"], "arguments": json.loads(one["function"]["arguments"])} for one in CALLS]


def whole(cls: Any, cut: Sequence[tuple[str, list[int]]], request: Any) -> Message:
    parser = cls(tokenizer(), request.tools, chat_template_kwargs={})
    ids = [token for _, tokens in cut for token in tokens]
    text = "".join(text for text, _ in cut)
    parser.set_prompt_token_ids([])
    reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
    return reasoning or "", content or "", [(call.name, call.arguments) for call in calls or ()]


def stream(cls: Any, cut: Sequence[tuple[str, list[int]]], request: Any) -> Message:
    parser = cls(tokenizer(), request.tools, chat_template_kwargs={})
    deltas = [parser.parse_delta(*part, request, [], finished=part is cut[-1]) for part in cut]
    return streamed([delta for delta in deltas if delta is not None])


def count(way: Any, cls: Any, all_cuts: Sequence[Sequence[tuple[str, list[int]]]], **fields: Any) -> tuple[int, int]:
    """Return how many cuts have broken calls, and how many have vanished. One that raises has vanished."""
    request = ChatCompletionRequest(model="", messages=[{"role": "user", "content": ""}], tools=TOOLS, **fields)
    broken = vanished = 0
    for cut in all_cuts:
        try:
            found = way(cls, cut, request)
        except Exception:
            found = "", "", []
        broken += any(map(is_broken, found[2]))
        vanished += not any(found)
    return broken, vanished


def main() -> int:
    register()
    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "whole": (whole, {}),
        "streamed": (stream, {}),
        "streamed, with `stop`": (stream, {"stop": ["Paris"]}),
    }
    heads = [f"{way}: vLLM, plugin" for way in ways] + ["vanished, whole: vLLM, plugin"]
    print(f"| format | cuts | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 2)}")
    totals = [0] * (2 * len(heads) + 1)
    for family, (tool, reasoning) in FAMILIES.items():
        fmt = OutputParser.named(tool, reasoning=reasoning)
        all_cuts = cuts(fmt.render(MESSAGE), sorted(fmt.format.special_tokens))
        own = f"untemplate:{tool}", f"untemplate:{reasoning}" if reasoning else None
        classes = [ParserManager.get_parser(*names, enable_auto_tools=True) for names in ((tool, reasoning), own)]
        counts = [[count(way, cls, all_cuts, **fields) for cls in classes] for way, fields in ways.values()]
        pairs = [(theirs[0], ours[0]) for theirs, ours in counts] + [(counts[0][0][1], counts[0][1][1])]
        row = [len(all_cuts), *(number for pair in pairs for number in pair)]
        totals = [total + number for total, number in zip(totals, row, strict=True)]
        _print_row(family, row)
    _print_row("all", totals)
    return 1 if totals[2] or totals[6] else 0


def _print_row(name: str, row: Sequence[int]) -> None:
    cells = [str(row[0]), *(f"{row[at]}, {row[at + 1]}" for at in range(1, len(row), 2))]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
