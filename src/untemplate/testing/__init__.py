"""The laws of DESIGN section 4 on one case: for people who add a format, and for every test of this project.

>>> from untemplate.testing import case, check
>>> parsed = check("hermes", 'Sure.<tool_call>{"name": "f", "arguments": {}}</tool_call>',
...                {"content": "Sure.", "tool_calls": [("f", {})]})
>>> parsed.finish_reason
'tool_calls'
>>> _ = case("hermes").raw("Hello!").content("Hello!").check()

Rules of this module:

* One call states one case and holds it against every law. What a law may assume is said where it is checked; a law
  that does not apply to a case is skipped, never bent.
* A failure is an AssertionError that names the law, the smallest cut that breaks it, and both results.
* Everything is deterministic: the random cuts of an output depend on nothing but the output.
"""

from __future__ import annotations

from ._check import Case, case, check
from ._subject import LawBroken, fold
from ._tokens import PieceTokenizer

__all__ = ["Case", "LawBroken", "PieceTokenizer", "case", "check", "fold"]
