"""Public templates: all analysed, all certified, under their own names and under others.

Counts are ratchets: they are printed, and do not go down.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.renaming import rebracketed, renamed
from tests.public import SHARED, TEMPLATES, needs_templates
from untemplate import OutputParser
from untemplate.analysis import Analysis
from untemplate.analysis._pipeline import analyze_template
from untemplate.templates import ChatTemplate

CERTIFIED = 44
RENAMED = 44
REBRACKETED = 44
CASES = 158


@cache
def analysed(path: Path) -> Analysis:
    return analyze_template(ChatTemplate.load(path))


@needs_templates
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem[:40])
def test_every_template_is_analysed_and_its_format_travels(path: Path) -> None:
    analysis = analysed(path)
    assert type(analysis.format).from_json(analysis.format.to_json()) == analysis.format
    assert json.loads(json.dumps(analysis.to_dict()))["format"]["name"] == analysis.format.name
    assert analysis.certificate.capabilities["content"] == "yes"


@needs_templates
def test_how_many_certify(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {p.stem: analysed(p).certificate.failed for p in TEMPLATES if not analysed(p).certificate.certified}
    with capsys.disabled():
        print(f"\n{len(TEMPLATES) - len(failed)} of {len(TEMPLATES)} templates certified")
        for name, outcomes in failed.items():
            print(f"  {name}: {[(o.check, o.problem) for o in outcomes[:3]]}")
    assert len(TEMPLATES) - len(failed) >= CERTIFIED


def _same_with_other_marks(change: Any) -> list[str]:
    other = []
    for path in TEMPLATES:
        before = analysed(path)
        after = analyze_template(ChatTemplate(change(ChatTemplate.load(path).source, before)))
        if (after.certificate.capabilities, after.result.variant) != (
            before.certificate.capabilities,
            before.result.variant,
        ):
            other.append(path.stem)
    return other


@needs_templates
def test_no_name_matters(capsys: pytest.CaptureFixture[str]) -> None:
    other = _same_with_other_marks(lambda source, analysis: renamed(source, analysis.format, seed=11))
    with capsys.disabled():
        print(f"\n{len(TEMPLATES) - len(other)} of {len(TEMPLATES)} certificates alike with markers renamed {other}")
    assert len(TEMPLATES) - len(other) >= RENAMED


@needs_templates
def test_no_bracket_matters(capsys: pytest.CaptureFixture[str]) -> None:
    other = _same_with_other_marks(lambda source, _: rebracketed(source))
    with capsys.disabled():
        print(f"\n{len(TEMPLATES) - len(other)} of {len(TEMPLATES)} certificates alike with other brackets {other}")
    assert len(TEMPLATES) - len(other) >= REBRACKETED


def test_renaming_renames() -> None:
    source = "{%- for m in messages -%}<|turn|>{{ m.role }}\n{{ m.content }}<|stop|>{%- endfor -%}<|turn|>assistant\n"
    analysis = analyze_template(ChatTemplate(source))
    other = renamed(source, analysis.format, seed=1)
    assert "turn" not in other
    assert "stop" not in other
    assert "assistant" in other
    assert rebracketed("{{ '<a>' if 1 < 2 else 3 > 2 }}<b>") == "{{ '⟦a⟧' if 1 < 2 else 3 > 2 }}⟦b⟧"


@needs_templates
def test_cases_with_the_format_inferred(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("score", SHARED / "cases" / "score.py")
    assert spec is not None
    assert spec.loader is not None
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    lines = (SHARED / "cases" / "by_template.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]

    def parser_of(case: dict[str, Any]) -> Any:
        parser = OutputParser.from_format(analysed(SHARED / "templates" / case["template"]).format)
        prompt, raw = case.get("prompt") or case["generation_prompt"] or None, case["output"]
        if case.get("prefill"):
            prompt, raw = prompt[: -len(case["prefill"])], case["prefill"] + raw
        return parser, {"tools": case["tools"] or None, "prompt": prompt}, raw

    with capsys.disabled():
        right, of, _, raised = score.score(rows, parser_of, 2)
        print(f"\n{right} of {of} cases right with the inferred format, {raised} raised")
    assert right >= CASES
