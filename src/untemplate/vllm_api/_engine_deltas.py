"""Turns the events of a config's engine into deltas.

* A call commits when its name is complete and its arguments begin, or when it is closed. Text that never becomes a call
  is content, markup included. So is a call that is cut, unless the stream has sent a part of it.
* White space next to a marker is dropped as the config's flags say; the end of the output is not a marker. White space
  that may have to be dropped is buffered until the next text decides.
* Nothing that was sent is retracted: a converter that contradicts its earlier result is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .._internal.deltas import merge_deltas, merge_tool_calls
from .._internal.jsontext.well_formed import is_json
from .._internal.machine.events import EventType, SemanticEvent
from .._internal.machine.lexer import WS
from .._internal.schemas.reading import extract_types_from_schema
from ..messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall, Diagnostic
from ..tools import find_tool
from ._abstract import Parser
from ._arguments import coerce_members, coerce_value, coerced, safe_prefix, within
from ._arrays import ArrayCalls
from ._config import ParserEngineConfig
from ._config_arguments import ArgumentReader
from ._slots import ToolCallSlot, make_tool_call_id
from ._streaming_engine import StreamingParserEngine

__all__ = ["EngineDeltas"]

_REASONING = frozenset({EventType.REASONING_START, EventType.REASONING_CHUNK})
_NOTES = {
    "converter_failed": "the arg_converter raised on these arguments: {}",
    "converter_retracted": "the arg_converter changed what had been sent already; the arguments stay as they were sent",
    "empty_calls": "markers of calls without a call were dropped",
    "stray_text": "text after the arguments was dropped",
    "unknown_tool": "a call of a tool that was not offered was dropped",
}


class EngineDeltas(Parser):
    """Turns events into deltas, and keeps the state for that."""

    reads_prompts = True
    _NAME_RE = re.compile(r'"name"\s*:\s*"([^"]*)"')
    """Finds the name in arguments that no reader has read."""

    def __init__(
        self, tokenizer: Any, tools: Sequence[Any] | None, config: ParserEngineConfig, engine: StreamingParserEngine
    ) -> None:
        super().__init__(tokenizer)
        self.parser_engine_config = config
        self._tools = tools
        self._engine = engine
        self._make_id: Callable[[str, int], str] | None = None
        # Attributes, because subclasses written for vLLM read and set them.
        self._arg_converter = config.arg_converter
        self._arg_structural_chars = config.arg_structural_chars
        self._stream_arg_deltas = config.stream_arg_deltas
        self._strip_trailing_reasoning_ws = config.strip_trailing_reasoning_whitespace
        self._drop_ws_only_content_before_tools = config.drop_whitespace_only_content_before_tools
        self._strip_content_ws_with_tools = config.strip_content_whitespace_with_tools
        self._argument_markers = _argument_markers(config)
        self._holds_calls = False
        """True if calls are sent when they have ended, since one that is cut has to become content."""
        self._start_over()

    def _start_over(self) -> None:
        self._reasoning_ended = False
        self._in_reasoning = False
        self._tool_slots: list[ToolCallSlot] = []
        self._calls_sent = 0
        self._ids_made = 0
        self._unconverted: dict[int, list[str]] = {}
        self._content: list[str] = []
        # White space that is buffered until the next text.
        self._spaces: list[str] = []
        self._reasoning_spaces: list[str] = []
        self._content_has_nonws = False
        self._line_has_text = False
        self._after_call = False
        self._notes: list[Diagnostic] = []
        self._array = ArrayCalls() if self.parser_engine_config.tool_call_body_array else None
        self._held_calls: list[DeltaToolCall] = []
        """Deltas of the open call."""
        self._made: list[DeltaToolCall] = []
        """Deltas of calls that a subclass has made of events itself."""

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Problems of the output so far, dropped text included."""
        return sorted(self._engine.diagnostics + self._notes, key=lambda note: note.start)

    @property
    def _deferred_content(self) -> str:
        """White space that is buffered until the next text."""
        return "".join(self._spaces)

    @_deferred_content.setter
    def _deferred_content(self, text: str) -> None:
        self._spaces = [text] if text else []

    @property
    def _deferred_reasoning(self) -> str:
        """White space of reasoning that is buffered until the next text."""
        return "".join(self._reasoning_spaces)

    @_deferred_reasoning.setter
    def _deferred_reasoning(self, text: str) -> None:
        self._reasoning_spaces = [text] if text else []

    # -- events to deltas ----------------------------------------------------------------------------------------

    def _to_delta(self, events: Sequence[SemanticEvent], finished: bool) -> DeltaMessage | None:
        """Return one delta for all of these events.

        Reasoning and the rest are converted in turns, so that each turn shows where reasoning ends.
        """
        if self._array is not None:
            events = self._array.split(events)
        if not events and not finished:
            return None
        deltas = []
        turns = [events] if len(events) < 2 else _turns(events)
        for i, turn in enumerate(turns):
            last = finished and i == len(turns) - 1
            delta = self._strip_trailing_reasoning(self._events_to_delta(turn, finished=last))
            if delta is not None:
                deltas.append(delta)
        self._made.clear()
        if finished and self._reasoning_spaces:
            deltas.append(DeltaMessage(reasoning=self._deferred_reasoning))
            self._reasoning_spaces = []
        return merge_deltas(deltas)

    def _events_to_delta(self, events: Sequence[SemanticEvent], finished: bool = False) -> DeltaMessage | None:
        """Return the delta for these events. ``finished``: no more will come, so buffered text is included.

        May be overridden; reasoning still has the white space at its end.
        """
        reasoning: list[str] = []
        calls: list[DeltaToolCall] = []
        for event in events:
            kind = event.type
            if kind is EventType.REASONING_CHUNK:
                self._in_reasoning = True
                reasoning.append(event.value)
            elif kind is EventType.TEXT_CHUNK:
                self._in_reasoning = False
                self._add_content(event.value)
            elif kind is EventType.REASONING_START:
                self._in_reasoning = True
            elif kind is EventType.REASONING_END:
                self._in_reasoning = False
                self._reasoning_ended = True
            else:
                self._in_reasoning = False
                self._handle_tool_event(event, calls)
        if self._unconverted:
            self._convert_arguments(calls)
        if finished:
            self._finish(calls)
        if self._holds_calls and (calls or self._held_calls):
            calls = self._ended_calls(calls)
        content = "".join(self._content)
        self._content.clear()
        if not (content or reasoning or calls):
            return None
        if len(calls) > 1:
            calls = self._coalesce_tool_call_deltas(calls)
        self._made += calls
        return DeltaMessage(content=content or None, reasoning="".join(reasoning) or None, tool_calls=calls or None)

    def _handle_tool_event(self, event: SemanticEvent, deltas: list[DeltaToolCall]) -> None:
        kind, index = event.type, event.tool_index
        if kind is EventType.TOOL_CALL_START:
            if index > 0:
                # The previous call has no end of its own: the next call ends it.
                self._end_call(index - 1, deltas, closed=False)
            self._ensure_slot(index)
        elif not 0 <= index < len(self._tool_slots):
            return
        elif kind is EventType.TOOL_NAME:
            self._handle_tool_name(event)
        elif kind is EventType.ARG_VALUE_CHUNK:
            slot = self._tool_slots[index]
            sent = slot.name_sent
            self._handle_arg_chunk(event, deltas)
            if slot.name_sent and not sent:
                _drop_repeated(deltas, event.value)
        elif kind is EventType.TOOL_CALL_END:
            self._handle_tool_end(event, deltas)

    def _end_slots(self) -> list[DeltaToolCall]:
        """End the slots that a subclass has filled itself; return their deltas."""
        deltas: list[DeltaToolCall] = []
        for index, slot in enumerate(self._tool_slots):
            if not slot.ended and (slot.name or slot.args):
                text = slot.args
                slot.clear_args()
                self._handle_arg_chunk(SemanticEvent(EventType.ARG_VALUE_CHUNK, text, index), deltas)
                self._end_call(index, deltas, closed=True)
        return deltas

    def _finish(self, deltas: list[DeltaToolCall]) -> None:
        """End the output: cut the open call, and place or drop buffered white space."""
        for index, slot in enumerate(self._tool_slots):
            slot.cut = not slot.ended
            self._end_call(index, deltas, closed=False)
        strips = self._strip_content_ws_with_tools
        if self._calls_sent and self._content_has_nonws:
            goes = strips and self._after_call
        else:
            goes = self._calls_sent > 0 and (strips or self._drop_ws_only_content_before_tools)
        if not goes:
            self._content += self._spaces
        self._spaces = []

    def _ended_calls(self, calls: list[DeltaToolCall]) -> list[DeltaToolCall]:
        """Return the deltas of the calls that have ended; hold those of the open one. A cut call becomes content."""
        last = self._tool_slots[-1]
        held = self._held_calls
        if held and held[0].index != last.index:
            calls, held = held + calls, []
        if not last.ended:
            self._held_calls = held
            held += [delta for delta in calls if delta.index == last.index]
            return [delta for delta in calls if delta.index != last.index]
        calls = held + calls
        self._held_calls = []
        if not last.cut:
            return calls
        _, raw = self._take_call(len(self._tool_slots) - 1)
        parts = [delta.function.arguments or "" for delta in calls if delta.function and delta.index == last.index]
        if not last.name_sent or is_json("".join(parts)):
            return calls
        self._add_content(raw)
        return [delta for delta in calls if delta.index != last.index]

    def _take_call(self, index: int) -> tuple[int, str]:
        """Return (offset, text) of a call as far as it has come, and stop keeping it."""
        if self._array is None:
            return self._engine.take_call(index)
        raw = "".join(self._array.raw.pop(index, ()))
        return self._engine.offset - len(raw), raw

    def _strip_trailing_reasoning(self, delta: DeltaMessage | None) -> DeltaMessage | None:
        """Remove the white space between reasoning and the next marker; it is buffered until the next text decides."""
        if not self._strip_trailing_reasoning_ws:
            return delta
        if delta is not None and delta.reasoning is not None:
            text = delta.reasoning
            body = text.rstrip(WS)
            delta.reasoning = None
            if body:
                delta.reasoning = self._deferred_reasoning + body
                self._reasoning_spaces = []
            if len(body) < len(text):
                self._reasoning_spaces.append(text[len(body) :])
            return delta if delta.reasoning or delta.content or delta.tool_calls else None
        if not self._in_reasoning:
            self._reasoning_spaces = []
        return delta

    # -- content -------------------------------------------------------------------------------------------------

    def _add_content(self, text: str) -> None:
        """Add content, without the white space at its end while that may have to be dropped."""
        strips = self._strip_content_ws_with_tools
        body = text.rstrip(WS)
        _, newline, line = text.rpartition("\n")
        self._line_has_text = bool(line.strip(WS)) or (not newline and self._line_has_text)
        if body:
            if not self._content_has_nonws:
                self._content_has_nonws = True
                if self._calls_sent and strips:
                    self._spaces = []
                    text, body = text.lstrip(WS), body.lstrip(WS)
            self._content += self._spaces
            self._spaces = []
            self._after_call = False
        holds = strips or (self._drop_ws_only_content_before_tools and not self._content_has_nonws)
        sent = body if holds else text
        if sent:
            self._content.append(sent)
        if len(sent) < len(text):
            self._spaces.append(text[len(sent) :])

    def _space_before_call(self) -> None:
        """Place or drop the white space before a call that has committed."""
        goes = self._strip_content_ws_with_tools or (
            self._drop_ws_only_content_before_tools and not self._content_has_nonws
        )
        if not goes:
            self._content += self._spaces
        self._spaces = []
        self._after_call = True

    # -- calls ---------------------------------------------------------------------------------------------------

    def _ensure_slot(self, idx: int) -> None:
        while len(self._tool_slots) <= idx:
            slot = ToolCallSlot()
            slot.index = len(self._tool_slots)
            self._tool_slots.append(slot)

    def _ensure_tool_id(self, slot: ToolCallSlot, name: str) -> None:
        """Give a call its id, if it has none, and count it."""
        if slot.id:
            return
        state, make_id = self._stream_state, self._make_id
        number = state.history_tool_call_cnt
        slot.id = make_id(name, number) if make_id else make_tool_call_id(state.tool_call_id_type, name, number)
        state.history_tool_call_cnt += 1
        self._ids_made += 1

    def _is_valid_tool_name(self, name: str) -> bool:
        """True if a call of this name is allowed."""
        if not self.parser_engine_config.validate_tool_names or not self._tools:
            return True
        return find_tool(self._tools, name) is not None

    def _handle_tool_name(self, event: SemanticEvent) -> None:
        slot = self._tool_slots[event.tool_index]
        if not slot.name_sent:
            slot.name += event.value

    def _emit_name_delta(self, idx: int, deltas: list[DeltaToolCall], name: str | None) -> None:
        """Commit the call, if it has a valid name."""
        slot = self._tool_slots[idx]
        if not name or slot.name_sent or slot.rejected:
            return
        if not self._is_valid_tool_name(name):
            slot.rejected = True
            return
        if not self._holds_calls:
            self._take_call(idx)
        self._space_before_call()
        slot.name = name
        slot.name_sent = True
        slot.index = self._calls_sent
        slot.string_keys = self._streamable_string_keys(self._properties(name))
        self._calls_sent += 1
        self._ensure_tool_id(slot, name)
        function = DeltaFunctionCall(name=name)
        deltas.append(DeltaToolCall(index=slot.index, id=slot.id, type="function", function=function))

    def _handle_arg_chunk(self, event: SemanticEvent, deltas: list[DeltaToolCall]) -> None:
        index, text = event.tool_index, event.value
        slot = self._tool_slots[index]
        if slot.ended or slot.rejected or not text:
            return
        if not slot.name_sent or self._arg_converter is not None:
            slot.append_args(text)
        if not slot.name_sent and slot.name.strip(WS):
            # White space alone does not mean that arguments follow.
            text = slot.args
            if not text.strip(WS):
                return
            self._emit_name_delta(index, deltas, slot.name.strip(WS))
        if self._arg_converter is not None:
            self._unconverted.setdefault(index, []).append(text)
            if not slot.name_sent:
                self._reader(slot).feed(text)
                self._emit_name_delta(index, deltas, self._try_extract_name(index))
            if event.value in self._argument_markers:
                # The place of a marker does not depend on how the output is cut, so what is sent here does not either.
                self._convert_arguments(deltas)
            return
        sent = self._compute_arg_delta(index, text)
        if not slot.name_sent:
            self._emit_name_delta(index, deltas, self._try_extract_name(index))
        if slot.name_sent:
            slot.clear_args()
            self._send_arguments(slot, sent, deltas)

    def _convert_arguments(self, deltas: list[DeltaToolCall]) -> None:
        """Call the converter once for all text since the last time."""
        for index in list(self._unconverted):
            slot = self._tool_slots[index]
            if slot.name_sent:
                raw = "".join(self._unconverted.pop(index))
                self._send_arguments(slot, self._compute_arg_delta(index, raw), deltas)

    def _handle_tool_end(self, event: SemanticEvent, deltas: list[DeltaToolCall]) -> None:
        if event.tool_index < len(self._tool_slots):
            before = len(deltas)
            self._end_call(event.tool_index, deltas, closed=True)
            deltas[before:] = self._coalesce_tool_call_deltas(deltas[before:])

    def _end_call(self, index: int, deltas: list[DeltaToolCall], *, closed: bool) -> None:
        """End a call; ``closed``: by its own end."""
        slot = self._tool_slots[index]
        if slot.ended:
            return
        if self._arg_converter is not None and self.parser_engine_config.tool_args_json and is_json(slot.args):
            closed = True  # The end of the turn, which is not in the text, was its end.
        slot.ended = True
        slot.closed = closed
        self._unconverted.pop(index, None)
        rest: str | None = None
        if closed or slot.name_sent or slot.args.strip(WS):
            named = bool(slot.name.strip(WS))
            if self._arg_converter is None or not named:
                unread = slot.args if slot.reader is None else ""
                rest = self._reader(slot).feed(unread) + self._reader(slot).finish(closed)
            self._emit_name_delta(index, deltas, slot.name.strip(WS) or self._try_extract_name(index))
        if slot.name_sent:
            if self._arg_converter is not None:
                rest = self._flush_arg_converter(index) if closed else self._advance(slot, self._stable(slot))
                if closed and not rest and not slot.streamed_json:
                    rest = "{}"
            self._send_arguments(slot, rest, deltas)
            stray = "" if slot.reader is None or self._arg_converter is not None else slot.reader.stray
            if stray:
                self._note("stray_text", self._engine.offset, stray)
        else:
            start, raw = self._take_call(index)
            if slot.rejected:
                self._note("unknown_tool", start, raw)
            elif closed and self._is_markup(slot):
                self._note("empty_calls", start, raw)
            else:
                self._add_content(raw)
        slot.clear_args()

    def _is_markup(self, slot: ToolCallSlot) -> bool:
        """True if nothing is between the markers of a call, and they do not seem to be quoted in a line of text."""
        quoted = self._line_has_text and not self._engine.checks_ids
        return not (quoted or slot.name.strip(WS) or slot.args.strip(WS))

    def _reader(self, slot: ToolCallSlot) -> ArgumentReader:
        if slot.reader is None:
            as_json = self.parser_engine_config.tool_args_json
            slot.reader = ArgumentReader(named=bool(slot.name.strip(WS)), as_json=as_json)
        return slot.reader

    def _try_extract_name(self, idx: int) -> str | None:
        """Return the name of a call that is inside its arguments, once it is known."""
        slot = self._tool_slots[idx]
        if slot.reader is not None:
            return slot.reader.name or None
        found = self._NAME_RE.search(slot.args)
        return found.group(1) or None if found else None

    def _send_arguments(self, slot: ToolCallSlot, text: str | None, deltas: list[DeltaToolCall]) -> None:
        if text:
            deltas.append(DeltaToolCall(index=slot.index, function=DeltaFunctionCall(arguments=text)))

    @staticmethod
    def _coalesce_tool_call_deltas(deltas: list[DeltaToolCall]) -> list[DeltaToolCall]:
        """Merge the deltas of each call into its first; return the same list if there is nothing to merge."""
        merged = merge_tool_calls(deltas)
        if len(merged) == len(deltas):
            return deltas
        first: dict[int, DeltaToolCall] = {}
        for delta in deltas:
            first.setdefault(delta.index, delta)
        for call, whole in zip(first.values(), merged, strict=True):
            call.id, call.type, call.function = whole.id, whole.type, whole.function
        return list(first.values())

    # -- converted arguments -------------------------------------------------------------------------------------

    def _compute_arg_delta(self, idx: int, raw_delta: str) -> str | None:
        """Return the arguments that can be sent now that ``raw_delta`` has come."""
        slot = self._tool_slots[idx]
        if self._arg_converter is None:
            return self._reader(slot).feed(raw_delta) or None
        structural = self._arg_structural_chars
        if not self._stream_arg_deltas or (structural is not None and structural.isdisjoint(raw_delta)):
            return None
        return self._advance(slot, self._stable(slot))

    def _flush_arg_converter(self, idx: int) -> str | None:
        """Return the rest of a closed call's arguments, if a converter makes them."""
        if self._arg_converter is None:
            return None
        slot = self._tool_slots[idx]
        final = self._converted(slot, partial=False)
        if final is None:
            # The converter has raised: send the arguments as written.
            if slot.streamed_json:
                return None
            reader = ArgumentReader(named=slot.reader is None, as_json=self.parser_engine_config.tool_args_json)
            final = reader.feed(slot.args) + reader.finish(True)
        elif not final.startswith(slot.streamed_json):
            self._note("converter_retracted", self._engine.offset, final)
            return None
        return self._advance(slot, final)

    def _advance(self, slot: ToolCallSlot, text: str) -> str | None:
        """Return what ``text`` adds to the arguments that were sent; nothing if it does not continue them."""
        sent = slot.streamed_json
        if not text.startswith(sent) or len(text) == len(sent):
            return None
        slot.streamed_json = text
        return text[len(sent) :]

    def _stable(self, slot: ToolCallSlot) -> str:
        """Return the part of the converted arguments that cannot change any more."""
        return self._safe_arg_prefix(self._converted(slot, partial=True) or "", slot.string_keys)

    def _converted(self, slot: ToolCallSlot, *, partial: bool) -> str | None:
        """Return the converter's result, with types as in the tool's schema; ``None`` if it raised."""
        assert self._arg_converter is not None
        try:
            text = self._arg_converter(slot.args, partial)
        except Exception as error:  # the caller's code on a model's text: it can raise anything
            if not partial:
                self._note("converter_failed", self._engine.offset, slot.args, error)
            return None
        return self._fix_arg_types(text, slot.name) if text else ""

    # -- types ---------------------------------------------------------------------------------------------------

    def _properties(self, name: str) -> dict[str, Any]:
        """Return the properties of a tool's parameters, each with the definitions that it references."""
        tool = find_tool(self._tools, name)
        return {} if tool is None else {key: within(part, tool.schema) for key, part in tool.properties().items()}

    def _fix_arg_types(self, args_json: str, func_name: str) -> str:
        """Return the arguments with each complete value coerced to the tool's schema.

        A value that is cut, or has no schema, stays as written.
        """
        properties = self._properties(func_name) if func_name else {}
        return coerced(args_json, properties, self._coerce_value) if properties else args_json

    @staticmethod
    def _coerce_value(value: Any, schema: Any) -> tuple[object, bool]:
        """Return (the value coerced to its schema, True if that changed it)."""
        return coerce_value(value, schema)

    @staticmethod
    def _coerce_dict(args: dict[str, Any], properties: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Do the same for every member of ``args`` with a schema in ``properties``, in place, and return ``args``."""
        return coerce_members(args, properties)

    @staticmethod
    def _safe_arg_prefix(json_str: str, string_keys: set[str] | None = None) -> str:
        """Return the part of a JSON object's text that does not change while its last value may still change.

        That includes the text of this value if it is a string under one of ``string_keys`` (``None``: under any key).
        """
        return safe_prefix(json_str, string_keys)

    @staticmethod
    def _streamable_string_keys(properties: dict[str, Any]) -> set[str] | None:
        """Return the keys whose values must be strings; ``None`` if there is no schema, so that all keep the type as
        written.
        """
        if not properties:
            return None
        return {key for key, schema in properties.items() if extract_types_from_schema(schema) == ["string"]}

    def _note(self, code: str, start: int, text: str, error: Exception | None = None) -> None:
        message = _NOTES[code].format(f"{type(error).__name__}: {error}")
        self._notes.append(Diagnostic(code=code, message=message, start=start, end=start + len(text), text=text))


def _drop_repeated(deltas: list[DeltaToolCall], text: str) -> None:
    """Remove the last delta if it repeats the arguments before it.

    vLLM's engine loses the arguments that come with a call's name, so its parser for Kimi K2 adds them once more.
    """
    if len(deltas) < 2 or deltas[-1].index != deltas[-2].index:
        return
    before, last = deltas[-2].function, deltas[-1].function
    if before is None or last is None or before.name or last.name or last.arguments != text:
        return
    if before.arguments is not None and before.arguments.strip() == text.strip():
        deltas.pop()


def _argument_markers(config: ParserEngineConfig) -> frozenset[str]:
    """Return the literals that are part of arguments."""
    return frozenset(
        literal
        for (_, terminal), transition in config.transitions.items()
        if EventType.ARG_VALUE_CHUNK in transition.events
        for literal in config.literals(terminal)
    )


def _turns(events: Sequence[SemanticEvent]) -> list[list[SemanticEvent]]:
    """Split events into runs: events of reasoning, and others."""
    turns: list[list[SemanticEvent]] = []
    before = None
    for event in events:
        reasons = event.type in _REASONING
        if reasons is not before:
            turns.append([])
        turns[-1].append(event)
        before = reasons
    return turns
