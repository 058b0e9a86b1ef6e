"""Count the words of the pages: those that people write, and those that a program does (``make words``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
MADE: Final = ("formats.md", "models-names.md", "format.md", "llamacpp.md")
"""Pages that a program writes whole, and that do not say so."""
SPECIFICATION: Final = ("specification.md", "spec-reading.md", "spec-slips.md")
_SAYS_SO: Final = re.compile(r"<!-- (?:Made|Written) by ")
_PART: Final = re.compile(
    r"<!-- (?:[\w ]+: )?(?:made|written) by .*?<!-- (?:end|\w+: end)\b[^>]*-->|<!-- rules -->.*?<!-- end -->", re.DOTALL
)
"""A part of a page that a program writes."""


def main() -> int:
    written: dict[str, int] = {}
    made: dict[str, int] = {}
    for page in sorted((*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"))):
        text = page.read_text("utf-8")
        name = str(page.relative_to(ROOT))
        if page.name in (*MADE, *SPECIFICATION) or _SAYS_SO.search(text[:2_000]):
            made[name] = len(text.split())
        else:
            kept = _PART.sub("", text)
            written[name] = len(kept.split())
            if kept != text:
                made[f"{name} (tables)"] = len(text.split()) - written[name]
    for title, counts in (("written", written), ("made by a program, or the specification", made)):
        print(f"{sum(counts.values()):7,} words {title}")
        for name, count in sorted(counts.items(), key=lambda pair: -pair[1]):
            print(f"{count:7,}   {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
