"""Quoted calls are text, in every Format: in inline code, in a string with escapes, and spelled by ordinary tokens."""

from __future__ import annotations

import json

import pytest

from untemplate import OutputParser
from untemplate._internal.render import render
from untemplate.format import Format
from untemplate.testing import check

from .strategies import FORMATS, TOOLS
from .test_tokens import spelled

CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris", "days": 3}'}}


def written(fmt: Format) -> str:
    """Return what a model writes to call, without what comes before and after it."""
    before = "" if fmt.channels is not None else "§"
    raw = render(fmt, {"role": "assistant", "content": before, "tool_calls": [CALL]})
    for marker in fmt.turn.end.spellings if fmt.turn.end is not None else ():
        raw = raw.removesuffix(marker)
    call = raw[raw.index(before) + len(before) :].strip()
    if fmt.channels is not None and not call.startswith(fmt.channels.open.text):
        # The prompt ends in the opener of a message.
        call = fmt.channels.open.text + fmt.channels.role + (" " if call.startswith("to=") else "") + call
    if fmt.content is not None:
        call = call.removeprefix(fmt.content.close.text.strip()).strip()
    return call


def content(fmt: Format) -> str:
    """Return what a model writes before content."""
    if fmt.reasoning is not None and fmt.reasoning.start == "open":
        return fmt.reasoning.close.text
    return ""


CALLING = {name: fmt for name, fmt in FORMATS.items() if fmt.tools or fmt.channels is not None}
EVERY = pytest.mark.parametrize("fmt", CALLING.values(), ids=list(CALLING))


@EVERY
def test_a_call_in_inline_code_is_text(fmt: Format) -> None:
    text = f"Models write `{written(fmt)}` to call, and `{written(fmt)}` again."
    check(fmt, content(fmt) + text, {"content": text}, tools=TOOLS, cuts=16, roundtrip=False)


@EVERY
def test_a_quoted_call_is_one_word_whatever_its_length(fmt: Format) -> None:
    """Text before a marker is read at 1,024 characters. A line of a quoted call ended the code around it there."""
    call = written(fmt)
    for end in ("` or `{}` to call.", "` `{}` ok.", " | `{}` ok."):
        parsed = [
            OutputParser.from_format(fmt).parse(
                f"{content(fmt)}Write `{call.replace('Paris', 'Paris' * times)}{end.format(call)}", tools=TOOLS
            )
            for times in (1, 400)
        ]
        assert len({len(one.tool_calls) for one in parsed}) == 1, end


@EVERY
def test_a_call_in_inline_code_and_tags_of_another_format_is_text(fmt: Format) -> None:
    text = f"Models write `<x:calls><x>{written(fmt)}</x></x:calls>` to call."
    check(fmt, content(fmt) + text, {"content": text}, tools=TOOLS, cuts=16, roundtrip=False)


@EVERY
def test_a_call_after_an_unpaired_backtick_is_a_call(fmt: Format) -> None:
    raw = f"{content(fmt)}So ` it is: `{written(fmt)}"
    bare_header = fmt.channels is not None and fmt.channels.recipient is None
    if bare_header or any(tools.bare for tools in fmt.tools):
        return
    for end in ("", "\nDone."):
        found = check(fmt, raw + end, tools=TOOLS, cuts=16, roundtrip=False)
        assert [(c.function.name, c.status) for c in found.tool_calls] == [("get_weather", "ok")], raw + end


@EVERY
def test_a_copy_of_a_call_in_a_string_is_text(fmt: Format) -> None:
    """A copy without any escape cannot be told apart from a call. The close of a message in it is a stray one."""
    call = written(fmt)
    quoted = '"' + call.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    for copy in (json.dumps(call), repr(call), repr(call + "'\""), quoted):
        if call in copy:
            continue
        text = f"The log has {copy} in it."
        found = check(fmt, content(fmt) + text, tools=TOOLS, cuts=16, roundtrip=False)
        assert found.tool_calls == []
        assert found.content == text or [d.code for d in found.diagnostics] == ["stray_close"]


@EVERY
def test_a_call_whose_opener_was_spelled_is_text(fmt: Format) -> None:
    """No opener that models write in place of the special token counts after it."""
    call = written(fmt)
    if not any(call.startswith(token) for token in fmt.special_tokens):
        return
    parser, pieces, ids = spelled(fmt, f"{content(fmt)}He sent: {call}")
    stream = parser.stream(collect=True, tools=TOOLS)
    for text, new in zip(pieces, ids, strict=True):
        stream.feed(text, new)
    stream.finish()
    assert stream.result().tool_calls == []


def test_a_close_in_inline_code_is_text() -> None:
    raw = "<think>\nThe `</think>` tag, after `a`.</think>It is `</think>`, `</tool_call>` or `x`</think>`y`."
    expected = {
        "reasoning": "The `</think>` tag, after `a`.",
        "content": "It is `</think>`, `</tool_call>` or `x``y`.",
        "diagnostics": ["stray_close"],
    }
    check("hermes", raw, expected, reasoning="qwen3", exhaustive=True, roundtrip=False)


def test_a_sentence_that_closes_reasoning_is_content_later() -> None:
    raw = "Here is my thought process: Hm. Here is my response: He said: Here is my response: no."
    expected = {"reasoning": "Hm.", "content": "He said: Here is my response: no."}
    check("granite", raw, expected, reasoning="granite", exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    ("before", "called"),
    [
        ("", True),
        ("I look.\n", True),
        ("I look. ", True),
        ("Write ", False),
        ("Write it as (", False),
        ("re", False),
        ("end.", False),
    ],
)
def test_a_word_begins_a_call_only_where_a_sentence_begins(before: str, called: bool) -> None:
    call = 'call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>'
    found = check("gemma4", before + call, tools=TOOLS, exhaustive=True, roundtrip=False)
    assert [c.function.name for c in found.tool_calls] == (["get_weather"] if called else [])


def test_text_after_a_quoted_call_and_the_limit() -> None:
    from untemplate import OutputParser, Policy

    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "' + "x" * 99 + '"}}\n</tool_call>'
    parsed = OutputParser.named("hermes").parse(f"A `{call}, then", policy=Policy(max_held=64))
    assert (parsed.content, parsed.tool_calls) == (f"A `{call}, then", [])
    assert [d.code for d in parsed.diagnostics] == ["held_too_long"]
    check("hermes", f"A `{call}\nthen", {"content": "A `\nthen", "tool_calls": [("get_weather", {"city": "x" * 99})]})
