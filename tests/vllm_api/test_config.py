"""Configs that contradict themselves are errors that name the field."""

import dataclasses

import pytest

from untemplate.format import FormatError
from untemplate.vllm_api import EventType, ParserEngineConfig, ParserState, Transition

from .parser_examples import ARGS, CONTENT, REASONING, hermes

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
        "arg_converter": None,
        "stream_arg_deltas": True,
        "tool_args_json": True,
        "arg_structural_chars": None,
        "preserve_tokens": frozenset(),
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
