"""Make the examples of the inspector: one for each format, each diagnostic and each failure mode.

``python -m tests.inspector.examples`` writes them. They are vectors, triggers of ``test_failure_modes``, and a few that
need a policy or a template.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests import vectors_rules as rules
from tests.test_failure_modes import TRIGGERS
from tests.vectors import DATA
from untemplate._internal.machine.diagnostics import DIAGNOSTICS

FILE: Final = Path(__file__).parents[2] / "src/untemplate/_internal/inspector/static/examples.json"
NOT_SHOWN: Final = ("ambiguous_marker", "end_token", "uncertified_arguments", "unknown_token", "unproven_call")
"""Diagnostics that depend on a whole tokenizer or on a certificate, which a case does not have."""
_RICHEST: Final = ("all-parts", "content-and-call", "call", "reasoning", "content")
_NAMED: Final = frozenset(
    ("hermes", "qwen3_coder", "glm45", "pythonic", "gpt-oss", "deepseek_v31", "hermes+qwen3", "mistral")
)
"""Formats that examples of diagnostics are taken from."""
_OTHER: Final[dict[str, dict[str, Any]]] = {
    "dropped_call": {
        "text": '<tool_call>{"name": "g", "arguments": {}}</tool_call>',
        "format": "hermes",
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "policy": {"unknown_tools": "drop"},
    },
    "held_too_long": {
        "text": f'<think>\n<tool_call>{{"name": "f", "arguments": {{"text": "{"x" * 99}"}}}}</tool_call>',
        "format": "hermes+qwen3",
        "policy": {"max_held": 50},
    },
    "nested_too_deep": {
        "text": f'<tool_call><invoke name="f">{"<a>" * 300}1{"</a>" * 300}</invoke></tool_call>',
        "format": "minimax_m3",
    },
    "repeated_key": {"text": "[f(a=1, a=2)]", "format": "pythonic"},
    "unclosed_call": {"text": '<tool_call>{"name": "f", "arguments": {}}', "format": "hermes"},
    "unusual_name": {"text": '<tool_call>{"name": "3"}</tool_call>', "format": "hermes"},
    "text_between_arguments": {"text": "[f(a=[1] 2, b=3)]", "format": "pythonic"},
    "foreign_marker": {"text": '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "format": "llama3_json"},
}


def examples() -> dict[str, dict[str, Any]]:
    """Return the examples by their ids: ``format/NAME``, ``diagnostic/CODE`` and ``failure/NUMBER``."""
    vectors = rules.load(DATA)
    by_id = {one["id"]: one for one in vectors}
    found = {}
    for name in sorted({one["format"] for one in vectors if not one["format"].startswith("example.")}):
        best = next((by_id[f"{name}/{kind}"] for kind in _RICHEST if f"{name}/{kind}" in by_id), None)
        if best is not None:
            found[f"format/{name}"] = _example("Formats", name, _case(best))
    shortest = sorted((one for one in vectors if "tokens" not in one), key=lambda one: len(one["output"]))
    for code in sorted(set(DIAGNOSTICS) - set(NOT_SHOWN)):
        one = next((one for one in shortest if code in one["diagnostics"] and one["format"] in _NAMED), None)
        case = _OTHER.get(code) or (None if one is None else _case(one))
        assert case is not None, code
        found[f"diagnostic/{code}"] = _example("Diagnostics", code, case)
    for trigger in TRIGGERS:
        number = int(trigger[0][:2])
        name = trigger[1] + (f"+{trigger[2]}" if trigger[2] else "")
        case = {"text": trigger[3], "format": name}
        found.setdefault(f"failure/{number}", _example("Failure modes", f"{number}: {_title(trigger[0])}", case))
    return found


def _title(trigger: str) -> str:
    return trigger[3:].rpartition("-")[0].replace("-", " ")


def _example(group: str, title: str, case: dict[str, Any]) -> dict[str, Any]:
    return {"group": group, "title": title, "case": case}


def _case(vector: dict[str, Any]) -> dict[str, Any]:
    shown = {"text": vector["output"], "format": vector["format"], "finish_reason": vector["finish_reason"]}
    return shown | {key: vector[key] for key in ("tools", "prompt") if vector[key] is not None}


def text() -> str:
    """Return the file."""
    rows = [f"{json.dumps(key)}: {json.dumps(one, ensure_ascii=False)}" for key, one in examples().items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
