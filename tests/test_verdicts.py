"""What other projects' own tests expect, judged by a person (``corpus/record.py``)."""

from __future__ import annotations

import pytest

from corpus.record import PROJECTS, VERDICTS, WORDS, kept, load, message, plain

CASES = [case for name in PROJECTS for case in load(VERDICTS / f"{name}.jsonl")]


def test_every_case_has_a_verdict_with_a_reason() -> None:
    assert {case["verdict"] for case in CASES} <= set(WORDS) - {"new"}
    assert [case["id"] for case in CASES if not (case["why"] and case["licence"] and case["test"])] == []
    assert len({case["id"] for case in CASES}) == len(CASES)


def test_texts_of_sources_that_are_not_published_stay_out() -> None:
    """A case that is still ``new`` has them, so that a person can judge it."""
    for name, project in PROJECTS.items():
        judged = load(VERDICTS / f"{name}.jsonl")
        assert {"output" in case for case in judged} == {project.fetch is not None}
        assert [case for case in judged if kept(project, case) != case] == []


@pytest.mark.parametrize(
    "case", [case for case in CASES if "output" in case], ids=lambda case: f"{case['format']}-{case['id']}"
)
def test_untemplate_gives_the_message_that_was_judged(case: dict[str, object]) -> None:
    """A case that untemplate got wrong expects the other project's message, and fails until untemplate gives it."""
    expected = case["theirs"] if case["verdict"] == "ours" else case["ours"]
    assert plain(message(str(case["format"]), str(case["output"]), case["tools"])) == plain(expected)
