"""Repair of arguments that are almost right: on request, within bounds, and with a label for every step.

* Arguments that are right are not changed: the result is None. It is also None if they cannot be repaired; syntax is
  never repaired in part.
* Nothing is invented and nothing is lost: a repair changes punctuation, spelling and types, never text. It is refused
  for a missing value, a word that fits nowhere, a string that could end in two places, and a value that was cut.
* What needs no change keeps its bytes. The result is a JSON object, and repairing it again changes nothing.
* Work is bounded: length, layers, passes, comparisons.

`json_repair` (PyPI 0.64, MIT, one maintainer, 4200 lines, a release a week) reads more broken texts than this, but even
with ``strict=True`` it drops text that its log does not mention (``{"a": 1 2}``, prose before the object, a key that
was cut), writes the whole object anew (``1.50`` and long numbers change, NaN stays), raises RecursionError on deep
nesting and needs seconds for 24 KB of bare words. It does not stay within these bounds, so these are own functions.
"""

from .base import MAX_LENGTH, Repair
from .names import nearest_name
from .schema import repair_schema
from .syntax import repair_syntax

__all__ = ["MAX_LENGTH", "Repair", "nearest_name", "repair_schema", "repair_syntax"]
