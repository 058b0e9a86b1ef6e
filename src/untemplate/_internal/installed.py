"""How this installation gets further packages: by name from an index, or from the checkout that it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["install_command"]

_FOLDERS = {
    "untemplate": ".",
    "untemplate-gateway": "gateway",
    "untemplate-demo": "demo",
    "untemplate-vectors": "vectors",
}
"""The distributions of a checkout, and their folders."""


def install_command(name: str, *extras: str) -> str:
    """Return the command that installs a distribution of this project, with extras.

    Args:
        name: ``untemplate``, ``untemplate-gateway``, ``untemplate-demo`` or ``untemplate-vectors``.
        extras: extras of it.
    """
    named = f"[{','.join(extras)}]" if extras else ""
    checkout = _checkout()
    what = name if checkout is None else str(checkout / _FOLDERS[name])
    return f"pip install '{what}{named}'"


def _checkout() -> Path | None:
    """Return the checkout that this package was installed from, as pip has recorded it; ``None`` if from an index."""
    # Every parse would pay for these imports: they take as long as a fifth of the library's.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        record = distribution("untemplate").read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    url = json.loads(record)["url"] if record else ""
    folder = Path(url2pathname(urlsplit(url).path)) if url.startswith("file:") else None
    return folder if folder is not None and folder.is_dir() else None
