"""Measure untemplate next to the parsers of other projects.

python -m benchmarks.peers [--peer NAME] [--only TEXT] [--growth | --doors] [--page docs/benchmarks.md]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.worker import ROOT

from . import doors, measure, report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", action="append", choices=list(measure.PEERS), help="only this peer (repeatable)")
    parser.add_argument("--only", default="", metavar="TEXT", help="streams whose name contains this text")
    growth_only = parser.add_mutually_exclusive_group()
    growth_only.add_argument("--growth", action="store_true", help="only the growth curves")
    growth_only.add_argument("--doors", action="store_true", help="only untemplate inside the peers' servers")
    growth_only.add_argument("--no-growth", action="store_true", help="leave out the growth curves")
    parser.add_argument("--size", type=int, default=1_024, help="characters of a growing shape (default: 1024)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each side, in turns (default: 3)")
    parser.add_argument("--seconds", type=float, default=0.005, help="least CPU time of one measurement")
    parser.add_argument(
        "--build",
        type=Path,
        default=ROOT / "src",
        metavar="FOLDER",
        help="build of untemplate to measure, such as build/compiled (default: src)",
    )
    parser.add_argument("--page", type=Path, help="Markdown page whose generated parts are replaced")
    parser.add_argument(
        "--save", type=Path, default=ROOT / "build" / "peers" / "results.json", help="file for all rows"
    )
    parser.add_argument(
        "--load", type=Path, action="append", help="results to report instead of measuring (repeatable)"
    )
    chosen = parser.parse_args(arguments)
    if chosen.load:
        results = measure.Results()
        for path in chosen.load:
            results.add(measure.Results.from_json(json.loads(path.read_text("utf-8"))))
    else:
        growth = [] if chosen.no_growth or chosen.doors else measure.growing()
        peers = chosen.peer or list(measure.PEERS)
        results = measure.Results()
        chosen.save.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(KeyboardInterrupt):  # the measurements so far are reported
            measure.run(
                peers if not chosen.doors else [],
                [] if chosen.growth else measure.streams(chosen.only, chosen.size),
                growth,
                rounds=chosen.rounds,
                seconds=chosen.seconds,
                write=lambda line: print(line, flush=True),
                results=results,
                folder=chosen.build,
            )
            if not chosen.growth and not chosen.only:
                results.doors = doors.run(peers, chosen.build)
        chosen.save.write_text(json.dumps(asdict(results), indent=1), "utf-8")
    print()
    if results.rows:
        print(report.markdown(results))
    if results.growth:
        print(report.growth_markdown(results, []))
    if chosen.page:
        report.write_page(chosen.page, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
