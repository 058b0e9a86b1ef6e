"""The ``untemplate`` command.

Rules of this module:

* What a model wrote is never an error: it is parsed, and the exit code is 0. What the user asked for may be one: one
  line on stderr that names the option, the file and the field, and exit code 2. Never a traceback.
* What is printed for programs is JSON, and the same in every run: the ids of calls too.
* Nothing is imported before it is needed: ``--version`` and ``--help`` load no parser.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from . import __version__
from .terminal import coloured, encodable, paint, painted, visible, width

if TYPE_CHECKING:
    from .format import Format
    from .formats import Entry, Kind
    from .output_parser import OutputParser
    from .protocol import Diagnostic, ParsedOutput, Span
    from .stream import Stream

__all__ = ["main"]

OK: Final = 0
BROKEN: Final = 1
"""The output could not be written."""
MISUSE: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
"""What a shell reports for a program that SIGPIPE ended."""


class UsageError(Exception):
    """What the user asked for cannot be done; the message says why, on one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code.

    Raises:
        SystemExit: ``--help``, ``--version``, or arguments that argparse refuses.
    """
    arguments = _arguments().parse_args(argv)
    if sys.stdout is None:
        return _failed("cannot write: stdout is closed", BROKEN)
    try:
        run = arguments.run
        run(arguments)
        sys.stdout.flush()
    except UsageError as error:
        return _failed(str(error), MISUSE)
    except BrokenPipeError:
        _discard_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        _discard_stdout()
        return INTERRUPTED
    except OSError as error:
        _discard_stdout()
        return _failed(f"cannot write: {error.strerror or error}", BROKEN)
    return OK


def _failed(message: str, code: int) -> int:
    mark = paint("error:", "error") if coloured(sys.stderr) else "error:"
    line = " ".join(visible(message).split("\n"))
    if not encodable(line, sys.stderr):
        line = line.encode("ascii", "backslashreplace").decode()
    print(f"untemplate: {mark} {line}", file=sys.stderr)
    return code


def _discard_stdout() -> None:
    """Nobody reads any more: what is still buffered must not fail again when Python exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- Arguments ----------------------------------------------------------------------------------------------------

_DESCRIPTION: Final = """\
A chat template turns messages into text. untemplate turns the text back into messages:
the raw output of a language model into reasoning, content and tool calls.
"""

_EPILOG: Final = """\
examples:
  untemplate formats                                  what it can read
  untemplate formats hermes                           one format, and a call as its models write it
  untemplate parse --format hermes output.txt         the message, as JSON
  curl ... | untemplate parse --format qwen3_coder --stream
  untemplate parse --format deepseek_v31 --explain output.txt

NO_COLOR switches colours off, FORCE_COLOR switches them on in a pipe.
exit codes: 0 done, whatever the model wrote; 1 the result could not be written; 2 a wrong name, file or option.
"""

_PARSE_DESCRIPTION: Final = """\
Parses one raw model output and prints the assistant message as JSON. The output is read as it stands, to the byte,
special tokens included; bytes that are not UTF-8 are kept and come out as \\udcXX. The ids of calls are the same in
every run.
"""

_PARSE_EPILOG: Final = """\
examples:
  untemplate parse --format hermes --reasoning qwen3 output.txt
  untemplate parse --format qwen3_coder --tools tools.json --prompt prompt.txt output.txt
  untemplate parse --format mine.json --split 1 --stream output.txt
  untemplate parse --format kimi_k2 --json output.txt | jq .diagnostics
"""

_FORMATS_DESCRIPTION: Final = """\
Lists the catalogue of formats, or shows one of them: what it rests on, its markers, and a turn as its models write
it. With --json a NAME prints the Format itself, which `untemplate parse --format FILE.json` reads.
"""


def _arguments() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(
        prog="untemplate", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=raw, allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"untemplate {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    parse = commands.add_parser(
        "parse",
        help="raw model output -> message",
        description=_PARSE_DESCRIPTION,
        epilog=_PARSE_EPILOG,
        formatter_class=raw,
        allow_abbrev=False,
    )
    parse.set_defaults(run=_parse)
    parse.add_argument("file", nargs="?", default="-", metavar="FILE", help="the raw output (default: -, stdin)")
    what = parse.add_argument_group("what the model writes, and was given")
    what.add_argument(
        "--format", required=True, metavar="NAME|FILE.json", help="a name of `untemplate formats`, or a Format as JSON"
    )
    what.add_argument("--reasoning", metavar="NAME", help="reasoning markers of another format")
    what.add_argument(
        "--tools",
        metavar="FILE",
        help="the tools that were offered: a JSON list, or a request that holds one (default: any name is a tool)",
    )
    what.add_argument(
        "--prompt", metavar="FILE", help="the rendered prompt; its end says whether the output begins in reasoning"
    )
    what.add_argument(
        "--finish-reason", default="stop", metavar="R", help="why the engine stopped: stop, length, ... (default: stop)"
    )
    how = parse.add_argument_group("what is printed")
    shown = how.add_mutually_exclusive_group()
    shown.add_argument("--stream", action="store_true", help="deltas as they come, one JSON object a line")
    shown.add_argument(
        "--explain", action="store_true", help="the raw text with its regions marked, and what was odd about it"
    )
    how.add_argument(
        "--split", type=_positive, metavar="N", help="feed pieces of N characters (the message must be the same)"
    )
    how.add_argument(
        "--json",
        action="store_true",
        help="one line: message, finish_reason, statuses of calls, diagnostics; with --explain spans",
    )

    formats = commands.add_parser(
        "formats",
        help="the catalogue of formats",
        description=_FORMATS_DESCRIPTION,
        formatter_class=raw,
        allow_abbrev=False,
    )
    formats.set_defaults(run=_formats)
    formats.add_argument("name", nargs="?", metavar="NAME", help="show this one")
    formats.add_argument("--kind", choices=["reasoning", "tool"], help="only this kind")
    formats.add_argument("--json", action="store_true", help="the list, or the Format of NAME, as JSON")
    return top


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of characters")
    return number


# -- parse --------------------------------------------------------------------------------------------------------


def _parse(arguments: argparse.Namespace) -> None:
    parser = _parser(arguments.format, arguments.reasoning)
    if arguments.prompt == arguments.file == "-":
        raise UsageError("--prompt and FILE cannot both be read from stdin")
    prompt = None if arguments.prompt is None else _text(_read(arguments.prompt, "--prompt"))
    tools = None if arguments.tools is None else _tools(arguments.tools)
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
        _print_json(_everything(parsed, spans=arguments.explain), indent=None)
    elif arguments.explain:
        _print_explained("".join(raw), parsed)
    else:
        _print_json(parsed.message(), indent=2)
        if parsed.diagnostics:
            _note_diagnostics(parsed.diagnostics)


def _parser(name: str, reasoning: str | None) -> OutputParser:
    from .format import FormatError
    from .formats import lookup, merge, named
    from .output_parser import OutputParser

    try:
        if not name.endswith(".json") and os.sep not in name:
            return OutputParser.from_format(named(name, reasoning=reasoning))
        fmt = _format_file(name)
        if reasoning is not None:
            fmt = merge(lookup("reasoning", reasoning).format, fmt)
        return OutputParser.from_format(fmt)
    except FormatError as error:
        raise UsageError(f"--format {name}: {error}") from None
    except ValueError as error:  # an unknown name, two formats that do not go together, a switch in the environment
        raise UsageError(str(error)) from None


def _format_file(path: str) -> Format:
    from .format import Format

    return Format.from_json(_read(path, "--format"))


def _tools(path: str) -> Any:
    try:
        tools = json.loads(_read(path, "--tools"))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"--tools {path}: not JSON: {error.msg} ({where})") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--tools {path}: not JSON: {error}") from None
    if isinstance(tools, dict) and "tools" in tools:
        tools = tools["tools"]
    return [] if tools is None else tools


def _read(path: str, option: str) -> bytes:
    try:
        if path == "-":
            return _stdin().read()
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UsageError(f"{option} {path}: {_reason(error)}") from None


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise UsageError("stdin is closed")
    return sys.stdin.buffer


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _pieces(path: str, size: int | None) -> Iterator[str]:
    """The raw output as it comes, or in pieces of ``size`` characters."""
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
            stdin = _stdin()
            if stdin.isatty():
                print("reading the output from the terminal; Ctrl-D ends it", file=sys.stderr)
            yield from map(decode, _chunks(stdin))
        else:
            with open(path, "rb") as file:
                yield from map(decode, _chunks(file))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {_reason(error)}") from None
    if rest := decode(b"", True):
        yield rest


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """What has arrived, without waiting for more."""
    read = getattr(file, "read1", file.read)
    while data := read(1 << 16):
        yield data


def _print_deltas(stream: Stream, pieces: Iterator[str], finish_reason: str) -> None:
    for piece in pieces:
        if deltas := stream.feed(piece):
            for delta in deltas:
                _print_json(delta.model_dump(exclude_none=True), indent=None)
            sys.stdout.flush()
    for delta in stream.finish(finish_reason):
        _print_json(delta.model_dump(exclude_none=True), indent=None)


def _everything(parsed: ParsedOutput, *, spans: bool) -> dict[str, Any]:
    result = {
        "message": parsed.message(),
        "finish_reason": parsed.finish_reason,
        "statuses": [call.status for call in parsed.tool_calls],
        "diagnostics": [diagnostic.model_dump() for diagnostic in parsed.diagnostics],
    }
    if spans:
        result["spans"] = [{"kind": span.kind, "start": span.start, "end": span.end} for span in parsed.spans]
    return result


def _note_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Says on stderr that there is more to know than the message."""
    codes = ", ".join(dict.fromkeys(diagnostic.code for diagnostic in diagnostics))
    count = len(diagnostics)
    print(f"untemplate: {count} diagnostic{'s'[: count > 1]} ({codes}); --explain shows where", file=sys.stderr)


# -- JSON ---------------------------------------------------------------------------------------------------------

# What JSON may hold as it is, but a terminal or an encoder may not.
_ESCAPED: Final = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_TOKENS: Final = re.compile(r'("(?:[^"\\]|\\.)*")(:?)')


def _print_json(value: Any, *, indent: int | None) -> None:
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    text = _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    if not encodable(text, sys.stdout):
        text = json.dumps(value, indent=indent, separators=separators)
    if indent is not None and coloured(sys.stdout):
        text = _TOKENS.sub(lambda t: paint(t.group(1), "faint" if t.group(2) else "content") + t.group(2), text)
    sys.stdout.write(text + "\n")


# -- explain ------------------------------------------------------------------------------------------------------

KINDS: Final = ("reasoning", "content", "name", "id", "arguments", "markup", "dropped")
_SILENT: Final = ("markup", "dropped")


def _print_explained(raw: str, parsed: ParsedOutput) -> None:
    colour = coloured(sys.stdout)
    lines = [_marked(raw, parsed.spans, colour), ""]
    if colour:
        lines += [f"{painted([('regions', 'title')], colour=True)}  " + "  ".join(paint(k, k) for k in KINDS), ""]
    lines += _diagnosed(raw, parsed.diagnostics, colour)
    lines.append("")
    lines.append(painted([("result", "title"), ("  " + _summary(parsed), "")], colour=colour))
    _print("\n".join(lines))


def _marked(raw: str, spans: Sequence[Span], colour: bool) -> str:
    """The raw text with its regions in colour, or behind bracketed labels. Newlines that the message does not have
    are shown as such."""
    newline = _newline() + "\n"
    marked: list[str] = []
    for span in spans:
        text = visible(raw[span.start : span.end])
        if span.kind in _SILENT:
            text = text.replace("\n", newline)
        marked.append(paint(text, span.kind) if colour else f"[{span.kind}]{text}")
    return "".join(marked)


def _newline() -> str:
    return "↵" if encodable("↵", sys.stdout) else "\\n"


def _diagnosed(raw: str, diagnostics: Sequence[Diagnostic], colour: bool) -> list[str]:
    if not diagnostics:
        return [painted([("diagnostics", "title"), ("  none", "")], colour=colour)]
    lines = [painted([("diagnostics", "title")], colour=colour)]
    for d in diagnostics:
        line = raw.count("\n", 0, d.start) + 1
        column = d.start - raw.rfind("\n", 0, d.start)
        place = f" at {d.start}:{d.end} (line {line}, column {column}): "
        lines.append(painted([("  " + d.code, "error"), (place, "faint"), (d.message, "")], colour=colour))
        if d.text:
            lines.append("    | " + visible(d.text).replace("\n", _newline()))
    return lines


def _summary(parsed: ParsedOutput) -> str:
    """``reasoning, content, 2 calls: f (ok), g (incomplete); finish_reason tool_calls``"""
    parts = [name for name, text in (("reasoning", parsed.reasoning_content), ("content", parsed.content)) if text]
    if calls := parsed.tool_calls:
        listed = ", ".join(f"{visible(call.function.name)} ({call.status})" for call in calls)
        parts.append(f"{len(calls)} call{'s'[: len(calls) > 1]}: {listed}")
    return f"{', '.join(parts) or 'nothing'}; finish_reason {visible(parsed.finish_reason)}"


def _print(text: str) -> None:
    if not encodable(text, sys.stdout):
        text = text.encode(sys.stdout.encoding or "ascii", "backslashreplace").decode(sys.stdout.encoding or "ascii")
    sys.stdout.write(text + "\n")


# -- formats ------------------------------------------------------------------------------------------------------


def _formats(arguments: argparse.Namespace) -> None:
    from .formats import UnknownFormatError

    name: str | None = arguments.name
    kind: Kind | None = arguments.kind
    if name is None:
        _list_formats(kind, as_json=arguments.json)
        return
    try:
        _show_format(name, kind, as_json=arguments.json)
    except UnknownFormatError as error:
        raise UsageError(str(error)) from None


def _list_formats(kind: Kind | None, *, as_json: bool) -> None:
    from .formats import entries

    found = [entry for entry in entries() if kind in (None, entry.kind)]
    if as_json:
        _print_json([_entry(entry) for entry in found], indent=2)
        return
    rows = [_row(entry) for entry in found]
    _print(_table(("NAME", "KIND", "EVIDENCE", "ENGINES", "ALIASES", "MODELS"), rows))


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "aliases": list(entry.aliases),
        "models": list(entry.models),
        "engines": list(entry.engines),
        "evidence": list(entry.evidence),
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
    """The firmest thing that an entry rests on: the model's own template, recorded outputs, or what others wrote."""
    if not entry.verified:
        return "none"
    if any(e.startswith("template:") for e in entry.evidence):
        return "template"
    return "outputs" if "case" in entry.evidence else "cited"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns in line. On a terminal the last ones are cut to its width, in a pipe they are whole."""
    colour = coloured(sys.stdout)
    room = _columns() if sys.stdout.isatty() else None
    widths = [max(width(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    if room is not None:
        widths[3] = min(widths[3], 20)
        widths[4] = min(widths[4], 24)
    lines = []
    for row in (heads, *rows):
        cells = [_cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)]
        text = "  ".join(cells).rstrip()
        text = text if room is None else _cut(text, room)
        if colour:
            text = paint(text, "title") if row is heads else paint(text[: widths[0]], "name") + text[widths[0] :]
        lines.append(text)
    return "\n".join(lines)


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: max(size - 3, 0)] + "..."


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _show_format(name: str, kind: Kind | None, *, as_json: bool) -> None:
    from .formats import entries, lookup, named

    # ``named`` knows which kinds there are, and says it best when there is none.
    fmt = named(name) if kind is None else lookup(kind, name).format
    if as_json:
        _print_json(json.loads(fmt.to_json()), indent=2)
        return
    found = [e for e in entries() if name in (e.name, *e.aliases) and kind in (None, e.kind)]
    colour = coloured(sys.stdout)
    blocks = [_details(entry, colour) for entry in found]
    blocks.append("\n".join(_field(*line, colour) for line in _markers(fmt)))
    for title, text in samples(fmt):
        blocks.append(painted([(title, "title")], colour=colour) + "\n\n" + visible(text))
    _print("\n\n".join(blocks))


def _details(entry: Entry, colour: bool) -> str:
    head = painted([(entry.name, "name"), (f"  {entry.kind} format", "")], colour=colour)
    lines = [head]
    for label, values in (
        ("aliases", entry.aliases),
        ("models", entry.models),
        ("engines", entry.engines),
        ("evidence", entry.evidence),
    ):
        if values:
            separator = "\n" + " " * 12 if label == "evidence" else ", "
            lines.append(_field(label, separator.join(values), colour))
    if not entry.verified:
        lines.append(_field("verified", "no: nothing firm says what these models write", colour))
    return "\n".join(lines)


def _field(label: str, text: str, colour: bool) -> str:
    return painted([(f"  {label:<10}", "faint"), (text, "")], colour=colour)


def _markers(fmt: Format) -> Iterator[tuple[str, str]]:
    """What a reader wants to know of a Format before its JSON."""
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
    """(title, text): how the format's models write what it can say of a call, and of reasoning with an answer."""
    from .render import expressible, render

    for title, message in SAMPLES:
        if expressible(fmt, message, SAMPLE_TOOLS) is None:
            yield title, render(fmt, message)


if __name__ == "__main__":
    sys.exit(main())
