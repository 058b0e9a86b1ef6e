"""The core's own backend: one Format, compiled once, run by the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, Final

from ...format import Format
from ...policy import Policy
from ...tools import ToolSet, shared_tools
from ..machine.compiler import compile_format
from ..machine.events import DeltaBuilder, EventCollector, EventReceiver
from ..machine.evidence import FENCED_ARE_TEXT, QUOTED_ARE_CALLS, QUOTED_BY_EVIDENCE
from ..machine.ids import IdFactory, new_seed
from ..machine.machine import Machine
from ..machine.program import Program
from ..machine.scanner import SpecialTokens, TokenScanner
from ..machine.start import start
from ..machine.tentative_calls import DRAFTS_IMMEDIATELY, DRAFTS_NEVER, DRAFTS_RECOVER
from ..tokens.decoding import TokenTable, Vocabulary, size_of, vocabulary_of
from .format_stream import FormatStream
from .interface import OutputContext, ParserBackend
from .markup_in_values import MarkupInValues
from .recognition import markers_of, markers_within
from .requests import count_calls, get
from .unread_markers import UnreadMarkers

__all__ = ["FormatBackend", "program_of", "special_tokens_of"]

_DRAFTS: Final = {"recover": DRAFTS_RECOVER, "immediately": DRAFTS_IMMEDIATELY, "never": DRAFTS_NEVER}
_QUOTED: Final = {"evidence": QUOTED_BY_EVIDENCE, "call": QUOTED_ARE_CALLS, "content": FENCED_ARE_TEXT}
_NO_TOOLS: Final = ToolSet(None)


@lru_cache(maxsize=256)
def program_of(fmt: Format, *, tools: bool = True, special: frozenset[str] = frozenset()) -> Program:
    """Return the Program of a Format, compiled once. Without ``tools`` calls are text. ``special``: special tokens of
    the vocabulary that are not the Format's."""
    return compile_format(fmt, tools=tools, special=special)


@lru_cache(maxsize=256)
def _written(fmt: Format) -> str:
    return fmt.to_json(indent=None)


@lru_cache(maxsize=256)
def _spellings(fmt: Format) -> str:
    """Return every marker of a Format, with a character between them that none has."""
    return "\0".join(text for marker in markers_within(fmt) for text in marker.spellings)


_LOOKS_LIKE_MARKER: Final = re.compile(r"(?=.*[<>\[\]|｜]).{3,}", re.DOTALL)


def special_tokens_of(fmt: Format, known: Vocabulary) -> frozenset[str]:
    """Return the special tokens of a Format, and the added tokens of a vocabulary that are a part of its markers."""
    written = _spellings(fmt) if known.added else ""
    added = (text for text in known.added if text in written and _LOOKS_LIKE_MARKER.match(text))
    return frozenset(fmt.special_tokens).union(added)


def _policy_of(fmt: Format, policy: Policy) -> Policy:
    """Return the policy for outputs of a Format, which may say where reasoning is, if the policy does not."""
    if fmt.reasoning is None or not fmt.reasoning.inline or policy.reasoning_field != "reasoning":
        return policy
    return replace(policy, reasoning_field="inline", marker_white_space="keep")


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
        self._policy = policy = _policy_of(format, policy)
        self._own = frozenset(markers_of(format))
        self._unread = UnreadMarkers(format)
        self._values = MarkupInValues(format, self._unread)
        self._needs_filters = not policy.needs_no_filter
        self._make_id = make_id
        self._stripped = special_text == "stripped"
        known = tokenizer if isinstance(tokenizer, Vocabulary) else _vocabulary(tokenizer)
        written = _written(format) if known.special else ""
        unknown = frozenset(text for text in known.special if text and text in known.ids and text not in written)
        # A Format without calls may be one half of a parser: the other half knows what it does not.
        self._ends = unknown if format.tools or format.channels is not None else frozenset()
        self.program: Program = program_of(format, special=self._ends)
        self.tokens: TokenTable
        ids, self.tokens = known.table(unknown.union(special_tokens_of(format, known)))
        self.special_ids: dict[str, int] = {text: i for text, i in ids.items() if text not in unknown}
        self._special_tokens = SpecialTokens(self.special_ids, {text: ids[text] for text in unknown})

    @cached_property
    def _program_without_calls(self) -> Program:
        return program_of(self.format, tools=False, special=self._ends)

    @property
    def has_reasoning(self) -> bool:
        return self.program.reasoning >= 0

    @property
    def has_tools(self) -> bool:
        return bool(self.program.call_syntaxes)

    def open(self, context: OutputContext) -> FormatStream:
        tools, tool_choice, messages = context.tools, context.tool_choice, context.messages
        request = context.request
        if request is not None:
            tools = get(request, "tools") if tools is None else tools
            tool_choice = get(request, "tool_choice") if tool_choice is None else tool_choice
            messages = get(request, "messages") if messages is None else messages
        policy = _policy_of(self.format, context.policy)
        tool_set = _NO_TOOLS if tools is None else shared_tools(tools)
        no_calls = tool_choice == "none" or (tools is not None and not len(tools))
        program = self._program_without_calls if no_calls else self.program
        builder = DeltaBuilder()
        machine = Machine(
            program,
            tool_set,
            builder,
            self._make_id,
            _seed_bytes(context.seed),
            count_calls(messages) if messages else 0,
            policy.max_held,
            _DRAFTS[policy.drafts],
        )
        machine.shows_cut_calls = policy.shows_cut_calls
        if policy.quoted_calls != "evidence":
            machine.decide_quoted_calls(_QUOTED[policy.quoted_calls])
        if policy.marker_white_space == "keep":
            machine.keep_space()
        if context.spans:
            machine.ledger.spans = []
        receiver: EventReceiver = builder
        if policy is not self._policy or self._needs_filters:
            from .filters import call_policy, filters

            machine.call_policy = call_policy(policy, machine.tools, self._values)
            receiver = filters(policy, self.format, builder, machine.ledger)
        if context.prompt is not None or context.prompt_token_ids is not None:
            start(machine, self._prompt(context))
        if context.on_event is not None:
            from .filters import Tee

            receiver = Tee(EventCollector(context.on_event), receiver)
        machine.receiver = receiver
        if self._special_tokens.ids:
            scanner = TokenScanner(self._special_tokens, self.tokens, self._stripped)
            spelled = (self.format if policy.spelled_markers == "format" else policy).spelled_markers
            scanner.proves_markers = spelled == "text"
            machine.use_ids(scanner)
        return FormatStream(machine, builder, context.collect, self._unread, self._values, self._own, self.denied)

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


def _seed_bytes(seed: int | str | bytes | None) -> bytes:
    return new_seed() if seed is None else seed if isinstance(seed, bytes) else str(seed).encode()
