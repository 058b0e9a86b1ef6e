"""Requests of Chat Completions and Completions."""

from __future__ import annotations

from typing import Any

import pytest

from untemplate_gateway.errors import ApiError
from untemplate_gateway.generation import Constraint, Generation, Sampling, Thinking
from untemplate_gateway.protocols.chat import CHAT
from untemplate_gateway.protocols.completions import COMPLETIONS

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
SCHEMA = {"type": "object"}


def test_a_whole_chat_request():
    body = {
        "model": "acme-1",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look."}], "name": "ada", "mood": "glad"},
            {
                "role": "assistant",
                "content": None,
                "reasoning": "Hm.",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "F.", "response": {"a": 1}}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"name": "f"}]}},
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        "n": 2,
        "stop": ["STOP", "", "STOP"],
        "max_tokens": 5,
        "max_completion_tokens": 7.0,
        "temperature": 1,
        "logit_bias": {"5": -100},
        "seed": -1,
        "logprobs": True,
        "top_logprobs": 2,
        "reasoning": {"effort": "low", "max_tokens": 9, "exclude": False},
        "chat_template_kwargs": {"x": 1},
        "include_reasoning": False,
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "modalities": ["text"],
        "user": "u1",
        "untemplate": {"diagnostics": True},
        "mood": "glad",
        "nothing": None,
    }
    assert CHAT.read(body) == Generation(
        model="acme-1",
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look."}], "name": "ada", "mood": "glad"},
            {
                "role": "assistant",
                "reasoning_content": "Hm.",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
        ],
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "F.",
                    "parameters": {"type": "object", "properties": {}},
                    "response": {"a": 1},
                },
            }
        ],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
        },
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        n=2,
        stop=("STOP",),
        max_tokens=7,
        sampling=Sampling(temperature=1.0, logit_bias={"5": -100.0}, seed=-1),
        logprobs=2,
        thinking=Thinking(effort="low", budget=9),
        template_kwargs={"x": 1},
        include_reasoning=False,
        stream=True,
        include_usage=True,
        diagnostics=True,
        extra={"mood": "glad"},
    )


def test_a_whole_completions_request():
    body = {"prompt": [[1, 2]], "n": 2, "best_of": 2, "stop": "x", "logprobs": 0, "suffix": "", "mood": "glad"}
    assert COMPLETIONS.read(body) == Generation(
        prompt=[1, 2], parse=False, n=2, stop=("x",), max_tokens=16, logprobs=0, extra={"mood": "glad"}
    )
    assert COMPLETIONS.read({"prompt": ["a"], "echo": True}).prompt == "a"
    assert COMPLETIONS.read({"prompt": "a", "echo": True, "logprobs": 0, "max_tokens": 0}).max_tokens == 0
    several = COMPLETIONS.read({"prompt": ["a", [1, 2], "b"], "n": 2})
    assert (several.prompt, several.further_prompts, several.choices) == ("a", [[1, 2], "b"], 6)
    assert [several.raw_prompt(choice) for choice in range(6)] == ["a", "a", [1, 2], [1, 2], "b", "b"]


def message(**fields: Any) -> dict[str, Any]:
    return {"messages": [fields]}


PROMPT = "prompt: must be a string, a list of token ids, or a list of these"
WRONG: list[tuple[Any, dict[str, Any], str, bool]] = [
    (CHAT, {}, "messages: is required", False),
    (CHAT, {"messages": []}, "messages: must not be empty", False),
    (CHAT, message(role="user"), "messages[0].content: is required", False),
    (
        CHAT,
        message(role="user", content=1),
        "messages[0].content: must be a string or a list of parts, got a number",
        False,
    ),
    (CHAT, message(role="user", content=[{"type": "text"}]), "messages[0].content[0].text: is required", False),
    (CHAT, message(role="tool", content="x"), "messages[0].tool_call_id: is required", False),
    (
        CHAT,
        message(role="user", content="x", tool_calls=[]),
        "messages[0].tool_calls: only assistant messages can have tool calls",
        False,
    ),
    (
        CHAT,
        message(role="assistant", tool_calls=[{"type": "x", "function": {"name": "f"}}]),
        "messages[0].tool_calls[0].type: must be one of function, custom, got 'x'",
        True,
    ),
    (
        CHAT,
        message(role="assistant", tool_calls=[{"function": {"name": "f", "arguments": 1}}]),
        "messages[0].tool_calls[0].function.arguments: must be JSON text or an object, got a number",
        False,
    ),
    (
        CHAT,
        {**HELLO, "tools": [{"type": "function", "function": {"name": ""}}]},
        "tools[0].function.name: must not be empty",
        False,
    ),
    (
        CHAT,
        {**HELLO, "tool_choice": "any"},
        "tool_choice: must be one of none, auto, required or an object, got 'any'",
        False,
    ),
    (CHAT, {**HELLO, "tool_choice": {"type": "function"}}, "tool_choice.name: is required", False),
    (CHAT, {**HELLO, "tool_choice": {"type": "allowed_tools"}}, "tool_choice.tools: is required", False),
    (CHAT, {**HELLO, "response_format": {"type": "json_schema"}}, "response_format.json_schema: is required", False),
    (
        CHAT,
        {**HELLO, "response_format": {"type": "xml"}},
        "response_format.type: must be one of text, json_object, json_schema, got 'xml'",
        True,
    ),
    (CHAT, {**HELLO, "n": 129}, "n: must be an integer from 1 to 128, got 129", False),
    (CHAT, {**HELLO, "top_k": -2}, "top_k: must be an integer from -1, got -2", False),
    (CHAT, {**HELLO, "stop": ["x"] * 65}, "stop: must have at most 64 items, got 65", False),
    (CHAT, {**HELLO, "logit_bias": {"x": 1}}, "logit_bias: 'x' is not a token id", False),
    (CHAT, {**HELLO, "logit_bias": {"1": 101}}, "logit_bias.1: must be a number from -100 to 100, got 101", False),
    (CHAT, {**HELLO, "top_logprobs": 1}, "top_logprobs: needs logprobs: true", False),
    (CHAT, {**HELLO, "stream_options": {"x": 1}, "stream": True}, "stream_options.x: is not supported", True),
    (CHAT, {**HELLO, "modalities": ["audio"]}, "modalities: only text is supported", True),
    (
        CHAT,
        {**HELLO, "continue_final_message": True},
        "continue_final_message: the last message must be the assistant's",
        False,
    ),
    (COMPLETIONS, {}, "prompt: is required", False),
    (
        COMPLETIONS,
        {"prompt": 1},
        f"{PROMPT}, got a number",
        False,
    ),
    (COMPLETIONS, {"prompt": []}, PROMPT, False),
    (COMPLETIONS, {"prompt": [[]]}, PROMPT, False),
    (COMPLETIONS, {"prompt": [1, "x"]}, PROMPT, False),
    (COMPLETIONS, {"prompt": "x", "best_of": 2}, "best_of: must be equal to n", True),
    (COMPLETIONS, {"prompt": "x", "suffix": "y"}, "suffix: is not supported", True),
    (COMPLETIONS, {"prompt": [1], "echo": True}, "echo: needs a prompt that is text, or logprobs", True),
    (COMPLETIONS, {"prompt": "x", "echo": True, "logprobs": 1, "stop": "y"}, "echo: with logprobs excludes stop", True),
]


@pytest.mark.parametrize(("dialect", "body", "problem", "unsupported"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_what_is_refused(dialect: Any, body: dict[str, Any], problem: str, unsupported: bool):
    with pytest.raises(ApiError) as caught:
        dialect.read(body)
    error = caught.value
    assert (error.status, error.message) == (400, problem)
    assert error.param == problem.partition(": ")[0]
    assert (error.code == "unsupported_parameter") is unsupported


RESTRICTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"guided_json": SCHEMA}, {"response_format": SCHEMA}),
    ({"guided_json": '{"type": "object"}'}, {"response_format": SCHEMA}),
    ({"json_schema": SCHEMA}, {"response_format": SCHEMA}),
    ({"structured_outputs": {"json": SCHEMA}}, {"response_format": SCHEMA}),
    ({"structured_outputs": {"json_object": True}}, {"response_format": {"type": "json_object"}}),
    ({"structured_outputs": {"json_object": False}}, {}),
    ({"guided_regex": "a+"}, {"constraint": Constraint("regex", "a+", "guided_regex")}),
    ({"regex": "a+"}, {"constraint": Constraint("regex", "a+", "regex")}),
    (
        {"structured_outputs": {"choice": ["a", "b"]}},
        {"constraint": Constraint("choice", ("a", "b"), "structured_outputs.choice")},
    ),
    ({"ebnf": "r"}, {"constraint": Constraint("grammar", "r", "ebnf")}),
    ({"grammar": "root ::= x"}, {"constraint": Constraint("grammar", "root ::= x", "grammar")}),
]


@pytest.mark.parametrize(("fields", "read"), RESTRICTIONS)
def test_restrictions_under_the_names_of_other_servers(fields: dict[str, Any], read: dict[str, Any]):
    expected = dict(read)
    if expected.get("response_format") == SCHEMA:
        schema = {"name": "response", "schema": SCHEMA, "strict": True}
        expected["response_format"] = {"type": "json_schema", "json_schema": schema}
    for dialect, body in ((CHAT, HELLO), (COMPLETIONS, {"prompt": "x"})):
        found = dialect.read({**body, **fields})
        assert (found.response_format, found.constraint) == (
            expected.get("response_format"),
            expected.get("constraint"),
        )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"regex": "a", "grammar": "b"}, "grammar: excludes regex"),
        ({"guided_json": "x"}, "guided_json: must be a JSON schema"),
        ({"guided_choice": []}, "guided_choice: must not be empty"),
        ({"regex": "a", "response_format": {"type": "json_object"}},
         "response_format: excludes other restrictions of the output"),
        ({"max_tokens": 0}, "max_tokens: must be an integer from 1, or -1 for no limit, got 0"),
    ],
)  # fmt: skip
def test_restrictions_that_exclude_each_other(fields: dict[str, Any], problem: str):
    with pytest.raises(ApiError) as caught:
        CHAT.read({**HELLO, **fields})
    assert caught.value.message == problem


def test_fields_of_other_servers():
    more = {"repeat_penalty": 1.1, "stop_token_ids": [7], "min_tokens": 2, "ignore_eos": True, "max_tokens": -1}
    read = CHAT.read({**HELLO, **more, "documents": [{"text": "d"}]})
    assert read.sampling == Sampling(repetition_penalty=1.1, stop_token_ids=[7], min_tokens=2, ignore_eos=True)
    assert read.max_tokens is None
    assert read.documents == [{"text": "d"}]
