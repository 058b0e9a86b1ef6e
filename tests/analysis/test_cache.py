"""Results are cached in memory and on disk, and a broken file is ignored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from untemplate.analysis import _cache as module
from untemplate.analysis import analyze
from untemplate.analysis._cache import cache_folder, clear_memory
from untemplate.templates import ChatTemplate

from ..work import lines_run

SOURCE = (
    "{%- for m in messages -%}<{{ m.role }}>{{- m.content or '' -}}"
    "{%- for c in m.tool_calls or [] -%}<go>{{- c.function.name -}}<with>{{- c.function.arguments|tojson -}}</go>"
    "{%- endfor -%}<e>{%- endfor -%}{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNTEMPLATE_CACHE", str(tmp_path))
    return tmp_path


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def test_a_second_look_is_the_same_object_and_a_third_comes_from_disk(folder: Path) -> None:
    template = ChatTemplate(SOURCE)
    first = analyze(template)
    assert analyze(template) is first
    assert len(files(folder)) == 1
    clear_memory()
    again = analyze(template)
    assert again.from_cache
    assert not first.from_cache
    assert again.format == first.format
    assert again.certificate == first.certificate
    assert again.result == first.result
    assert again.log == first.log
    assert [h.format for h in again.hypotheses] == [h.format for h in first.hypotheses]
    assert (again.example_prompt, again.example_output) == (first.example_prompt, first.example_output)
    assert "<go>" in again.example_output


@pytest.mark.parametrize("broken", ["", "{", "[]", "null", '{"format": {}}', "\x00\xff"])
def test_a_broken_file_is_no_file(folder: Path, broken: str) -> None:
    template = ChatTemplate(SOURCE)
    first = analyze(template)
    files(folder)[0].write_text(broken, encoding="utf-8")
    clear_memory()
    again = analyze(template)
    assert not again.from_cache
    assert again.format == first.format
    assert json.loads(files(folder)[0].read_text(encoding="utf-8"))["template_sha256"] == template.sha256


def test_another_templates_file_is_not_taken(folder: Path) -> None:
    analyze(ChatTemplate(SOURCE))
    text = files(folder)[0].read_text(encoding="utf-8")
    other = ChatTemplate(SOURCE.replace("<go>", "<run>"))
    files(folder)[0].with_name(f"{other.sha256}.json").write_text(text, encoding="utf-8")
    assert not analyze(other).from_cache


def test_the_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("off", "0", "", "none"):
        monkeypatch.setenv("UNTEMPLATE_CACHE", word)
        assert cache_folder() is None
    monkeypatch.delenv("UNTEMPLATE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "untemplate"


def test_cache_false_neither_reads_nor_writes(folder: Path) -> None:
    template = ChatTemplate(SOURCE)
    assert analyze(template, cache=False) is not analyze(template, cache=False)
    assert not files(folder)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("UNTEMPLATE_CACHE", str(file))
    assert analyze(ChatTemplate(SOURCE)).certificate.certified


def test_the_version_is_in_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analyze(ChatTemplate(SOURCE))
    monkeypatch.setattr(module, "CACHE_VERSION", module.CACHE_VERSION + 1)
    clear_memory()
    assert not analyze(ChatTemplate(SOURCE)).from_cache
    assert len(files(folder)) == 2


def test_memory_answers_at_once(folder: Path) -> None:
    template = ChatTemplate(SOURCE)
    first = analyze(template)
    files(folder)[0].unlink()
    assert analyze(template) is first
    assert lines_run(lambda: analyze(template)) < 30
    assert not files(folder)
