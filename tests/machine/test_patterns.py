"""No regular expression of the machine can match one text in many ways: that would take exponential time."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import untemplate._internal.jsontext
import untemplate._internal.machine
from untemplate import OutputParser

REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)


def patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns at the top of the modules that read what a model wrote."""
    found = {}
    for package in (untemplate._internal.machine, untemplate._internal.jsontext):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    found[f"{info.name}.{name}"] = value
    return found


def children(argument: Any) -> Iterator[Any]:
    """Yield the parsed parts of a parsed pattern."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from children(part)


def repeats_a_repetition(parsed: Any) -> bool:
    """True if an unlimited repetition repeats nothing else than an unlimited one, and parts that may be empty."""
    for code, argument in parsed:
        if code in REPEATS and argument[1] is codes.MAXREPEAT and only_repeats(argument[2]):
            return True
        if any(map(repeats_a_repetition, children(argument))):
            return True
    return False


def only_repeats(body: Any) -> bool:
    """True if a pattern may match with nothing but an unlimited repetition that gives back what it has matched."""
    needed = [(code, argument) for code, argument in body if width((code, argument), body) > 0]
    if len(needed) > 1:
        return False
    if not needed:
        return any(may_repeat(code, argument) for code, argument in body)
    return may_repeat(*needed[0])


def width(item: tuple[Any, Any], body: Any) -> int:
    return int(parser.SubPattern(body.state, [item]).getwidth()[0])


def may_repeat(code: Any, argument: Any) -> bool:
    if code in REPEATS:
        return argument[1] is codes.MAXREPEAT or only_repeats(argument[2])
    if code is codes.SUBPATTERN:
        return only_repeats(argument[3])
    if code is codes.BRANCH:
        return any(map(only_repeats, argument[1]))
    return False


@pytest.mark.parametrize(
    ("pattern", "repeats"),
    [
        (r"(?:a*)*", True),
        (r"(a+)+b", True),
        (r"(?:x?(?:a+b?)*)*", True),
        (r"(?:[ \t]*(?:-[ \t]+)*(?:>[ \t]?)*)*[ \t]*", True),
        (r"(?:a+b)*", False),
        (r"(?:a++)*", False),
        (r"[ \t]*+(?:-[ \t]++|>[ \t]*+)*+", False),
    ],
)
def test_the_search_finds_such_patterns(pattern: str, repeats: bool) -> None:
    assert repeats_a_repetition(parser.parse(pattern)) == repeats


def test_no_pattern_repeats_a_repetition() -> None:
    found = patterns()
    assert len(found) > 50
    assert [name for name, one in found.items() if repeats_a_repetition(parser.parse(one.pattern, one.flags))] == []


def test_a_line_of_spaces_before_a_fence() -> None:
    text = "x\n" + " " * 100 + "a```"
    parsed = OutputParser.named("hermes+qwen3").parse(f"<think>{text}</think>{text}\n<tool_call>")
    assert (parsed.reasoning, parsed.content) == (text, text)
