"""Provider for inspect-ai: ``inspect eval TASK --model untemplate/MODEL``.

The model runs in this process, in transformers, as with inspect-ai's own ``hf/MODEL`` and with its arguments (``-M``).
The model's chat template writes conversations. The Format that certifies against it parses answers; ``-M format=NAME``
is one of the catalogue. inspect-ai imports this module when it looks for a provider (entry point ``inspect_ai``).
transformers and torch are imported when a model is made.

Source: ``inspect_ai/model/_providers/hf.py`` of inspect-ai 0.3.285.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

from ..templates import ChatTemplate
from ..templates._history import for_template, template_needs
from ._of_tokenizer import parser_of
from ._partner import partner

__all__ = ["untemplate"]

_LEAST: Final = "0.3.285"
_model: Final = partner("inspect_ai.model", "inspect-ai", _LEAST)
_CHAT: Final[ContextVar[str]] = ContextVar("chat")
"""The prompt of the request that is being generated."""


@_model.modelapi(name="untemplate")  # type: ignore[untyped-decorator, unused-ignore]
def untemplate() -> type[Any]:
    """Return the provider's class.

    Raises:
        ImportError: torch, transformers or accelerate is missing.
    """
    try:
        theirs = importlib.import_module("inspect_ai.model._providers.hf").HuggingFaceAPI
    except ImportError as error:
        needed = "torch transformers accelerate"
        raise ImportError(f"untemplate/MODEL runs models in transformers: {error}; pip install {needed}") from error
    from .inspect_ai import to_message

    class Provider(theirs):  # type: ignore[valid-type, misc]
        def __init__(self, model_name: str, *args: Any, format: str | None = None, **kwargs: Any) -> None:
            super().__init__(model_name, *args, **kwargs)
            self._parser = parser_of(self.tokenizer, format)
            template = ChatTemplate.of_tokenizer(self.tokenizer, name=model_name)
            if template is None:
                raise ValueError(f"{model_name} has no chat template")
            self._template = template
            decode = self.tokenizer.batch_decode

            def with_special_tokens(*args: Any, **kwargs: Any) -> Any:
                return decode(*args, **{**kwargs, "skip_special_tokens": False})

            self.tokenizer.batch_decode = with_special_tokens

        def hf_chat(self, messages: Any, tools: Any) -> str:
            return _CHAT.get()

        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
            offered = [] if tool_choice == "none" else [tool.model_dump(exclude_none=True) for tool in tools]
            prompt = self._prompt(input, offered)
            token = _CHAT.set(prompt)
            try:
                output = await super().generate(input, [], tool_choice, config)
            finally:
                _CHAT.reset(token)
            (choice,) = output.choices
            text, reason = choice.message.text, "stop"
            if self.tokenizer.eos_token:  # some tokenizers have none
                text, end, _ = text.partition(self.tokenizer.eos_token)
                reason = "stop" if end else "length"
            parsed = self._parser.parse(text, tools=offered, prompt=prompt, finish_reason=reason)
            choice.message = to_message(parsed, self.model_name)
            choice.stop_reason = {"tool_calls": "tool_calls", "length": "max_tokens"}.get(parsed.finish_reason, "stop")
            return output

        def _prompt(self, messages: Sequence[Any], tools: Sequence[Any]) -> str:
            written = for_template(
                [_wire(one) for one in messages], template_needs(self._template), self._parser.format
            )
            settings = {} if self.enable_thinking is None else {"enable_thinking": self.enable_thinking}
            return self._template.render(
                written,
                tools=[{"type": "function", "function": tool} for tool in tools] or None,
                add_generation_prompt=True,
                **settings,
            )

    return Provider


def _wire(message: Any) -> dict[str, Any]:
    """Return a message of inspect-ai as one of OpenAI's API."""
    made: dict[str, Any] = {"role": message.role, "content": message.text}
    parts = message.content if isinstance(message.content, list) else []
    reasoning = "".join(part.reasoning for part in parts if part.type == "reasoning")
    if reasoning:
        made["reasoning_content"] = reasoning
    if message.role == "assistant" and message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        made |= {"tool_call_id": message.tool_call_id, "name": message.function}
        if message.error is not None:
            made["content"] = f"Error: {message.error.message}"
    return made
