"""The ``untemplate`` command.

Rules of this package:

* What a model wrote is never an error: it is parsed, and the exit code is 0. What the user asked for may be one: one
  line on stderr that names the option, the file and the field, and exit code 2. Never a traceback.
* What is printed for programs is JSON, and the same in every run: the ids of calls too.
* Nothing is imported before it is needed: ``--version`` and ``--help`` load no parser.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from ..terminal import coloured, encodable, paint, visible
from .arguments import parser_for
from .common import UsageError

__all__ = ["main"]

OK: Final = 0
BROKEN: Final = 1
"""The output could not be written."""
MISUSE: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
"""What a shell reports for a program that SIGPIPE ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code.

    Raises:
        SystemExit: ``--help``, ``--version``, or arguments that argparse refuses.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    arguments = parser_for(argv).parse_args(argv)
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
