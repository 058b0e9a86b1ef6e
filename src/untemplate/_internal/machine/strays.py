"""What models leave out, damage or add around the closes of calls."""

from __future__ import annotations

import re

from .arguments.lookahead import MAX_STRAY, damaged_literal
from .call_syntax import CallSyntax
from .context import ReaderContext
from .growing import NO_TEXTS
from .ledger import MARKUP
from .lexer import WS, Literals
from .signals import AGAIN, MORE, NO_MATCH


def read_stray(context: ReaderContext, stray: re.Pattern[str], literals: Literals) -> int:
    """Drop stray text in front of one of these literals. Return AGAIN, NO_MATCH or MORE."""
    cur = context.cur
    found = stray.match(cur.text, cur.pos)
    if found is None or found.end() - cur.pos > MAX_STRAY:
        return NO_MATCH
    if found.end() == len(cur.text) and not cur.final:
        return MORE
    end = literals.at(cur.text, found.end(), cur.final)
    if end < 0:
        return end
    _recover_call(context)
    context.drop("stray_text", found.end())
    return AGAIN


def read_damaged(context: ReaderContext, literals: Literals, others: Literals) -> int:
    """Drop a damaged close, unless it is one of ``others``, or a whole one that was only spelled. Return AGAIN,
    NO_MATCH or MORE."""
    cur = context.cur
    if literals.at(cur.text, cur.pos, cur.final) >= 0:
        return NO_MATCH
    end = damaged_literal(literals, cur, cur.pos)
    other = others.at(cur.text, cur.pos, cur.final)
    if end == NO_MATCH or other >= 0:
        return NO_MATCH
    if end == MORE or other == MORE:
        return MORE
    _recover_call(context)
    context.drop("misspelled_close", end)
    return AGAIN


def _recover_call(context: ReaderContext) -> None:
    """Take note that text after the last call, which a policy may have dropped, is dropped."""
    if context.calls:
        context.calls[-1].recover()
    if context.holds_space:
        context.drop_space()


def report_missing_close(context: ReaderContext) -> int:
    """Report that the call is not closed although the output goes on, unless its turn ends here, or another report
    says so. Return MORE if that is undecided."""
    cur = context.cur
    end = context.program.output_end.at(cur.text, cur.pos, cur.final)
    begins_close = cur.final and cur.text[cur.pos :].strip(WS) in context.program.call_closes.prefixes
    if end == NO_MATCH and not (begins_close or context.calls[-1].recovered):
        context.report("missing_close", cur.pos, cur.pos)
    return end


def take_close(context: ReaderContext, close: re.Match[str]) -> bool:
    """Read white space and what closes the call. False if that is no marker, or there is too much white space."""
    start = close.start(1)
    end = close.end()
    if context.checks_ids and not context.may_be_marker(start, end):
        return False
    if not context.speculation.active:
        if context.base + start - context.ledger.frontier > context.max_held:
            return False
        context.mark(MARKUP, end)
    if context.spaces and context.holds_space:
        context.spaces = NO_TEXTS
    context.cur.pos = end
    return True


def is_accepted_close(context: ReaderContext) -> bool:
    """True if the Format accepts the bracket at the cursor as a surplus one, which free text drops."""
    closes = context.program.states[context.program.content].literals
    return context.cur.text[context.cur.pos] in closes.tags


def check_spelling(context: ReaderContext, syntax: CallSyntax, start: int, end: int) -> None:
    """Report a marker that the renderer would have spelled in another way."""
    variants = syntax.variants
    if variants and context.cur.text[start:end] in variants:
        context.report("variant_spelling", start, end)
