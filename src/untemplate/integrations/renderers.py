"""Parsers for the ``renderers`` package, whose default renderer serves models without a renderer of their own.

>>> from untemplate.integrations.renderers import register                                      # doctest: +SKIP
>>> register()                                                                                  # doctest: +SKIP
>>> config = DefaultRendererConfig(tool_parser="untemplate", reasoning_parser="untemplate")     # doctest: +SKIP
>>> create_renderer(tokenizer, config).parse_response(completion_ids, prompt_ids=prompt_ids)    # doctest: +SKIP

The name ``untemplate`` chooses the Format that certifies against the tokenizer's chat template; ``untemplate:NAME`` is
a Format of the catalogue.

Source: ``renderers/parsers.py`` and ``renderers/default.py`` of renderers 0.1.12.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from typing import Any, ClassVar, Final

from .._internal.output_parser import OutputParser
from .._internal.tokens.spans import ParsedTokens
from ..format import NamedBody
from ..format._markers import spellings_of
from ..formats import names
from ..messages import ToolCall
from ._of_tokenizer import parser_of
from ._partner import partner

__all__ = ["UntemplateReasoning", "UntemplateToolCalls", "register"]

_LEAST: Final = "0.1.12"
_theirs: Final = partner("renderers.parsers", "renderers", _LEAST)
_base: Final = partner("renderers.base", "renderers", _LEAST)

_STATUSES: Final = {"ok": "OK", "incomplete": "UNCLOSED_BLOCK", "invalid_json": "INVALID_JSON"}
"""Their status for each of ours; calls with any other are malformed."""
_THINK: Final = "</think>"
"""If this closes reasoning, the default renderer removes the reasoning before it looks for calls."""


class UntemplateToolCalls:
    """Finds calls in token ids, which are not encoded again."""

    format_name: ClassVar[str | None] = None

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        parser = parser_of(tokenizer, self.format_name)
        fmt = parser.format
        parts = (fmt.reasoning, fmt.content, fmt.channels)
        self._text_closes = spellings_of(*(part.close for part in parts if part is not None))
        bodies = [tools.body for tools in fmt.tools]
        self._call_closes = spellings_of(
            *(tools.call_close for tools in fmt.tools),
            *(body.arguments_close for body in bodies if isinstance(body, NamedBody)),
            *(() if fmt.channels is None else (fmt.channels.call_close, fmt.channels.close)),
        )
        if fmt.reasoning is not None and _THINK in fmt.reasoning.close.spellings:
            parser = OutputParser.from_format(fmt.extend(reasoning=None), tokenizer=tokenizer)
        self._parser = parser

    def extract(self, token_ids: list[int]) -> tuple[list[int], list[Any]]:
        """Return the ids outside the calls, reasoning included, and one record for each call."""
        parsed = self._parser.parse_tokens(token_ids)
        regions = parsed.regions
        found: list[Any] = []
        for call, (first, last) in zip(parsed.output.tool_calls, _places(parsed), strict=True):
            start = found[-1].token_span[1] if found else self._start(token_ids, regions, first)
            stop = next((at for at in range(last, len(regions)) if regions[at].kind != "markup"), len(regions))
            end = self._after(token_ids, last, stop, self._call_closes)
            found.append(self._record(call, token_ids, (start, last if end is None else end)))
        if not found:
            return list(token_ids), []
        start = found[0].token_span[0]
        texts = [at for at in range(start, len(regions)) if regions[at].kind in ("content", "reasoning")]
        return [*token_ids[:start], *(token_ids[at] for at in texts)], found

    def _start(self, ids: list[int], regions: list[Any], first: int) -> int:
        """Return where the markup of the first call begins, after the close of reasoning or content."""
        start = first
        while start and regions[start - 1].kind == "markup":
            start -= 1
        while (closed := self._after(ids, start, first, self._text_closes)) is not None:
            start = closed
        return start

    def _after(self, ids: list[int], start: int, stop: int, texts: tuple[str, ...]) -> int | None:
        """Return the place after the first of these texts in ``ids[start:stop]``."""
        for end in range(start + 1, stop + 1):
            written = self._decode(ids[start:end])
            if any(text in written for text in texts):
                return end
        return None

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    def _record(self, call: ToolCall, ids: list[int], span: tuple[int, int]) -> Any:
        arguments: Any = call.function.arguments
        if call.status not in ("incomplete", "invalid_json"):
            arguments = json.loads(arguments)
        return _base.ParsedToolCall(
            raw=self._decode(ids[slice(*span)]),
            name=call.function.name,
            arguments=arguments,
            token_span=span,
            status=_base.ToolCallParseStatus[_STATUSES.get(call.status, "MALFORMED_STRUCTURE")],
            id=call.id,
        )


def _places(parsed: ParsedTokens) -> list[tuple[int, int]]:
    """Return the tokens that the name, the id and the arguments of each call are in: the first, and the one after."""
    starts = [start for start, _ in parsed.offsets]
    places: dict[int, tuple[int, int]] = {}
    for span in parsed.output.spans:
        if span.call is not None:
            first, _ = places.get(span.call, (bisect_right(starts, span.start) - 1, 0))
            places[span.call] = first, bisect_left(starts, span.end)
    return list(places.values())


class UntemplateReasoning:
    """Splits reasoning from content in text without calls."""

    format_name: ClassVar[str | None] = None

    def __init__(self, tokenizer: Any) -> None:
        self._parser = OutputParser.from_format(parser_of(tokenizer, self.format_name).format)

    def extract(self, text: str) -> tuple[str | None, str]:
        """Return the reasoning and the content. The prompt is not known: a close without an opening belongs to it."""
        reasoning = self._parser.format.reasoning
        prompt = None
        if reasoning is not None and reasoning.open is not None:
            before = min((text.find(close) for close in reasoning.close.spellings if close in text), default=0)
            if not any(text.find(opener, 0, before) >= 0 for opener in reasoning.open.spellings) and before:
                prompt = reasoning.open.spellings[0]
        parsed = self._parser.parse(text, tools=(), prompt=prompt)
        return parsed.reasoning, parsed.content or ""


def register() -> None:
    """Add the parsers to the tables of the package, as ``untemplate`` and ``untemplate:NAME``."""
    tables = ((_theirs.TOOL_PARSERS, UntemplateToolCalls), (_theirs.REASONING_PARSERS, UntemplateReasoning))
    for table, base in tables:
        table["untemplate"] = base
        for name in names():
            table[f"untemplate:{name}"] = type(base.__name__, (base,), {"format_name": name, "__module__": __name__})
