"""A half-fed stream can be copied, and the copy continues independently."""

from __future__ import annotations

import copy

import pytest

from untemplate import OutputParser
from untemplate._internal.machine.machine import Machine

OUTPUTS = {
    "hermes": 'Sure.\n<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>\nDone.',
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>",
    "pythonic": '[f(a="x", b=[1, 2])]',
    "gpt_oss": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.f<|channel|>commentary"
    '<|message|>{"a": 1}',
}


@pytest.mark.skipif(not hasattr(Machine.feed, "__code__"), reason="compiled classes cannot be copied")
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_copy_at_every_cut_ends_as_the_whole_output(name: str):
    parser = OutputParser.named(name)
    output = OUTPUTS[name]
    stream = parser.stream(collect=True)
    expected = parser.parse(output).message()
    for cut in range(len(output)):
        copied = copy.deepcopy(stream)
        copied.feed(output[cut:])
        copied.finish()
        message = copied.result().message()
        for call in (*(message.get("tool_calls") or ()), *(expected.get("tool_calls") or ())):
            call["id"] = ""
        assert message == expected
        stream.feed(output[cut])
