"""Chat templates of this project, for models whose own template does not support tools.

Each is a ``.jinja`` file in this folder. A test checks that it certifies with the Format in `OURS`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

__all__ = ["OURS", "our_template"]

OURS: Final = {"llama3_json": "llama3_json", "mistral_parallel": "mistral", "gemma3_pythonic": "pythonic"}
"""Name of the template → name of its Format in the catalogue."""


def our_template(name: str) -> str:
    """Return the source of a template.

    Raises:
        KeyError: the name is unknown.
    """
    if name not in OURS:
        raise KeyError(name)
    return files(__name__).joinpath(f"{name}.jinja").read_text("utf-8")
