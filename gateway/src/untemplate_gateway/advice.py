"""Advice at the start: what an operator can do about a model whose calls text can fake."""

from __future__ import annotations

from untemplate.analysis._quoted import CONTEXTS

from .manager.model import Model


def advice_on_quotations(model: Model) -> str:
    """Return how many quoted calls would be called, why, and what to do; empty if token ids prove the model's calls."""
    measured = model.parser.quoted_calls if model.calls_tools else None
    if measured is None:
        return ""
    knows = measured.of_model
    called = measured.with_ids if model.engine.takes.token_ids and knows else measured.without_ids
    if not called:
        return ""
    remedy = "--policy quoted_calls=content or a grammar"
    if not model.engine.takes.token_ids:
        why, remedy = "the engine reports no token ids", f"one that returns them, {remedy}"
    elif not knows:
        why, remedy = "the tokenizer is not known", f"a MODEL (folder or hub id) that has it, {remedy}"
    elif measured.provable == "partly":
        why = "some of the markers that begin its calls are ordinary text"
    else:
        why = "its calls begin with ordinary text"
    return (
        f"calls that it only quotes would run in {len(called)} of {len(CONTEXTS)} tested ways of quoting (code, tables "
        f"…), because {why}; fewer do with {remedy}"
    )
