"""The modes of the machine: the table in the code matches real outputs."""

from __future__ import annotations

import pytest

from tests.test_corpus import RECORDS
from untemplate import OutputParser
from untemplate._internal.machine.machine import Machine
from untemplate._internal.machine.modes import MODES

FURTHER = [
    {"format": "gpt_oss", "output": "An answer without a header."},
    {"format": "gpt_oss", "output": "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>An answer."},
    {
        "format": "gpt_oss",
        "output": "<|channel|>final<|message|>`<|start|>assistant<|channel|>commentary to=f<|message|>{}<|call|>, no",
    },
]


@pytest.mark.skipif(not hasattr(Machine.feed, "__code__"), reason="a compiled class cannot be traced")
def test_modes_follow_one_another_as_in_the_table(monkeypatch: pytest.MonkeyPatch):
    """Every step from mode to mode in the vectors by hand is in the table, and every step in the table is in them."""
    seen: set[tuple[int, int]] = set()

    def set_mode(machine: Machine, mode: int) -> None:
        before = machine.__dict__.get("mode", mode)
        if before != mode:
            seen.add((before, mode))
        machine.__dict__["mode"] = mode

    monkeypatch.setattr(Machine, "_mode", property(lambda machine: machine.__dict__["mode"], set_mode), raising=False)
    for record in [*RECORDS, *FURTHER]:
        parser = OutputParser.named(record["format"])
        stream = parser.stream(tools=record.get("tools"), prompt=record.get("prompt"))
        stream.feed(record["output"])
        stream.finish(record.get("finish_reason", "stop"))
    assert seen == {(mode, follower) for mode, (_, _, _, followers) in MODES.items() for follower in followers}
