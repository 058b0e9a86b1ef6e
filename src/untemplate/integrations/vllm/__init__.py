"""Plugin for vLLM: ``--tool-call-parser untemplate --reasoning-parser untemplate``.

vLLM calls :func:`register` in each of its processes (entry point ``vllm.general_plugins``). The name ``untemplate``
chooses the Format from the chat template of the served tokenizer; ``untemplate:NAME`` is a Format of the catalogue.
Nothing is parsed or selected before vLLM asks for a parser.
"""

from __future__ import annotations

import logging
from typing import Final

from ..._internal.log import is_configured
from ...formats import names

__all__ = ["register"]

_PARSERS: Final = "untemplate.integrations.vllm._parsers"


def register() -> None:
    """Register the parsers with vLLM's managers. May be called repeatedly.

    Raises:
        ImportError: vLLM is not installed, or older than 0.25.
    """
    try:
        from vllm.reasoning import ReasoningParserManager
        from vllm.tool_parsers import ToolParserManager

        from ._composition import compose
    except ImportError as error:
        raise ImportError(f"untemplate's plugin needs vLLM >= 0.25: {error}") from error

    for kind, manager in (("reasoning", ReasoningParserManager), ("tool", ToolParserManager)):
        for name in ("", *names()):
            manager.register_lazy_module(f"untemplate:{name}".removesuffix(":"), _PARSERS, f"{kind}:{name}")
    compose()
    _log_with_vllm()


class _ToVllm(logging.Handler):
    """Passes records on to vLLM's logger, which ``vllm serve`` configures after it has loaded its plugins."""

    def emit(self, record: logging.LogRecord) -> None:
        theirs = logging.getLogger("vllm.untemplate")
        if theirs.isEnabledFor(record.levelno):
            theirs.handle(record)


def _log_with_vllm() -> None:
    """Write untemplate's warnings into vLLM's log, in its format and from its level on.

    A logger that the operator has configured stays as it is.
    """
    own = logging.getLogger("untemplate")
    if not is_configured():
        own.handlers[:] = [_ToVllm()]
        own.propagate = False
