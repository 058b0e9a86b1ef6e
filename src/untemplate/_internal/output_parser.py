"""OutputParser: the class that programs and servers use.

It is the class that parses (`message_parser.py`) and, over it, the methods that vLLM's server calls: a stream without
an object of its own, requests, and the two halves. vLLM's interface is loaded when a half is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from ..messages import DeltaMessage, ParsedOutput
from .backends.requests import adjusted
from .deltas import merge_deltas
from .message_parser import MessageParser
from .options import WholeOptions, spelled_out
from .stream import Stream

if TYPE_CHECKING:
    from ..formats import Kind
    from ..vllm_api import ReasoningParser, ToolParser

__all__ = ["OutputParser"]


class OutputParser(MessageParser):
    """Turns raw model output into OpenAI messages, whole or streamed.

    The constructor takes parser names, as vLLM's does; :meth:`named`, :meth:`from_format`, :meth:`from_template` and
    :meth:`for_model` are the other ways to make a parser. A parser may be shared between threads, except for
    :meth:`parse_streaming`.

    Args:
        tokenizer: anything with ``get_vocab()``; with it, ids distinguish markers from text that spells them.
        reasoning_parser_name, tool_parser_name: names of the catalogue, or registered with the managers of
            ``untemplate.vllm_api``; with neither, all text is content.
        format: a Format instead of names.
        backend: a backend instead of names or a Format; the settings that follow ``policy`` are the backend's own.
        policy: how malformed output is treated.
        special_text: ``"kept"`` if the engine's text holds special tokens, ``"stripped"`` if not: then markers come by
            id, and ids must come in step with their text.
        make_id: (tool name, number of the call) → id, instead of the Format's own ids.

    Raises:
        ValueError: an unknown name or value; lists the valid ones.
        TypeError: an argument of the wrong type.
    """

    _implicit: Stream | None = None
    _implicit_length = 0

    @cached_property
    def _halves(self) -> dict[Kind, Any]:
        return {}

    @property
    def reasoning_parser(self) -> ReasoningParser | None:
        """The reasoning parser with vLLM's interface; ``None`` if there is no reasoning.

        One object, for one output at a time. If another one is set, outputs are parsed by it and ``tool_parser``.
        """
        return self._half("reasoning")  # type: ignore[no-any-return]

    @reasoning_parser.setter
    def reasoning_parser(self, parser: Any) -> None:
        self._set_half("reasoning", parser)

    @property
    def tool_parser(self) -> ToolParser | None:
        """The tool parser with vLLM's interface, likewise; ``None`` if there are no calls."""
        return self._half("tool")  # type: ignore[no-any-return]

    @tool_parser.setter
    def tool_parser(self, parser: Any) -> None:
        self._set_half("tool", parser)

    def _half(self, kind: Kind) -> Any:
        if kind not in self._halves:
            from ..vllm_api._backend import half_of

            self._halves[kind] = half_of(self._backend, kind, self._names.get(kind))
        return self._halves[kind]

    def _set_half(self, kind: Kind, parser: Any) -> None:
        from ..vllm_api._backend import HalvesBackend

        halves: dict[Kind, Any] = {"reasoning": self._half("reasoning"), "tool": self._half("tool")}
        halves[kind] = parser
        self._backend = HalvesBackend(self.format, self._tokenizer, policy=self._policy, halves=halves)
        self._halves.update(halves)

    def adjust_request(self, request: Any) -> Any:
        """Return a copy of the request, of the same type, that asks the engine to keep special tokens in the text."""
        own = getattr(self._backend, "adjust_request", None)
        return adjusted(request, skip_special_tokens=False) if own is None else own(request)

    @spelled_out(WholeOptions)
    def parse_complete_with_fallback(
        self,
        model_output: str,
        request: Any = None,
        finish_reason: str | None = "stop",
        *,
        token_ids: Sequence[int] = (),
        **options: Unpack[WholeOptions],
    ) -> ParsedOutput:
        """Return the message of a whole output, with calls that fail as content.

        As :meth:`parse`, but a call that was cut, or whose arguments are not a JSON object after the repairs that the
        policy allows, becomes content, markup included. This is vllm.rs's way to parse a whole output.
        """
        chosen = options.get("policy") or self.policy
        if chosen.malformed_arguments == "repaired" and chosen.repair == "none":
            chosen = replace(chosen, repair="syntax")
        options["policy"] = replace(chosen, malformed_arguments="content", cut_calls="content")
        return self.parse(model_output, request, finish_reason, token_ids=token_ids, **options)

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
        """Parse one delta of one implicit stream, for one request at a time. :meth:`stream` serves several requests,
        and its ``finish`` returns what is still open at the end.

        Returns:
            The parts of the message that the delta completes: an empty delta while text is buffered. ``None`` if there
            is neither a reasoning parser nor a tool parser: then ``delta_text`` is content as it is.

        Raises:
            ValueError: ``previous_text`` is not the text that was given before. An empty one begins a new output.
        """
        if not self.has_reasoning and not self.has_tools:
            return None
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
        return merge_deltas(self._implicit.feed(delta_text, delta_token_ids)) or DeltaMessage()

    def finish_streaming(self, finish_reason: str | None = "stop") -> DeltaMessage | None:
        """Return what :meth:`parse_streaming` still holds at the end of the output."""
        if self._implicit is None:
            return None
        return merge_deltas(self._implicit.finish(finish_reason))
