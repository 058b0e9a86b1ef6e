"""Test one output against every law that parsing promises: for people who add a format, and for the tests of
untemplate.

>>> from untemplate.testing import case, check
>>> parsed = check("hermes", 'Sure.<tool_call>{"name": "f", "arguments": {}}</tool_call>',
...                {"content": "Sure.", "tool_calls": [("f", {})]})
>>> parsed.finish_reason
'tool_calls'
>>> _ = case("hermes").raw("Hello!").content("Hello!").check()

* One call states one case and tests every law. A law that does not apply to a case is skipped.
* A failure is an AssertionError that names the law, the smallest split that breaks it, and both results.
* Everything is deterministic: the random splits of an output depend on the output only.
"""

from __future__ import annotations

from ._check import Case, case, check
from ._subject import LawBroken, fold
from ._tokens import PieceTokenizer

__all__ = ["Case", "LawBroken", "PieceTokenizer", "case", "check", "fold"]
