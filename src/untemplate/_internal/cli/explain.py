"""``untemplate explain``: show what a model or a template writes, and the evidence."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from ..inspector.known import SAMPLE_TOOLS, Known, everything, example
from ..suggestions import brief
from ..terminal import coloured, painted, visible, width
from . import common
from .common import UsageError, field, policy_of, print_json, print_text, quiet, read, read_tools
from .regions import legend, marked, summary

if TYPE_CHECKING:
    import argparse

    from ...analysis import Analysis, Certificate, Traits
    from ...format import Format
    from ...grammar import Grammar
    from ...messages import ParsedOutput
    from ...policy import Policy
    from ...selection import Selection, Tried
    from ..output_parser import OutputParser


def run(arguments: argparse.Namespace) -> None:
    policy = policy_of(arguments.policy)
    source: str = arguments.source
    if not source:
        raise UsageError("MODEL|TEMPLATE is empty")
    name = arguments.enforce_parser
    fmt = _format_of(source)
    known = _found(source, name, policy) if fmt is None else _named(source, fmt, name, policy)
    if arguments.grammar is None and (arguments.strict or arguments.tool_choice):
        raise UsageError(f"{'--strict' if arguments.strict else '--tool-choice'} needs --grammar")
    if arguments.parser and arguments.json:
        raise UsageError("--json and --parser exclude each other")
    if arguments.parser:
        print_text(_program(known.parser.format))
    if arguments.grammar is not None:
        _print_grammar(known.parser, arguments)
    elif arguments.parser:
        return
    elif arguments.json:
        print_json(everything(known), indent=2 if sys.stdout.isatty() else None)
    else:
        verbose = arguments.verbose or os.environ.get("UNTEMPLATE_LOG", "").lower() == "debug"
        print_text("\n\n".join(_blocks(known, coloured(sys.stdout), verbose)))


# -- What it is ---------------------------------------------------------------------------------------------------


def _format_of(source: str) -> Format | None:
    """Return the Format of a name or of a file with a Format; ``None`` for a model or a template."""
    from ...format import FormatError
    from ...formats import IncompatibleFormatsError, UnknownFormatError, named

    try:
        return named(source, files=_has_format(source))
    except UnknownFormatError:
        return None
    except (FormatError, IncompatibleFormatsError) as error:
        raise UsageError(str(error)) from None


def _has_format(source: str) -> bool:
    """True if this is a JSON file with a Format, and not a configuration file of a model."""
    if not source.endswith(".json") or not os.path.isfile(source):
        return False
    try:
        document = json.loads(read(source, "MODEL|TEMPLATE"))
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "name" in document and not {"chat_template", "model_type"} & {*document}


def _parser(fmt: Format, policy: Policy) -> OutputParser:
    from ..output_parser import OutputParser

    try:
        return OutputParser.from_format(fmt, policy=policy)
    except ValueError as error:  # an invalid environment variable
        raise UsageError(str(error)) from None


def _named(name: str, fmt: Format, enforced: str | None, policy: Policy) -> Known:
    if enforced is not None:
        raise UsageError(
            f"--enforce-parser: {name!r} is a format itself; give a model or a template to measure it against"
        )
    return Known(name, _parser(fmt, policy), None, None, None, None, None)


def _found(source: str, enforced: str | None, policy: Policy) -> Known:
    """Read and analyse a model or a template, and select its Format."""
    from ...analysis import AnalysisError, analyze, prepare
    from ...formats import named
    from ...selection import select
    from ...templates import ChatTemplate, TemplateError

    if enforced is not None:
        try:
            named(enforced, files=True)
        except ValueError as error:
            raise UsageError(f"--enforce-parser: {brief(error)}") from None
    template, prepared, analysis = None, None, None
    problem = ""
    try:
        template = ChatTemplate(_stdin_text(), name="-") if source == "-" else ChatTemplate.load(source)
        prepared = prepare(template)
        analysis = analyze(template, cache=False, prepared=prepared)
    except TemplateError as error:
        problem = str(error)
    except AnalysisError as error:
        problem = f"{source}: {error}"
    if problem and (os.path.isfile(source) or not _may_be_model(source)):
        raise UsageError(problem + _nearest(source))
    with quiet():
        selection = select(_model(source), template=template, enforce=enforced)
    if problem and selection.source == "passthrough":
        raise UsageError(problem + _nearest(source))
    certificate = selection.certificate
    if certificate is None and prepared is not None:
        certificate = prepared.certify(selection.format)
    return Known(source, _parser(selection.format, policy), selection, template, prepared, analysis, certificate)


def _stdin_text() -> str:
    return read("-", "TEMPLATE").decode("utf-8", "replace")


def _may_be_model(source: str) -> bool:
    """True if something may be known without a template: a folder with a model type, or an id that matches a family."""
    return os.path.isdir(source) or source.count("/") == 1


def _nearest(source: str) -> str:
    """Suggest similar names of the catalogue."""
    from ...formats import UnknownFormatError, lookup

    if os.path.exists(source) or "/" in source or "{" in source:
        return ""
    try:
        lookup("tool", source)
    except UnknownFormatError as error:
        if error.suggestions:
            return f"; did you mean the format {' or '.join(map(repr, error.suggestions))}?"
    return "; `untemplate formats` lists the formats"


def _model(source: str) -> str | None:
    """Return the model to select for: an id or folder itself, the folder of a configuration file, nothing for a
    template."""
    if not os.path.isfile(source):
        return None if source == "-" else source
    if source.endswith(".gguf"):
        return source
    if os.path.basename(source) in ("tokenizer_config.json", "chat_template.json", "chat_template.jinja"):
        folder = os.path.dirname(source) or "."
        return folder if os.path.isfile(os.path.join(folder, "config.json")) else None
    return None


# -- As text ------------------------------------------------------------------------------------------------------


def _blocks(known: Known, colour: bool, verbose: bool) -> Iterator[str]:
    yield _head(known, colour)
    if known.selection is None:
        yield from _catalogue(known, colour)
    if known.analysis is not None:
        yield _analysis(known.analysis, colour)
        if verbose:
            yield _comparisons(known.analysis, colour)
    if known.certificate is not None:
        yield _certified(known.certificate, colour, verbose)
        yield from _traits(known.certificate.traits, colour)
        if known.template is not None:
            yield _coverage(known.certificate.traits, known.template.source, colour, verbose)
    if known.selection is not None:
        yield _choice(known, known.selection, colour)
    turn = example(known)
    if turn is not None:
        yield _shown_example(*turn, colour)
    with quiet():
        lost = known.not_read_back
    if lost is not None:
        yield _read_back(lost, colour)
    yield _policies(known.parser.policy, colour)


def _title(title: str, said: str, colour: bool) -> str:
    return field(title, said, colour, indent=0, size=len(title) + 2, label_style="title")


def _head(known: Known, colour: bool) -> str:
    fmt = known.parser.format
    lines = [painted([(visible(known.source), "name")], colour=colour)]
    if known.template is not None:
        size = f"{len(known.template.source)} characters, sha256 {known.template.sha256[:12]}"
        named = ", ".join(known.template.named)
        lines.append(field("template", size + (f"; also: {named}" if named else ""), colour))
    certificate = known.certificate
    if certificate is None:
        origin = "from a file" if _has_format(known.source) else "of the catalogue"
        verdict = origin if known.selection is None else "no template to measure it against"
    else:
        verdict = "certified" if certificate.certified else "not certified"
    lines.append(field("format", f"{fmt.name}, {verdict}", colour))
    if known.quoted_calls is not None:
        lines.append(field("quoted", str(known.quoted_calls), colour))
    return "\n".join(lines)


def _catalogue(known: Known, colour: bool) -> Iterator[str]:
    from ...formats import entries
    from .formats import details, markers

    for entry in entries():
        if not {entry.name, *entry.aliases}.isdisjoint(known.source.split("+")):
            yield details(entry, colour)
    yield "\n".join(field(*line, colour) for line in markers(known.parser.format))


def _members(analysis: Analysis) -> list[str]:
    """Return the names of the fields in a call that is one JSON object."""
    from ...format import JsonBody

    found = analysis.result
    bodies = [tools.body for tools in analysis.format.tools[:1] if isinstance(tools.body, JsonBody)]
    named = any(not body.name_is_key for body in bodies)
    return list(filter(None, (*(found.name_field, found.args_field) * named, found.id_field)))


def _analysis(analysis: Analysis, colour: bool) -> str:
    found = analysis.result
    calls = "none"
    if found.supports_tools:
        calls = ", ".join(filter(None, (found.variant, f"arguments {found.arguments}")))
        keys = _members(analysis)
        calls += f", members {' '.join(keys)}" if keys else ""
        calls += "" if found.supports_parallel_calls else ", one at a time"
        calls += ", content never null" if found.requires_nonnull_content else ""
    lines = [_title("found", f"by {len(analysis.log)} comparisons of {analysis.renders} renderings", colour)]
    lines += [
        field(label, text, colour, size=20)
        for label, text in (("reasoning", found.reasoning), ("content", found.content), ("calls", calls))
    ]
    lines += [field(name, repr(text), colour, size=20) for name, text in found.markers.to_dict().items()]
    if found.preserved_tokens:
        lines.append(field("tokens", " ".join(found.preserved_tokens), colour, size=20))
    return "\n".join(lines)


def _comparisons(analysis: Analysis, colour: bool) -> str:
    lines = [_title("comparisons", str(len(analysis.log)), colour)]
    first: dict[str, int] = {}
    for i, line in enumerate(analysis.log, 1):
        same = first.setdefault(line, i)
        lines.append(field(str(i), visible(line) if same == i else f"as {same}", colour, size=4))
    lines.append(_title("hypotheses", "measured last, best first", colour))
    for guess in analysis.hypotheses:
        sources = ", ".join(guess.sources)
        lines.append(field(f"{guess.score:.3f}", f"{guess.variant or 'no calls'} ({sources})", colour, size=7))
    return "\n".join(lines)


_FAILURES: Final = 3
_LONG: Final = 240
"""Most failed checks to show without ``-v``, and most characters of each."""
_COVERAGE: Final = "; ! was never rendered, -v shows the template"
_MISSED: Final = 12
_SHORT: Final = 80
"""Most places of the template that were never rendered to show without ``-v``, and most characters of each."""
_CAME_BACK: Final = {
    "yes": ("yes", "yes"),
    "no": ("no", "-"),
    "failed": ("yes", "no"),
    "cannot say": ("cannot say", "-"),
}


def _certified(certificate: Certificate, colour: bool, verbose: bool) -> str:
    table = certificate.capabilities
    written = sum(v in ("yes", "failed") for v in table.values())
    back = sum(v == "yes" for v in table.values())
    said = f"{back} of the {written} abilities of the template parse back ({certificate.checks} checks)"
    lines = [_title("certificate", said, colour)]
    size = max(map(len, table), default=0) + 2
    lines.append(painted([(f"  {'':{size}}template   parsed back", "faint")], colour=colour))
    for name, value in table.items():
        can, came = _CAME_BACK[value]
        style = {"no": "faint", "failed": "error"}.get(value, "")
        lines.append(painted([(f"  {name:<{size}}{can:<11}{came}".rstrip(), style)], colour=colour))
    shown = certificate.failed if verbose else certificate.failed[:_FAILURES]
    for failure in shown:
        problem, output = visible(failure.problem).replace("\n", "\\n"), visible(failure.output)
        if not verbose:
            problem, output = _shortened(problem), _shortened(output)
        lines.append(field("failed", f"{failure.check}: {problem}", colour, size=8, style="error"))
        lines += ["    | " + line for line in output.split("\n")]
    if rest := len(certificate.failed) - len(shown):
        lines.append(field("failed", f"{rest} more checks; -v shows them", colour, size=8, style="error"))
    return "\n".join(lines)


def _traits(traits: Traits, colour: bool) -> Iterator[str]:
    """Show what the template is good for."""
    appends = (
        "longer conversations only append"
        if not traits.prefix_breaks
        else "earlier text changes as a conversation continues"
    )
    lines = [_title("history", appends, colour)]
    for found in traits.prefix_breaks:
        where = f"{found.message}{f' ({found.settings})' if found.settings else ''}, {found.step} appended"
        lines += [field(where, "", colour), field("was", repr(found.was), colour, indent=4)]
        lines.append(field("becomes", repr(found.becomes), colour, indent=4))
    lines += [field("dropped", str(part), colour) for part in traits.dropped]
    yield "\n".join(lines)
    if traits.maskable:
        yield _title("training", "{% generation %} marks the assistant's tokens", colour)
    if traits.remarks:
        lines = [_title("remarks", "on the template; parser.history(messages) meets its demands", colour)]
        size = max(len(remark.code) for remark in traits.remarks) + 2
        lines += [field(remark.code, visible(str(remark)), colour, size=size) for remark in traits.remarks]
        yield "\n".join(lines)


def _coverage(traits: Traits, source: str, colour: bool, verbose: bool) -> str:
    """Show how much of the template was rendered. A ``!`` marks lines with a branch that was never rendered: with
    ``verbose`` all lines are shown, else the first of each such place."""
    missed = set(traits.unreached_lines)
    numbered = list(enumerate(source.splitlines(), 1))
    reached = f"{traits.branches - len(traits.unreached)} of {traits.branches} branches were rendered"
    if verbose:
        shown, said = numbered, "; ! was never rendered"
    else:
        shown, said = [one for one in numbered if one[0] in missed and one[0] - 1 not in missed], _COVERAGE
    lines = [_title("coverage", reached + said * bool(missed), colour)]
    for number, line in shown if verbose else shown[:_MISSED]:
        text = visible(line) if verbose else _shortened(visible(line.strip()), _SHORT)
        lines.append(field(f"{' !'[number in missed]} {number:4}", text, colour, size=8))
    return "\n".join(lines)


def _shortened(text: str, most: int = _LONG) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def _choice(known: Known, selection: Selection, colour: bool) -> str:
    chosen = selection.chosen
    lines = [_title("choice", _tried(chosen), colour)]
    lines.append(field("because", visible(chosen.remark), colour, size=11))
    for other in selection.tried:
        if other is not chosen and other is not selection.runner_up:
            lines.append(field("tried", f"{_tried(other)}: {visible(other.remark)}", colour, size=11))
    second = selection.runner_up
    if second is not None:
        lines.append(field("runner-up", f"{_tried(second)}: {visible(second.remark)}", colour, size=11))
    elif known.certificate is not None and known.certificate.runner_up:
        lines.append(
            field("runner-up", f"another reading of the template: {known.certificate.runner_up}", colour, size=11)
        )
    lines += [field("note", visible(note), colour, size=11) for note in selection.notes]
    lines += _missing_end(known, colour)
    if selection.warning and known.template is not None:
        lines.append(field("warning", visible(selection.warning), colour, size=11, style="error"))
    return "\n".join(lines)


def _missing_end(known: Known, colour: bool) -> Iterator[str]:
    end = None if known.analysis is None else known.analysis.format.turn.end
    if end is not None and known.parser.format.turn.end is None:
        said = f"turn.end: the template writes {end.text!r} after each turn, which becomes content"
        yield field("missing", visible(said), colour, size=11, style="error")


def _tried(tried: Tried) -> str:
    score = "" if tried.certificate is None else f", score {tried.score:.3f}"
    return f"{tried.source} {tried.name}{score}"


# -- An example ---------------------------------------------------------------------------------------------------


def _shown_example(who: str, prompt: str, text: str, parsed: ParsedOutput, colour: bool) -> str:
    lines = [_title("example", who, colour)]
    if prompt:
        tail = prompt[-60:]
        lines.append(field("prompt", f"{'...' if len(tail) < len(prompt) else ''}{tail!r}", colour, size=8))
    lines += ["", marked(text, parsed.spans, colour), ""]
    if colour:
        lines += [legend()]
    lines.append(_title("result", summary(parsed), colour))
    return "\n".join(lines)


def _read_back(lost: list[str], colour: bool) -> str:
    said = (
        "not all samples, so outputs of the model will be misread" if lost else "text, reasoning and calls, as written"
    )
    lines = [_title("read back", said, colour)]
    return "\n".join(lines + [field("lost", visible(one), colour, size=8, style="error") for one in lost])


# -- Policies -----------------------------------------------------------------------------------------------------


def _policies(policy: Policy, colour: bool) -> str:
    lines = [_title("policies", "* differs from the default; --policy NAME=VALUE sets one", colour)]
    for name, value, default, values in _settings(policy):
        changed = value != default
        others = " | ".join(values) if values else f"default {default}"
        line = f"{'*' if changed else ' '} {name:<20}{value:<12}"
        lines.append(painted([(line, "name" if changed else ""), (f" {others}", "faint")], colour=colour))
    return "\n".join(lines)


def _settings(policy: Policy) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield (name, value, default, valid values) of each policy, as ``--policy`` spells them, the default first."""
    from ...policy import Policy as Settings

    defaults = Settings()
    hints = get_type_hints(Settings)
    for f in fields(policy):
        default = getattr(defaults, f.name)
        if f.name == "strict":  # already resolved against the environment
            yield f.name, _word(bool(policy.strict)), "false", ("false", "true")
        else:
            yield f.name, _word(getattr(policy, f.name)), _word(default), tuple(map(_word, get_args(hints[f.name])))


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- As data, program and grammar ---------------------------------------------------------------------------------


def _program(fmt: Format) -> str:
    from ..machine.compiler import compile_format
    from .program import shown

    colour = coloured(sys.stdout)
    rows = [(visible(label), visible(text)) for label, text in shown(compile_format(fmt))]
    blocks: list[list[tuple[str, str]]] = []
    for row in rows:
        if not row[1]:
            blocks.append([])
        blocks[-1].append(row)
    return "\n\n".join("\n".join(_rows(block, colour)) for block in blocks)


def _rows(block: Iterable[tuple[str, str]], colour: bool) -> Iterator[str]:
    (title, _), *rows = block
    yield painted([(title, "title")], colour=colour)
    size = max((width(label) for label, _ in rows if width(label) <= 28), default=8) + 2
    for label, text in rows:
        if width(label) > 28:
            yield painted([("  " + label, "faint")], colour=colour)
            label = ""
        yield field(label, text, colour, size=size)


def _grammar(grammar: Grammar) -> dict[str, Any]:
    """Return a grammar, and the request fields for each server that takes it."""
    from ...grammar import SERVERS

    shown = {f.name: getattr(grammar, f.name) for f in fields(grammar) if f.name != "json"}
    shown["triggers"] = [{f.name: getattr(t, f.name) for f in fields(t)} for t in grammar.triggers]
    takes = [server for server, dialects in SERVERS.items() if grammar.dialect in dialects]
    return {**shown, "requests": {server: grammar.request(server) for server in takes}}


def _print_grammar(parser: OutputParser, arguments: argparse.Namespace) -> None:
    tools = SAMPLE_TOOLS if arguments.tools is None else read_tools(arguments.tools)
    choice = arguments.tool_choice or "auto"
    if choice not in ("auto", "required", "none"):
        choice = {"type": "function", "name": choice}
    try:
        grammar = parser.grammar(tools, choice, strict=arguments.strict, dialect=arguments.grammar)
    except ImportError as error:
        raise UsageError(f"--grammar: grammars are not available: {error}") from None
    except (ValueError, TypeError) as error:
        raise UsageError(f"--grammar: {error}") from None
    if arguments.json:
        print_json(_grammar(grammar), indent=2 if sys.stdout.isatty() else None)
        return
    print_text(visible(grammar.text.rstrip("\n")))
    for text in grammar.notes:
        common.note(f"note: {text}")
    if grammar.lazy:
        triggers = " ".join(repr(t.value) for t in grammar.triggers)
        common.note(f"note: lazy grammar, active from the first trigger: {triggers}")
