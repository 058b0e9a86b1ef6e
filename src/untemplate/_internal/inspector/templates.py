"""The view of a template, a model or a format: what was found, how that is known, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...analysis import Traits, analyze, prepare
from ...errors import GrammarError
from ...selection import select
from ...templates import ChatTemplate
from ..output_parser import OutputParser
from .cases import Case
from .known import SAMPLE_TOOLS, Known, everything
from .view import view

_DIALECTS: Final = ("gbnf", "lark", "structural_tag")


def known_of(source: str, parser: OutputParser | None, template: ChatTemplate | None) -> Known:
    """Return everything about a parser, a template, or both.

    Raises:
        TemplateError: the template is broken.
        AnalysisError: it renders no conversation at all.
    """
    if template is None:
        assert parser is not None
        return Known(source, parser, None, None, None, None, None)
    prepared = prepare(template)
    analysis = analyze(template, cache=False, prepared=prepared)
    selection = select(None, template=template)
    parser = parser or OutputParser.from_format(selection.format)
    certificate = prepared.certify(parser.format)
    return Known(source, parser, selection, template, prepared, analysis, certificate)


def template_view(known: Known, tools: Sequence[Any] | None) -> dict[str, Any]:
    """Return everything that the page shows about a template, a model or a format, as JSON values."""
    shown = everything(known)
    turn = shown["example"]
    if turn is not None:
        shown["turn"] = view(known.parser, Case(text=turn["output"], prompt=turn["prompt"] or None))
    shown["lint"] = list(_lint(known))
    shown["grammars"] = (
        {dialect: _grammar(known.parser, tools or SAMPLE_TOOLS, dialect) for dialect in _DIALECTS}
        if known.parser.has_tools
        else {}
    )
    return shown


def _grammar(parser: OutputParser, tools: Sequence[Any], dialect: str) -> str:
    try:
        return parser.grammar(tools, "auto", dialect=dialect).text
    except (GrammarError, ImportError) as error:
        return f"there is no such grammar: {error}"


def _lint(known: Known) -> Iterator[dict[str, str]]:
    """Yield remarks about a template, the worst first."""
    if known.certificate is not None:
        for failure in known.certificate.failed:
            yield {"level": "error", "about": failure.check, "text": failure.problem, "output": failure.output}
    if known.selection is not None and known.selection.warning:
        yield {"level": "warning", "about": "selection", "text": known.selection.warning, "output": ""}
    if known.certificate is not None:
        yield from _remarks(known.certificate.traits)


def _remarks(traits: Traits) -> Iterator[dict[str, str]]:
    for found in traits.prefix_breaks:
        about = f"{found.message}{f' ({found.settings})' if found.settings else ''}, {found.step} appended"
        text = "earlier tokens change, so a prompt cache is lost and a rollout must be encoded again"
        output = f"was {found.was!r}, becomes {found.becomes!r}"
        yield {"level": "warning", "about": about, "text": text, "output": output}
    for part in traits.dropped:
        yield {"level": "warning", "about": "dropped", "text": str(part), "output": ""}
    if traits.unreached:
        text = (
            f"{len(traits.unreached)} of {traits.branches} branches were never rendered: see the lines of the template"
        )
        yield {"level": "note", "about": "coverage", "text": text, "output": ""}
    for remark in traits.remarks:
        yield {"level": "note", "about": remark.code, "text": str(remark), "output": ""}
    if not traits.maskable:
        text = "the template does not mark the assistant's tokens with {% generation %}, which training needs"
        yield {"level": "note", "about": "training", "text": text, "output": ""}
