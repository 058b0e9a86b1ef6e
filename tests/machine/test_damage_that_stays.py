"""Damages that nothing shows: a list by shape. Each is an output that could be meant as it is written.

One that is reported some day leaves this list. What is reported is in ``test_damaged_markers.py``.
"""

from __future__ import annotations

import json

import pytest

from untemplate import OutputParser

STRING = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"city": STRING, "unit": STRING}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
QWEN = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n%s</parameter>\n</function>\n</tool_call>"
M2 = '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">%s</parameter>\n</invoke>\n'

STAYS: dict[str, tuple[str, str, dict[str, str], str | None]] = {
    "the close of reasoning is missing, and a call ends it: models leave it out": (
        "hermes+qwen3",
        f"<think>\nHm. Looking.\n{HERMES}",
        {"city": "Oslo"},
        None,
    ),
    "a sign of the opener is doubled before a value: a quotation may begin so": (
        "minimax_m2",
        M2 % ">Oslo" + "</minimax:tool_call>",
        {"city": ">Oslo"},
        None,
    ),
    "a sign of the close is doubled after a value: a text may end so": (
        "minimax_m2",
        M2 % "Oslo<" + "</minimax:tool_call>",
        {"city": "Oslo<"},
        None,
    ),
    "white space in front of a close: it may be indented, or belong to the value": (
        "qwen3_coder",
        QWEN % "  ",
        {"city": "Oslo\n  "},
        None,
    ),
    "a newline too many in front of a value": (
        "minimax_m2",
        M2 % "\nOslo" + "</minimax:tool_call>",
        {"city": "\nOslo"},
        None,
    ),
    "the opener of a key that is not declared, in a value: it may be quoted": (
        "qwen3_coder",
        QWEN % "<parameter=",
        {"city": "Oslo\n<parameter="},
        None,
    ),
    "half of a short marker: HTML has such tags": (
        "hermes",
        f"Looking.</th\n{HERMES}",
        {"city": "Oslo"},
        "Looking.</th",
    ),
    "a letter in the place of the newline before an opener: a word may end so": (
        "hermes",
        f"Looking.x{HERMES}",
        {"city": "Oslo"},
        "Looking.x",
    ),
    "the openers and closes of reasoning are exchanged: it has begun again": (
        "hermes+qwen3-vl-thinking",
        f"</think>\n\n<think>\nLooking.\n{HERMES}",
        {"city": "Oslo"},
        None,
    ),
    "a sign of another body alone in content": ("hermes", f'Looking.">\n{HERMES}', {"city": "Oslo"}, 'Looking.">'),
}


@pytest.mark.parametrize("shape", STAYS)
def test_nothing_shows_this_damage(shape: str) -> None:
    name, raw, arguments, content = STAYS[shape]
    parsed = OutputParser.named(name).parse(raw, tools=TOOLS)
    found = [(json.loads(call.function.arguments), call.status) for call in parsed.tool_calls]
    assert found == [(arguments, "ok")]
    assert parsed.diagnostics == []
    assert content is None or parsed.content == content
