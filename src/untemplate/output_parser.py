"""OutputParser: the front door. One per model, shared by all of its requests.

Rules of this module:

* A parser is immutable: a Format, compiled once, with calls and without. Streams carry the state.
* The state that an output begins in is read from its prompt: the text after the last turn start is run through the
  machine, silently. Without a prompt the Format's default decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from .format import Format
from .formats import lookup, named
from .machine.coercion import ToolSet
from .machine.compiler import compile_format
from .machine.events import DeltaBuilder, EventCollector, EventReceiver, SemanticEvent
from .machine.ids import IdFactory, make_ids
from .machine.machine import IMMEDIATELY, NEVER, RECOVER, Machine
from .machine.scanner import TokenScanner
from .machine.start import start
from .messages import ChatCompletionRequest, DeltaMessage, ParsedOutput
from .policy import Policy
from .stream import Stream
from .tokens import TokenTable
from .vllm_api._requests import adjusted, count_calls, get, joined
from .vllm_api.format_parsers import reasoning_class, tool_class

if TYPE_CHECKING:
    from .analysis import Certificate
    from .grammar import Grammar
    from .selection import Selection
    from .vllm_api.abstract import ReasoningParser, ToolParser

__all__ = ["OutputParser", "Tokenizer"]

_DRAFTS = {"recover": RECOVER, "immediately": IMMEDIATELY, "never": NEVER}
_NO_TOOLS = ToolSet(None)
_SELECT = ("template", "enforce", "reasoning", "model_type", "response_template")


class Tokenizer(Protocol):
    """All that is needed of a tokenizer."""

    def get_vocab(self) -> dict[str, int]: ...


class _NoTokens:
    """Stands in where there is no tokenizer: text alone."""

    def get_vocab(self) -> dict[str, int]:
        return {}


class OutputParser:
    """Raw model output → OpenAI message, whole or streamed.

    Spec 1's constructor takes parser names, the ways of DESIGN §3 are class methods (:meth:`named`,
    :meth:`from_format`). A parser is immutable but for :meth:`parse_streaming`, and may be shared between threads.

    Args:
        tokenizer: anything with ``get_vocab()``; with it token ids tell markers from text that merely spells them.
        reasoning_parser_name, tool_parser_name: names of the catalogue, or registered with the managers of
            ``untemplate.vllm_api``; with neither, text passes through as content.
        format: a Format instead of names.
        policy: how unclean output is treated.
        special_text: whether the engine's text holds special tokens (``"kept"``) or not (``"stripped"``: markers come
            by id, and ids must come in step with their text).
        make_id: (tool name, number of the call) → id, instead of the Format's own way.

    Raises:
        ValueError: an unknown name (lists the valid ones), or a setting that does not exist.
        TypeError: a tokenizer without ``get_vocab()``.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | None = None,
        reasoning_parser_name: str | None = None,
        tool_parser_name: str | None = None,
        *,
        format: Format | None = None,
        policy: Policy | None = None,
        special_text: str = "kept",
        make_id: IdFactory | None = None,
    ) -> None:
        if special_text not in ("kept", "stripped"):
            raise ValueError(f"special_text: {special_text!r} is not one of: 'kept', 'stripped'")
        if tokenizer is not None and not callable(getattr(tokenizer, "get_vocab", None)):
            raise TypeError(f"tokenizer: {type(tokenizer).__name__} has no get_vocab()")
        self._foreign: type[Any] | None = None
        if format is None:
            self._foreign = _registered(reasoning_parser_name, tool_parser_name)
            if self._foreign is None:
                format = _named(reasoning_parser_name, tool_parser_name)
            else:
                format = _half_named(reasoning_parser_name, tool_parser_name)
        self._format = format
        self._policy = (policy or Policy()).resolved()
        self._lenient = self._policy.is_default
        self._make_id = make_id
        self._program = compile_format(format)
        self._plain = compile_format(format, tools=False)
        self._stripped = special_text == "stripped"
        self._special: dict[str, int] = {}
        self._tokens: TokenTable | None = None
        self._tokenizer: Tokenizer = _NoTokens() if tokenizer is None else tokenizer
        if tokenizer is not None:
            vocab = tokenizer.get_vocab()
            self._special = {t: vocab[t] for t in format.special_tokens if t in vocab}
            self._tokens = TokenTable(vocab, self._special)
        self._certificate: Certificate | None = None
        self._selection: Selection | None = None
        self._implicit: Stream | None = None
        self._implicit_length = 0

    @classmethod
    def named(cls, name: str, *, reasoning: str | None = None, **settings: Any) -> OutputParser:
        """The catalogue's Format of this name; ``reasoning`` names another family's reasoning markers.

        Raises:
            ValueError: an unknown name; suggests the nearest and lists the valid ones.
        """
        return cls(settings.pop("tokenizer", None), format=named(name, reasoning=reasoning), **settings)

    @classmethod
    def from_format(cls, format: Format, **settings: Any) -> OutputParser:
        """A parser for a Format of your own."""
        return cls(settings.pop("tokenizer", None), format=format, **settings)

    @classmethod
    def from_template(cls, source: Any, **settings: Any) -> OutputParser:
        """A parser for whatever a chat template writes: the Format is inferred, and certified by rendering and parsing.

        Args:
            source: the template, a file or folder that holds one, or a ``ChatTemplate``.
            settings: as in the constructor; ``cache=False`` analyses anew.

        Raises:
            untemplate.templates.TemplateError: there is no template, or it is none.
            untemplate.analysis.AnalysisError: it renders no conversation at all.
        """
        from .analysis import analyze

        analysis = analyze(source, cache=settings.pop("cache", True))
        parser = cls(settings.pop("tokenizer", None), format=analysis.format, **settings)
        parser._certificate = analysis.certificate
        return parser

    @classmethod
    def for_model(cls, model: str | os.PathLike[str], **settings: Any) -> OutputParser:
        """A parser for a model: what certifies against its own chat template, in the order of
        :func:`untemplate.selection.select`. Where nothing does, that is logged as a warning.

        Args:
            model: hub id, local folder or GGUF file.
            settings: as in the constructor; ``template``, ``enforce``, ``reasoning``, ``model_type`` and
                ``response_template`` go to ``select``.

        Raises:
            ValueError: an enforced name that does not exist; lists the valid ones.
        """
        from .selection import select

        chosen = {k: settings.pop(k) for k in _SELECT if k in settings}
        selection = select(model, **chosen)
        parser = cls(settings.pop("tokenizer", None), format=selection.format, **settings)
        parser._certificate = selection.certificate
        parser._selection = selection
        return parser

    @property
    def selection(self) -> Selection | None:
        """How :meth:`for_model` chose: what was tried, the evidence and the runner-up."""
        return self._selection

    @property
    def certificate(self) -> Certificate | None:
        """What was rendered, what came back and what failed; ``None`` where no template was looked at."""
        return self._certificate

    @property
    def format(self) -> Format:
        return self._format

    @property
    def policy(self) -> Policy:
        return self._policy

    @property
    def has_reasoning(self) -> bool:
        return self._program.reasoning >= 0 or self._foreign_half("reasoning_parser") is not None

    @property
    def has_tools(self) -> bool:
        return bool(self._program.call_syntaxes) or self._foreign_half("tool_parser") is not None

    def _foreign_half(self, name: str) -> Any:
        return None if self._foreign is None else getattr(self._foreign(self._tokenizer), name, None)

    @property
    def reasoning_parser(self) -> ReasoningParser | None:
        """Spec 2's reasoning parser for this Format; ``None`` if it has no reasoning. A new one at each access: its
        streaming state belongs to one request."""
        if self._foreign is not None:
            return self._foreign_half("reasoning_parser")  # type: ignore[no-any-return]
        return reasoning_class(self._format)(self._tokenizer) if self.has_reasoning else None

    @property
    def tool_parser(self) -> ToolParser | None:
        """Spec 2's tool parser for this Format, likewise; ``None`` if it has no calls."""
        if self._foreign is not None:
            return self._foreign_half("tool_parser")  # type: ignore[no-any-return]
        return tool_class(self._format)(self._tokenizer) if self.has_tools else None

    @property
    def reasoning_close(self) -> str | None:
        """What is written to end reasoning and to begin content, white space included; ``None`` where nothing does."""
        channels = self._format.channels
        if self._format.reasoning is not None:
            return self._format.reasoning.close.text
        if channels is None or not channels.reasoning or channels.channel is None or channels.close is None:
            return None
        name = channels.content[0] if channels.content else ""
        return (
            channels.close.text + channels.open.text + channels.role + channels.channel.text + name + channels.body.text
        )

    def token_id(self, special_token: str) -> int | None:
        """The id of one of the Format's special tokens, where the vocabulary is known and has it."""
        return self._special.get(special_token)

    def adjust_request(self, request: Any) -> Any:
        """A copy of the request, of the same type, that asks the engine to keep special tokens in the text."""
        if self._foreign is not None:
            return self._foreign(self._tokenizer).adjust_request(request)
        return adjusted(request, skip_special_tokens=False)

    def render(self, message: Any) -> str:
        """The assistant turn as text, as the Format's models write it.

        Raises:
            ValueError: the message cannot be expressed; :meth:`expressible` says why without raising.
        """
        from .render import render

        return render(self._format, message)

    def expressible(self, message: Any) -> str | None:
        """``None`` if :meth:`render` can write this message so that it parses back, else the reason."""
        from .render import expressible

        return expressible(self._format, message)

    def grammar(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        *,
        parallel_tool_calls: bool = True,
        strict: bool = False,
        dialect: str = "gbnf",
        reasoning: str | None = None,
        response_format: Any = None,
    ) -> Grammar:
        """A grammar for an engine to decode under: what it accepts, this parser reads as calls that validate.

        Args:
            tools: as in the request.
            tool_choice: ``"auto"``, ``"required"``, ``"none"``, a named function or ``allowed_tools``.
            strict: arguments follow each tool's schema. Else they are any object, but for the tools that say
                ``strict`` themselves.
            dialect: ``"gbnf"`` (llama.cpp), ``"lark"`` (llguidance) or ``"structural_tag"`` (xgrammar).
            reasoning: ``"open"``: the prompt has opened reasoning; ``"closed"``: the model may; ``"off"``: there is
                none. ``None``: as the Format begins.
            response_format: a JSON schema that content must follow, as in the request.

        Raises:
            GrammarError: a schema or name that cannot be written, named with its tool.
        """
        from .grammar import make_grammar

        return make_grammar(
            self._format,
            tools,
            tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            strict=strict,
            dialect=dialect,
            reasoning=reasoning,
            response_format=response_format,
            tokens=self._special or None,
        )

    # -- whole ---------------------------------------------------------------------------------------------------

    def parse(
        self,
        model_output: str,
        request: Any = None,
        finish_reason: str | None = "stop",
        *,
        token_ids: Sequence[int] = (),
        **context: Any,
    ) -> ParsedOutput:
        """The message that a whole output means. Takes the same context as :meth:`stream`.

        Args:
            model_output: raw text, special tokens included unless ``special_text="stripped"``.
            request: a chat or responses request; its ``tools``, ``tool_choice`` and ``messages`` count where they are
                not given themselves.
            finish_reason: the engine's.
        """
        if not isinstance(model_output, str):
            raise TypeError(f"parse() takes text, got {type(model_output).__name__}")
        if self._foreign is not None:
            return self._foreign_parse(model_output, request, finish_reason, token_ids, **context)
        stream = self.stream(request=request, collect=True, **context)
        stream.feed(model_output, token_ids)
        stream.finish(finish_reason)
        return stream.result()

    def parse_complete_with_fallback(
        self, model_output: str, request: Any = None, finish_reason: str | None = "stop", **context: Any
    ) -> ParsedOutput:
        """Spec 5's way to parse a whole output: as :meth:`parse`, but a tool region that fails (it was cut, or its
        arguments are no JSON object, mended as far as the policy allows) is content, markup included. Never fails.
        """
        policy: Policy = context.pop("policy", None) or self._policy
        if policy.malformed_arguments == "repaired" and policy.repair == "none":
            policy = replace(policy, repair="syntax")
        policy = replace(policy, malformed_arguments="content")
        return self.parse(model_output, request, finish_reason, policy=policy, **context)

    # -- streamed ------------------------------------------------------------------------------------------------

    def stream(
        self,
        *,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = None,
        prompt: str | None = None,
        prompt_token_ids: Sequence[int] | None = None,
        prefill: str = "",
        messages: Sequence[Any] | None = None,
        request: Any = None,
        policy: Policy | None = None,
        collect: bool = False,
        spans: bool = False,
        seed: int | str | bytes | None = None,
        on_event: Callable[[SemanticEvent], None] | None = None,
    ) -> Stream:
        """A stream for one output.

        Args:
            tools: as in the request. ``None``: unknown, any name is a tool's; ``[]``: none, calls are text.
            tool_choice: ``"none"``: calls are text. Anything else changes nothing.
            prompt, prompt_token_ids: what the model was given; the start state comes from its end.
            prefill: the tail of the prompt that belongs to the message.
            messages: the history; formats that number their calls go on from it.
            collect: keep what :meth:`Stream.result` needs.
            spans: also keep what every stretch of the output became, for :attr:`Stream.marked` and, with ``collect``,
                for the result.
            seed: makes the ids of calls repeatable.
            on_event: is told everything as :class:`SemanticEvent`, in order, as it is found.

        Parsers that are registered by name say what they say: for them the result is a
        :class:`~untemplate.vllm_api.delegating_stream.DelegatingStream`, used in the same way, and ``on_event``,
        ``spans``, ``seed`` and policies do not reach them.

        Raises:
            ValueError: a tool without a name, or with parameters that are no schema; names the field. ``on_event`` with
                a registered parser.
        """
        if self._foreign is not None:
            if on_event is not None:
                raise ValueError("on_event: a registered parser tells no events")
            request = _request(request, tools, tool_choice, messages)
            return self._delegating(request, prompt, prompt_token_ids, prefill, collect)
        if request is not None:
            tools = get(request, "tools") if tools is None else tools
            tool_choice = get(request, "tool_choice") if tool_choice is None else tool_choice
            messages = get(request, "messages") if messages is None else messages
        sink = DeltaBuilder()
        chosen = self._policy if policy is None else policy.resolved()
        machine = self._machine(sink, tools, tool_choice, messages, chosen, seed, spans)
        told = self._told(chosen, sink, machine, tools)
        if prompt is None and prompt_token_ids is not None:
            prompt = self._prompt_text(prompt_token_ids)
        if prompt is not None:
            if prefill and prompt.endswith(prefill):
                prompt = prompt[: len(prompt) - len(prefill)]
            start(machine, prompt)
        if on_event is not None:
            from .filters import Both

            told = Both(EventCollector(on_event), told)
        machine.receiver = told
        scanner = None
        if self._special:
            assert self._tokens is not None
            scanner = TokenScanner(self._special, self._tokens.bytes_of, self._stripped)
        stream = Stream(machine, sink, scanner, chosen, tools, collect=collect)
        if prefill:
            stream.begin(prefill)
        return stream

    def _delegating(
        self, request: Any, prompt: str | None, ids: Sequence[int] | None, prefill: str, collect: bool
    ) -> Stream:
        """A stream over a registered parser. It wants the prompt as ids."""
        from .vllm_api.delegating_stream import DelegatingStream

        assert self._foreign is not None
        encode = getattr(self._tokenizer, "encode", None)
        if ids is None and prompt is not None and encode is not None:
            encoded = encode(prompt, add_special_tokens=False)
            ids = list(getattr(encoded, "ids", encoded))
        stream = DelegatingStream(self._foreign(self._tokenizer), request, ids, collect=collect)
        if prefill:
            stream.begin(prefill)
        return cast("Stream", stream)

    def _foreign_parse(
        self,
        text: str,
        request: Any,
        finish_reason: str | None,
        ids: Sequence[int],
        *,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = None,
        messages: Sequence[Any] | None = None,
        prefill: str = "",
        **_: Any,
    ) -> ParsedOutput:
        """What a registered parser makes of a whole output, which may be more than it makes of a stream without ids."""
        from .vllm_api.delegating_stream import parsed_of

        assert self._foreign is not None
        request = _request(request, tools, tool_choice, messages)
        found = self._foreign(self._tokenizer).parse(prefill + text, request, True, list(ids))
        return parsed_of(found, finish_reason)

    def _machine(
        self,
        sink: EventReceiver,
        tools: Sequence[Any] | None,
        tool_choice: Any,
        messages: Sequence[Any] | None,
        policy: Policy,
        seed: int | str | bytes | None,
        spans: bool,
    ) -> Machine:
        tool_set = _NO_TOOLS if tools is None else ToolSet(tools)
        no_calls = tool_choice == "none" or (tools is not None and not len(tools))
        program = self._plain if no_calls else self._program
        machine = Machine(
            program,
            tool_set,
            sink,
            self._make_id or make_ids(program.ids, _seed(seed)),
            count_calls(messages) if messages else 0,
            policy.max_held,
            _DRAFTS[policy.drafts],
        )
        if spans:
            machine.ledger.spans = []
        return machine

    def _told(
        self, policy: Policy, sink: EventReceiver, machine: Machine, tools: Sequence[Any] | None
    ) -> EventReceiver:
        """Who the machine tells what it finds: the deltas, behind what the policy puts between."""
        if policy is self._policy and self._lenient:
            return sink
        from .filters import call_policy, filters

        machine.call_policy = call_policy(policy, machine.tools, tools)
        return filters(policy, self._format, sink)

    def _prompt_text(self, ids: Sequence[int]) -> str | None:
        """The prompt's end as text, from the last turn start on if its special token can be found."""
        if self._tokens is None:
            return None
        return self._tokens.tail(ids, self._program.turn_starts)

    # -- spec 1 --------------------------------------------------------------------------------------------------

    def parse_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int] = (),
        current_token_ids: Sequence[int] = (),
        delta_token_ids: Sequence[int] = (),
        request: Any = None,
    ) -> DeltaMessage | None:
        """One delta of one implicit stream: spec 1's call, for one request at a time. :meth:`stream` is the way to
        serve several, and to learn what is still open at the end.

        Returns: what the delta completes, or ``None`` if that is nothing yet.

        Raises:
            ValueError: ``previous_text`` is not what has been given before (an empty one starts anew).
        """
        if not previous_text:
            self._implicit = self.stream(request=request)
            self._implicit_length = 0
        if self._implicit is None or len(previous_text) != self._implicit_length:
            raise ValueError(
                f"previous_text has {len(previous_text)} characters, the stream has taken {self._implicit_length}; "
                "an empty previous_text starts a new stream"
            )
        if current_text != previous_text + delta_text:
            raise ValueError("current_text is not previous_text + delta_text")
        self._implicit_length = len(current_text)
        return joined(self._implicit.feed(delta_text, delta_token_ids))

    def finish_streaming(self, finish_reason: str | None = "stop") -> DeltaMessage | None:
        """Ends the implicit stream: what was still open."""
        if self._implicit is None:
            return None
        return joined(self._implicit.finish(finish_reason))


def _named(reasoning: str | None, tools: str | None) -> Format:
    if tools is not None:
        return named(tools, reasoning=reasoning)
    if reasoning is not None:
        return lookup("reasoning", reasoning).format
    return named("passthrough")


def _registered(reasoning: str | None, tools: str | None) -> type[Any] | None:
    """The parser of these names, if one of them has been registered and is not the catalogue's."""
    if reasoning is None and tools is None:
        return None
    from .vllm_api.managers import ParserManager

    return ParserManager.get_parser(tools, reasoning) if ParserManager.is_foreign(tools, reasoning) else None


def _half_named(reasoning: str | None, tools: str | None) -> Format:
    """The Format of what is the catalogue's among these names."""
    from .vllm_api.managers import ParserManager, ReasoningParserManager, ToolParserManager

    foreign = ToolParserManager.registered(tools) or ParserManager.registered(tools)
    return _named(None if ReasoningParserManager.registered(reasoning) else reasoning, None if foreign else tools)


def _request(request: Any, tools: Sequence[Any] | None, tool_choice: Any, messages: Sequence[Any] | None) -> Any:
    """The request with what was given beside it, as a registered parser is told of it."""
    if request is None:
        return ChatCompletionRequest(
            messages=list(messages or ()),
            tools=None if tools is None else list(tools),
            tool_choice=tool_choice or "auto",
        )
    given = {"tools": tools, "tool_choice": tool_choice, "messages": messages}
    return adjusted(request, **{name: value for name, value in given.items() if value is not None})


def _seed(seed: int | str | bytes | None) -> bytes | None:
    return seed if seed is None or isinstance(seed, bytes) else str(seed).encode()
