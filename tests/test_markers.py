"""Markers of other formats in the content."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate._internal.backends.recognition import foreign_marker, markers_in, markers_of
from untemplate.formats import _index, entries, named


def found(name: str, raw: str) -> list[tuple[str, int, str]]:
    parsed = OutputParser.named(name).parse(raw)
    return [(d.message, d.start, d.text) for d in parsed.diagnostics if d.code == "foreign_marker"]


def test_the_message_names_the_marker_and_its_formats() -> None:
    assert found("mistral", "Hi. <tool_call>x</tool_call>") == [
        ("content holds '<tool_call>', which begins calls in hermes, qwen3_coder, glm45 and others", 4, "<tool_call>")
    ]


def test_only_the_first_one_is_reported() -> None:
    raw = "a <|python_tag|> b <tool_call> c <|python_tag|>"
    assert [text for _, _, text in found("mistral", raw)] == ["<|python_tag|>"]


@pytest.mark.parametrize("raw", ["`<tool_call>`", "no markers", "<div><p>a[0]</p></div>", "", "x <toolcall> [TOOL]"])
def test_quotations_and_other_text_are_not_reported(raw: str) -> None:
    assert found("mistral", raw) == []


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_a_format_does_not_report_its_own_markers(entry: object) -> None:
    fmt = named(entry.name)  # type: ignore[attr-defined]
    own = frozenset(markers_of(fmt))
    text = " ".join(f"{marker} x" for marker in own)
    assert foreign_marker(text, own) is None


def test_every_marker_of_the_index_is_found() -> None:
    for marker, meaning in _index.MARKERS.items():
        assert next(markers_in(f"x {marker} y"))[1] == 2
        assert foreign_marker(marker, frozenset()) == (marker, 0, meaning)


def test_the_place_is_that_of_the_output_after_reasoning_and_a_call() -> None:
    call = '[TOOL_CALLS]f[ARGS]{"a": "<tool_call>"}'
    raw = f"[THINK]a <tool_call> b[/THINK]Hi.{call}"
    assert found("mistral", raw) == []
    raw = f"[THINK]<tool_call>[/THINK]Hi. <tool_call> and {call}"
    ((_, start, _),) = found("mistral", raw)
    assert start == raw.index("Hi. ") + 4


def test_a_request_without_tools_shows_its_own_markers_without_a_report() -> None:
    parsed = OutputParser.named("hermes").parse("<tool_call>{}</tool_call>", tools=[])
    assert (parsed.content, parsed.diagnostics) == ("<tool_call>{}</tool_call>", [])


CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize(
    ("name", "raw", "found"),
    [
        ("hermes", f"Hi.\n<tool_cal>\n{CALL}", "<tool_cal>"),
        ("hermes", "Hi. tool_call> is how it begins.", "tool_call>"),
        ("hermes", "Hi. <tooll_call> is how it begins.", "<tooll_call>"),
        ("hermes", "Hi. `<tool_cal>` is how it begins.", None),
        ("hermes", "Hi. <tool_callers> is another tag.", None),
        ("hermes", "A tool_call is a tool call; <tool> and a > b | c are no markers.", None),
        ("qwen3", f"<think>\nHm.\n</thinx>\n\nHi.\n{CALL}", "</thinx>"),
        ("minimax_m2", "<thinkk>\nHm.\n</think>\n\nHi.", "<thinkk>"),
        ("qwen3", f"<think>\nA <thing> and </thing>.\n</think>\n\n<thing>Hi.\n{CALL}", None),
        ("cohere_command4", "<|START_TEXT|><|START_TEXT|>Hi.<|END_TEXT|>", "<|START_TEXT|>"),
        ("cohere_command4", "<|START_TEXT|>Hi.<|ENDTEXT|>", "<|ENDTEXT|>"),
    ],
)
def test_markers_that_were_not_read_are_reported(name: str, raw: str, found: str | None) -> None:
    parsed = OutputParser.named(name).parse(raw)
    unread = [d for d in parsed.diagnostics if d.code == "unread_marker"]
    assert [(d.text, raw[d.start : d.end]) for d in unread] == ([(found, found)] if found else [])


def test_damaged_markers_of_calls_are_not_reported_where_no_calls_are_wanted() -> None:
    assert OutputParser.named("hermes").parse("Hi. <tool_cal>", tools=[]).diagnostics == []


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("Hello.<|im_end|>\n<|im_start|>assistant\nMore.", True),
        ("<|im_start|>assistant\nHello.", True),
        ("<think>\nHm.\n<|im_start|>assistant\nHm.\n</think>\n\nHello.", True),
        ("Write `<|im_start|>assistant` to begin.", False),
        ("<|im_start|>user\nHello.", False),
    ],
)
def test_the_header_of_a_turn_is_reported(raw: str, found: bool) -> None:
    parsed = OutputParser.named("hermes+qwen3").parse(raw)
    header = "<|im_start|>assistant"
    expected = [(raw.index(header), header)] if found else []
    assert [(d.start, d.text) for d in parsed.diagnostics if d.code == "unread_marker"] == expected


def test_a_header_of_words_is_no_markup() -> None:
    parser = OutputParser.from_template(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}",
        cache=False,
    )
    assert parser.parse("He said:\nassistant: no").diagnostics == []
