"""Plugin for vLLM: ``--tool-call-parser untemplate --reasoning-parser untemplate``.

vLLM calls :func:`register` in each of its processes (entry point ``vllm.general_plugins``). The name ``untemplate``
chooses the Format from the chat template of the served tokenizer; ``untemplate:NAME`` is a Format of the catalogue, of
the kind that the option takes.
Nothing is parsed or selected before vLLM asks for a parser.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Any, Final

from ..._internal.log import is_configured
from ..._internal.suggestions import close_names, did_you_mean
from ...formats import Kind, names

__all__ = ["register"]

_PARSERS: Final = "untemplate.integrations.vllm._parsers"
_NAMED: Final = re.compile(r"--(reasoning|tool[-_]call)[-_]parser[ =]untemplate:(\S*)")
"""Matches an option of the command line that names a Format."""


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

    managers: dict[Kind, Any] = {"reasoning": ReasoningParserManager, "tool": ToolParserManager}
    for kind, manager in managers.items():
        for name in ("", *names(kind)):
            manager.register_lazy_module(f"untemplate:{name}".removesuffix(":"), _PARSERS, f"{kind}:{name}")
    compose()
    _log_with_vllm()
    _warn_of_unknown_names()


def _warn_of_unknown_names() -> None:
    """Suggest names for those on the command line that do not exist. vLLM's error lists the hundreds that do."""
    for option, name in _NAMED.findall(" ".join(sys.argv)):
        kinds: tuple[Kind, Kind] = ("reasoning", "tool") if option == "reasoning" else ("tool", "reasoning")
        valid, others = map(names, kinds)
        if name in valid:
            continue
        near = did_you_mean([f"untemplate:{valid_name}" for valid_name in close_names(name, valid)]) or ";"
        remark = f"; it is a {kinds[1]} parser;" if name in others else near
        logging.getLogger("untemplate").warning(
            "unknown %s parser 'untemplate:%s'%s `untemplate formats --kind %s` lists all names",
            *(kinds[0], name, remark, kinds[0]),
        )


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
