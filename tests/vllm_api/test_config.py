"""Configs that contradict themselves are errors that name the field."""

import dataclasses

import pytest

from untemplate.format import FormatError
from untemplate.vllm_api import EventType, ParserEngine, ParserEngineConfig, ParserState, SemanticEvent, Transition

from .parser_examples import ARGS, CONTENT, REASONING, Tokenizer, cuts, hermes, message

OPEN = Transition(ARGS, (EventType.TOOL_CALL_START,))


def test_defaults():
    config = ParserEngineConfig("plain")
    assert config.content_events == {
        ParserState.CONTENT: EventType.TEXT_CHUNK,
        ParserState.REASONING: EventType.REASONING_CHUNK,
        ParserState.TOOL_NAME: EventType.TOOL_NAME,
        ParserState.TOOL_ARGS: EventType.ARG_VALUE_CHUNK,
    }
    values = {f.name: getattr(config, f.name) for f in dataclasses.fields(config) if f.init}
    del values["content_events"]
    assert values == {
        "name": "plain",
        "terminals": {},
        "token_id_terminals": {},
        "transitions": {},
        "initial_state": ParserState.CONTENT,
        "wait_for_reasoning": None,
        "arg_converter": None,
        "stream_arg_deltas": True,
        "tool_args_json": True,
        "tool_call_body_array": False,
        "arg_structural_chars": None,
        "arg_value_extender": None,
        "preserve_tokens": frozenset(),
        "turn_boundary_tokens": frozenset(),
        "strip_trailing_reasoning_whitespace": True,
        "drop_whitespace_only_content_before_tools": True,
        "strip_content_whitespace_with_tools": True,
        "validate_tool_names": False,
    }


def test_states():
    names = "CONTENT REASONING MESSAGE_HEADER TOOL_PREAMBLE TOOL_NAME TOOL_ARGS TOOL_BETWEEN"
    assert [state.name for state in ParserState] == names.split()


def test_transition():
    assert Transition(CONTENT) == Transition(CONTENT, (), False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Transition(CONTENT).next_state = REASONING


def test_configs_are_frozen_and_own_what_they_hold():
    terminals = {"A": "<a>"}
    config = ParserEngineConfig("x", terminals=terminals)
    terminals["A"] = ""
    assert config.terminals == {"A": "<a>"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.name = "y"


def test_configs_compare_by_what_they_say():
    assert hermes() == hermes()
    assert hermes() != hermes(validate_tool_names=True)
    assert dataclasses.replace(hermes(), name="other").name == "other"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"name": ""}, "name: is empty"),
        ({"terminals": {"A": ""}}, "terminals['A']: is empty"),
        (
            {"terminals": {"A": ""}, "transitions": {(CONTENT, "A"): Transition(CONTENT)}},
            "terminals['A']: is empty; a transition on it consumes nothing and would never end",
        ),
        ({"terminals": {"A": 1}}, "terminals['A']: expected a string, got int"),
        ({"terminals": ["<a>"]}, "terminals: expected a mapping, got list"),
        (
            {"transitions": {(CONTENT, "A"): OPEN}},
            "transitions[CONTENT, 'A']: unknown terminal: there are no terminals",
        ),
        (
            {"terminals": {"B": "<b>", "A": "<a>"}, "transitions": {(CONTENT, "C"): OPEN}},
            "transitions[CONTENT, 'C']: unknown terminal: the terminals are A, B",
        ),
        (
            {
                "terminals": {"A": "<a>", "B": "<a>"},
                "transitions": {(CONTENT, "A"): OPEN, (CONTENT, "B"): Transition(REASONING)},
            },
            "transitions[CONTENT, 'B']: '<a>' already goes to TOOL_ARGS as 'A'",
        ),
        (
            {"terminals": {"A": "<a>"}, "token_id_terminals": {"B": "<b>"}},
            "token_id_terminals['B']: unknown terminal: the terminals are A, B, and no transition has it",
        ),
        ({"token_id_terminals": {"THINK_START": ""}}, "token_id_terminals['THINK_START']: is empty"),
        (
            {"terminals": {"A": "<a>"}, "transitions": {"A": OPEN}},
            "transitions['A']: the key is not (ParserState, name of a terminal)",
        ),
        (
            {"terminals": {"A": "<a>"}, "transitions": {(CONTENT, "A"): ARGS}},
            "transitions[CONTENT, 'A']: <ParserState.TOOL_ARGS: 6> is not a Transition to a ParserState",
        ),
        (
            {"terminals": {"A": "<a>"}, "transitions": {(CONTENT, "A"): Transition(ARGS, ("start",))}},
            "transitions[CONTENT, 'A'].events: 'start' is not an EventType",
        ),
        (
            {"content_events": {CONTENT: EventType.TOOL_CALL_START}},
            "content_events[CONTENT]: <EventType.TOOL_CALL_START: 5> carries no text; these do: ARG_VALUE_CHUNK, "
            "REASONING_CHUNK, TEXT_CHUNK, TOOL_NAME",
        ),
        ({"content_events": {"CONTENT": EventType.TEXT_CHUNK}}, "content_events: 'CONTENT' is not a ParserState"),
        ({"initial_state": "CONTENT"}, "initial_state: 'CONTENT' is not a ParserState"),
        ({"arg_converter": "json"}, "arg_converter: str cannot be called"),
        ({"preserve_tokens": "<s>"}, "preserve_tokens: expected a set of strings, got str"),
    ],
)
def test_errors(settings, error):
    with pytest.raises(FormatError) as found:
        ParserEngineConfig(**{"name": "x", **settings})
    assert str(found.value) == error
    assert isinstance(found.value, ValueError)


def test_one_literal_may_have_two_names_that_do_the_same():
    ParserEngineConfig(
        "x", terminals={"A": "<a>", "B": "<a>"}, transitions={(CONTENT, "A"): OPEN, (CONTENT, "B"): OPEN}
    )


def test_a_terminal_may_be_a_token_only():
    config = ParserEngineConfig("x", token_id_terminals={"A": "<a>"}, transitions={(CONTENT, "A"): OPEN})
    assert config.literals("A") == ("<a>",)


# -- fields of later versions --------------------------------------------------------------------------------------


def test_a_field_of_a_later_version_is_a_warning(caplog):
    config = ParserEngineConfig("new", terminals={"A": "<a>"}, some_field=1, another=None)
    assert config == ParserEngineConfig("new", terminals={"A": "<a>"})
    assert [record.getMessage() for record in caplog.records] == [
        "config 'new': unknown fields have no effect: another, some_field"
    ]
    assert dataclasses.replace(config, name="other").name == "other"


def test_a_terminal_with_several_spellings():
    config = hermes(terminals={**hermes().terminals, "TOOL_START": ("<tool_call>", "<call>")})
    assert config.literals("TOOL_START") == ("<tool_call>", "<call>")
    assert (config.terminal_literal("TOOL_START"), config.terminal_literal("NONE")) == ("<tool_call>", None)
    assert config.terminal_literals == {"<think>", "</think>", "<tool_call>", "<call>", "</tool_call>"}
    for opener in ("<tool_call>", "<call>"):
        parser = ParserEngine(Tokenizer(), parser_engine_config=config)
        _, content, calls = parser.parse(f'a{opener}{{"name": "f", "arguments": {{}}}}</tool_call>')
        assert (content, [(call.name, call.arguments) for call in calls]) == ("a", [("f", "{}")])
    with pytest.raises(FormatError) as found:
        ParserEngineConfig("x", terminals={"A": ("<a>", "")})
    assert str(found.value) == "terminals['A']: is empty"


def test_reasoning_that_is_waited_for():
    tokenizer = Tokenizer("<think>", "</think>", "<turn>")
    ids = tokenizer.ids
    answers = {}
    for waits in (None, True, False):
        config = hermes(wait_for_reasoning=waits, turn_boundary_tokens=frozenset({"<turn>"}))
        parser = ParserEngine(tokenizer, parser_engine_config=config)
        answers[waits] = [parser.is_reasoning_end(ids(text)) for text in ("", "a", "<think>a", "<think>a</think>b")]
        # A boundary makes the markers before it those of another turn.
        assert parser.is_reasoning_end(ids("<think>a</think>b<turn>c")) is (waits is False)
        assert not parser.is_reasoning_end(ids("<turn><think>c"))
    assert answers == {
        None: [True, False, False, True],
        True: [False, False, False, True],
        False: [True, True, False, True],
    }


def test_an_extender_needs_a_converter():
    assert hermes(arg_converter=lambda raw, partial: raw, arg_value_extender=lambda raw: None).arg_converter
    with pytest.raises(FormatError) as found:
        hermes(arg_value_extender=lambda raw: None)
    assert str(found.value) == "arg_value_extender: needs an arg_converter, and stream_arg_deltas=True"


def array_config(**changes):
    return ParserEngineConfig(
        "array",
        terminals={"TOOL": "<tool_call>"},
        transitions={(CONTENT, "TOOL"): Transition(ParserState.TOOL_ARGS)},
        tool_call_body_array=True,
        **changes,
    )


ARRAY = 'Hi.<tool_call>[{"name": "f", "arguments": {"a": "}]"}}, {"name": "g", "arguments": {"b": [1]}}]'
CALLS = [("f", '{"a": "}]"}'), ("g", '{"b": [1]}')]


@pytest.mark.parametrize(
    ("raw", "content", "expected"),
    [
        (ARRAY, "Hi.", CALLS),
        (f"{ARRAY} and text", "Hi. and text", CALLS),
        ("Hi.<tool_call>[]", "Hi.", []),
        ("Hi.<tool_call> no array", "Hi.no array", []),
        ('<tool_call>[{"nam": 1}, {"name": "f", "arguments": {}}]', '{"nam": 1}', [("f", "{}")]),
    ],
)
def test_calls_in_an_array(raw, content, expected):
    def engine():
        return ParserEngine(Tokenizer(), parser_engine_config=array_config())

    _, found, calls = engine().parse(raw)
    assert (found or "", [(call.name, call.arguments) for call in calls or ()]) == (content, expected)
    for pieces in cuts(raw):
        parser = engine()
        deltas = [parser.parse_delta(piece, [], finished=False) for piece in pieces]
        streamed = message([*deltas, parser.parse_delta("", [], finished=True)])
        assert (streamed["content"], [call[1:] for call in streamed["calls"]]) == (content, expected)


def test_a_cut_array():
    for end in range(len('Hi.<tool_call>[{"name'), len(ARRAY)):
        _, content, calls = ParserEngine(Tokenizer(), parser_engine_config=array_config()).parse(ARRAY[:end])
        assert [(call.name, call.arguments) for call in calls or ()] == CALLS[: len(calls or ())]
        cut = content.removeprefix("Hi.")
        assert ARRAY[:end].endswith((cut, f"{cut} ", f"{cut},", f"{cut}, "))


def test_an_event_can_be_replaced():
    """As parsers written for vLLM do."""
    event = SemanticEvent(EventType.TOOL_NAME, " f", 1)
    assert dataclasses.replace(event, value="f") == SemanticEvent(EventType.TOOL_NAME, "f", 1)
