"""Where calls are switched off, the text of a call is content as it was written, for every Format."""

from __future__ import annotations

from typing import Any

import pytest

from untemplate._internal.render import render
from untemplate.format import Format
from untemplate.testing import check

from .strategies import FORMATS, TOOLS

CALLING = {name: fmt for name, fmt in FORMATS.items() if fmt.tools or fmt.channels is not None}
ID = "functions.ping:0"
CALL = {"id": ID, "type": "function", "function": {"name": "ping", "arguments": "{}"}}


@pytest.mark.parametrize("context", [{"tools": []}, {"tools": TOOLS, "tool_choice": "none"}, {"tool_choice": "none"}])
@pytest.mark.parametrize("fmt", CALLING.values(), ids=list(CALLING))
def test_calls_are_content_as_written(fmt: Format, context: dict[str, Any]) -> None:
    raw = render(fmt, {"content": None, "tool_calls": [CALL, CALL]})
    parsed = check(fmt, raw, roundtrip=False, cuts=16, **context)
    assert parsed.tool_calls == []
    assert parsed.content is not None
    # Empty blocks of reasoning, which some templates write before calls, are markup.
    assert raw.endswith(parsed.content)
    assert "ping" not in raw.removesuffix(parsed.content)
    assert parsed.diagnostics == []
