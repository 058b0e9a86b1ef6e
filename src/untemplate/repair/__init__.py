"""Arguments that are nearly right, made right: on request, within bounds, and with a label for every step.

Rules of this package:

* What is right stays as it is, to the byte: the answer is None. So is the answer to what cannot be repaired; there is
  no half repair of syntax.
* Nothing is invented and nothing is lost: a repair changes punctuation, spelling and types, never text. A value that
  was not written, a word that fits nowhere, a string that could end in two places: None.
* What needs no change keeps its bytes. What comes out is a JSON object, and repairing it again changes nothing.
* Work is bounded: length, layers, passes, comparisons.

`json_repair` (PyPI, 0.64, MIT, one maintainer, 4200 lines, a release a week) reads more broken texts than this, but it
fills in values (``{"a": 1, "b":}`` gets ``"b": ""``), drops text (``{"a": 1 2}``, prose around the object, cut keys),
rounds numbers, lets NaN through, raises on deep nesting and is quadratic on bare words (24 KB: 4 s). None of that can
be switched off or comes with a report, so these are functions of our own.
"""

from .base import MAX_LENGTH, Repair
from .names import nearest_name
from .schema import repair_schema
from .syntax import repair_syntax

__all__ = ["MAX_LENGTH", "Repair", "nearest_name", "repair_schema", "repair_syntax"]
