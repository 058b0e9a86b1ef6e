"""Hold a parser to its certificate.

* Calls or reasoning that a certificate denies are removed from the Format: their text becomes content.
* Other failed abilities (a type of argument, parallel calls …) cannot be removed. They are reported at construction and
  on each call that uses them, and nothing is written with them.
* ``no`` and ``cannot say`` change nothing: the template cannot show them, and the models may still write them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ...format import Format

__all__ = ["abilities_of_arguments", "abilities_of_calls", "bound", "denied_arguments", "warn"]

_ARGUMENTS: Final = frozenset(
    (
        *("no_arguments", "string", "number", "integer", "boolean", "null", "object", "array", "awkward_strings"),
        *("parallel_calls", "ids", "content_with_calls", "reasoning_with_calls"),
    )
)
"""Abilities that belong to single calls."""
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", type(None): "null"}
_PLAIN: Final = re.compile(r"[^\W\d](?:[\w .,!?-]*[\w.,!?])?")
"""Strings that no syntax can misread."""


def bound(fmt: Format, capabilities: Mapping[str, str]) -> Format:
    """Return the Format without calls and without reasoning, where the certificate has ``failed`` for them."""
    calls, reasoning = (capabilities.get(part) == "failed" for part in ("calls", "reasoning"))
    if fmt.channels is not None and (calls or reasoning):
        return replace(fmt, channels=None, tools=())
    return replace(
        fmt, tools=() if calls else fmt.tools, reasoning=None if reasoning else fmt.reasoning
    )  # fmt: skip


def denied_arguments(capabilities: Mapping[str, str]) -> frozenset[str]:
    """Return the failed abilities of single calls; none if calls as a whole have failed."""
    if capabilities.get("calls") == "failed":
        return frozenset()
    return frozenset(name for name in _ARGUMENTS if capabilities.get(name) == "failed")


def warn(name: str, capabilities: Mapping[str, str]) -> None:
    """Log one line that names the failed abilities, if there are any."""
    failed = [ability for ability, found in capabilities.items() if found == "failed"]
    if failed:
        off = [part for part in ("calls", "reasoning") if part in failed]
        without = f"; {' and '.join(off)} stay in the content" if off else ""
        from ..log import logger  # every first parse would pay for its import

        logger().warning(f"{name} does not parse all that its template writes: {', '.join(failed)}{without}")


def abilities_of_arguments(arguments: Any) -> set[str]:
    """Return the abilities that the arguments of one call need: JSON text or a mapping; none if it is neither."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            return set()
    if not isinstance(arguments, Mapping):
        return set()
    if not arguments:
        return {"no_arguments"}
    needed = {_TYPES.get(type(value), "string") for value in arguments.values()}
    if any(isinstance(value, str) and not _PLAIN.fullmatch(value) for value in arguments.values()):
        needed.add("awkward_strings")
    return needed


def abilities_of_calls(arguments: Iterable[Any], *, content: bool, reasoning: bool, ids: bool) -> list[set[str]]:
    """Return the abilities that each call of a message needs."""
    each = [abilities_of_arguments(one) for one in arguments]
    shared = {"parallel_calls"} if len(each) > 1 else set()
    shared |= {"content_with_calls"} if content else set()
    shared |= {"reasoning_with_calls"} if reasoning else set()
    shared |= {"ids"} if ids else set()
    return [one | shared for one in each]
