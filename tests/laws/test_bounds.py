"""What a stream keeps is bounded: white space waits for what follows it, but not without limit."""

from __future__ import annotations

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.machine.scanner import _MOST_AWAITED
from untemplate._internal.machine.short_path import MOST_UNCOUNTED
from untemplate.format import Format
from untemplate.testing import PieceTokenizer, check

from .strategies import FORMATS, TOOLS

HELD = 10
VALUE = 200
CALLS = ["", '<tool_call>{"name": "f", "arguments": {}}</tool_call>']


@pytest.mark.parametrize("begins", ["a", "<think>", "<think>a", "<think>a</think>", "<think>a</think>b", *CALLS])
@pytest.mark.parametrize("ends", ["", "b", "</think>b", '<tool_call>{"name": "f", "arguments": {}}</tool_call>'])
@pytest.mark.parametrize("size", [HELD - 1, HELD, HELD + 1, 2 * HELD, 5 * HELD + 3])
def test_white_space_is_counted_in_characters_of_the_output(begins: str, ends: str, size: int) -> None:
    raw = begins + " " * size + ends
    parser = OutputParser.named("hermes", reasoning="qwen3", policy=Policy(max_held=HELD))
    check(parser, raw, roundtrip=False)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=list(FORMATS))
def test_white_space_does_not_wait_for_ever(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt, policy=Policy(max_held=HELD))
    stream = parser.stream(tools=TOOLS)
    for _ in range(20 * HELD):
        stream.feed(" ")
    machine = stream._backend._machine  # type: ignore[attr-defined]
    assert len(machine.cur.text) + sum(map(len, machine.spaces)) + machine.speculation.size <= HELD


@pytest.mark.parametrize("size", [HELD, HELD + 1, 3 * HELD + 2])
@pytest.mark.parametrize("step", [1, 7, 100])
def test_white_space_that_is_trimmed_waits_within_the_bound(size: int, step: int) -> None:
    parser = OutputParser.named("hermes", policy=Policy(max_held=HELD, outer_white_space="trim"))
    raw = f"  a{' ' * size}"
    stream = parser.stream(collect=True)
    for at in range(0, len(raw), step):
        stream.feed(raw[at : at + step])
    stream.finish()
    content = stream.result().content
    assert content == parser.parse(raw).content
    assert content is not None
    assert content.startswith("a")
    assert len(raw) - 2 - len(content) <= HELD


TAGGED = {
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=v>\n{}\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>f\n<arg_key>v</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    "minimax_m3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">]<]minimax[>[<v>{}]<]minimax[>[</v>'
    "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
}


@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("size", [VALUE - 1, VALUE, VALUE + 1, 2 * VALUE])
@pytest.mark.parametrize("kind", ["integer", "object"])
def test_a_value_that_is_not_a_string_is_kept_within_the_bound(name: str, size: int, kind: str) -> None:
    """Beyond it, it is a string, and the call is not ``ok``."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"v": {"type": [kind, "array"]}}}}
    value = "7" * size if kind == "integer" else "[" + "1" * (size - 2) + "]"
    parser = OutputParser.named(name, policy=Policy(max_held=VALUE))
    parsed = check(parser, TAGGED[name].format(value), tools=[{"type": "function", "function": tool}], roundtrip=False)
    (call,) = parsed.tool_calls
    if size <= VALUE:
        assert (call.function.arguments, call.status) == (f'{{"v": {value}}}', "ok")
        return
    assert (call.function.arguments, call.status) == (f'{{"v": "{value}"}}', "invalid_arguments")
    assert [d.code for d in parsed.diagnostics] == ["held_too_long"]


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=list(FORMATS))
def test_a_value_that_may_be_null_does_not_depend_on_pieces(fmt: Format) -> None:
    """It waits for what decides its type, within the bound."""
    arguments = {
        "a": "null" + "x" * 50,
        "b": " " * 15 + "text",
        "c": " " * 9 + "x",
        "d": "a text that is longer than it",
    }
    properties = {key: {"type": ["string", "null"]} for key in arguments}
    tool = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    calls = [{"type": "function", "function": {"name": "f", "arguments": arguments}}] * 2
    message = {"role": "assistant", "tool_calls": [{"id": f"callid00{n}", **call} for n, call in enumerate(calls)]}
    parser = OutputParser.from_format(fmt, policy=Policy(max_held=5 * HELD))
    if parser.expressible(message) is None:
        tools = [{"type": "function", "function": tool}]
        check(parser, parser.render(message), tools=tools, cuts=40, roundtrip=False)


@pytest.mark.parametrize("size", [1, 4, 5, 3 * VALUE])
@pytest.mark.parametrize("word", ["7", "x"])
def test_a_word_in_the_place_of_the_arguments_is_not_lost(word: str, size: int) -> None:
    raw = f'<tool_call>{{"name": "f", "arguments": {word * size}}}</tool_call>'
    parser = OutputParser.named("hermes", policy=Policy(max_held=VALUE))
    (call,) = check(parser, raw, roundtrip=False).tool_calls
    assert (call.function.arguments, call.status) == (word * size, "invalid_json")


@pytest.mark.parametrize("size", [HELD, HELD + 1, 5 * HELD])
@pytest.mark.parametrize("ends", ["", "</think>b"])
def test_reasoning_that_may_become_content_is_kept_within_the_bound(size: int, ends: str) -> None:
    parser = OutputParser.named("qwen3", policy=Policy(max_held=HELD, unclosed_reasoning="content"))
    parsed = check(parser, "<think>" + "a" * size + ends, roundtrip=False)
    too_long = size > HELD
    assert parsed.reasoning == ("a" * size if too_long or ends else None)
    assert parsed.content == ("b" if ends else None if too_long else "a" * size)
    assert [d.code for d in parsed.diagnostics] == ["held_too_long"] * too_long
    stream = parser.stream()
    given = [delta for text in ["<think>", *"a" * size] for delta in stream.feed(text)]
    assert bool(given) == too_long


@pytest.mark.parametrize("name", ["hermes", "generic"])  # with special tokens of its own, and without
@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("text", ["", "word "])
def test_ids_whose_text_never_comes_are_kept_within_the_bound(name: str, table: bool, text: str) -> None:
    special = FORMATS[name].special_tokens
    tokenizer = PieceTokenizer((*special, "<pad>"))
    ids = tokenizer.encode("".join((*special, "<pad>", text)))
    tokenizer.all_special_tokens = list(tokenizer.special)  # type: ignore[attr-defined]
    if not table:
        tokenizer.get_vocab = lambda: {t: i for i, t in enumerate(tokenizer.special)}  # type: ignore[method-assign]
    stream = OutputParser.from_format(FORMATS[name], tokenizer=tokenizer).stream()
    for _ in range(3 * _MOST_AWAITED):
        stream.feed(text, ids)
    scanner = stream._backend._machine.scanner  # type: ignore[attr-defined]
    kept = [scanner._awaited, scanner._gaps, scanner._shifts, scanner._carry, *scanner._pending.values()]
    assert max(map(len, kept)) <= 2 * _MOST_AWAITED + 1


@pytest.mark.parametrize("known", [True, False])
def test_a_scanner_of_an_output_without_markers_keeps_none_of_its_text(known: bool) -> None:
    tokenizer = PieceTokenizer(["<pad>"])
    tokenizer.all_special_tokens = ["<pad>"]  # type: ignore[attr-defined]
    stream = OutputParser.from_format(FORMATS["generic"], tokenizer=tokenizer).stream()
    backend = stream._backend
    for _ in range(600):
        if known:
            backend.feed_tokens("word ", [1], [])  # type: ignore[attr-defined]
        else:
            stream.feed("word ", [1])
    assert len(backend._machine.scanner._carry) < 10  # type: ignore[attr-defined]


@pytest.mark.parametrize("tokenizer", [None, PieceTokenizer(["<pad>"])])
def test_text_that_passes_unread_is_not_kept(tokenizer: PieceTokenizer | None) -> None:
    stream = OutputParser.from_format(FORMATS["generic"], tokenizer=tokenizer).stream()
    path = stream._backend._machine.path  # type: ignore[attr-defined]
    most = 0
    for _ in range(2_000):
        stream.feed(" word", [1])
        most = max(most, len("".join(path.texts)), len(path.ids))
    assert 0 < most < MOST_UNCOUNTED + len(" word")
