"""A call with damaged markers is right, or something about it is reported: no argument is in another one in silence.

A message is rendered, and one or two of its markers are damaged: missing, doubled, misspelled, without their beginning
or end, in the place of another, or all of a chain is missing. The laws on splits and lost text hold for such outputs,
too.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.render import expressible, render
from untemplate.format import Format, Marker
from untemplate.testing import check

from .strategies import FORMATS

STRING = {"type": "string"}
PLACE = {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}}
SCHEMAS = {
    "find_hotel": {"town": STRING, "nights": {"type": "integer"}, "near": PLACE},
    "send_mail": {"address": STRING, "body": STRING},
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": schema}}}
    for name, schema in SCHEMAS.items()
]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


HOTEL = call("find_hotel", town="Lima", nights=3, near={"lat": -12.5, "lon": 77})
MAIL = call("send_mail", address="a@b.org", body="Dear all,\n\n  see you.\n")
MESSAGES = [
    {"role": "assistant", "content": "I look.", "tool_calls": [HOTEL]},
    {"role": "assistant", "content": None, "tool_calls": [MAIL, HOTEL]},
]


def markers(value: object) -> Iterator[str]:
    if isinstance(value, Marker):
        yield value.text
    elif is_dataclass(value):
        for field in fields(value):
            if field.name != "turn":
                yield from markers(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from markers(item)


def chain_end(raw: str, found: list[str], start: int) -> int:
    """Return where the markers end that follow one another from ``start`` on."""
    chain = re.compile(rf"(?:\s*(?:{'|'.join(map(re.escape, sorted(found, key=len, reverse=True)))}))+").match(
        raw, start
    )
    assert chain is not None
    return chain.end()


def damaged(raw: str, found: list[str], rng: random.Random) -> str:
    marker = rng.choice([m for m in found if m in raw])
    start = rng.choice([m.start() for m in re.finditer(re.escape(marker), raw)])
    end = start + len(marker)
    kind = rng.randrange(8)
    if kind == 4:
        return raw[:start] + marker[: rng.randrange(len(marker))] + raw[end:]
    if kind == 5:
        return raw[:start] + marker[rng.randrange(len(marker)) :] + raw[end:]
    if kind == 6:
        return raw[:start] + rng.choice(found) + raw[end:]
    if kind == 7:
        return raw[:start] + raw[chain_end(raw, found, start) :]
    if kind == 0:
        return raw[:start] + raw[end:]
    if kind == 1:
        return raw[:end] + marker + raw[end:]
    at = rng.randrange(start, end)
    return raw[:at] + ("" if kind == 2 else rng.choice("xqz")) + raw[at + 1 :]


def calls_of(parsed: Any) -> list[tuple[str, Any]]:
    found = []
    for one in parsed.tool_calls:
        try:
            found.append((one.function.name, json.loads(one.function.arguments)))
        except ValueError:
            found.append((one.function.name, one.function.arguments))
    return found


def swallows(fmt: Format, tools: Any, times: int, samples: int) -> list[str]:
    """Return the outputs in which an argument is in another one, and nothing is reported."""
    rng = random.Random(f"{fmt.name} {times}")
    parser = OutputParser.from_format(fmt)
    wrong = []
    for message in MESSAGES:
        if expressible(fmt, message, tools=tools) is not None:
            continue
        raw = render(fmt, message)
        found = sorted({m for m in markers(fmt) if len(m.strip()) > 1 and m in raw})
        wanted = calls_of(parser.parse(raw, tools=tools))
        for _ in range(samples if found else 0):
            output = raw
            for _ in range(times):
                output = damaged(output, found, rng) if any(m in output for m in found) else output
            parsed = parser.parse(output, tools=tools)
            if parsed.diagnostics or any(one.status != "ok" for one in parsed.tool_calls):
                continue
            for name, arguments in calls_of(parsed):
                known = [other for tool, other in wanted if tool == name]
                if isinstance(arguments, dict) and any(set(other) - set(arguments) for other in known):
                    wrong.append(output)
    return wrong


def with_inner_damage(raw: str, found: list[str], rng: random.Random) -> str:
    """Lose or replace a character between the first and the last one of a marker, so that it is no other one."""
    marker = rng.choice(found)
    start = rng.choice([m.start() for m in re.finditer(re.escape(marker), raw)])
    at = marker.index(marker.strip()) + rng.randrange(1, len(marker.strip()) - 1)
    broken = marker[:at] + rng.choice(["", "x", "q", "z"]) + marker[at + 1 :]
    if broken.strip() in {other.strip() for other in found}:
        return raw
    return raw[:start] + broken + raw[start + len(marker) :]


def leaks(fmt: Format, tools: Any, samples: int) -> list[str]:
    """Return the outputs whose calls are right, and whose text is not, without a report. A marker without brackets, or
    a very short one, is like a word of the text."""
    rng = random.Random(f"{fmt.name} leaks")
    parser = OutputParser.from_format(fmt)
    wrong = []
    for message in MESSAGES:
        if expressible(fmt, message, tools=tools) is not None:
            continue
        raw = render(fmt, message)
        found = sorted({m for m in markers(fmt) if len(m.strip()) > 5 and re.search(r"[<>\[\]|｜]", m) and m in raw})
        clean = parser.parse(raw, tools=tools)
        for _ in range(samples if found else 0):
            output = with_inner_damage(raw, found, rng)
            parsed = parser.parse(output, tools=tools)
            texts = [((p.content or "").strip(), (p.reasoning or "").strip()) for p in (parsed, clean)]
            reported = parsed.diagnostics or any(one.status != "ok" for one in parsed.tool_calls)
            if calls_of(parsed) == calls_of(clean) and texts[0] != texts[1] and not reported:
                wrong.append(output)
    return wrong


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools])
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["offered", "unknown"])
def test_no_damaged_marker_is_text_in_silence(name: str, tools: Any) -> None:
    assert leaks(FORMATS[name], tools, 12) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools])
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["offered", "unknown"])
def test_no_damaged_marker_is_text_in_silence_ever(name: str, tools: Any) -> None:
    assert leaks(FORMATS[name], tools, 400) == []


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools])
@pytest.mark.parametrize("times", [1, 2])
def test_no_argument_is_swallowed_in_silence(name: str, times: int) -> None:
    assert swallows(FORMATS[name], TOOLS, times, 12) == []


def check_laws(fmt: Format, samples: int, cuts: int) -> None:
    """Check the laws on splits and on lost text with damaged outputs, and one with little room."""
    rng = random.Random(f"{fmt.name} laws")
    for message in MESSAGES:
        if expressible(fmt, message, tools=TOOLS) is not None:
            continue
        raw = render(fmt, message)
        found = sorted({m for m in markers(fmt) if len(m.strip()) > 1 and m in raw})
        for number in range(samples if found else 0):
            output = damaged(raw, found, rng)
            policy = Policy(max_held=rng.choice([1, 40, 200])) if number % 2 else None
            check(fmt, output, tools=rng.choice([TOOLS, None]), cuts=cuts, policy=policy, roundtrip=False)


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools])
def test_a_damaged_output_is_the_same_under_any_split(name: str) -> None:
    check_laws(FORMATS[name], 2, 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools])
def test_a_damaged_output_is_the_same_under_every_split(name: str) -> None:
    check_laws(FORMATS[name], 60, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_no_argument_is_swallowed_in_silence_ever(name: str, times: int) -> None:
    assert swallows(FORMATS[name], TOOLS, times, 400) == []
