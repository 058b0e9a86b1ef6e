"""``Format.to_response_template`` and ``untemplate export``: whole templates, and what they cannot hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from untemplate._internal.cli import main
from untemplate.format import (
    Format,
    FormatError,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
    Turn,
)
from untemplate.format._response_template.checks import check_template
from untemplate.format._response_template.export import export
from untemplate.formats import entries, named

TURN = Turn(start=Marker("<|assistant|>\n"), end=Marker("<|end|>"))
END = r"(?:<\|end\|>\s*)"


def test_reasoning_and_json_calls() -> None:
    fmt = Format(
        name="x",
        turn=TURN,
        reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("\n</think>\n\n")),
        tools=(Tools(call_open=Marker("<call>\n"), call_close=Marker("\n</call>")),),
    )
    text = {"content": "text", "content_args": {"strip": False}, "repeats": True, "join": ""}
    assert fmt.to_response_template() == {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor_pattern": r"<\|assistant\|>\s*(?:(?:<think>\s*)?</think>\s*)?",
        "fields": {
            "reasoning_content": {
                "open_pattern": r"\s*<think>\s*",
                "close_pattern": rf"\s*</think>\s*|\s*{END}+\Z",
                **text,
            },
            "content": {"close_pattern": rf"\s*{END}+\Z", **text},
            "tool_calls": {
                "open_pattern": r"\s*<call>\s*",
                "close_pattern": rf"\s*</call>(?:\s*{END}*\Z)?",
                "content": "json",
                "repeats": True,
                "transform": {
                    "type": "function",
                    "function": {"name": "{content.name}", "arguments": "{content.arguments}"},
                },
            },
        },
    }


def test_the_name_in_a_tag_and_tagged_arguments() -> None:
    body = NamedBody(
        name_open=Marker("<function="),
        name_close=Marker(">\n"),
        arguments=TaggedArguments(
            key_open=Marker("<parameter="), key_close=Marker(">\n"), value_close=Marker("\n</parameter>\n"), trim=1
        ),
        arguments_close=Marker("</function>\n"),
    )
    fmt = Format(
        name="x",
        turn=TURN,
        tools=(Tools(body=body, call_open=Marker("<tool_call>\n"), call_close=Marker("</tool_call>")),),
    )
    name = r"(?P<name>[^\s<>{}()\[\]\"']+?)"
    assert fmt.to_response_template()["fields"]["tool_calls"] == {
        "open_pattern": rf"\s*<tool_call>\s*\s*<function=\s*{name}\s*>"
        r"(?=\s*(?:<parameter=|</function>|</tool_call>))\s*",
        "close_pattern": rf"\s*</function>\s*</tool_call>(?:\s*{END}*\Z)?",
        "content": "xml-inline",
        "content_args": {
            "tag_pattern": r"<parameter=(?P<key>.*?)\s*>\n{0,1}(?P<value>.*?)\n{0,1}</parameter>",
            "value_parser": {"name": "text", "args": {"strip": False}},
        },
        "repeats": True,
        "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
    }


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        (Tools(), "tools[0]: has no marker before a call, and a response template needs one"),
        (
            Tools(call_open=Marker("<c>"), body=JsonBody(name_is_key=True)),
            "tools[0].body.name_is_key: a response template cannot take a name from a key",
        ),
        (
            Tools(section_open=Marker("<c>"), section_close=Marker("</c>")),
            "tools[0].call_open: is missing: a response template needs a marker before each call",
        ),
        (
            Tools(call_open=Marker("<c>"), body=NamedBody(arguments=LiteralArguments())),
            "tools[0].body.arguments: a response template can read JSON with other quotes, and no other literals",
        ),
    ],
)
def test_calls_that_a_template_cannot_read(tools: Tools, problem: str) -> None:
    with pytest.raises(FormatError) as error:
        Format(name="x", turn=TURN, tools=(tools,)).to_response_template()
    assert str(error.value) == problem


def test_a_format_without_a_header() -> None:
    with pytest.raises(FormatError) as error:
        named("passthrough").to_response_template()
    assert str(error.value) == "turn.start: is missing: a response template needs the header of the assistant's turn"


def test_what_is_left_out() -> None:
    assert export(named("mistral", reasoning="mistral")).left_out == [
        "reasoning.repeats: a template reads reasoning wherever its markers are",
        "tools[1]: a template has one way to write calls",
        "tools[0].body.id_open: ids are not read, since a template fails where one is missing",
    ]


def test_an_exported_template_is_valid() -> None:
    count = 0
    for entry in entries():
        try:
            template = entry.format.to_response_template()
        except FormatError:
            continue
        check_template(template)
        for field in template["fields"].values():
            for key in ("open_pattern", "close_pattern"):
                re.compile(field.get(key, ""))
        count += 1
    assert count >= 100


def test_the_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "template.json"
    arguments = ["export", "--format", "hermes", "--reasoning", "qwen3", "--response-template", "-o", str(path)]
    assert main(arguments) == 0
    assert json.loads(path.read_text("utf-8")) == named("hermes", reasoning="qwen3").to_response_template()
    out, notes = capsys.readouterr()
    assert out == ""
    assert notes == (
        "untemplate: left out: tools[1]: a template has one way to write calls\n"
        "untemplate: left out: tools[0].body.accepted_arguments_keys: a template has one key for each part of a call\n"
    )


def test_the_command_says_why_a_format_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--format", "pythonic", "--response-template"]) == 2
    assert capsys.readouterr().err == (
        "untemplate: error: pythonic cannot be written as a response template: "
        "tools[0]: has no marker before a call, and a response template needs one\n"
    )


def test_the_command_needs_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--response-template"]) == 2
    assert capsys.readouterr().err == (
        "untemplate: error: export needs a format: --format NAME (`untemplate guess FILE` finds it), or --template, "
        "--model or --enforce-parser\n"
    )


def test_engines_read_other_fields() -> None:
    fmt = named("hermes", reasoning="qwen3")
    usual, engine = fmt.to_response_template()["fields"], fmt.to_response_template("engine")["fields"]
    assert list(usual) == ["reasoning_content", "content", "tool_calls"]
    assert list(engine) == ["thinking", "content", "tool_calls"]
    assert engine["thinking"] == {key: value for key, value in usual["reasoning_content"].items() if key != "join"}
    assert engine["content"] == {key: value for key, value in usual["content"].items() if key != "join"}
    assert engine["tool_calls"] == usual["tool_calls"]


def test_a_reader_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"^reader: 'x' is not one of: 'transformers', 'engine'$"):
        named("hermes").to_response_template("x")


def test_the_command_writes_for_engines(capsys: pytest.CaptureFixture[str]) -> None:
    main(["export", "--format", "hermes", "--reasoning", "qwen3", "--response-template", "--reader", "engine"])
    fmt = named("hermes", reasoning="qwen3")
    assert json.loads(capsys.readouterr().out) == fmt.to_response_template("engine")


def test_an_exported_template_cannot_be_read_back() -> None:
    """The error that docs/transformers.md promises."""
    template = named("hermes").to_response_template()
    template["start_anchor_pattern"] = re.escape("<|im_start|>assistant")
    problem = r"^fields\.content\.close_pattern: has no counterpart in a Format: "
    with pytest.raises(FormatError, match=problem):
        Format.from_response_template(template)
