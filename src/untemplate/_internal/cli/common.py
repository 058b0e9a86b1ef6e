"""Functions that all commands share: reading input, printing output, reporting errors."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from ..terminal import Line, coloured, encodable, paint, painted, width, wrapped

if TYPE_CHECKING:
    from ...policy import Policy
    from ..saved import Answer, Output


class UsageError(Exception):
    """The command cannot be carried out as given; the message gives the reason in one line."""


def positive(text: str) -> int:
    """Read the value of an option that is a positive number."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number


# -- Reading ------------------------------------------------------------------------------------------------------


def read(path: str, option: str) -> bytes:
    """Return the bytes of a file that an option names; ``-`` is stdin."""
    try:
        if path == "-":
            return stdin().read()
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UsageError(f"{option} {path}: {reason(error)}") from None


def stdin() -> BinaryIO:
    if sys.stdin is None:
        raise UsageError("stdin is closed")
    return sys.stdin.buffer


def reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def name_of(path: str) -> str:
    """Return a file as messages name it."""
    return "stdin" if path == "-" else path


def output_of(answer: Answer, path: str) -> Output:
    """Return the raw output in an API's answer, and print a note of what was read.

    Raises:
        UsageError: the raw output is not in it.
    """
    if problem := answer.problem(name_of(path)):
        raise UsageError(problem)
    note(answer.note(name_of(path)))
    return answer.outputs[0]


def read_tools(path: str) -> Any:
    """Read tools from a file: a list of tools, or a request that contains one."""
    try:
        tools = json.loads(read(path, "--tools"))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"--tools {path}: not JSON: {error.msg} ({where})") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--tools {path}: not JSON: {error}") from None
    if isinstance(tools, dict) and "tools" in tools:
        tools = tools["tools"]
    return [] if tools is None else tools


# -- Policies -----------------------------------------------------------------------------------------------------


def policy_of(settings: Sequence[str]) -> Policy:
    """Parse ``--policy NAME=VALUE``; for each name the last value counts."""
    from ...policy import Policy, typed

    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--policy {setting}: expected NAME=VALUE")
        values[name] = typed(name, value)
    try:
        return Policy.from_mapping(values)
    except ValueError as error:
        raise UsageError(f"--{error}") from None  # "policy NAME: ..."


@contextlib.contextmanager
def _handled(handler: logging.Handler) -> Iterator[None]:
    log = logging.getLogger("untemplate")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def quiet() -> contextlib.AbstractContextManager[None]:
    """Silence the library's log while the command reports the same things itself."""
    return _handled(logging.NullHandler())


class _Notes(logging.Handler):
    """Prints what the library logs as notes on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"warning: {record.getMessage()}")


def noted() -> contextlib.AbstractContextManager[None]:
    """Print the library's warnings like the command's own."""
    return _handled(_Notes(logging.WARNING))


def write_file(path: str, text: str, what: str) -> None:
    """Write a file; ``what`` names it in an error. Half characters are written as escapes."""
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{what}: {reason(error)}") from None


# -- JSON ---------------------------------------------------------------------------------------------------------

# Characters that JSON may contain unescaped, but a terminal or an encoder may not print.
_ESCAPED: Final = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_TOKENS: Final = re.compile(r'("(?:[^"\\]|\\.)*")(:?)')


def print_json(value: Any, *, indent: int | None) -> None:
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    text = _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    if not encodable(text, sys.stdout):
        text = json.dumps(value, indent=indent, separators=separators)
    if indent is not None and coloured(sys.stdout):
        text = _TOKENS.sub(lambda t: paint(t.group(1), "faint" if t.group(2) else "content") + t.group(2), text)
    sys.stdout.write(text + "\n")


# -- Text ---------------------------------------------------------------------------------------------------------


def print_text(text: str) -> None:
    if not encodable(text, sys.stdout):
        text = text.encode(sys.stdout.encoding or "ascii", "backslashreplace").decode(sys.stdout.encoding or "ascii")
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Print one line on stderr."""
    line = " ".join(text.split("\n"))
    if not encodable(line, sys.stderr):
        line = line.encode("ascii", "backslashreplace").decode()
    print(f"untemplate: {line}", file=sys.stderr)


def columns() -> int | None:
    """Return the columns of the terminal; ``None`` if stdout is not one: then nothing is cut or wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def field(
    label: str,
    text: str,
    colour: bool,
    *,
    indent: int = 2,
    size: int = 10,
    style: str = "",
    label_style: str = "faint",
) -> str:
    """Format a label and text after it; on a terminal the text is wrapped under itself."""
    head = " " * indent + label + " " * (size - width(label))
    room = columns()
    body: list[Line] = [[(line, style)] for line in text.split("\n")]
    if room is not None:
        body = wrapped([(text, style)], max(room - len(head), 20))
    lines = [painted([(head, label_style), *body[0]], colour=colour)]
    lines += [" " * len(head) + painted(line, colour=colour) for line in body[1:]]
    return "\n".join(line.rstrip() for line in lines)


_WIDEST: Final = {"MODEL": 33, "ENGINES": 20, "ALIASES": 24, "REASON": 24}
"""Most characters of the columns with these heads, on a terminal."""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table. On a terminal it has the columns whose heads fit, and the last one is cut to its width."""
    colour = coloured(sys.stdout)
    room = columns()
    widths = [max(width(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    if room is not None:
        widths = [min(size, _WIDEST.get(head, size)) for head, size in zip(heads, widths, strict=True)]
        ends = [sum(widths[:i]) + 2 * i + len(head) for i, head in enumerate(heads)]
        widths = [size for size, end in zip(widths, ends, strict=True) if end <= room] or widths[:1]
    lines = []
    for row in (heads, *rows):
        cells = [_cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=False)]
        text = "  ".join(cells).rstrip()
        text = text if room is None else _cut(text, room)
        if colour:
            text = paint(text, "title") if row is heads else paint(text[: widths[0]], "name") + text[widths[0] :]
        lines.append(text)
    return "\n".join(lines)


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: max(size - 3, 0)] + "..."
