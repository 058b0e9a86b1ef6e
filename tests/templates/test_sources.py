"""Reads templates from text, files, folders, GGUF files and the hub."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from untemplate.templates import ChatTemplate, TemplateError, TemplateLimitError
from untemplate.templates._gguf_file import Gguf

from ..gguf_writer import write_gguf

SOURCE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token }}"
USER = [{"role": "user", "content": "hi"}]


def written(folder: Path, **files: Any) -> Path:
    """Write files. ``__`` in a name is a dot, ``___`` a slash. A value that is not a str is written as JSON."""
    for name, content in files.items():
        path = folder / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return folder


def test_a_template_itself() -> None:
    template = ChatTemplate.load(SOURCE)
    assert (template.source, template.name, template.bos_token) == (SOURCE, None, "")
    assert ChatTemplate.load("a\n{{ messages }}").render([]) == "a\n[]"


def test_a_file(tmp_path: Path) -> None:
    written(tmp_path, a__jinja="ü" + SOURCE, b__txt=SOURCE)
    template = ChatTemplate.load(tmp_path / "a.jinja")
    assert (template.render(USER), template.name) == ("ühi", str(tmp_path / "a.jinja"))
    assert ChatTemplate.load(str(tmp_path / "b.txt")).render(USER) == "hi"


def test_a_tokenizer_config(tmp_path: Path) -> None:
    tokens = {
        "bos_token": "<s>",
        "eos_token": {"content": "</s>", "lstrip": False},
        "pad_token": None,
        "sep_token": "|",
    }
    path = written(tmp_path, tokenizer_config__json={"chat_template": SOURCE, **tokens}) / "tokenizer_config.json"
    template = ChatTemplate.load(path)
    assert template.render(USER) == "<s>hi</s>"
    assert template.special_tokens == {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "|"}
    named = [
        {"name": "default", "template": SOURCE},
        {"name": "tool_use", "template": "T"},
        {"name": "rag", "template": "R"},
    ]
    written(tmp_path, tokenizer_config__json={"chat_template": named, **tokens})
    template = ChatTemplate.load(path)
    assert template.render(USER) == "<s>hi</s>"
    assert template.render(USER, tools=[]) == "T"
    assert template.variant("rag").render(USER) == "R"
    written(tmp_path, tokenizer_config__json={"chat_template": named[1:]})
    assert ChatTemplate.load(path).render(USER) == "T"


def test_a_models_folder(tmp_path: Path) -> None:
    config = {
        "chat_template": [{"name": "default", "template": "C"}, {"name": "rag", "template": "R"}],
        "eos_token": "E",
    }
    written(tmp_path, tokenizer_config__json=config, special_tokens_map__json={"bos_token": "B", "eos_token": "old"})
    assert ChatTemplate.load(tmp_path).render(USER) == "C"
    written(tmp_path, chat_template__json={"chat_template": "P{{ eos_token }}"})
    assert ChatTemplate.load(tmp_path).render(USER) == "PE"
    assert ChatTemplate.load(tmp_path / "chat_template.json").render(USER) == "PE"
    written(tmp_path, chat_template__jinja=SOURCE, additional_chat_templates___tool_use__jinja="T{{ bos_token }}")
    template = ChatTemplate.load(tmp_path)
    assert template.render(USER) == "BhiE"
    assert template.render(USER, tools=[]) == "TB"
    assert template.variant("rag").render(USER) == "R"
    assert template.name == str(tmp_path / "chat_template.jinja")


def test_a_broken_configuration_next_to_a_good_template(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path, tokenizer_config__json="{", chat_template__jinja="H{{ messages[0].content }}")
    assert ChatTemplate.load(tmp_path).render(USER) == "Hhi"
    problem = f"{tmp_path / 'tokenizer_config.json'}: not JSON: Expecting property name"
    assert [record.getMessage().startswith(problem) for record in caplog.records] == [True, True]
    assert caplog.messages[0].endswith("; the chat template is read from chat_template.jinja")
    assert caplog.messages[1].endswith("; its special tokens are not known")


def test_an_error_names_the_file_of_the_template(tmp_path: Path) -> None:
    written(tmp_path, chat_template__jinja="\n{% for %}")
    with pytest.raises(TemplateError) as caught:
        ChatTemplate.load(tmp_path).render(USER)
    assert str(caught.value).startswith(f"{tmp_path / 'chat_template.jinja'}, line 2: not a template that Jinja")


def test_a_processor_has_a_template(tmp_path: Path) -> None:
    written(tmp_path, processor_config__json={"chat_template": "P"})
    assert ChatTemplate.load(tmp_path).render(USER) == "P"
    written(tmp_path, chat_template__json={"chat_template": "C"})
    assert ChatTemplate.load(tmp_path).render(USER) == "C"


def test_gguf_files_of_one_folder(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a-00001-of-00002.gguf", {"tokenizer.chat_template": "A"})
    write_gguf(tmp_path / "a-00002-of-00002.gguf", {})
    write_gguf(tmp_path / "a-Q8_0.gguf", {"tokenizer.chat_template": "A"})
    assert ChatTemplate.load(tmp_path).render(USER) == "A"
    write_gguf(tmp_path / "b.gguf", {"tokenizer.chat_template": "B"})
    with pytest.raises(TemplateError) as caught:
        ChatTemplate.load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: has GGUF files with different chat templates: a-00001-of-00002.gguf and b.gguf; "
        "name one of the files"
    )


@pytest.mark.parametrize(
    ("files", "name", "problem"),
    [
        ({}, "", "has no chat template: none of chat_template.jinja, chat_template.json, additional_chat_templates"),
        ({"tokenizer_config__json": {}}, "", "has no chat template: none of"),
        ({"tokenizer_config__json": {}}, "tokenizer_config.json", "has no chat_template"),
        ({"tokenizer_config__json": "{"}, "tokenizer_config.json", "not JSON: Expecting property name"),
        ({"tokenizer_config__json": "[" * 100_000}, "tokenizer_config.json", "not JSON"),
        ({"tokenizer_config__json": "[]"}, "tokenizer_config.json", "not a JSON object"),
        ({"tokenizer_config__json": {"chat_template": 1}}, "", "chat_template is neither a template nor a list"),
        ({"tokenizer_config__json": {"chat_template": [{"name": "a"}]}}, "", "chat_template is neither a template nor"),
        (
            {"tokenizer_config__json": {"chat_template": {"rag": "R"}}},
            "",
            "has no default template; its templates are: rag",
        ),
    ],
)
def test_files_without_a_template(tmp_path: Path, files: dict[str, Any], name: str, problem: str) -> None:
    path = written(tmp_path, **files) / name
    with pytest.raises(TemplateError) as caught:
        ChatTemplate.load(path)
    assert caught.value.message.startswith(problem)
    assert str(caught.value).startswith(str(tmp_path))


def test_sources_that_do_not_exist(tmp_path: Path) -> None:
    for source, problem in {
        "": "not a template: it is empty",
        " \t": "not a template: it is empty",
        "just\ntext": "not a template: the text has no Jinja in it",
        "just text": "not a template, and no such file, folder or hub id",
        str(tmp_path / "missing.jinja"): "not a template, and no such file, folder or hub id",
        "a\0b": "not a template",
        "x" * 5000: "cannot be read: File name too long",
    }.items():
        with pytest.raises(TemplateError) as caught:
            ChatTemplate.load(source)
        assert caught.value.message.startswith(problem), source
    with pytest.raises(TypeError, match=r"^a template is loaded from a str or a path, not int$"):
        ChatTemplate.load(3)  # type: ignore[arg-type]


def test_files_that_are_not_text_or_too_long(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_bytes(b"\xff\xfe{{")
    with pytest.raises(TemplateError, match=r"a\.jinja: not a template: not UTF-8 text$"):
        ChatTemplate.load(tmp_path / "a.jinja")
    (tmp_path / "b.jinja").write_text("{{ 1 }}" * 1_500_000)
    with pytest.raises(TemplateLimitError, match=r"b\.jinja: .* too long: 10500000 bytes, at most 4000000$"):
        ChatTemplate.load(tmp_path / "b.jinja")
    (tmp_path / "c.jinja").write_text("{{ 1 }}" * 50_000)
    with pytest.raises(
        TemplateLimitError, match=r"c\.jinja: the template is too long: 350000 characters, at most 250000$"
    ):
        ChatTemplate.load(tmp_path / "c.jinja")


# -- GGUF ---------------------------------------------------------------------------------------------------------


FIELDS = {
    "tokenizer.chat_template": SOURCE,
    "tokenizer.chat_template.tool_use": "T",
    "tokenizer.chat_templates": ["tool_use"],
    "tokenizer.ggml.tokens": ["a", "<s>", "</s>"],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.padding_token_id": 99,
}


def test_a_gguf_file(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf", FIELDS)
    for path in (tmp_path / "model.gguf", tmp_path):
        template = ChatTemplate.load(path)
        assert template.render(USER) == "<s>hi</s>"
        assert template.render(USER, tools=[]) == "T"
        assert template.name == str(tmp_path / "model.gguf")
    (tmp_path / "model.gguf").rename(tmp_path / "blob")
    assert ChatTemplate.load(tmp_path / "blob").render(USER) == "<s>hi</s>"
    write_gguf(tmp_path / "blob", {})
    with pytest.raises(TemplateError, match=r"blob: has no chat template$"):
        ChatTemplate.load(tmp_path / "blob")


def test_a_huge_template_in_a_gguf_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "m.gguf", FIELDS | {"tokenizer.chat_template": "x" * 4_000_001})
    monkeypatch.setattr(Gguf, "__getitem__", lambda self, key: pytest.fail(f"{key} was read"))
    with pytest.raises(TemplateLimitError) as caught:
        ChatTemplate.load(path)
    assert str(caught.value) == f"{path}: the template is too long: 4000001 bytes, at most 4000000"


def test_a_real_gguf_file(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list(["a", "<ü>", "</s>"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template([{"name": "default", "template": SOURCE}, {"name": "tool_use", "template": "T"}])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert ChatTemplate.load(path).render(USER) == "<ü>hi</s>"
    assert ChatTemplate.load(path).render(USER, tools=[]) == "T"
    path.write_bytes(b"GGUF" + bytes(40))
    problem = r"model\.gguf: not a GGUF file that can be read: GGUF version 0 cannot be read \(2 and 3 can\)$"
    with pytest.raises(TemplateError, match=problem):
        ChatTemplate.load(path)


# -- The tokens of the tokenizer ----------------------------------------------------------------------------------

ADDED = {"7": {"content": "</s>", "special": True}, "8": {"content": "<call>", "special": False}, "x": {"content": "y"}}


def test_added_tokens(tmp_path: Path) -> None:
    written(tmp_path, chat_template__jinja=SOURCE, tokenizer_config__json={"added_tokens_decoder": ADDED})
    assert ChatTemplate.load(tmp_path).added_tokens == {"</s>", "<call>"}
    listed = [{"id": 9, "content": "<other>", "special": False}]
    written(tmp_path, tokenizer__json={"added_tokens": listed, "model": {"vocab": {}}})
    assert ChatTemplate.load(tmp_path).added_tokens == {"</s>", "<call>"}
    written(tmp_path, tokenizer_config__json={})
    assert ChatTemplate.load(tmp_path).added_tokens == {"<other>"}
    written(tmp_path, tokenizer__json={"added_tokens": "none"})
    assert ChatTemplate.load(tmp_path).added_tokens == frozenset()
    path = write_gguf(
        tmp_path / "m.gguf",
        {
            "tokenizer.chat_template": SOURCE,
            "tokenizer.ggml.tokens": ["a", "<s>", "b", "<call>"],
            "tokenizer.ggml.token_type": [1, 3, 1, 4, 4],
        },
    )
    assert ChatTemplate.load(path).added_tokens == {"<s>", "<call>"}


@pytest.mark.parametrize(
    ("files", "end"),
    [
        ({}, ""),
        ({"generation_config__json": {"eos_token_id": 7}}, "</s>"),
        ({"generation_config__json": {"eos_token_id": [5, 8, 7]}}, "<call>"),
        ({"generation_config__json": {}, "config__json": {"eos_token_id": 7}}, "</s>"),
        ({"generation_config__json": "broken", "config__json": {"eos_token_id": 7}}, "</s>"),
        ({"generation_config__json": {"eos_token_id": True}}, ""),
        ({"special_tokens_map__json": {"eos_token": "E"}, "generation_config__json": {"eos_token_id": 7}}, ""),
    ],
)
def test_the_end_of_the_configuration(tmp_path: Path, files: dict[str, Any], end: str) -> None:
    """It is known, and not written: other renderers do not write it either."""
    written(tmp_path, chat_template__jinja=SOURCE, tokenizer_config__json={"added_tokens_decoder": ADDED}, **files)
    template = ChatTemplate.load(tmp_path)
    assert template.end_token == end
    assert template.render(USER) == ("hiE" if "special_tokens_map__json" in files else "hi")


# -- The hub ------------------------------------------------------------------------------------------------------


def fake_hub(monkeypatch: pytest.MonkeyPatch, download: Any) -> None:
    module = ModuleType("huggingface_hub")
    module.snapshot_download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, chat_template__jinja=SOURCE, tokenizer_config__json={"eos_token": "</s>"})
    asked: list[tuple[str, list[str]]] = []

    def download(repository: str, *, allow_patterns: list[str]) -> str:
        asked.append((repository, allow_patterns))
        return str(tmp_path)

    fake_hub(monkeypatch, download)
    template = ChatTemplate.load("some-one/A_model.7B")
    assert (template.render(USER), template.name) == ("hi</s>", "some-one/A_model.7B/chat_template.jinja")
    assert asked[0][0] == "some-one/A_model.7B"
    assert "chat_template.jinja" in asked[0][1]
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(TemplateError, match=r"^some-one/A_model\.7B: has no chat template"):
        ChatTemplate.load("some-one/A_model.7B")


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(repository: str, **_: Any) -> str:
        raise OSError("Name or service not known\nmore")

    fake_hub(monkeypatch, download)
    with pytest.raises(TemplateError) as caught:
        ChatTemplate.load("a/b")
    assert str(caught.value) == "a/b: no such file or folder, and the hub request failed: Name or service not known"
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        TemplateError, match=r"^a/b: reading from the hub needs the package huggingface_hub: pip install"
    ):
        ChatTemplate.load("a/b")
