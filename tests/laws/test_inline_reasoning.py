"""Reasoning that a Format leaves in the content: the content is the open marker and the output, to the character."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate import OutputParser
from untemplate._internal.render import Inexpressible, expressible
from untemplate.format import Format, Marker, Reasoning
from untemplate.formats import named
from untemplate.policy import Policy
from untemplate.testing import PieceTokenizer, check
from untemplate.vllm_api._format_parsers import reasoning_class

from .strategies import TOOLS, noise

NAME = "minimax_m2_append_think"
INLINE = named(NAME)
OWN = Format(
    name="own",
    reasoning=Reasoning(open=Marker("<t>"), close=Marker("</t>"), inline=True),
    special_tokens=("<t>", "</t>"),
)
CALL = '\n<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>\n</minimax:tool_call>'
# Output → what vLLM's class of this name returns as content, whole and streamed (vLLM 0.33).
THEIRS = {
    "The user asks.\n</think>\n\nParis.": "<think>The user asks.\n</think>\n\nParis.",
    "\n Hm. \n</think> Hi \n": "<think>\n Hm. \n</think> Hi \n",
    "T</think>a <think>c</think> d\n": "<think>T</think>a <think>c</think> d\n",
    "cut off": "<think>cut off",
    # From tests/reasoning/test_minimax_m2_append_reasoning_parser.py.
    "This is reasoning</think>This is response": "<think>This is reasoning</think>This is response",
    "This is reasoning in progress": "<think>This is reasoning in progress",
    "Line 1\nLine 2</think>Response 1\nResponse 2": "<think>Line 1\nLine 2</think>Response 1\nResponse 2",
    "```python\nprint('hi')\n```</think>Here's the code.": "<think>```python\nprint('hi')\n```</think>Here's the code.",
}


@pytest.mark.parametrize("raw", THEIRS)
def test_it_is_what_vllm_returns(raw: str) -> None:
    expected = {"reasoning": None, "content": THEIRS[raw], "diagnostics": []}
    check(NAME, raw, expected, exhaustive=True)
    check(NAME, raw, expected, prompt="Hi]~b]ai\n<think>\n", exhaustive=True)
    check(named("minimax_m2", reasoning=NAME), raw, expected, exhaustive=True)
    tokenizer = PieceTokenizer(INLINE.special_tokens)
    assert reasoning_class(INLINE)(tokenizer).extract_reasoning(raw, None) == (None, THEIRS[raw])


@pytest.mark.parametrize("fmt", [INLINE, named("minimax_m2", reasoning=NAME), OWN], ids=["alone", "with-calls", "own"])
def test_noise(fmt: Format) -> None:
    """The laws for all Formats meet this one with its reasoning apart from the content."""

    @settings(max_examples=6)
    @given(noise(fmt), st.sampled_from([None, TOOLS]))
    def law(raw: str, tools: list[dict[str, object]] | None) -> None:
        check(fmt, raw, tools=tools, cuts=16)

    law()


@pytest.mark.parametrize("between", ["\n</think>\n\nHi", "</think>"])
def test_calls_follow_it(between: str) -> None:
    raw = f"T{between}{CALL}"
    expected = {"content": f"<think>T{between}", "tool_calls": [("f", {"a": "1"})], "finish_reason": "tool_calls"}
    check(named("minimax_m2", reasoning=NAME), raw, expected, exhaustive=True)


def test_a_draft_in_thoughts_is_not_a_call() -> None:
    raw = f"T{CALL}\n Hm.</think>\n\nHi"
    expected = {"content": f"<think>{raw}", "tool_calls": [], "finish_reason": "stop"}
    check(named("minimax_m2", reasoning=NAME), raw, expected, exhaustive=True)


@pytest.mark.parametrize("raw", ["<t> a\n</t>\n b", "<t>a", "a\n<t> b </t>c", "a"])
def test_an_opener_in_the_output_is_not_repeated(raw: str) -> None:
    check(OWN, raw, {"reasoning": None, "content": raw, "diagnostics": []}, exhaustive=True)


def test_a_policy_may_ask_for_a_field() -> None:
    parser = OutputParser.named(NAME, policy=Policy(reasoning_field="reasoning_content"))
    message = {"role": "assistant", "content": "b", "reasoning_content": "a"}
    assert parser.parse("a</think>b").message() == message


def test_a_message_with_reasoning_is_not_expressible() -> None:
    message = {"reasoning": "a", "content": "b"}
    assert expressible(INLINE, message) == Inexpressible.NO_REASONING
    assert expressible(INLINE.extend(reasoning__inline=False), message) is None


def test_it_is_in_the_json_form() -> None:
    assert Format.from_json(INLINE.to_json()) == INLINE
    assert '"inline": true' in INLINE.to_json()
