"""Imports another project's package, with an error that names the version that is needed."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

__all__ = ["Theirs", "partner"]


class Theirs:
    """Stands for a class of another project where types are checked: that project need not be installed."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError


def partner(module: str, package: str, least: str) -> ModuleType:
    """Return an imported module of another project.

    Args:
        module: name of the module, such as ``openai.types.chat``.
        package: name of the package on the index.
        least: oldest version that works.

    Raises:
        ImportError: the package is missing, too old, or does not hold the module; the message names the version.
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        raise ImportError(f"needs {package} >= {least}: pip install '{package}>={least}'") from None
    if _numbers(found) < _numbers(least):
        raise ImportError(f"needs {package} >= {least}, and {found} is installed: pip install '{package}>={least}'")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{package} {found} cannot be used: {error} (tested from version {least} on)") from error


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: ``1.2.3rc1`` gives 1, 2, 3."""
    return tuple(int(number) for number in re.findall(r"\d+", re.split(r"[a-zA-Z+]", text, maxsplit=1)[0]))
