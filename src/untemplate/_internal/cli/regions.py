"""Show a raw output with its regions marked and its diagnostics, for ``parse --explain`` and ``explain``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..terminal import encodable, paint, painted, visible

if TYPE_CHECKING:
    from ...messages import Diagnostic, ParsedOutput, Span, ToolCall

KINDS: Final = ("reasoning", "content", "name", "id", "arguments", "markup", "dropped")
_SILENT: Final = ("markup", "dropped")
_GUESS: Final = "`untemplate guess FILE` ranks the formats for an output"
_CUT: Final = ("incomplete_", "unclosed_")
"""Beginnings of the codes of outputs that end inside something."""


def marked(raw: str, spans: Sequence[Span], colour: bool) -> str:
    """Mark the regions of the raw text, in colour or with bracketed labels.

    Newlines that are not part of the message are made visible.
    """
    newline = _newline() + "\n"
    pieces: list[str] = []
    for span in spans:
        text = visible(raw[span.start : span.end])
        if span.kind in _SILENT:
            text = text.replace("\n", newline)
        pieces.append(paint(text, span.kind) if colour else f"[{span.kind}]{text}")
    return "".join(pieces)


def legend() -> str:
    """Explain the colours."""
    return f"{painted([('regions', 'title')], colour=True)}  " + "  ".join(paint(k, k) for k in KINDS)


def _newline() -> str:
    return "↵" if encodable("↵", sys.stdout) else "\\n"


def diagnosed(raw: str, diagnostics: Sequence[Diagnostic], colour: bool) -> list[str]:
    """Format the diagnostics, each with its place, and the first of each code and advice with the advice."""
    if not diagnostics:
        return [painted([("diagnostics", "title"), ("  none", "")], colour=colour)]
    from ..inspector.advice import advice_for  # the inspector's pages take time to load

    shown: set[tuple[str, str]] = set()
    lines = [painted([("diagnostics", "title")], colour=colour)]
    for d in diagnostics:
        line = raw.count("\n", 0, d.start) + 1
        column = d.start - raw.rfind("\n", 0, d.start)
        place = f" at {d.start}:{d.end} (line {line}, column {column}): "
        lines.append(painted([("  " + d.code, "error"), (place, "faint"), (d.message, "")], colour=colour))
        if d.text:
            lines.append("    | " + visible(d.text).replace("\n", _newline()))
        hint = _GUESS if d.code == "foreign_marker" else advice_for(d, raw)
        if (d.code, hint) not in shown:
            shown.add((d.code, hint))
            lines.append("    hint: " + hint)
    return lines


def summary(parsed: ParsedOutput, *, assumed: bool = False) -> str:
    """Summarise as ``reasoning, content, 2 calls: f (ok), g (repaired: quotes); finish_reason tool_calls``.

    Args:
        assumed: True if the engine's finish reason is not known; shown of an output that was cut.
    """
    parts = [name for name, text in (("reasoning", parsed.reasoning_content), ("content", parsed.content)) if text]
    if calls := parsed.tool_calls:
        listed = ", ".join(map(_summary_of_call, calls))
        parts.append(f"{len(calls)} call{'s'[: len(calls) > 1]}: {listed}")
    cut = any(diagnostic.code.startswith(_CUT) for diagnostic in parsed.diagnostics)
    said = " (assumed; --finish-reason)" if assumed and cut and parsed.finish_reason == "stop" else ""
    return f"{', '.join(parts) or 'nothing'}; finish_reason {visible(parsed.finish_reason)}{said}"


def _summary_of_call(call: ToolCall) -> str:
    """Summarise as ``f (repaired: quotes)``: the status, the reason why it must not run, the repairs."""
    known = [call.status, visible(call.reason or ""), ", ".join(call.repairs)]
    return f"{visible(call.function.name)} ({': '.join(filter(None, known))})"
