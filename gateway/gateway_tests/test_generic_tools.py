"""Tools for models whose chat template knows none."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.formats import named
from untemplate.templates import ChatTemplate
from untemplate_gateway.generation import Generation, Meta
from untemplate_gateway.grammars import GrammarCompiler
from untemplate_gateway.manager.choices import choose_format, with_tools
from untemplate_gateway.manager.model import Model
from untemplate_gateway.session import Session
from untemplate_gateway.settings import Settings

from .scripted import Scripted

CHATML = (
    "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ '<|im_start|>system\nYou are helpful"
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Ulm", "Bern"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ulm"}}\n</tool_call>'
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": "One moment.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Ulm"}}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "17"},
    {"role": "tool", "tool_call_id": "c2", "content": "18"},
]


def generic(source: str, **settings: Any) -> tuple[ChatTemplate, Any] | None:
    held = Settings(model="m", **settings)
    template = ChatTemplate(source, bos_token="<bos>", name="plain")
    return with_tools(held, template, choose_format(held, template))


@pytest.mark.parametrize(("source", "place"), [(CHATML, "system"), (GEMMA, "user")])
def test_it_certifies_on_the_rendering_of_the_gateway(source: str, place: str):
    found = generic(source)
    assert found is not None
    _, selection = found
    assert selection.chosen.name.startswith("generic+")
    assert selection.format.tools == named("generic").tools
    assert selection.certificate.certified
    for ability in ("calls", "parallel_calls", "no_arguments", "content_with_calls", "awkward_strings"):
        assert selection.certificate.capabilities[ability] == "yes"
    assert f"the gateway adds them to the {place} message; certified" in selection.chosen.remark


def test_the_whole_text():
    found = generic(CHATML)
    assert found is not None
    text = found[0].render(HISTORY, tools=[TOOL], add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nBe brief.\n\n# Tools\n\nYou can call functions to help the user. These functions are "
        f"available:\n\n<tools>\n{json.dumps(TOOL)}\n</tools>\n\nTo call a function, write a JSON object with its name "
        "and arguments in <tool_call> tags:\n\n<tool_call>\n"
        '{"name": "the name", "arguments": {"an argument": "its value"}}\n</tool_call>\n\n'
        "The result comes in <tool_response> tags. If no function helps, answer in plain text.<|im_end|>\n"
        f"<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\nOne moment.\n{CALL}<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\n17\n</tool_response>\n<tool_response>\n18\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("source", [CHATML, GEMMA])
def test_without_tools_the_prompt_is_that_of_the_model(source: str):
    found = generic(source)
    assert found is not None
    plain = ChatTemplate(source, bos_token="<bos>")
    asked = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "x"},
    ]
    for kept in (asked, asked[:1]):
        assert found[0].render(kept, add_generation_prompt=True) == plain.render(kept, add_generation_prompt=True)


def test_other_templates_stay_as_they_are():
    with_own_tools = CHATML + "{% if tools %}{{ tools | tojson }}{% endif %}"
    assert generic(with_own_tools) is None
    assert generic(CHATML, generic_tools=False) is None
    assert generic(CHATML, enforce_parser="hermes") is None
    assert generic("{{ messages[-1].content }}") is None  # the history, and so a call, is not rendered


def answered(output: str, **asked: Any) -> tuple[Any, Any, Generation]:
    """Return the message, the engine's job and the request of one exchange."""
    found = generic(CHATML)
    assert found is not None
    template, selection = found
    engine = Scripted(output)
    parser = OutputParser.from_format(selection.format)
    model = Model(name="m", engine=engine, parser=parser, template=template, generic_tools=True)
    request = Generation(messages=[{"role": "user", "content": "Weather?"}], tools=[TOOL], **asked)
    session = Session(model, request, Meta(id="0" * 32, created=1, model="m"))
    asyncio.run(session.whole())
    return session.ended[0].parsed, engine.jobs[0], request


def test_a_call_is_parsed_and_offered_under_a_grammar():
    parsed, job, request = answered(CALL)
    assert [(call.function.name, call.function.arguments) for call in parsed.tool_calls] == [
        ("get_weather", '{"city": "Ulm"}')
    ]
    assert job.grammar.lazy
    assert [trigger.value for trigger in job.grammar.triggers] == ["<tool_call>"]
    assert '"\\"Bern\\""' in job.grammar.text  # the schema is followed although it does not say strict
    assert request.notes.texts == []


def test_a_forced_call_follows_its_schema_unless_it_says_otherwise():
    assert '"\\"Bern\\""' in answered(CALL, tool_choice="required")[1].grammar.text
    loose = {**TOOL, "function": {**TOOL["function"], "strict": False}}
    found = generic(CHATML)
    assert found is not None
    engine = Scripted(CALL)
    model = Model(name="m", engine=engine, parser=OutputParser.from_format(found[1].format), template=found[0])
    request = Generation(messages=HISTORY[:2], tools=[loose], tool_choice="required")
    asyncio.run(Session(model, request, Meta(id="0" * 32, created=1, model="m")).whole())
    grammar = engine.jobs[0].grammar
    assert grammar is not None
    assert "Bern" not in grammar.text


def test_a_schema_that_is_no_grammar_is_noted_when_nobody_asked_for_it():
    odd = {**TOOL, "function": {"name": "f", "parameters": {"type": "object", "$ref": "#/nowhere"}}}
    found = generic(CHATML)
    assert found is not None
    engine = Scripted("x")
    model = Model(name="m", engine=engine, parser=OutputParser.from_format(found[1].format), template=found[0])
    request = Generation(messages=HISTORY[:2], tools=[odd], tool_choice="required")
    grammars = GrammarCompiler()
    asyncio.run(Session(model, request, Meta(id="0" * 32, created=1, model="m"), grammars=grammars).whole())
    grammars.workers.close()
    assert engine.jobs[0].grammar is not None
    assert request.notes.texts[0].startswith("tools: their schemas are not enforced: tool 'f'")
