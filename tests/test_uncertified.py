"""A parser does nothing that its certificate denies."""

from __future__ import annotations

import logging

import pytest

from untemplate import OutputParser
from untemplate._internal.backends.abilities import abilities_of_arguments, abilities_of_calls, bound, denied_arguments
from untemplate.errors import GrammarError
from untemplate.formats import named

TURN = (
    "{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}{%- for c in m.tool_calls or [] -%}CALL{%- endfor -%}"
    "<e>{%- endfor -%}{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
)
NAMELESS = TURN.replace("CALL", "<c>call<a>{{ c.function.arguments|tojson }}</c>")
BY_ID = TURN.replace("CALL", "<c>{{ c.id }}<a>{{ c.function.arguments|tojson }}</c>")
QUOTED = TURN.replace(
    "CALL",
    """<c>{"name": "{{ c.function.name }}", "arguments": {{ '{' }}"""
    "{%- for k, v in c.function.arguments.items() -%}"
    '"{{ k }}": "{{ v }}"{{ ", " if not loop.last else "" }}{%- endfor -%}{{ "}}" }}</c>',
)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def test_arguments_without_a_name_are_failed_calls() -> None:
    parser = OutputParser.from_template(NAMELESS, cache=False)
    assert parser.certificate is not None
    assert parser.certificate.capabilities["calls"] == "failed"
    assert not parser.certificate.certified
    written = '<c>call<a>{"x": 1}</c>'
    assert parser.parse(written, tools=[TOOL]).content == written


def test_ids_that_hold_the_name_are_calls() -> None:
    parser = OutputParser.from_template(BY_ID, cache=False)
    assert parser.certificate is not None
    assert parser.certificate.certified
    (call,) = parser.parse('<c>functions.f:0<a>{"x": 1}</c><e>', prompt="<user>hi<e><assistant>").tool_calls
    assert (call.function.name, call.function.arguments) == ("f", '{"x": 1}')


def test_failed_types_are_reported_and_not_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="untemplate"):
        parser = OutputParser.from_template(QUOTED, cache=False)
    assert "does not parse all that its template writes: number, integer, boolean, null, object, array" in caplog.text
    plain = parser.parse('<c>{"name": "f", "arguments": {"x": "words"}}</c>')
    typed = parser.parse('<c>{"name": "f", "arguments": {"x": 1}}</c>')
    assert plain.diagnostics == []
    assert [(d.code, d.message) for d in typed.diagnostics] == [
        ("uncertified_arguments", "the call needs an ability that the certificate of the format denies")
    ]
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}
    assert parser.expressible(message) == "uncertified"
    with pytest.raises(ValueError, match=r"^uncertified: a call needs an ability that the certificate .* denies$"):
        parser.render(message)
    failed = "array, boolean, integer, null, number, object"
    with pytest.raises(GrammarError, match=f"^the format's certificate denies {failed}$"):
        parser.grammar([TOOL])
    assert parser.grammar([TOOL], "none")


def test_on_uses_the_format_as_it_was_inferred() -> None:
    parser = OutputParser.from_template(QUOTED, cache=False, uncertified="on")
    assert parser.parse('<c>{"name": "f", "arguments": {"x": 1}}</c>').diagnostics == []
    assert parser.grammar([TOOL])
    with pytest.raises(ValueError, match=r"^uncertified: 'maybe' is not one of: 'off', 'on'$"):
        OutputParser.from_template(QUOTED, uncertified="maybe")  # type: ignore[arg-type]


def test_failed_parts_leave_the_format() -> None:
    hermes, gpt = named("hermes", reasoning="qwen3"), named("gpt_oss")
    assert bound(hermes, {"calls": "failed"}).tools == ()
    assert bound(hermes, {"calls": "failed"}).reasoning == hermes.reasoning
    assert bound(hermes, {"reasoning": "failed"}).reasoning is None
    assert bound(gpt, {"calls": "failed"}).channels is None
    assert bound(hermes, {"calls": "no", "reasoning": "cannot say", "string": "failed"}) == hermes
    assert denied_arguments({"calls": "failed", "string": "failed"}) == set()
    assert denied_arguments({"calls": "yes", "string": "failed", "several_turns": "failed"}) == {"string"}


def test_abilities_of_a_call() -> None:
    assert abilities_of_arguments({}) == abilities_of_arguments("") == {"no_arguments"}
    assert abilities_of_arguments('{"a": true, "b": 1, "c": 1.5, "d": null, "e": {}, "f": [], "g": "word"}') == {
        *("boolean", "integer", "number", "null", "object", "array", "string")
    }
    for awkward in ("it's", "a\\b", "one\n", " x", "12", "<b>"):
        assert "awkward_strings" in abilities_of_arguments({"a": awkward}), awkward
    assert abilities_of_arguments("{broken") == set()
    each = abilities_of_calls(["{}", {"a": "x"}], content=True, reasoning=False, ids=False)
    assert each == [
        {"no_arguments", "parallel_calls", "content_with_calls"},
        {"string", "parallel_calls", "content_with_calls"},
    ]
