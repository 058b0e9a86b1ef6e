"""The laws of DESIGN section 4, for every Format in the registry, on outputs that Hypothesis makes.

`check` holds one output against all of them: every cut, every prefix, ids as text, the ledger, render and back. Here
are the outputs: noise, calls that are nearly right, and what the renderer writes for awkward messages.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import strategies
from untemplate import OutputParser
from untemplate.format import Format
from untemplate.render import expressible, render
from untemplate.testing import check

FORMATS = strategies.formats()
CUTS = 12
sampled = settings(max_examples=10)
searched = settings(max_examples=400)


def holds(fmt: Format, raw: str, data: st.DataObject) -> None:
    """Every law, whatever the output means."""
    tools = data.draw(st.sampled_from([None, strategies.TOOLS, []]), label="tools")
    check(fmt, raw, tools=tools, cuts=CUTS, roundtrip=False)


def reads_back(fmt: Format, message: dict[str, Any]) -> None:
    """Law 8: what can be written reads back as what it was, under every cut."""
    if expressible(fmt, message, strategies.TOOLS) is not None:
        return
    expected = {
        "reasoning": message.get("reasoning") or "",
        "content": message.get("content") or "",
        "tool_calls": [
            (c["function"]["name"], _loaded(c["function"]["arguments"])) for c in message.get("tool_calls") or ()
        ],
    }
    parsed = check(fmt, render(fmt, message), tools=strategies.TOOLS, cuts=CUTS, roundtrip=False)
    got = {
        "reasoning": parsed.reasoning_content or "",
        "content": parsed.content or "",
        "tool_calls": [(c.function.name, json.loads(c.function.arguments)) for c in parsed.tool_calls],
    }
    assert got == expected


def _loaded(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


@pytest.mark.parametrize("name", FORMATS)
@sampled
@given(data=st.data())
def test_noise(name: str, data: st.DataObject) -> None:
    holds(FORMATS[name], data.draw(strategies.noise(FORMATS[name])), data)


@pytest.mark.parametrize("name", FORMATS)
@sampled
@given(data=st.data())
def test_nearly_right(name: str, data: st.DataObject) -> None:
    holds(FORMATS[name], data.draw(strategies.sketches(FORMATS[name])), data)


@pytest.mark.parametrize("name", FORMATS)
@sampled
@given(data=st.data())
def test_messages_read_back(name: str, data: st.DataObject) -> None:
    reads_back(FORMATS[name], data.draw(strategies.messages(FORMATS[name])))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMATS)
@searched
@given(data=st.data())
def test_any_output(name: str, data: st.DataObject) -> None:
    outputs = st.one_of(strategies.noise(FORMATS[name]), strategies.sketches(FORMATS[name]))
    holds(FORMATS[name], data.draw(outputs), data)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMATS)
@searched
@given(data=st.data())
def test_any_message_reads_back(name: str, data: st.DataObject) -> None:
    reads_back(FORMATS[name], data.draw(strategies.messages(FORMATS[name], most_calls=20)))


def test_64_threads_share_one_parser() -> None:
    """A parser answers each of them as it would alone (vllm#34932: 38 % success at 150 workers)."""
    parser = OutputParser.named("qwen3_coder", reasoning="qwen3")
    outputs = [
        f"<think>{i}</think>Look.\n<tool_call>\n<function=f{i}>\n<parameter=n>\n{i}\n</parameter>\n</function>\n</tool_call>"
        for i in range(64)
    ]
    alone = [parser.parse(raw, seed=i) for i, raw in enumerate(outputs)]
    together: list[Any] = [None] * len(outputs)
    start = threading.Barrier(len(outputs))

    def work(i: int) -> None:
        start.wait()
        for _ in range(5):
            stream = parser.stream(seed=i, collect=True)
            for c in outputs[i]:
                stream.feed(c)
            stream.finish()
            together[i] = stream.result()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(outputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
