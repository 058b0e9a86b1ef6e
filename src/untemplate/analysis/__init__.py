"""Analysis: from any chat template to a certified Format.

Rules of this package:

* The template is a black box that renders. What it writes for probing conversations is compared (:mod:`.diff`); each
  comparison leaves hypotheses (:mod:`.reasoning`, :mod:`.content`, :mod:`.tools`, :mod:`.arguments`, :mod:`.channels`).
* Hypotheses are measured, never believed: what the template renders must parse back (:mod:`.certify`).
* No list of markers, and no test for one template's text.
"""

from __future__ import annotations

from .analyze import Analysis, AnalysisError, Prepared, prepare
from .cache import analyze
from .certify import Certificate, StoredOutcome
from .result import AnalysisResult, Hypothesis, MarkerRegistry

__all__ = [
    "Analysis",
    "AnalysisError",
    "AnalysisResult",
    "Certificate",
    "Hypothesis",
    "MarkerRegistry",
    "Prepared",
    "StoredOutcome",
    "analyze",
    "prepare",
]
