"""An OutputParser over vLLM's own reasoning and tool parsers (``--parser-backend vllm``)."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import Any, Final

from .._internal.output_parser import OutputParser
from ..format import Format
from ..policy import Policy
from ..vllm_api._vllm_parsers import VllmBackend

__all__ = ["VllmOutputParser"]

_log: Final = getLogger("untemplate.vllm_api._vllm_parsers")


class VllmOutputParser(OutputParser):
    """An `OutputParser` that parses outputs with vLLM's own parsers. Grammars and rendering use ``format``.

    Args:
        tokenizer: the model's, as vLLM's parsers expect it.
        reasoning_parser_name, tool_parser_name: vLLM's names; ``None``: no such parser.
        format: the Format of the same model.
        policy: as for `OutputParser`. vLLM's parsers have no policies; one that would need them is logged as a warning.
        on_failure: called with the names of the parsers if they raised; for metrics.

    Raises:
        ValueError: vLLM cannot be imported, or has no parser of that name; lists those that it has.
    """

    def __init__(
        self,
        tokenizer: Any,
        reasoning_parser_name: str | None = None,
        tool_parser_name: str | None = None,
        *,
        format: Format,
        policy: Policy | None = None,
        on_failure: Callable[[str], None] | None = None,
    ) -> None:
        resolved = (policy or Policy()).resolved()
        if not resolved.needs_no_filter:
            getLogger("untemplate.vllm_api._vllm_parsers").warning(
                "the policies for calls and content have no effect: vLLM's parsers have none"
            )
        own = VllmBackend(reasoning_parser_name, tool_parser_name, format, tokenizer, policy=resolved)
        own.on_failure = on_failure
        super().__init__(tokenizer, backend=own, policy=policy)
        self._own = own

    @property
    def on_failure(self) -> Callable[[str], None] | None:
        """Called with the names of parsers that raised."""
        return self._own.on_failure

    @on_failure.setter
    def on_failure(self, callback: Callable[[str], None] | None) -> None:
        self._own.on_failure = callback
