"""Openings of calls that force a model to call, over all Formats of the catalogue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.formats import entries
from untemplate_gateway.forcing import call_opening

NAMES = sorted({entry.name for entry in entries() if OutputParser.named(entry.name).has_tools})
NO_OPENING_BEFORE_A_NAME = {"functionary_v3.2", "granite_pythonic", "inkling"}
"""Formats whose calls begin with the name, after what the prompt ends with."""


def tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_continues_the_opening_calls(name: str) -> None:
    parser = OutputParser.named(name)
    tools = [tool("get_weather"), tool("open_door")]
    function = {"name": "get_weather", "arguments": '{"city": "Ulm"}'}
    call = {"id": "call_0", "type": "function", "function": function}
    written = parser.render({"role": "assistant", "content": None, "tool_calls": [call]})
    for offered in (tools[:1], tools):
        opening = call_opening(parser, offered, None)
        if len(offered) > 1 and name in NO_OPENING_BEFORE_A_NAME:
            assert opening == ""
            continue
        # The opening may begin with a close of reasoning that the rendering writes in another way.
        shared = next(opening[i:] for i in range(len(opening)) if opening[i:] in written)
        _, _, rest = written.partition(shared)
        parsed = parser.parse(rest, prefill=opening, tools=tools)
        found = [(one.function.name, json.loads(one.function.arguments)) for one in parsed.tool_calls]
        assert found == [("get_weather", {"city": "Ulm"})]
        assert not (parsed.content or "").strip()
