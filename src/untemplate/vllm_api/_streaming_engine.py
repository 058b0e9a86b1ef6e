"""StreamingParserEngine: text and token ids in, SemanticEvents out, as a hand-written config describes.

* It runs the machine with a config's Program. Nothing is parsed here.
* An engine serves one output; ``reset`` begins the next. It may be subclassed.
* Text for which no state has an event is reported (``dropped``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._internal.machine.events import EventCollector, SemanticEvent
from .._internal.machine.machine import Machine
from .._internal.machine.scanner import SpecialTokens, TokenScanner
from .._internal.machine.tentative_calls import DRAFTS_NEVER
from .._internal.tokens.decoding import Vocabulary, vocabulary_of
from ..messages import Diagnostic
from ..tools import ToolSet
from ._config import ParserEngineConfig, ParserState
from ._config_compiler import STATES, ConfigRun, compile_config

__all__ = ["StreamingParserEngine"]

_NO_TOOLS = ToolSet(None)
_MAX_HELD = 1 << 20


class StreamingParserEngine:
    """Emits the events of one output, while it arrives.

    Args:
        config: describes the output.
        tokenizer: anything with ``get_vocab()``; with it ``token_id_terminals`` are found by their ids, and special
            tokens (``all_special_tokens``, if it has that) that are not terminals are dropped.
        vocab: the vocabulary, instead of the tokenizer's.
        initial_state: the state in which the output begins, instead of the config's.
    """

    def __init__(
        self,
        config: ParserEngineConfig,
        tokenizer: Any = None,
        *,
        vocab: Mapping[str, int] | None = None,
        initial_state: ParserState | None = None,
    ) -> None:
        self.config = config
        known = vocabulary_of(tokenizer) if vocab is None else Vocabulary(vocab)
        drops = _stray_tokens(config, tokenizer, known.ids)
        special, self._table = known.table(drops.union(config.token_id_terminals.values()))
        self._special = SpecialTokens(special, {})
        self._program = compile_config(config, drops=drops)
        self._without_calls = compile_config(config, tools=False)
        self._skips = False
        self._holds = False
        self.reset(initial_state)

    def reset(self, initial_state: ParserState | None = None) -> None:
        """Begin another output. ``skip_tool_parsing`` does not change."""
        initial = STATES.index(self.config.initial_state if initial_state is None else initial_state)
        self._sink = EventCollector()
        self._run = ConfigRun(self.config, initial, self._sink)
        self._run.holds = self._holds
        program = self._without_calls if self._skips else self._program
        machine = self._machine = Machine(program, _NO_TOOLS, self._sink, _no_id, b"", 0, _MAX_HELD, DRAFTS_NEVER)
        machine.config_events = self._run
        machine.enter(initial)
        self._scanner: TokenScanner | None = None
        if self._special.ids:
            table = self._table
            self._scanner = TokenScanner(self._special, table)
            machine.use_ids(self._scanner)

    def feed(self, delta_text: str, delta_token_ids: Sequence[int] = ()) -> list[SemanticEvent]:
        """Take the next part of the output, and the token ids that have come with it or before it.

        Returns:
            The events that it completes, in order.

        Raises:
            RuntimeError: after ``finish``, without a ``reset``.
        """
        machine = self._machine
        if machine.finished:
            raise RuntimeError("feed() after finish(): this output has ended; reset() begins another")
        if len(delta_token_ids):
            machine.checks_ids = True
        machine.feed(delta_text, delta_token_ids)
        return self._sink.take()

    def finish(self) -> list[SemanticEvent]:
        """End the output; return the events of what was still buffered.

        A call that is still open gets no end event, because nothing has closed it. Later calls return nothing.
        """
        self._machine.finish()
        return self._sink.take()

    def parse_complete(self, text: str, token_ids: Sequence[int] = ()) -> list[SemanticEvent]:
        """Return all events of a whole output; the engine must be fresh."""
        return self.feed(text, token_ids) + self.finish()

    @property
    def state(self) -> ParserState:
        """The current state."""
        return STATES[self._machine.state_index]

    @property
    def tool_index(self) -> int:
        """Number of the last call that has begun, from 0, or -1 before the first."""
        return self._run.tool_index

    @property
    def offset(self) -> int:
        """Number of characters of the output for which events have been emitted."""
        return self._machine.offset

    @property
    def in_call(self) -> bool:
        """True while a call has begun and not ended."""
        return self._run.in_call

    @property
    def checks_ids(self) -> bool:
        """True once token ids have come."""
        return self._machine.checks_ids

    @property
    def skip_tool_parsing(self) -> bool:
        """True if openers of calls are text. May be set at any time; a call that is open continues to its end."""
        return self._skips

    @skip_tool_parsing.setter
    def skip_tool_parsing(self, value: bool) -> None:
        if value != self._skips:
            self._skips = value
            self._machine.switch(self._without_calls if value else self._program)

    @property
    def dropped(self) -> list[Diagnostic]:
        """Everything dropped so far: text of states that have no event for it, and unknown special tokens."""
        return [
            Diagnostic(
                code="dropped_text", message=_DROPPED, start=piece.start, end=piece.end, text="".join(piece.parts)
            )
            for piece in self._run.dropped
        ]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """``dropped``, and other problems."""
        notes = self.dropped
        if self._scanner is not None:
            for at in self._scanner.ambiguous:
                notes.append(Diagnostic(code="ambiguous_marker", message=_AMBIGUOUS, start=at, end=at))
        return sorted(notes, key=lambda note: note.start)

    def hold_calls(self) -> None:
        """Keep the text of each call from here on, until ``take_call``."""
        self._holds = self._run.holds = True

    def take_call(self, tool_index: int) -> tuple[int, str]:
        """Return (offset, text) of a call as far as it has come, opener included, and stop keeping it."""
        held = self._run.held.pop(tool_index, None)
        return (0, "") if held is None else (held.start, "".join(held.parts))


_DROPPED = "no state has an event for this text"
_AMBIGUOUS = "more markers in the text than token ids for them in one stretch: all were taken as markers"


def _no_id(name: str, index: int) -> str:
    return ""


def _stray_tokens(config: ParserEngineConfig, tokenizer: Any, vocab: Mapping[str, int]) -> frozenset[str]:
    special = getattr(tokenizer, "all_special_tokens", None)
    if not special:
        return frozenset()
    return frozenset(text for text in map(str, special) if text and text in vocab) - _wanted_tokens(config)


def _wanted_tokens(config: ParserEngineConfig) -> frozenset[str]:
    return config.preserve_tokens.union(config.terminal_literals, config.token_id_terminals.values())
