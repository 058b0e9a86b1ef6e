"""One parser made of two: a reasoning parser and a tool parser, of this library or any other.

* Methods of the halves are found by name; their types do not matter. There is a default for each missing method.
* A half that raises on model output does not lose the rest of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from logging import getLogger
from typing import Any, TypeVar

from ..messages import DeltaMessage, ExtractedToolCallInformation, FunctionCall
from ._abstract import Parser, Piece, _of_calls, _of_reasoning
from ._pipeline import remainder, run_whole
from ._requests import extracted_of

__all__ = ["DelegatingParser", "_WrappedParser"]

_LOG = getLogger(__name__)
_R = TypeVar("_R")


class DelegatingParser(Parser):
    """A parser made of a reasoning parser and a tool parser, either of which may be missing.

    A subclass sets ``self._reasoning_parser`` and ``self._tool_parser`` in its ``__init__``. They may come from any
    library: they only need the methods of vLLM's interface, also under their older names
    (``extract_reasoning_content``). Two parsers of the catalogue work in one pass together. If a parser raises on an
    output, that is logged, it is not called again, and its text becomes content.
    """

    _catches: tuple[type[Exception], ...] = (Exception,)
    """Errors of a half that cost its parsing only."""

    _halves = None
    """This class asks its halves itself."""

    # On the class, because a subclass may set its halves without calling ``super().__init__()``.
    _both: tuple[Any, Any, Parser | None] | None = None
    _prompt_ids: Sequence[int] | None = None

    @cached_property
    def _failed(self) -> set[str]:
        """The halves that have raised."""
        return set()

    def _ask(self, half: str, name: str, *args: Any, default: Any = None, old: str | None = None) -> Any:
        """Call a method of one half. Return the default if there is no such half or method, or if it raises."""
        parser = self._reasoning_parser if half == "reasoning" else self._tool_parser
        method = None if parser is None or half in self._failed else getattr(parser, name, None)
        if method is None and old is not None and parser is not None and half not in self._failed:
            method = getattr(parser, old, None)
        if method is None:
            return default
        try:
            return method(*args)
        except self._catches:
            _LOG.exception("%s.%s() raised; its text becomes content", type(parser).__name__, name)
            self._failed.add(half)
            return default

    # -- reasoning -----------------------------------------------------------------------------------------------

    @property
    def _has_reasoning(self) -> bool:
        return self._reasoning_parser is not None

    @property
    def _no_reasoning(self) -> bool:
        return self._reasoning_parser is None or "reasoning" in self._failed

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return bool(self._ask("reasoning", "is_reasoning_end", input_ids, default=self._no_reasoning))

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Sequence[int]) -> bool:
        overridden = type(self).is_reasoning_end is not DelegatingParser.is_reasoning_end
        if hasattr(self._reasoning_parser, "is_reasoning_end_streaming") and not overridden:
            answer = self._ask(
                "reasoning", "is_reasoning_end_streaming", input_ids, delta_ids, default=self._no_reasoning
            )
            return bool(answer)
        return self.is_reasoning_end(input_ids)

    def extract_content_ids(self, input_ids: Sequence[int]) -> list[int]:
        ids = list(input_ids)
        return list(self._ask("reasoning", "extract_content_ids", ids, default=ids))

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        found: tuple[str | None, str | None] = self._ask(
            "reasoning",
            "extract_reasoning",
            model_output,
            request,
            default=(None, model_output),
            old="extract_reasoning_content",
        )
        return found

    @_of_reasoning
    def extract_reasoning_streaming(self, piece: Piece) -> DeltaMessage | None:
        found: DeltaMessage | None = self._ask(
            "reasoning",
            "extract_reasoning_streaming",
            *piece[:-1],
            default=DeltaMessage(content=piece.delta_text),
            old="extract_reasoning_content_streaming",
        )
        return found

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt of the outputs that follow, whole or streamed."""
        self._prompt_ids = prompt_token_ids
        self._ask("reasoning", "adjust_initial_state_from_prompt", prompt_token_ids)
        one = None if self._both is None else self._both[2]
        if one is not None:
            one.adjust_initial_state_from_prompt(prompt_token_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return int(self._ask("reasoning", "count_reasoning_tokens", token_ids, default=0))

    def get_streaming_fallback_content(self, text: str, request: Any) -> str | None:
        found: str | None = self._ask("reasoning", "get_streaming_fallback_content", text, request)
        return found

    def _closed_by_prompt(self, prompt_token_ids: Sequence[int]) -> bool:
        if self._leaves_out_reasoning(prompt_token_ids):
            return True
        self.adjust_initial_state_from_prompt(prompt_token_ids)
        return False

    def _leaves_out_reasoning(self, prompt_token_ids: Sequence[int]) -> bool:
        """True if the prompt has ended reasoning and the reasoning half cannot begin after that.

        Most parsers of other projects treat all text as reasoning until its end. vLLM leaves those out.
        """
        if getattr(self._reasoning_parser, "reads_prompts", False):
            return False
        return bool(self._ask("reasoning", "is_reasoning_end", prompt_token_ids, default=False))

    def _finish_reasoning(self) -> DeltaMessage | None:
        found: DeltaMessage | None = self._ask("reasoning", "finish_streaming")
        return found

    # -- tool calls ----------------------------------------------------------------------------------------------

    @property
    def _has_tools(self) -> bool:
        return self._tool_parser is not None

    @property
    def _reconciles(self) -> bool:
        return self._tool_parser is not None and not hasattr(self._tool_parser, "finish_streaming")

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Return what the tool half finds, as it is: a half of another library has results of its own type."""
        nothing = ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output)
        found: ExtractedToolCallInformation = self._ask(
            "tool", "extract_tool_calls", model_output, request, default=nothing
        )
        return found

    @_of_calls
    def extract_tool_calls_streaming(self, piece: Piece) -> DeltaMessage | None:
        if self._tool_parser is None:
            return None
        found: DeltaMessage | None = self._ask(
            "tool",
            "extract_tool_calls_streaming",
            *piece,
            default=DeltaMessage(content=piece.delta_text),
        )
        return found

    def _finish_tools(self, request: Any) -> DeltaMessage | None:
        if not self._reconciles:
            rest: DeltaMessage | None = self._ask("tool", "finish_streaming")
            return rest
        state = self._stream_state
        found = self._ask("tool", "extract_tool_calls", state.content_text, request)
        return None if found is None else remainder(state.sent, extracted_of(found))

    # -- both ----------------------------------------------------------------------------------------------------

    def adjust_request(self, request: _R) -> _R:
        """Return the request as each half adjusts it; without halves as it is."""
        for half in ("reasoning", "tool"):
            request = self._ask(half, "adjust_request", request, default=request)
        return request

    def parse(
        self,
        model_output: str,
        request: Any = None,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        one = self._as_one()
        if one is not None:
            return one.parse(model_output, request, enable_auto_tools, model_output_token_ids)
        prompt = self._prompt_ids
        return run_whole(self, model_output, request, prompt is not None and self._leaves_out_reasoning(prompt))

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any = None,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None:
        one = self._as_one()
        if one is not None:
            return one.parse_delta(delta_text, delta_token_ids, request, prompt_token_ids, finished=finished)
        return super().parse_delta(delta_text, delta_token_ids, request, prompt_token_ids, finished=finished)

    def _as_one(self) -> Parser | None:
        """Return the parser that does both halves' work in one pass, if they can be combined."""
        reasoning, tools = self._reasoning_parser, self._tool_parser
        if self._both is None or self._both[0] is not reasoning or self._both[1] is not tools:
            half = tools if reasoning is None else reasoning
            both = getattr(half, "both", None)
            one = None if both is None else both() if reasoning is None else both(tools)
            if one is not None and self._prompt_ids is not None:
                one.adjust_initial_state_from_prompt(self._prompt_ids)
            self._both = (reasoning, tools, one)
        return self._both[2]


Parser._delegating = DelegatingParser


class _WrappedParser(DelegatingParser):
    """A DelegatingParser that makes its halves from class attributes.

    Set ``reasoning_parser_cls`` and ``tool_parser_cls`` on a subclass.
    """

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        cls = type(self)  # Of an instance, a function would be a method.
        if cls.reasoning_parser_cls is not None:
            self._reasoning_parser = cls.reasoning_parser_cls(tokenizer)
        if cls.tool_parser_cls is not None:
            self._tool_parser = cls.tool_parser_cls(tokenizer)
