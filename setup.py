"""Everything but this is in pyproject.toml: with ``UNTEMPLATE_COMPILE=1`` mypyc compiles the engine.

Without it the wheel is pure Python. Results are the same; ``untemplate.COMPILED`` tells which one is installed.
"""

from __future__ import annotations

import os
from glob import glob

from setuptools import Extension, setup

MODULES = (
    "tools.py",
    "_internal/schemas/fits.py",
    "_internal/schemas/reading.py",
    "_internal/backends/stream.py",
    "_internal/backends/format_stream.py",
    "_internal/jsontext/*.py",
    "_internal/machine/*.py",
    "_internal/machine/*/*.py",
)


def extensions() -> list[Extension]:
    """Return the compiled modules; none while pip asks for what the build needs, before mypy is there."""
    try:
        from mypyc.build import mypycify
    except ImportError:
        return []
    found_paths = (path for module in MODULES for path in sorted(glob(f"src/untemplate/{module}")))
    paths = [path for path in found_paths if not path.endswith("phases.py")]  # tables for the documentation
    found: list[Extension] = mypycify(["--config-file=", "--ignore-missing-imports", *paths])
    return found


setup(ext_modules=extensions() if os.environ.get("UNTEMPLATE_COMPILE") == "1" else [])
