"""Arguments that are nearly right, made right: on request, within bounds, and with a label for every step.

Rules of this package:

* What is right stays as it is, to the byte: the answer is None. So is the answer to what cannot be repaired; there is
  no half repair of syntax.
* Nothing is invented and nothing is lost: a repair changes punctuation, spelling and types, never text. A value that
  was not written, a word that fits nowhere, a string that could end in two places: None.
* What needs no change keeps its bytes. What comes out is a JSON object, and repairing it again changes nothing.
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
