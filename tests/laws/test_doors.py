"""A law for every door: whatever way an output comes in, it is the same message whole and streamed.

Each door takes an output whole, or in any pieces, after the same prompt. For all formats of the catalogue, sampled here
and with every cut in `make laws` (50 minutes of CPU time):

* A stream has the same message under every split, and the whole parse has it too. The one exception is a call that the
  output was cut in, at the doors of vLLM's interface, where a stream cannot take back what it has sent.
* Nothing is lost at the end. A word of the message is somewhere in it, also after a cut.
* A cut call is not a call to run: in vLLM's interface it is not among the calls of a whole output, and `OutputParser`
  has another finish reason and status for it.
* `None` only comes from a parser that parses nothing.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.vllm_api.parser_examples import Tokenizer, hermes, message, qwen_coder
from untemplate import OutputParser
from untemplate._internal.render import expressible, render
from untemplate.batch import parse_many
from untemplate.format import Format
from untemplate.formats import named, names
from untemplate.messages import DeltaMessage
from untemplate.vllm_api import (
    DelegatingParser,
    Parser,
    ParserEngine,
    ReasoningParserManager,
    ToolParserManager,
    _WrappedParser,
)
from untemplate.vllm_api._format_parsers import parser_class, reasoning_class, tool_class

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        },
    }
]
REQUEST = {"messages": [], "tools": TOOLS}
CALLS = [
    {"id": f"callid00{number}", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    for number, arguments in enumerate(({"city": "Vladivostok", "days": 3}, {"city": "Reykjavik"}))
]
MESSAGES: list[dict[str, Any]] = [
    {"content": "Rainbows everywhere, dear."},
    {"reasoning": "Wondering about it.", "content": "Rainbows everywhere."},
    {"content": "Looking now.", "tool_calls": CALLS},
    {"reasoning": "Wondering about it.", "content": "", "tool_calls": CALLS},
    {"content": "", "tool_calls": CALLS[:1]},
]
Message = dict[str, Any]


class Case(NamedTuple):
    """One output after one prompt."""

    text: str
    prompt: str
    tokenizer: Any


def as_message(reasoning: str | None, content: str | None, calls: Any) -> Message:
    found = [("", call.name, call.arguments) for call in calls or ()]
    return {"reasoning": reasoning or "", "content": content or "", "calls": found}


def added(deltas: list[DeltaMessage | None]) -> Message:
    found = message([delta for delta in deltas if delta is not None and delta != DeltaMessage()])
    return {**found, "calls": [("", *call[1:]) for call in found["calls"]]}


# -- doors --------------------------------------------------------------------------------------------------------


class Door(NamedTuple):
    """A way in: a whole output, and one in pieces."""

    whole: Callable[[Format, Case], Message]
    streamed: Callable[[Format, Case, list[str]], Message]


def of_parsed(parsed: Any) -> Message:
    return as_message(parsed.reasoning, parsed.content, [call.function for call in parsed.tool_calls])


def own(fmt: Format, case: Case) -> OutputParser:
    return OutputParser.from_format(fmt, tokenizer=case.tokenizer)


def own_whole(fmt: Format, case: Case) -> Message:
    parsed = own(fmt, case).parse(case.text, tools=TOOLS, prompt=case.prompt)
    cut = [call for call in parsed.tool_calls if call.status == "incomplete"]
    assert parsed.tools_called == (len(parsed.tool_calls) > len(cut))
    assert parsed.finish_reason == ("tool_calls" if parsed.tool_calls and parsed.tool_calls[-1] not in cut else "stop")
    return of_parsed(parsed)


def own_stream(fmt: Format, case: Case, pieces: list[str]) -> Message:
    stream = own(fmt, case).stream(tools=TOOLS, prompt=case.prompt)
    deltas: list[DeltaMessage | None] = [delta for piece in pieces for delta in stream.feed(piece)]
    return added(deltas + stream.finish("stop"))


def ids_of(case: Case) -> list[int]:
    return [token for _, ids in case.tokenizer.pieces(case.prompt) for token in ids]


def parser_whole(make: Callable[[Format, Any], Any], fmt: Format, case: Case) -> Message:
    parser = make(fmt, case.tokenizer)
    parser.set_prompt_token_ids(ids_of(case))
    return as_message(*parser.parse(case.text, REQUEST))


def parser_stream(make: Callable[[Format, Any], Any], fmt: Format, case: Case, pieces: list[str]) -> Message:
    parser = make(fmt, case.tokenizer)
    deltas = [parser.parse_delta(piece, [], REQUEST, ids_of(case), finished=False) for piece in pieces]
    return added([*deltas, parser.parse_delta("", [], REQUEST, ids_of(case), finished=True)])


def halves_set(cls: type[Any], fmt: Format, tokenizer: Any) -> Any:
    parser = cls(tokenizer)
    parser.reasoning_parser = reasoning_class(fmt)(tokenizer)
    parser.tool_parser = tool_class(fmt)(tokenizer)
    return parser


def subclass(fmt: Format, tokenizer: Any) -> Any:
    class Own(Parser):
        def __init__(self, tokenizer: Any) -> None:
            self.model_tokenizer = tokenizer
            self.reasoning_parser = reasoning_class(fmt)(tokenizer)
            self.tool_parser = tool_class(fmt)(tokenizer)

    return Own(tokenizer)


def wrapped(fmt: Format, tokenizer: Any) -> Any:
    halves = {"reasoning_parser_cls": reasoning_class(fmt), "tool_parser_cls": tool_class(fmt)}
    return type("Wrapped", (_WrappedParser,), halves)(tokenizer)


def one_half(kind: str, fmt: Format, tokenizer: Any) -> Any:
    parser = DelegatingParser(tokenizer)
    if kind == "reasoning":
        parser.reasoning_parser = reasoning_class(fmt)(tokenizer)
    else:
        parser.tool_parser = tool_class(fmt)(tokenizer)
    return parser


def foreign_class(half: type[Any], renamed: dict[str, str]) -> type[Any]:
    """Return a half of somebody else: only the methods of vLLM's interface, under the given names."""

    def make(self: Any, tokenizer: Any, *_: Any) -> None:
        self.half = half(tokenizer)

    def method(name: str) -> Callable[..., Any]:
        return lambda self, *args: getattr(self.half, name)(*args)

    methods = {
        renamed.get(name, name): method(name)
        for name in (
            "extract_reasoning",
            "extract_reasoning_streaming",
            "extract_tool_calls",
            "extract_tool_calls_streaming",
            "is_reasoning_end",
            "extract_content_ids",
            "adjust_initial_state_from_prompt",
            "finish_streaming",
        )
        if hasattr(half, name)
    }
    return type("Foreign", (), {**methods, "__init__": make, "reads_prompts": half.reads_prompts})


OLD = {
    "extract_reasoning": "extract_reasoning_content",
    "extract_reasoning_streaming": "extract_reasoning_content_streaming",
}


def foreign(renamed: dict[str, str], fmt: Format, tokenizer: Any) -> Any:
    parser = DelegatingParser(tokenizer)
    parser.reasoning_parser = foreign_class(reasoning_class(fmt), renamed)(tokenizer)
    parser.tool_parser = foreign_class(tool_class(fmt), renamed)(tokenizer)
    return parser


def registered(renamed: dict[str, str], fmt: Format, tokenizer: Any) -> OutputParser:
    """Return the `OutputParser` of two names that are registered for classes of somebody else."""
    ReasoningParserManager.register_module("door", True, foreign_class(reasoning_class(fmt), renamed))
    ToolParserManager.register_module("door", True, foreign_class(tool_class(fmt), renamed))
    return OutputParser(tokenizer, reasoning_parser_name="door", tool_parser_name="door")


def registered_whole(renamed: dict[str, str], fmt: Format, case: Case) -> Message:
    return of_parsed(registered(renamed, fmt, case.tokenizer).parse(case.text, tools=TOOLS, prompt=ids_of(case)))


def registered_stream(renamed: dict[str, str], fmt: Format, case: Case, pieces: list[str]) -> Message:
    stream = registered(renamed, fmt, case.tokenizer).stream(tools=TOOLS, prompt=ids_of(case))
    deltas: list[DeltaMessage | None] = [delta for piece in pieces for delta in stream.feed(piece)]
    return added(deltas + stream.finish("stop"))


@pytest.fixture(autouse=True)
def _no_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for manager in (ReasoningParserManager, ToolParserManager):
        monkeypatch.setattr(manager, "_registered", {})


def of_vllm(make: Callable[[Format, Any], Any]) -> Door:
    return Door(partial(parser_whole, make), partial(parser_stream, make))


OWN: dict[str, Callable[[Format, Case, list[str]], Message]] = {}
"""Other ways to the message of `OutputParser`, in pieces or not."""


def own_way(function: Callable[[Format, Case, list[str]], Message]) -> Callable[[Format, Case, list[str]], Message]:
    OWN[function.__name__] = function
    return function


@own_way
def stream(fmt: Format, case: Case, pieces: list[str]) -> Message:
    return own_stream(fmt, case, pieces)


@own_way
def parse_streaming(fmt: Format, case: Case, pieces: list[str]) -> Message:
    parser = own(fmt, case)
    previous, deltas = "", []
    for piece in pieces:
        if piece:
            deltas.append(parser.parse_streaming(previous, previous + piece, piece, request=REQUEST))
            assert deltas[-1] is not None
            previous += piece
    return added([*deltas, parser.finish_streaming()])


@own_way
def batch(fmt: Format, case: Case, pieces: list[str]) -> Message:
    (record,) = parse_many([{"output": case.text, "prompt": case.prompt, "tools": TOOLS}], fmt)
    found = record.message
    assert found is not None
    calls = [SimpleNamespace(**call["function"]) for call in found.get("tool_calls", ())]
    return as_message(found.get("reasoning"), found["content"], calls)


def in_tokens(case: Case) -> tuple[list[str], list[list[int]]]:
    pieces = case.tokenizer.pieces(case.text)
    return [text for text, _ in pieces], [ids for _, ids in pieces]


def tokens_parsed(fmt: Format, case: Case) -> Message:
    parser = own(fmt, case)
    ids = [token for one in in_tokens(case)[1] for token in one]
    return of_parsed(parser.parse_tokens(ids, tools=TOOLS, prompt=case.prompt).output)


def tokens_with_text(fmt: Format, case: Case) -> Message:
    ids = [token for one in in_tokens(case)[1] for token in one]
    return of_parsed(own(fmt, case).parse(case.text, token_ids=ids, tools=TOOLS, prompt=case.prompt))


def tokens_streamed(fmt: Format, case: Case) -> Message:
    stream = own(fmt, case).stream(tools=TOOLS, prompt=case.prompt)
    deltas = [delta for text, ids in zip(*in_tokens(case), strict=True) for delta in stream.feed(text, ids)]
    return added([*deltas, *stream.finish("stop")])


def tokens_streamed_bare(fmt: Format, case: Case) -> Message:
    stream = own(fmt, case).stream(tools=TOOLS, prompt=case.prompt)
    deltas = [delta for ids in in_tokens(case)[1] for delta in stream.feed_tokens(ids)]
    return added([*deltas, *stream.finish("stop")])


WITH_IDS = (tokens_parsed, tokens_with_text, tokens_streamed, tokens_streamed_bare)
"""Ways that take token ids, with their text or without it."""


VLLM: dict[str, Door] = {
    "FormatParser": of_vllm(lambda fmt, tokenizer: parser_class(fmt)(tokenizer)),
    "DelegatingParser, halves set": of_vllm(partial(halves_set, DelegatingParser)),
    "Parser, halves set": of_vllm(partial(halves_set, Parser)),
    "a subclass that sets its halves": of_vllm(subclass),
    "_WrappedParser": of_vllm(wrapped),
    "reasoning alone": of_vllm(partial(one_half, "reasoning")),
    "calls alone": of_vllm(partial(one_half, "tool")),
    "foreign halves": of_vllm(partial(foreign, {})),
    "foreign halves, old names": of_vllm(partial(foreign, OLD)),
    "registered classes": Door(partial(registered_whole, {}), partial(registered_stream, {})),
    "registered classes, old names": Door(partial(registered_whole, OLD), partial(registered_stream, OLD)),
}
APART = ("foreign halves", "foreign halves, old names", "registered classes", "registered classes, old names")
"""Doors that pass text from half to half. In messages with channels the reasoning half streams the calls itself; its
method has no tools, so arguments keep the types that they are written with.
"""
ALIKE = (
    "FormatParser",
    "DelegatingParser, halves set",
    "Parser, halves set",
    "a subclass that sets its halves",
    "_WrappedParser",
)
"""Doors that have the same message."""


LONGEST = 16
"""Characters of a piece in the sample. `make laws` has pieces of one character."""

# -- outputs ------------------------------------------------------------------------------------------------------


def outputs(fmt: Format) -> Iterator[str]:
    for one in MESSAGES:
        wire = {"role": "assistant", **one}
        if expressible(fmt, wire, TOOLS) is None:
            yield render(fmt, wire)


def cases(fmt: Format, rng: random.Random | None) -> Iterator[Case]:
    """Yield outputs after prompts: all cuts, or a sample of them."""
    tokenizer = Tokenizer(*fmt.special_tokens)
    turn = fmt.turn.start.text if fmt.turn.start is not None else ""
    prompts = [turn]
    if fmt.reasoning is not None and fmt.reasoning.open is not None:
        prompts.append(turn + fmt.reasoning.open.text)
    for text in outputs(fmt):
        ends = range(1, len(text) + 1) if rng is None else [rng.choice((len(text), rng.randrange(1, len(text) + 1)))]
        for end in ends:
            for prompt in prompts if rng is None else [rng.choice(prompts)]:
                if all(c in tokenizer.get_vocab() for c in _without(prompt, fmt.special_tokens)):
                    opener = prompt.removeprefix(turn)
                    yield Case(text[:end].removeprefix(opener) if opener else text[:end], prompt, tokenizer)


def _without(text: str, special: tuple[str, ...]) -> str:
    pattern = "|".join(map(re.escape, sorted(special, key=len, reverse=True)))
    return re.sub(pattern, "", text) if pattern else text


def in_vocabulary(fmt: Format, case: Case) -> bool:
    """True if the tokenizer has tokens for the whole output."""
    return all(c in case.tokenizer.get_vocab() for c in _without(case.text, fmt.special_tokens))


def pieces_of(text: str, rng: random.Random, most: int) -> list[list[str]]:
    """Return the text in pieces of at most so many characters, and in two."""
    pieces = []
    end = 0
    while end < len(text):
        begin, end = end, end + rng.randint(1, most)
        pieces.append(text[begin:end])
    at = rng.randrange(len(text) + 1)
    return [pieces, [text[:at], text[at:]]]


def _parses_nothing(fmt: Format) -> bool:
    return not (fmt.reasoning or fmt.tools or fmt.channels)


def words(text: str) -> set[str]:
    """Return the words that only messages have, as far as they are whole."""
    known = "Rainbows everywhere Wondering about Looking Vladivostok Reykjavik"
    return {word for word in known.split() if word in text}


def words_of(found: Message) -> set[str]:
    return words("\n".join([found["reasoning"], found["content"], *(call[2] for call in found["calls"])]))


def is_whole(call: tuple[str, str, str]) -> bool:
    try:
        return json.loads(call[2]) in [one["function"]["arguments"] for one in CALLS]
    except ValueError:
        return False


# -- the law ------------------------------------------------------------------------------------------------------


def check(fmt: Format, rng: random.Random | None) -> None:
    choose = rng or random.Random(1)
    most = LONGEST if rng else 1
    for case in cases(fmt, rng):
        told = f"{case.text!r} after {case.prompt!r}"
        expected = own_whole(fmt, case)
        assert words_of(expected) == words(case.text), told
        for pieces in pieces_of(case.text, choose, most):
            for name, way in OWN.items():
                # The documented method takes no prompt, and is `None` if there is nothing to parse.
                if name != "parse_streaming" or not (case.prompt or _parses_nothing(fmt)):
                    assert way(fmt, case, pieces) == expected, f"{name}: {told}"
        if in_vocabulary(fmt, case):
            with_ids = [way(fmt, case) for way in WITH_IDS]
            assert all(one == with_ids[0] for one in with_ids), f"with ids: {told}"
            assert words_of(with_ids[0]) == words(case.text), f"with ids: {told}"
        doors = {name: door for name, door in VLLM.items() if fmt.channels is None or name not in APART}
        found = {name: check_door(name, door, fmt, case, choose, most) for name, door in doors.items()}
        for name in ALIKE:
            assert found[name] == found[ALIKE[0]], f"{name}: {told}"


def check_door(name: str, door: Door, fmt: Format, case: Case, rng: random.Random, most: int) -> Message:
    """Test the law at a door whose callers run each call of a whole output; return that output's message."""
    told = f"{name}: {case.text!r} after {case.prompt!r}"
    whole = door.whole(fmt, case)
    assert words_of(whole) == words(case.text), told
    assert all(map(is_whole, whole["calls"])), told
    streams = [door.streamed(fmt, case, pieces) for pieces in pieces_of(case.text, rng, most)]
    assert all(one == streams[0] for one in streams), told
    check_stream(whole, streams[0], told)
    return whole


def check_stream(whole: Message, streamed: Message, told: str) -> None:
    if streamed == whole:
        return
    # The exception: a part of a cut call has been sent.
    *before, last = streamed["calls"]
    assert not is_whole(last), told
    assert before == whole["calls"], told
    assert streamed["reasoning"] == whole["reasoning"], told
    assert whole["content"].startswith(streamed["content"]), told


CONFIGS = {"hermes": hermes(), "qwen3_coder": qwen_coder()}
"""Format of calls → a config that reads them, with the reasoning of qwen3."""


def check_config(name: str, rng: random.Random | None) -> None:
    def make(fmt: Format, tokenizer: Any) -> ParserEngine:
        return ParserEngine(tokenizer, TOOLS, parser_engine_config=CONFIGS[name])

    fmt = named(name, reasoning="qwen3")
    for case in cases(fmt, rng):
        check_door(f"config of {name}", of_vllm(make), fmt, case, rng or random.Random(1), LONGEST if rng else 1)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config(name: str) -> None:
    for seed in range(20):
        check_config(name, random.Random(seed))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_with_every_cut(name: str) -> None:
    check_config(name, None)


FORMATS = sorted({replace(named(name), name="x"): name for name in names()}.values())
"""One name of each Format."""


@pytest.mark.parametrize("name", FORMATS)
def test_every_door(name: str) -> None:
    check(named(name), random.Random(name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMATS)
def test_every_door_with_every_cut(name: str) -> None:
    check(named(name), None)


def test_none_only_without_a_parser() -> None:
    assert OutputParser.named("passthrough").parse_streaming("", "a", "a") is None
    for name in names():
        parser = OutputParser.named(name)
        if parser.has_reasoning or parser.has_tools:
            for at, letter in enumerate("<a"):
                assert parser.parse_streaming("<a"[:at], "<a"[: at + 1], letter) is not None
