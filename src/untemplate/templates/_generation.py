"""The ranges of a rendered conversation that the model wrote, as ``{% generation %}`` in the template marks them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..errors import TemplateError
from ._template import ChatTemplate

__all__ = ["generation_ranges"]


def generation_ranges(
    template: ChatTemplate, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **variables: Any
) -> tuple[str, list[tuple[int, int]]]:
    """Return a rendered conversation, and the ranges in it (in characters) that ``{% generation %}`` marks.

    Their tokens are those that Hugging Face's ``return_assistant_tokens_mask`` has. The list is empty if the template
    has no such blocks.

    Raises:
        TemplateError: the template cannot render this, or changes the marked text afterwards.
    """
    from ._sandbox import CLOSED, OPENED

    plain = template.render(messages, tools=tools, **variables)
    marked = template.render(messages, tools=tools, mark_generation=True, **variables)
    ranges: list[tuple[int, int]] = []
    start: int | None = None
    text = ""
    for piece in re.split(f"([{OPENED}{CLOSED}])", marked):
        if piece == OPENED and start is None:
            start = len(text)
        elif piece == CLOSED and start is not None:
            ranges.append((start, len(text)))
            start = None
        else:
            text += piece
    if text != plain or start is not None:
        raise TemplateError("the template changes text after its generation blocks", name=template.name)
    return plain, ranges
