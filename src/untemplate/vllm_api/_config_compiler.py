"""Compiles a ParserEngineConfig to a Program, and follows a running machine.

* A Program has one text state for each ParserState, in their order. So a stream can change from one Program of a config
  to another at any time (``skip_tool_parsing``).
* The machine finds literals and their places. This module emits their SemanticEvents.
* Events carry text as the model wrote it; nothing is trimmed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, final

from .._internal.machine.context import ConfigEvents
from .._internal.machine.events import EventCollector, EventType
from .._internal.machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, MARKUP, NAME_TEXT, REASONING_TEXT
from .._internal.machine.program import IN_ARGUMENTS, IN_CONTENT, IN_NAME, IN_REASONING, IN_SILENT, Program, TextState
from .._internal.machine.rules import ENTER_STATE, MarkerRule
from ._config import CHUNKS, TOOL_STATES, ParserEngineConfig, ParserState, Transition

STATES: Final = tuple(ParserState)
_EVENTS: Final = tuple(EventType)
_REGIONS: Final = {
    EventType.TEXT_CHUNK: IN_CONTENT,
    EventType.REASONING_CHUNK: IN_REASONING,
    EventType.TOOL_NAME: IN_NAME,
    EventType.ARG_VALUE_CHUNK: IN_ARGUMENTS,
}
_KINDS: Final = {
    EventType.TEXT_CHUNK: CONTENT_TEXT,
    EventType.REASONING_CHUNK: REASONING_TEXT,
    EventType.TOOL_NAME: NAME_TEXT,
    EventType.ARG_VALUE_CHUNK: ARGUMENT_TEXT,
}
_DROP: Final = -1
"""In a rule's events: its literal is dropped."""

_OUTSIDE_STRING: Final = re.compile(r'["{}\[\]]')
_INSIDE_STRING: Final = re.compile(r'["\\]')


def compile_config(config: ParserEngineConfig, *, tools: bool = True, drops: frozenset[str] = frozenset()) -> Program:
    """Return the Program of a config, compiled once.

    Args:
        tools: False: openers of calls are text.
        drops: special tokens that are dropped where their id comes.
    """
    key = (tools, drops)
    program: Program | None = config.programs.get(key)
    if program is None:
        program = config.programs[key] = _compile(config, tools, drops)
    return program


def _compile(config: ParserEngineConfig, tools: bool, drops: Iterable[str]) -> Program:
    program = Program(config.name)
    in_calls = {terminal for (source, terminal), _ in config.transitions.items() if source in TOOL_STATES}
    for index, state in enumerate(STATES):
        rules: dict[str, MarkerRule] = {}
        for (source, terminal), transition in config.transitions.items():
            if source is not state:
                continue
            taken = _rule(transition) if tools else _rule_without_calls(source, transition, terminal in in_calls)
            if taken is not None:
                rules.update(dict.fromkeys(config.literals(terminal), taken))
        for literal in drops:
            if literal not in rules:
                rules[literal] = rule = MarkerRule(ENTER_STATE, index)
                rule.events = (_DROP,)
                rule.needs_id = 2
        kind = config.content_events.get(state)
        region = IN_SILENT if kind is None else _REGIONS[kind]
        program.states.append(TextState(state.name, region, rules, False))
    program.content = STATES.index(ParserState.CONTENT)
    program.reasoning = STATES.index(ParserState.REASONING)
    program.start_without_prompt = program.after_turn_start = STATES.index(config.initial_state)
    return program


def _rule(transition: Transition) -> MarkerRule:
    rule = MarkerRule(ENTER_STATE, STATES.index(transition.next_state))
    rule.events = tuple(_EVENTS.index(event) for event in transition.events)
    rule.needs_id = 1 if transition.skip_in_token_id_mode else 0
    return rule


def _rule_without_calls(source: ParserState, transition: Transition, _of_calls: bool) -> MarkerRule | None:
    """Return a transition where calls are text: one into a call emits its text, and still ends reasoning.

    ``_of_calls``: its literal also occurs in calls. Without calls it is text, unless it begins or ends reasoning.
    """
    opens = transition.next_state in TOOL_STATES or EventType.TOOL_CALL_START in transition.events
    reasons = {EventType.REASONING_START, EventType.REASONING_END}.intersection(transition.events)
    _of_calls = _of_calls and transition.next_state is source and not reasons
    if source in TOOL_STATES or not (opens or _of_calls):
        return _rule(transition)
    if EventType.REASONING_END not in transition.events:
        return None
    text = (EventType.REASONING_END, EventType.TEXT_CHUNK)
    return _rule(Transition(ParserState.CONTENT, text, transition.skip_in_token_id_mode))


@final
class KeptText:
    """A part of the output that is kept."""

    def __init__(self, start: int) -> None:
        self.start: int = start
        self.end: int = start
        self.parts: list[str] = []

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.end += len(text)


@final
class ConfigRun(ConfigEvents):
    """Follows one output of a config: numbers the calls, collects events, dropped text and the text of open calls."""

    def __init__(self, config: ParserEngineConfig, initial: int, sink: EventCollector) -> None:
        self.tool_index: int = -1
        self.dropped: list[KeptText] = []
        """In order; neighbours are joined."""
        self.holds: bool = False
        """True if the text of calls is kept until ``take_call``."""
        self.held: dict[int, KeptText] = {}
        """Calls that have not been taken yet: all of their text, opener included."""
        self._sink: EventCollector = sink
        self._state: int = initial
        self._arguments: int = STATES.index(ParserState.TOOL_ARGS) if config.tool_args_json else -1
        self._open: bool = False
        # JSON in the arguments: how far it has been read ahead of the events, and the state at that place.
        self._begun: bool = False
        self._json: bool = False
        self._string: bool = False
        self._escaped: bool = False
        self._depth: int = 0
        self._ahead: int = 0

    def accepts(self, text: str, pos: int, start: int) -> bool:
        if self._state != self._arguments:
            return True
        self._read(text, pos + self._ahead, start)
        self._ahead = max(self._ahead, start - pos)
        return not self._string

    def take(self, rule: MarkerRule, literal: str, start: int) -> int:
        kind = MARKUP
        self._keep_unless_opening(rule, literal, start)
        for number in rule.events:
            if number == _DROP:
                self._drop(literal, start)
                return DROPPED
            event = _EVENTS[number]
            if event is EventType.TOOL_CALL_START:
                self.tool_index += 1
                self._open = True
            if event in CHUNKS:
                kind = _KINDS[event]
                self._sink.add(event, literal, self._index(event))
            else:
                self._sink.add(event, "", self._index(event))
            if event is EventType.TOOL_CALL_END:
                self._open = False
        self._ahead = 0
        if rule.next_state != self._state:
            self._state = rule.next_state
            self._begun = False
            self._json = False
            self._string = False
            self._escaped = False
            self._depth = 0
        if self._state == self._arguments and kind == ARGUMENT_TEXT:
            self._read(literal, 0, len(literal))
        return kind

    def chunk(self, region: int, text: str, start: int) -> int:
        if region == IN_SILENT:
            self._keep(text)
            self._drop(text, start)
            return DROPPED
        event = EventType.TOOL_NAME if region == IN_NAME else EventType.ARG_VALUE_CHUNK
        if self._state == self._arguments:
            self._read(text, self._ahead, len(text))
            self._ahead = 0
        self._keep(text)
        self._sink.add(event, text, self.tool_index)
        return _KINDS[event]

    @property
    def in_call(self) -> bool:
        """True while a call has begun and not ended."""
        return self._open

    def _index(self, event: EventType) -> int:
        return -1 if event in _UNNUMBERED else self.tool_index

    def _drop(self, text: str, start: int) -> None:
        if not self.dropped or self.dropped[-1].end != start:
            self.dropped.append(KeptText(start))
        self.dropped[-1].add(text)

    def _keep_unless_opening(self, rule: MarkerRule, literal: str, start: int) -> None:
        if not self.holds:
            return
        if _OPENS in rule.events:
            held = self.held[self.tool_index + 1] = KeptText(start)
            held.add(literal)
        else:
            self._keep(literal)

    def _keep(self, text: str) -> None:
        if self._open and self.holds:
            held = self.held.get(self.tool_index)
            if held is not None:
                held.add(text)

    def _read(self, text: str, i: int, end: int) -> None:
        """Follow strings and brackets of JSON arguments."""
        if not self._begun:
            while i < end and text[i] in " \t\r\n":
                i += 1
            if i >= end:
                return
            self._begun = True
            self._json = text[i] in "{["
        if not self._json:
            return
        if self._escaped and i < end:
            self._escaped = False
            i += 1
        while i < end:
            if self._string:
                found = _INSIDE_STRING.search(text, i, end)
                if found is None:
                    return
                i = found.end()
                if found.group() == '"':
                    self._string = False
                elif i < end:
                    i += 1
                else:
                    self._escaped = True
                continue
            found = _OUTSIDE_STRING.search(text, i, end)
            if found is None:
                return
            i = found.end()
            c = found.group()
            if c == '"':
                self._string = True
            elif c in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    self._json = False
                    return


_OPENS: Final = _EVENTS.index(EventType.TOOL_CALL_START)
_UNNUMBERED: Final = frozenset(
    {EventType.TEXT_CHUNK, EventType.REASONING_START, EventType.REASONING_CHUNK, EventType.REASONING_END}
)
