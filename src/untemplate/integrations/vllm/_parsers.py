"""untemplate's parsers as classes of vLLM.

* A class is made when vLLM asks for it by name. The Format of ``untemplate`` is chosen once for each tokenizer, and
  Formats that the operator names are measured against its chat template once.
* vLLM creates a parser for each request, so that must be cheap.
* Results are converted to vLLM's own types.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import vllm.envs
from vllm.reasoning import ReasoningParser
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers import ToolParser

from ..._internal.backends.requests import get
from ..._internal.deltas import merge_deltas
from ...format import Format
from ...formats import named
from ...grammar import GrammarError, make_grammar
from ...messages import DeltaMessage, DeltaToolCall
from ...selection import Selection, Tried, against_template, select
from ...templates import ChatTemplate, TemplateError
from ...vllm_api import FormatReasoningParser, FormatToolParser
from ...vllm_api._format_parsers import one_pass

try:
    from vllm.entrypoints.generate.base import protocol
except ImportError:  # before vLLM 0.31
    from vllm.entrypoints.openai.engine import protocol

__all__ = ["OnePass", "UntemplateHalf", "format_of"]

_log: Final = logging.getLogger("vllm.untemplate")
"""A child of vLLM's own logger, whose handlers it uses."""

_CHOSEN: Final[WeakKeyDictionary[Any, Format]] = WeakKeyDictionary()
_named: Final = lru_cache(maxsize=64)(partial(named, files=True))
"""The Format of a name; merging its two halves takes longer than all else that a request's parser needs."""


def __getattr__(name: str) -> type[Any]:
    """Make the class that vLLM looks up: ``reasoning:NAME`` or ``tool:NAME``, without NAME for the template's."""
    kind, colon, format_name = name.partition(":")
    if not colon:
        raise AttributeError(name)
    base = UntemplateReasoningParser if kind == "reasoning" else UntemplateToolParser
    return type(base.__name__, (base,), {"format_name": format_name, "__module__": __name__})


def format_of(tokenizer: Any, name: str = "") -> Format:
    """Return the Format of the catalogue of this name; without a name the one that the tokenizer's chat template
    certifies, chosen once.
    """
    if name:
        return _named(name)
    found = _CHOSEN.get(tokenizer)
    if found is None:
        found = _CHOSEN[tokenizer] = _choose(tokenizer)
    return found


def _choose(tokenizer: Any) -> Format:
    model, template = _served(tokenizer)
    if template is None:
        _log.warning("untemplate: the tokenizer has no chat template that can be read; looking for one in %s", model)
    choice = select(model, template=template)
    _log_choice(model, choice)
    return choice.format


def _served(tokenizer: Any) -> tuple[str | None, ChatTemplate | None]:
    """Return the served model, and its tokenizer's chat template if it has one."""
    model = str(getattr(tokenizer, "name_or_path", "") or "") or None
    return model, ChatTemplate.of_tokenizer(tokenizer, name=model or "the served model")


def _log_choice(model: str | None, choice: Selection) -> None:
    found = {} if choice.certificate is None else choice.certificate.capabilities
    abilities = ", ".join(name for name, answer in found.items() if answer == "yes")
    _log.info(
        "untemplate parses %s as %r (%s); certified: %s", model, choice.format.name, choice.source, abilities or "-"
    )


_MEASURED: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()
"""The names of the Formats that were measured with a tokenizer."""


def _measure(tokenizer: Any, fmt: Format, missing: str) -> None:
    """Log a Format that the operator has named, once, with a warning of what it does not read of the chat template.

    ``missing`` is the half without a parser, for the warning.
    """
    try:
        done = _MEASURED.setdefault(tokenizer, set())
    except TypeError:  # a tokenizer that cannot be referred to weakly: every request would measure again
        return
    if fmt.name in done:
        return
    done.add(fmt.name)
    model, template = _served(tokenizer)
    named_one = Selection(Tried("enforced", fmt.name, fmt, None, "enforced by the operator"))
    choice = against_template(named_one, template)
    _log_choice(model, choice)
    if choice.warning:
        _log.warning("untemplate: %s%s", choice.warning, missing and f"; there is no {missing} parser")


# -- Halves -------------------------------------------------------------------------------------------------------


class UntemplateHalf:
    """A parser of one half, for vLLM's managers."""

    format_name: ClassVar[str] = ""
    engine_based_streaming = True


class UntemplateReasoningParser(UntemplateHalf, FormatReasoningParser, ReasoningParser):  # type: ignore[misc]
    """Reasoning, for vLLM."""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        ReasoningParser.__init__(self, tokenizer, *args, **kwargs)
        FormatReasoningParser.__init__(self, tokenizer, format=format_of(tokenizer, self.format_name))

    def extract_reasoning_streaming(self, *args: Any, **kwargs: Any) -> Any:
        return _theirs(super().extract_reasoning_streaming(*args, **kwargs))

    def finish_streaming(self) -> Any:
        return _theirs(super().finish_streaming())

    def adjust_request(self, request: Any) -> Any:
        request.skip_special_tokens = False
        return request


class UntemplateToolParser(UntemplateHalf, FormatToolParser, ToolParser):  # type: ignore[misc]
    """Tool calls, for vLLM."""

    supports_required_and_named = False
    """Calls are decoded in the model's own format, whatever ``tool_choice`` is."""

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None, *args: Any, **kwargs: Any) -> None:
        ToolParser.__init__(self, tokenizer, tools)
        FormatToolParser.__init__(self, tokenizer, tools, format=format_of(tokenizer, self.format_name))

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        found = super().extract_tool_calls(model_output, request)
        calls = [
            protocol.ToolCall(
                id=call.id,
                function=protocol.FunctionCall(name=call.function.name, arguments=call.function.arguments),
            )
            for call in found.tool_calls
        ]
        return protocol.ExtractedToolCallInformation(
            tools_called=found.tools_called, tool_calls=calls, content=found.content
        )

    def extract_tool_calls_streaming(self, *args: Any, **kwargs: Any) -> Any:
        return _theirs(super().extract_tool_calls_streaming(*args, **kwargs))

    def finish_streaming(self) -> Any:
        return _theirs(super().finish_streaming())

    def adjust_request(self, request: Any) -> Any:
        _constrain(request, self.format, "off")
        return request


# -- Requests -----------------------------------------------------------------------------------------------------

_WHOLE: Final = "_grammar_from_parser"
"""vLLM's mark of a request whose grammar covers the whole output."""


def _constrain(request: Any, fmt: Format, reasoning: str) -> bool:
    """Keep special tokens in the text of a request, and set a structural tag if its calls are to be constrained.

    Return True if one was set. ``reasoning`` is as for ``OutputParser.grammar``. A request without tools gets no calls:
    vLLM leaves ``tool_choice`` of its Messages API unset then, and would ask the parser for calls in streams.
    """
    request.skip_special_tokens = False
    if not request.tools and get(request, "tool_choice") is None:
        request.tool_choice = "none"
    if not vllm.envs.VLLM_ENFORCE_STRICT_TOOL_CALLING or not _forces(request):
        return False
    try:
        grammar = make_grammar(
            fmt,
            request.tools,
            request.tool_choice,
            parallel_tool_calls=get(request, "parallel_tool_calls") is not False,
            dialect="structural_tag",
            reasoning=reasoning,
        )
    except GrammarError as error:
        _log.warning("untemplate: the calls of a request are not constrained: %s", error)
        return False
    request.structured_outputs = StructuredOutputsParams(structural_tag=grammar.text)
    if hasattr(request, "response_format"):
        request.response_format = None
    else:
        request.text = None
    return True


def _forces(request: Any) -> bool:
    """True if a request needs its calls to be constrained."""
    choice = get(request, "tool_choice")
    if not request.tools or choice in (None, "none"):
        return False
    return choice != "auto" or any(get(get(tool, "function") or tool, "strict") for tool in request.tools)


# -- Both halves --------------------------------------------------------------------------------------------------


class OnePass:
    """Parses reasoning and calls in one pass, in place of vLLM's composition of two halves."""

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)  # type: ignore[call-arg]
        reasoning, calls = self._reasoning_parser, self._tool_parser  # type: ignore[attr-defined]
        one = one_pass(reasoning, calls, tools)
        if one is None:
            both = " and ".join(repr(half.format.name) for half in (reasoning, calls) if half is not None)
            raise TypeError(f"untemplate: reasoning and tool parser cannot be combined: {both}")
        self._one = one
        if any(half is not None and half.format_name for half in (reasoning, calls)):
            _measure(one.model_tokenizer, one.format, "reasoning" if reasoning is None else "" if calls else "tool")
        self._feed: Callable[[str, Sequence[int]], list[DeltaMessage]] | None = None
        self._prompt: Sequence[int] | None = None
        self._settings: Mapping[str, Any] = kwargs.get("chat_template_kwargs") or {}

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self._one.set_prompt_token_ids(prompt_token_ids)
        self._prompt = prompt_token_ids

    def adjust_request(self, request: Any) -> Any:
        """Constrain the calls of a request that needs it, from the first token on, reasoning included.

        vLLM would wait for the end of reasoning, which never comes if the model does not reason.
        """
        reasoning, calls = self._reasoning_parser, self._tool_parser  # type: ignore[attr-defined]
        if calls is None:
            return reasoning.adjust_request(request)
        covers = reasoning is not None and calls.format.reasoning is not None and hasattr(request, _WHOLE)
        prompt = self._prompt or ()
        if not covers or reasoning.is_reasoning_end(prompt):
            _constrain(request, calls.format, "off")
            return request
        reasoning.set_prompt_token_ids(prompt)
        if _constrain(request, calls.format, "open" if reasoning.opened else "closed"):
            setattr(request, _WHOLE, True)
        return request

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> Any:
        if self._prompt is None:
            # vLLM gives the prompt of whole outputs from version 0.32 on.
            usual = _usual_prompt(self._one.model_tokenizer, self._settings)
            if usual:
                self._one.set_prompt(usual)
        reasoning, content, calls = self._one.parse(model_output, request, enable_auto_tools, model_output_token_ids)
        made = [protocol.FunctionCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls or ()]
        return reasoning, content, made or None

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> Any:
        if self._feed is not None and not finished:
            # The output has begun: nothing but its text and ids counts.
            deltas = self._feed(delta_text, delta_token_ids)
            delta = deltas[0] if len(deltas) == 1 else merge_deltas(deltas)
        else:
            one = self._one
            delta = one.parse_delta(delta_text, delta_token_ids, request, prompt_token_ids, finished=finished)
            self._feed = None if one.output is None else one.output.feed
        if delta is None:
            return None
        if delta.content is not None and delta.reasoning is None and not delta.tool_calls:
            return _MESSAGE.of_text("content", delta.content)
        if delta.reasoning is not None and get(request, "include_reasoning") is False:
            delta.reasoning = None
            if delta.content is None and not delta.tool_calls:
                return None
        return _theirs(delta)


_PROMPTS: Final[WeakKeyDictionary[Any, dict[str, str]]] = WeakKeyDictionary()


def _usual_prompt(tokenizer: Any, settings: Mapping[str, Any]) -> str:
    """Return the prompt that the tokenizer's chat template writes with these variables; empty if it writes none."""
    try:
        prompts = _PROMPTS.setdefault(tokenizer, {})
    except TypeError:  # a tokenizer that cannot be referred to weakly
        prompts = {}
    key = repr(sorted(settings.items()))
    if key not in prompts:
        try:
            template = ChatTemplate.of_tokenizer(tokenizer)
            asked = [{"role": "user", "content": "Hi"}]
            prompts[key] = template.render(asked, add_generation_prompt=True, **settings) if template else ""
        except (TemplateError, ValueError, TypeError):
            prompts[key] = ""
    return prompts[key]


def _theirs(delta: DeltaMessage | None) -> Any:
    """Convert a delta to vLLM's type."""
    if delta is None:
        return None
    fields: dict[str, Any] = {}
    if delta.reasoning is not None:
        fields["reasoning"] = delta.reasoning
    if delta.content is not None:
        fields["content"] = delta.content
    if delta.tool_calls:
        fields["tool_calls"] = [_their_call(call) for call in delta.tool_calls]
    return _MESSAGE(fields)


def _their_call(call: DeltaToolCall) -> Any:
    function = call.function
    made = function and _FUNCTION({"name": function.name, "arguments": function.arguments})
    return _CALL({"index": call.index, "id": call.id, "type": "function" if call.id else None, "function": made})


class _Unchecked:
    """Makes models of one of vLLM's classes without validating the values, whose types are known.

    The result is what the class makes of the same fields; that takes most of the time of a delta.
    """

    def __init__(self, cls: type[Any]) -> None:
        fields = cls.model_fields
        self._cls = cls
        self._new: Callable[[type[Any]], Any] = object.__new__
        self._set: Callable[[Any, str, Any], None] = object.__setattr__
        self._defaults = {name: field.default for name, field in fields.items()}
        """All fields, in the order in which they are dumped. Those without a default are always given."""
        self._factories = [(name, field.default_factory) for name, field in fields.items() if field.default_factory]
        self._takes_extra = cls.model_config.get("extra") == "allow"

    def __call__(self, values: dict[str, Any]) -> Any:
        """Return a model with these fields."""
        data = {**self._defaults, **values}
        for name, make in self._factories:
            if name not in values:
                data[name] = make()
        return self._made(data, set(values))

    def of_text(self, name: str, text: str) -> Any:
        """Return a model with one field, a text."""
        data = self._defaults.copy()
        for other, make in self._factories:
            data[other] = make()
        data[name] = text
        return self._made(data, {name})

    def _made(self, data: dict[str, Any], given: set[str]) -> Any:
        model, assign = self._new(self._cls), self._set
        assign(model, "__dict__", data)
        assign(model, "__pydantic_fields_set__", given)
        assign(model, "__pydantic_extra__", {} if self._takes_extra else None)
        assign(model, "__pydantic_private__", None)
        return model


_MESSAGE: Final = _Unchecked(protocol.DeltaMessage)
_CALL: Final = _Unchecked(protocol.DeltaToolCall)
_FUNCTION: Final = _Unchecked(protocol.DeltaFunctionCall)
