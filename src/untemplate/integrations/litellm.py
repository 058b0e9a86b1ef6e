"""A LiteLLM callback that parses the text of servers without parsers of their own.

The proxy calls it after each chat completion, whole or streamed. In a file next to ``config.yaml``::

    from untemplate.integrations.litellm import TextParser

    parser = TextParser({"my-model": "hermes+qwen3"})

and in ``config.yaml``, with the name of that file: ``litellm_settings: {callbacks: my_file.parser}``.

Source: LiteLLM's "Custom Callbacks" and "Modify / Reject Incoming Requests", on version 1.106.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from .._internal.output_parser import OutputParser
from .._internal.stream import Stream
from ..messages import DeltaMessage
from ..policy import STREAMED_CALLS, WHOLE_CALLS, Policy
from ._partner import Theirs, partner

__all__ = ["TextParser"]

_LEAST: Final = "1.80"
_types: Final = partner("litellm.types.utils", "litellm", _LEAST)
_logger: Final = partner("litellm.integrations.custom_logger", "litellm", _LEAST)


if TYPE_CHECKING:
    _CustomLogger = Theirs
else:
    _CustomLogger = _logger.CustomLogger


class TextParser(_CustomLogger):
    """Parses the content of chat completions into reasoning, content and tool calls.

    Answers that already hold tool calls or reasoning are left alone, and so are those of models that are not named. In
    a whole answer a call that was cut is text.

    Args:
        models: for each model of the proxy (its ``model_name``), a name, as for `OutputParser.named`, or a parser.

    Raises:
        UnknownFormatError: a name is not in the catalogue.
    """

    def __init__(self, models: Mapping[str, str | OutputParser]) -> None:
        super().__init__()
        self._parsers = {
            model: chosen if isinstance(chosen, OutputParser) else OutputParser.named(chosen, policy=STREAMED_CALLS)
            for model, chosen in models.items()
        }
        # A parser that was given has a policy of its own.
        self._whole = {
            model: None if isinstance(chosen, OutputParser) else WHOLE_CALLS for model, chosen in models.items()
        }

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> Any:
        """Parse a whole answer; LiteLLM sends what is returned."""
        model = data.get("model", "")
        parser = self._parsers.get(model)
        if parser is not None and isinstance(response, _types.ModelResponse):
            for choice in response.choices:
                _parse_choice(parser, self._whole[model], choice, data)
        return response

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: AsyncIterator[Any], request_data: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Parse a streamed answer chunk by chunk; LiteLLM sends what is yielded."""
        parser = self._parsers.get(request_data.get("model", ""))
        streams: dict[int, Stream] = {}
        last = None
        async for chunk in response:
            if parser is None or not isinstance(chunk, _types.ModelResponseStream):
                yield chunk
                continue
            last = chunk
            for parsed in _parse_chunk(parser, streams, chunk, request_data):
                yield parsed
        # An upstream that ends without a finish reason still gets what was held.
        for index, stream in streams.items():
            for delta in stream.finish(None):
                yield _chunk(last, index, stream.dump(delta))


def _offered(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"tools": data.get("tools") or (), "tool_choice": data.get("tool_choice")}


def _parse_choice(parser: OutputParser, policy: Policy | None, choice: Any, data: Mapping[str, Any]) -> None:
    message = choice.message
    if not message.content or message.tool_calls or getattr(message, "reasoning_content", None):
        return
    parsed = parser.parse(message.content, finish_reason=choice.finish_reason, policy=policy, **_offered(data))
    dump = parsed.message(reasoning_field="reasoning_content")
    choice.message = _types.Message(**dump)
    choice.finish_reason = parsed.finish_reason


def _parse_chunk(
    parser: OutputParser, streams: dict[int, Stream], chunk: Any, data: Mapping[str, Any]
) -> Iterable[Any]:
    """Yield the chunks that one chunk of the upstream becomes."""
    if not chunk.choices:
        yield chunk
    for choice in chunk.choices:
        stream = streams.get(choice.index)
        if stream is None:
            stream = streams[choice.index] = parser.stream(**_offered(data))
        delta = choice.delta
        if delta.role:
            yield _chunk(chunk, choice.index, {"role": delta.role})
        deltas: list[DeltaMessage] = stream.feed(delta.content) if delta.content else []
        if choice.finish_reason is not None:
            deltas += stream.finish(choice.finish_reason)
        for parsed in deltas:
            yield _chunk(chunk, choice.index, stream.dump(parsed))
        if choice.finish_reason is not None:
            yield _chunk(chunk, choice.index, {}, stream.finish_reason)


def _chunk(chunk: Any, index: int, delta: dict[str, Any], finish_reason: str | None = None) -> Any:
    """Return a copy of a chunk with one choice."""
    copy = chunk.model_copy()
    copy.choices = [_types.StreamingChoices(index=index, delta=_types.Delta(**delta), finish_reason=finish_reason)]
    return copy
