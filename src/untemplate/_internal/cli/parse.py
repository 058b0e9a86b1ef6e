"""``untemplate parse``: parse one raw output into a message."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ...errors import FormatError
from ...messages import DeltaMessage
from ..terminal import coloured, painted
from . import common
from .common import UsageError, policy_of, print_json, print_text, read, read_tools, text_of
from .regions import diagnosed, legend, marked, summary
from .which_format import names_format, parser_of

if TYPE_CHECKING:
    import argparse

    from ...messages import Diagnostic, ParsedOutput
    from ...policy import Policy
    from ..output_parser import OutputParser
    from ..saved import Output
    from ..stream import Stream


def run(arguments: argparse.Namespace) -> None:
    policy = policy_of(arguments.policy)
    parser = parser_of(arguments, policy) if arguments.stream or names_format(arguments) else None
    if arguments.html and (arguments.json or not arguments.explain):
        raise UsageError("--html needs --explain, and excludes --json")
    if arguments.prompt == arguments.file == "-":
        raise UsageError("--prompt and FILE cannot both be read from stdin")
    prompt = None if arguments.prompt is None else text_of(read(arguments.prompt, "--prompt"))
    tools = None if arguments.tools is None else read_tools(arguments.tools)
    given = _given(arguments)
    if parser is None:
        given = _whole(given)
        parser = _guessed(given, arguments, policy, tools, prompt)
    if arguments.html:
        _print_page(parser, given, arguments, tools, prompt)
        return
    try:
        stream = parser.stream(
            tools=tools,
            **({"prompt": prompt} | given.output.context(parser.format)),
            collect=not arguments.stream,
            spans=arguments.explain,
            seed="untemplate",
        )
    except ValueError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from None
    with common.noted():
        _print(stream, given, arguments, policy)


def _print(stream: Stream, given: Given, arguments: argparse.Namespace, policy: Policy) -> None:
    if arguments.stream:
        _print_deltas(stream, given)
        return
    raw: list[str] = []
    for piece in given.pieces:
        raw.append(piece)
        stream.feed(piece)
    stream.finish(given.finish_reason or "stop")
    parsed = stream.result()
    if problem := given.output.put_back(parsed):
        raise UsageError(f"{common.name_of(arguments.file)}: {problem}")
    if arguments.json:
        print_json(_everything(parsed, policy, spans=arguments.explain), indent=None)
    elif arguments.explain:
        _print_explained("".join(raw), parsed, assumed=given.finish_reason is None)
    else:
        print_json(_message(parsed, policy), indent=2)
        if parsed.diagnostics:
            _note_diagnostics(parsed.diagnostics)


# -- What is read -------------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """The raw output, in pieces, and the finish reason: of the option or the file, ``None`` if neither has one."""

    pieces: Iterable[str]
    finish_reason: str | None
    output: Output
    """The one in an answer; of others without text and reasoning."""


def _given(arguments: argparse.Namespace) -> Given:
    """Return the raw output that a file is, or that is in an API's answer. A stream is read as it arrives."""
    from ..saved import Output, answer_in, may_be_answer, rows_in

    arriving = _arriving(arguments.file)
    first = next(arriving, "")
    reason = arguments.finish_reason
    if arguments.raw or (arguments.stream and not may_be_answer(first)):
        return Given(_pieces(chain([first], arriving), arguments.split), reason, Output(""))
    text = first + "".join(arriving)
    answer = answer_in(text)
    if answer is not None:
        output = common.output_of(answer, arguments.file)
        return Given(_pieces(iter([output.text]), arguments.split), reason or output.finish_reason, output)
    if text.startswith("{") and (rows := rows_in(text)):
        common.note(
            f"{common.name_of(arguments.file)} has {len(rows)} rows as JSON, and is parsed as one output; "
            "untemplate batch parses each"
        )
    return Given(_pieces(iter([text]), arguments.split), reason, Output(""))


def _whole(given: Given) -> Given:
    """Return an output whose pieces can be read again."""
    return given._replace(pieces=list(given.pieces))


def _guessed(
    given: Given, arguments: argparse.Namespace, policy: Policy, tools: Any, prompt: str | None
) -> OutputParser:
    """Return the parser of the format that an output has, and report it.

    Raises:
        UsageError: it is not clear which one.
    """
    from ..guess import Sample, guess_many, is_clear

    try:
        with common.quiet():
            sample = Sample("".join(given.pieces), tools, prompt, given.finish_reason or "stop")
            ranked = guess_many([sample])
    except FormatError:  # of another package
        raise
    except ValueError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from None
    if is_clear(ranked):
        arguments.format = ranked[0].format
        common.note(f"--format {arguments.format}, guessed from the output (untemplate guess shows others)")
    elif not names_format(arguments):
        empty = "" if sample.text.strip() else "is empty, and "
        raise UsageError(
            f"the output {empty}does not show its format: name it by --format NAME (`untemplate guess FILE` ranks "
            "them), or --template, --model or --enforce-parser"
        )
    return parser_of(arguments, policy)


def _pieces(arriving: Iterator[str], size: int | None) -> Iterator[str]:
    """Yield the raw output as it arrives, or in pieces of ``size`` characters."""
    held = ""
    for text in arriving:
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


def _print_deltas(stream: Stream, given: Given) -> None:
    if given.output.reasoning:
        print_json(stream.dump(DeltaMessage(reasoning=given.output.reasoning)), indent=None)
    for piece in given.pieces:
        if deltas := stream.feed(piece):
            for delta in deltas:
                print_json(stream.dump(delta), indent=None)
            sys.stdout.flush()
    for delta in stream.finish(given.finish_reason or "stop"):
        print_json(stream.dump(delta), indent=None)


def _message(parsed: ParsedOutput, policy: Policy) -> dict[str, Any]:
    return parsed.message(reasoning_field=policy.reasoning_field)


def _everything(parsed: ParsedOutput, policy: Policy, *, spans: bool) -> dict[str, Any]:
    result = {
        "message": _message(parsed, policy),
        "finish_reason": parsed.finish_reason,
        "statuses": [call.status for call in parsed.tool_calls],
        "reasons": [call.reason for call in parsed.tool_calls],
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


def _print_page(
    parser: OutputParser, given: Given, arguments: argparse.Namespace, tools: Any, prompt: str | None
) -> None:
    """Print the inspector's view of the output as one file."""
    from ..inspector import MAX_TEXT, Case, alone, one_file

    text = "".join(given.pieces)
    if len(text) > MAX_TEXT:
        raise UsageError(f"{arguments.file}: --html shows at most {MAX_TEXT} characters, and it has {len(text)}")
    name = parser.format.name
    case = Case(text=text, format=name, tools=tools, prompt=prompt, finish_reason=given.finish_reason or "stop")
    try:
        with common.noted():
            print_text(one_file(alone(parser, case)))
    except ValueError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from None


def _print_explained(raw: str, parsed: ParsedOutput, *, assumed: bool) -> None:
    colour = coloured(sys.stdout)
    lines = [marked(raw, parsed.spans, colour), ""]
    if colour:
        lines += [legend(), ""]
    lines += diagnosed(raw, parsed.diagnostics, colour)
    lines.append("")
    lines.append(painted([("result", "title"), ("  " + summary(parsed, assumed=assumed), "")], colour=colour))
    print_text("\n".join(lines))
