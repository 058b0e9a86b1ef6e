"""StreamingParserEngine: text and token ids in, SemanticEvents out, as a hand-written config says.

Rules of this module:

* This is the one machine with a config's Program in it. Nothing is parsed here.
* An engine serves one output; ``reset`` begins the next. It may be subclassed.
* What no state has a use for is reported (``dropped``), never lost in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..machine.events import EventCollector, SemanticEvent
from ..machine.machine import Machine
from ..machine.reasoning_call import NEVER
from ..machine.scanner import TokenScanner
from ..messages import Diagnostic
from ..tokens import Vocabulary, vocabulary_of
from ..tools import ToolSet
from .config import ParserEngineConfig, ParserState
from .config_compiler import STATES, ConfigRun, compile_config

__all__ = ["StreamingParserEngine"]

_NO_TOOLS = ToolSet(None)
_MAX_HELD = 1 << 20


class StreamingParserEngine:
    """Events of one output, as it comes.

    Args:
        config: what the output looks like.
        tokenizer: anything with ``get_vocab()``; with it ``token_id_terminals`` are told by their ids, and special
            tokens (``all_special_tokens``, where it has that) that are no terminals are dropped.
        vocab: the vocabulary, instead of the tokenizer's.
        initial_state: where the output begins, instead of the config's own.
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
        self._special, self._table = known.table(drops.union(config.token_id_terminals.values()))
        self._program = compile_config(config, drops=drops)
        self._without_calls = compile_config(config, tools=False)
        self._skips = False
        self._holds = False
        self.reset(initial_state)

    def reset(self, initial_state: ParserState | None = None) -> None:
        """Begins another output. ``skip_tool_parsing`` stays as it is."""
        initial = STATES.index(self.config.initial_state if initial_state is None else initial_state)
        self._sink = EventCollector()
        self._run = ConfigRun(self.config, initial, self._sink)
        self._run.holds = self._holds
        program = self._without_calls if self._skips else self._program
        machine = self._machine = Machine(program, _NO_TOOLS, self._sink, _no_id, 0, _MAX_HELD, NEVER)
        machine.config_events = self._run
        machine.enter(initial)
        self._scanner: TokenScanner | None = None
        if self._special:
            self._scanner = machine.scanner = TokenScanner(self._special, self._table.bytes_of, False)

    def feed(self, delta_text: str, delta_token_ids: Sequence[int] = ()) -> list[SemanticEvent]:
        """The next piece of the output, and the token ids that have come with it or before it.

        Returns: the events that it completes, in order.

        Raises:
            RuntimeError: after ``finish``, unless ``reset`` came in between.
        """
        machine = self._machine
        if machine.finished:
            raise RuntimeError("feed() after finish(): this output has ended; reset() begins another")
        if len(delta_token_ids):
            machine.checks_ids = True
        if self._scanner is not None:
            delta_text = self._scanner.feed(delta_text, delta_token_ids)
        if delta_text:
            machine.feed(delta_text)
        return self._sink.take()

    def finish(self) -> list[SemanticEvent]:
        """The output has ended: the events of what was still held. A call that is still open gets no end: nothing has
        closed it. Later calls return nothing."""
        self._machine.finish()
        return self._sink.take()

    def parse_complete(self, text: str, token_ids: Sequence[int] = ()) -> list[SemanticEvent]:
        """All events of a whole output; the engine must be fresh."""
        return self.feed(text, token_ids) + self.finish()

    @property
    def state(self) -> ParserState:
        """Where the output is now."""
        return STATES[self._machine.state_index]

    @property
    def tool_index(self) -> int:
        """Number of the last call that has begun, from 0; -1: none."""
        return self._run.tool_index

    @property
    def offset(self) -> int:
        """Characters of the output that have been told."""
        return self._machine.offset

    @property
    def in_call(self) -> bool:
        """Whether a call has begun and not ended."""
        return self._run.in_call

    @property
    def skip_tool_parsing(self) -> bool:
        """Whether what opens a call is text. May be set at any time; a call that is open goes on to its end."""
        return self._skips

    @skip_tool_parsing.setter
    def skip_tool_parsing(self, value: bool) -> None:
        if value != self._skips:
            self._skips = value
            self._machine.switch(self._without_calls if value else self._program)

    @property
    def dropped(self) -> list[Diagnostic]:
        """What has been dropped so far: text of states that have no event for it, and stray special tokens."""
        return [
            Diagnostic(
                code="dropped_text", message=_DROPPED, start=piece.start, end=piece.end, text="".join(piece.parts)
            )
            for piece in self._run.dropped
        ]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """``dropped``, and what else was odd."""
        notes = self.dropped
        if self._scanner is not None:
            for at in self._scanner.ambiguous:
                notes.append(Diagnostic(code="ambiguous_marker", message=_AMBIGUOUS, start=at, end=at))
        return sorted(notes, key=lambda note: note.start)

    def hold_calls(self) -> None:
        """From here on the text of each call is kept until ``take_call``."""
        self._holds = self._run.holds = True

    def take_call(self, tool_index: int) -> tuple[int, str]:
        """(offset, text) of a call as far as it has come, its opener included; it is kept no longer."""
        held = self._run.held.pop(tool_index, None)
        return (0, "") if held is None else (held.start, "".join(held.parts))


_DROPPED = "no state has a use for this text"
_AMBIGUOUS = "more markers in the text than token ids for them in one stretch: all were taken as markers"


def _no_id(name: str, index: int) -> str:
    return ""


def _stray_tokens(config: ParserEngineConfig, tokenizer: Any, vocab: Mapping[str, int]) -> frozenset[str]:
    special = getattr(tokenizer, "all_special_tokens", None)
    if not special:
        return frozenset()
    return frozenset(text for text in map(str, special) if text and text in vocab) - _wanted_tokens(config)


def _wanted_tokens(config: ParserEngineConfig) -> frozenset[str]:
    return config.preserve_tokens.union(config.terminals.values(), config.token_id_terminals.values())
