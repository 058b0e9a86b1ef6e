"""The cases of `untemplate check`: servers get texts that the parser reads as expected."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.check._cases import cases_for, corpus, message_of
from untemplate.check._compare import compare
from untemplate.check._model import Call, Message

FORMATS = sorted({record.format for record in corpus()})


@pytest.mark.parametrize("name", FORMATS)
def test_a_case_is_read_as_expected(name: str) -> None:
    parser = OutputParser.named(name)
    cases = cases_for(parser)
    assert len({case.id for case in cases}) == len(cases)
    assert sum(case.clean for case in cases) >= 8
    for case in cases:
        parsed = parser.parse(case.raw, tools=case.tools, prompt=case.prompt, finish_reason=case.finish_reason)
        assert message_of(parsed) == case.expect, case.id
        if case.clean:
            assert [call.status for call in parsed.tool_calls] == ["ok"] * len(case.expect.calls), case.id


@pytest.mark.parametrize("name", FORMATS)
def test_most_vectors_by_hand_are_cases(name: str) -> None:
    """Only those with an end of the turn inside or no text at all are left out."""
    parser = OutputParser.named(name)
    cases = {(case.raw, case.prompt, case.finish_reason) for case in cases_for(parser)}
    end = parser.format.turn.end.text if parser.format.turn and parser.format.turn.end else "\0"
    left = [
        record.id
        for record in corpus()
        if record.format == name and record.whole == name and record.raw.removesuffix(end)
        if end not in record.raw.removesuffix(end)
        if (record.raw.removesuffix(end), record.prompt, record.finish_reason) not in cases
    ]
    # Its white space is the marker's only if the end of the turn is text, which a server does not force.
    assert left == (["turn-end-at-the-end"] if name == "hermes" else [])


def test_true_is_not_one() -> None:
    true, one = (Message(calls=(Call("f", arguments),)) for arguments in ('{"x": true}', '{"x": 1}'))
    found = compare(true, one)
    assert found == (
        "fail",
        """the arguments of call 0 differ: '{"x": 1}' came, '{"x": true}' expected""",
    )
