"""The build backend: setuptools, with what mypyc needs where ``UNTEMPLATE_COMPILE=1`` asks for compiled wheels."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks of PEP 517


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what a build needs besides setuptools. mypyc needs the types of the dependencies as well."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_of_mypyc()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Return what an editable build needs besides setuptools."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_of_mypyc()]


def _of_mypyc() -> list[str]:
    if os.environ.get("UNTEMPLATE_COMPILE") != "1":
        return []
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    return ["mypy>=1.15", *project["dependencies"], *project["optional-dependencies"]["validate"]]
