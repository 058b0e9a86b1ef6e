"""vLLM's own reasoning and tool parsers as a backend of OutputParser (``--parser-backend vllm``).

* vLLM composes the parser (``vllm.parser.parser_manager``), as its server does. Versions without that module have only
  the two halves: `DelegatingParser` composes those.
* Each request has its own parser, because it keeps the state of one output. If it raises, the request loses its parsing
  but not its text: all text that was not sent, and all later text, is content.
* vLLM is imported when a parser is made, from the path that its version has.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from .._internal.backends.interface import OutputContext
from .._internal.backends.requests import get
from ..format import Format
from ..messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall, ParsedOutput
from ..policy import Policy
from ._backend import RegisteredBackend
from ._delegating import _WrappedParser
from ._requests import delta_of

__all__ = ["VllmBackend"]

_log: Final = logging.getLogger("untemplate.vllm_api._vllm_parsers")

_COMPOSER: Final = "vllm.parser.parser_manager"
_REASONING: Final = ("vllm.reasoning", "vllm.entrypoints.openai.reasoning_parsers")
_TOOLS: Final = ("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers")
_REQUESTS: Final = ("vllm.entrypoints.openai.chat_completion.protocol", "vllm.entrypoints.openai.protocol")
"""Modules of vLLM, newest first."""
_HARMONY: Final = frozenset(("openai_gptoss", "openai", "gptoss"))
"""vLLM's names of parsers for gpt-oss, whose server always uses another composition."""


class VllmBackend(RegisteredBackend):
    """Parses each output with vLLM's parsers. Policies, seeds and spans have no effect."""

    on_failure: Callable[[str], None] | None = None

    def __init__(
        self, reasoning: str | None, tools: str | None, format: Format, tokenizer: Any, *, policy: Policy
    ) -> None:
        self._names = "+".join(name for name in (tools, reasoning) if name)
        both = _composed(reasoning, tools)
        super().__init__(both, format, tokenizer, policy=policy, special_text="kept", make_id=None)
        self._without_tools = _composed(reasoning, None)

    def _parser(self) -> Any:
        return self._class(self.tokenizer)

    def _opened(self, context: OutputContext) -> tuple[Any, Any]:
        tools = context.tools if context.tools is not None else get(context.request, "tools")
        choice = context.tool_choice if context.tool_choice is not None else get(context.request, "tool_choice")
        offered = list(tools) if tools and choice != "none" else None
        request = _request(offered)
        settings = get(context.request, "chat_template_kwargs") or {}
        cls = self._without_tools if offered is None else self._class
        return _Guarded(_made(cls, self.tokenizer, request, settings), self._failed), request

    def _failed(self, error: Exception) -> None:
        _log.warning("vLLM's %s raised %s: %s; the rest is content", self._names, type(error).__name__, error)
        if self.on_failure is not None:
            self.on_failure(self._names)

    def parse(
        self, text: str, token_ids: Sequence[int], finish_reason: str | None, context: OutputContext
    ) -> ParsedOutput:
        """Return what vLLM's method for whole outputs finds; all of the text is content if it raises."""
        try:
            return super().parse(text, token_ids, finish_reason, context)
        except Exception as error:
            self._failed(error)
            return ParsedOutput(content=context.prefill + text, finish_reason=finish_reason or "stop")


class _Guarded:
    """Runs vLLM's parser on one output, and keeps the text if it raises."""

    def __init__(self, parser: Any, failed: Callable[[Exception], None]) -> None:
        self._parser = parser
        self._on_failure = failed
        self._unsent = ""
        self._failed = False

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Hand on the prompt of a whole output."""
        method = getattr(self._parser, "set_prompt_token_ids", None)
        if method is not None:
            method(list(prompt_token_ids))

    def parse(self, *args: Any) -> Any:
        """Parse a whole output."""
        return self._parser.parse(*args)

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
        prompt = None if prompt_token_ids is None else list(prompt_token_ids)
        try:
            delta = delta_of(self._parser.parse_delta(delta_text, delta_token_ids, request, prompt, finished=finished))
            if finished and (delta is None or not delta.tool_calls):
                delta = _with_rest(delta, getattr(self._parser, "tool_parser", None))
        except Exception as error:
            self._failed = True
            self._on_failure(error)
            return DeltaMessage(content=self._unsent) if self._unsent else None
        if delta is not None:
            self._unsent = ""
        return delta


def _with_rest(delta: DeltaMessage | None, tool_parser: Any) -> DeltaMessage | None:
    """Add arguments that the tool parser knows and has not sent.

    vLLM adds them to the last delta only if that has a part of a call.
    """
    known = getattr(tool_parser, "prev_tool_call_arr", None)
    sent = getattr(tool_parser, "streamed_args_for_tool", None)
    if not known or not sent or len(sent) > len(known):
        return delta
    index = len(sent) - 1
    arguments = known[index].get("arguments")
    whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    if arguments is None or not whole.startswith(sent[index]) or whole == sent[index]:
        return delta
    delta = delta or DeltaMessage()
    rest = DeltaFunctionCall(arguments=whole[len(sent[index]) :])
    delta.tool_calls = [DeltaToolCall(index=index, function=rest)]
    return delta


# -- vLLM's classes -----------------------------------------------------------------------------------------------


class _Halves(_WrappedParser):
    """The two parsers of a version of vLLM that does not compose them. What they raise is the caller's to handle."""

    _catches = ()
    _trusts_ids = True

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None, **kwargs: Any) -> None:
        reasoning, tool = self.reasoning_parser_cls, self.tool_parser_cls
        super(_WrappedParser, self).__init__(tokenizer)
        self._reasoning_parser = None if reasoning is None else reasoning(tokenizer)
        if tool is not None:
            wants = "tools" in inspect.signature(tool).parameters
            self._tool_parser = tool(tokenizer, tools=tools) if wants else tool(tokenizer)

    @property
    def _has_reasoning(self) -> bool:
        # As in vLLM's server, reasoning that has ended does not begin again.
        return self._reasoning_parser is not None and not self._stream_state.reasoning_ended


def _composed(reasoning: str | None, tools: str | None) -> type[Any]:
    """Return the class of vLLM's parser for these names.

    Raises:
        ValueError: vLLM cannot be imported, or has no parser of that name.
    """
    halves = {
        "reasoning_parser_cls": _half(_REASONING, "reasoning", reasoning),
        "tool_parser_cls": _half(_TOOLS, "tool", tools),
    }
    try:
        composer = importlib.import_module(_COMPOSER).ParserManager
    except ImportError:
        return type("Parser", (_Halves,), halves)
    if reasoning is None and tools is None:
        return type("Parser", (_Halves,), halves)
    harmony = {"is_harmony": True} if {reasoning, tools} & _HARMONY else {}
    found: type[Any] = composer.get_parser(
        tool_parser_name=tools, reasoning_parser_name=reasoning, enable_auto_tools=True, **harmony
    )
    return found


def _half(paths: Sequence[str], kind: str, name: str | None) -> type[Any] | None:
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


def _made(cls: type[Any], tokenizer: Any, request: Any, settings: Mapping[str, Any]) -> Any:
    """Make a parser for one request; older versions of vLLM take the tokenizer only."""
    parameters = inspect.signature(cls).parameters.values()
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        return cls(tokenizer)
    return cls(tokenizer, get(request, "tools"), chat_template_kwargs=dict(settings))


def _module(paths: Sequence[str]) -> Any:
    problem: ImportError | None = None
    for path in paths:
        try:
            return importlib.import_module(path)
        except ImportError as error:
            problem = problem or error
    raise ValueError(f"parser_backend: vllm needs vLLM, which cannot be imported: {problem}")


def _request(tools: Sequence[Any] | None) -> Any:
    """Return a request for vLLM's parsers, which read the tools and ``tool_choice``."""
    placeholder: list[Mapping[str, Any]] = [{"role": "user", "content": ""}]
    offered = {"tools": list(tools), "tool_choice": "auto"} if tools else {}
    return _module(_REQUESTS).ChatCompletionRequest(model="", messages=placeholder, **offered)
