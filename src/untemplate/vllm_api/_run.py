"""One output of a catalogue Format, for the parsers of specs 1 and 2.

Rules of this module:

* This is the one machine with a Format's Program in it. Nothing is parsed here.
* A run serves one output; it is cheap to begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..format import Format
from ..machine.call_state import call_status
from ..machine.coercion import ToolSet
from ..machine.compiler import compile_format
from ..machine.events import DeltaBuilder
from ..machine.ids import make_ids
from ..machine.machine import RECOVER, Machine
from ..machine.program import Program
from ..machine.scanner import TokenScanner
from ..machine.start import start
from ..messages import DeltaMessage, ExtractedToolCallInformation, FunctionCall, ToolCall
from ._requests import count_calls, get, joined, takes_calls
from ._vocabulary import Vocabulary

__all__ = ["Run", "program_of"]

_NO_TOOLS = ToolSet(None)
_MAX_HELD = 1 << 20


@lru_cache(maxsize=256)
def program_of(fmt: Format, *, tools: bool = True) -> Program:
    """The Program of a Format, compiled once."""
    return compile_format(fmt, tools=tools)


class Run:
    """Deltas of one output.

    Args:
        fmt: what the output looks like.
        known: the vocabulary.
        tools: the tools on offer, where the request does not say so.
        request: its ``tools``, ``tool_choice`` and ``messages`` count.
        calls: False: calls are text, whatever the request says.
        prompt: the end of the prompt, from the last turn start on.
        spans: whether to keep where everything stood.
    """

    def __init__(
        self,
        fmt: Format,
        known: Vocabulary,
        *,
        tools: Sequence[Any] | None = None,
        request: Any = None,
        calls: bool = True,
        prompt: str | None = None,
        spans: bool = False,
    ) -> None:
        offered = None if request is None else get(request, "tools")
        tools = tools if offered is None else offered
        program = program_of(fmt, tools=calls and takes_calls(request) and (tools is None or len(tools) > 0))
        self._sink = DeltaBuilder()
        tool_set = _NO_TOOLS if tools is None else ToolSet(tools)
        history = 0 if request is None else count_calls(get(request, "messages"))
        machine = Machine(program, tool_set, self._sink, make_ids(program.ids), history, _MAX_HELD, RECOVER)
        if spans:
            machine.ledger.spans = []
        if prompt is not None:
            start(machine, prompt)
            machine.receiver = self._sink
        self.machine = machine
        special, table = known.table(fmt.special_tokens)
        self._scanner: TokenScanner | None = None
        if special:
            self._scanner = machine.scanner = TokenScanner(special, table.bytes_of, False)

    def feed(self, text: str, ids: Sequence[int] = ()) -> DeltaMessage | None:
        """The next piece.

        Raises:
            RuntimeError: after ``finish``.
        """
        machine = self.machine
        if machine.finished:
            raise RuntimeError("feed() after finish(): this output has ended")
        if self._scanner is not None:
            text = self._scanner.feed(text, ids)
            machine.checks_ids = self._scanner.active
        if text:
            machine.feed(text)
        return joined(self._sink.take())

    def finish(self) -> DeltaMessage | None:
        """What is left at the end; nothing if that has been said."""
        self.machine.finish()
        return joined(self._sink.take())

    def whole(self, text: str, ids: Sequence[int] = ()) -> DeltaMessage:
        """A whole output as one delta."""
        return joined([delta for delta in (self.feed(text, ids), self.finish()) if delta is not None]) or DeltaMessage()

    def extracted(self, whole: DeltaMessage) -> ExtractedToolCallInformation:
        """What :meth:`whole` gave, as a tool parser says it."""
        calls = []
        for piece, call in zip(whole.tool_calls or (), self.machine.calls, strict=True):
            function = piece.function
            arguments = "" if function is None else function.arguments or ""
            status = call_status(call, arguments, _NO_TOOLS)
            made = FunctionCall(name=call.name, arguments=arguments)
            calls.append(ToolCall(id=call.id, function=made, status=status, model_id=call.model_id or None))
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=whole.content)
