"""Hand-written configs of vLLM's ``ParserEngine``: terminals and transitions, as data.

* A config that contradicts itself raises an error at construction that names the field.
* A terminal is a literal. A state looks only for the terminals that have a transition there; all other text is plain
  text.
* Some names have a meaning for the users of a config: ``THINK_START`` and ``THINK_END`` delimit reasoning,
  ``TURN_START`` begins an assistant turn in a prompt. They need no transition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from logging import getLogger
from typing import Any, Final

from .._internal.machine.events import EventType
from ..format import FormatError

__all__ = ["TOOL_STATES", "ParserEngineConfig", "ParserState", "Transition"]


class ParserState(Enum):
    """The place in an output that a hand-written parser has reached."""

    CONTENT = auto()
    REASONING = auto()
    MESSAGE_HEADER = auto()
    TOOL_PREAMBLE = auto()
    """After a call's opener, before its name."""
    TOOL_NAME = auto()
    TOOL_ARGS = auto()
    TOOL_BETWEEN = auto()
    """After a call, before the next one or the end of the section."""


TOOL_STATES: Final = frozenset(
    {ParserState.TOOL_PREAMBLE, ParserState.TOOL_NAME, ParserState.TOOL_ARGS, ParserState.TOOL_BETWEEN}
)

CHUNKS: Final = frozenset(
    {EventType.TEXT_CHUNK, EventType.REASONING_CHUNK, EventType.TOOL_NAME, EventType.ARG_VALUE_CHUNK}
)
"""Events that carry text."""

_LOG: Final = getLogger("untemplate.vllm_api._config")
_RESERVED: Final = frozenset({"THINK_START", "THINK_END", "TURN_START"})


@dataclass(frozen=True, slots=True)
class Transition:
    """The effect of a terminal: the events it emits, in order, and the next state.

    An event that carries text (``TEXT_CHUNK``, ``ARG_VALUE_CHUNK``, …) carries the terminal's own text: so a terminal
    that belongs to the arguments reaches the ``arg_converter``.
    """

    next_state: ParserState
    events: tuple[EventType, ...] = ()
    skip_in_token_id_mode: bool = False
    """Once token ids have come, the terminal's text has no effect unless a token id confirms it."""


def _default_content_events() -> dict[ParserState, EventType]:
    return {
        ParserState.CONTENT: EventType.TEXT_CHUNK,
        ParserState.REASONING: EventType.REASONING_CHUNK,
        ParserState.TOOL_NAME: EventType.TOOL_NAME,
        ParserState.TOOL_ARGS: EventType.ARG_VALUE_CHUNK,
    }


class _TakesNewerFields(type):
    """Lets a config of a later vLLM version be made: a field that is not known is a warning."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        known = {one.name for one in fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(given.keys() - known)
        if unknown:
            name = args[0] if args else given.get("name")
            _LOG.warning("config %r: unknown fields have no effect: %s", name, ", ".join(unknown))
        return super().__call__(*args, **{name: value for name, value in given.items() if name in known})


@dataclass(frozen=True)
class ParserEngineConfig(metaclass=_TakesNewerFields):
    """Describes the output of one model by hand. A field of a later vLLM version that is not known here has no effect,
    and is logged as a warning.

    Raises:
        FormatError: (a ValueError) the config contradicts itself; ``path`` names the field.
    """

    name: str
    terminals: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Name → literal, or its spellings. The first one counts where one is needed."""
    token_id_terminals: Mapping[str, str] = field(default_factory=dict)
    """Name → token. Where token ids come with the text, only the id makes this terminal; spelled by ordinary tokens it
    is text. A token that the vocabulary does not have is found in the text.
    """
    transitions: Mapping[tuple[ParserState, str], Transition] = field(default_factory=dict)
    """(state, name of a terminal) → its effect in that state."""
    content_events: Mapping[ParserState, EventType] = field(default_factory=_default_content_events)
    """State → the event for its text. Text in a state that is not listed is dropped and reported."""
    initial_state: ParserState = ParserState.CONTENT
    wait_for_reasoning: bool | None = None
    """Answer of ``is_reasoning_end`` for ids without a marker: False if the model reasons first, True if it does not.
    ``None``: False; without any ids it depends on the initial state.
    """
    arg_converter: Callable[[str, bool], str] | None = None
    """(raw arguments so far, whether more may come) → JSON. It is called again and again with all of the arguments, so
    a parser that has one does not run in linear time. Its result for a prefix must be a prefix of its later results,
    except for the value that is still open.
    """
    stream_arg_deltas: bool = True
    """False: converted arguments are sent in one delta, when their call closes."""
    tool_args_json: bool = True
    """Arguments that begin with a brace or bracket are JSON: inside their strings there are no terminals."""
    tool_call_body_array: bool = False
    """The arguments after the opener are a JSON array with an object for each call, which holds its name. Text after
    the array is content.
    """
    arg_structural_chars: frozenset[str] | None = None
    """Only a delta with one of these characters can change the converted text of what came before it; for others the
    converter is not called. ``None``: any delta can.
    """
    arg_value_extender: Callable[[str], Callable[[str], str | None] | None] | None = None
    """In vLLM a shortcut for long values with the results of ``arg_converter``. It is not called here."""
    preserve_tokens: frozenset[str] = frozenset()
    """Special tokens that stay in the text although they are not terminals. All others that the tokenizer lists in
    ``all_special_tokens`` are dropped where their id comes, and reported.
    """
    turn_boundary_tokens: frozenset[str] = frozenset()
    """Tokens in prompts. Before the last of them markers of reasoning belong to earlier turns."""
    strip_trailing_reasoning_whitespace: bool = True
    """White space between reasoning and the marker that ends it is dropped."""
    drop_whitespace_only_content_before_tools: bool = True
    """Content that is white space only is dropped if a call follows or precedes it."""
    strip_content_whitespace_with_tools: bool = True
    """White space between content and a call is dropped, unless content continues after the call."""
    validate_tool_names: bool = False
    """A call whose name is not that of an offered tool is dropped and reported."""
    programs: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Filled by the compiler."""

    def __post_init__(self) -> None:
        # Copies: the compiled program must not become out of date.
        for name in ("terminals", "token_id_terminals", "transitions", "content_events"):
            object.__setattr__(self, name, _mapping(name, getattr(self, name)))
        for name in ("preserve_tokens", "arg_structural_chars", "turn_boundary_tokens"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _texts(name, value))
        _check(self)

    def literals(self, terminal: str) -> tuple[str, ...]:
        """Return the spellings of a terminal: its text, and its token if that differs."""
        spellings = (*_spellings(self.terminals.get(terminal)), self.token_id_terminals.get(terminal))
        return tuple(dict.fromkeys(text for text in spellings if text is not None))

    def terminal_literal(self, name: str) -> str | None:
        """Return the first spelling of a terminal; ``None`` if there is no such terminal."""
        return next(iter(_spellings(self.terminals.get(name))), None)

    @property
    def terminal_literals(self) -> frozenset[str]:
        """All spellings of all terminals."""
        return frozenset(text for value in self.terminals.values() for text in _spellings(value))


def _spellings(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _mapping(name: str, value: object) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise FormatError(name, f"expected a mapping, got {type(value).__name__}")
    return dict(value)


def _texts(name: str, value: object) -> frozenset[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise FormatError(name, f"expected a set of strings, got {type(value).__name__}")
    return frozenset(value)


# -- What cannot work ---------------------------------------------------------------------------------------------


def _check(config: ParserEngineConfig) -> None:
    if not isinstance(config.name, str) or not config.name:
        raise FormatError("name", "is empty")
    if not isinstance(config.initial_state, ParserState):
        raise FormatError("initial_state", f"{config.initial_state!r} is not a ParserState")
    if config.arg_converter is not None and not callable(config.arg_converter):
        raise FormatError("arg_converter", f"{type(config.arg_converter).__name__} cannot be called")
    if config.arg_value_extender is not None and (config.arg_converter is None or not config.stream_arg_deltas):
        raise FormatError("arg_value_extender", "needs an arg_converter, and stream_arg_deltas=True")
    _check_terminals(config)
    for state, kind in config.content_events.items():
        if not isinstance(state, ParserState):
            raise FormatError("content_events", f"{state!r} is not a ParserState")
        if kind not in CHUNKS:
            valid = ", ".join(sorted(c.name for c in CHUNKS))
            raise FormatError(f"content_events[{state.name}]", f"{kind!r} carries no text; these do: {valid}")
    _check_transitions(config)


def _check_terminals(config: ParserEngineConfig) -> None:
    used = {key[1] for key in config.transitions if isinstance(key, tuple) and len(key) == 2}
    for name in ("terminals", "token_id_terminals"):
        for terminal, value in getattr(config, name).items():
            several = isinstance(value, tuple) and name == "terminals" and value
            for text in value if several else (value,):
                _check_literal(f"{name}[{terminal!r}]", terminal, text, used)
    for terminal in config.token_id_terminals:
        if terminal not in config.terminals and terminal not in used and terminal not in _RESERVED:
            raise FormatError(
                f"token_id_terminals[{terminal!r}]", f"unknown terminal: {_known(config)}, and no transition has it"
            )


def _check_literal(path: str, terminal: object, text: object, used: set[str]) -> None:
    if not isinstance(terminal, str) or not isinstance(text, str):
        raise FormatError(path, f"expected a string, got {type(text).__name__}")
    if not text:
        # All other transitions consume their literal, so only these could loop forever in one place.
        harm = "; a transition on it consumes nothing and would never end" if terminal in used else ""
        raise FormatError(path, f"is empty{harm}")


def _known(config: ParserEngineConfig) -> str:
    names = sorted({*config.terminals, *config.token_id_terminals})
    return f"the terminals are {', '.join(names)}" if names else "there are no terminals"


def _check_transitions(config: ParserEngineConfig) -> None:
    targets: dict[tuple[ParserState, str], tuple[str, Transition]] = {}
    for key, transition in config.transitions.items():
        if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], ParserState)):
            raise FormatError(f"transitions[{key!r}]", "the key is not (ParserState, name of a terminal)")
        state, terminal = key
        path = f"transitions[{state.name}, {terminal!r}]"
        if not isinstance(transition, Transition) or not isinstance(transition.next_state, ParserState):
            raise FormatError(path, f"{transition!r} is not a Transition to a ParserState")
        for event in transition.events:
            if not isinstance(event, EventType):
                raise FormatError(f"{path}.events", f"{event!r} is not an EventType")
        literals = config.literals(terminal)
        if not literals:
            raise FormatError(path, f"unknown terminal: {_known(config)}")
        for literal in literals:
            other, seen = targets.setdefault((state, literal), (terminal, transition))
            if seen != transition:
                raise FormatError(path, f"{literal!r} already goes to {seen.next_state.name} as {other!r}")
