"""What the analysis could not measure of public templates, and why.

``python -m tests.analysis.unmeasured --page docs/unmeasured.md`` writes the page: how many branches of the templates
were rendered, the processor time of each analysis, and every ability that is ``cannot say``, with its reason.
``UNTEMPLATE_SHARED`` names the folder of the templates.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import process_time

from tests.public import SHARED
from untemplate.analysis import AnalysisError, Certificate, analyze
from untemplate.errors import TemplateError
from untemplate.templates import ChatTemplate

__all__ = ["Measured", "measured", "page"]


@dataclass(frozen=True)
class Measured:
    """One template."""

    name: str
    seconds: float
    certificate: Certificate | None
    """``None`` if the template is not one of conversations."""
    problem: str = ""

    @property
    def doubts(self) -> list[tuple[str, list[str]]]:
        """The reasons of what cannot be said, each with the abilities."""
        if self.certificate is None:
            return []
        left = [name for name, found in self.certificate.capabilities.items() if found == "cannot say"]
        found = []
        for remark in self.certificate.traits.remarks:
            if remark.code == "not_measured":
                abilities, _, reason = remark.message.partition(": ")
                where = f"line {remark.line}: " if remark.line else ""
                found.append((f"{where}{reason}", abilities.split(", ")))
                left = [name for name in left if name not in abilities.split(", ")]
        assert not left, (self.name, left)
        return found


def templates() -> list[Path]:
    """Return all public templates, in the order of their names."""
    return sorted((SHARED / "templates").rglob("*.jinja"), key=lambda path: path.name)


def measured(path: Path) -> Measured:
    """Analyse one template."""
    began = process_time()
    try:
        certificate = analyze(ChatTemplate.load(path), cache=False).certificate
    except (AnalysisError, TemplateError) as error:
        return Measured(path.name, process_time() - began, None, str(error))
    return Measured(path.name, process_time() - began, certificate)


def page(found: Sequence[Measured]) -> Iterator[str]:
    """Yield the lines of the page."""
    read = [(one, one.certificate) for one in found if one.certificate is not None]
    branches = sum(certificate.traits.branches for _, certificate in read)
    reached = branches - sum(len(certificate.traits.unreached) for _, certificate in read)
    whole = sum(not certificate.traits.unreached for _, certificate in read)
    seconds = sorted(one.seconds for one in found)
    doubts = sum(len(abilities) for one in found for _, abilities in one.doubts)
    yield f"""\
# What the analysis could not measure

<!-- Made by `make unmeasured`. Do not edit. -->

{len(found)} public chat templates, analysed on {date.today().isoformat()}. *Cannot say* means that an ability was not
measured, with the reason; *no* means that every branch which is about it was rendered and does not write it.

| | |
| --- | ---: |
| templates of conversations | {len(read)} |
| of them certified | {sum(certificate.certified for _, certificate in read)} |
| branches that were rendered | {reached} of {branches} ({100 * reached / max(branches, 1):.1f} %) |
| templates of which every branch was rendered | {whole} |
| abilities that cannot be said, in {sum(bool(one.doubts) for one in found)} templates | {doubts} |
| processor time of an analysis, median | {statistics.median(seconds) * 1000:.0f} ms |
| the same, slowest | {seconds[-1] * 1000:.0f} ms |

Templates of rerankers and embedding models write no conversation.

| template | abilities | reason |
| --- | --- | --- |"""
    for one in found:
        for reason, abilities in one.doubts:
            shown = reason.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
            yield f"| `{one.name}` | {', '.join(abilities)} | {shown} |"
    yield "\n## No conversation\n\n| template | error |\n| --- | --- |"
    for one in found:
        if one.certificate is None:
            problem = one.problem.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
            yield f"| `{one.name}` | {problem.replace(str(SHARED), '')[:160]} |"


def main() -> int:
    arguments = argparse.ArgumentParser(description="What the analysis could not measure of public templates.")
    arguments.add_argument("--page", type=Path, help="page to write; without it, it is printed")
    given = arguments.parse_args()
    logging.disable(logging.CRITICAL)
    paths = templates()
    if not paths:
        sys.exit(f"no templates in {SHARED / 'templates'}: set UNTEMPLATE_SHARED")
    measured(paths[0])  # imports
    text = "\n".join(page([measured(path) for path in paths])) + "\n"
    if given.page is None:
        print(text)
    else:
        given.page.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
