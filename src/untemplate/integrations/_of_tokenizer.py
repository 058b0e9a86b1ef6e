"""The parser for a tokenizer of transformers, chosen by the tokenizer's own chat template."""

from __future__ import annotations

import logging
from typing import Any, Final

from .._internal.output_parser import OutputParser
from ..policy import Policy
from ..selection import select
from ..templates import ChatTemplate

__all__ = ["parser_of"]

_log: Final = logging.getLogger(__name__)


def parser_of(tokenizer: Any, format: str | None = None, policy: Policy | None = None) -> OutputParser:
    """Return a parser that knows the tokenizer's special tokens.

    Args:
        tokenizer: of transformers, with ``chat_template`` and ``get_vocab()``.
        format: a name, as for `OutputParser.named`. Default: the Format that certifies against the chat
            template, which is logged.
        policy: as for `OutputParser`.

    Raises:
        ValueError: the tokenizer has no chat template and no format is named, or the name is unknown.
    """
    model = str(getattr(tokenizer, "name_or_path", "") or "the tokenizer's model")
    if format is not None:
        return OutputParser.from_format(select(enforce=format).format, tokenizer=tokenizer, policy=policy)
    template = ChatTemplate.of_tokenizer(tokenizer, name=model)
    if template is None:
        raise ValueError(f"{model} has no chat template: name a format, as `untemplate formats` lists them")
    selection = select(template=template)
    if selection.warning:
        _log.warning("%s: %s", model, selection.warning)
    _log.info("outputs of %s are parsed as %s", model, selection.format.name)
    return OutputParser.from_format(selection.format, tokenizer=tokenizer, policy=policy)
