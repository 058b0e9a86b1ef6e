"""Infer a certified Format from any chat template.

The method follows llama.cpp's template auto-parser:

* The template is a black box that renders. Renderings of probe conversations are compared, and each comparison
  leaves hypotheses about reasoning, content, calls, arguments and channels.
* Hypotheses are measured: what the template renders must parse back.
* There is no list of known markers, and no test for the text of a particular template.
"""

from __future__ import annotations

from ._cache import analyze
from ._certify import Certificate, FailedCheck
from ._pipeline import Analysis, AnalysisError, Prepared, prepare
from ._prefix import PrefixBreak
from ._quoted import QuotedCalls
from ._result import AnalysisResult, Hypothesis, MarkerRegistry
from ._traits import Dropped, Remark, Traits

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
