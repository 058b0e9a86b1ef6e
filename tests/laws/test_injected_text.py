"""Quoted calls do not run: how many of the quotations of each format are called. The ceilings only fall."""

from __future__ import annotations

import pytest

from untemplate.format import Format
from untemplate.formats import entries
from untemplate.testing.quotations import CONTEXTS, provable, quoted_calls

ALWAYS = ("prose", "lines of its own", "an unknown XML element")
"""Contexts in which nothing tells a quotation from a call."""
FENCES = ("a fence", "a fence with a language")
NOT_PROVEN = frozenset({
    "apriel_1.5", "apriel_1.6", "command_r_plus", "dots", "firefunction_v2", "functionary_v3.1", "generic",
    "gigachat35", "granite-20b-fc", "hunyuan_a13b", "hunyuan_hermes", "minicpm5", "minimax", "nemotron_nano_v2",
    "olmo3", "phi4_mini_json", "plamo3",
})  # fmt: skip
"""Formats whose calls begin with ordinary text, as far as their own list of tokens goes."""
TOOLS = [pytest.param(entry.name, entry.format, id=entry.name) for entry in entries() if entry.kind == "tool"]


@pytest.mark.parametrize(("name", "fmt"), TOOLS)
def test_quoted_calls(name: str, fmt: Format) -> None:
    found = quoted_calls(fmt)
    if found is None:
        pytest.skip("no call of this format can be written")
    assert set(found.without_ids) <= {*ALWAYS, *FENCES}
    assert set(found.silent) <= set(ALWAYS)
    assert set(found.with_ids) <= ({*ALWAYS, *FENCES} if name in NOT_PROVEN else set())


def test_where_a_token_proves_the_opener_nothing_is_called() -> None:
    for entry in entries():
        if entry.kind != "tool" or quoted_calls(entry.format) is None:
            continue
        if provable(entry.format, frozenset(entry.format.special_tokens)) == "yes":
            assert entry.name not in NOT_PROVEN


def test_the_contexts() -> None:
    assert len(CONTEXTS) == 13


def test_the_tokens_of_the_vocabulary_count() -> None:
    from untemplate.tokens.decoding import Vocabulary

    fmt = next(entry.format for entry in entries() if (entry.name, entry.kind) == ("olmo3", "tool"))
    without = quoted_calls(fmt, Vocabulary({"a": 0}))
    proven = quoted_calls(fmt, Vocabulary({"<function_calls>": 0}, added=["<function_calls>"]))
    assert without is not None
    assert proven is not None
    assert (without.provable, len(without.with_ids)) == ("no", 5)
    assert (proven.provable, proven.with_ids) == ("yes", ())
