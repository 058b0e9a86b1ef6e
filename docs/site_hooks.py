"""Hooks of mkdocs: pages of the root and built pages are on the site, links to other files lead to the repository, and
pages link to cases in the inspector."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from mkdocs.structure.files import File, Files
from site_cases import examples, with_cases

ROOT: Final = Path(__file__).parents[1]
ROOT_PAGES: Final = {f"{name}.md": f"{name.lower()}.md" for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY")}
"""Page of the root → its name on the site."""
BUILT_PAGES: Final = ("api.md", "machine.md")
"""Pages that `make docs` makes of docstrings; they are nowhere else."""


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the built pages, and those of the root. Links of the latter to ``docs/PAGE`` become links to ``PAGE``: here
    they lie next to it."""
    for source, name in ROOT_PAGES.items():
        text = (ROOT / source).read_text("utf-8")
        text = re.sub(r"\]\((?!docs/|#|\w+://)([^)\s]+)\)", r"](../\1)", text).replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    for name in BUILT_PAGES:
        files.append(File.generated(config, name, content=(ROOT / "build/docs" / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return the text of a page whose links to ``../FILE`` lead to that page, or to the repository, with links to
    cases."""

    def target(found: re.Match[str]) -> str:
        file, anchor, place = found[1].partition("#")
        if file in ROOT_PAGES:
            return f"]({ROOT_PAGES[file]}{anchor}{place})"
        return f"]({config.repo_url}/blob/main/{found[1]})"

    text = re.sub(r"\]\(\.\./([^)\s]+)\)", target, markdown)
    return with_cases(page.file.src_uri, text, examples())
