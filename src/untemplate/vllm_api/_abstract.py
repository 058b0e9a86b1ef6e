"""The base classes of vLLM's interface: reasoning, tool calls, and both at once.

* :class:`ReasoningParser` and :class:`ToolParser` each parse one half, :class:`Parser` both. As in vLLM, a subclass may
  leave out methods that nobody calls on it: those do nothing.
* A streaming method receives the next part of the output, and all that came before. It may keep state: a parser serves
  one output at a time.
* ``adjust_request`` sets the request itself, and returns it.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, update_wrapper
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from .._internal.backends.requests import keep_special_tokens
from .._internal.tokens.decoding import Tokenizer, vocabulary_of
from ..messages import DeltaMessage, ExtractedToolCallInformation, FunctionCall
from ._pipeline import StreamState, run, run_whole

__all__ = ["Parser", "Piece", "ReasoningParser", "StreamState", "Tokenizer", "ToolParser"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Piece(NamedTuple):
    """The arguments of a streaming method of vLLM's interface: one part of an output, and all that came before.

    ``request`` is given to the method for calls only.
    """

    previous_text: str
    current_text: str
    delta_text: str
    previous_token_ids: Sequence[int]
    current_token_ids: Sequence[int]
    delta_token_ids: Sequence[int]
    request: Any = None


class _WithTokenizer:
    """A parser's tokenizer and its vocabulary."""

    model_tokenizer: Any
    engine_based_streaming: bool = False
    """True if streaming methods need no earlier text and the parser keeps its own state."""
    reads_prompts: bool = False
    """True if ``adjust_initial_state_from_prompt`` makes the parser begin after reasoning that the prompt has ended."""

    @cached_property
    def vocab(self) -> dict[str, int]:
        """The vocabulary: token → id. Shared by all parsers of the tokenizer; do not change it."""
        return vocabulary_of(self.model_tokenizer).ids  # type: ignore[return-value]

    def adjust_request(self, request: _R) -> _R:
        """Keep special tokens in the text: set it in the request itself, and return that, or a copy if it cannot be
        changed.

        Raises: TypeError: the request has no field ``skip_special_tokens`` that can be set.
        """
        return keep_special_tokens(request)

    def finish_streaming(self) -> DeltaMessage | None:
        """End the output; return what was still buffered."""
        return None


class _Reasons(_WithTokenizer):
    """Methods for reasoning."""

    @property
    def reasoning_start_str(self) -> str | None:
        """The marker that opens reasoning."""
        return None

    @property
    def reasoning_end_str(self) -> str | None:
        """The marker that ends it."""
        return None

    @abstractmethod
    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """True if reasoning is over after these ids (of an output, or of a prompt and its output)."""

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Sequence[int]) -> bool:
        """True if reasoning ends in ``delta_ids``, the last of ``input_ids``."""
        return self.is_reasoning_end(input_ids)

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """True if the text parsed so far has ended reasoning. For parsers with ``engine_based_streaming``."""
        return False

    @abstractmethod
    def extract_content_ids(self, input_ids: Sequence[int]) -> list[int]:
        """Return the ids after the end of reasoning."""

    @abstractmethod
    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Return (reasoning, content) of a whole output."""

    @abstractmethod
    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """Return reasoning and content of one part of an output; ``None`` if nothing is decided yet."""

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Read from the prompt whether it leaves reasoning open. Called once, before the first part of an output."""

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt of the output that follows, before it is parsed as a whole."""
        self.adjust_initial_state_from_prompt(prompt_token_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Count the tokens of an output that are reasoning, without markers."""
        return 0

    def get_streaming_fallback_content(self, text: str, request: Any) -> str | None:
        """Return content to send at the end of an output whose reasoning never ended."""
        return None


class _Calls(_WithTokenizer):
    """Methods for tool calls."""

    @abstractmethod
    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Return the calls of a whole output, and the remaining content."""

    @abstractmethod
    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Return calls and content of one part of an output; ``None`` if nothing is decided yet."""


def _from_piece(
    interface: Callable[Concatenate[Any, _P], DeltaMessage | None],
) -> Callable[[Callable[[Any, Piece], DeltaMessage | None]], Callable[Concatenate[Any, _P], DeltaMessage | None]]:
    """Return a decorator for methods that take a `Piece`: they get the parameters of ``interface``, which has them."""

    def decorate(
        method: Callable[[Any, Piece], DeltaMessage | None],
    ) -> Callable[Concatenate[Any, _P], DeltaMessage | None]:
        def extract(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> DeltaMessage | None:
            return method(self, Piece(*args, **kwargs))  # type: ignore[arg-type]

        update_wrapper(extract, method)
        extract.__wrapped__ = interface  # type: ignore[attr-defined]
        return extract

    return decorate


_of_reasoning = _from_piece(_Reasons.extract_reasoning_streaming)
_of_calls = _from_piece(_Calls.extract_tool_calls_streaming)


class ReasoningParser(_Reasons):
    """Splits an output into reasoning and the rest. Tool calls in the rest stay as they are.

    Args:
        tokenizer: the model's.
    """

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.model_tokenizer = tokenizer

    def both(self, tool_parser: Any) -> Parser | None:
        """Return a parser that does the work of this one and of ``tool_parser`` (or ``None``) in one pass, if there is
        one.
        """
        return None


class ToolParser(_Calls):
    """Finds the tool calls in an output from which reasoning has been removed.

    Args:
        tokenizer: the model's.
        tools: the tools on offer, unless a request has its own.

    Attributes:
        supports_required_and_named: True if calls that ``tool_choice`` forces are bare JSON; False if they have the
            model's own format.
        prev_tool_call_arr, streamed_args_for_tool: the calls so far and the arguments sent of each, for a parser that
            fills them in.
    """

    supports_required_and_named: bool = True
    structural_tag_model: str | None = None

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None, *args: Any, **kwargs: Any) -> None:
        self.model_tokenizer = tokenizer
        self.tools = tools
        self.prev_tool_call_arr: list[dict[str, Any]] = []
        self.current_tool_id = -1
        self.current_tool_name_sent = False
        self.streamed_args_for_tool: list[str] = []

    def get_remaining_unstreamed_args(self) -> str:
        """Return the arguments of the last call that are parsed and not sent."""
        if not self.prev_tool_call_arr:
            return ""
        last = len(self.prev_tool_call_arr) - 1
        arguments = self.prev_tool_call_arr[last].get("arguments", {})
        whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        sent = self.streamed_args_for_tool[last] if last < len(self.streamed_args_for_tool) else ""
        return whole.removeprefix(sent) if whole.startswith(sent) else ""

    def both(self) -> Parser | None:
        """Return a parser that does the same in one pass, if there is one."""
        return None


class Parser(_Reasons, _Calls):
    """Reasoning and tool calls in one interface.

    ``parse`` and ``parse_delta`` use the other methods: reasoning first, then calls in the remaining content. A
    subclass may set ``reasoning_parser`` and ``tool_parser`` instead of writing these methods, or some of them.

    Attributes: reasoning_parser_cls, tool_parser_cls: the classes of the two halves, for callers that need them.

    Args: tokenizer: the model's.
    """

    reasoning_parser_cls: type[Any] | None = None
    tool_parser_cls: type[Any] | None = None

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.model_tokenizer = tokenizer

    # On the class, because a subclass may set its halves without calling ``super().__init__()``.
    _reasoning_parser: Any = None
    _tool_parser: Any = None

    @cached_property
    def _stream_state(self) -> StreamState:
        return StreamState()

    @property
    def reasoning_parser(self) -> Any:
        """The reasoning half, if there is one."""
        return self._reasoning_parser

    @reasoning_parser.setter
    def reasoning_parser(self, parser: Any) -> None:
        self._reasoning_parser = parser

    @property
    def tool_parser(self) -> Any:
        """The tool half, if there is one."""
        return self._tool_parser

    @tool_parser.setter
    def tool_parser(self, parser: Any) -> None:
        self._tool_parser = parser

    def parse(
        self,
        model_output: str,
        request: Any = None,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        """Return (reasoning, content, calls) of a whole output; ``None`` for what it does not have.

        Args:
            model_output: raw text, special tokens included.
            request: has the tools; with ``tool_choice="none"`` or no tools, calls are text.
            enable_auto_tools: without effect: calls are found either way.
            model_output_token_ids: the output's ids, if they are known.
        """
        if self._only_halves and self._halves is not None:
            whole: tuple[str | None, str | None, list[FunctionCall] | None] = self._halves.parse(
                model_output, request, enable_auto_tools, model_output_token_ids
            )
            return whole
        return run_whole(self, model_output, request)

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any = None,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None:
        """Parse the next part of an output; return what it completes, or ``None``.

        Args:
            delta_text, delta_token_ids: the part; either may be empty.
            request: as for :meth:`parse`.
            prompt_token_ids: the prompt, with the first part: it decides whether reasoning is open.
            finished: True with the last part.

        Raises:
            RuntimeError: the last part has come before.
        """
        if self._only_halves and self._halves is not None:
            found: DeltaMessage | None = self._halves.parse_delta(
                delta_text, delta_token_ids, request, prompt_token_ids, finished=finished
            )
            return found
        ids = list(delta_token_ids)
        return run(self, self._stream_state, delta_text, ids, request, prompt_token_ids, finished)

    def adjust_request(self, request: _R) -> _R:
        """Return the request for the engine, as the halves adjust it; without halves as it is."""
        return request if self._halves is None else self._halves.adjust_request(request)

    # Used by ``run``, not part of the interface.

    _trusts_ids = False
    """True if reasoning ends with the ids that end it, even if their text has not come."""

    @property
    def _has_reasoning(self) -> bool:
        return True

    @property
    def _has_tools(self) -> bool:
        return True

    @property
    def _reconciles(self) -> bool:
        """True if what the stream left out is taken from a parse of the whole content."""
        return False

    def _closed_by_prompt(self, prompt_token_ids: Sequence[int]) -> bool:
        """Give the prompt to the reasoning half; return True if that half can be left out."""
        self.adjust_initial_state_from_prompt(prompt_token_ids)
        return False

    def _finish_reasoning(self) -> DeltaMessage | None:
        halves = None if self._overrides("extract_reasoning_streaming") else self._halves
        return None if halves is None else halves._finish_reasoning()

    def _finish_tools(self, request: Any) -> DeltaMessage | None:
        halves = None if self._overrides("extract_tool_calls_streaming") else self._halves
        return self.finish_streaming() if halves is None else halves._finish_tools(request)

    # A subclass that sets halves and leaves methods out delegates those.

    _delegate: Any = None

    @property
    def _halves(self) -> Any:
        """A parser that delegates to the halves that are set; ``None`` if neither is set."""
        reasoning, tools = self._reasoning_parser, self._tool_parser
        if reasoning is None and tools is None:
            return None
        if self._delegate is None:
            self._delegate = type(self)._delegating(self.model_tokenizer)
        self._delegate.reasoning_parser, self._delegate.tool_parser = reasoning, tools
        return self._delegate

    _delegating: type[Any]
    """The class of ``_halves``; `DelegatingParser` sets it."""

    def _overrides(self, *names: str) -> bool:
        return any(getattr(type(self), name) is not getattr(Parser, name) for name in names)

    @property
    def _only_halves(self) -> bool:
        """True if no method for outputs is overridden, so that the halves may work in one pass."""
        return not self._overrides(*_FOR_OUTPUTS)

    @abstractmethod
    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return self._halves is not None and self._halves.is_reasoning_end(input_ids)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Sequence[int]) -> bool:
        if self._halves is None or self._overrides("is_reasoning_end"):
            return self.is_reasoning_end(input_ids)
        found: bool = self._halves.is_reasoning_end_streaming(input_ids, delta_ids)
        return found

    @abstractmethod
    def extract_content_ids(self, input_ids: Sequence[int]) -> list[int]:
        return list(input_ids) if self._halves is None else self._halves.extract_content_ids(input_ids)

    @abstractmethod
    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        if self._halves is None:
            return None, model_output
        found: tuple[str | None, str | None] = self._halves.extract_reasoning(model_output, request)
        return found

    @abstractmethod
    @_of_reasoning
    def extract_reasoning_streaming(self, piece: Piece) -> DeltaMessage | None:
        if self._halves is None:
            return DeltaMessage(content=piece.delta_text)
        found: DeltaMessage | None = self._halves.extract_reasoning_streaming(*piece[:-1])
        return found

    @abstractmethod
    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        if self._halves is None:
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output)
        found: ExtractedToolCallInformation = self._halves.extract_tool_calls(model_output, request)
        return found

    @abstractmethod
    @_of_calls
    def extract_tool_calls_streaming(self, piece: Piece) -> DeltaMessage | None:
        if self._halves is None or self._tool_parser is None:
            return DeltaMessage(content=piece.delta_text) if piece.delta_text else None
        found: DeltaMessage | None = self._halves.extract_tool_calls_streaming(*piece)
        return found

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        if self._halves is not None:
            self._halves.adjust_initial_state_from_prompt(prompt_token_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return 0 if self._halves is None else int(self._halves.count_reasoning_tokens(token_ids))


_FOR_OUTPUTS = (
    "extract_reasoning",
    "extract_reasoning_streaming",
    "extract_tool_calls",
    "extract_tool_calls_streaming",
    "adjust_initial_state_from_prompt",
    "is_reasoning_end",
    "is_reasoning_end_streaming",
    "extract_content_ids",
)
