"""Find reasons to doubt that a template cannot write a part of a message.

That no rendering shows a part proves nothing if a rendering with it failed, or if a branch that is about it never ran.
Then the certificate reports ``cannot say`` in place of ``no``. A refusal of the template's own (``raise_exception``) is
no reason to doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ._checks import CAPABILITIES, Finding
from ._probes import (
    ASKED,
    CALL_KEYS,
    CONTENT,
    IDS,
    KEYS,
    NAMES,
    RESULT,
    THOUGHT,
    VALUES,
    CallSamples,
    ProbeCall,
    ProbeMessage,
    Prober,
    Style,
)
from ._turns import TurnFrame


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a message: how to see that it was given to a rendering and shows up in it, and what reads it."""

    given: re.Pattern[str]
    shown: tuple[str, ...]
    fields: frozenset[str]
    """A branch about this part reads one of these."""
    also: frozenset[str] = frozenset()
    """And one of these, if there are any."""
    items: bool = True
    """False if a branch that has one item of the field cannot be about it."""


_CALLED: Final = rf"'tool_calls': .*{VALUES[0]}"


def _parts(reasoning_keys: tuple[str, ...]) -> dict[str, _Part]:
    """Return the parts by the abilities that write them."""
    thought = rf"'(?:{'|'.join(reasoning_keys)})': '{THOUGHT}"
    thoughts = frozenset(reasoning_keys)
    return {
        "reasoning": _Part(re.compile(f"^(?!.*'tool_calls').*{thought}"), (THOUGHT,), thoughts),
        "reasoning_with_calls": _Part(re.compile(f"{thought}.*{_CALLED}"), (THOUGHT, VALUES[0]), thoughts),
        "calls": _Part(re.compile(_CALLED), (VALUES[0],), CALL_KEYS),
        "parallel_calls": _Part(re.compile(f"{_CALLED}.*{VALUES[2]}"), (VALUES[0], VALUES[2]), CALL_KEYS, items=False),
        "content_with_calls": _Part(
            re.compile(f"{CONTENT}.*{_CALLED}"), (CONTENT, VALUES[0]), CALL_KEYS, frozenset(("content",))
        ),
        "ids": _Part(re.compile(rf"^(?!.*'role': 'tool').*'id': '{IDS[0]}"), (IDS[0],), CALL_KEYS, frozenset(("id",))),
    }


_PRINTED: Final = re.compile(r"'type': 'thinking'|'blocks': ")
"""Content that is a structure: templates that do not know it print it as it is, or fail."""
_OF_CALLS: Final = frozenset(CAPABILITIES[CAPABILITIES.index("calls") :]) - {"several_turns"}
"""Abilities that a template without calls cannot have."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason why an ability that was not observed may exist."""

    reason: str
    line: int = 0
    """Line of the template; 0 if no single line is responsible."""


def render_doubtful(prober: Prober, calls: CallSamples | None) -> None:
    """Render further conversations that may lead to branches of which there would be a doubt."""
    ids = _parts(prober.reasoning_keys)["ids"]
    if calls is not None and prober.unreached_about(ids.fields, ids.also):
        _render_result_without_name(prober, calls.style)


def doubts_of(frame: TurnFrame) -> dict[str, Doubt]:
    """Return a doubt for each ability of which a rendering or a branch leaves one."""
    prober = frame.prober
    found: dict[str, Doubt] = {}
    for ability, part in _parts(prober.reasoning_keys).items():
        doubt = next(_doubts(part, prober), None)
        if doubt is not None:
            found[ability] = doubt
    if frame.shows_names:
        found["calls"] = Doubt("the template writes only the names of tools")
    return found


def doubted(abilities: Mapping[str, Finding], doubts: Mapping[str, Doubt]) -> dict[str, Doubt]:
    """Return the doubts about abilities that were found to be ``no``. Without calls, only calls themselves can be
    doubted, and all abilities of calls share that doubt."""
    left = {ability: doubt for ability, doubt in doubts.items() if abilities[ability] == "no"}
    if abilities["calls"] == "no":
        left = {ability: doubt for ability, doubt in left.items() if ability not in _OF_CALLS}
        if "calls" in doubts:
            left |= {ability: doubts["calls"] for ability in CAPABILITIES if ability in _OF_CALLS}
    return left


def _doubts(part: _Part, prober: Prober) -> Iterator[Doubt]:
    found = [a for given, a in prober.attempts() if part.given.search(given) and not _PRINTED.search(given)]
    if any(a.text is not None and all(word in a.text for word in part.shown) for a in found):
        yield Doubt("the template writes it in a form that was not recognised")
    failed = next((a for a in found if not a.refused), None)
    if failed is not None and all(a.text is None for a in found):
        yield Doubt(f"a rendering failed: {failed.problem}", failed.line)
    for branch in prober.unreached_about(part.fields, part.also, items=part.items):
        asked = sorted(branch.conditions & prober.inputs_read)
        depends = f"; it depends on {', '.join(asked)}" if asked else ""
        yield Doubt(f"a branch was never rendered{depends}", branch.line)


def _render_result_without_name(prober: Prober, style: Style) -> None:
    """Render the result of a call as clients send it: some templates look for the name of its tool in the calls."""
    call = style.write(ProbeMessage(calls=(ProbeCall(NAMES[0], {KEYS[0]: VALUES[0]}),)))
    result = {"role": "tool", "content": RESULT, "tool_call_id": IDS[0]}
    prober.prompt([{"role": "user", "content": ASKED}, call, result], style, calls=True)
