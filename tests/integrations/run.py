"""Run the tests of each integration on the real package, in an environment of its own, and print the counts.

usage: python -m tests.integrations.run [--work FOLDER] [NAME ...]

An environment is made on its first run, and brought up to date on later ones, from ``packages/NAME.txt``. A line
``# pip install ...`` of that file is run first. The examples with NAME in their names are run as well, and so are tests
elsewhere that need the package. A project that cannot be installed or fails does not stop the others; the exit status
is 1 then.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = Path(__file__).parent / "packages"
NAMES: Final = sorted(path.stem for path in PACKAGES.glob("*.txt"))
COMMON: Final = ["pytest>=8.3", "hypothesis", "httpx", "jinja2", "msgspec", "jsonschema-rs"]
FIRST: Final = "# pip install "
DOORS: Final = "tests/integrations/test_doors.py"
ELSEWHERE: Final = {
    "litellm": [DOORS],
    "sglang": [DOORS],
    "transformers": [DOORS, "tests/templates/test_public.py", "tests/test_generation.py"],
    "verl": [DOORS],
}
"""Project → files with tests that have its name in theirs."""


@dataclass(frozen=True)
class Counts:
    """Results of one project."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    problem: str = ""

    @property
    def fine(self) -> bool:
        return not self.problem and not self.failed and self.passed > 0


def install(name: str, environment: Path) -> None:
    """Make an environment, or bring it up to date. Its log is next to it.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    listed = PACKAGES / f"{name}.txt"
    first = [line.removeprefix(FIRST).split() for line in listed.read_text("utf-8").splitlines() if FIRST in line]
    with environment.with_suffix(".log").open("w", encoding="utf-8") as log:

        def run(*command: str | Path) -> None:
            log.write(f"$ {' '.join(map(str, command))}\n")
            log.flush()
            subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, check=True)

        if not (environment / "bin" / "python").exists():
            run(sys.executable, "-m", "venv", environment)
        for arguments in (COMMON, *first, ["--requirement", str(listed)]):
            run(environment / "bin" / "pip", "install", "--no-compile", *arguments)


def test(name: str, environment: Path) -> Counts:
    """Run the tests and the examples of one project; their output goes to the terminal."""
    report = environment.with_suffix(".xml")
    report.unlink(missing_ok=True)
    files = [f"tests/integrations/test_{name}.py", "tests/test_examples.py", *ELSEWHERE.get(name, ())]
    options = ["-k", name, "-rPs", "-o", "filterwarnings=default", f"--junit-xml={report}"]
    command = [environment / "bin" / "python", "-m", "pytest", *options, *files]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, check=False)
    if not report.exists():
        return Counts(name, problem=f"pytest ended with {done.returncode} and without a report")
    found = next(ElementTree.parse(report).iter("testsuite")).attrib
    failed, skipped = int(found["failures"]) + int(found["errors"]), int(found["skipped"])
    passed = int(found["tests"]) - failed - skipped
    problem = "" if failed or done.returncode == 0 else f"pytest ended with {done.returncode}"
    return Counts(name, passed, failed, skipped, float(found["time"]), problem)


def run(name: str, environment: Path, place: str) -> Counts:
    """Install and test one project, with a line of progress for each."""
    print(f"\n{place} {name}: installing (log: {environment.with_suffix('.log')})", flush=True)
    start = time.monotonic()
    try:
        install(name, environment)
    except subprocess.CalledProcessError as error:
        log = environment.with_suffix(".log").read_text("utf-8", "replace")
        print("\n".join(log.splitlines()[-10:]), flush=True)
        return Counts(name, problem=f"not installed: pip ended with {error.returncode}")
    print(f"{place} {name}: installed in {time.monotonic() - start:.0f} s; testing", flush=True)
    return test(name, environment)


def table(results: Sequence[Counts]) -> str:
    """Return one line for each project, and a sum."""
    lines = [f"{'project':<14}{'passed':>8}{'failed':>8}{'skipped':>8}{'seconds':>9}"]
    lines += [
        f"{one.name:<14}{one.passed:>8}{one.failed:>8}{one.skipped:>8}{one.seconds:>9.0f}  {one.problem}".rstrip()
        for one in results
    ]
    sums = [sum(getattr(one, field) for one in results) for field in ("passed", "failed", "skipped")]
    return "\n".join([*lines, "{} passed, {} failed, {} skipped".format(*sums)])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "partners", help="folder of the environments")
    given = parser.parse_args()
    names = given.names or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no such integration: {', '.join(unknown)} (there are: {', '.join(NAMES)})")
    given.work.mkdir(parents=True, exist_ok=True)
    results = [run(name, given.work / name, f"[{at}/{len(names)}]") for at, name in enumerate(names, 1)]
    print(f"\n{table(results)}", flush=True)
    return 0 if all(one.fine for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
