"""Ollama's dialect, against ollama's own types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway_tests.scripted import Scripted
from untemplate._internal.output_parser import OutputParser
from untemplate.templates import ChatTemplate
from untemplate_gateway.errors import ApiError
from untemplate_gateway.generation import Generation, Sampling, Thinking, Usage
from untemplate_gateway.manager.capabilities import ModelCapabilities
from untemplate_gateway.manager.model import Model
from untemplate_gateway.protocols.ollama import CHAT, GENERATE
from untemplate_gateway.protocols.ollama.models import ps, show, tags
from untemplate_gateway.protocols.ollama.request import Load, load_of
from untemplate_gateway.protocols.ollama.response import loaded

from .stories import ERROR, META, Story, call, every_cut, every_story, letter, lines, play, request, whole

WHEN = "2023-11-14T22:13:20Z"

# -- Responses ---------------------------------------------------------------------------------------------------


@every_cut
@every_story
def test_streamed_is_whole(story: Story, cut: int):
    data, ended = play(story, cut, CHAT)
    found = lines(data)
    assert [one["done"] for one in found] == [False] * (len(found) - 1) + [True]
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for one in found:
        message["content"] += one["message"]["content"]
        if "thinking" in one["message"]:
            message["thinking"] = message.get("thinking", "") + one["message"]["thinking"]
        if "tool_calls" in one["message"]:
            message["tool_calls"] = message.get("tool_calls", []) + one["message"]["tool_calls"]
    assert {**found[-1], "message": message} == whole(CHAT, story, ended)


@every_story
def test_clients_understand_it(story: Story):
    ollama = pytest.importorskip("ollama")
    data, ended = play(story, 3, CHAT)
    if b"\\ud" in data:
        return  # pydantic takes no lone surrogates
    for one in lines(data):
        ollama.ChatResponse(**one)
    read = ollama.ChatResponse(**whole(CHAT, story, ended))
    assert read.message.content == (ended.parsed.content or "")
    calls = [(one.function.name, one.function.arguments) for one in read.message.tool_calls or ()]
    for (name, arguments), one in zip(calls, ended.parsed.tool_calls, strict=True):
        assert name == one.function.name
        assert arguments.get("INVALID_JSON") == one.function.arguments or arguments == json.loads(
            one.function.arguments
        )


@every_cut
@every_story
def test_generated(story: Story, cut: int):
    story = Story(**{**vars(story), "tools": []})
    data, ended = play(story, cut, GENERATE)
    found = lines(data)
    said = {"response": "".join(one["response"] for one in found)}
    if any("thinking" in one for one in found):
        said["thinking"] = "".join(one.get("thinking", "") for one in found)
    assert {**found[-1], **said} == whole(GENERATE, story, ended)


def test_every_line_of_a_story():
    story = Story("", "<think>\nHm.\n</think>\n\nYes." + call("f", '{"x": 1}') + call("g", "{}") + "\nSo.")
    data, ended = play(story, 10**6, CHAT)
    first, second = ended.parsed.tool_calls

    def line(**message: Any) -> dict[str, Any]:
        whole = {"role": "assistant", "content": "", **message}
        return {"model": "acme-1", "created_at": WHEN, "message": whole, "done": False}

    calls = [
        {"id": first.id, "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
        {"id": second.id, "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    assert lines(data) == [
        line(thinking="Hm."),
        line(content="Yes."),
        line(tool_calls=[calls[0]]),
        line(tool_calls=[calls[1]]),
        line(content="\nSo."),
        {**line(), "done": True, "done_reason": "stop", "prompt_eval_count": 30, "eval_count": 12},
    ]


def test_every_line_of_a_generated_story():
    data, _ = play(Story("", "<think>\nHm.\n</think>\n\nYes.", finish_reason="length", tools=[]), 10**6, GENERATE)
    fixed = {"model": "acme-1", "created_at": WHEN}
    assert lines(data) == [
        {**fixed, "response": "", "thinking": "Hm.", "done": False},
        {**fixed, "response": "Yes.", "done": False},
        {
            **fixed,
            "response": "",
            "done": True,
            "done_reason": "length",
            "prompt_eval_count": 30,
            "eval_count": 12,
        },
    ]


def test_times():
    _, ended = play(Story("", "Yes."), 1, CHAT)
    usage = Usage(prompt_tokens=3, completion_tokens=2, prompt_ns=40, completion_ns=60)
    assert CHAT.respond(request(Story("", "")), [ended], usage, META) == {
        "model": "acme-1",
        "created_at": WHEN,
        "message": {"role": "assistant", "content": "Yes."},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 3,
        "eval_count": 2,
        "total_duration": 100,
        "prompt_eval_duration": 40,
        "eval_duration": 60,
    }


def test_arguments_that_are_no_object_are_kept():
    _, ended = play(Story("", '<tool_call>\n{"name": "f", "arguments": {"path": "/tm'), 3, CHAT)
    (one,) = whole(CHAT, Story("", ""), ended)["message"]["tool_calls"]
    assert one["function"] == {"index": 0, "name": "f", "arguments": {"INVALID_JSON": '{"path": "/tm'}}


@pytest.mark.parametrize("error", [None, ERROR])
def test_a_call_cut_before_its_arguments_is_not_a_call_without_arguments(error: Any):
    data, ended = play(Story("", '<tool_call>\n{"name": "f", "arguments": '), 3, CHAT, error=error)
    (streamed,) = lines(data)[0]["message"]["tool_calls"]
    assert streamed["function"] == {"index": 0, "name": "f", "arguments": {"INVALID_JSON": ""}}
    if error is None:
        (one,) = whole(CHAT, Story("", ""), ended)["message"]["tool_calls"]
        assert one["function"] == streamed["function"]


@every_cut
@pytest.mark.parametrize("dialect", [CHAT, GENERATE], ids=["chat", "generate"])
def test_log_probabilities(dialect: Any, cut: int):
    story = Story("", "<think>\nHm.\n</think>\n\nYes", request={"logprobs": 1}, tools=[])
    data, ended = play(story, cut, dialect)
    letters = [letter(c) for c in "Yes"]
    assert [token for one in lines(data) for token in one.get("logprobs", ())] == letters
    assert whole(dialect, story, ended)["logprobs"] == letters


def test_what_was_asked_for_inside():
    story = Story("", "A." + call("f", '{"x": 1}'), request={"diagnostics": True, "raw": True})
    data, ended = play(story, 5, CHAT)
    inside = {
        "diagnostics": [],
        "calls": [{"index": 0, "name": "f", "status": "ok", "model_id": None, "repairs": []}],
        "raw": story.raw,
    }
    assert lines(data)[-1]["untemplate"] == inside
    assert whole(CHAT, story, ended)["untemplate"] == inside


@pytest.mark.parametrize("dialect", [CHAT, GENERATE], ids=["chat", "generate"])
def test_an_engine_that_dies(dialect: Any):
    data, _ = play(Story("", "Once upon"), 4, dialect, error=ERROR)
    error = {"error": "the upstream closed the connection"}
    assert lines(data)[-1] == error
    assert dialect.error(ERROR) == error


def test_a_call_that_was_open_when_the_engine_died():
    data, _ = play(Story("", '<tool_call>\n{"name": "f", "arguments": {"a": 1'), 4, CHAT, error=ERROR)
    call, error = lines(data)
    assert call["message"]["tool_calls"][0]["function"]["arguments"] == {"INVALID_JSON": '{"a": 1'}
    assert error == {"error": "the upstream closed the connection"}


# -- Requests ----------------------------------------------------------------------------------------------------

IMAGE = "iVBORw0KGgo="


def test_a_whole_chat_request():
    parameters = {"type": "object"}
    body = {
        "model": "acme-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look.", "images": [IMAGE]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm.",
                "tool_calls": [
                    {"function": {"name": "f", "arguments": {"x": 1}}},
                    {"function": {"name": "g", "arguments": {}}},
                ],
            },
            {"role": "tool", "tool_name": "g", "content": "two"},
            {"role": "tool", "content": "one"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "F.", "parameters": parameters}}],
        "format": {"type": "object"},
        "think": "high",
        "keep_alive": "5m",
        "options": {
            "num_predict": 100,
            "temperature": 0.5,
            "top_k": 40,
            "top_p": 0.9,
            "min_p": 0.05,
            "stop": ["STOP"],
            "seed": 7,
            "repeat_penalty": 1.1,
            "presence_penalty": 0.5,
            "frequency_penalty": 0.25,
            "num_ctx": 8192,
            "typical_p": 1.0,
        },
        "logprobs": True,
        "top_logprobs": 3,
        "untemplate": {"raw": True},
        "mood": "glad",
    }
    assert CHAT.read(body) == Generation(
        model="acme-1",
        messages=[
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                    {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "content": "two", "tool_call_id": "call_1", "name": "g"},
            {"role": "tool", "content": "one", "tool_call_id": "call_0"},
        ],
        tools=[{"type": "function", "function": {"name": "f", "description": "F.", "parameters": parameters}}],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "response", "schema": {"type": "object"}, "strict": True},
        },
        thinking=Thinking(enabled=True, effort="high"),
        max_tokens=100,
        stop=("STOP",),
        sampling=Sampling(
            temperature=0.5,
            top_k=40,
            top_p=0.9,
            min_p=0.05,
            seed=7,
            repetition_penalty=1.1,
            presence_penalty=0.5,
            frequency_penalty=0.25,
        ),
        logprobs=3,
        stream=True,
        raw=True,
        extra={"mood": "glad"},
    )


BRIEF = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]


def test_generate_requests():
    assert GENERATE.read({"model": "m", "prompt": "Hi", "system": "Be brief.", "stream": False}) == Generation(
        model="m", messages=BRIEF, repeated={"context": BRIEF}
    )
    assert GENERATE.read({"prompt": "<s>Hi", "raw": True}) == Generation(prompt="<s>Hi", parse=False, stream=True)
    assert GENERATE.read({"prompt": "Look.", "images": [IMAGE], "format": "json", "think": False}) == Generation(
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}},
                ],
            }
        ],
        response_format={"type": "json_object"},
        thinking=Thinking(enabled=False),
        stream=True,
        repeated={"context": [{"role": "user", "content": "Look."}]},
    )


def test_the_assistant_goes_on():
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hel"}]
    assert CHAT.read({"messages": messages}).continue_final_message


@pytest.mark.parametrize("number", [-1, -2, 0, None])
def test_no_limit(number: int | None):
    assert CHAT.read({"messages": [{"role": "user"}], "options": {"num_predict": number}}).max_tokens is None


@pytest.mark.parametrize(
    ("keep_alive", "unload"),
    [(None, False), (0, True), ("0", True), ("0s", True), ("5m", False), ("1h30m", False), (-1, False), (300, False)],
)
def test_models_are_loaded_and_let_go(keep_alive: Any, unload: bool):
    body = {"model": "acme-1", "keep_alive": keep_alive}
    assert load_of(body, chat=True) == Load("acme-1", unload, True)
    assert load_of({**body, "messages": []}, chat=True) == Load("acme-1", unload, True)
    assert load_of({**body, "prompt": ""}, chat=False) == Load("acme-1", unload, False)
    assert load_of({**body, "messages": [{"role": "user", "content": "Hi"}]}, chat=True) is None
    assert load_of({**body, "prompt": "Hi"}, chat=False) is None
    reason = "unload" if unload else "load"
    fixed = {"model": "acme-1", "created_at": WHEN}
    assert loaded(Load("acme-1", unload, True), META) == {
        **fixed,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": reason,
    }
    assert loaded(Load("acme-1", unload, False), META) == {
        **fixed,
        "response": "",
        "done": True,
        "done_reason": reason,
    }


def said(**message: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", **message}]}


HELLO = said(content="Hello")
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (CHAT, {}, "messages: is required"),
    (CHAT, {"messages": []}, "messages: must not be empty"),
    (CHAT, {"messages": "x"}, "messages: must be a list of objects, got a string"),
    (CHAT, {"messages": [{"content": "x"}]}, "messages[0].role: is required"),
    (CHAT, said(content=[]), "messages[0].content: must be a string, got a list"),
    (CHAT, said(images=[7]), "messages[0].images[0]: must be a string, got a number"),
    (CHAT, said(mood="glad"), "messages[0].mood: is not supported"),
    (
        CHAT,
        said(tool_calls=[{"function": {"name": "f", "arguments": {}}}]),
        "messages[0].tool_calls: only assistant messages can have tool calls",
    ),
    (
        CHAT,
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]},
        "messages[0].tool_calls[0].function.arguments: must be an object, got a string",
    ),
    (
        CHAT,
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]},
        "messages: the last message calls tools: their results must follow it",
    ),
    (CHAT, {**HELLO, "format": "xml"}, "format: must be json or a JSON schema, got 'xml'"),
    (CHAT, {**HELLO, "think": "hard"}, "think: must be true, false or one of low, medium, high, max, got 'hard'"),
    (CHAT, {**HELLO, "keep_alive": "soon"}, "keep_alive: must be seconds or a duration (5m)"),
    (CHAT, {**HELLO, "options": {"temperature": -1}}, "options.temperature: must be a number from 0 to 10, got -1"),
    (CHAT, {**HELLO, "options": {"mirostat": 2}}, "options.mirostat: only 0 is supported"),
    (CHAT, {**HELLO, "options": {"mood": 1}}, "options.mood: is not supported"),
    (
        CHAT,
        {**HELLO, "tools": [{"type": "retrieval"}]},
        "tools[0].type: tools of type 'retrieval' are not supported, only function",
    ),
    (GENERATE, {}, "prompt: is required"),
    (GENERATE, {"prompt": "x", "suffix": "y"}, "suffix: is not supported"),
    (
        GENERATE,
        {"prompt": "x", "template": "{{ .Prompt }}"},
        "template: the model's own template is used; to use none, send raw: true",
    ),
    (GENERATE, {"prompt": "x", "raw": True, "images": [IMAGE]}, "images: cannot be combined with raw: true"),
    (GENERATE, {"prompt": "x", "raw": True, "system": "y"}, "system: cannot be combined with raw: true"),
    (GENERATE, {"prompt": "x", "width": 512}, "width: is not supported"),
]


@pytest.mark.parametrize(("dialect", "body", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_what_is_refused(dialect: Any, body: dict[str, Any], message: str):
    with pytest.raises(ApiError) as caught:
        dialect.read(body)
    assert (caught.value.status, caught.value.message) == (400, message)
    assert caught.value.param == message.partition(": ")[0]


# -- Models ------------------------------------------------------------------------------------------------------


def acme(*, thinks: bool) -> dict[str, Any]:
    """Return arguments of a Model whose parser knows reasoning."""
    return {
        "name": "acme-1",
        "engine": Scripted(""),
        "parser": OutputParser.named("hermes", reasoning="qwen3"),
        "template": ChatTemplate("{{ messages }}"),
        "capabilities": ModelCapabilities(family="qwen3", supports_thinking=thinks, supports_tools=True),
    }


def test_models():
    ollama = pytest.importorskip("ollama")
    model = Model(
        **acme(thinks=True),
        context_length=4096,
        created=1_700_000_000,
        details={
            "format": "gguf",
            "parameter_size": "8B",
            "quantization_level": "Q4_K_M",
            "size": 12,
            "digest": "abc",
            "license": "MIT",
        },
    )
    details = {
        "parent_model": "",
        "format": "gguf",
        "family": "qwen3",
        "families": ["qwen3"],
        "parameter_size": "8B",
        "quantization_level": "Q4_K_M",
    }
    listed = {
        "name": "acme-1",
        "model": "acme-1",
        "modified_at": WHEN,
        "size": 12,
        "digest": "abc",
        "details": details,
    }
    assert tags([model]) == {"models": [listed]}
    assert ps([model]) == {
        "models": [{**listed, "expires_at": "9999-12-31T23:59:59Z", "size_vram": 0, "context_length": 4096}]
    }
    assert show(model) == {
        "license": "MIT",
        "modelfile": "FROM acme-1\n",
        "parameters": "",
        "template": "{{ messages }}",
        "details": details,
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 4096},
        "capabilities": ["completion", "tools", "thinking"],
        "modified_at": WHEN,
    }
    assert ollama.ListResponse(**tags([model])).models[0].size == 12
    assert ollama.ProcessResponse(**ps([model])).models[0].context_length == 4096
    assert ollama.ShowResponse(**show(model)).capabilities == ["completion", "tools", "thinking"]


def test_a_parser_that_knows_reasoning_does_not_make_a_model_think():
    """A template without reasoning, of a model whose type has it: Qwen3-Instruct."""
    assert show(Model(**acme(thinks=False)))["capabilities"] == ["completion", "tools"]
