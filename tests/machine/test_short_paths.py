"""Most deltas take a short path. It must not change what comes after it."""

from __future__ import annotations

import gc
import random
from itertools import pairwise
from typing import Literal

import pytest

from benchmarks.streams import FAMILIES, WRITTEN, make
from untemplate import COMPILED, OutputParser, Policy
from untemplate._internal.machine.lexer import Literals
from untemplate._internal.machine.machine import Machine
from untemplate._internal.machine.scanner import SpecialTokens
from untemplate._internal.machine.short_path import ShortPath
from untemplate.format import Format, Marker, NamedBody, TaggedArguments, Tools

WORDS = ["The", " harbour", " was", " quiet", "."]
CALL = '{"name": "f", "arguments": {"a": [1, "b"]}}'
SPECIAL = ["<tool_call>", "</tool_call>"]
SPELLED = ["<tool", "_call", ">", "</tool"]


class Words:
    """A tokenizer with one token for each of these texts."""

    all_special_tokens = SPECIAL

    def get_vocab(self) -> dict[str, int]:
        return {text.replace(" ", "Ġ"): i for i, text in enumerate([*SPECIAL, *WORDS, *SPELLED, *sorted(set(CALL))])}

    def ids(self, texts: list[str]) -> list[int]:
        vocabulary = self.get_vocab()
        return [vocabulary[text.replace(" ", "Ġ")] for text in texts]


@pytest.mark.parametrize("plain", [1, 254, 255, 256, 257, 600])
@pytest.mark.parametrize("size", [1, 3])
def test_a_marker_counts_by_its_id_after_any_number_of_plain_deltas(plain: int, size: int) -> None:
    """The places of plain tokens are counted when a special token comes. Before that they only wait."""
    prose = [WORDS[i % len(WORDS)] for i in range(plain)]
    spelled = ["<tool", "_call", ">", *CALL, "</tool", "_call", ">"]
    texts = [*prose, *spelled, SPECIAL[0], *CALL, SPECIAL[1]]
    ids = Words().ids(texts)
    parser = OutputParser.named("hermes", tokenizer=Words())
    stream = parser.stream(collect=True, seed=1)
    for at in range(0, len(texts), size):
        stream.feed("".join(texts[at : at + size]), ids[at : at + size])
    stream.finish()
    result = stream.result()
    assert result.content == "".join(prose) + "".join(spelled)
    assert [(call.function.name, call.function.arguments) for call in result.tool_calls] == [("f", CALL[27:-1])]
    assert result == parser.parse("".join(texts), token_ids=ids, seed=1)


def test_ids_may_be_a_list_that_the_engine_uses_again() -> None:
    texts = [*WORDS, SPECIAL[0], *CALL, SPECIAL[1]]
    stream = OutputParser.named("hermes", tokenizer=Words()).stream(collect=True)
    ids = [0]
    for text, token in zip(texts, Words().ids(texts), strict=True):
        ids[0] = token
        stream.feed(text, ids)
    stream.finish()
    assert stream.result().content == "".join(WORDS)
    assert [call.function.name for call in stream.result().tool_calls] == ["f"]


@pytest.mark.parametrize("special_text", ["kept", "stripped"])
@pytest.mark.parametrize(
    ("spelled", "real"),
    [
        ([*SPELLED[:3], *CALL, "</tool", "_call", ">"], [SPECIAL[0]]),
        ([*SPELLED[:3], *CALL, "</tool", "_call", ">"], SPECIAL),
        (["The", "</tool", "_call", ">", " was"], [SPECIAL[1]]),
    ],
)
def test_an_id_without_its_text_proves_no_copy_of_it(
    spelled: list[str], real: list[str], special_text: Literal["kept", "stripped"]
) -> None:
    """Engines leave out the text of some special tokens, such as the one that ends the output. Where they leave out all
    of it, it is restored, and a close that closes nothing is content."""
    parser = OutputParser.named("hermes", tokenizer=Words(), special_text=special_text)
    text = "".join(spelled)
    result = parser.parse(text, token_ids=Words().ids([*spelled, *real]))
    restored = SPECIAL[1] if special_text == "stripped" and real == [SPECIAL[1]] else ""
    assert (result.content, result.tool_calls) == (text + restored, [])


@pytest.mark.parametrize("size", range(len('{"name": "f"') + 1))
def test_a_prompt_may_end_inside_the_beginning_of_a_call(size: int) -> None:
    """A forced call: the prompt has its first characters."""
    prompt = "<|im_start|>assistant\n<tool_call>\n" + CALL[:size]
    result = OutputParser.named("hermes").parse(CALL[size:] + "\n</tool_call>", prompt=prompt)
    assert [(call.function.name, call.function.arguments) for call in result.tool_calls] == [("f", CALL[27:-1])]
    assert result.content is None


def test_white_space_at_the_end_is_said_to_belong_to_what_follows_it() -> None:
    stream = OutputParser.named("hermes").stream()
    for piece in ("I", " ", "\n"):
        stream.feed(piece)
    assert stream.snapshot is not None
    assert stream.snapshot.why == "white space belongs to what follows it"


@pytest.mark.parametrize(
    ("format", "output"),
    [
        ("hermes", '<tool_call>\n{"name": "get", "arguments": {"city": "x'),
        ("pythonic", "[get(city='x"),
        ("gemma4", '<|tool_call>call:get{city:<|"|>x'),
        ("qwen3_coder", "<tool_call>\n<function=get>\n<parameter=city>\nx"),
    ],
)
def test_readers_have_few_attributes(format: str, output: str) -> None:
    """CPython 3.11 reads attributes fastest in objects that have at most 29 of them."""
    stream = OutputParser.named(format).stream()
    stream.feed(output)
    counts = {
        type(found).__name__: len(getattr(found, "__dict__", ()))  # compiled classes have none
        for found in gc.get_objects()
        if str(type(found).__module__).startswith("untemplate._internal.machine.")
        and type(found).__module__ != "untemplate._internal.machine.program"
    }
    assert "Machine" in counts
    assert {name: count for name, count in counts.items() if count > 29} == {}


@pytest.mark.parametrize("size", [1, 2, 3, 30])
def test_text_that_passes_last_is_accounted_for_once(size: int) -> None:
    output = "<|channel>thought\nHm."
    stream = OutputParser.named("gemma4").stream(spans=True)
    for start in range(0, len(output), size):
        stream.feed(output[start : start + size])
    stream.finish("stop")
    assert stream.marked[-1][2] == len(output)


class Unknown:
    """A tokenizer with a special token that hermes does not know."""

    all_special_tokens = ("<tool_call>", "</tool_call>", "<|unk|>")

    def get_vocab(self) -> dict[str, int]:
        return {"<tool_call>": 0, "</tool_call>": 1, "<|unk|>": 2, "abc": 4, "xyz": 5}


@pytest.mark.parametrize(
    ("prefill", "deltas", "content"),
    [
        ("abc", [("", [5]), ("xyz<|unk|>", [2])], "abcxyz"),
        ("", [("abc", []), ("", [5]), ("xyz<|unk|>", [2])], "abcxyz"),
        ("", [("xyz", [5]), ("abc", []), ("", [5]), ("xyz<|unk|>", [2])], "xyzabcxyz"),
    ],
)
def test_text_without_ids_may_be_ahead_of_them(prefill: str, deltas: list[tuple[str, list[int]]], content: str) -> None:
    """The ids that follow run ahead of their text, so the number of bytes is the same in between."""
    stream = OutputParser.named("hermes", tokenizer=Unknown()).stream(collect=True, prefill=prefill)
    for text, ids in deltas:
        stream.feed(text, ids)
    stream.finish()
    result = stream.result()
    assert (result.content, [d.code for d in result.diagnostics]) == (content, ["unknown_token"])


def test_a_call_with_an_empty_name_is_text_at_once() -> None:
    stream = OutputParser.named("hermes").stream()
    begun = '<tool_call>{"name": ""'
    deltas = [delta for character in begun for delta in stream.feed(character)]
    assert "".join(delta.content or "" for delta in deltas) == begun


def test_literals_of_hyphens_are_not_part_of_a_key() -> None:
    arguments = TaggedArguments(key_open=Marker("--"), key_close=Marker("="), value_close=Marker("\n"))
    body = NamedBody(name_open=Marker("<function="), name_close=Marker(">\n"), arguments=arguments)
    tools = Tools(call_open=Marker("<tool_call>\n"), call_close=Marker("</tool_call>"), body=body)
    parser = OutputParser.from_format(Format(name="hyphens", tools=(tools,)))
    output = "<tool_call>\n<function=f>\n--a--b=1\n</tool_call>"
    stream = parser.stream(collect=True)
    for character in output:
        stream.feed(character)
    stream.finish()
    for result in (stream.result(), parser.parse(output)):
        assert [(call.function.arguments, [d.code for d in result.diagnostics]) for call in result.tool_calls] == [
            ('{"b": "1"}', ["broken_key"])
        ]


def test_texts_of_the_model_do_not_fill_what_is_remembered_of_literals() -> None:
    tokens = SpecialTokens({"<tool_call>": 1}, {})
    for number in range(1_000):
        tokens.places_in(f"<tool_call>{number}")
    assert tokens.places_in("<tool_call>") == (0,)
    assert "<tool_call>" in tokens.places
    assert len(tokens.places) <= 256


class Reads:
    """Counts the deltas that an output's machine reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read = Machine.read

        def counted(machine: Machine, text: str, *rest: object) -> str:
            self.count += 1
            return read(machine, text, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(Machine, "read", counted)


@pytest.mark.skipif(COMPILED, reason="compiled classes cannot be patched")
@pytest.mark.parametrize(
    ("format", "shape", "reads"),
    [("hermes", shape, 2) for shape in WRITTEN if "argument" not in shape and shape != "numbers"]
    + [
        ("minimax_m2", "signs", 9),
        ("hermes", "numbers", 40),
        ("qwen3_coder", "signs argument", 50),
        ("gemma4", "signs argument", 180),
    ],
)
def test_text_that_models_write_is_not_read(
    format: str, shape: str, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spaces, newlines, backticks and signs that may begin a marker pass. Markup is read, and a delta in a kilobyte."""
    (stream,) = make(format, FAMILIES[format], shape, size=2_048, ways=["text"])
    found = Reads(monkeypatch)
    parser = OutputParser.named(format, reasoning=FAMILIES[format])
    opened = parser.stream(tools=stream.tools, collect=True, seed=1)
    for text, _ in stream.deltas:
        opened.feed(text)
    opened.finish()
    assert len(stream.deltas) > 300
    assert found.count <= reads + len(stream.deltas) // 256
    assert opened.result() == parser.parse("".join(text for text, _ in stream.deltas), tools=stream.tools, seed=1)


LONG_WAIT = " " * 300
WAITS = [
    ["a ", " ", "\n", "b"],
    ["a", " <", " b"],
    ["a", " <", "b", "c"],
    ["a", " <to", "ol", "s>"],
    ["a ", "<tool_call", ">", " b"],
    ["a ", "<", "|im_end|", ">"],
    ["a ", "<", "|im_end|", "> b"],
    [" ", " ", "a", " ", " "],
    ["a", "\n", "<", "<", "think>"],
    ["`", "a", "` ", "<", "`"],
    ["a", LONG_WAIT, "b", LONG_WAIT],
    ["a", LONG_WAIT, "<tool", "_call>", '{"name": "f", "arguments": {}}', "</tool_call>", " b ", "c"],
    ["a", " <" * 200, " b"],
]


@pytest.mark.parametrize("texts", WAITS)
@pytest.mark.parametrize("max_held", [8, 1_000])
@pytest.mark.skipif(COMPILED, reason="compiled classes cannot be patched")
def test_what_passes_means_the_same_as_what_is_read(
    texts: list[str], max_held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = OutputParser.named("hermes", policy=Policy(max_held=max_held))
    found = []
    for passes in (True, False):
        if not passes:
            monkeypatch.setattr(ShortPath, "take_passing", lambda *_: None)
        stream = parser.stream(collect=True, spans=True, seed=1)
        deltas = [[delta.model_dump(exclude_none=True) for delta in stream.feed(text)] for text in texts]
        last = [delta.model_dump(exclude_none=True) for delta in stream.finish()]
        found.append((deltas, last, stream.result()))
    assert found[0] == found[1]


PIECES = [
    *(
        "word",
        " and more",
        "end. ",
        "ünï ",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "\r\n",
        "`x`",
        "```python\n",
        "```\n",
        "- item\n",
    ),
    *(
        "if a < b and c[0] > d:\n",
        "<",
        "</",
        "<|",
        "<t",
        "[",
        "{",
        "}",
        '"',
        "\\",
        "&lt;",
        '{"a": [1, 2.5, -3e4]}',
        "null",
    ),
]


@pytest.mark.parametrize(
    "format", ["hermes", "qwen3_coder", "glm45", "minimax_m3", "kimi_k2", "gpt-oss", "gemma4", "mistral", "pythonic"]
)
@pytest.mark.skipif(COMPILED, reason="compiled classes cannot be patched")
def test_any_text_means_the_same_where_it_passes(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(format)
    parser = OutputParser.named(format)
    call = {"name": "f", "arguments": '{"a": "x <b> `c` [d]\\n\\n", "n": [1, 2.5]}'}
    message = {"role": "assistant", "tool_calls": [{"id": "call_00001", "type": "function", "function": call}]}
    pieces = [*PIECES, *parser.format.special_tokens, parser.render(message)]
    for _ in range(25):
        text = "".join(chance.choices(pieces, k=40))
        cuts = sorted(chance.choices(range(len(text)), k=len(text) // 3))
        texts = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
        found = []
        for passes in (True, False):
            with monkeypatch.context() as patch:
                if not passes:
                    patch.setattr(ShortPath, "take_passing", lambda *_: None)
                stream = parser.stream(collect=True, spans=True, seed=1)
                deltas = [[delta.model_dump(exclude_none=True) for delta in stream.feed(text)] for text in texts]
                stream.finish()
                found.append((deltas, stream.result()))
        assert found[0] == found[1]


def test_a_stream_may_be_asked_where_it_is_while_text_passes() -> None:
    stream = OutputParser.named("hermes").stream(collect=True, spans=True)
    for text in ("a", " ", " <", "b", " ", "<tool"):
        stream.feed(text)
        snapshot = stream.snapshot
        assert snapshot is not None
    assert (snapshot.decided, snapshot.why) == (5, "a marker may begin here")
    stream.feed(" c")
    stream.finish()
    assert stream.result().content == "a  <b <tool c"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 0),
        ("a < b", 0),
        ("a <", 1),
        ("a <<", 1),
        ("a <to", 3),
        ("a <tool", 5),
        ("<tool> <tool>", -1),
        ("a <tool> b", -1),
        ("<to<", 1),
        ("a x", 0),
        ("a [", -1),
        ("<t<|x", 3),
    ],
)
def test_literals_that_have_begun(text: str, size: int) -> None:
    assert Literals({"<tool>": 0, "<|x|>": 1, "[": 2, "^]": 3}).begun(text) == size


def test_no_literal_begins_where_there_are_none() -> None:
    assert Literals({}).begun("a < b") == 0
