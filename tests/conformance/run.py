"""Replay the fixtures of canitoolcall through untemplate and compare the counts with the recorded ones.

usage: python -m tests.conformance.run [--show] [--record]

Runs twice: with untemplate's default policies, and with the policy that the rules of the suite describe, by which a
call that was cut is not a call. ``recorded.json`` holds the fixtures that pass; one that no longer passes is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

from canitoolcall import __version__
from canitoolcall.adapters.worker import replay
from canitoolcall.checks import case_status, run_checks
from canitoolcall.chunking import DEFAULT_STRATEGIES
from canitoolcall.fixtures import load_families, load_fixtures
from canitoolcall.results import CheckResult, Observation, ParseResult

from .adapter import UntemplateAdapter

RECORDED = Path(__file__).with_name("recorded.json")
POLICIES = {
    "default": {},
    "rules of the suite": {"cut_calls": "drop", "malformed_arguments": "content", "marker_white_space": "keep"},
}


def statuses(show: bool) -> dict[str, str]:
    """Return the status of every fixture: pass, soft_pass or fail."""
    families = load_families()
    adapter = UntemplateAdapter()
    found: dict[str, str] = {}
    for fixture in load_fixtures():
        family = families[fixture.family]
        answer = replay(adapter, fixture, family, DEFAULT_STRATEGIES)
        if not answer["supported"]:
            found[fixture.id] = "unsupported"
            continue
        streams = {name: ParseResult.from_dict(result) for name, result in answer["streams"].items()}
        rows = run_checks(fixture, family, Observation(ParseResult.from_dict(answer["nonstream"]), streams))
        found[fixture.id] = case_status(rows).value
        if show and found[fixture.id] != "pass":
            print(f"{fixture.id}: {found[fixture.id]}: {_reason(rows)}")
    return found


def _reason(rows: list[CheckResult]) -> str:
    row = next(row for row in rows if row.status.value != "pass")
    return f"{row.check} ({row.strategy}): {row.detail}"


def main() -> int:
    arguments = argparse.ArgumentParser(description="Replay the fixtures of canitoolcall through untemplate.")
    arguments.add_argument("--show", action="store_true", help="print each fixture that does not pass, with the reason")
    arguments.add_argument("--record", action="store_true", help="record the fixtures that pass")
    given = arguments.parse_args()
    recorded = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    lost = 0
    for name, policy in POLICIES.items():
        os.environ["UNTEMPLATE_POLICY"] = json.dumps(policy)
        found = statuses(given.show)
        counts = Counter(found.values())
        print(
            f"canitoolcall {__version__}, {name}: {counts['pass']} of {len(found)} pass, {counts['soft_pass']} softly"
        )
        for fixture in recorded.get(name, ()):
            if found.get(fixture) != "pass" and not given.record:
                print(f"no longer passes: {fixture}")
                lost += 1
        recorded[name] = sorted(fixture for fixture, status in found.items() if status == "pass")
    if given.record:
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
