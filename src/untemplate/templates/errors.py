"""What can go wrong with a chat template.

The hierarchy is the contract:

* :class:`TemplateError` — it cannot be read, compiled or rendered. Nothing else leaves this package, misuse by the
  caller (``TypeError``, ``ValueError`` for arguments that exclude each other) aside.

  * :class:`TemplateRaised` — the template itself says no: it called ``raise_exception``.
  * :class:`TemplateLimitError` — it wants more time, memory, output or depth than a chat template may have.
"""

from __future__ import annotations

__all__ = ["TemplateError", "TemplateLimitError", "TemplateRaised"]


class TemplateError(ValueError):
    """A chat template that cannot be used. ``str()`` reads ``name, line 3: message``."""

    def __init__(self, message: str, *, name: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        """What is wrong, without name and line."""
        self.name = name
        """The template's name: a path, a hub id, or None."""
        self.line = line
        """The line of the template, counted from 1, where one is known."""

    def __str__(self) -> str:
        place = self.name or ("template" if self.line else "")
        if self.line:
            place += f", line {self.line}"
        return f"{place}: {self.message}" if place else self.message


class TemplateLimitError(TemplateError):
    """A template that wants too much: of time, memory, output, or depth."""


class TemplateRaised(TemplateError):
    """A template that calls ``raise_exception``. ``message`` is what it says."""
