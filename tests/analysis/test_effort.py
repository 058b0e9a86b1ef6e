"""The cost of a new template: the number of conversations that it renders. Benchmarks time them."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from tests.public import TEMPLATES, needs_templates
from untemplate import OutputParser
from untemplate.analysis._pipeline import analyze_template
from untemplate.templates import ChatTemplate
from untemplate.templates import _sandbox as sandbox

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "renderings.json").read_text("utf-8"))
"""Most renderings of each public template. Lower them when there are fewer."""


@needs_templates
def test_few_conversations_are_rendered() -> None:
    renders = {path.stem: analyze_template(ChatTemplate.load(path)).renders for path in TEMPLATES}
    for name, count in sorted(renders.items(), key=lambda item: -item[1]):
        print(f"{count:4} renderings  {name}")
    assert {name: count for name, count in renders.items() if count > RECORDED[name]} == {}
    assert statistics.median(renders.values()) < 75


def test_a_template_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_source = sandbox.compile_source

    def counted(source: str) -> sandbox.CompiledTemplate:
        compiled.append(source)
        return compile_source(source)

    monkeypatch.setattr(sandbox, "compile_source", counted)
    source = (
        "{#- a source of its own -#}{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}<e>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
    )
    template = ChatTemplate(source)
    parser = OutputParser.from_template(template)
    template.render(parser.history([{"role": "user", "content": "Hi"}]))
    ChatTemplate(source).render([{"role": "user", "content": "Hi"}])
    assert compiled == [source]
