"""Renders templates of model vendors, if they are installed here, and compares the prompts with recorded ones.

The recorded prompts were made by llama.cpp. Where transformers renders another prompt, it is right: `OTHERWISE` has the
reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.public import CASES, SHARED, TEMPLATES, needs_templates
from untemplate.templates import ChatTemplate, TemplateError, TemplateRaised

NOW = datetime(2026, 11, 21)

pytestmark = needs_templates

TRIMMED = "a continued message loses the white space that the template trims"
UNWRITTEN = "llama.cpp adds reasoning that the template does not write"
OTHERWISE = {
    "tpl-0020": TRIMMED,
    "tpl-0034": "a message of nothing but reasoning raises",
    "tpl-0063": TRIMMED,
    "tpl-0090": UNWRITTEN,
    "tpl-0115": TRIMMED,
    "tpl-0141": UNWRITTEN,
    "tpl-0180": TRIMMED,
    "tpl-0337": UNWRITTEN,
    "tpl-0342": TRIMMED,
    "tpl-0347": "text added to `|safe` text is escaped",
    "tpl-0357": UNWRITTEN,
    "tpl-0358": UNWRITTEN,
    "tpl-0361": "tojson of a generator raises",
    "tpl-0362": UNWRITTEN,
    "tpl-0363": UNWRITTEN,
    "tpl-0368": UNWRITTEN,
    "tpl-0404": "this template knows no clock, and " + TRIMMED,
    "tpl-0406": TRIMMED,
}
EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {"date_string": "21 Nov 2026"},
    {"functions": "", "datetime": "Nov 21 2026"},
)
"""Variables that some templates need besides the usual ones."""


def template(name: str) -> ChatTemplate:
    loaded = ChatTemplate.load(SHARED / "templates" / name)
    return ChatTemplate(loaded.source, name=name, now=NOW)


def conversations(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield messages without empty fields: with arguments as text, then as objects."""
    plain = [{k: v for k, v in m.items() if v not in ("", []) or k in ("content", "role")} for m in messages]
    yield plain
    yield [{**m, "tool_calls": [_objects(call) for call in m["tool_calls"]]} if "tool_calls" in m else m for m in plain]


def _objects(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function", call)
    return {"type": "function", **call, "function": {**function, "arguments": json.loads(function["arguments"])}}


def attempts(case: dict[str, Any]) -> Iterator[str]:
    chat = template(case["template"])
    for messages, tools, extra in product(
        conversations(case["messages"]), (case["tools"] or None, case["tools"]), EXTRAS
    ):
        try:
            yield chat.render(
                messages,
                tools=tools,
                add_generation_prompt=case["add_generation_prompt"],
                continue_final_message=case.get("continue_final_message") or False,
                enable_thinking=case["enable_thinking"],
                **extra,
            )
        except TemplateError:
            continue


def test_recorded_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    lines = (CASES / "by_template.jsonl").read_text("utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    other = {case["id"] for case in cases if case["prompt"] not in attempts(case)}
    with capsys.disabled():
        print(f"\n{len(cases) - len(other)} of {len(cases)} recorded prompts rendered alike")
    assert other == set(OTHERWISE)


# -- Every template, every kind of message --------------------------------------------------------------------------

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tells the weather.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Where."}},
                "required": ["city"],
            },
        },
    }
]
USER = {"role": "user", "content": "qzasked"}
SAID = {"role": "assistant", "content": "qzsaid"}
THOUGHT = {**SAID, "reasoning_content": "qzthought"}


def call(arguments: Any, content: str | None) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": "qzcall001", "type": "function", "function": function}],
    }


CALLS = [
    call({"city": "Rome"}, None),
    call({"city": "Rome"}, ""),
    call('{"city": "Rome"}', None),
    call('{"city": "Rome"}', ""),
]
VARIABLES = {"functions": "[]", "datetime": "now"}
"""firefunction needs these two."""


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem[:40])
def test_every_template_renders(path: Path) -> None:
    chat = template(path.name)
    prompt = chat.render([USER], tools=[], add_generation_prompt=True, **VARIABLES)
    assert "qzasked" in prompt
    for thinking in (True, False):
        assert "qzasked" in chat.render(
            [USER], tools=[], add_generation_prompt=True, enable_thinking=thinking, **VARIABLES
        )
    if path.name != "llama-cpp-deepseek-r1.jinja":
        assert "qzasked" in chat.render([USER], tools=TOOLS, add_generation_prompt=True, **VARIABLES)
    for message in (SAID, THOUGHT):
        assert "qzsaid" in chat.render([USER, message, USER], tools=[], **VARIABLES)
    texts = [text for message in CALLS if (text := _rendered(chat, message)) is not None]
    assert all("qzasked" in text for text in texts)
    assert texts or path.name in ("google-gemma-2-2b-it.jinja", "llama-cpp-deepseek-r1.jinja", "LFM2-8B-A1B.jinja")


def _rendered(chat: ChatTemplate, message: dict[str, Any]) -> str | None:
    """Return the prompt; None if the template raises because it needs another kind of arguments or content."""
    try:
        return chat.render([USER, message], tools=TOOLS, **VARIABLES)
    except TemplateError as error:
        if not str(error).startswith(f"{chat.name}, line "):
            raise
        return None


def test_messages_of_templates_that_raise() -> None:
    with pytest.raises(TemplateRaised) as caught:
        template("google-gemma-2-2b-it.jinja").render([{"role": "system", "content": "x"}])
    assert str(caught.value) == "google-gemma-2-2b-it.jinja, line 1: System role not supported"
    two = {**CALLS[0], "tool_calls": CALLS[0]["tool_calls"] * 2}
    with pytest.raises(
        TemplateRaised, match=r"^meta-llama.*, line 7\d: This model only supports single tool-calls at once!$"
    ):
        template("meta-llama-Llama-3.1-8B-Instruct.jinja").render([USER, two])


def test_a_template_may_change_its_own_lists() -> None:
    chat = template("Kimi-K2-Instruct.jinja")
    result = {"role": "tool", "name": "get_weather", "content": "Sunny"}
    text = chat.render([USER, CALLS[0], result], tools=TOOLS)
    assert "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>" in text
    assert "## Return of functions.get_weather:0" in text


def test_as_transformers_renders() -> None:
    utils = pytest.importorskip(
        "transformers.utils.chat_template_utils", reason="needs transformers (make test-integrations)"
    )
    compared = 0
    for path, message, tools, prompt in product(
        TEMPLATES, (None, SAID, THOUGHT, *CALLS), (None, [], TOOLS), (False, True)
    ):
        source = path.read_text("utf-8")
        messages = [USER, message] if message else [USER]
        variables = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": prompt, **VARIABLES}
        try:
            theirs = utils.render_jinja_template([messages], tools=tools, chat_template=source, **variables)[0][0]
        except Exception:
            continue
        assert ChatTemplate(source).render(messages, tools=tools, **variables) == theirs
        compared += 1
    assert compared > 1000
