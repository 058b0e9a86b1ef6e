"""Every exception that untemplate raises of its own.

::

    UntemplateError
    ├── FormatError (ValueError)               a Format, or its JSON form, that cannot work
    ├── UnknownFormatError (ValueError)        a name that the catalogue does not have
    ├── IncompatibleFormatsError (ValueError)  two formats that cannot be combined
    ├── TemplateError (ValueError)             a chat template that cannot be read, compiled or rendered
    │   ├── TemplateLimitError                 it needs more time, memory, output or depth than is allowed
    │   └── TemplateRaised                     it called ``raise_exception``
    ├── AnalysisError (ValueError)             a chat template from which no Format can be inferred
    ├── ContentPartError (ValueError)          a message with a part that a chat template cannot write
    ├── GrammarError (ValueError)              a decoding grammar that cannot be written
    ├── GgufError (ValueError)                 a file that is not a readable GGUF file
    ├── CheckpointError (ValueError)           a model on disk that cannot be loaded
    ├── TokenizerError (ValueError)            a tokenizer that cannot be read
    ├── HubError (ValueError)                  a model on the hub that cannot be downloaded
    ├── SettingsError (ValueError)             an invalid setting of the gateway
    ├── InspectorError (ValueError)            a request that the inspector cannot answer
    ├── ApiError                               a request to the gateway that fails (``untemplate_gateway.errors``)
    │   └── EngineError                        the engine behind the gateway failed
    ├── CommandError (RuntimeError)            a program of `untemplate conform` that breaks the protocol
    └── LawBroken (AssertionError)             a law that does not hold (``untemplate.testing``)

Model output never raises: what is wrong with it is a status of a call or a diagnostic. Wrong arguments of the caller
raise ``ValueError`` or ``TypeError``, a stream that is used after its end ``RuntimeError``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ._internal.suggestions import close_names, did_you_mean

__all__ = [
    "AnalysisError",
    "CheckpointError",
    "ContentPartError",
    "FormatError",
    "GgufError",
    "GrammarError",
    "HubError",
    "IncompatibleFormatsError",
    "InspectorError",
    "SettingsError",
    "TemplateError",
    "TemplateLimitError",
    "TemplateRaised",
    "TokenizerError",
    "UnknownFormatError",
    "UntemplateError",
]


class UntemplateError(Exception):
    """Base class of all exceptions of this library. They can be pickled, and sent to another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (type(self), self.args, self.__dict__)


def _copied(kind: type[UntemplateError], args: tuple[Any, ...], attributes: dict[str, Any]) -> UntemplateError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class FormatError(UntemplateError, ValueError):
    """A Format, or its JSON form, that cannot work.

    Attributes:
        path: the field that is wrong (``tools[0].body.name_key``).
        problem: what is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class UnknownFormatError(UntemplateError, ValueError):
    """A name that the catalogue does not have.

    Attributes:
        name: the unknown name.
        kind: the kind of entry that was asked for; ``None``: either.
        valid: the valid names.
        suggestions: the valid names that are nearest to it.
        short: the message without the list of all names, for a terminal.
        reason: why the catalogue has no such format, if that is known.

    Args:
        name, kind, valid, reason: the attributes.
        forms: what may be given instead of a name, for the message.
    """

    def __init__(
        self,
        name: str,
        kind: Literal["reasoning", "tool"] | None,
        valid: Iterable[str],
        forms: str = "",
        reason: str | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.valid: tuple[str, ...] = tuple(valid)
        self.suggestions: tuple[str, ...] = close_names(name, self.valid)
        self.reason = reason
        what = f"{kind} format" if kind else "format"
        self.short: str = f"no {what} {name!r}: {reason}"
        if reason is not None:
            super().__init__(self.short)
            return
        hint = did_you_mean(self.suggestions) or ";"
        listed = f"`untemplate formats --kind {kind}`" if kind else "`untemplate formats`"
        self.short = f"unknown {what} {name!r}{hint} {listed} lists all names"
        forms = f" give {forms};" if forms else ""
        super().__init__(f"unknown {what} {name!r}{hint}{forms} valid names: {', '.join(self.valid)}")


class IncompatibleFormatsError(UntemplateError, ValueError):
    """Two formats that cannot be combined.

    Attributes:
        reasoning, tools: names of the two formats.
        reason: why they cannot be combined.
    """

    def __init__(self, reasoning: str, tools: str, reason: str) -> None:
        self.reasoning = reasoning
        self.tools = tools
        self.reason = reason
        super().__init__(f"reasoning {reasoning!r} and tools {tools!r} cannot be combined: {reason}")


class TemplateError(UntemplateError, ValueError):
    """A chat template that cannot be used. Its text reads ``name, line 3: message``.

    Attributes:
        message: what is wrong, without name and line.
        name: the template's name (a path or a hub id), or ``None``.
        line: the line of the template, counted from 1, or ``None``.
    """

    def __init__(self, message: str, *, name: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.name = name
        self.line = line

    def __str__(self) -> str:
        place = self.name or ("template" if self.line else "")
        if self.line:
            place += f", line {self.line}"
        return f"{place}: {self.message}" if place else self.message


class TemplateLimitError(TemplateError):
    """A template that needs more time, memory, output or depth than a chat template may have."""


class TemplateRaised(TemplateError):
    """A template that called ``raise_exception``; ``message`` is its argument."""


class AnalysisError(UntemplateError, ValueError):
    """A chat template from which no Format can be inferred."""


class ContentPartError(UntemplateError, ValueError):
    """A message with a part, such as an image, that a chat template cannot write.

    Attributes:
        where: the part (``messages[0].content[1]``).
        problem: what is wrong with it.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class GrammarError(UntemplateError, ValueError):
    """A decoding grammar that cannot be written; the message names the tool, and the keyword or name at fault."""


class GgufError(UntemplateError, ValueError):
    """A file that is not a GGUF file, or is broken."""


class CheckpointError(UntemplateError, ValueError):
    """A model on disk that cannot be loaded; the message names a remedy."""


class TokenizerError(UntemplateError, ValueError):
    """A tokenizer that cannot be read; the message lists the files that were tried."""


class HubError(UntemplateError, ValueError):
    """A model on the hub that cannot be downloaded; the message names a remedy."""


class InspectorError(UntemplateError, ValueError):
    """A request that cannot be answered; the message gives the reason."""


class SettingsError(UntemplateError, ValueError):
    """An invalid setting; the message names it, where it was set and which values are valid."""
