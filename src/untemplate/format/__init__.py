"""Format: a description, as data, of the output of one model family.

`model` holds the dataclasses, `serialization` converts a Format to JSON and back, and `response_template` reads the
declarative template that newer checkpoints ship.
"""

from __future__ import annotations

from ._model import *  # noqa: F403
from ._model import __all__ as __all__
