"""Chat templates of our own, for models whose own knows no tools.

Each is a ``.jinja`` file here, and certifies with the Format that `OURS` names: a test sees to it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

__all__ = ["OURS", "our_template"]

OURS: Final = {"llama3_json": "llama3_json", "mistral_parallel": "mistral", "gemma3_pythonic": "pythonic"}
"""Name → the catalogue's name of what its models write."""


def our_template(name: str) -> str:
    """The source of a template.

    Raises:
        KeyError: there is none of that name.
    """
    if name not in OURS:
        raise KeyError(name)
    return files(__name__).joinpath(f"{name}.jinja").read_text("utf-8")
