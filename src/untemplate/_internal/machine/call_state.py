"""The state of one call, and the function that decides its status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from ...messages import CallStatus
from ...tools import ToolSet
from ..jsontext.well_formed import repeated_key
from .diagnostics import DiagnosticCode
from .lexer import WS

STATUS_DIAGNOSTICS: Final[dict[CallStatus, DiagnosticCode]] = {
    "incomplete": "incomplete_call",
    "invalid_json": "invalid_json",
}
"""Statuses that are reported as a diagnostic too. The others describe the call and not its text."""

RECOVERING: Final[frozenset[DiagnosticCode]] = frozenset(
    {
        "argument_without_value",
        "broken_arguments",
        "broken_json",
        "broken_key",
        "doubled_close",
        "doubled_open",
        "held_too_long",
        "markup_in_value",
        "missing_close",
        "missing_open",
        "misspelled_close",
        "nested_too_deep",
        "repeated_key",
        "stray_text",
        "text_between_arguments",
        "unclosed_object",
        "unescaped_backslash",
        "unescaped_quote",
        "unquoted_value",
        "unused_member",
    }
)
"""Codes of problems inside a call after which it is ``recovered``: a part of it was ended, dropped or read again."""

NOT_AN_OBJECT: Final = frozenset({"not_json", "not_an_object"})
"""Slugs of a validator's problems that mean: the arguments are not a JSON object."""

# How the arguments of a call have ended.
CUT: Final = 0
"""They have not: the call is open, or cut."""
WHOLE: Final = 1
"""They are whole. They may be no JSON: they were not checked."""
VALID: Final = 2
"""They are whole, and known to be JSON."""


@final
class CallState:
    """One call of an output, without its arguments."""

    # Defaults in the class cost nothing per call.
    model_id: str = ""
    """An id that the model wrote after the call had committed with another ``id``; empty without one."""
    end: int = 0
    """Where its arguments ended."""
    ending: int = CUT
    """How its arguments have ended: CUT, WHOLE or VALID."""
    recovered: bool = False
    """True if a part of it was ended, dropped or read again."""
    follows_whole: bool = False
    """True if a call before it that has been forgotten had ended by itself."""
    markup: str = ""
    """Markup of the call that one of its values holds; empty if none was found, or it was not looked for."""
    repeated: str = ""
    """A key that an object of its arguments has twice; empty without one, or if none was looked for."""
    status: CallStatus | None = None
    """The status that the call policy found; None if there is no call policy."""
    reason: str = ""
    """Why its status means that it must not run as it is; empty if it may."""
    repairs: tuple[str, ...] = ()
    """The steps by which the call policy repaired the call."""

    def __init__(self, index: int, call_id: str, name: str, start: int = 0) -> None:
        self.index: int = index
        self.id: str = call_id
        self.name: str = name
        self.start: int = start
        """Where the marked part of the output ended when the call committed: after its name, in characters."""

    @property
    def whole(self) -> bool:
        """True if its arguments have ended."""
        return self.ending != CUT

    def recover(self) -> None:
        """Take note that a part of it was ended, dropped or read again, also if its status is known."""
        self.recovered = True
        if self.status == "ok":
            self.status = "recovered"


NO_CALLS: Final[list[CallState]] = []


def next_index(calls: Sequence[CallState]) -> int:
    """Return the index of the call that comes after these. The first of them may have been forgotten."""
    return calls[-1].index + 1 if calls else 0


def call_status(
    call: CallState,
    arguments: str,
    tools: ToolSet,
    markup: Callable[[str, str, ToolSet], str],
    problems: Callable[[], Iterable[str]] | None = None,
) -> CallStatus:
    """Return the status of a call. The first of these that applies:

    * ``incomplete``: the output ended inside it, and no repair has closed it,
    * ``invalid_json``: its arguments are not a valid JSON object,
    * ``unknown_tool``: tools were offered, and it calls none of them,
    * ``invalid_json`` or ``invalid_arguments``: a validator found that the arguments are not an object, or that they do
      not fit the tool's schema,
    * ``repaired``: a policy repaired the call, and now it is valid,
    * ``recovered``: a part of it was ended, dropped or read again, an object has a key twice, or a value holds markup
      of the call,
    * ``ok``.

    ``markup`` returns such markup in the arguments of a tool, which is kept in the call, or nothing. ``problems``
    returns the slugs of what a validator found. Both are only called when they can matter; without ``problems`` the
    arguments are not validated.
    """
    if not call.whole and not any(step.startswith("closed") for step in call.repairs):
        return "incomplete"
    repeated = repeated_key(arguments, is_valid=call.ending == VALID) if _is_object(arguments) else None
    if repeated is None:
        return "invalid_json"
    if repeated:
        call.repeated = repeated
        call.recovered = True
    if tools.known and call.name not in tools.names:
        return "unknown_tool"
    found = frozenset() if problems is None else frozenset(problems())
    if found:
        return "invalid_json" if found & NOT_AN_OBJECT else "invalid_arguments"
    if call.repairs:
        return "repaired"
    if not call.recovered:
        call.markup = markup(call.name, arguments, tools)
    return "recovered" if call.recovered or call.markup else "ok"


def _is_object(arguments: str) -> bool:
    """True if JSON text is an object."""
    return arguments[:1] == "{" or arguments.lstrip(WS)[:1] == "{"
