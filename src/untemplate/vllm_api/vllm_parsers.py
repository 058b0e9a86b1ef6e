"""vLLM's own reasoning and tool parsers as a backend of OutputParser (``--parser-backend vllm``).

* Each request has its own parser instances, because they keep the state of one output.
* As in vLLM's server, reasoning is parsed first, then calls in the remaining text. If a parser raises, the request
  loses its parsing but not its text: all text that was not sent, and all later text, is content.
* vLLM is imported when a parser is made, from the path that its version has.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..backend import OutputContext
from ..format import Format
from ..format_backend import FormatBackend
from ..messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from ..output_parser import OutputParser
from ..policy import Policy
from ..stream import StreamBackend
from .backend import ParserStream

__all__ = ["VllmBackend", "VllmOutputParser"]

_log: Final = logging.getLogger("untemplate.vllm_api.vllm_parsers")

_REASONING: Final = ("vllm.reasoning", "vllm.entrypoints.openai.reasoning_parsers")
_TOOLS: Final = ("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers")
_REQUESTS: Final = ("vllm.entrypoints.openai.chat_completion.protocol", "vllm.entrypoints.openai.protocol")
"""Modules of vLLM, newest first."""


class VllmOutputParser(OutputParser):
    """An `OutputParser` that parses outputs with vLLM's own parsers. Grammars and rendering use ``format``.

    Args:
        tokenizer: the model's, as vLLM's parsers expect it.
        reasoning_parser_name, tool_parser_name: vLLM's names; ``None``: no such parser.
        format: the Format of the same model.
        policy: as for `OutputParser`; vLLM's parsers have none.
        on_failure: called with the name of a parser that raised; for metrics.

    Raises:
        ValueError: vLLM cannot be imported, or has no parser of that name; lists those that it has.
    """

    def __init__(
        self,
        tokenizer: Any,
        reasoning_parser_name: str | None = None,
        tool_parser_name: str | None = None,
        *,
        format: Format,
        policy: Policy | None = None,
        on_failure: Callable[[str], None] | None = None,
    ) -> None:
        reasoning = _class(_REASONING, "reasoning", reasoning_parser_name)
        tool = _class(_TOOLS, "tool", tool_parser_name)
        own = VllmBackend(reasoning, tool, format, tokenizer, policy=(policy or Policy()).resolved())
        own.on_failure = on_failure
        super().__init__(tokenizer, backend=own, policy=policy)
        self._own = own

    @property
    def on_failure(self) -> Callable[[str], None] | None:
        """Called with the name of a parser that raised."""
        return self._own.on_failure

    @on_failure.setter
    def on_failure(self, callback: Callable[[str], None] | None) -> None:
        self._own.on_failure = callback


class VllmBackend(FormatBackend):
    """Parses each output with vLLM's parsers. Policies, seeds and spans have no effect."""

    on_failure: Callable[[str], None] | None = None

    def __init__(
        self, reasoning: type[Any] | None, tool: type[Any] | None, format: Format, tokenizer: Any, *, policy: Policy
    ) -> None:
        super().__init__(format, tokenizer, policy=policy)
        self._reasoning = reasoning
        self._tool = tool

    def open(self, context: OutputContext) -> StreamBackend:  # type: ignore[override]
        prompt_ids = context.prompt_token_ids
        if prompt_ids is None and context.prompt is not None:
            prompt_ids = self.tokenizer.encode(context.prompt, add_special_tokens=False)
        tools = context.tools
        offered = tools if tools and context.tool_choice != "none" else None
        parsers = _Parsers(self._reasoning, self._tool, self.tokenizer, offered, prompt_ids, self.on_failure)
        parsers.request = _request(offered)
        return ParserStream(parsers)


class _Parsers:
    """Runs both parsers on one output."""

    def __init__(
        self,
        reasoning: type[Any] | None,
        tool: type[Any] | None,
        tokenizer: Any,
        tools: Sequence[Any] | None,
        prompt: Sequence[int] | None,
        on_failure: Callable[[str], None] | None,
    ) -> None:
        self.request: Any = None
        self._on_failure = on_failure
        self._reasoning = None if reasoning is None else reasoning(tokenizer)
        self._tool = _tool_parser(tool, tokenizer, tools) if tool is not None and tools else None
        self._text = ""
        self._ids: list[int] = []
        self._unsent = ""
        self._failed = False
        if self._reasoning is not None and prompt is not None and self._reasoning.is_reasoning_end(list(prompt)):
            self._reasoning = None  # the prompt has closed reasoning

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: list[int],
        request: Any = None,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None:
        """Return the delta of one part; ``None`` if nothing is decided yet."""
        if self._failed:
            return DeltaMessage(content=delta_text) if delta_text else None
        self._unsent += delta_text
        try:
            delta = self._rest() if finished else self._parsed(delta_text, delta_token_ids)
        except Exception as error:
            self._failed = True
            name = type(self._reasoning or self._tool).__name__
            _log.warning("vLLM's %s raised %s: %s; the rest is content", name, type(error).__name__, error)
            if self._on_failure is not None:
                self._on_failure(name)
            return DeltaMessage(content=self._unsent) if self._unsent else None
        if delta is None and not finished:
            return None
        self._unsent = ""
        return delta

    def _parsed(self, text: str, ids: list[int]) -> DeltaMessage | None:
        if self._reasoning is None:
            return self._called(text, ids)
        before, before_ids = self._text, self._ids
        self._text += text
        self._ids = before_ids + ids
        delta = self._reasoning.extract_reasoning_streaming(before, self._text, text, before_ids, self._ids, ids)
        ended = getattr(self._reasoning, "is_reasoning_end_streaming", None)
        if not (ended(self._ids, ids) if ended is not None else self._reasoning.is_reasoning_end(ids)):
            return _ours(delta)
        # The tool parser gets the rest, from its first character on.
        rest_ids = list(self._reasoning.extract_content_ids(ids))
        rest = (delta.content or "") if delta is not None else ""
        sent = _ours(delta)
        if sent is not None:
            sent.content = None
        self._reasoning = None
        self._text, self._ids = "", []
        called = self._called(rest, rest_ids) if rest or rest_ids else None
        if sent is None or (sent.reasoning is None and sent.tool_calls is None):
            return called
        if called is not None:
            sent.content, sent.tool_calls = called.content, called.tool_calls
        return sent

    def _called(self, text: str, ids: list[int]) -> DeltaMessage | None:
        if self._tool is None:
            return DeltaMessage(content=text) if text else None
        before, before_ids = self._text, self._ids
        self._text += text
        self._ids = before_ids + ids
        delta = self._tool.extract_tool_calls_streaming(
            before, self._text, text, before_ids, self._ids, ids, self.request
        )
        return _ours(delta)

    def _rest(self) -> DeltaMessage | None:
        """Return arguments that the tool parser knows and has not sent, as vLLM's server does at the end."""
        known = getattr(self._tool, "prev_tool_call_arr", None)
        sent = getattr(self._tool, "streamed_args_for_tool", None)
        if not known or not sent:
            return None
        index = len(sent) - 1
        arguments = known[index].get("arguments") if index < len(known) else None
        if arguments is None:
            return None
        whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        if not whole.startswith(sent[index]) or whole == sent[index]:
            return None
        rest = DeltaFunctionCall(arguments=whole[len(sent[index]) :])
        return DeltaMessage(tool_calls=[DeltaToolCall(index=index, function=rest)])


def _module(paths: Sequence[str]) -> Any:
    problem: ImportError | None = None
    for path in paths:
        try:
            return importlib.import_module(path)
        except ImportError as error:
            problem = problem or error
    raise ValueError(f"parser_backend: vllm needs vLLM, which cannot be imported: {problem}")


def _class(paths: Sequence[str], kind: str, name: str | None) -> type[Any] | None:
    if not name:
        return None
    manager = getattr(_module(paths), f"{kind.title()}ParserManager")
    try:
        found: type[Any] = getattr(manager, f"get_{kind}_parser")(name)
    except KeyError:
        listed = getattr(manager, "list_registered", None)
        names = listed() if listed is not None else sorted(getattr(manager, f"{kind}_parsers", ()))
        raise ValueError(f"{kind}_parser: vLLM has no {name!r} (it has: {', '.join(names)})") from None
    return found


def _tool_parser(cls: type[Any], tokenizer: Any, tools: Sequence[Any] | None) -> Any:
    """Make a tool parser; newer versions of vLLM take the tools."""
    wants = "tools" in inspect.signature(cls).parameters
    return cls(tokenizer, tools=_request(tools).tools) if wants else cls(tokenizer)


def _request(tools: Sequence[Any] | None) -> Any:
    """Return a request for vLLM's parsers, which read the tools and ``tool_choice``."""
    if not tools:
        return None
    request = _module(_REQUESTS).ChatCompletionRequest
    placeholder: list[Mapping[str, Any]] = [{"role": "user", "content": ""}]
    return request(model="", messages=placeholder, tools=list(tools), tool_choice="auto")


def _ours(delta: Any) -> DeltaMessage | None:
    """Convert vLLM's delta; ``None`` if it is empty."""
    if delta is None:
        return None
    reasoning = getattr(delta, "reasoning", None) or getattr(delta, "reasoning_content", None)
    calls = [
        DeltaToolCall(
            index=call.index,
            id=call.id,
            type=call.type if call.id else None,
            function=call.function
            and DeltaFunctionCall(name=_field(call.function, "name"), arguments=_field(call.function, "arguments")),
        )
        for call in delta.tool_calls or ()
    ]
    if not (reasoning or delta.content or calls):
        return None
    return DeltaMessage(content=delta.content or None, reasoning=reasoning or None, tool_calls=calls or None)


def _field(function: Any, name: str) -> str | None:
    value = function.get(name) if isinstance(function, dict) else getattr(function, name, None)
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
