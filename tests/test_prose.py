"""Keep the prose of the project plain English: `tests/prose.py` counts, and ``data/prose.json`` has the ceilings.

The ceilings only go down: lower them when a change makes the prose plainer. Zero is not the goal, because some of the
phrases are right where they are.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from . import prose

CEILINGS = json.loads((Path(__file__).parent / "data" / "prose.json").read_text("utf-8"))


def test_the_figures_stay_below_their_ceilings():
    found = asdict(prose.measure(prose.files()))
    higher = {name: figure for name, figure in found.items() if figure > CEILINGS[name]}
    assert higher == {}, "`python -m tests.prose` shows each place"


def test_every_kind_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(
        '"""What stands behind this is none of ours.\n\n'
        "    >>> 'told'  # code is not prose\n"
        '"""\n\n'
        "# It says so in spec 3,\n# beside whoever lets go and goes on all the same.\n"
        "X = 1  # noqa: told\n",
        "utf-8",
    )
    found = [kind for kind, _, _ in prose.findings(prose.passages(module))]
    assert sorted(found) == sorted([*prose.PHRASES, "docstring opens with What, Whether, Who", "dangling citation"])


def test_sentences_are_measured_without_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        f"# Title\n\n{'word ' * 40}end.\nShort one. `{'word ' * 50}` too.\n\n```\n{'word ' * 50}\n```\n", "utf-8"
    )
    assert [text.split(":")[0] for _, _, text in prose.findings(prose.passages(page))] == ["41 words"]
