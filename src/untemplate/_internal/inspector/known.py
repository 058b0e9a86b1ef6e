"""Shows an example turn of a model or a template, and everything that is known about it, as JSON values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ...analysis import Analysis, Certificate, Prepared, QuotedCalls
    from ...messages import ParsedOutput
    from ...selection import Selection
    from ...templates import ChatTemplate
    from ..output_parser import OutputParser

_RICHEST: Final = ("reasoning_with_calls", "content_with_calls", "parallel_calls", "calls", "reasoning", "content")
"""Kinds of checks, the one that shows most first."""

SAMPLES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "A call, as the model writes it:",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call00001",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city": "Paris", "days": 3}'},
                }
            ],
        },
    ),
    (
        "Reasoning and an answer, as the model writes them:",
        {"role": "assistant", "reasoning": "Simple arithmetic: 2 + 2.", "content": "It is 4."},
    ),
)


SAMPLE_TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
]


@dataclass(slots=True)
class Known:
    """Everything found about the model or template."""

    source: str
    parser: OutputParser
    selection: Selection | None
    """``None`` for a name or a file of a Format."""
    template: ChatTemplate | None
    prepared: Prepared | None
    analysis: Analysis | None
    certificate: Certificate | None

    def __post_init__(self) -> None:
        if self.certificate is not None:
            self.certificate = replace(self.certificate, quoted_calls=self.quoted_calls)

    @property
    def quoted_calls(self) -> QuotedCalls | None:
        """The contexts in which a quoted call is called, with the model's tokens as far as they are known."""
        from ..backends.quotations import quoted_calls

        if not self.parser.has_tools:
            return None
        tokens = None if self.template is None else self.template.vocabulary
        return quoted_calls(self.parser.format, tokens, self.parser.policy)

    @property
    def not_read_back(self) -> list[str] | None:
        """Samples that the Format does not read as it writes them; ``None`` if a template was measured instead."""
        from .own_text import not_read_back

        return list(not_read_back(self.parser.format)) if self.selection is None else None


def example(known: Known) -> tuple[str, str, str, ParsedOutput] | None:
    """Return (author, end of the prompt, turn, message) of the turn that shows most."""
    if known.prepared is not None:
        checks = known.prepared.checks
        for kind in _RICHEST:
            shown = [c for c in checks if c.kind == kind and c.output]
            if shown:
                best = max(shown, key=lambda c: (bool(c.reasoning), bool(c.content), len(c.calls) == 1))
                parsed = _parsed(known.parser, best.output, best.tools, best.prompt)
                return "as the template renders it", best.prompt, best.output, parsed
    from ..render import expressible, render

    fmt = known.parser.format
    for message in _messages():
        if expressible(fmt, message, SAMPLE_TOOLS) is None:
            text = render(fmt, message)
            return "as the format writes it", "", text, _parsed(known.parser, text, SAMPLE_TOOLS, None)
    return None


def _messages() -> Iterator[dict[str, Any]]:
    """Yield sample messages, the one that shows most first."""
    call, answer = (message for _, message in SAMPLES)
    text = {"content": "One moment."}
    thought = {"reasoning": "A forecast is needed."}
    yield from (call | thought | text, call | thought, call | text, call, answer)
    yield {"role": "assistant", "content": answer["content"]}


def _parsed(parser: OutputParser, text: str, tools: list[dict[str, Any]] | None, prompt: str | None) -> ParsedOutput:
    stream = parser.stream(tools=tools, prompt=prompt, collect=True, spans=True, seed="untemplate")
    stream.feed(text)
    stream.finish("stop")
    return stream.result()


def everything(known: Known) -> dict[str, Any]:
    """Return everything as JSON values that are the same in every run: no times, no state of the cache."""
    analysis = None
    if known.analysis is not None:
        analysis = {k: v for k, v in known.analysis.to_dict().items() if k not in ("seconds", "from_cache")}
    found = example(known)
    shown = None
    if found is not None:
        _, prompt, text, parsed = found
        spans = [{"kind": s.kind, "start": s.start, "end": s.end} for s in parsed.spans]
        shown = {"prompt": prompt, "output": text, "message": parsed.message(), "spans": spans}
    return {
        "source": known.source,
        "format": json.loads(known.parser.format.to_json(indent=None)),
        "certificate": None if known.certificate is None else known.certificate.to_dict(),
        "selection": None if known.selection is None else known.selection.to_dict(),
        "quoted_calls": None if (quoted := known.quoted_calls) is None else quoted.to_dict(),
        "analysis": analysis,
        "coverage": _coverage(known),
        "example": shown,
        "not_read_back": known.not_read_back,
        "policy": {f.name: getattr(known.parser.policy, f.name) for f in fields(known.parser.policy)},
    }


def _coverage(known: Known) -> list[dict[str, Any]] | None:
    """Return the lines of the template, and if all branches on each were rendered; ``None`` without a template."""
    if known.certificate is None or known.template is None:
        return None
    missed = known.certificate.traits.unreached_lines
    lines = enumerate(known.template.source.splitlines(), 1)
    return [{"line": number, "rendered": number not in missed, "text": text} for number, text in lines]
