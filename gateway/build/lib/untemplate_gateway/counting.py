"""Numbers of tokens of prompts. Where an engine has no tokenizer, they are estimated, and marked as estimates."""

from __future__ import annotations

from typing import Final

import msgspec

from .errors import ApiError
from .exchange import Exchange
from .generation import Generation
from .manager.model import Model
from .prompt import check_length, make_prompt
from .threads import in_thread

_BYTES: Final = 4
"""Bytes of a token in an estimate: about right for English and code, too many for most other languages."""


async def count_prompt(exchange: Exchange, request: Generation) -> int:
    """Return the number of tokens of a request's prompt, or an estimate, which is noted."""
    async with exchange.gateway.manager.use(request.model) as model:
        if not model.engine.takes.messages:
            try:
                return len(await prompt_tokens(model, request))
            except ApiError as error:
                if error.code != "no_tokenizer":
                    raise
        exchange.notes.add("the number of tokens is an estimate: the engine does not offer its tokenizer")
        size = len(msgspec.json.encode((request.messages, request.tools)))
        return max(1, size // _BYTES)


async def prompt_tokens(model: Model, request: Generation) -> list[int]:
    """Return the tokens of a request's prompt.

    Raises:
        ApiError: 501, the engine has no tokenizer.
    """
    prompt = await in_thread(make_prompt, model, request)  # in a thread, so that other streams continue
    if isinstance(prompt.text, list):
        return prompt.text
    if not model.engine.takes.messages:
        check_length(model, prompt.text, "messages" if request.prompt is None else "prompt")
        try:
            return await model.engine.tokenize(prompt.text)
        except NotImplementedError:
            pass
    raise ApiError(501, f"the engine {model.engine.kind!r} does not offer its tokenizer", code="no_tokenizer")
