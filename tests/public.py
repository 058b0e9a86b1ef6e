"""Public cases and chat templates: the folder that ``UNTEMPLATE_SHARED`` names, or ``shared`` beside the checkout.

They belong to other projects, so they are not in this repository. Tests that need them skip where they are not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

SHARED: Final = Path(os.environ.get("UNTEMPLATE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
CASES: Final = SHARED / "cases"
TEMPLATES: Final = sorted((SHARED / "templates").glob("*.jinja"))
WILD: Final = sorted((SHARED / "templates" / "wild").glob("*.jinja"))

_REMEDY = "set UNTEMPLATE_SHARED, or put shared/ beside the checkout"
NO_CASES: Final = f"no public cases: {_REMEDY}"
NO_TEMPLATES: Final = f"no public templates: {_REMEDY}"

needs_templates: Final = pytest.mark.skipif(not TEMPLATES, reason=NO_TEMPLATES)
needs_wild: Final = pytest.mark.skipif(not WILD, reason=NO_TEMPLATES)
