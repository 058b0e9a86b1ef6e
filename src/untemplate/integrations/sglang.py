r"""SGLang's server with untemplate's parsers.

::

    python -m untemplate.integrations.sglang --model-path MODEL \
        --tool-call-parser untemplate --reasoning-parser untemplate

The launcher takes SGLang's own arguments. The name ``untemplate`` chooses the Format that certifies against the chat
template of the served tokenizer; ``untemplate:NAME`` is a Format of the catalogue. Where untemplate is installed as a
package, ``sglang serve`` knows these names too (entry point ``sglang.srt.plugins``).

SGLang runs the reasoning parser first and gives its ordinary text to the tool parser. So the reasoning parser passes
calls on as written. Both get the prompt and keep special tokens in the text, because they are subclasses of SGLang's
parsers for response templates.

Source: ``sglang/srt/parser/response_template.py`` and ``sglang/srt/function_call`` of SGLang 0.5.23.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakKeyDictionary

from .._internal.backends.format import FormatBackend
from .._internal.backends.interface import OutputContext
from .._internal.machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, ID_TEXT, NAME_TEXT, REASONING_TEXT
from ..format import Format
from ..format._markers import spellings_of
from ..formats import named, names
from ..grammar import GrammarError, make_grammar
from ..messages import DeltaMessage, DeltaToolCall, ParsedOutput
from ..policy import STREAMED_CALLS, WHOLE_CALLS
from ..tools import shared_tools
from ._of_tokenizer import parser_of
from ._partner import Theirs, partner

__all__ = ["UntemplateReasoning", "UntemplateToolCalls", "main", "register"]

_LEAST: Final = "0.5.23"
_templates: Final = partner("sglang.srt.parser.response_template", "sglang", _LEAST)
_reasoning: Final = partner("sglang.srt.parser.reasoning_parser", "sglang", _LEAST)
_calls: Final = partner("sglang.srt.function_call.function_call_parser", "sglang", _LEAST)
_types: Final = partner("sglang.srt.function_call.core_types", "sglang", _LEAST)
_Result: Final = _templates._ReasoningResult
_log: Final = logging.getLogger("sglang.untemplate")

_CHOSEN: Final[WeakKeyDictionary[Any, Format]] = WeakKeyDictionary()
_named: Final = lru_cache(maxsize=64)(named)
"""The Format of a name, for all requests."""
_TOOL: Final = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def _format_of(name: str | None, tokenizer: Any) -> Format:
    """Return the Format of this name, or the one that the tokenizer's chat template certifies, chosen once."""
    if name is not None:
        return _named(name)
    if tokenizer is None:
        raise ValueError("untemplate needs the tokenizer's chat template; without one, name a format: untemplate:NAME")
    found = _CHOSEN.get(tokenizer)
    if found is None:
        found = _CHOSEN[tokenizer] = parser_of(tokenizer).format
    return found


_STREAMED: Final = STREAMED_CALLS.resolved()
_WHOLE: Final = WHOLE_CALLS.resolved()


@lru_cache(maxsize=64)
def _shared(fmt: Format) -> FormatBackend:
    """Return the parser of a Format, which all requests share."""
    return FormatBackend(fmt, policy=_STREAMED)


def _parse(parser: FormatBackend, text: str, tools: Sequence[Any] | None) -> ParsedOutput:
    """Return the message of a whole output."""
    return parser.parse(text, (), "stop", OutputContext(policy=_WHOLE, tools=tools, collect=True))


@lru_cache(maxsize=64)
def _without_reasoning(fmt: Format) -> Format:
    return fmt if fmt.reasoning is None else fmt.extend(reasoning=None)


# -- Reasoning ----------------------------------------------------------------------------------------------------


_NOTHING_YET: Final = _Result()
_STEP: Final = 32
"""Characters of a call that are read at once. Each part of a call is an event of the server's stream, and nobody reads
arguments word by word."""


class _Output:
    """One output, of which calls are read in steps."""

    def __init__(self, parser: FormatBackend, context: OutputContext) -> None:
        self.stream: Final = parser.open(context)
        self._feed: Final = self.stream.feed
        self._held: str | None = None
        """Text of a call that is not read yet; ``None`` outside calls."""
        self._ended = False

    def read(self, text: str) -> list[DeltaMessage]:
        """Return the deltas that the next part of the output completes."""
        if self._held is not None:
            text = self._held + text
            if len(text) < _STEP:
                self._held = text
                return []
            self._held = None
        deltas = self._feed(text, ())
        if (not deltas or deltas[-1].tool_calls is not None) and self.stream.in_call:
            self._held = ""
        return deltas

    def end(self) -> list[DeltaMessage]:
        """End the output; return the remaining deltas. May be called repeatedly."""
        if self._ended:
            return []
        self._ended = True
        deltas = self._feed(self._held, ()) if self._held else []
        return deltas + self.stream.finish("stop")

    @property
    def ends_in_cut_call(self) -> bool:
        return self.stream.ends_in_cut_call


class _Rest(str):
    """The first text that is not reasoning. A tool parser of the same Format may take over what was read of it."""

    __slots__ = ("source",)

    source: _Split


_NOT_OFFERED: Final = 0
_OFFERED: Final = 1
_TAKEN: Final = 2
_DECLINED: Final = 3


class _Split:
    """Splits one output into reasoning and the rest.

    From the first call on, all text is the rest, as it was written. A tool parser with the same Format and tools takes
    the deltas themselves, so that no text is read twice. Then the rest only shows that there are some.
    """

    def __init__(self, parser: FormatBackend, prompt: str, tools: Sequence[Any] | None) -> None:
        self._tools: Final = tools
        context = OutputContext(policy=_STREAMED, prompt=prompt or None, tools=tools, spans=True)
        self._output: Final = _Output(parser, context)
        self._read: Final = self._output.read
        self._format: Final = parser.format
        self._text: list[str] = []
        self._passes = False
        """True if all text is the rest."""
        self._phase = _NOT_OFFERED
        self._deltas: list[DeltaMessage] = []
        """Deltas for the tool parser."""
        self._later = ""
        """Reasoning after the first call, if one part of the output holds both. It is text if no tool parser takes the
        deltas."""

    # -- For the reasoning parser

    def feed(self, text: str) -> Any:
        """Return the reasoning and the rest of the next part of the output."""
        if self._phase == _TAKEN:
            return self._shared(self._read(text), text)
        if self._phase == _OFFERED:
            self._phase = _DECLINED
        if self._passes:
            return _Result(text)
        self._text.append(text)
        return self._alone(self._read(text))

    def finish(self) -> Any:
        """End the output; return the reasoning and the rest of what was held."""
        if self._passes and self._phase != _TAKEN:
            return _NOTHING_YET
        deltas = self._output.end()
        if self._phase == _TAKEN:
            return self._shared(deltas, "")
        self._phase = _DECLINED
        return self._alone(deltas)

    def _alone(self, deltas: list[DeltaMessage]) -> Any:
        """Return the reasoning and the rest, and offer the first rest to a tool parser."""
        if not deltas:
            return _NOTHING_YET
        reasoning = rest = ""
        last = len(deltas)
        for at, delta in enumerate(deltas):
            reasoning += delta.reasoning or ""
            rest += delta.content or ""
            if delta.tool_calls:
                rest += self._from_call()
                last = at
                break
        if rest and self._phase == _NOT_OFFERED:
            self._phase = _OFFERED
            self._later = "".join(delta.reasoning or "" for delta in deltas[last + 1 :])
            self._keep(deltas)
            rest = _Rest(rest)
            rest.source = self
        return _Result(rest, reasoning)

    def _shared(self, deltas: list[DeltaMessage], text: str) -> Any:
        """Return the reasoning, and keep all else for the tool parser."""
        if not deltas and not self._later:
            return _NOTHING_YET
        reasoning = self._later + self._keep(deltas)
        self._later = ""
        return _Result(text if self._deltas else "", reasoning)

    def _keep(self, deltas: list[DeltaMessage]) -> str:
        """Keep deltas for the tool parser, without their reasoning, which is returned."""
        reasoning = ""
        for delta in deltas:
            if delta.reasoning is not None:
                reasoning += delta.reasoning
                delta.reasoning = None
            if delta.content is not None or delta.tool_calls is not None:
                self._deltas.append(delta)
        return reasoning

    def _from_call(self) -> str:
        """Return the output from the markup of its first call on."""
        self._passes = True
        text = "".join(self._text)
        spans = self._output.stream.marked
        first = next(begin for kind, begin, _ in spans if kind in (NAME_TEXT, ID_TEXT, ARGUMENT_TEXT))
        texts = (end for kind, _, end in spans if kind in (CONTENT_TEXT, REASONING_TEXT) and end <= first)
        start = max(texts, default=0)
        fmt = self._format
        closes = spellings_of(*(part.close for part in (fmt.reasoning, fmt.content, fmt.channels) if part))
        closed = [text.rfind(close, start, first) + len(close) for close in closes if close in text[start:first]]
        return text[max(closed, default=start) :]

    # -- For a tool parser

    def may_take(self, fmt: Format, tools: Sequence[Any]) -> bool:
        """True if a tool parser may take the deltas from the first rest on. Then it has to."""
        if self._phase != _OFFERED or self._format != fmt or self._tools is None:
            return False
        if tools != self._tools and shared_tools(tools).names != shared_tools(self._tools).names:
            return False
        self._phase = _TAKEN
        return True

    def take(self, text: str) -> list[DeltaMessage]:
        """Return the deltas that were kept."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def end(self) -> list[DeltaMessage]:
        """End the output; return the remaining deltas."""
        return self.take("") + self._output.end()

    @property
    def ends_in_cut_call(self) -> bool:
        return self._output.stream.ends_in_cut_call


if TYPE_CHECKING:
    _ResponseTemplateReasoningDetector = Theirs
else:
    _ResponseTemplateReasoningDetector = _templates.ResponseTemplateReasoningDetector


class UntemplateReasoning(_ResponseTemplateReasoningDetector):
    """Splits reasoning from the rest. Without an active tool parser, calls are content."""

    format_name: ClassVar[str | None] = None

    def __init__(
        self,
        stream_reasoning: bool = True,
        tokenizer: Any = None,
        prefix: str = "",
        force_reasoning: bool | None = None,
        force_nonempty_content: bool = False,
        grammar_start: str | None = None,
        tools: Sequence[Any] | None = None,
        tool_call_parser_active: bool = False,
        **_: Any,
    ) -> None:
        # SGLang's own constructor would load a response template.
        self._parser = _shared(_format_of(self.format_name, tokenizer))
        reasoning = self._parser.format.reasoning
        self.think_start_token: str = "" if reasoning is None else "".join(spellings_of(reasoning.open)[:1])
        self.think_end_token: str = "" if reasoning is None else reasoning.close.spellings[0]
        self.think_excluded_tokens: None = None
        self.think_start_self_label = ""
        self.message_start_think_openers: list[str] = [self.think_start_token] if self.think_start_token else []
        self.answer_started = False
        self.stream_reasoning = stream_reasoning
        self._force_nonempty_content = force_nonempty_content
        self._prompt = prefix or (self.think_start_token if force_reasoning else "")
        self._tools = tools if tool_call_parser_active else ()
        self._verbatim = grammar_start == _templates.GRAMMAR_FROM_START
        self._direct = stream_reasoning and not force_nonempty_content and not self._verbatim
        """True if parts are sent as they come."""
        self._split = self._new_split()
        self._feed = self._split.feed
        self._held = ""
        self._answered = False

    def _new_split(self) -> _Split:
        return _Split(self._parser, self._prompt, self._tools)

    def detect_and_parse(self, text: str) -> Any:
        """Return the reasoning and the rest of a whole output."""
        if self._verbatim:
            return _Result(text)
        split = self._new_split()
        found, last = split.feed(text), split.finish()
        reasoning = found.reasoning_text + last.reasoning_text
        rest = found.normal_text + last.normal_text
        if self._force_nonempty_content and not rest:
            reasoning, rest = "", reasoning
        return _Result(rest, reasoning)

    def parse_streaming_increment(self, new_text: str) -> Any:
        """Return the reasoning and the rest that the next text completes."""
        if self._direct:
            return self._feed(new_text)
        return self._streamed(_Result(new_text) if self._verbatim else self._feed(new_text))

    def finish(self) -> Any:
        """Return what was held."""
        result = self._streamed(self._split.finish(), ended=True)
        if self._force_nonempty_content and not self._answered:
            return _Result(self._held)
        return result

    def _streamed(self, found: Any, ended: bool = False) -> Any:
        """Return a result; reasoning waits for its end if it is not to be streamed."""
        reasoning, rest = found.reasoning_text, found.normal_text
        self._answered = self._answered or bool(rest)
        waits = not self.stream_reasoning and not (rest or ended)
        if not self.stream_reasoning:
            reasoning, self._held = (self._held + reasoning, "") if not waits else ("", self._held + reasoning)
        elif self._force_nonempty_content and not self._answered:
            self._held += reasoning
        return _Result(rest, reasoning)

    def starts_message(self, prefix: str) -> bool:
        """True if an output after this prompt may begin with something other than reasoning."""
        return not self._parser.open(OutputContext(policy=_STREAMED, prompt=prefix)).in_reasoning

    def answer_opener(self, prefix: str) -> str:
        return ""

    def json_output_started(self, text: str) -> bool:
        return bool(self._verbatim)


# -- Calls --------------------------------------------------------------------------------------------------------


class _Part:
    """Text and calls of a part of an output: the fields that SGLang's server reads of its own result."""

    __slots__ = ("calls", "normal_text")

    def __init__(self, normal_text: str, calls: Sequence[_Call]) -> None:
        self.normal_text = normal_text
        self.calls = calls


class _Call:
    """A part of a call: the fields that SGLang's server reads of its own item, which takes longer to make."""

    __slots__ = ("name", "parameters", "tool_index")

    def __init__(self, tool_index: int, name: str | None, parameters: str) -> None:
        self.tool_index = tool_index
        self.name = name
        self.parameters = parameters


_NO_CALLS: Final[Sequence[_Call]] = ()
_NOTHING: Final = _Part("", _NO_CALLS)


if TYPE_CHECKING:
    _ResponseTemplateToolDetector = Theirs
else:
    _ResponseTemplateToolDetector = _templates.ResponseTemplateToolDetector


class UntemplateToolCalls(_ResponseTemplateToolDetector):
    """Reads calls from text without reasoning. Reasoning that is still in it stays in the text."""

    format_name: ClassVar[str | None] = None
    tool_close_literals: ClassVar[Sequence[str]] = ()

    def __init__(self, tokenizer: Any = None, tools: Sequence[Any] | None = None, **_: Any) -> None:
        _templates.BaseFormatDetector.__init__(self)  # SGLang's own constructor would load a response template.
        self._format = fmt = _format_of(self.format_name, tokenizer)
        self._parser = _shared(_without_reasoning(fmt))
        self._tools = tools  # Formats without markers know a call by the name of a tool.
        self._source: _Output | _Split | None = None
        self._read: Callable[[str], list[DeltaMessage]] | None = None
        self._last = -1
        self.incomplete_tool_call_indices: set[int] = set()

    def has_tool_call(self, text: str) -> bool:
        return bool(_parse(self._parser, text, self._tools).tool_calls)

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> Any:
        """Return the text and the calls of a whole output."""
        parsed = _parse(self._parser, text, tools)
        calls = [
            _types.ToolCallItem(tool_index=index, name=call.function.name, parameters=call.function.arguments)
            for index, call in enumerate(parsed.tool_calls)
        ]
        return _types.StreamingParseResult(normal_text=(parsed.reasoning or "") + (parsed.content or ""), calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> Any:
        """Return the text and the parts of calls that the next text completes."""
        if self._read is None:
            self._read = self._begin(new_text, tools)
        deltas = self._read(new_text)
        if not deltas:
            return _NOTHING
        if len(deltas) == 1:  # the two common kinds: text, and a part of one call
            delta = deltas[0]
            calls = delta.tool_calls
            if calls is None:
                return _Part(delta.content or delta.reasoning or "", _NO_CALLS)
            if len(calls) == 1 and delta.content is None and delta.reasoning is None:
                return _Part("", (self._item(calls[0]),))
        return self._result(deltas)

    def _begin(self, text: str, tools: Sequence[Any]) -> Callable[[str], list[DeltaMessage]]:
        """Return the source of the deltas: what the reasoning parser has read, or an output of its own."""
        if type(text) is _Rest and text.source.may_take(self._format, tools):
            self._source = text.source
            return text.source.take
        self._source = output = _Output(self._parser, OutputContext(policy=_STREAMED, tools=tools))
        return output.read

    def finish(self, tools: Sequence[Any]) -> Any:
        """Return what was held. A call that was cut is noted, so that SGLang keeps the finish reason."""
        if self._source is None:
            return _NOTHING
        result = self._result(self._source.end())
        if self._last >= 0 and self._source.ends_in_cut_call:
            self.incomplete_tool_call_indices = {self._last}
        return result

    def _result(self, deltas: Sequence[DeltaMessage]) -> _Part:
        text = "".join((delta.reasoning or "") + (delta.content or "") for delta in deltas)
        return _Part(text, [self._item(call) for delta in deltas for call in delta.tool_calls or ()])

    def _item(self, call: DeltaToolCall) -> _Call:
        self._last = call.index
        function = call.function
        if function is None:
            return _Call(call.index, None, "")
        return _Call(call.index, function.name, function.arguments or "")

    def open_call_closer(self, text: str) -> None:
        return None

    def supports_structural_tag(self) -> bool:
        """True if calls can be constrained in the model's own format."""
        return self._tag([_TOOL], "required") is not None

    def get_structural_tag(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
        message_start: bool = False,
    ) -> Any:
        """Return the structural tag of a request, or None if its calls cannot be constrained."""
        reasoning = "closed" if thinking_mode and message_start else "off"
        return self._tag(tools or [], tool_choice, parallel_tool_calls, reasoning)

    def validate_structure_constraint_request(
        self,
        tool_choice: Any,
        parallel_tool_calls: bool,
        strict_requested: bool,
        *,
        tools: Sequence[Any],
        thinking_mode: bool = False,
    ) -> Any:
        """Return the structural tag of a request whose calls must be constrained, or None."""
        if tool_choice == "auto" and parallel_tool_calls and not strict_requested:
            return None
        return self._tag(tools, tool_choice, parallel_tool_calls)

    def _tag(self, tools: Sequence[Any], tool_choice: Any, parallel: bool = True, reasoning: str = "off") -> Any:
        offered = [tool if isinstance(tool, dict) else tool.model_dump(exclude_none=True) for tool in tools]
        choice = tool_choice if isinstance(tool_choice, str) else tool_choice.model_dump()
        try:
            grammar = make_grammar(
                self._format,
                offered,
                choice,
                parallel_tool_calls=parallel,
                dialect="structural_tag",
                reasoning=reasoning,
            )
        except GrammarError as error:
            _log.warning("untemplate: the calls of a request are not constrained: %s", error)
            return None
        return partner("xgrammar", "xgrammar", "0.2").StructuralTag.model_validate_json(grammar.text)


# -- The server ---------------------------------------------------------------------------------------------------


def register() -> None:
    """Add the parsers to SGLang's tables, as ``untemplate`` and ``untemplate:NAME``. May be called repeatedly."""
    tables = (
        (_calls.FunctionCallParser.ToolCallParserEnum, UntemplateToolCalls),
        (_reasoning.ReasoningParser.DetectorMap, UntemplateReasoning),
    )
    for table, base in tables:
        table["untemplate"] = base
        for name in names():
            fields = {"format_name": name, "__module__": __name__}
            table[f"untemplate:{name}"] = type(base.__name__, (base,), fields)


register()  # SGLang's processes import the module that was launched, as Python's multiprocessing does.


def main(arguments: Sequence[str] | None = None) -> None:
    """Launch SGLang's server. ``arguments`` are those of ``sglang.launch_server``; by default the command line's."""
    launch: Callable[[Any], None] = partner("sglang.launch_server", "sglang", _LEAST).run_server
    server_args = partner("sglang.srt.server_args", "sglang", _LEAST)
    partner("sglang.srt.plugins", "sglang", _LEAST).load_plugins()
    chosen = server_args.prepare_server_args(list(sys.argv[1:] if arguments is None else arguments))
    try:
        launch(chosen)
    finally:
        partner("sglang.srt.utils", "sglang", _LEAST).kill_process_tree(os.getpid(), include_parent=False)


if __name__ == "__main__":
    main()
