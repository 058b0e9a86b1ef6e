"""``untemplate formats``: list the catalogue, or show one format."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ..terminal import coloured, painted, visible
from .common import UsageError, field, print_json, print_text, table

if TYPE_CHECKING:
    import argparse

    from ..format import Format
    from ..formats import Entry, Kind

__all__ = ["SAMPLES", "SAMPLE_TOOLS", "details", "evidence_word", "markers", "run", "samples"]


def run(arguments: argparse.Namespace) -> None:
    from ..formats import UnknownFormatError

    name: str | None = arguments.name
    kind: Kind | None = arguments.kind
    if arguments.schema:
        from ..format.serialization import json_schema

        print_json(json_schema(), indent=2)
        return
    if name is None:
        _list_formats(kind, as_json=arguments.json)
        return
    try:
        _show_format(name, kind, as_json=arguments.json)
    except UnknownFormatError as error:
        raise UsageError(str(error)) from None


def _list_formats(kind: Kind | None, *, as_json: bool) -> None:
    from ..formats import entries

    found = [entry for entry in entries() if kind in (None, entry.kind)]
    if as_json:
        print_json([_entry(entry) for entry in found], indent=2)
        return
    rows = [_row(entry) for entry in found]
    print_text(table(("NAME", "KIND", "EVIDENCE", "ENGINES", "ALIASES", "MODELS"), rows))


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "aliases": list(entry.aliases),
        "models": list(entry.models),
        "engines": list(entry.engines),
        "evidence": [str(evidence) for evidence in entry.evidence],
        "verified": entry.verified,
    }


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        entry.name,
        entry.kind,
        evidence_word(entry),
        " ".join(entry.engines),
        " ".join(entry.aliases),
        " ".join(entry.models),
    )


def evidence_word(entry: Entry) -> str:
    """Return the kind of the firmest evidence of an entry, or ``none``."""
    if not entry.verified:
        return "none"
    from ..formats.family import EVIDENCE_KINDS

    kinds = {evidence.kind for evidence in entry.evidence}
    return next(kind for kind in EVIDENCE_KINDS if kind in kinds)


def _show_format(name: str, kind: Kind | None, *, as_json: bool) -> None:
    from ..formats import entries, lookup, named

    # ``named`` lists the kinds of a name, and has the better error for an unknown one.
    fmt = named(name) if kind is None else lookup(kind, name).format
    if as_json:
        print_json(json.loads(fmt.to_json()), indent=2)
        return
    found = [e for e in entries() if name in (e.name, *e.aliases) and kind in (None, e.kind)]
    colour = coloured(sys.stdout)
    blocks = [details(entry, colour) for entry in found]
    blocks.append("\n".join(field(*line, colour) for line in markers(fmt)))
    for title, text in samples(fmt):
        blocks.append(painted([(title, "title")], colour=colour) + "\n\n" + visible(text))
    print_text("\n\n".join(blocks))


def details(entry: Entry, colour: bool) -> str:
    head = painted([(entry.name, "name"), (f"  {entry.kind} format", "")], colour=colour)
    lines = [head]
    for label, values in (
        ("aliases", entry.aliases),
        ("models", entry.models),
        ("engines", entry.engines),
        ("evidence", tuple(map(str, entry.evidence))),
    ):
        if values:
            separator = "\n" if label == "evidence" else ", "
            lines.append(field(label, separator.join(values), colour))
    if not entry.verified:
        lines.append(field("verified", "no: there is no reliable source for what these models write", colour))
    return "\n".join(lines)


def markers(fmt: Format) -> Iterator[tuple[str, str]]:
    """Yield the markers of a Format by their meaning."""
    if fmt.turn.start is not None:
        yield "turn", repr(fmt.turn.start.text)
    if fmt.turn.end is not None:
        yield "ends with", repr(fmt.turn.end.text)
    if fmt.reasoning is not None:
        opened = "nothing" if fmt.reasoning.open is None else repr(fmt.reasoning.open.text)
        begins = ", open at the start" if fmt.reasoning.start == "open" else ""
        yield "reasoning", f"{opened} ... {fmt.reasoning.close.text!r}{begins}"
    if fmt.content is not None:
        yield "content", f"{fmt.content.open.text!r} ... {fmt.content.close.text!r}"
    yield "ids", fmt.ids
    if fmt.special_tokens:
        yield "tokens", " ".join(fmt.special_tokens)


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


def samples(fmt: Format) -> Iterator[tuple[str, str]]:
    """Yield (title, text): samples of calls, and of reasoning with an answer, as the format's models write them."""
    from ..render import expressible, render

    for title, message in SAMPLES:
        if expressible(fmt, message, SAMPLE_TOOLS) is None:
            yield title, render(fmt, message)
