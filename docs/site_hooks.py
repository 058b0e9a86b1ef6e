"""Hooks of mkdocs: links to files outside of this folder lead to the repository."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Return the text of a page with links to ``../FILE`` as links to the repository."""
    return re.sub(r"\]\(\.\./([^)\s]+)\)", lambda found: f"]({config.repo_url}/blob/main/{found[1]})", markdown)
