"""Record every result for the corpus and the public cases, so that two builds of untemplate can be compared.

    python -m tests.builds FILE

`make compiled` runs it with the interpreted and with the compiled engine; both files must have the same bytes. A line
is one case fed in one way: its deltas, and its message with ids, statuses, diagnostics and spans.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.public import CASES
from tests.test_corpus import RECORDS
from tests.test_shared_cases import TEMPLATES
from untemplate import COMPILED, OutputParser, Policy
from untemplate.testing import PieceTokenizer

POLICIES = {
    "default": Policy(),
    "repairing": Policy(repair="schema", outer_white_space="trim", text_after_calls="drop", spelled_markers="text"),
}


def corpus() -> Iterator[dict[str, Any]]:
    for record in RECORDS:
        yield {
            "id": record["id"],
            "format": record["format"],
            "reasoning": None,
            "raw": record["output"],
            "finish_reason": record["finish_reason"],
            "context": {key: record[key] for key in ("tools", "prompt")},
        }


def public() -> Iterator[dict[str, Any]]:
    """Yield the public cases; none without their folder."""
    if not CASES.is_dir():
        return
    tools = json.loads((CASES / "by_format_tools.json").read_text("utf-8"))
    for name in ("by_format", "by_format_3", "by_template"):
        for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines():
            case = json.loads(line)
            if name == "by_template":
                format, reasoning = TEMPLATES[case["template"].removesuffix(".jinja")]
                prompt = case.get("prompt") or case["generation_prompt"] or None
            else:
                format, reasoning = case["tool_parser"], case["reasoning_parser"]
                prompt = case.get("prompt")
            given = case.get("tools") or (tools if name == "by_format" else None)
            yield {
                "id": f"{name}/{case['id']}",
                "format": format,
                "reasoning": reasoning,
                "raw": case["output"],
                "finish_reason": case.get("finish_reason") or "stop",
                "context": {"tools": given, "prompt": prompt, "prefill": case.get("prefill") or ""},
            }


def pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def ways(raw: str, finish_reason: str, tokenizer: PieceTokenizer) -> Iterator[tuple[str, list[tuple[str, Any]], str]]:
    """Yield names, deltas as (text, token ids), and finish reasons."""
    yield "characters", [(piece, ()) for piece in pieces(raw, 1)], finish_reason
    yield "sevens", [(piece, ()) for piece in pieces(raw, 7)], finish_reason
    yield "cut", [(piece, ()) for piece in pieces(raw[: len(raw) * 2 // 3], 3)], "length"
    tokens = [(piece, tokenizer.encode(piece)) for piece in tokenizer.pieces(raw)]
    yield "ids", tokens, finish_reason
    yield "ids, all at once", [(raw, [i for _, ids in tokens for i in ids])], finish_reason


def results(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what each way to feed a case gives."""
    raw, context = case["raw"], case["context"]
    settings = {"spans": True, "seed": case["id"], **context}
    plain = OutputParser.named(case["format"], reasoning=case["reasoning"])
    tokenizer = PieceTokenizer(plain.format.special_tokens)
    tokenizer.encode(raw)
    with_ids = OutputParser.from_format(plain.format, tokenizer=tokenizer)
    for policy_name, policy in POLICIES.items():
        whole = plain.parse(raw, finish_reason=case["finish_reason"], policy=policy, **settings)
        yield {"policy": policy_name, "way": "whole", "message": whole}
        for name, deltas, finish_reason in ways(raw, case["finish_reason"], tokenizer):
            parser = with_ids if name.startswith("ids") else plain
            stream = parser.stream(collect=True, policy=policy, **settings)
            found = [stream.feed(text, ids) for text, ids in deltas]
            found.append(stream.finish(finish_reason))
            yield {"policy": policy_name, "way": name, "deltas": found, "message": stream.result()}


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m tests.builds FILE", file=sys.stderr)
        return 2
    logging.getLogger("untemplate").setLevel(logging.ERROR)  # the outputs are broken on purpose
    count = 0
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        for case in (*corpus(), *public()):
            for result in results(case):
                file.write(json.dumps({"case": case["id"], **msgspec.to_builtins(result)}) + "\n")
                count += 1
    print(f"{count} results of the {'compiled' if COMPILED else 'interpreted'} build in {sys.argv[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
