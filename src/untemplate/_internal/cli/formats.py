"""``untemplate formats``: list the catalogue, or show one format, or those for a model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..inspector.known import SAMPLE_TOOLS, SAMPLES
from ..terminal import coloured, painted, visible
from .common import UsageError, field, noted, print_json, print_text, quiet, table

if TYPE_CHECKING:
    import argparse

    from ...format import Format
    from ...formats import Entry, Kind
    from ...selection import Selection


def run(arguments: argparse.Namespace) -> None:
    from ...formats import UnknownFormatError, names

    with noted():
        names()  # asks other packages for theirs
    name: str | None = arguments.name
    kind: Kind | None = arguments.kind
    if arguments.schema:
        from ...format._serialization import json_schema

        print_json(json_schema(), indent=2)
        return
    if name is None:
        _list_formats(kind, as_json=arguments.json)
        return
    try:
        _show_format(name, kind, as_json=arguments.json)
    except UnknownFormatError as error:
        if kind is None and _show_model(name, as_json=arguments.json):
            return
        if kind is None and "/" in name:
            raise UsageError(f"{name}: {_why_not(name)}") from None
        raise UsageError(error.short) from None
    except ValueError as error:  # a file that cannot be read, two formats that cannot be combined
        raise UsageError(str(error)) from None


def _why_not(model: str) -> str:
    """Return why a hub id or a path shows no format."""
    from ..model_files import looks_like_path

    is_here = os.path.exists(model)
    if not is_here and looks_like_path(model):
        return "no such file or folder"
    missing = "" if is_here else "no such file or folder, and "
    whose = "its chat template" if is_here else "the chat template of a hub id"
    return f"{missing}no entry of the catalogue matches; `untemplate explain {model}` reads {whose}"


def _list_formats(kind: Kind | None, *, as_json: bool) -> None:
    from ...formats import entries

    found = [entry for entry in entries() if kind in (None, entry.kind)]
    if as_json:
        print_json([_entry(entry) for entry in found], indent=2)
        return
    rows = [_row(model, entry) for entry in found for model in entry.models or ("-",)]
    rows.sort(key=lambda row: row[0].lower())
    print_text(table(("MODEL", "NAME", "KIND", "EVIDENCE", "ENGINES", "ALIASES"), rows))


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


def _row(model: str, entry: Entry) -> tuple[str, ...]:
    return (
        model,
        entry.name,
        entry.kind,
        evidence_word(entry),
        " ".join(entry.engines),
        " ".join(entry.aliases),
    )


def evidence_word(entry: Entry) -> str:
    """Return the kind of the firmest evidence of an entry, or ``none``."""
    if not entry.verified:
        return "none"
    from ...formats._family import EVIDENCE_KINDS

    kinds = {evidence.kind for evidence in entry.evidence}
    return next((kind for kind in EVIDENCE_KINDS if kind in kinds), "none")


def _show_format(name: str, kind: Kind | None, *, as_json: bool) -> None:
    from ...formats import entries, lookup, named
    from ..backends.quotations import quoted_calls

    # ``named`` lists the kinds of a name, and has the better error for an unknown one.
    # A slash is in the ids of models as well.
    files = os.sep not in name or name.endswith(".json") or os.path.isfile(name)
    fmt = named(name, files=files) if kind is None else lookup(kind, name).format
    if as_json:
        print_json(json.loads(fmt.to_json()), indent=2)
        return
    found = [e for e in entries() if {e.name, *e.aliases} & {*name.split("+")} and kind in (None, e.kind)]
    colour = coloured(sys.stdout)
    blocks = [details(entry, colour) for entry in found]
    blocks.append("\n".join(field(*line, colour) for line in markers(fmt)))
    quoted = quoted_calls(fmt)
    if quoted is not None:
        blocks.append(field("quoted", str(quoted), colour))
    for title, text in samples(fmt):
        blocks.append(painted([(title, "title")], colour=colour) + "\n\n" + visible(text))
    print_text("\n\n".join(blocks))


def _selected(model: str) -> Selection:
    """Return what would be chosen for a folder or a GGUF file."""
    from ...errors import CheckpointError
    from ...selection import select

    try:
        with quiet():
            return select(model)
    except CheckpointError:
        raise UsageError(f"{model}: neither the folder of a model nor a GGUF file") from None


def _show_model(model: str, *, as_json: bool) -> bool:
    """Print the entries for a hub id, a folder or a model type. Return True if there are any.

    For a folder or a GGUF file the format is the one that it would be parsed with.
    """
    from ...formats import lookup
    from ...formats._registry import KINDS, chosen_name
    from ...formats._suggesting import ranked, suggested
    from ..model_files import model_type_of

    is_here = os.path.exists(model)
    model_type = model_type_of(Path(model)) if is_here else model
    found = [(lookup(kind, row.name), why) for kind in KINDS for row, why in ranked(kind, model, model_type)]
    chosen = None
    if is_here:
        selection = _selected(model)
        chosen = selection.chosen
        usable = {chosen.name: selection.format} if chosen.source != "passthrough" else {}
    else:
        usable = {chosen_name(fmt): fmt for _, fmt, _ in suggested(model, model_type)}
    if not usable:
        return False
    halves = _halves(*next(iter(usable.items())))
    if chosen is not None:
        found = _chosen_first(found, halves, chosen.remark)
    if as_json:
        entries = [{**_entry(entry), "reason": why} for entry, why in found]
        why_chosen = {"chosen": chosen.to_dict()} if chosen else {}
        print_json({"model": model, "formats": [*usable], **why_chosen, "entries": entries}, indent=2)
        return True
    colour = coloured(sys.stdout)
    lines = [field("format", name, colour) for name in usable]
    if chosen is not None:
        lines.append(field("chosen", f"{chosen.source}: {chosen.remark}", colour))
        lines.append(field("use", f"--model {visible(model)}", colour))
    elif len(usable) > 1:
        lines.append(field("chosen", "the first one that the model's chat template certifies", colour))
    if halves:
        options = {"tool": "--tool-call-parser untemplate", "reasoning": "--reasoning-parser untemplate"}
        lines.append(field("vLLM", " ".join(f"{options[kind]}:{half}" for kind, half in halves.items()), colour))
    print_text("\n".join(lines) + _listed(found))
    return True


def _halves(name: str, fmt: Format) -> dict[Kind, str]:
    """Return the entries of a Format by their kinds; none if one of them is not in the catalogue."""
    from ...formats import names

    calls, _, reasoning = name.partition("+")
    halves: tuple[tuple[Kind, str, object], ...] = (
        ("tool", calls, fmt.tools or fmt.channels),
        ("reasoning", reasoning or calls, fmt.reasoning or fmt.channels),
    )
    given = {kind: half for kind, half, part in halves if part}
    return given if all(half in names(kind) for kind, half in given.items()) else {}


def _chosen_first(found: list[tuple[Entry, str]], halves: dict[Kind, str], remark: str) -> list[tuple[Entry, str]]:
    """Return the entries that are suggested after those of the chosen Format, which may not be among them."""
    from ...formats import lookup

    why = {(entry.kind, entry.name): reason for entry, reason in found}
    first = [lookup(kind, half) for kind, half in halves.items()]
    chosen = [(entry, why.pop((entry.kind, entry.name), remark)) for entry in first]
    return chosen + [(entry, reason) for entry, reason in found if (entry.kind, entry.name) in why]


def _listed(found: list[tuple[Entry, str]]) -> str:
    """Return a table of entries, each with the reason why it is suggested; empty without any."""
    rows = [(entry.name, entry.kind, evidence_word(entry), " ".join(entry.engines), why) for entry, why in found]
    return "\n\n" + table(("NAME", "KIND", "EVIDENCE", "ENGINES", "REASON"), rows) if rows else ""


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


def samples(fmt: Format) -> Iterator[tuple[str, str]]:
    """Yield (title, text): samples of calls, and of reasoning with an answer, as the format's models write them."""
    from ..render import expressible, render

    for title, message in SAMPLES:
        if expressible(fmt, message, SAMPLE_TOOLS) is None:
            yield title, render(fmt, message)
