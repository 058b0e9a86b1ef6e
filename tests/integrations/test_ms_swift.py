"""``untemplate.integrations.ms_swift`` in the real package: ``make test-integrations``."""

from __future__ import annotations

import json
from typing import Any

import pytest

mapping = pytest.importorskip("swift.agent_template.mapping", reason="needs ms-swift")

from untemplate.integrations.ms_swift import register  # noqa: E402

from .helper import TOOLS  # noqa: E402

THEIRS = dict(mapping.agent_template_map)
register()
CALLS = [
    {"role": "tool_call", "content": json.dumps({"name": "find", "arguments": {"q": "two words", "limit": 3}})},
    {"role": "tool_call", "content": json.dumps({"name": "time", "arguments": {}})},
]
OURS = sorted(name for name in mapping.agent_template_map if name.startswith("untemplate:"))


def test_names_of_the_catalogue_are_registered():
    assert {f"untemplate:{name}" for name in ("hermes", "qwen3_coder", "glm4_5", "seed_oss", "mistral")} <= set(OURS)
    without = {name for name in THEIRS if f"untemplate:{name}" not in OURS}
    assert without == {"react_en", "react_zh", "react_grpo", "toolbench", "glm4", "chatglm4", "hunyuan_hermes"} | {
        f"qwen_{one}" for one in ("en", "zh", "en_parallel", "zh_parallel")
    }


@pytest.mark.parametrize("name", OURS)
def test_their_own_calls_are_read(name: str):
    """What their template writes as a message of calls comes back. Llama writes one call in a message."""
    made = mapping.agent_template_map[name]()
    calls = CALLS[:1] if name in ("untemplate:llama3", "untemplate:llama4") else CALLS
    found = made.get_toolcall(made._format_tool_calls(calls), tools=TOOLS)
    expected = [("find", {"q": "two words", "limit": 3}), ("time", {})][: len(calls)]
    assert [(one.name, json.loads(one.arguments)) for one in found] == expected
    assert found[0].__class__.__name__ == "Function"


def test_a_cut_call_is_left_out():
    made: Any = mapping.agent_template_map["untemplate:hermes"]()
    assert made.get_toolcall('<tool_call>\n{"name": "find", "arguments": {"q": "te') == []
