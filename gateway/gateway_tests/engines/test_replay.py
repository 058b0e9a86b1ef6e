"""The replay engine: the choice of recordings, messages in every format, and its pace."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.examples import examples
from untemplate.formats import named, names
from untemplate.messages import ParsedOutput
from untemplate_gateway.engines.base import EngineChunk, Health, Job
from untemplate_gateway.engines.replay import Recording, ReplayEngine, ToyTokenizer, example_formats, load_recordings
from untemplate_gateway.errors import EngineError
from untemplate_gateway.generation import Generation, TokenLogprob, Usage

from ..scripted import replay

USER = {"role": "user", "content": "What will the weather be in Lisbon?"}
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 2},
            "unit": {"enum": ["celsius", "kelvin"]},
            "wind": {"type": "boolean"},
            "note": {"type": "string"},
        },
        "required": ["city", "days", "unit", "wind"],
    },
}
TICKET = {"name": "open_ticket", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
RESULT = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]},
    {"role": "tool", "tool_call_id": "c", "content": "sunny, 24 degrees"},
]


def tools(*functions: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": function} for function in functions]


def job(engine: ReplayEngine, request: Generation, **fields: Any) -> Job:
    prompt = request.prompt
    if prompt is None:
        prompt = engine.template().render(request.messages or [], tools=request.tools, add_generation_prompt=True)
    return Job(id="1", model="m", prompt=prompt, request=request, **fields)


def pieces(engine: ReplayEngine, job: Job) -> list[EngineChunk]:
    async def main() -> list[EngineChunk]:
        return [piece async for piece in engine.generate(job)]

    return asyncio.run(main())


def text(found: list[EngineChunk]) -> str:
    return "".join(piece.text for piece in found)


def parsed(engine: ReplayEngine, request: Generation) -> ParsedOutput:
    asked = job(engine, request)
    parser = OutputParser.from_format(engine.format, tokenizer=engine.vocabulary())
    stream = parser.stream(tools=request.tools or [], prompt=asked.prompt, collect=True)
    for piece in pieces(engine, asked):
        stream.feed(piece.text, piece.token_ids)
    stream.finish(piece.finish_reason)
    return stream.result()


# -- What is chosen -----------------------------------------------------------------------------------------------


def test_models_are_the_formats_of_the_examples():
    assert list(example_formats()) == list(dict.fromkeys(example.format for example in examples()))
    assert replay("hermes").format == named("hermes", reasoning="qwen3")


CALLING = [name for name in names("tool") if named(name).tools or named(name).channels is not None]


@pytest.mark.parametrize("name", CALLING)
def test_every_format_calls_the_tool_that_is_offered(name: str):
    found = parsed(replay(name), Generation(messages=[USER], tools=tools(TICKET, WEATHER)))
    [call] = found.tool_calls
    assert (call.function.name, call.status) == ("get_weather", "ok")
    assert json.loads(call.function.arguments) == {"city": "Lisbon", "days": 2, "unit": "celsius", "wind": True}
    assert found.finish_reason == "tool_calls"
    assert found.diagnostics == []


@pytest.mark.parametrize("name", names())
def test_every_format_answers(name: str):
    engine = replay(name)
    plain = parsed(engine, Generation(messages=[USER]))
    assert plain.content is not None
    assert plain.content.startswith("This is the replay engine: no model is at work")
    assert (plain.tool_calls, plain.diagnostics, plain.finish_reason) == ([], [], "stop")
    if engine.format.reasoning is not None and not engine.format.reasoning.inline:
        assert plain.reasoning == "A few words will do."
    answer = parsed(engine, Generation(messages=RESULT, tools=tools(WEATHER)))
    assert (answer.content, answer.tool_calls) == ("The tool returned: sunny, 24 degrees", [])


def test_tool_choice_is_obeyed():
    engine = replay("hermes")

    def called(choice: Any, messages: list[dict[str, Any]]) -> list[str]:
        found = parsed(engine, Generation(messages=messages, tools=tools(WEATHER, TICKET), tool_choice=choice))
        return [call.function.name for call in found.tool_calls]

    named_one = {"type": "function", "function": {"name": "open_ticket"}}
    assert called("auto", [USER]) == ["get_weather"]
    assert called("none", [USER]) == []
    assert called(named_one, [USER]) == ["open_ticket"]
    assert called("required", RESULT) == ["get_weather"]
    assert called("auto", RESULT) == []


def test_what_the_prompt_has_said_is_not_said_again():
    engine = replay("hermes")
    request = Generation(messages=[USER])
    asked = job(engine, request)
    assert text(pieces(engine, asked)).startswith("<think>\nA few words")
    asked.prompt = str(asked.prompt) + "<think>\n"
    assert text(pieces(engine, asked)).startswith("A few words")
    asked.prompt = str(asked.prompt) + "\n</think>\n\n"
    assert text(pieces(engine, asked)).startswith("This is the replay engine")


# -- Tokens -------------------------------------------------------------------------------------------------------


def test_ids_are_those_of_the_vocabulary():
    engine = replay("hermes")
    assert (engine.takes.logprobs, engine.takes.token_ids, engine.takes.tool_choice) == (True, True, True)
    found = pieces(engine, job(engine, Generation(messages=[USER], tools=tools(WEATHER))))
    vocab = engine.vocabulary().get_vocab()
    for piece in found:
        assert engine.tokenizer.decode(piece.token_ids) == piece.text
        if piece.text in engine.format.special_tokens:
            assert list(piece.token_ids) == [vocab[piece.text]]
    usage = found[-1].usage
    assert usage is not None
    assert usage.completion_tokens == sum(len(piece.token_ids) for piece in found)
    assert usage.prompt_tokens > 20


def test_a_toy_tokenizer_spells_what_it_does_not_know():
    tokenizer = ToyTokenizer(["<a>"], ["Hello"])
    ids = tokenizer.encode("Hello<a>é▁")
    assert len(ids) == 2 + 2 + 3
    assert tokenizer.decode(ids) == "Hello<a>é▁"
    assert tokenizer.decode(tokenizer.encode("<a>", special=False)) == "<a>"
    assert len(tokenizer.encode("<a>", special=False)) == 3
    assert tokenizer.get_vocab()["Hello"] == ids[0]


def test_tokenize_and_detokenize():
    engine = replay("hermes")

    async def main() -> None:
        ids = await engine.tokenize("<tool_call>x")
        assert ids[0] == engine.vocabulary().get_vocab()["<tool_call>"]
        assert await engine.detokenize(ids) == "<tool_call>x"
        assert len(await engine.tokenize("<tool_call>x", special=False)) > len(ids)
        assert await engine.health() == Health(ok=True)

    asyncio.run(main())


@pytest.mark.parametrize("most", [0, 1, 5])
def test_a_limit_cuts_the_output(most: int):
    engine = replay("hermes")
    whole = pieces(engine, job(engine, Generation(messages=[USER])))
    found = pieces(engine, job(engine, Generation(messages=[USER]), max_tokens=most))
    assert text(found) == text(whole[:most])
    assert found[-1].finish_reason == "length"
    assert found[-1].usage is not None
    assert found[-1].usage.completion_tokens == most


def test_logprobs_are_the_same_every_time():
    engine = replay("hermes")
    asked = job(engine, Generation(messages=[USER]), logprobs=2, max_tokens=3)
    found = pieces(engine, asked)
    assert found == pieces(engine, asked)
    [one] = found[0].logprobs or []
    assert isinstance(one, TokenLogprob)
    assert (one.token, one.id, len(one.top)) == ("<think>", found[0].token_ids[0], 2)
    assert one.top[0] == (one.token, one.logprob)


# -- Recordings of one's own --------------------------------------------------------------------------------------


def test_recordings_from_a_file(tmp_path: Path):
    file = tmp_path / "outputs.jsonl"
    lines = [
        {"output": 'Let me.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'},
        {"raw": "Hello.", "finish_reason": "length", "format": "hermes"},
        {"output": "Yes.", "prompt": "Really?"},
    ]
    file.write_text("".join(json.dumps(line) + "\n\n" for line in lines))
    recordings = load_recordings(file, named("hermes"))
    assert recordings == [
        Recording(output=lines[0]["output"], calls=("f",)),
        Recording(output="Hello.", finish_reason="length"),
        Recording(output="Yes.", prompt="Really?"),
    ]
    engine = ReplayEngine(named("hermes"), recordings)
    assert text(pieces(engine, job(engine, Generation(prompt="Really?")))) == "Yes."
    offered = Generation(messages=[USER], tools=tools({"name": "f"}))
    assert text(pieces(engine, job(engine, offered))) == lines[0]["output"]
    assert text(pieces(engine, job(engine, Generation(messages=[USER])))) in ("Hello.", "Yes.")
    # Nothing is made up: if no recording fits, any recording is used.
    assert text(pieces(engine, job(engine, Generation(messages=[USER], tools=tools(TICKET))))) in {
        recording.output for recording in recordings
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{oops\n", "line 1: JSON is malformed: object keys must be strings (byte 1)"),
        ('{"output": 1}\n', "line 1: Expected `str | null`, got `int` - at `$.output`"),
        ('\n[]\n', "line 2: Expected `object`, got `array`"),
        ('{"output": "x", "prompt": []}', "line 1: Expected `str | null`, got `array` - at `$.prompt`"),
    ],
)  # fmt: skip
def test_files_that_hold_no_recordings(tmp_path: Path, content: str, message: str):
    file = tmp_path / "outputs.jsonl"
    file.write_text(content)
    with pytest.raises(EngineError) as caught:
        load_recordings(file, named("hermes"))
    assert caught.value.message == f"{file}, {message}"


def test_no_recordings_at_all(tmp_path: Path):
    file = tmp_path / "outputs.jsonl"
    with pytest.raises(EngineError) as caught:
        load_recordings(file, named("hermes"))
    assert caught.value.message.startswith(f"{file}: [Errno 2]")
    file.write_text("\n")
    with pytest.raises(EngineError) as caught:
        load_recordings(file, named("hermes"))
    assert caught.value.message == f"{file}: no recorded outputs in it"
    with pytest.raises(ValueError, match="recordings: must not be empty"):
        ReplayEngine(named("hermes"), [])


# -- Pace ---------------------------------------------------------------------------------------------------------


def test_streams_at_full_speed_take_turns():
    engine = replay("hermes")
    asked = job(engine, Generation(messages=[USER]))
    turns: list[int] = []

    async def read(number: int) -> None:
        async for _ in engine.generate(asked):
            turns.append(number)

    async def main() -> None:
        await asyncio.gather(*(read(number) for number in range(3)))

    asyncio.run(main())
    assert turns[:12] == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_a_set_speed_is_kept_and_can_be_left(monkeypatch: pytest.MonkeyPatch):
    engine = replay("hermes", speed=100.0)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    found = pieces(engine, job(engine, Generation(messages=[USER]), max_tokens=4))
    # No sleep really waited, so each one is as long as the time until the token is due.
    assert len(slept) == len(found)
    assert all(0 < wait <= 0.05 for wait in slept)
    assert slept == sorted(slept)

    async def main() -> EngineChunk:
        output = engine.generate(job(engine, Generation(messages=[USER])))
        first = await anext(output)
        await output.aclose()
        return first

    assert asyncio.run(main()).text == "<think>"


def test_usage_of_a_limit_of_nothing():
    engine = replay("passthrough")
    found = pieces(engine, Job(id="1", model="m", prompt="This is", max_tokens=0))
    assert found == [EngineChunk(finish_reason="length", usage=Usage(prompt_tokens=2))]


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"type": "array", "minItems": 3, "items": {"type": "integer"}}, [1]),
        ({"type": "array", "minItems": "x"}, ["example"]),
        ({"type": []}, "example"),
        ({"type": "object", "properties": [1]}, {}),
        ({"type": "object", "required": 3, "properties": {"b": {"enum": 3}}}, {"b": "example"}),
        ({"anyOf": {"a": 1}}, "example"),
    ],
)
def test_arguments_for_schemas_of_all_kinds(schema: Any, arguments: Any) -> None:
    parameters = {"type": "object", "properties": {"a": schema}}
    found = parsed(replay("hermes"), Generation(messages=[USER], tools=tools({"name": "f", "parameters": parameters})))
    assert json.loads(found.tool_calls[0].function.arguments) == {"a": arguments}


def test_a_long_prompt_is_not_tokenized():
    engine = replay("hermes")
    asked: list[int] = []
    encode = engine.tokenizer.encode

    def counted(text: str, **options: Any) -> list[int]:
        asked.append(len(text))
        return encode(text, **options)

    engine.tokenizer.encode = counted  # type: ignore[method-assign]

    async def act() -> None:
        found = [chunk async for chunk in engine.generate(Job(id="1", model="m", prompt="word " * 2_000_000))]
        assert found[-1].usage is not None
        assert found[-1].usage.prompt_tokens == 2_500_000
        assert asked == []

    asyncio.run(act())
