"""Checks that need no given text: what every response must keep, whatever the model writes.

A check that depends on the model is repeated. Its figures come with an interval, and a difference is reported as the
server's only if no output of a model could excuse it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from .._internal.jsontext.equality import equal_texts
from .._internal.schemas.validation import Validator
from ._cases import TOOLS, is_clean, message_of
from ._compare import compare, is_object
from ._model import Message, Observation, Result
from ._session import ServerCheck, Session
from ._statistics import share

WEATHER: Final = "What is the weather in Rome? Use the tool."
TWO: Final = "What is the weather in Oslo, and what in Bergen? Use the tool for both."
STORY: Final = "Tell me about the sea in three sentences."
_RAW: Final = {"content": (STORY, ()), "a call": (WEATHER, TOOLS[:1]), "two calls": (TWO, TOOLS[:1])}
"""Questions that are asked through Chat and through Completions, with their tools."""
_ARGUMENTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "text": ("get_weather", {"city": "Bad Ems"}),
    "all types": (
        "book",
        {"who": {"name": "Ada", "age": 36}, "stops": ["Ulm", "Bonn"], "price": 12.5, "window": True, "note": None},
    ),
    "quotes and lines": ("write_file", {"path": 'a "b" \\ c', "text": "one\n\ttwo\n"}),
    "markup": ("write_file", {"path": "a.html", "text": "<b>bold</b> & </tool_call> {x}"}),
    "unicode": ("get_weather", {"city": "São Paulo 東京"}),
}
"""Calls that a schema with constants forces, by name."""

Fill = Callable[[Session, Result], Awaitable[None]]


def checks(repeat: int) -> Iterator[ServerCheck]:
    """Yield the checks, each with its name."""
    found: dict[str, Fill] = {
        "stream equals whole": _streams,
        "tool choice/none": _choice_none,
        "tool choice/required": partial(_choice, choice="required"),
        "tool choice/named": partial(_choice, choice={"type": "function", "function": {"name": "get_time"}}),
        "parallel calls": _parallel,
        "cut/length": _cut,
        "cut/in a call": _cut_call,
        "stop/in content": _stop,
        "stop/in arguments": _stop_in_arguments,
        "stop/in reasoning": _stop_in_reasoning,
        "choices": _choices,
        "usage": _usage,
        "reasoning field": _reasoning_field,
        "history": _history,
        "model luck": partial(_luck, repeat=repeat),
    }
    for name, (text, tools) in _RAW.items():
        found[f"raw text/{name}"] = partial(_raw, text=text, tools=tools)
    for name, (tool, arguments) in _ARGUMENTS.items():
        found[f"schema/{name}"] = partial(_schema, tool=tool, arguments=arguments)
    for name, body in _ERRORS.items():
        found[f"errors/{name}"] = partial(_error, wrong=body)
    for name, fill in found.items():
        yield f"behaviour/{name}", partial(_one, f"behaviour/{name}", fill)


async def _one(name: str, fill: Fill, session: Session) -> list[Result]:
    result = Result(id=name, verdict="pass")
    return [await session.judged(result, fill(session, result))]


def _fail(result: Result, reason: str, seen: Observation | None = None) -> None:
    result.verdict, result.reason = "fail", reason
    if seen is not None:
        result.got, result.raw = msgspec.to_builtins(seen.message), seen.raw


def _cannot(result: Result, reason: str) -> None:
    result.verdict, result.reason = "cannot", reason


def _check_protocol(result: Result, *seen: Observation) -> None:
    for one in seen:
        if one.problems:
            _fail(result, one.problems[0], one)


# -- Streams ------------------------------------------------------------------------------------------------------


async def _streams(session: Session, result: Result) -> None:
    """The same request gets the same message, whole and streamed."""
    for text, tools in ((STORY, None), (WEATHER, [TOOLS[0]]), (TWO, [TOOLS[0]])):
        body = session.request(text, tools=tools, max_tokens=200, seed=1)
        whole = await session.chat(body)
        streamed = await session.chat(body, stream=True)
        _check_protocol(result, whole, streamed)
        verdict, reason = compare(whole.message, streamed.message)
        if verdict == "fail":
            again = await session.chat(body)
            if compare(whole.message, again.message)[0] == "fail":
                return _cannot(result, "the model does not repeat itself at temperature 0")
            result.expected = msgspec.to_builtins(whole.message)
            return _fail(result, f"streamed, the message is another one than whole: {reason}", streamed)
    return None


# -- Tools --------------------------------------------------------------------------------------------------------


async def _choice_none(session: Session, result: Result) -> None:
    seen = await session.chat(session.request(WEATHER, tools=[TOOLS[0]], tool_choice="none", max_tokens=200))
    if seen.message.calls or seen.message.finish_reason == "tool_calls":
        _fail(result, "tool_choice is none, and a call came", seen)


async def _choice(session: Session, result: Result, *, choice: Any) -> None:
    """With a required or named tool there is a call; of a named one, only that."""
    for stream in (False, True):
        body = session.request(STORY, tools=list(TOOLS[:2]), tool_choice=choice, max_tokens=300)
        seen = await session.chat(body, stream=stream)
        _check_protocol(result, seen)
        if seen.message.finish_reason == "length":
            return _cannot(result, "the model does not end its call within 300 tokens")
        problems = _call_problems(seen.message, list(TOOLS[:2]))
        named = choice["function"]["name"] if isinstance(choice, dict) else ""
        if not seen.message.calls:
            problems = [f"tool_choice is {named or choice}, and no call came"]
        elif named and any(call.name != named for call in seen.message.calls):
            problems = [f"tool_choice names {named}, and {seen.message.calls[0].name!r} was called"]
        if problems:
            return _fail(result, problems[0], seen)
    return None


def _call_problems(message: Message, tools: list[Any]) -> list[str]:
    validator = Validator(tools)
    return [
        f"call of {call.name!r}: {problem}"
        for call in message.calls
        for problem in validator.check(call.name, call.arguments)
    ]


async def _parallel(session: Session, result: Result) -> None:
    for stream in (False, True):
        body = session.request(TWO, tools=[TOOLS[0]], parallel_tool_calls=False, max_tokens=300)
        seen = await session.chat(body, stream=stream)
        if len(seen.message.calls) > 1:
            return _fail(result, f"parallel_tool_calls is false, and {len(seen.message.calls)} calls came", seen)
    return None


async def _schema(session: Session, result: Result, *, tool: str, arguments: dict[str, Any]) -> None:
    """A schema of constants and a required call force the arguments, whatever the model would like."""
    offered = _constants(tool, arguments)
    body = session.request(WEATHER, tools=[offered], tool_choice="required", max_tokens=600)
    wanted = json.dumps(arguments)
    seen = None
    for stream in (False, True):
        seen = await session.chat(body, stream=stream)
        _check_protocol(result, seen)
        calls = seen.message.calls
        if calls and calls[0].name == tool and equal_texts(calls[0].arguments, wanted):
            continue
        if seen.message.finish_reason == "length":
            return _cannot(result, "the model does not end its call within 600 tokens")
        if not stream:
            return _cannot(result, "this server does not enforce the schema of a required call, or alters its text")
        result.expected = wanted
        return _fail(result, "streamed, the arguments are other ones than whole", seen)
    return None


def _constants(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {key: {"const": value} for key, value in arguments.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": tool, "description": tool, "parameters": parameters}}


# -- Ends ---------------------------------------------------------------------------------------------------------


async def _cut(session: Session, result: Result) -> None:
    """An output that is cut by max_tokens has the finish reason length, whole and streamed."""
    for stream in (False, True):
        seen = await session.chat(session.request(STORY, max_tokens=3), stream=stream)
        if seen.message.finish_reason != "length":
            return _fail(result, f"cut by max_tokens, finish_reason is {seen.message.finish_reason!r}", seen)
    return None


async def _cut_call(session: Session, result: Result) -> None:
    """A call that is cut is not reported as whole: neither by its arguments nor by the finish reason."""
    offered = _constants(*_ARGUMENTS["all types"])
    wanted = json.dumps(_ARGUMENTS["all types"][1])
    body = session.request(WEATHER, tools=[offered], tool_choice="required", max_tokens=600)
    whole = await session.chat(body)
    used = (whole.usage or {}).get("completion_tokens")
    if not isinstance(used, int) or len(whole.message.calls) != 1 or whole.message.finish_reason == "length":
        return _cannot(result, "no whole call came to be cut, or its tokens are not counted")
    for stream in (False, True):
        seen = await session.chat({**body, "max_tokens": max(1, used - 8)}, stream=stream)
        if seen.message.finish_reason != "length":
            return _fail(result, f"a cut call came with the finish_reason {seen.message.finish_reason!r}", seen)
        for call in seen.message.calls:
            if is_object(call.arguments) and not equal_texts(call.arguments, wanted):
                result.expected = wanted
                return _fail(result, "a cut call came with arguments that look complete", seen)
    return None


async def _stop(session: Session, result: Result) -> None:
    """A stop string ends the content before it, with the finish reason stop."""
    body = session.request(STORY, max_tokens=120)
    message = (await session.chat(body)).message
    stop = _word(message.content, message.reasoning)
    if not stop:
        return _cannot(result, "the model writes too little content")
    wanted = message.content[: message.content.index(stop)]
    for stream in (False, True):
        seen = await session.chat({**body, "stop": [stop]}, stream=stream)
        if seen.message.content.rstrip() != wanted.rstrip():
            result.expected = wanted
            return _fail(result, f"the content does not end before the stop string {stop!r}", seen)
        if seen.message.finish_reason != "stop":
            return _fail(result, f"at a stop string, finish_reason is {seen.message.finish_reason!r}", seen)
    return None


async def _stop_in_reasoning(session: Session, result: Result) -> None:
    """A stop string that only the reasoning contains leaves the content alone; OpenAI's reference does not decide."""
    body = session.request(STORY, max_tokens=120)
    message = (await session.chat(body)).message
    stop = _word(message.reasoning, message.content)
    if not stop or not message.content:
        return _cannot(result, "the model does not reason here")
    seen = await session.chat({**body, "stop": [stop]})
    if seen.message.content != message.content:
        _fail(result, f"the stop string {stop!r} ends the output inside reasoning", seen)
        result.verdict = "soft"
    return None


def _word(text: str, other: str) -> str:
    """Return a word from the middle of a text, with the space before it, that the other text does not contain."""
    words = [f" {word}" for word in text.split(" ")[2:] if word.isalpha() and f" {word}" not in other]
    return words[len(words) // 2] if words else ""


async def _stop_in_arguments(session: Session, result: Result) -> None:
    """A stop string inside arguments does not leave a call that claims to be whole."""
    offered = _constants("write_file", {"path": "a.txt", "text": "one HALT two"})
    body = session.request(WEATHER, tools=[offered], tool_choice="required", max_tokens=300, stop=["HALT"])
    for stream in (False, True):
        seen = await session.chat(body, stream=stream)
        problems = _call_problems(seen.message, [offered])
        if problems and seen.message.finish_reason == "tool_calls":
            return _fail(result, f"a stop string cut a call, and finish_reason is 'tool_calls': {problems[0]}", seen)
    return None


# -- The rest of the response -------------------------------------------------------------------------------------


async def _choices(session: Session, result: Result) -> None:
    for stream in (False, True):
        seen = await session.chat(session.request(STORY, n=2, max_tokens=8, temperature=0.7), stream=stream)
        if seen.choices != 2:
            return _fail(result, f"n is 2, and {seen.choices} choices came{' in a stream' if stream else ''}", seen)
    return None


async def _usage(session: Session, result: Result) -> None:
    """Usage adds up, counts no more than max_tokens, and is the same streamed."""
    body = session.request(STORY, max_tokens=5)
    counted = []
    for stream in (False, True):
        seen = await session.chat(
            {**body, **({"stream_options": {"include_usage": True}} if stream else {})}, stream=stream
        )
        usage = seen.usage or {}
        numbers = [usage.get(f"{name}_tokens") for name in ("prompt", "completion", "total")]
        prompt, completion, total = (number if isinstance(number, int) else -1 for number in numbers)
        if min(prompt, completion, total) < 0:
            return _fail(result, f"{'streamed' if stream else 'whole'}, the usage is {json.dumps(usage)[:100]}")
        if prompt + completion != total or completion > 5:
            return _fail(result, f"the usage does not add up: {json.dumps(usage)[:100]} with max_tokens 5")
        counted.append([prompt, completion])
    if counted[0] != counted[1]:
        _fail(result, f"prompt and completion have {counted[0]} tokens whole, and {counted[1]} streamed")
    return None


async def _reasoning_field(session: Session, result: Result) -> None:
    """Reasoning is in a field of the same name, whole and streamed."""
    if not session.parser.has_reasoning:
        return _cannot(result, "the model's format has no reasoning")
    body = session.request(STORY, max_tokens=100)
    names = []
    for stream in (False, True):
        seen = await session.chat(body, stream=stream)
        names.append(sorted(seen.fields & {"reasoning", "reasoning_content"}))
    if not any(names):
        return _cannot(result, "the model does not reason here")
    if names[0] != names[1]:
        return _fail(result, f"reasoning is in {names[0]} whole, and in {names[1]} streamed")
    result.reason = f"in {' and '.join(names[0])}"
    return None


async def _history(session: Session, result: Result) -> None:
    """A conversation with a call and its result is taken."""
    call = {"id": "callid001", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    messages = [
        {"role": "user", "content": WEATHER},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "callid001", "content": "Sunny, 24 degrees."},
    ]
    answer = await session.answer(session.request(tools=[TOOLS[0]], max_tokens=60, messages=messages))
    if not answer.ok:
        _fail(result, f"a conversation with a call and its result is refused: {answer.problem}")


_ERRORS: Final[dict[str, Any]] = {
    "not JSON": b"{not json",
    "no messages": {"messages": None},
    "messages of another type": {"messages": "hello"},
    "an unknown role": {"messages": [{"role": "wizard", "content": "hello"}]},
    "a negative max_tokens": {"max_tokens": -7},
}


async def _error(session: Session, result: Result, *, wrong: Any) -> None:
    """A wrong request gets a 4xx with an error object that has a message."""
    body = wrong if isinstance(wrong, bytes) else {"model": session.found.model, **session.request(), **wrong}
    answer = await session.post("/chat/completions", body)
    if answer.status >= 500:
        return _fail(result, f"a wrong request is an error of the server: {answer.problem}")
    if answer.ok and isinstance(answer.value, dict) and answer.value.get("error"):
        return _fail(result, f"an error came with the status 200: {json.dumps(answer.value['error'])[:160]}")
    if answer.ok:
        result.verdict, result.reason = "soft", "a wrong request is answered as if it were right"
        return None
    error = answer.value.get("error", answer.value) if isinstance(answer.value, dict) else None
    if not (isinstance(error, dict) and isinstance(error.get("message"), str)):
        result.verdict, result.reason = "soft", f"the error has no message in OpenAI's shape: {answer.text[:100]!r}"
    return None


# -- The raw text -------------------------------------------------------------------------------------------------


async def _raw(session: Session, result: Result, *, text: str, tools: Sequence[Any]) -> None:
    """Completions shows what the model writes after the prompt of a chat request; Chat makes that message of it."""
    if "completions" not in session.found.apis:
        return _cannot(result, "this server has no API completions")
    body = session.request(text, tools=list(tools) or None, max_tokens=200)
    prompt = await session.prompt(body)
    if prompt is None:
        return _cannot(result, "this server does not show its prompts")
    raw = await session.complete(prompt, max_tokens=200)
    result.raw = raw.message.content
    for stream in (False, True):
        asked = {**body, "stream_options": {"include_usage": True}} if stream else body
        seen = await session.chat(asked, stream=stream)
        _check_protocol(result, seen)
        other = _other_output(raw, seen)
        if other:
            return _cannot(result, other)
        written, reason = result.raw.strip().removesuffix(session.ending), raw.message.finish_reason
        parsed = session.parser.parse(written, tools=tools, prompt=prompt.text, finish_reason=reason)
        ours = message_of(parsed)
        verdict, difference = compare(ours, seen.message)
        if verdict == "fail":
            _fail(result, f"{'streamed' if stream else 'whole'}, {difference}")
            result.got, result.expected = msgspec.to_builtins(seen.message), msgspec.to_builtins(ours)
            if reason != "stop" or not is_clean(session.parser, written, ours, tools):
                result.verdict = "soft"
            return None
    return None


def _other_output(raw: Observation, seen: Observation) -> str:
    """Return the reason why the tokens of two responses may differ; empty if they are the same ones, or as many."""
    if raw.token_ids is not None and seen.token_ids is not None:
        same = raw.token_ids == seen.token_ids
    elif raw.usage is None or seen.usage is None:
        return "the server reports neither token ids nor usage, so the two outputs may differ"
    else:
        counts = [[one.get(f"{part}_tokens") for part in ("prompt", "completion")] for one in (raw.usage, seen.usage)]
        same = counts[0] == counts[1]
    return "" if same else "the model writes other tokens through Completions than through Chat"


# -- The model's luck ---------------------------------------------------------------------------------------------


async def _luck(session: Session, result: Result, *, repeat: int) -> None:
    """Ask for calls again and again: figures of the model, agreement of calls and finish reason, and agreement with
    untemplate's reading of the raw output, where the server reports it."""
    called = valid = agreed = read = alike = 0
    for number in range(repeat):
        text = f"What is the weather in {('Rome', 'Oslo', 'Lima', 'Bonn', 'Kyoto')[number % 5]}? Use the tool."
        body = session.request(text, tools=[TOOLS[0]], max_tokens=300, temperature=0.6, seed=number)
        body |= session.thinking(True)
        logs = session.found.logprobs and session.found.server in _LOG_ALL
        seen = await session.chat({**body, "logprobs": True} if logs else body, stream=not logs and bool(number % 2))
        _check_protocol(result, seen)
        message = seen.message
        called += bool(message.calls)
        valid += bool(message.calls) and not _call_problems(message, [TOOLS[0]])
        agrees = message.finish_reason == "length" or bool(message.calls) == (message.finish_reason == "tool_calls")
        agreed += agrees
        ours = _read_again(session, seen)
        read += ours is not None
        alike += ours is not None and compare(ours, message)[0] != "fail"
        if not agrees:
            _fail(result, f"{len(message.calls)} calls came with the finish_reason {message.finish_reason!r}", seen)
    result.counts = {
        "outputs with calls": share(called, repeat),
        "of these valid": share(valid, called),
        "finish reason agrees": share(agreed, repeat),
        "read as untemplate reads the raw text": share(alike, read),
    }
    if alike < read and result.verdict == "pass":
        result.verdict, result.reason = "soft", f"{read - alike} of {read} outputs are read in another way"


_LOG_ALL: Final = frozenset(("vllm", "sglang", "llama.cpp"))
"""Servers whose log probabilities are those of all tokens, markup included."""


def _read_again(session: Session, seen: Observation) -> Message | None:
    """Return untemplate's reading of the raw output; ``None`` if the server does not report it."""
    raw = seen.raw if seen.raw is not None else seen.logged
    if raw is None or (seen.raw is None and session.found.server not in _LOG_ALL):
        return None
    text = raw.strip().removesuffix(session.ending)
    reason = "length" if seen.message.finish_reason == "length" else "stop"
    prompt = session.starts[True].prompt
    return message_of(session.parser.parse(text, tools=[TOOLS[0]], prompt=prompt, finish_reason=reason))
