"""ParserEngine: a parser for one model, described by a config.

* One engine finds reasoning and calls together, in one pass. A whole output is parsed as a stream of one part, so both
  ways give the same message.
* A parser serves one output at a time. Parsing a whole output leaves it fresh; a stream ends with ``finished=True`` or
  ``finish_streaming``.
* A subclass may override anything here. Arguments that an ``arg_converter`` converts do not run in linear time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .._internal.backends.requests import count_calls, get, keep_special_tokens, takes_calls
from .._internal.jsontext.well_formed import is_json
from .._internal.machine.events import SemanticEvent
from .._internal.tokens.decoding import vocabulary_of
from ..messages import CallStatus, DeltaMessage, ExtractedToolCallInformation, FunctionCall, ToolCall
from ..tools import ToolSet
from ._abstract import Piece, _of_calls, _of_reasoning
from ._config import ParserEngineConfig, ParserState
from ._engine_deltas import EngineDeltas
from ._marks import Marks
from ._pipeline import StreamState, with_id
from ._requests import hides_cuts, make_parser_request
from ._slots import ToolCallSlot, make_tool_call_id
from ._streaming_engine import StreamingParserEngine

__all__ = ["ParserEngine", "StreamState", "ToolCallSlot", "make_parser_request", "make_tool_call_id"]

_R = TypeVar("_R")


class ParserEngine(EngineDeltas):
    """A parser that runs a config. Subclasses pass their config to ``__init__``.

    Args:
        tokenizer: the model's; anything with ``get_vocab()``.
        tools: the tools on offer, unless a request has its own.
        parser_engine_config: describes the model's output.
        tool_call_id_type: as in :func:`make_tool_call_id`.
        make_id: (tool name, number of the call) → id, instead of that.

    Raises:
        ValueError: a tool without a name, or with parameters that are not a schema.
    """

    def __init__(
        self,
        tokenizer: Any,
        tools: Sequence[Any] | None = None,
        *,
        parser_engine_config: ParserEngineConfig,
        tool_call_id_type: str = "random",
        make_id: Callable[[str, int], str] | None = None,
        **kwargs: Any,
    ) -> None:
        engine = StreamingParserEngine(parser_engine_config, tokenizer)
        super().__init__(tokenizer, _checked(tools), parser_engine_config, engine)
        engine.hold_calls()
        self._make_id = make_id
        self._stream_state.tool_call_id_type = tool_call_id_type
        self._skips_tools = False
        self._refused = False
        self._request: Any = None
        self._starts_in: ParserState | None = None
        self._prompt_leaves: ParserState | None = None
        self._streaming_initialized = False
        self._prompt_streaming_prepared = False
        config = parser_engine_config
        ids = vocabulary_of(tokenizer).ids
        self._reasoning_start_token_id = ids.get(config.token_id_terminals.get("THINK_START", ""))
        self._reasoning_end_token_id = ids.get(config.token_id_terminals.get("THINK_END", ""))
        self._marks = Marks(
            vocabulary_of(tokenizer),
            opens=config.literals("THINK_START"),
            closes=config.literals("THINK_END"),
            turn_starts=(*config.literals("TURN_START"), *sorted(config.turn_boundary_tokens)),
            special=config.token_id_terminals.values(),
            turn_opens=config.initial_state is ParserState.REASONING,
            repeats=_opens(config, ParserState.CONTENT),
            drops=_opens(config, ParserState.REASONING),
        )

    @property
    def reasoning_start_str(self) -> str | None:
        """The literal of the terminal ``THINK_START``."""
        return self.parser_engine_config.terminal_literal("THINK_START")

    @property
    def reasoning_end_str(self) -> str | None:
        """The literal of the terminal ``THINK_END``."""
        return self.parser_engine_config.terminal_literal("THINK_END")

    def adjust_request(self, request: _R) -> _R:
        """Keep special tokens in the text, as the halves do."""
        return keep_special_tokens(request)

    # -- the engine ----------------------------------------------------------------------------------------------

    @property
    def skip_tool_parsing(self) -> bool:
        """True if calls are text, by choice or because the request takes none."""
        return self._skips_tools or self._refused

    @skip_tool_parsing.setter
    def skip_tool_parsing(self, value: bool) -> None:
        self._skips_tools = value
        self._engine.skip_tool_parsing = self.skip_tool_parsing

    @property
    def reasoning_ended(self) -> bool:
        """True once the output has ended its reasoning."""
        return self._reasoning_ended

    def initialize_streaming(self, initial_state: ParserState | None = None) -> None:
        """Begin a stream, in this state or the config's. Without effect in the middle of a stream."""
        if not self._streaming_initialized:
            self._streaming_initialized = True
            self._reset(initial_state)

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Begin a stream in the state that the prompt ends in. Called once, before the first part.

        By default the prompt is searched for the terminals ``THINK_START`` and ``THINK_END``: after the last
        ``TURN_START``, or, if the config has none, at the very end of the prompt.
        """
        opened = self._marks.opened_by(prompt_token_ids)
        if opened is not None:
            self.initialize_streaming(ParserState.REASONING if opened else ParserState.CONTENT)

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt of the outputs that follow; whole ones begin in the state that it ends in."""
        self._streaming_initialized = False
        self._starts_in = None
        self.adjust_initial_state_from_prompt(prompt_token_ids)
        self._prompt_leaves = self._starts_in

    def _reset(self, initial_state: ParserState | None = None) -> None:
        self._starts_in = initial_state
        self._stream_state.history_tool_call_cnt -= self._ids_made
        self._engine.reset(initial_state)
        self._start_over()
        self._prompt_streaming_prepared = False

    def _preprocess_feed(self, delta_text: str, delta_token_ids: Sequence[int]) -> tuple[str, Sequence[int]]:
        """Change a part of the output before the engine gets it. For subclasses."""
        return delta_text, delta_token_ids

    def _feed(self, delta_text: str, delta_token_ids: Sequence[int]) -> list[SemanticEvent]:
        return self._engine.feed(*self._preprocess_feed(delta_text, delta_token_ids))

    def _check_skip_tool_parsing(self, request: Any) -> None:
        """Read from a request its tools, whether it takes calls, and how many calls its history has."""
        if request is self._request:
            return
        self._request = request
        tools = None if request is None else get(request, "tools")
        if tools:
            self._tools = _checked(tools)
        self._refused = not takes_calls(request)
        self._holds_calls = hides_cuts(request)
        self._engine.skip_tool_parsing = self.skip_tool_parsing
        self._stream_state.history_tool_call_cnt = count_calls(get(request, "messages")) + self._ids_made

    # -- streamed ------------------------------------------------------------------------------------------------

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any = None,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None:
        if prompt_token_ids is not None and not self._prompt_streaming_prepared:
            # The hook comes first: it may begin the stream again, which clears `_prompt_streaming_prepared`.
            self.adjust_initial_state_from_prompt(prompt_token_ids)
            self.initialize_streaming()
            self._prompt_streaming_prepared = True
        self.initialize_streaming()
        self._check_skip_tool_parsing(request)
        events = self._feed(delta_text, delta_token_ids)
        if finished:
            events = events + self._engine.finish()
        return self._to_delta(events, finished)

    def finish_streaming(self) -> DeltaMessage | None:
        return self._to_delta(self._engine.finish(), True)

    @_of_reasoning
    def extract_reasoning_streaming(self, piece: Piece) -> DeltaMessage | None:
        """Return reasoning and content of the next part; calls stay in the content as written.

        Earlier text is known and need not be given.
        """
        self.initialize_streaming()
        with _Skipping(self._engine):
            return self._to_delta(self._feed(piece.delta_text, piece.delta_token_ids), False)

    @_of_calls
    def extract_tool_calls_streaming(self, piece: Piece) -> DeltaMessage | None:
        """Return everything in the next part. Earlier text is known and need not be given."""
        return self.parse_delta(piece.delta_text, piece.delta_token_ids, piece.request, finished=False)

    def get_streaming_fallback_content(self, text: str, request: Any) -> str | None:
        return None

    # -- whole ---------------------------------------------------------------------------------------------------

    def parse(
        self,
        model_output: str,
        request: Any = None,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        self._check_skip_tool_parsing(request)
        reasoning, content, found = self._single_pass_parse(model_output, model_output_token_ids)
        return reasoning, content, [with_id(call) for call in found.tool_calls] or None

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Return (reasoning, content) of a whole output; calls stay in the content as written."""
        with _Skipping(self._engine):
            reasoning, content, _ = self._single_pass_parse(model_output, ())
        return reasoning, content

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Return the calls and the content of a whole output, which may include reasoning."""
        self._check_skip_tool_parsing(request)
        return self._single_pass_parse(model_output, ())[2]

    def extract_tool_calls_from_content(self, content: str, request: Any) -> ExtractedToolCallInformation:
        """Return the same for an output without reasoning: it begins in content, not in the config's state."""
        self._check_skip_tool_parsing(request)
        return self._single_pass_parse(content, (), ParserState.CONTENT)[2]

    def _single_pass_parse(
        self, text: str, token_ids: Sequence[int], initial_state: ParserState | None = None
    ) -> tuple[str | None, str | None, ExtractedToolCallInformation]:
        """Parse a whole output; return (reasoning, content, calls and content)."""
        self._reset(initial_state or self._prompt_leaves)
        holds, self._holds_calls = self._holds_calls, True
        events = self._feed(text, token_ids)
        delta = self._to_delta(events + self._engine.finish(), True)
        self._holds_calls = holds
        self._streaming_initialized = False
        found = self._build_extracted_result(delta)
        return None if delta is None else delta.reasoning, found.content, found

    def _build_extracted_result(self, *deltas: DeltaMessage | None) -> ExtractedToolCallInformation:
        """Return the content of deltas, and their calls. If they have none: calls of the events and the slots."""
        content = "".join(delta.content or "" for delta in deltas if delta is not None)
        pieces = [piece for delta in deltas if delta is not None for piece in delta.tool_calls or ()]
        pieces = pieces or [*self._made, *self._end_slots()]
        closed = {slot.index: slot.closed for slot in self._tool_slots}
        calls = []
        for piece in self._coalesce_tool_call_deltas(pieces):
            function = piece.function
            assert function is not None
            arguments = function.arguments or ""
            changed = type(self)._extract_args_json is not ParserEngine._extract_args_json
            if changed and self._arg_converter is None and closed.get(piece.index):
                arguments = self._extract_args_json(arguments, function.name or "")
            call = FunctionCall(name=function.name or "", arguments=arguments)
            status: CallStatus = (
                "incomplete" if not closed.get(piece.index) else "ok" if is_json(call.arguments) else "invalid_json"
            )
            calls.append(ToolCall(id=piece.id or "", function=call, status=status))
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=content or None)

    def _extract_args_json(self, raw_args: str, func_name: str) -> str:
        """Return the arguments of a whole call as JSON, also if they are in an object with the call's name.

        For subclasses to change. The engine has read them already, so it calls this method only if that was done.
        """
        return self._extract_name_and_args(raw_args)[1] if raw_args.strip() else "{}"

    def _extract_name_and_args(self, raw_body: str) -> tuple[str, str]:
        """Return the name and the arguments of a call that is one JSON object; without a name, the text itself."""
        try:
            parsed = json.loads(raw_body)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            return "", raw_body.strip()
        arguments = self._extract_args_value(parsed)
        if arguments is None:
            arguments = json.dumps({k: v for k, v in parsed.items() if k != "name"}, ensure_ascii=False)
        name = parsed.get("name")
        return name if isinstance(name, str) else "", arguments

    @staticmethod
    def _extract_args_value(parsed: dict[str, Any]) -> str | None:
        """Return the arguments of a call object as JSON; ``None`` if it has none."""
        for key in ("arguments", "parameters"):
            if key in parsed:
                found = parsed[key]
                return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return None

    def _strip_content_whitespace(self, content: str, tools_called: bool) -> str | None:
        """Return the content of a whole output without the white space that the config drops."""
        if tools_called and self._strip_content_ws_with_tools:
            content = content.strip()
        elif tools_called and self._drop_ws_only_content_before_tools and not content.strip():
            content = ""
        return content or None

    # -- token ids -----------------------------------------------------------------------------------------------

    def _may_reason(self) -> bool:
        """False if the config has no reasoning, such as one for calls alone."""
        config = self.parser_engine_config
        return self._begins_in_reasoning() or any(map(config.literals, ("THINK_START", "THINK_END")))

    def _begins_in_reasoning(self) -> bool:
        state = self._starts_in or self.parser_engine_config.initial_state
        return state is ParserState.REASONING

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """True if reasoning is over after these ids.

        From the last ``TURN_START`` on, the last ``THINK_START`` or ``THINK_END`` decides. Where there is none,
        ``wait_for_reasoning`` of the config does. If that is not set, this is False; without ids, True unless outputs
        begin in reasoning. If ``THINK_END`` has no id: True if the output parsed so far has ended its reasoning, or the
        config has none.
        """
        found = self._marks.last_opens(input_ids)
        if found is not None:
            return not found
        waits = self.parser_engine_config.wait_for_reasoning
        if waits is not None:
            return not waits
        if self._reasoning_end_token_id is None:
            return self._reasoning_ended or not self._may_reason()
        return not len(input_ids) and not self._begins_in_reasoning()

    def extract_content_ids(self, input_ids: Sequence[int]) -> list[int]:
        """Return the ids after the last ``THINK_END`` of the turn; without one, all of them."""
        return list(input_ids) if self.reasoning_end_str is None else self._marks.after_last_close(input_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._marks.count(token_ids, self._begins_in_reasoning())


class _Skipping:
    """Makes calls text inside a ``with`` block."""

    def __init__(self, engine: StreamingParserEngine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._before = self._engine.skip_tool_parsing
        self._engine.skip_tool_parsing = True

    def __exit__(self, *_: object) -> None:
        self._engine.skip_tool_parsing = self._before


def _opens(config: ParserEngineConfig, state: ParserState) -> bool:
    """True if an opening marker is one in this state, and leads to reasoning."""
    found = config.transitions.get((state, "THINK_START"))
    return found is not None and found.next_state is ParserState.REASONING


def _checked(tools: Sequence[Any] | None) -> Sequence[Any] | None:
    ToolSet(tools)
    return tools
