"""A template that writes ``eos_token``, whose text is known from somewhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from untemplate import OutputParser
from untemplate.templates import ChatTemplate

SOURCE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class Tokenizer:
    eos_token = "</s>"

    def get_vocab(self) -> dict[str, int]:
        return {"</s>": 0, "H": 1}


def read(parser: OutputParser) -> tuple[str | None, list[str]]:
    assert parser.certificate is not None
    codes = [remark.code for remark in parser.certificate.traits.remarks]
    return parser.parse("Hello.</s>").content, [code for code in codes if code == "unknown_end"]


def test_an_end_that_nothing_names_is_remarked() -> None:
    assert read(OutputParser.from_template(SOURCE, cache=False)) == ("Hello.</s>", ["unknown_end"])


def test_the_end_of_the_configuration(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "tokenizer.json": {"added_tokens": [{"id": 7, "content": "</s>"}]},
        "generation_config.json": {"eos_token_id": [7]},
    }
    (tmp_path / "chat_template.jinja").write_text(SOURCE, "utf-8")
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
    assert read(OutputParser.from_template(tmp_path, cache=False)) == ("Hello.", [])
    assert read(OutputParser.for_model(tmp_path)) == ("Hello.", [])


def test_the_end_of_the_tokenizer() -> None:
    """Without the text of other tokens, the tokenizer alone knows the end."""
    assert read(OutputParser.from_template(SOURCE, cache=False, tokenizer=Tokenizer())) == ("Hello.", [])
    template = ChatTemplate(SOURCE, eos_token="<end>")
    parser = OutputParser.from_template(template, cache=False, tokenizer=Tokenizer())
    assert parser.parse("Hello.<end>").content == "Hello."


def test_the_key_of_the_cache_has_the_end() -> None:
    template = ChatTemplate(SOURCE)
    assert len({template.sha256, template.ending("</s>").sha256, template.ending("<e>").sha256}) == 3
    assert template.ending("").sha256 == template.sha256
