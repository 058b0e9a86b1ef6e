"""The ``untemplate`` command.

* Model output is never an error: it is parsed, and the exit code is 0. A wrong argument, file or setting is reported in
  one line on stderr that names it, with exit code 2 and no traceback.
* Output for programs is JSON and the same in every run, ids of calls included.
* Imports are delayed: ``--version`` and ``--help`` load no parser.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from ...errors import FormatError
from ..terminal import coloured, paint, visible
from .arguments import COMMANDS, GATEWAY, parser_for
from .common import UsageError, note

__all__ = ["main"]

OK: Final = 0
BROKEN: Final = 1
"""Exit code if the output could not be written."""
MISUSE: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
"""Exit code that a shell reports for a program ended by SIGPIPE."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code.

    Raises:
        SystemExit: ``--help``, ``--version``, or arguments that argparse refuses.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    parser = parser_for(argv)
    if not argv:
        parser.print_help()
        return OK
    arguments = parser.parse_args(argv)
    if sys.stdout is None:
        return _failed("cannot write: stdout is closed", BROKEN)
    try:
        run = arguments.run
        code: int | None = run(arguments)
        sys.stdout.flush()
    except (UsageError, FormatError) as error:
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
    return code or OK


def _complete() -> None:
    """Complete a command line for a shell (`register-python-argcomplete untemplate`)."""
    import argcomplete

    words = os.environ.get("COMP_LINE", "").split()
    argcomplete.autocomplete(parser_for([word for word in words[1:2] if word in {*COMMANDS, *GATEWAY}]))


def _failed(message: str, code: int) -> int:
    mark = paint("error:", "error") if coloured(sys.stderr) else "error:"
    note(f"{mark} {visible(message)}")
    return code


def _discard_stdout() -> None:
    """Discard buffered output after the reader has gone, so that Python does not fail again on exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
