"""The library's logger. Its warnings belong to the application: without one that listens, a process shows one line."""

from __future__ import annotations

import logging
import sys

__all__ = ["is_configured", "logger"]

_NAME = "untemplate"


class _OneLine(logging.Handler):
    """Shows the first warning where no other handler gets it."""

    shown = False

    def emit(self, record: logging.LogRecord) -> None:
        if self.shown or is_configured() or logging.getLogger().handlers or sys.stderr is None:
            return
        self.shown = True
        line = f"{record.getMessage()} (further warnings of untemplate are not shown: configure logging)"
        sys.stderr.write(line.encode("ascii", "backslashreplace").decode() + "\n")


def logger() -> logging.Logger:
    """Return the library's logger."""
    found = logging.getLogger(_NAME)
    if not any(isinstance(handler, _OneLine) for handler in found.handlers):
        found.addHandler(_OneLine(logging.WARNING))
    return found


def is_configured() -> bool:
    """True if the application has given the library's logger a handler."""
    return any(not isinstance(handler, _OneLine) for handler in logging.getLogger(_NAME).handlers)
