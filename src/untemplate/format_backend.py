"""The core's own backend: one Format, compiled once, run by the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .abilities import abilities_of_calls
from .backend import OutputContext, ParserBackend
from .call_log import INVALID, reason_of, warn_of_call
from .format import Format
from .machine.call_state import STATUS_DIAGNOSTICS, CallState, call_status, next_index
from .machine.compiler import compile_format
from .machine.diagnostics import DIAGNOSTICS, DiagnosticCode
from .machine.events import DeltaBuilder, EventCollector, EventReceiver
from .machine.ids import IdFactory, make_ids
from .machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, ID_TEXT, MARKUP, NAME_TEXT, REASONING_TEXT
from .machine.machine import Machine
from .machine.program import Program
from .machine.scanner import SpecialTokens, TokenScanner, check_ids
from .machine.snapshot import Snapshot, snapshot
from .machine.start import start
from .machine.tentative_calls import IMMEDIATELY, NEVER, RECOVER
from .markers import foreign_marker, markers_of
from .messages import CallStatus, DeltaMessage, Diagnostic, ParsedOutput, Span, SpanKind
from .policy import Policy
from .requests import count_calls, get
from .stream import StreamBackend
from .tokens import Vocabulary, size_of, vocabulary_of
from .tools import ToolSet

if TYPE_CHECKING:
    from .validation import Problem, Validator
    from .vllm_api.abstract import ReasoningParser, ToolParser

__all__ = ["FormatBackend", "FormatStream", "program_of"]

_DRAFTS: Final = {"recover": RECOVER, "immediately": IMMEDIATELY, "never": NEVER}
_NO_TOOLS: Final = ToolSet(None)

_CALL_KINDS: Final = frozenset({NAME_TEXT, ID_TEXT, ARGUMENT_TEXT})
_KINDS: Final[dict[int, SpanKind]] = {
    MARKUP: "markup",
    NAME_TEXT: "name",
    ID_TEXT: "id",
    ARGUMENT_TEXT: "arguments",
    DROPPED: "dropped",
    REASONING_TEXT: "reasoning",
    CONTENT_TEXT: "content",
}


@lru_cache(maxsize=256)
def program_of(fmt: Format, *, tools: bool = True, special: frozenset[str] = frozenset()) -> Program:
    """Return the Program of a Format, compiled once. Without ``tools`` calls are text. ``special``: special tokens of
    the vocabulary that are not the Format's."""
    return compile_format(fmt, tools=tools, special=special)


@lru_cache(maxsize=256)
def _written(fmt: Format) -> str:
    return fmt.to_json(indent=None)


class FormatBackend(ParserBackend):
    """Parses outputs that a Format describes.

    Args:
        format: the Format.
        tokenizer: anything with ``get_vocab()``, or a Vocabulary; ``None``: token ids have no meaning.
        policy: resolved; the policy of outputs whose context has none of its own.
        special_text, make_id: as for :class:`OutputParser`.
        denied: abilities of calls that the Format's certificate denies; calls that need them are reported.
    """

    def __init__(
        self,
        format: Format,
        tokenizer: Any = None,
        *,
        policy: Policy,
        special_text: str = "kept",
        make_id: IdFactory | None = None,
        denied: frozenset[str] = frozenset(),
    ) -> None:
        self.format = format
        self.denied = denied
        self.tokenizer = tokenizer
        self._policy = policy
        self._own = frozenset(markers_of(format))
        self._needs_filters = not policy.needs_no_filter
        self._make_id = make_id
        self._stripped = special_text == "stripped"
        known = tokenizer if isinstance(tokenizer, Vocabulary) else _vocabulary(tokenizer)
        written = _written(format) if known.special else ""
        unknown = frozenset(text for text in known.special if text and text in known.ids and text not in written)
        # A Format without calls may be one half of a parser: the other half knows what it does not.
        self._ends = unknown if format.tools or format.channels is not None else frozenset()
        self.program = program_of(format, special=self._ends)
        ids, self.tokens = known.table(unknown.union(format.special_tokens))
        self.special_ids = {text: i for text, i in ids.items() if text not in unknown}
        self._special_tokens = SpecialTokens(self.special_ids, {text: ids[text] for text in unknown})

    @property
    def has_reasoning(self) -> bool:
        return self.program.reasoning >= 0

    @property
    def has_tools(self) -> bool:
        return bool(self.program.call_syntaxes)

    @property
    def reasoning_parser(self) -> ReasoningParser | None:
        return _classes().reasoning_class(self.format)(self.tokenizer) if self.has_reasoning else None

    @property
    def tool_parser(self) -> ToolParser | None:
        return _classes().tool_class(self.format)(self.tokenizer) if self.has_tools else None

    def open(self, context: OutputContext) -> FormatStream:
        tools, tool_choice, messages = context.tools, context.tool_choice, context.messages
        request = context.request
        if request is not None:
            tools = get(request, "tools") if tools is None else tools
            tool_choice = get(request, "tool_choice") if tool_choice is None else tool_choice
            messages = get(request, "messages") if messages is None else messages
        policy = context.policy
        tool_set = _NO_TOOLS if tools is None else ToolSet(tools)
        no_calls = tool_choice == "none" or (tools is not None and not len(tools))
        program = program_of(self.format, tools=False, special=self._ends) if no_calls else self.program
        builder = DeltaBuilder()
        machine = Machine(
            program,
            tool_set,
            builder,
            self._make_id or make_ids(program.ids, _seed_bytes(context.seed)),
            count_calls(messages) if messages else 0,
            policy.max_held,
            _DRAFTS[policy.drafts],
        )
        machine.shows_cut_calls = policy.cut_calls == "content"
        if policy.marker_white_space == "keep":
            machine.keep_space()
        if context.spans:
            machine.ledger.spans = []
        receiver: EventReceiver = builder
        if policy is not self._policy or self._needs_filters:
            from .filters import call_policy, filters

            machine.call_policy = call_policy(policy, machine.tools)
            receiver = filters(policy, self.format, builder, machine.ledger)
        if context.prompt is not None or context.prompt_token_ids is not None:
            start(machine, self._prompt(context))
        if context.on_event is not None:
            from .filters import Tee

            receiver = Tee(EventCollector(context.on_event), receiver)
        machine.receiver = receiver
        scanner, checks_ids = None, False
        if not self._special_tokens.empty:
            table = self.tokens
            scanner = TokenScanner(self._special_tokens, table.bytes_of, table.read_bytes, self._stripped)
            checks_ids = (self.format if policy.spelled_markers == "format" else policy).spelled_markers == "text"
        return FormatStream(machine, builder, scanner, checks_ids, context.collect, self._own, self.denied)

    def _prompt(self, context: OutputContext) -> str:
        """Return the prompt's text without the prefill; from ids, the text after the last turn start."""
        prompt = context.prompt
        if prompt is None:
            prompt = self.turn_tail(context.prompt_token_ids or ())
        if context.prefill and prompt.endswith(context.prefill):
            prompt = prompt[: len(prompt) - len(context.prefill)]
        return prompt

    def turn_tail(self, prompt_token_ids: Sequence[int]) -> str:
        """Return the text of a prompt from its last turn start on."""
        return self.tokens.tail(prompt_token_ids, self.program.turn_starts)

    @property
    def begins_in_reasoning(self) -> bool:
        """True if an output whose prompt is not known begins in reasoning."""
        return self.program.start_without_prompt == self.program.reasoning


def _vocabulary(tokenizer: Any) -> Vocabulary:
    """Return the shared vocabulary of a tokenizer, or a copy of its own if nothing would show that it has grown."""
    return vocabulary_of(tokenizer) if tokenizer is not None and size_of(tokenizer) >= 0 else Vocabulary.read(tokenizer)


class FormatStream(StreamBackend):
    """One output that a Format describes."""

    def __init__(
        self,
        machine: Machine,
        builder: DeltaBuilder,
        scanner: TokenScanner | None,
        checks_ids: bool,
        keep_text: bool,
        own_markers: frozenset[str] = frozenset(),
        denied: frozenset[str] = frozenset(),
    ) -> None:
        """``checks_ids``: a marker that is one special token counts only if a token id proves it."""
        machine.scanner = scanner
        self._denied = denied
        self._machine = machine
        self._builder = builder
        self._scanner = scanner
        self._checks_ids = checks_ids
        self._own = own_markers
        self._raw: list[str] | None = [] if keep_text else None
        self._waiting: list[DeltaMessage] | None = None
        """Deltas of another parser, while a call is open; ``None``: there were none so far."""
        self._numbers: dict[int, int] | None = None
        """Numbers of calls in those deltas → numbers in the message."""
        self._validator: Validator | None = None
        self._found: list[Problem] = []
        """Problems of the call that was validated last."""
        self._had_whole_call: bool = False
        """True if one of the calls that the machine has forgotten has ended by itself."""
        if not keep_text:
            machine.forget_call = self._forget_call

    def feed(self, text: str, token_ids: Sequence[int]) -> list[DeltaMessage]:
        scanner = self._scanner
        if scanner is not None:
            if not scanner.passes(text, token_ids):
                text = self._scan(scanner, text, token_ids)
        elif token_ids:
            check_ids(token_ids)
        if text:
            self._machine.feed(text)
            if self._raw is not None:
                self._raw.append(text)
        deltas = self._builder.take()
        return deltas if self._waiting is None else deltas + self._numbered()

    def _scan(self, scanner: TokenScanner, text: str, token_ids: Sequence[int]) -> str:
        """Find special tokens in a delta. Return its text, with stripped markers restored."""
        text = scanner.read(text, token_ids)
        machine = self._machine
        machine.checks_ids = scanner.active and self._checks_ids
        if scanner.unknown_places:
            machine.drop_tokens(scanner.unknown_places)
            scanner.unknown_places = []
        return text

    def feed_tokens(self, text: str, token_ids: Sequence[int], places: Sequence[int]) -> list[DeltaMessage]:
        if self._scanner is not None:
            self._scanner.follow(text, places)
            self._machine.checks_ids = self._checks_ids
            if self._scanner.unknown_places:
                self._machine.drop_tokens(self._scanner.unknown_places)
                self._scanner.unknown_places = []
        self._read(text)
        return self._take()

    def _read(self, text: str) -> None:
        if text:
            self._machine.feed(text)
            if self._raw is not None:
                self._raw.append(text)

    def _take(self) -> list[DeltaMessage]:
        return self._builder.take() if self._waiting is None else self._builder.take() + self._numbered()

    def finish(self, finish_reason: str | None) -> list[DeltaMessage]:
        machine = self._machine
        if self._scanner is not None:
            self._read(self._scanner.finish())
        machine.finish()
        machine.receiver.end(finish_reason)
        if self._raw is None:
            for call in machine.calls:
                self._forget_call(call)
        return self._take()

    def _forget_call(self, call: CallState) -> None:
        """Warn of a call whose arguments were streamed and not kept, as far as they need not be read again."""
        tools = self._machine.tools
        self._had_whole_call = self._had_whole_call or call.whole
        if call.status is None:
            if not call.whole:
                warn_of_call("kept", call.name, reason_of("incomplete"))
            elif tools.known and call.name not in tools.names:
                warn_of_call("kept", call.name, reason_of("unknown_tool"))

    def accept(self, delta: DeltaMessage) -> list[DeltaMessage]:
        self._waiting = [*(self._waiting or ()), delta]
        return self._builder.take() + self._numbered()

    def _numbered(self) -> list[DeltaMessage]:
        """Return the deltas of another parser, their calls numbered; none of them while a call is open."""
        machine = self._machine
        if not machine.finished and machine.calls and not machine.calls[-1].whole:
            return []
        deltas = self._waiting or []
        self._waiting = None
        if self._numbers is None:
            self._numbers = {}
        for delta in deltas:
            for part in delta.tool_calls or ():
                if part.index not in self._numbers:
                    name = part.function.name if part.function is not None else None
                    call = CallState(next_index(machine.calls), part.id or "", name or "")
                    call.whole = True
                    self._numbers[part.index] = call.index
                    machine.calls.append(call)
                part.index = self._numbers[part.index]
        return deltas

    @property
    def has_calls(self) -> bool:
        return bool(self._machine.calls)

    @property
    def has_whole_calls(self) -> bool:
        return self._had_whole_call or any(call.whole for call in self._machine.calls)

    @property
    def ends_in_cut_call(self) -> bool:
        calls = self._machine.calls
        return bool(calls) and not calls[-1].whole

    @property
    def in_reasoning(self) -> bool:
        return self._machine.in_reasoning

    @property
    def marked(self) -> Sequence[tuple[int, int, int]]:
        return self._machine.ledger.spans or ()

    @property
    def snapshot(self) -> Snapshot:
        return snapshot(self._machine)

    def complete(self, result: ParsedOutput) -> None:
        problems: list[tuple[DiagnosticCode, int, int]] = []
        for call, found in zip(self._machine.calls, result.tool_calls, strict=True):
            if call.status is None:
                call.status = self._status(call, found.function.arguments)
                if call.status in INVALID:
                    warn_of_call("kept", call.name, reason_of(call.status, self._found))
            status = found.status = call.status
            found.model_id = call.model_id or None
            found.repairs = list(call.repairs)
            if status in STATUS_DIAGNOSTICS:
                problems.append((STATUS_DIAGNOSTICS[status], call.start, call.end))
        problems += [(note.code, note.start, note.end) for note in self._machine.ledger.notes]
        if self._scanner is not None:
            problems += [("ambiguous_marker", at, at) for at in self._scanner.ambiguous]
        if self._denied:
            problems += self._uncertified(result)
        if problems:
            result.diagnostics = self._diagnostics(problems)
        content = result.content
        if content is not None and ("<" in content or "[" in content):  # markers begin so; most texts have neither
            foreign = foreign_marker(content, self._own)
            if foreign is not None:
                result.diagnostics.append(self._foreign(content, *foreign))
        if self._machine.ledger.spans:
            result.spans = self._spans(self._machine.ledger.spans)

    def _uncertified(self, result: ParsedOutput) -> Iterator[tuple[DiagnosticCode, int, int]]:
        """Yield a diagnostic for each call that needs an ability which the certificate denies."""
        needed = abilities_of_calls(
            (call.function.arguments for call in result.tool_calls),
            content=bool((result.content or "").strip()),
            reasoning=bool(result.reasoning),
            ids=any(call.model_id for call in result.tool_calls),
        )
        for call, abilities in zip(self._machine.calls, needed, strict=True):
            if abilities & self._denied:
                yield "uncertified_arguments", call.start, call.end

    def _status(self, call: CallState, arguments: str) -> CallStatus:
        """Return the status of a call when no call policy is active."""
        tools = self._machine.tools
        return call_status(call, arguments, tools, partial(self._problems, call, arguments) if tools.known else None)

    def _problems(self, call: CallState, arguments: str) -> list[str]:
        from .validation import Validator

        if self._validator is None:
            self._validator = Validator(self._machine.tools)
        self._found = self._validator.check(call.name, arguments)
        return [problem.slug for problem in self._found]

    def _diagnostics(self, problems: list[tuple[DiagnosticCode, int, int]]) -> list[Diagnostic]:
        raw = "".join(self._raw or ())
        return [
            Diagnostic(code=code, message=DIAGNOSTICS[code], start=start, end=end, text=raw[start:end][:200])
            for code, start, end in sorted(problems, key=lambda problem: problem[1])
        ]

    def _foreign(self, content: str, marker: str, place: int, meaning: str) -> Diagnostic:
        """Report a marker of another format in the content."""
        raw = "".join(self._raw or ())
        start = raw.find(content[place : place + 64])
        if start < 0:  # the content goes on after a call
            start = raw.find(marker)
        message = f"content holds {marker!r}, which {meaning}"
        return Diagnostic(code="foreign_marker", message=message, start=start, end=start + len(marker), text=marker)

    def _spans(self, marked: list[tuple[int, int, int]]) -> list[Span]:
        """Return the spans of the output, neighbours of one kind and call joined."""
        spans: list[Span] = []
        calls = self._machine.calls
        raw = "".join(self._raw or ())
        current = 0
        for number, begin, end in marked:
            call = None
            if number in _CALL_KINDS:
                while current < len(calls) - 1 and begin >= max(calls[current].start, calls[current].end):
                    current += 1
                call = current
                # An id may follow the arguments of its call.
                if number == ID_TEXT and current and raw[begin:end] == calls[current - 1].model_id:
                    call -= 1
            kind = _KINDS[number]
            if spans and spans[-1].kind == kind and spans[-1].call == call:
                spans[-1].end = end
            else:
                spans.append(Span(kind=kind, start=begin, end=end, call=call))
        return spans


def _classes() -> Any:
    """Return the module that makes parsers with vLLM's interface. It is an outer layer, loaded only when asked for."""
    return import_module("untemplate.vllm_api.format_parsers")


def _seed_bytes(seed: int | str | bytes | None) -> bytes | None:
    return seed if seed is None or isinstance(seed, bytes) else str(seed).encode()
