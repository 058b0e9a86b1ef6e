"""The class that parses: formats, whole outputs, streams, token ids, grammars, histories.

* It is immutable and knows no server's interface. `untemplate.OutputParser` adds the methods that servers call.
* It holds a backend, which opens a :class:`~untemplate.Stream` for each output. The state that an output begins
  in is read from its prompt: the text after the last turn start. Without a prompt the Format's default decides.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from ..errors import GrammarError
from ..format import Format
from ..formats import Kind, half, named
from ..messages import ParsedOutput
from ..policy import Policy
from .backends.abilities import abilities_of_calls, bound, denied_arguments, warn
from .backends.format import FormatBackend
from .backends.interface import OutputContext, ParserBackend, check_context, find_backend, prompt_of
from .machine.ids import IdFactory
from .options import OutputOptions, ParserOptions, StreamOptions, WholeOptions, check_names, spelled_out
from .stream import Stream
from .tokens.decoding import SpecialText, Tokenizer, TokenTable, Vocabulary, encode, vocabulary_of
from .tokens.spans import Bridge, ParsedTokens

if TYPE_CHECKING:
    from ..analysis import Certificate, QuotedCalls
    from ..grammar import Grammar
    from ..selection import Selection
    from ..templates import ChatTemplate

__all__ = ["MessageParser"]


class MessageParser:
    """Turns raw model output into OpenAI messages, whole or streamed.

    `untemplate.OutputParser` is the public class; it explains the arguments.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | None = None,
        reasoning_parser_name: str | None = None,
        tool_parser_name: str | None = None,
        *,
        format: Format | None = None,
        backend: ParserBackend | None = None,
        policy: Policy | None = None,
        special_text: SpecialText = "kept",
        make_id: IdFactory | None = None,
    ) -> None:
        if special_text not in ("kept", "stripped"):
            raise ValueError(f"special_text: {special_text!r} is not one of: 'kept', 'stripped'")
        if tokenizer is not None and not callable(getattr(tokenizer, "get_vocab", None)):
            raise TypeError(f"tokenizer: {type(tokenizer).__name__} has no get_vocab()")
        _check_type("reasoning_parser_name", reasoning_parser_name, str)
        _check_type("tool_parser_name", tool_parser_name, str)
        _check_type("format", format, Format)
        _check_type("backend", backend, ParserBackend)
        _check_sources(reasoning_parser_name or tool_parser_name, format, backend)
        _check_type("policy", policy, Policy)
        if make_id is not None and not callable(make_id):
            raise TypeError(f"make_id: expected a function (name, index) -> id, got {make_id!r}")
        self._policy = (policy or Policy()).resolved()
        self._origin = "named" if format is None else "given as a Format"
        if backend is None:
            factory = None if format is not None else find_backend(reasoning_parser_name, tool_parser_name)
            if factory is None:
                format = format or _named(reasoning_parser_name, tool_parser_name)
                backend = FormatBackend(
                    format, tokenizer, policy=self._policy, special_text=special_text, make_id=make_id
                )
            else:
                backend = factory(tokenizer, policy=self._policy, special_text=special_text, make_id=make_id)
        self._backend = backend
        self._names: dict[Kind, str | None] = {"reasoning": reasoning_parser_name, "tool": tool_parser_name}
        self._tokenizer = tokenizer
        self._certificate: Certificate | None = None
        self._selection: Selection | None = None
        self._template: ChatTemplate | None = None

    @classmethod
    @spelled_out(ParserOptions)
    def named(
        cls,
        name: str,
        *,
        reasoning: str | None = None,
        **options: Unpack[ParserOptions],
    ) -> Self:
        """Return a parser for a Format of the catalogue, or of a file.

        Args:
            name: the Format's name, two names (``hermes+qwen3``: calls of the first, reasoning of the second), or a
                ``.json`` file. For names that come with requests, use `untemplate.formats.named`: it reads no files.
            reasoning: name of another Format, whose reasoning markers are used.
            tokenizer, policy, special_text, make_id: as for the constructor.

        Raises:
            UnknownFormatError: (a ValueError) an unknown name; suggests the nearest and lists the valid ones.
            FormatError: (a ValueError) the file cannot be read, or describes no Format.
        """
        check_names("named", options, ParserOptions)
        fmt = named(name, reasoning=reasoning, files=True)
        parser = cls(format=fmt, **options)
        parser._origin = "named"
        return parser

    @classmethod
    @spelled_out(ParserOptions)
    def from_format(cls, format: Format, **options: Unpack[ParserOptions]) -> Self:
        """Return a parser for a Format of your own.

        Args:
            format: the Format.
            tokenizer, policy, special_text, make_id: as for the constructor.
        """
        check_names("from_format", options, ParserOptions)
        if format is None:
            raise TypeError("format: expected Format, got NoneType: None")
        return cls(format=format, **options)

    @classmethod
    @spelled_out(ParserOptions)
    def from_template(
        cls,
        source: str | os.PathLike[str] | ChatTemplate,
        *,
        cache: bool = True,
        uncertified: Literal["off", "on"] = "off",
        **options: Unpack[ParserOptions],
    ) -> Self:
        """Return a parser for what a chat template writes. Its Format is inferred, and certified by rendering messages
        and parsing them back.

        Args:
            source: the template, a file or folder that holds one, or a ``ChatTemplate``.
            cache: use and store results of earlier analyses.
            uncertified: abilities that the certificate denies. ``"off"``: no calls if ``calls`` failed, and no
                reasoning if ``reasoning`` failed; calls that need another failed ability get the diagnostic
                ``uncertified_arguments``, and :meth:`render` and :meth:`grammar` refuse to write them. ``"on"``: the
                Format is used as it was inferred.
            tokenizer, policy, special_text, make_id: as for the constructor.

        Raises:
            ValueError: ``uncertified`` has another value.
            TemplateError: there is no template, or it is broken.
            AnalysisError: it renders no conversation at all.
        """
        check_names("from_template", options, ParserOptions)
        if uncertified not in ("off", "on"):
            raise ValueError(f"uncertified: {uncertified!r} is not one of: 'off', 'on'")
        from ..analysis import analyze
        from ..templates import ChatTemplate

        template = ChatTemplate.load(source) if isinstance(source, str | os.PathLike) else source
        if isinstance(template, ChatTemplate):
            template = template.ending(str(getattr(options.get("tokenizer"), "eos_token", None) or ""))
        analysis = analyze(template, cache=cache)
        found = analysis.certificate.capabilities
        warn(analysis.format.name, found)
        fmt = bound(analysis.format, found) if uncertified == "off" else analysis.format
        parser = cls(format=fmt, **options)
        if uncertified == "off":
            parser._deny(found)
        parser._certificate = analysis.certificate
        parser._template = template
        parser._origin = "inferred from a template"
        return parser

    @classmethod
    @spelled_out(ParserOptions)
    def for_model(
        cls,
        model: str | os.PathLike[str],
        *,
        template: str | os.PathLike[str] | ChatTemplate | None = None,
        enforce: str | None = None,
        reasoning: str | None = None,
        model_type: str | None = None,
        response_template: Mapping[str, Any] | None = None,
        **options: Unpack[ParserOptions],
    ) -> Self:
        """Return a parser for a model, with the first Format that certifies against its chat template.

        :func:`untemplate.selection.select` has the order in which Formats are tried. If none certifies, a warning is
        logged.

        Args:
            model: hub id, local folder or GGUF file.
            template, enforce, reasoning, model_type, response_template: as for ``select``.
            tokenizer, policy, special_text, make_id: as for the constructor.

        Raises:
            ValueError: an enforced name that does not exist (lists the valid ones), a path that does not exist, or a
                ``template`` that cannot be read.
            TypeError: an argument of the wrong type.
        """
        check_names("for_model", options, ParserOptions)
        from ..selection import select

        selection = select(
            model,
            template=template,
            enforce=enforce,
            reasoning=reasoning,
            model_type=model_type,
            response_template=response_template,
        )
        parser = cls(format=selection.format, **options)
        parser._certificate = selection.certificate
        parser._selection = selection
        parser._template = selection.template
        if selection.source == "analysis" and selection.certificate is not None:
            parser._deny(selection.certificate.capabilities)
        parser._origin = f"for {os.fspath(model)}"
        return parser

    def _deny(self, capabilities: Mapping[str, str]) -> None:
        if isinstance(self._backend, FormatBackend):
            self._backend.denied = denied_arguments(capabilities)

    @property
    def _denied(self) -> frozenset[str]:
        return self._backend.denied if isinstance(self._backend, FormatBackend) else frozenset()

    def __repr__(self) -> str:
        parts = [repr(self.format.name), self._origin]
        if type(self._backend) is not FormatBackend:
            parts.append(f"parsed by {type(self._backend).__name__}")
        parts.append("without tokenizer" if self._tokenizer is None else "with tokenizer")
        default = Policy(strict=False)
        changed = [
            f"{f.name}={value!r}"
            for f in fields(Policy)
            if (value := getattr(self._policy, f.name)) != getattr(default, f.name)
        ]
        return f"<{type(self).__name__} {', '.join(parts + changed)}>"

    @property
    def selection(self) -> Selection | None:
        """How :meth:`for_model` chose: what was tried, the evidence and the runner-up."""
        self._measure_quotations()
        return self._selection

    @property
    def certificate(self) -> Certificate | None:
        """The certificate: what was parsed back from rendered messages; ``None`` if no template was analysed."""
        self._measure_quotations()
        return self._certificate

    def _measure_quotations(self) -> None:
        """Add the measure of quoted calls to the certificate, which parsers of other tokenizers may share."""
        if self._certificate is None or self._certificate.quoted_calls is not None:
            return
        self._certificate = replace(self._certificate, quoted_calls=self.quoted_calls)
        if self._selection is not None:
            chosen = replace(self._selection.chosen, certificate=self._certificate)
            tried = tuple(chosen if one is self._selection.chosen else one for one in self._selection.tried)
            self._selection = replace(self._selection, chosen=chosen, tried=tried)

    @property
    def quoted_calls(self) -> QuotedCalls | None:
        """The contexts in which a quoted call is called, with and without token ids; ``None`` without calls, and for
        parsers of other packages.

        It is measured with the parser's policy and tokenizer, otherwise with the tokens that the Format lists.
        """
        from .backends.quotations import quoted_calls

        if not self.has_tools or not isinstance(self._backend, FormatBackend):
            return None
        return quoted_calls(self.format, self._known_tokens, self._policy)

    @property
    def prompt_markers(self) -> frozenset[str]:
        """The markers that no text of a message should hold: those of the Format, and the tokens that the tokenizer has
        added. `ChatTemplate.render` breaks them in messages (``neutralize``)."""
        from .backends.recognition import prompt_markers

        known = self._known_tokens
        return prompt_markers(self.format, () if known is None else known.added)

    @property
    def _known_tokens(self) -> Vocabulary | None:
        """The tokens of the tokenizer, otherwise the added ones of the model's files."""
        if self._tokenizer is not None:
            return vocabulary_of(self._tokenizer)
        return None if self._template is None else self._template.vocabulary

    @property
    def format(self) -> Format:
        """The Format that describes the outputs."""
        return self._backend.format

    @property
    def policy(self) -> Policy:
        """How malformed output is treated, unless an output has a policy of its own."""
        return self._policy

    @property
    def has_reasoning(self) -> bool:
        """True if outputs can have reasoning."""
        return self._backend.has_reasoning

    @property
    def has_tools(self) -> bool:
        """True if outputs can have tool calls."""
        return self._backend.has_tools

    @property
    def reasoning_close(self) -> str | None:
        """The text that ends reasoning and begins content, white space included; ``None`` without one."""
        channels = self.format.channels
        if self.format.reasoning is not None:
            return self.format.reasoning.close.text
        if channels is None or not channels.has_reasoning or channels.close is None:
            return None
        from .render.turn import content_header

        return channels.close.text + channels.open.text + channels.role + content_header(channels)

    @property
    def _special_ids(self) -> dict[str, int]:
        return self._backend.special_ids if isinstance(self._backend, FormatBackend) else {}

    @cached_property
    def _table(self) -> TokenTable | None:
        """The text of each token id; ``None`` without a tokenizer."""
        if isinstance(self._backend, FormatBackend):
            return self._backend.tokens
        return None if self._tokenizer is None else vocabulary_of(self._tokenizer).table(())[1]

    def token_id(self, special_token: str) -> int | None:
        """Return the id of one of the Format's special tokens; ``None`` if the vocabulary does not have it."""
        return self._special_ids.get(special_token)

    def render(self, message: Any) -> str:
        """Return the assistant turn as text, as the Format's models write it.

        Raises:
            ValueError: the message cannot be expressed; :meth:`expressible` returns the reason without raising.
        """
        from .render import Inexpressible, render

        if self._needs_denied(message):
            raise ValueError(f"{Inexpressible.UNCERTIFIED}: {Inexpressible.UNCERTIFIED.sentence}")
        return render(self.format, message)

    def expressible(self, message: Any) -> str | None:
        """Return ``None`` if :meth:`render` can write this message so that it parses back, else the reason."""
        from .render import Inexpressible, expressible

        return Inexpressible.UNCERTIFIED if self._needs_denied(message) else expressible(self.format, message)

    def _needs_denied(self, message: Any) -> bool:
        """True if a call of the message needs an ability that the certificate denies."""
        if not self._denied:
            return False
        from .render.message import read_message

        read = read_message(message)
        arguments = (call.arguments for call in read.calls)
        ids = any(call.id for call in read.calls)
        needed = abilities_of_calls(arguments, content=bool(read.content), reasoning=bool(read.reasoning), ids=ids)
        return any(one & self._denied for one in needed)

    def history(self, messages: Sequence[Any]) -> list[dict[str, Any]]:
        """Return messages in the shape that the model's own chat template takes.

        Templates differ in what they accept of a conversation: arguments as objects or as JSON text, content that is
        null, empty or absent next to calls, content as a list of parts, ids of a certain shape. The messages of clients
        and of :meth:`ParsedOutput.message` are converted; they are not changed themselves.

        Args:
            messages: dicts or models, with texts and calls as in OpenAI's API.

        Raises:
            ValueError: the parser was not made from a template or for a model that has one.
            ContentPartError: (a ValueError) a message has a part, such as an image, that a template cannot write.
            TypeError: a message is neither a dict nor a model.
        """
        if self._template is None:
            raise ValueError("history: no chat template is known; make the parser with from_template() or for_model()")
        from ..templates._history import for_template, template_needs
        from ..templates._inputs import Inputs

        written = Inputs().dicts("messages", messages)
        return for_template(written, template_needs(self._template), self.format)

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
            strict: arguments follow each tool's schema. Else they are any object, except for tools that set
                ``strict`` themselves.
            dialect: ``"gbnf"`` (llama.cpp), ``"lark"`` (llguidance) or ``"structural_tag"`` (xgrammar).
            reasoning: ``"open"``: the prompt has opened reasoning; ``"closed"``: the model may; ``"off"``: there is
                none. ``None``: as the Format begins.
            response_format: a JSON schema that content must follow, as in the request.

        Raises:
            GrammarError: a schema or name that cannot be written, named with its tool; or calls need an ability that
                the certificate denies.
        """
        denied = self._denied - ({"ids"} if parallel_tool_calls else {"ids", "parallel_calls"})
        if tools and tool_choice != "none" and denied:
            raise GrammarError(f"the format's certificate denies {', '.join(sorted(denied))}")
        from ..grammar import make_grammar

        return make_grammar(
            self.format,
            tools,
            tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            strict=strict,
            dialect=dialect,
            reasoning=reasoning,
            response_format=response_format,
            tokens=self._special_ids or None,
        )

    # -- whole outputs -------------------------------------------------------------------------------------------

    @spelled_out(WholeOptions)
    def parse(
        self,
        model_output: str,
        request: Any = None,
        finish_reason: str | None = "stop",
        *,
        token_ids: Sequence[int] = (),
        **options: Unpack[WholeOptions],
    ) -> ParsedOutput:
        """Return the message of a whole output.

        Args:
            model_output: raw text, special tokens included unless ``special_text="stripped"``.
            request: a chat or responses request; its ``tools``, ``tool_choice`` and ``messages`` are used where they
                are not given themselves.
            finish_reason: the engine's.
            token_ids: the output's ids.
            tools, tool_choice, prompt, prompt_token_ids, prefill, messages, policy, spans, seed, on_event: as for
                :meth:`stream`.
        """
        if not isinstance(model_output, str):
            raise TypeError(
                f"parse() model_output: expected str, got {type(model_output).__name__}: {model_output!r:.200}"
            )
        check_names("parse", options, WholeOptions)
        context = self._context({**options, "request": request, "collect": True})
        return self._backend.parse(model_output, token_ids, finish_reason, context)

    @spelled_out(OutputOptions)
    def parse_tokens(
        self,
        token_ids: Sequence[int],
        request: Any = None,
        finish_reason: str | None = "stop",
        **options: Unpack[OutputOptions],
    ) -> ParsedTokens:
        """Return the message of a whole output that is given as token ids, with the tokens of each part.

        The ids are never encoded again: their text is read from the tokenizer's vocabulary.

        Args:
            token_ids: the output's ids, special tokens included; a list, or an array with ``tolist()``.
            request, finish_reason: as for :meth:`parse`.
            tools, tool_choice, prompt, prompt_token_ids, prefill, messages, policy, seed: as for :meth:`stream`.

        Raises:
            ValueError: an id is not in the vocabulary, the parser has no tokenizer, or that knows none of the
                Format's special tokens.
            TypeError: an id is not an integer.
        """
        special = self.format.special_tokens
        if special and self._table and isinstance(self._backend, FormatBackend) and not self._special_ids:
            shown = ", ".join(map(repr, special[:4]))
            raise ValueError(
                f"tokenizer: has none of the special tokens of format {self.format.name!r} ({shown}, …): it belongs to "
                "another model, or the model to another format"
            )
        check_names("parse_tokens", options, OutputOptions)
        stream = self.stream(**options, request=request, collect=True, spans=True)
        stream.feed_tokens(token_ids)
        stream.finish(finish_reason)
        return stream.token_result()

    def bridge(
        self,
        previous_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[Any] | None = None,
        template: str | os.PathLike[str] | ChatTemplate | None = None,
        **variables: Any,
    ) -> Bridge:
        """Return the ids to append after a sampled turn: the new messages, and the opening of the next turn. The ids
        that were sampled stay as they are.

        Args:
            previous_ids: the ids so far, which end with the sampled turn; its end-of-turn token may be missing.
            new_messages: results of calls, or the next question.
            messages: the conversation so far, with the sampled turn as its last message. With it, the proof is about
                this conversation, otherwise about any.
            tools: as in the request.
            template: the model's; needed if the parser was not made from one.
            variables: of the template, such as ``enable_thinking``.

        Raises:
            ValueError: there is no template or no tokenizer, or ``messages`` does not end with the sampled turn.
            TypeError: the tokenizer has no ``encode()``.
            TemplateError: the template cannot render this, or ends a turn in another way if messages follow it.
        """
        from ..templates import ChatTemplate
        from ..templates._bridge import between_turns

        source = self._template if template is None else template
        if source is None:
            raise ValueError("template: the parser was not made from a template, so bridge() needs one")
        if not self._table:
            raise ValueError("bridge() needs a parser with a tokenizer")
        loaded = source if isinstance(source, ChatTemplate) else ChatTemplate.load(source)
        found = between_turns(loaded, self.format, new_messages, messages=messages, tools=tools, **variables)
        # Text is encoded together with the marker before it: tokenizers treat the beginning of a text in their own way.
        ids = encode(self._tokenizer, found.end + found.text)
        first = self._table.text_of(ids[:1])
        ended = self._table.text_of(previous_ids[-1:]) in {*found.ends, first}
        apart = encode(self._tokenizer, "a" + found.end + found.text) == [*encode(self._tokenizer, "a"), *ids]
        proof = found.proof if apart and (first == found.end or not found.end) else "none"
        return Bridge(ids[1:] if ended else ids, found.text, proof)

    # -- streams -------------------------------------------------------------------------------------------------

    @spelled_out(StreamOptions)
    def stream(self, **options: Unpack[StreamOptions]) -> Stream:
        """Return a stream for one output.

        Args:
            tools: as in the request. ``None``: unknown, any name is a tool; ``[]``: none, calls are text.
            tool_choice: ``"none"``: calls are text. Other values change nothing.
            prompt: the model's prompt, as text or token ids; the output begins in the state that it ends in.
            prompt_token_ids: the same as token ids.
            prefill: the end of the prompt that belongs to the message.
            messages: the history; Formats that number their calls continue its numbers.
            request: as for :meth:`parse`.
            policy: for this output, instead of the parser's.
            collect: keep what :meth:`Stream.result` needs.
            spans: also record what each part of the output became, for :attr:`Stream.marked` and, with ``collect``, for
                the result.
            seed: makes the ids of calls repeatable.
            on_event: called with each :class:`SemanticEvent`, in order, as soon as it is found.

        Parsers that are registered by name have no ``on_event``, ``spans``, ``seed`` or policies.

        Raises:
            ValueError: a tool without a name, or with parameters that are not a schema; names the field. Or
                ``on_event`` with a registered parser.
            TypeError: an argument of the wrong type.
        """
        check_names("stream", options, StreamOptions)
        context = self._context(options)
        return Stream(self._backend.open(context), context.policy, context.collect, context.prefill, self._table)

    def _context(self, options: StreamOptions) -> OutputContext:
        """Return what is known about an output, checked."""
        policy = options.get("policy")
        _check_type("policy", policy, Policy)
        known: dict[str, Any] = {**options, "policy": self._policy if policy is None else policy.resolved()}
        if "prompt" in known or "prompt_token_ids" in known:
            known |= prompt_of(options.get("prompt"), options.get("prompt_token_ids"))
        context = OutputContext(**known)
        check_context(context)
        return context


def _named(reasoning: str | None, tools: str | None) -> Format:
    """Return the catalogue's Format for the two names."""
    if tools is not None:
        return named(tools, reasoning=reasoning, files=True)
    if reasoning is not None:
        fmt = half("reasoning", reasoning, files=True)
        return fmt.extend(tools=()) if fmt.tools and fmt.channels is None else fmt
    return named("passthrough")


def _check_type(name: str, value: Any, expected: type[Any]) -> None:
    """Check an argument that may be ``None``."""
    if value is not None and not isinstance(value, expected):
        raise TypeError(f"{name}: expected {expected.__name__}, got {type(value).__name__}: {value!r:.200}")


def _check_sources(name: str | None, format: Format | None, backend: ParserBackend | None) -> None:
    """Check that at most one of these is given."""
    given = [
        what for what, value in (("a parser name", name), ("format", format), ("backend", backend)) if value is not None
    ]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} exclude each other: give one of them")
