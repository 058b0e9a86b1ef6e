"""Most deltas take a short path. It must not change what comes after it."""

from __future__ import annotations

import gc
from typing import Literal

import pytest

from untemplate import OutputParser
from untemplate.format import Format, Marker, NamedBody, TaggedArguments, Tools
from untemplate.machine.scanner import SpecialTokens

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
        if str(type(found).__module__).startswith("untemplate.machine.")
        and type(found).__module__ != "untemplate.machine.program"
    }
    assert "Machine" in counts
    assert {name: count for name, count in counts.items() if count > 29} == {}


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
