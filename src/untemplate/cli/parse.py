"""``untemplate parse``: parse one raw output into a message."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from ..terminal import coloured, painted
from . import common
from .common import UsageError, policy_of, print_json, print_text, quiet, read, read_tools, text_of
from .regions import diagnosed, legend, marked, summary

if TYPE_CHECKING:
    import argparse

    from ..format import Format
    from ..messages import Diagnostic, ParsedOutput
    from ..output_parser import OutputParser
    from ..policy import Policy
    from ..stream import Stream

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> None:
    policy = policy_of(arguments.policy)
    parser = _parser(arguments, policy)
    if arguments.prompt == arguments.file == "-":
        raise UsageError("--prompt and FILE cannot both be read from stdin")
    prompt = None if arguments.prompt is None else text_of(read(arguments.prompt, "--prompt"))
    tools = None if arguments.tools is None else read_tools(arguments.tools)
    try:
        stream = parser.stream(
            tools=tools,
            prompt=prompt,
            collect=not arguments.stream,
            spans=arguments.explain,
            seed="untemplate",
        )
    except ValueError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from None
    pieces = _pieces(arguments.file, arguments.split)
    if arguments.stream:
        _print_deltas(stream, pieces, arguments.finish_reason)
        return
    raw: list[str] = []
    for piece in pieces:
        raw.append(piece)
        stream.feed(piece)
    stream.finish(arguments.finish_reason)
    parsed = stream.result()
    if arguments.json:
        print_json(_everything(parsed, policy, spans=arguments.explain), indent=None)
    elif arguments.explain:
        _print_explained("".join(raw), parsed)
    else:
        print_json(_message(parsed, policy), indent=2)
        if parsed.diagnostics:
            _note_diagnostics(parsed.diagnostics)


# -- Which parser -------------------------------------------------------------------------------------------------


def _parser(arguments: argparse.Namespace, policy: Policy) -> OutputParser:
    from ..format import FormatError
    from ..output_parser import OutputParser

    enforced = arguments.enforce_parser
    given = [o for o in ("format", "template", "model", "enforce_parser") if getattr(arguments, o) is not None]
    if not given:
        raise UsageError("parse needs one of: --format, --template, --model, --enforce-parser")
    if "format" in given and len(given) > 1:
        other = given[1].replace("_", "-")
        raise UsageError(f"--format and --{other} exclude each other")
    if arguments.reasoning is not None and "format" not in given and enforced is None:
        raise UsageError("--reasoning needs --format or --enforce-parser")
    try:
        if arguments.format is not None:
            return OutputParser.from_format(_format(arguments.format, arguments.reasoning), policy=policy)
        if enforced is None and arguments.model is None:
            return _from_template(arguments.template, policy)
        return _selected(arguments, policy)
    except FormatError as error:
        raise UsageError(f"--format {arguments.format}: {error}") from None
    except ValueError as error:  # an unknown name, two formats that cannot be combined, an invalid environment variable
        raise UsageError(str(error)) from None


def _format(name: str, reasoning: str | None) -> Format:
    from ..format import Format
    from ..formats import lookup, merge, named

    if not name.endswith(".json") and os.sep not in name:
        return named(name, reasoning=reasoning)
    fmt = Format.from_json(read(name, "--format"))
    return fmt if reasoning is None else merge(lookup("reasoning", reasoning).format, fmt)


def _from_template(path: str, policy: Policy) -> OutputParser:
    from ..analysis import AnalysisError
    from ..output_parser import OutputParser
    from ..templates import TemplateError

    try:
        parser = OutputParser.from_template(path, policy=policy)
    except TemplateError as error:
        raise UsageError(f"--template {error}") from None
    except AnalysisError as error:
        raise UsageError(f"--template {path}: {error}") from None
    certificate = parser.certificate
    if certificate is not None and not certificate.certified:
        failed = ", ".join(k for k, v in certificate.capabilities.items() if v == "failed")
        common.note(
            f"warning: the format inferred from {path} is not certified ({failed}); untemplate explain shows why"
        )
    return parser


def _selected(arguments: argparse.Namespace, policy: Policy) -> OutputParser:
    from ..formats import IncompatibleFormatsError, UnknownFormatError
    from ..output_parser import OutputParser
    from ..selection import select

    try:
        with quiet():
            selection = select(
                arguments.model,
                template=arguments.template,
                enforce=arguments.enforce_parser,
                reasoning=arguments.reasoning,
            )
    except (UnknownFormatError, IncompatibleFormatsError) as error:
        raise UsageError(f"--enforce-parser: {error}") from None
    if selection.warning:
        common.note("warning: " + "; ".join((selection.warning, *selection.notes)))
    return OutputParser.from_format(selection.format, policy=policy)


# -- What is read -------------------------------------------------------------------------------------------------


def _pieces(path: str, size: int | None) -> Iterator[str]:
    """Yield the raw output as it arrives, or in pieces of ``size`` characters."""
    held = ""
    for text in _arriving(path):
        if size is None:
            yield text
            continue
        held += text
        end = len(held) - len(held) % size
        for start in range(0, end, size):
            yield held[start : start + size]
        held = held[end:]
    if held:
        yield held


def _arriving(path: str) -> Iterator[str]:
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    try:
        if path == "-":
            stdin = common.stdin()
            if stdin.isatty():
                print("reading the output from the terminal; Ctrl-D ends it", file=sys.stderr)
            yield from map(decode, _chunks(stdin))
        else:
            with open(path, "rb") as file:
                yield from map(decode, _chunks(file))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {common.reason(error)}") from None
    if rest := decode(b"", True):
        yield rest


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """Yield what has arrived, without waiting for more."""
    read = getattr(file, "read1", file.read)
    while data := read(1 << 16):
        yield data


# -- What is printed ----------------------------------------------------------------------------------------------


def _print_deltas(stream: Stream, pieces: Iterator[str], finish_reason: str) -> None:
    for piece in pieces:
        if deltas := stream.feed(piece):
            for delta in deltas:
                print_json(stream.dump(delta), indent=None)
            sys.stdout.flush()
    for delta in stream.finish(finish_reason):
        print_json(stream.dump(delta), indent=None)


def _message(parsed: ParsedOutput, policy: Policy) -> dict[str, Any]:
    return parsed.message(reasoning_field=policy.reasoning_field)


def _everything(parsed: ParsedOutput, policy: Policy, *, spans: bool) -> dict[str, Any]:
    result = {
        "message": _message(parsed, policy),
        "finish_reason": parsed.finish_reason,
        "statuses": [call.status for call in parsed.tool_calls],
        "repairs": [call.repairs for call in parsed.tool_calls],
        "diagnostics": [diagnostic.model_dump() for diagnostic in parsed.diagnostics],
    }
    if spans:
        result["spans"] = [{"kind": span.kind, "start": span.start, "end": span.end} for span in parsed.spans]
    return result


def _note_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Point to the diagnostics on stderr."""
    codes = ", ".join(dict.fromkeys(diagnostic.code for diagnostic in diagnostics))
    count = len(diagnostics)
    common.note(f"{count} diagnostic{'s'[: count > 1]} ({codes}); --explain shows where")


def _print_explained(raw: str, parsed: ParsedOutput) -> None:
    colour = coloured(sys.stdout)
    lines = [marked(raw, parsed.spans, colour), ""]
    if colour:
        lines += [legend(), ""]
    lines += diagnosed(raw, parsed.diagnostics, colour)
    lines.append("")
    lines.append(painted([("result", "title"), ("  " + summary(parsed), "")], colour=colour))
    print_text("\n".join(lines))
