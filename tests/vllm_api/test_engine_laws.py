"""The laws on hand-written configs, over anything a model may write: no exception, no loss, the same in every cut."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate._internal.jsontext.well_formed import is_json
from untemplate._internal.machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, NAME_TEXT, REASONING_TEXT
from untemplate.vllm_api import EventType, ParserEngine, StreamingParserEngine

from .parser_examples import Tokenizer, hermes, message, qwen_coder, tool

TOOLS = [tool("get", city={"type": "string"}, days={"type": "integer"}, where={"type": "object"})]
CONFIGS = {"hermes": hermes(), "qwen_coder": qwen_coder(), "whole": qwen_coder(stream_arg_deltas=False)}
SPECIAL = ("<think>", "</think>", "<tool_call>", "</tool_call>")

fragments = st.sampled_from(
    [
        *SPECIAL,
        "<function=get>",
        "<function=",
        "</function>",
        "<parameter=city>",
        "<parameter=days>\n",
        "<parameter=",
        "</parameter>",
        ">",
        '{"name": "get", "arguments": ',
        '{"city": "Rome',
        '"days": 3, ',
        "{}",
        "}",
        '"',
        "\\",
        "\n",
        "  ",
        "12",
        "Hello",
        "é😀\ud800",
        "\x00",
    ]
)
outputs = st.lists(fragments, max_size=14).map("".join)


def cut(text, sizes):
    pieces = []
    for size in sizes:
        pieces.append(text[:size])
        text = text[size:]
    return [*pieces, text]


def parser(config):
    return ParserEngine(Tokenizer(), TOOLS, parser_engine_config=config, make_id=lambda name, index: str(index))


def streamed(config, pieces, request=None):
    engine = parser(config)
    deltas = [engine.parse_delta(piece, [], request, finished=False) for piece in pieces]
    return message([*deltas, engine.parse_delta("", [], request, finished=True)])


@pytest.mark.parametrize("config", CONFIGS)
@settings(max_examples=150, deadline=None)
@given(raw=outputs, sizes=st.lists(st.integers(0, 9), max_size=20))
def test_every_cut_gives_the_same_message(config, raw, sizes):
    expected = streamed(CONFIGS[config], [raw])
    assert streamed(CONFIGS[config], cut(raw, sizes)) == expected
    assert streamed(CONFIGS[config], list(raw)) == expected
    # A cut call is content of a whole output, and of a stream whose end does not show the cut.
    reasoning, content, calls = parser(CONFIGS[config]).parse(raw)
    whole = {
        "reasoning": reasoning or "",
        "content": content or "",
        "calls": [(call.id, call.name, call.arguments) for call in calls or ()],
    }
    assert streamed(CONFIGS[config], cut(raw, sizes), {"stop": ["x"]}) == whole
    if whole != expected:
        assert whole["calls"] == expected["calls"][:-1]
        assert not is_json(expected["calls"][-1][2])
        assert whole["content"].startswith(expected["content"])


@pytest.mark.parametrize("config", ["hermes", "qwen_coder"])
@settings(max_examples=150, deadline=None)
@given(raw=outputs, sizes=st.lists(st.integers(0, 9), max_size=20))
def test_the_ledger_adds_up(config, raw, sizes):
    engine = StreamingParserEngine(CONFIGS[config])
    engine._machine.ledger.spans = []
    events = [event for piece in cut(raw, sizes) for event in engine.feed(piece)] + engine.finish()
    spans = engine._machine.ledger.spans
    assert [start for _, start, _ in spans] + [len(raw)] == [0] + [end for _, _, end in spans]
    for kind, event_type in (
        (CONTENT_TEXT, EventType.TEXT_CHUNK),
        (REASONING_TEXT, EventType.REASONING_CHUNK),
        (NAME_TEXT, EventType.TOOL_NAME),
        (ARGUMENT_TEXT, EventType.ARG_VALUE_CHUNK),
    ):
        told = "".join(event.value for event in events if event.type is event_type)
        assert told == "".join(raw[start:end] for what, start, end in spans if what == kind)
    assert [(d.start, d.end) for d in engine.dropped] == [(a, b) for what, a, b in spans if what == DROPPED]
    assert all(d.text == raw[d.start : d.end] for d in engine.dropped)


@pytest.mark.parametrize("config", CONFIGS)
@settings(max_examples=75, deadline=None)
@given(raw=outputs)
def test_deltas_of_a_prefix_are_a_prefix(config, raw):
    """Before the end, nothing is emitted that more text would make wrong."""
    engine = parser(CONFIGS[config])
    whole = streamed(CONFIGS[config], [raw])
    said = []
    for c in raw:
        said.append(engine.parse_delta(c, [], finished=False))
        found = message(said)
        assert whole["reasoning"].startswith(found["reasoning"])
        assert whole["content"].startswith(found["content"])
        for call, final in zip(found["calls"], whole["calls"], strict=False):
            assert call[:2] == final[:2]
            assert final[2].startswith(call[2])
        assert len(found["calls"]) <= len(whole["calls"])


@settings(max_examples=150, deadline=None)
@given(city=st.text(alphabet=st.sampled_from('ab<>/"\\{}[]:,\n é😀'), max_size=30), days=st.integers())
def test_arguments_come_back(city, days):
    value = city.replace("</", "< /")
    raw = (
        f"<tool_call>\n<function=get>\n<parameter=city>\n{value}\n</parameter>\n<parameter=days>\n{days}\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    if "<parameter" in value or "<function" in value:
        return
    calls = streamed(CONFIGS["qwen_coder"], list(raw))["calls"]
    assert json.loads(calls[0][2]) == {"city": value, "days": days}
    body = json.dumps({"name": "get", "arguments": {"city": city, "days": days}}, ensure_ascii=False)
    calls = streamed(CONFIGS["hermes"], list(f"<tool_call>{body}</tool_call>"))["calls"]
    assert json.loads(calls[0][2]) == {"city": city, "days": days}


SLOW = 20_000


@pytest.mark.parametrize(
    "piece",
    ["<tool_call>", "</tool_call>", "<think>", "</think>", " ", "<", '"', "{", "\\", '<tool_call>{"name": "f"}'],
)
def test_much_of_the_same(piece):
    """Takes seconds if the time is linear, hours if it is not."""
    raw = piece * SLOW
    content = parser(CONFIGS["hermes"]).parse(f"<tool_call>{raw}")[1]
    found = streamed(CONFIGS["hermes"], [raw[i : i + 7] for i in range(0, len(raw), 7)])
    assert content or found["calls"] or found["reasoning"] or found["content"] or "think" in piece
