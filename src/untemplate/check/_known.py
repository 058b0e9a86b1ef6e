"""Known upstream issues: a failure that looks like one of them is reported with its number."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import msgspec

from ._model import Result


class _Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: str
    id: str
    """Regular expression for the id of the check."""
    reason: str
    """Regular expression for the reason."""
    issue: str


@cache
def _known() -> tuple[_Known, ...]:
    data = (files(__package__) / "known.json").read_bytes()
    return tuple(msgspec.json.decode(data, type=list[_Known]))


def issue_for(server: str, result: Result) -> str:
    """Return the known issue that a failed check looks like; empty without one."""
    for known in _known():
        if known.server == server and re.search(known.id, result.id) and re.search(known.reason, result.reason):
            return known.issue
    return ""
