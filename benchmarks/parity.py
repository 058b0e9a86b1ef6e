"""Write the parity page from reports of ``untemplate check --json``, one for each server.

    python benchmarks/parity.py "our gateway"=gateway.json vLLM=vllm.json > docs/parity.md

The servers have to run; docs/parity.md names the commands. Nothing is written into the page by hand.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import msgspec

from untemplate.check import Report
from untemplate.check._known import issue_for

VERDICTS = ("pass", "soft", "fail", "cannot")


def group(name: str) -> str:
    """Return the row of a check: given texts by whole and streamed, all others by their first words."""
    parts = name.split("/")
    return f"given texts, {parts[-1]}" if parts[0] == "given" else "/".join(parts[:2])


def cell(counts: Counter[str]) -> str:
    judged = sum(counts.values()) - counts["cannot"]
    if not judged:
        return "–"
    soft = f" ({counts['soft']} soft)" if counts["soft"] else ""
    return f"{judged - counts['fail']} of {judged}{soft}"


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    escaped = [[value.replace("|", "\\|").replace("\n", " ") for value in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *escaped)]


def code(text: str) -> str:
    """Return text as code, whatever it contains."""
    fence = "``" if "`" in text else "`"
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def page(reports: dict[str, Report]) -> str:
    counts: dict[str, dict[str, Counter[str]]] = {}
    for name, report in reports.items():
        for result in report.results:
            counts.setdefault(group(result.id), {}).setdefault(name, Counter())[result.verdict] += 1
    servers = [
        [
            name,
            f"{r.capabilities.server} {r.capabilities.version}".strip(),
            code(r.capabilities.format),
            r.capabilities.way or "nothing",
            r.date[:10],
            *(str(r.count(verdict)) for verdict in VERDICTS),  # type: ignore[arg-type]
            f"{r.seconds:.0f} s, {r.requests}",
        ]
        for name, r in reports.items()
    ]
    lines = [
        "# Parity of servers",
        "",
        "<!-- Made by `benchmarks/parity.py` from reports of `untemplate check`. Do not edit. -->",
        "",
        "The same checks against several servers, all of them on one machine. [Check a server](check.md) describes the",
        "checks and the verdicts. Times depend on the machine's other work.",
        "",
        *table(["server", "version", "format", "forced by", "date", *VERDICTS, "time, requests"], servers),
        "",
        "## By check",
        "",
        "Each cell has the checks that did not fail, of those that could be judged. A dash: none was run or",
        "could be judged.",
        "",
        *table(["check", *reports], [
            [head, *(cell(found.get(name, Counter())) for name in reports)] for head, found in sorted(counts.items())
        ]),
        "",
    ]  # fmt: skip
    for name, report in reports.items():
        for verdict, title in (("fail", "failures"), ("soft", "soft differences")):
            rows = [
                [code(result.id), code(result.reason[:150]), issue_for(report.capabilities.server, result)]
                for result in report.results
                if result.verdict == verdict
            ]
            if rows:
                lines += [f"## {name}: {title}", "", *table(["check", "difference", "known issue"], rows), ""]
        why = Counter(result.reason for result in report.results if result.verdict == "cannot")
        if why:
            rows = [[str(count), code(reason[:150])] for reason, count in why.items()]
            lines += [f"## {name}: what cannot be tested", "", *table(["checks", "reason"], rows), ""]
    return "\n".join(lines)


def main() -> None:
    reports: dict[str, Report] = {}
    for argument in sys.argv[1:]:
        name, _, path = argument.partition("=")
        reports[name] = msgspec.convert(json.loads(Path(path).read_bytes()), Report)
    sys.stdout.write(page(reports))


if __name__ == "__main__":
    main()
