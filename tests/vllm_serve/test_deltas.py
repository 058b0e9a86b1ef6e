"""Deltas in vLLM's types: the plugin makes them without validation, and they are what vLLM's own classes make."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm")

from untemplate.integrations.vllm._parsers import _theirs, protocol
from untemplate.messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall


def call(**fields: str) -> DeltaToolCall:
    ids = {"id": "a", "type": "function"} if "name" in fields else {}
    return DeltaToolCall(index=1, **ids, function=DeltaFunctionCall(**fields))


@pytest.mark.parametrize(
    "delta",
    [
        DeltaMessage(content="a"),
        DeltaMessage(reasoning="a", content="b"),
        DeltaMessage(tool_calls=[call(name="f"), call(arguments="{")]),
        DeltaMessage(content="", tool_calls=[]),
    ],
)
def test_a_delta_is_what_their_class_makes(delta: DeltaMessage) -> None:
    fields = {name: getattr(delta, name) for name in ("reasoning", "content") if getattr(delta, name) is not None}
    if delta.tool_calls:
        fields["tool_calls"] = [
            protocol.DeltaToolCall(
                index=one.index,
                id=one.id,
                type=one.type,
                function=protocol.DeltaFunctionCall(name=one.function.name, arguments=one.function.arguments),
            )
            for one in delta.tool_calls
        ]
    expected, found = protocol.DeltaMessage(**fields), _theirs(delta)
    assert found == expected
    assert found.model_fields_set == expected.model_fields_set
    for options in ({}, {"exclude_unset": True}, {"exclude_none": True}):
        assert found.model_dump_json(**options) == expected.model_dump_json(**options)
    assert found.model_copy(deep=True) == expected
    found.content = "changed"
    assert found.content == "changed"
    assert _theirs(DeltaMessage(content="x")).tool_calls is not _theirs(DeltaMessage(content="x")).tool_calls
