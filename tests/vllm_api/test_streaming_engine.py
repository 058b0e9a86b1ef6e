"""Events of hand-written configs: the same in every cut, nothing lost, ids respected."""

import pytest

from untemplate.vllm_api import (
    EventType,
    ParserEngineConfig,
    ParserState,
    SemanticEvent,
    StreamingParserEngine,
    Transition,
)

from .parser_examples import ARGS, CONTENT, REASONING, Tokenizer, cuts, hermes, qwen_coder

T = EventType
RAW = '<think>a b</think>hi <tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call> bye <to'


def event(kind, value="", index=-1):
    return SemanticEvent(kind, value, index)


def merged(events):
    """Return events with neighbouring texts joined."""
    result = []
    for one in events:
        before = result[-1] if result else None
        if before is not None and one.value and (before.type, before.tool_index) == (one.type, one.tool_index):
            result[-1] = event(one.type, before.value + one.value, one.tool_index)
        else:
            result.append(one)
    return result


def run(config, pieces, tokenizer=None, **settings):
    engine = StreamingParserEngine(config, tokenizer, **settings)
    events = []
    for piece in pieces:
        events += engine.feed(*piece) if isinstance(piece, tuple) else engine.feed(piece, [])
    return merged(events + engine.finish()), engine


def test_events_in_every_cut():
    expected = [
        event(T.REASONING_START),
        event(T.REASONING_CHUNK, "a b"),
        event(T.REASONING_END),
        event(T.TEXT_CHUNK, "hi "),
        event(T.TOOL_CALL_START, "", 0),
        event(T.ARG_VALUE_CHUNK, '\n{"name": "f", "arguments": {"x": 1}}\n', 0),
        event(T.TOOL_CALL_END, "", 0),
        event(T.TEXT_CHUNK, " bye <to"),
    ]
    for pieces in cuts(RAW):
        assert run(hermes(), pieces)[0] == expected


def test_calls_are_numbered_and_terminals_may_be_text():
    raw = "<tool_call><function=f><parameter=a>1</parameter></function></tool_call><function=g></function>"
    expected = [
        event(T.TOOL_CALL_START, "", 0),
        event(T.TOOL_NAME, "f", 0),
        event(T.ARG_VALUE_CHUNK, "<parameter=a>1</parameter>", 0),
        event(T.TOOL_CALL_END, "", 0),
        event(T.TOOL_CALL_START, "", 1),
        event(T.TOOL_NAME, "g", 1),
        event(T.TOOL_CALL_END, "", 1),
    ]
    for pieces in cuts(raw):
        events, engine = run(qwen_coder(), pieces)
        assert events == expected
        assert engine.tool_index == 1
        assert engine.state is ParserState.TOOL_BETWEEN


def test_a_terminal_with_no_transition_here_is_text():
    assert run(hermes(), ["a </tool_call> b"])[0] == [event(T.TEXT_CHUNK, "a </tool_call> b")]


@pytest.mark.parametrize("value", ['"</tool_call>"', '"\\"</tool_call>"', '["</tool_call>", {"</tool_call>": 1}]'])
def test_no_terminal_counts_inside_a_json_string(value):
    body = '{"name": "f", "arguments": {"x": ' + value + "}}"
    raw = f"<tool_call>{body}</tool_call>!"
    for pieces in cuts(raw):
        assert run(hermes(), pieces)[0] == [
            event(T.TOOL_CALL_START, "", 0),
            event(T.ARG_VALUE_CHUNK, body, 0),
            event(T.TOOL_CALL_END, "", 0),
            event(T.TEXT_CHUNK, "!"),
        ]


@pytest.mark.parametrize("body", ['five" wide', '{"a": 1} "', '{}]"'])
def test_a_quote_outside_the_json_closes_nothing(body):
    for pieces in cuts(f"<tool_call>{body}</tool_call>"):
        assert run(hermes(), pieces)[0][-1] == event(T.TOOL_CALL_END, "", 0)


def test_arguments_need_not_be_json():
    config = hermes(tool_args_json=False)
    assert run(config, ['<tool_call>{"</tool_call>!'])[0][1:] == [
        event(T.ARG_VALUE_CHUNK, '{"', 0),
        event(T.TOOL_CALL_END, "", 0),
        event(T.TEXT_CHUNK, "!"),
    ]


def test_a_call_that_is_cut_has_no_end():
    events, engine = run(hermes(), ["<tool_call>{"])
    assert events == [event(T.TOOL_CALL_START, "", 0), event(T.ARG_VALUE_CHUNK, "{", 0)]
    assert engine.in_call


def test_text_that_no_state_wants_is_reported():
    raw = "<tool_call>\n ? <function=f></function> ! </tool_call>"
    for pieces in cuts(raw):
        events, engine = run(qwen_coder(), pieces)
        assert [(e.type, e.value) for e in events if e.value] == [(T.TOOL_NAME, "f")]
        assert [(d.code, d.start, d.end, d.text) for d in engine.dropped] == [
            ("dropped_text", 11, 15, "\n ? "),
            ("dropped_text", 38, 41, " ! "),
        ]


def test_a_terminal_may_begin_the_arguments():
    config = ParserEngineConfig(
        "x",
        terminals={"OPEN": '{"', "CLOSE": ";"},
        transitions={
            (CONTENT, "OPEN"): Transition(ARGS, (T.TOOL_CALL_START, T.ARG_VALUE_CHUNK)),
            (ARGS, "CLOSE"): Transition(CONTENT, (T.TOOL_CALL_END,)),
        },
    )
    for pieces in cuts('{"a;": 1};b'):
        assert run(config, pieces)[0] == [
            event(T.TOOL_CALL_START, "", 0),
            event(T.ARG_VALUE_CHUNK, '{"a;": 1}', 0),
            event(T.TOOL_CALL_END, "", 0),
            event(T.TEXT_CHUNK, "b"),
        ]


# -- skipping calls ------------------------------------------------------------------------------------------------


def test_skip_tool_parsing():
    engine = StreamingParserEngine(hermes())
    engine.skip_tool_parsing = True
    assert merged(engine.parse_complete("a<tool_call>{}</tool_call>")) == [
        event(T.TEXT_CHUNK, "a<tool_call>{}</tool_call>")
    ]
    engine.reset()
    assert merged(engine.parse_complete("<think>a<tool_call>{}"))[1:] == [
        event(T.REASONING_CHUNK, "a"),
        event(T.REASONING_END),
        event(T.TEXT_CHUNK, "<tool_call>{}"),
    ]
    engine.reset()
    engine.skip_tool_parsing = False
    assert event(T.TOOL_CALL_START, "", 0) in engine.parse_complete("<tool_call>{}")


def test_skip_tool_parsing_in_the_middle():
    engine = StreamingParserEngine(hermes())
    events = engine.feed("<tool_call>{", [])
    engine.skip_tool_parsing = True
    events += engine.feed("}</tool_call><tool_call>", [])
    assert merged(events + engine.finish()) == [
        event(T.TOOL_CALL_START, "", 0),
        event(T.ARG_VALUE_CHUNK, "{}", 0),
        event(T.TOOL_CALL_END, "", 0),
        event(T.TEXT_CHUNK, "<tool_call>"),
    ]


# -- life ----------------------------------------------------------------------------------------------------------


def test_feed_after_finish():
    engine = StreamingParserEngine(hermes())
    engine.feed("a", [])
    engine.finish()
    assert engine.finish() == []
    with pytest.raises(RuntimeError) as found:
        engine.feed("b", [])
    assert str(found.value) == "feed() after finish(): this output has ended; reset() begins another"
    engine.reset()
    assert engine.feed("b", []) == [event(T.TEXT_CHUNK, "b")]


def test_reset_takes_a_state():
    engine = StreamingParserEngine(hermes(), initial_state=REASONING)
    assert engine.feed("a", []) == [event(T.REASONING_CHUNK, "a")]
    engine.reset()
    assert engine.feed("a", []) == [event(T.TEXT_CHUNK, "a")]
    engine.reset(REASONING)
    assert engine.feed("a</think>b", [])[-1] == event(T.TEXT_CHUNK, "b")


@pytest.mark.parametrize("noise", ["\x00" * 9, "\ud800<to\udfff", '<<<<>>>>{{{""\\', "<tool_call>" * 5, "</think>" * 5])
def test_noise(noise):
    for config in (hermes(), qwen_coder()):
        expected, engine = run(config, [noise])
        for pieces in cuts(noise):
            events, other = run(config, pieces)
            assert events == expected
            assert other.dropped == engine.dropped


# -- token ids -----------------------------------------------------------------------------------------------------

TOKENIZER = Tokenizer("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>")


def spelled(text):
    """Text by ordinary tokens only."""
    return [(c, [ord(c)]) for c in text]


def chunked(pieces, size):
    for at in range(0, len(pieces), size):
        some = pieces[at : at + size]
        yield "".join(text for text, _ in some), [token for _, ids in some for token in ids]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 100])
def test_a_marker_by_ordinary_tokens_is_text(size):
    pieces = spelled("say <tool_call>: ") + TOKENIZER.pieces('<tool_call>{"name": "f"}</tool_call>')
    assert run(hermes(), chunked(pieces, size), TOKENIZER)[0] == [
        event(T.TEXT_CHUNK, "say <tool_call>: "),
        event(T.TOOL_CALL_START, "", 0),
        event(T.ARG_VALUE_CHUNK, '{"name": "f"}', 0),
        event(T.TOOL_CALL_END, "", 0),
    ]


def test_without_ids_the_text_decides():
    assert run(hermes(), ["<tool_call>"], TOKENIZER)[0] == [event(T.TOOL_CALL_START, "", 0)]


def test_a_token_that_the_vocabulary_does_not_have_is_found_in_the_text():
    assert run(hermes(), spelled("<tool_call>"), Tokenizer())[0] == [event(T.TOOL_CALL_START, "", 0)]


def test_a_vocabulary_will_do():
    events, _ = run(hermes(), spelled("<think>"), vocab=TOKENIZER.get_vocab())
    assert events == [event(T.TEXT_CHUNK, "<think>")]


def test_ids_may_come_before_their_text():
    pieces = TOKENIZER.pieces('a<tool_call>{"x": "<tool_call>"}</tool_call>b')
    for lag in (1, 5, 20):
        text = "".join(t for t, _ in pieces)
        fed, sent = [], 0
        for i, (_, ids) in enumerate(pieces):
            known = sum(len(t) for t, _ in pieces[: i + 1])
            upto = max(sent, known - lag)
            fed.append((text[sent:upto], ids))
            sent = upto
        fed.append((text[sent:], []))
        assert run(hermes(), fed, TOKENIZER)[0] == run(hermes(), [text])[0]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_stray_special_tokens_are_dropped_by_their_id(size):
    pieces = TOKENIZER.pieces("a<|im_end|>") + spelled("<|im_end|>")
    events, engine = run(hermes(), chunked(pieces, size), TOKENIZER)
    assert events == [event(T.TEXT_CHUNK, "a<|im_end|>")]
    assert [(d.start, d.text) for d in engine.dropped] == [(1, "<|im_end|>")]


def test_special_tokens_may_be_preserved():
    config = hermes(preserve_tokens=frozenset({"<|im_end|>"}))
    events, engine = run(config, TOKENIZER.pieces("a<|im_end|>"), TOKENIZER)
    assert events == [event(T.TEXT_CHUNK, "a<|im_end|>")]
    assert engine.dropped == []


def skipping():
    return ParserEngineConfig(
        "x",
        terminals={"TEXT": "[call]", "TOKEN": "<call>"},
        token_id_terminals={"TOKEN": "<call>"},
        transitions={
            (CONTENT, "TEXT"): Transition(ARGS, (T.TOOL_CALL_START,), skip_in_token_id_mode=True),
            (CONTENT, "TOKEN"): Transition(ARGS, (T.TOOL_CALL_START,)),
        },
    )


def test_skip_in_token_id_mode():
    tokenizer = Tokenizer("<call>")
    start = event(T.TOOL_CALL_START, "", 0)
    assert run(skipping(), ["[call]"], tokenizer)[0] == [start]
    assert run(skipping(), spelled("[call]"), tokenizer)[0] == [event(T.TEXT_CHUNK, "[call]")]
    assert run(skipping(), tokenizer.pieces("<call>"), tokenizer)[0] == [start]
    # Ids are in use even where no token is known.
    assert run(skipping(), spelled("[call]"), Tokenizer())[0] == [event(T.TEXT_CHUNK, "[call]")]
