"""Most deltas take a short path. It must not change what comes after it."""

from __future__ import annotations

import gc
from typing import Literal

import pytest

from untemplate import OutputParser

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
    """Engines leave out the text of some special tokens, such as the one that ends the output."""
    parser = OutputParser.named("hermes", tokenizer=Words(), special_text=special_text)
    text = "".join(spelled)
    result = parser.parse(text, token_ids=Words().ids([*spelled, *real]))
    assert (result.content, result.tool_calls) == (text, [])


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
