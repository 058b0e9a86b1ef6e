"""Hooks of mkdocs: pages of the root and built pages are on the site, links to other files lead to the repository,
pages link to cases in the inspector, and each has a description and a preview."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from mkdocs.structure.files import File, Files
from site_cases import examples, with_cases
from site_previews import description_of, picture, tags

ROOT: Final = Path(__file__).parents[1]
ROOT_PAGES: Final = {f"{name}.md": f"{name.lower()}.md" for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY")}
"""Page of the root → its name on the site."""
BUILT_PAGES: Final = ("api.md", "machine.md")
"""Pages that `make docs` makes of docstrings; they are nowhere else."""


LOGO: Final = "src/untemplate/_internal/inspector/static/icon.svg"


def on_config(config: Any) -> Any:
    """Add the version to the foot of each page."""
    source = (ROOT / "src/untemplate/__init__.py").read_text("utf-8")
    found = re.search(r'(?m)^__version__(?:: \w+)? = "([^"]+)"', source)
    assert found is not None
    config.copyright = f"untemplate {found[1]}"
    return config


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the built pages, and those of the root. Links of the latter to ``docs/PAGE`` become links to ``PAGE``: here
    they lie next to it."""
    for source, name in ROOT_PAGES.items():
        text = (ROOT / source).read_text("utf-8")
        text = re.sub(r"\]\((?!docs/|#|\w+://)([^)\s]+)\)", r"](../\1)", text).replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "pictures/logo.svg", content=(ROOT / LOGO).read_text("utf-8")))
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

    own = "" if page.is_homepage else description_of(markdown)
    page.meta.setdefault("description", own or config.site_description)
    text = re.sub(r"\]\(\.\./([^)\s]+)\)", target, markdown)
    return with_cases(page.file.src_uri, text, examples())


def on_post_page(output: str, page: Any, config: Any, **_: Any) -> str:
    """Write the preview of a page, and return the page with tags that name it.

    Other sites want whole addresses: `make site SITE_URL=https://…/`.
    """
    name = f"previews/{page.url.strip('/').replace('/', '-') or 'index'}.png"
    title, description = str(page.title), page.meta["description"]
    file = Path(config.site_dir, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(picture(title, description))
    root = config.site_url or "../" * page.url.count("/")
    return output.replace("</head>", tags(title, description, page.canonical_url or "", root + name) + "</head>", 1)
