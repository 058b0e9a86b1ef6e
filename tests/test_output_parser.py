"""`OutputParser`: its arguments and its results."""

from __future__ import annotations

import inspect
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import untemplate
from untemplate import DeltaMessage, Format, OutputParser, Policy, Span, assemble
from untemplate._internal.backends.format import FormatBackend
from untemplate._internal.machine.events import EventType, SemanticEvent
from untemplate.errors import CheckpointError, TemplateError
from untemplate.formats import named
from untemplate.messages import ChatCompletionRequest, DeltaFunctionCall, DeltaToolCall, ParsedOutput

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@pytest.fixture
def parser() -> OutputParser:
    return OutputParser.named("hermes", reasoning="qwen3")


def test_events_tell_everything_in_order(parser: OutputParser) -> None:
    events: list[SemanticEvent] = []
    stream = parser.stream(on_event=events.append)
    stream.feed("<think>hm")
    stream.feed("</think>Look: " + CALL)
    stream.finish()
    assert events == [
        SemanticEvent(EventType.REASONING_START),
        SemanticEvent(EventType.REASONING_CHUNK, "hm"),
        SemanticEvent(EventType.REASONING_END),
        SemanticEvent(EventType.TEXT_CHUNK, "Look:"),
        SemanticEvent(EventType.TOOL_CALL_START, "", 0),
        SemanticEvent(EventType.TOOL_NAME, "get_weather", 0),
        SemanticEvent(EventType.ARG_VALUE_CHUNK, '{"city": "Paris"}', 0),
        SemanticEvent(EventType.TOOL_CALL_END, "", 0),
    ]


def test_tools_come_from_the_request(parser: OutputParser) -> None:
    request = ChatCompletionRequest(tools=TOOLS, tool_choice="none")
    assert parser.parse(CALL, request).message() == {"role": "assistant", "content": CALL}
    assert parser.parse(CALL, {"tools": []}).message() == {"role": "assistant", "content": CALL}
    assert parser.parse(CALL, ChatCompletionRequest(tools=TOOLS)).finish_reason == "tool_calls"


@pytest.mark.parametrize(("reason", "expected"), [("stop", "tool_calls"), ("length", "length"), (None, "tool_calls")])
def test_calls_replace_only_stop(parser: OutputParser, reason: str | None, expected: str) -> None:
    assert parser.parse(CALL, finish_reason=reason).finish_reason == expected


def test_prefill_is_the_beginning_of_the_message(parser: OutputParser) -> None:
    stream = parser.stream(prompt="<|im_start|>assistant\n<think>\nI'm", prefill="I'm", collect=True)
    assert stream.feed(" thinking</think>Yes") == [
        DeltaMessage(reasoning="I'm"),
        DeltaMessage(reasoning=" thinking", content="Yes"),
    ]
    stream.finish()
    assert stream.result().message() == {"role": "assistant", "content": "Yes", "reasoning": "I'm thinking"}


class TestParseStreaming:
    """`parse_streaming` has one implicit stream per parser."""

    def test_drives_one_stream(self, parser: OutputParser) -> None:
        assert parser.parse_streaming("", "<thi", "<thi") == DeltaMessage()
        assert parser.parse_streaming("<thi", "<think>a", "nk>a") == DeltaMessage(reasoning="a")
        delta = parser.parse_streaming("<think>a", "<think>a</think>b" + CALL, "</think>b" + CALL)
        assert delta is not None
        assert delta.content == "b"
        assert delta.tool_calls is not None
        assert delta.tool_calls[0].function == DeltaFunctionCall("get_weather", '{"city": "Paris"}')
        assert parser.finish_streaming() is None

    def test_an_empty_previous_text_starts_anew(self, parser: OutputParser) -> None:
        parser.parse_streaming("", "<think>a", "<think>a")
        assert parser.parse_streaming("", "b", "b") == DeltaMessage(content="b")

    def test_a_mismatch_raises(self, parser: OutputParser) -> None:
        parser.parse_streaming("", "ab", "ab")
        with pytest.raises(ValueError, match="previous_text") as error:
            parser.parse_streaming("abc", "abcd", "d")
        assert str(error.value) == (
            "previous_text has 3 characters, the stream has taken 2; an empty previous_text starts a new stream"
        )
        with pytest.raises(ValueError, match="current_text"):
            parser.parse_streaming("ab", "abd", "c")


def test_kimi_counts_on_from_the_history() -> None:
    parser = OutputParser.named("kimi_k2")
    raw = (
        "<|tool_calls_section_begin|><|tool_call_begin|>f<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>"
    )
    history = [{"role": "assistant", "tool_calls": [{}, {}]}, {"role": "tool"}]
    assert [c.id for c in parser.parse(raw, messages=history).tool_calls] == ["functions.f:2"]


def test_mistral_ids_have_nine_letters_and_digits() -> None:
    parser = OutputParser.named("mistral")
    call = parser.parse('[TOOL_CALLS]f[ARGS]{"a": 1}').tool_calls[0]
    assert len(call.id) == 9
    assert call.id.isalnum()


def test_ids_come_from_the_callers_factory() -> None:
    parser = OutputParser.named("hermes", make_id=lambda name, index: f"{name}-{index}")
    assert [c.id for c in parser.parse(CALL + CALL).tool_calls] == ["get_weather-0", "get_weather-1"]


def test_the_same_seed_gives_the_same_ids(parser: OutputParser) -> None:
    assert parser.parse(CALL, seed=7) == parser.parse(CALL, seed=7)
    assert parser.parse(CALL).tool_calls[0].id != parser.parse(CALL).tool_calls[0].id


def test_the_first_delta_of_a_call_has_id_type_and_name(parser: OutputParser) -> None:
    stream = parser.stream(seed=1)
    pieces: list[DeltaToolCall] = [c for x in CALL for d in stream.feed(x) for c in d.tool_calls or ()]
    assert (pieces[0].type, pieces[0].function) == ("function", DeltaFunctionCall(name="get_weather"))
    assert pieces[0].id is not None
    assert all(p.id is None and p.type is None and p.function and p.function.name is None for p in pieces[1:])
    assert "".join(p.function.arguments or "" for p in pieces if p.function) == '{"city": "Paris"}'


class TestSpecOne:
    """The parts of OutputParser that a server uses one by one."""

    def test_parsers_of_its_own(self, parser: OutputParser) -> None:
        assert (parser.has_reasoning, parser.has_tools) == (True, True)
        assert parser.reasoning_parser is not None
        assert parser.reasoning_parser.extract_reasoning("<think>a</think>b", None) == ("a", "b")
        assert parser.tool_parser is not None
        assert parser.tool_parser.extract_tool_calls(CALL, None).tools_called
        plain = OutputParser()
        assert (plain.reasoning_parser, plain.tool_parser) == (None, None)

    def test_names_of_spec_one(self) -> None:
        parser = OutputParser(None, reasoning_parser_name="deepseek_r1", tool_parser_name="hermes")
        assert parser.format.name == "hermes+deepseek_r1"

    def test_adjust_request_returns_a_copy(self, parser: OutputParser) -> None:
        request = ChatCompletionRequest(tools=TOOLS)
        assert parser.adjust_request(request).skip_special_tokens is False
        assert request.skip_special_tokens is True


class TestMisuse:
    def test_feed_after_finish(self, parser: OutputParser) -> None:
        stream = parser.stream()
        stream.finish()
        assert stream.finish() == []
        with pytest.raises(RuntimeError) as error:
            stream.feed("x")
        assert str(error.value) == (
            "feed() after finish(): a stream parses one output; open a new one with parser.stream()"
        )

    def test_text_is_text(self, parser: OutputParser) -> None:
        with pytest.raises(TypeError, match=r"^parse\(\) model_output: expected str, got bytes: b'x'$"):
            parser.parse(b"x")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^feed\(\) text: expected str, got int: 3$"):
            parser.stream().feed(3)  # type: ignore[arg-type]

    def test_result_needs_collect_and_finish(self, parser: OutputParser) -> None:
        with pytest.raises(RuntimeError, match=r"^result\(\) needs parser\.stream\(collect=True\)$"):
            parser.stream().result()
        with pytest.raises(RuntimeError, match=r"^result\(\) before finish\(\)$"):
            parser.stream(collect=True).result()

    def test_settings(self) -> None:
        with pytest.raises(ValueError, match=r"^special_text: 'gone' is not one of: 'kept', 'stripped'$"):
            OutputParser.named("hermes", special_text="gone")
        with pytest.raises(TypeError, match=r"^tokenizer: int has no get_vocab\(\)$"):
            OutputParser.named("hermes", tokenizer=3)
        with pytest.raises(ValueError, match=r"^policy drafts: 'no' is not one of: 'recover', 'immediately', 'never'$"):
            Policy(drafts="no")  # type: ignore[arg-type]

    def test_a_tool_without_a_name(self, parser: OutputParser) -> None:
        with pytest.raises(ValueError, match=r"^tools\[1\].function.name: is required$"):
            parser.parse("", tools=[*TOOLS, {"type": "function", "function": {}}])


class Tokenizer:
    """A tokenizer whose markers are one token each, besides words."""

    def get_vocab(self) -> dict[str, int]:
        return {"<think>": 0, "</think>": 1, "<tool_call>": 2, "</tool_call>": 3, "<|im_end|>": 4, "word": 5}


class TestTokenIds:
    @pytest.fixture
    def parser(self) -> OutputParser:
        return OutputParser.named("hermes", reasoning="qwen3", tokenizer=Tokenizer())

    def test_a_marker_that_was_only_spelled_is_text(self, parser: OutputParser) -> None:
        """Text from users and tools contains markers, too; only the model writes their ids."""
        stream = parser.stream(prompt="<|im_start|>assistant\n<think>\n", collect=True)
        stream.feed("about </think> tags ", [5])
        stream.feed("</think>", [1])
        stream.feed("see <tool_call> there", [5])
        stream.finish()
        assert stream.result().message() == {
            "role": "assistant",
            "content": "see <tool_call> there",
            "reasoning": "about </think> tags",
        }

    def test_text_may_lag_behind_its_ids(self, parser: OutputParser) -> None:
        stream = parser.stream(collect=True)
        for text, ids in (("", [0]), ("<thi", [5, 5]), ("nk>word", [1]), ("word</th", [5]), ("ink>w", []), ("ord", [])):
            stream.feed(text, ids)
        stream.finish()
        assert stream.result().message() == {"role": "assistant", "content": "word", "reasoning": "wordword"}

    def test_ids_may_begin_late_and_pause(self, parser: OutputParser) -> None:
        stream = parser.stream(prompt="<|im_start|>assistant\n<think>\nI'm", prefill="I'm", collect=True)
        for text, ids in ((" thinking", []), ("</think>", [1]), ("Yes ", []), ("</think>", [5]), (" it is", [])):
            stream.feed(text, ids)
        stream.finish()
        assert stream.result().message() == {
            "role": "assistant",
            "content": "Yes </think> it is",
            "reasoning": "I'm thinking",
        }

    def test_spelled_markers_can_be_markers(self) -> None:
        parser = OutputParser.named(
            "hermes", reasoning="qwen3", tokenizer=Tokenizer(), policy=Policy(spelled_markers="marker")
        )
        assert parser.parse("<think>a</think>b", token_ids=[5]).message()["content"] == "b"

    def test_a_format_may_take_spelled_markers_for_markers(self) -> None:
        class Spelling:
            def get_vocab(self) -> dict[str, int]:
                return {"<mm:think>": 0, "</mm:think>": 1, "<": 2, "mm:think>": 3, "a": 4, "</": 5, "b": 6}

        def read(policy: Policy | None) -> tuple[str | None, str | None]:
            fmt = named("minimax_m3", reasoning="minimax_m3").extend(spelled_markers="marker")
            parser = OutputParser.from_format(fmt, tokenizer=Spelling(), policy=policy)
            parsed = parser.parse("<mm:think>a</mm:think>b", token_ids=[2, 3, 4, 5, 3, 6])
            return parsed.reasoning_content, parsed.content

        assert read(None) == ("a", "b")
        assert read(Policy(spelled_markers="text")) == (None, "<mm:think>a</mm:think>b")

    def test_stripped_markers_come_by_id(self) -> None:
        parser = OutputParser.named("hermes", reasoning="qwen3", tokenizer=Tokenizer(), special_text="stripped")
        stream = parser.stream(collect=True)
        for text, ids in (
            ("", [0]),
            ("word", [5]),
            ("", [1]),
            ("Look", [5]),
            ('{"name": "f", ', [2, 5]),
            ('"arguments": {}}', [5, 3, 4]),
        ):
            stream.feed(text, ids)
        stream.finish()
        parsed = stream.result()
        assert (parsed.reasoning_content, parsed.content) == ("word", "Look")
        assert [(c.function.name, c.function.arguments) for c in parsed.tool_calls] == [("f", "{}")]

    @pytest.mark.parametrize("name", ["prompt", "prompt_token_ids"])
    def test_the_prompt_may_be_ids(self, parser: OutputParser, name: str) -> None:
        prompt: Any = {name: [5, 4, 5, 0]}
        message = {"role": "assistant", "content": "Yes", "reasoning": "hm"}
        assert parser.parse("hm</think>Yes", **prompt).message() == message
        tokens = parser.parse_tokens([5, 1, 5], **prompt)
        assert (tokens.output.reasoning_content, tokens.output.content) == ("word", "word")

    def test_the_prompt_is_given_once(self, parser: OutputParser) -> None:
        with pytest.raises(ValueError, match=r"\Aprompt, prompt_token_ids: both are token ids: give one of them\Z"):
            parser.stream(prompt=[1], prompt_token_ids=[1])

    def test_what_cannot_be_told_apart_is_reported(self) -> None:
        """One id, two literals, one delta, and a vocabulary that does not know the other tokens."""
        parser = OutputParser.named("hermes", reasoning="qwen3", tokenizer=Tokenizer())
        stream = parser.stream(prompt="<|im_start|>assistant\n<think>\n", collect=True)
        stream.feed("a</think>b</think>c", [99, 1, 99])
        stream.finish()
        assert [d.code for d in stream.result().diagnostics] == ["stray_close", "ambiguous_marker"]


@pytest.mark.parametrize("name", ["a&b", 'a"b', "a<b", "a'b"])
def test_names_that_are_escaped(name: str) -> None:
    """Kimi K3 writes names in an attribute, as XML does."""
    parser = OutputParser.named("kimi_k3")
    call = {"id": "x", "type": "function", "function": {"name": name, "arguments": "{}"}}
    raw = parser.render({"content": None, "tool_calls": [call]})
    for cut in range(len(raw)):
        stream = parser.stream(collect=True)
        stream.feed(raw[:cut])
        stream.feed(raw[cut:])
        stream.finish()
        assert [found.function.name for found in stream.result().tool_calls] == [name], raw[:cut]


def test_deltas_are_assembled(parser: OutputParser) -> None:
    stream = parser.stream(collect=True, seed=1)
    raw = f"<think>hm</think>Look: {CALL}\nand {CALL}done"
    deltas = [delta for at in range(0, len(raw), 5) for delta in stream.feed(raw[at : at + 5])]
    deltas += stream.finish()
    result, assembled = stream.result(), assemble(deltas)
    assert [item.type for item in assembled.items] == [
        *("reasoning", "content", "tool_call", "content", "tool_call", "content")
    ]
    assert assembled == ParsedOutput(
        reasoning=result.reasoning,
        content=result.content,
        tool_calls=result.tool_calls,
        tools_called=True,
        finish_reason="tool_calls",
        items=result.items,
    )
    assert assemble([], "length") == ParsedOutput(finish_reason="length")


@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_members_that_turn_out_not_to_be_arguments_are_dropped_alone(step: int) -> None:
    raw = '<tool_call>{"a": "x", "name": "f", "b": 1, "arguments": {"c": 2}}</tool_call>'
    stream = OutputParser.named("hermes").stream(collect=True, spans=True)
    for at in range(0, len(raw), step):
        stream.feed(raw[at : at + step])
    stream.finish()
    parsed = stream.result()
    assert [(d.code, d.text) for d in parsed.diagnostics] == [("unused_member", '"x"'), ("unused_member", "1")]
    dropped = [raw[span.start : span.end] for span in parsed.spans if span.kind == "dropped"]
    assert dropped == ['"a": "x"', '"b": 1']


def test_spans_name_their_call(parser: OutputParser) -> None:
    raw = f"Look: {CALL}{CALL}"
    spans = parser.parse(raw, spans=True).spans
    assert [(s.kind, raw[s.start : s.end], s.call) for s in spans if s.kind != "markup"] == [
        ("content", "Look:", None),
        ("name", "get_weather", 0),
        ("arguments", '{"city": "Paris"}', 0),
        ("name", "get_weather", 1),
        ("arguments", '{"city": "Paris"}', 1),
    ]
    assert Span("content", 0, 1).call is None


def test_the_result_names_reasoning_as_the_policy_does() -> None:
    parser = OutputParser.named("hermes", reasoning="qwen3", policy=Policy(reasoning_field="reasoning_content"))
    stream = parser.stream(collect=True)
    deltas = [stream.dump(delta) for delta in stream.feed("<think>a</think>b")]
    stream.finish()
    assert deltas == [{"reasoning_content": "a", "content": "b"}] or deltas == [
        {"content": "b", "reasoning_content": "a"}
    ]
    assert stream.result().message() == {"role": "assistant", "content": "b", "reasoning_content": "a"}
    assert stream.result().model_dump(exclude_defaults=True)["reasoning_content"] == "a"


@pytest.mark.parametrize(
    ("parser", "shown"),
    [
        (OutputParser(), "<OutputParser 'passthrough', named, without tokenizer>"),
        (OutputParser.from_format(Format(name="mine")), "<OutputParser 'mine', given as a Format, without tokenizer>"),
        (
            OutputParser.named("hermes", policy=Policy(drafts="never", strict=True)),
            "<OutputParser 'hermes', named, without tokenizer, drafts='never', strict=True>",
        ),
    ],
)
def test_repr_of_a_parser(parser: OutputParser, shown: str) -> None:
    assert repr(parser) == shown


def test_repr_of_a_stream(parser: OutputParser) -> None:
    stream = parser.stream(collect=True)
    assert repr(stream) == "<Stream over FormatStream, open, collecting>"
    stream.feed("<think>")
    assert repr(stream) == "<Stream over FormatStream, in reasoning, collecting>"
    stream.finish()
    assert repr(stream) == "<Stream over FormatStream, finished, collecting>"


@pytest.mark.parametrize(
    "name", ["named", "from_format", "from_template", "for_model", "parse", "parse_complete_with_fallback", "stream"]
)
def test_parameters_are_spelled_out(name: str) -> None:
    """The same parameters have the same names and order everywhere."""
    found = inspect.signature(getattr(OutputParser, name)).parameters
    assert all(p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in found.values())
    settings = ["tokenizer", "policy", "special_text", "make_id"]
    context = ["tools", "tool_choice", "prompt", "prompt_token_ids", "prefill", "messages"]
    wanted = context if name.startswith("parse") or name == "stream" else settings
    assert [p for p in found if p in wanted] == wanted


def test_public_names_are_loaded_when_used() -> None:
    for name in untemplate.__all__:
        assert getattr(untemplate, name) is not None
    assert dir(untemplate) == sorted(untemplate.__all__)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "strict"}, "policy: expected Policy, got str: 'strict'"),
        ({"make_id": "random"}, "make_id: expected a function (name, index) -> id, got 'random'"),
        ({"format": "hermes"}, "format: expected Format, got str: 'hermes'"),
        ({"backend": 3}, "backend: expected ParserBackend, got int: 3"),
    ],
)
def test_arguments_of_the_wrong_type(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        OutputParser(**arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompt": 1}, "prompt: expected str, or a list of token ids, got int: 1"),
        ({"prompt": ["a"]}, "prompt: expected str, or a list of token ids, got list: ['a']"),
        ({"policy": {}}, "policy: expected Policy, got dict: {}"),
        ({"prefill": b"x"}, "prefill: expected str, got bytes: b'x'"),
        ({"seed": 1.5}, "seed: expected int, str or bytes, got float: 1.5"),
        ({"request": "stop"}, "request: expected a request (a dict, or an object with its fields), got str: 'stop'"),
        ({"messages": "hi"}, "messages: expected a list of messages, got str: 'hi'"),
        ({"messages": [{}, "hi"]}, "messages[1]: expected a message, got str: 'hi'"),
        ({"prompt_token_ids": "hi"}, "prompt_token_ids: expected a list of token ids, got str: 'hi'"),
        ({"prompt_token_ids": ["a"]}, "prompt_token_ids: expected a list of token ids, got list: ['a']"),
        ({"on_event": 3}, "on_event: expected a function, got int: 3"),
        (
            {"tool_choice": "always"},
            "tool_choice: 'always' is not one of: 'auto', 'none', 'required', 'any', or an object that names a tool",
        ),
        (
            {"tool_choice": 3},
            "tool_choice: 3 is not one of: 'auto', 'none', 'required', 'any', or an object that names a tool",
        ),
    ],
)
def test_contexts_of_the_wrong_type(parser: OutputParser, arguments: dict[str, Any], message: str) -> None:
    for use in (parser.stream, partial(parser.parse, "")):
        with pytest.raises((TypeError, ValueError)) as caught:
            use(**arguments)
        assert str(caught.value) == message


@pytest.mark.parametrize("choice", [None, "auto", "none", "required", {"type": "function", "function": {"name": "f"}}])
def test_every_kind_of_tool_choice_is_accepted(parser: OutputParser, choice: Any) -> None:
    assert parser.parse("Hi.", tool_choice=choice).content == "Hi."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"tool_parser_name": "hermes", "format": Format(name="x")},
            "a parser name and format exclude each other: give one of them",
        ),
        (
            {"format": Format(name="x"), "backend": FormatBackend(Format(name="x"), policy=Policy())},
            "format and backend exclude each other: give one of them",
        ),
    ],
)
def test_sources_that_exclude_each_other(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        OutputParser(**arguments)


@pytest.mark.parametrize("name", [None, 3, ["hermes"]])
def test_a_name_is_a_text(name: Any) -> None:
    expected = f"^{re.escape(f'name of a format: expected str, got {type(name).__name__}: {name!r}')}$"
    with pytest.raises(TypeError, match=expected):
        OutputParser.named(name)
    if name is not None:
        with pytest.raises(TypeError, match=expected):
            OutputParser.named("hermes", reasoning=name)


def test_a_finish_reason_is_a_text(parser: OutputParser) -> None:
    with pytest.raises(TypeError, match=r"^finish_reason: expected str or None, got int: 3$"):
        parser.stream().finish(3)  # type: ignore[arg-type]


def test_a_reasoning_field_that_does_not_exist(parser: OutputParser) -> None:
    parsed = parser.parse("<think>a</think>b")
    assert parsed.reasoning == "a"
    with pytest.raises(ValueError, match=r"^reasoning_field: 'thoughts' is not one of: 'reasoning', 'reasoning_cont"):
        parsed.message(reasoning_field="thoughts")


# -- misuse is an error that names what is wrong ------------------------------------------------------------------


@pytest.mark.parametrize("message", ["hello", None, 3])
def test_render_refuses_what_is_not_a_message(message: Any):
    with pytest.raises(TypeError) as error:
        OutputParser.named("hermes").render(message)
    assert str(error.value) == (
        "message: expected an assistant message (a dict, or an object with role, content, reasoning, "
        f"reasoning_content, tool_calls), got {type(message).__name__}: {message!r}"
    )


@pytest.mark.parametrize("tokenizer", [None, SimpleNamespace(get_vocab=lambda: {"<tool_call>": 1})])
def test_feed_refuses_texts_as_token_ids(tokenizer: Any):
    stream = OutputParser.named("hermes", tokenizer=tokenizer).stream()
    with pytest.raises(TypeError) as error:
        stream.feed("a", ["<tool_call>"])  # type: ignore[list-item]
    assert str(error.value) == "feed() token_ids[0]: expected a token id (int), got str: '<tool_call>'"


@pytest.mark.parametrize("model", ["/models/missing.gguf", "./nowhere", "missing.gguf", "a/b/c", Path("nowhere")])
def test_a_path_that_does_not_exist_is_an_error(model: str | Path):
    with pytest.raises(CheckpointError) as error:
        OutputParser.for_model(model)
    assert str(error.value) == f"{model}: no such file or folder"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": ""}, ValueError, "model: is empty; expected a hub id, a local folder or a GGUF file"),
        ({"model": 3}, TypeError, "model: expected str or PathLike, got int: 3"),
        ({"model": "a/b", "model_type": 3}, TypeError, "model_type: expected str, got int: 3"),
        ({"model": "a/b", "response_template": "x"}, TypeError, "response_template: expected Mapping, got str: 'x'"),
        (
            {"model": "a/b", "template": "./no.jinja"},
            TemplateError,
            "./no.jinja: not a template, and no such file, folder or hub id",
        ),
        (
            {"model": "nowhere"},
            CheckpointError,
            "nowhere: no such file or folder, not a hub id, and no entry of the catalogue matches; "
            "give a chat template or enforce a format",
        ),
    ],
)
def test_for_model_refuses_what_cannot_be_meant(arguments: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error) as caught:
        OutputParser.for_model(**arguments)
    assert str(caught.value) == message


def test_from_template_refuses_what_is_no_template():
    with pytest.raises(TypeError, match=r"^template: expected str, a path or ChatTemplate, got NoneType: None$"):
        OutputParser.from_template(None)  # type: ignore[arg-type]


def test_render_refuses_the_message_of_another_role():
    with pytest.raises(ValueError, match=r"^message: expected the role 'assistant', got 'user'$"):
        OutputParser.named("hermes").render({"role": "user", "content": "Hi."})
