"""OpenAI's own types, for endpoints and clients that are written with the ``openai`` package.

>>> from untemplate import OutputParser
>>> parsed = OutputParser.named("hermes").parse("Hi.")
>>> to_openai(parsed).content
'Hi.'
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from .._internal.reasoning_field import name_reasoning
from .._internal.stream import Stream
from ..messages import DeltaMessage, ParsedOutput
from ._partner import partner

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessage

__all__ = ["ChatChunks", "to_openai"]

_LEAST: Final = "1.100"


def to_openai(parsed: ParsedOutput) -> ChatCompletionMessage:
    """Return a parsed output as the message of a Chat Completions response.

    Reasoning is an additional field, named as the policy ``reasoning_field`` names it.

    Raises:
        ImportError: ``openai`` 1.100 or later is not installed.
    """
    chat = partner("openai.types.chat", "openai", _LEAST)
    message: ChatCompletionMessage = chat.ChatCompletionMessage.model_validate(parsed.message())
    return message


class ChatChunks:
    """Turns one stream into the chunks of a Chat Completions response: role first, finish reason last.

    >>> from untemplate import OutputParser
    >>> chunks = ChatChunks(OutputParser.named("hermes").stream(), model="my-model")
    >>> made = [*chunks.feed("Hi."), *chunks.finish("stop")]
    >>> [(chunk.choices[0].delta.content, chunk.choices[0].finish_reason) for chunk in made]
    [(None, None), ('Hi.', None), (None, 'stop')]

    Args:
        stream: fresh, from ``parser.stream(...)``.
        model: name of the model in each chunk.
        id: of the response. Default: a new one.
        created: time of the response, in seconds since 1970. Default: now.
        index: of the choice, where a request asks for several (``n``).
        reasoning_field: ``reasoning``, ``reasoning_content`` or ``both``. Default: the policy of the stream.

    Raises:
        ImportError: ``openai`` 1.100 or later is not installed.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        model: str,
        id: str | None = None,
        created: int | None = None,
        index: int = 0,
        reasoning_field: str | None = None,
    ) -> None:
        self._stream = stream
        self._reasoning_field = reasoning_field
        self._index = index
        self._begun = False
        self._chunk = partner("openai.types.chat", "openai", _LEAST).ChatCompletionChunk.model_validate
        self._head: dict[str, Any] = {
            "id": id or f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()) if created is None else created,
            "model": model,
            "object": "chat.completion.chunk",
        }

    def feed(self, text: str, token_ids: Sequence[int] = ()) -> list[ChatCompletionChunk]:
        """Return the chunks that the next part of the output completes. The first call also returns the role's."""
        return [*self._role(), *self._deltas(self._stream.feed(text, token_ids))]

    def finish(
        self, finish_reason: str | None = "stop", usage: CompletionUsage | dict[str, int] | None = None
    ) -> list[ChatCompletionChunk]:
        """End the output and return the last chunks: what was held, the finish reason, and the usage if there is one.

        Args:
            finish_reason: the engine's; the chunk holds ``tool_calls`` in place of ``stop`` where calls are whole.
            usage: sent in a chunk of its own without choices, as ``stream_options.include_usage`` asks for.
        """
        chunks = [*self._role(), *self._deltas(self._stream.finish(finish_reason))]
        chunks.append(self._choice({}, self._stream.finish_reason))
        if usage is not None:
            chunks.append(self._chunk({**self._head, "choices": [], "usage": usage}))
        return chunks

    def _role(self) -> Iterator[ChatCompletionChunk]:
        if not self._begun:
            self._begun = True
            yield self._choice({"role": "assistant"})

    def _deltas(self, deltas: Iterable[DeltaMessage]) -> Iterator[ChatCompletionChunk]:
        for delta in deltas:
            yield self._choice(self._dump(delta))

    def _dump(self, delta: DeltaMessage) -> dict[str, Any]:
        if self._reasoning_field is None:
            return self._stream.dump(delta)
        return name_reasoning(delta.model_dump(exclude_none=True), self._reasoning_field)

    def _choice(self, delta: dict[str, Any], finish_reason: str | None = None) -> ChatCompletionChunk:
        choice = {"index": self._index, "delta": delta, "finish_reason": finish_reason}
        chunk: ChatCompletionChunk = self._chunk({**self._head, "choices": [choice]})
        return chunk
