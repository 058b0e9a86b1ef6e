"""Reports on the calls of a response."""

from __future__ import annotations

from untemplate import OutputParser
from untemplate_gateway.protocols.objects import call_reports

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}}}}]


def test_the_reason_why_a_call_must_not_run():
    raw = '<tool_call>{"name": "f", "arguments": {"x": "no"}}</tool_call>'
    parsed = OutputParser.named("hermes").parse(raw, tools=TOOLS)
    assert call_reports(parsed) == [
        {
            "index": 0,
            "name": "f",
            "status": "invalid_arguments",
            "model_id": None,
            "repairs": [],
            "reason": "its arguments do not fit the tool's schema ($.x type)",
        }
    ]
