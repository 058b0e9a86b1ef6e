"""A filter for lm-evaluation-harness: the part of each response that a task scores.

In ``utils.py`` next to the YAML of the task::

    from untemplate.integrations.lm_eval import text_filter

    answers = text_filter("qwen3")

and in the YAML::

    filter_list:
      - name: answers
        filter: [{function: custom, filter_fn: !function utils.answers}]

Source: ``lm_eval/filters/custom.py`` of lm-evaluation-harness 0.4.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from .._internal.output_parser import OutputParser
from ..messages import ParsedOutput

__all__ = ["text_filter"]

_Part = Literal["content", "reasoning", "tool_calls"]


def text_filter(
    parser: str | OutputParser, part: _Part = "content", tools: Sequence[Any] | None = None
) -> Callable[[Iterable[Sequence[str]], Any], list[list[Any]]]:
    """Return a filter function that replaces each response by a part of its message.

    Args:
        parser: a name, as for `OutputParser.named`, or a parser.
        part: ``content`` and ``reasoning`` give text, ``tool_calls`` a list of dicts with ``name`` and ``arguments``.
        tools: the tools that were offered. Default: any name is a tool.

    Raises:
        UnknownFormatError: the name is not in the catalogue.
        ValueError: another ``part``.
    """
    if part not in ("content", "reasoning", "tool_calls"):
        raise ValueError(f"text_filter() part: {part!r} is not one of: 'content', 'reasoning', 'tool_calls'")
    chosen = OutputParser.named(parser) if isinstance(parser, str) else parser

    def apply(responses: Iterable[Sequence[str]], docs: Any) -> list[list[Any]]:
        return [[_part(chosen.parse(text, tools=tools), part) for text in texts] for texts in responses]

    return apply


def _part(parsed: ParsedOutput, part: _Part) -> Any:
    if part == "tool_calls":
        return [{"name": call.function.name, "arguments": call.function.arguments} for call in parsed.tool_calls]
    return getattr(parsed, part) or ""
