"""Infer a certified Format from any chat template.

The method follows llama.cpp's template auto-parser:

* The template is a black box that renders. Renderings of probe conversations are compared (:mod:`.diff`), and each
  comparison leaves hypotheses (:mod:`.reasoning`, :mod:`.content`, :mod:`.tools`, :mod:`.arguments`, :mod:`.channels`).
* Hypotheses are measured: what the template renders must parse back (:mod:`.certify`).
* There is no list of known markers, and no test for the text of a particular template.
"""

from __future__ import annotations

from .cache import analyze
from .certify import Certificate, FailedCheck
from .pipeline import Analysis, AnalysisError, Prepared, prepare
from .prefix import PrefixBreak
from .quoted import QuotedCalls
from .result import AnalysisResult, Hypothesis, MarkerRegistry
from .traits import Dropped, Remark, Traits

__all__ = [
    "Analysis",
    "AnalysisError",
    "AnalysisResult",
    "Certificate",
    "Dropped",
    "FailedCheck",
    "Hypothesis",
    "MarkerRegistry",
    "PrefixBreak",
    "Prepared",
    "QuotedCalls",
    "Remark",
    "Traits",
    "analyze",
    "prepare",
]
