"""Exported response templates, read by transformers itself: ``make test-integrations``.

Every format of the catalogue that can be exported must give, in transformers, the message that untemplate gives: for
rendered turns, and for the shared cases. The counts are printed with ``-rP``.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.public import CASES, NO_CASES
from untemplate._internal.output_parser import OutputParser
from untemplate._internal.render import expressible, render
from untemplate.format import Format, FormatError
from untemplate.formats import entries, named
from untemplate.messages import ParsedOutput

from .helper import MESSAGES, TOOLS

pytest.importorskip("regex", reason="needs transformers")
chat_parsing = pytest.importorskip("transformers.utils.chat_parsing.response_parser", reason="needs transformers 5.13")

KNOWN = {"mistral": "Mistral's older list of calls is the second of its ways to write them"}
"""Formats for which complete shared cases differ, with the reason."""


def exported() -> list[Any]:
    """Return every Format of the catalogue that a response template can hold, once, with its template."""
    found = []
    seen: set[tuple[object, ...]] = set()
    for entry in entries():
        fmt = entry.format
        content = (fmt.turn, fmt.reasoning, fmt.content, fmt.tools, fmt.channels)
        if content not in seen:
            seen.add(content)
            try:
                found.append(pytest.param(fmt, fmt.to_response_template(), id=fmt.name))
            except FormatError:
                continue
    return found


def ours(parsed: ParsedOutput) -> dict[str, Any]:
    calls = [(c.function.name, json.loads(c.function.arguments)) for c in parsed.tool_calls]
    return {"reasoning": parsed.reasoning or "", "content": parsed.content or "", "calls": calls}


def theirs(message: dict[str, Any]) -> dict[str, Any]:
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or []]
    return {
        "reasoning": message.get("reasoning_content") or "",
        "content": message.get("content") or "",
        "calls": calls,
    }


def read(template: dict[str, Any], text: str, prompt: str, tools: Any) -> dict[str, Any]:
    return theirs(chat_parsing.parse_response(text, template, prefix=prompt, tools=tools))


def read_by_characters(template: dict[str, Any], text: str, prompt: str, tools: Any) -> dict[str, Any]:
    parser = chat_parsing.ResponseParser(template, prefix=prompt, tools=tools)
    for character in text:
        parser.feed(character)
    return theirs(parser.finalize()[0])


@pytest.mark.parametrize(("fmt", "template"), exported())
def test_transformers_reads_what_is_rendered(fmt: Format, template: dict[str, Any]):
    parser = OutputParser.from_format(fmt)
    assert fmt.turn.start is not None
    prompt = fmt.turn.start.text
    compared = 0
    for message in MESSAGES:
        if expressible(fmt, message, TOOLS) is not None:
            continue
        text = render(fmt, message)
        expected = ours(parser.parse(text, tools=TOOLS, prompt=prompt))
        assert read(template, text, prompt, TOOLS) == expected, text
        assert read_by_characters(template, text, prompt, TOOLS) == expected, text
        compared += 1
    assert compared
    print(f"{fmt.name}: {compared} of {len(MESSAGES)} turns")


def test_transformers_reads_the_shared_cases():
    if not CASES.is_dir():
        pytest.skip(NO_CASES)
    tools = json.loads((CASES / "by_format_tools.json").read_text("utf-8"))
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for line in (CASES / "by_format.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        tool, reasoning = case.get("tool_parser"), case.get("reasoning_parser")
        fmt = named(tool or reasoning, reasoning=reasoning if tool else None)
        try:
            template = fmt.to_response_template()
        except FormatError:
            counts["of formats that cannot be exported"] += 1
            continue
        if case["kind"] == "truncated":
            counts["cut, which transformers does not read"] += 1
            continue
        prompt = case["prompt"]
        expected = ours(OutputParser.from_format(fmt).parse(case["output"], tools=tools, prompt=prompt))
        try:
            same = read(template, case["output"], prompt, tools) == expected
        except ValueError:
            same = False
        if not same and tool not in KNOWN:
            wrong.append(case["id"])
        counts["the same" if same else "different"] += 1
    print(dict(counts))
    assert not wrong
    assert counts["the same"] >= 190
