"""Reads what follows tentative calls, which decides if they are calls (``tentative_calls.py``)."""

from __future__ import annotations

import re
from typing import Final

from . import rules
from .context import ReaderContext
from .free_text import FreeText
from .lexer import WS
from .modes import READ_AFTER_TENTATIVE_CALLS, READ_CALL
from .program import IN_REASONING
from .signals import MORE, NO_MATCH
from .tentative_calls import ALONE, IN_REASONING_TEXT, QUOTED, TentativeCalls

_MOST_OF_LINE: Final = 256
"""Characters of a line in which the end of a quotation is looked for. No quotation seen is longer; beyond them
the calls count."""
_ENDS_QUOTATION: Final = "\n<{["
"""Characters at which the end of a quotation is no longer looked for."""
_CLOSE_TAGS: Final = re.compile(r"(?:</[^<>`\n]{1,64}>){0,3}")
"""Close tags of another format: no marker of one is longer than 64 characters, and a call has at most three."""
_CLOSE_TAGS_BEGUN: Final = re.compile(r"(?:</[^<>`\n]{1,64}>){0,3}(?:<(?:/[^<>`\n]{0,64})?)?\Z")


def read_after_calls(context: ReaderContext, text: FreeText) -> int:
    """Read what follows tentative calls. Those inside reasoning stay calls before another call, the close of
    reasoning, the end of the turn and the end of the output, which may cut a close. Before anything else they were
    reasoning."""
    tentative = context.tentative
    assert tentative is not None
    cur = context.cur
    if tentative.kind == ALONE:
        return _read_after_lone_calls(context, text, tentative)
    if tentative.kind == QUOTED:
        return _read_after_quoted_calls(context, text, tentative)
    cur.pos = cur.spaces()
    if cur.pos >= len(cur.text):
        return MORE
    state = context.speculation.origin
    end = state.literals.at(cur.text, cur.pos, cur.final)
    if end < 0:
        if not cur.final:
            return end
        rest = cur.text[cur.pos :].rstrip(WS)
        # A close that is a sentence begins as any other, and one that is a special token cannot be cut.
        closes = (
            len(rest) > 1
            and not rest[0].isalnum()
            and any(
                close.startswith(rest)
                and state.rules[tag].kind == rules.CLOSE_REASONING
                and not context.is_special(close)
                for close, tag in state.literals.tags.items()
            )
        )
        if not (closes or text.is_cut_close(rest)) or not accept(context, text, tentative):
            return end
        mode = text.leave_calls(True)
        if closes:
            text.drop("stray_close", len(cur.text))
        return mode
    if context.checks_ids and not context.may_be_marker(cur.pos, end):
        return NO_MATCH
    rule = state.rules[state.literals.tags[cur.text[cur.pos : end]]]
    if rule.kind == rules.OPEN_CALLS and tentative.close_start < 0:
        text.rule = rule
        text.marker_end = end
        return READ_CALL
    if rule.kind == rules.CLOSE_REASONING and tentative.close_start < 0:
        tentative.close_start = context.speculation.length(cur)
        tentative.close_end = tentative.close_start + end - cur.pos
        tentative.close_rule = rule
    elif rule.kind != rules.END_TURN:
        return NO_MATCH
    cur.pos = end
    return READ_AFTER_TENTATIVE_CALLS


def _read_after_quoted_calls(context: ReaderContext, text: FreeText, tentative: TentativeCalls) -> int:
    """Read the character after calls that began after a backtick: before another backtick they are a quotation.
    The close of the message and close tags of another format may come between."""
    if tentative.closing:
        return _read_to_closing_sign(context, text, tentative)
    cur = context.cur
    if cur.pos >= len(cur.text) or (not cur.final and _CLOSE_TAGS_BEGUN.match(cur.text, cur.pos) is not None):
        return MORE
    start = cur.pos
    if context.program.header is not None:
        start = context.program.header.closes.at(cur.text, cur.pos, cur.final)
        if start == MORE or (start == len(cur.text) and not cur.final):
            return MORE
        start = max(start, cur.pos)
    closes = _CLOSE_TAGS.match(cur.text, start)
    end = start if closes is None else closes.end()
    quoted = cur.text[end : end + 1] == "`" and not context.spaces
    if quoted:
        cur.pos = start
    if quoted or not accept(context, text, tentative):
        return NO_MATCH
    return text.leave_calls(True)


def _read_to_closing_sign(context: ReaderContext, text: FreeText, tentative: TentativeCalls) -> int:
    """Read the line of calls on which inline code or a quotation began: they are text if it is closed after them,
    before any sign of markup."""
    cur = context.cur
    if not any("\n" in spaces for spaces in context.spaces):
        stop = cur.pos
        while stop < len(cur.text) and stop - cur.pos < _MOST_OF_LINE and cur.text[stop] not in _ENDS_QUOTATION:
            if cur.text[stop] == tentative.closing:
                return NO_MATCH
            stop += 1
        if stop >= len(cur.text) and not cur.final:
            return MORE
    return text.leave_calls(True) if accept(context, text, tentative) else NO_MATCH


def _read_after_lone_calls(context: ReaderContext, text: FreeText, tentative: TentativeCalls) -> int:
    """Read what follows calls without a marker: a new line, the end of the turn or that of the output."""
    cur = context.cur
    end = cur.spaces()
    if end > cur.pos:
        context.hold_space(end)
    if not any("\n" in spaces for spaces in context.spaces):
        if cur.pos >= len(cur.text):
            return MORE
        end = context.program.output_end.at(cur.text, cur.pos, cur.final)
        if end < 0 or not context.may_be_marker(cur.pos, end):
            return MORE if end == MORE else NO_MATCH
    return text.leave_calls(True) if accept(context, text, tentative) else NO_MATCH


def accept(context: ReaderContext, text: FreeText, tentative: TentativeCalls) -> bool:
    """Emit tentative calls, as far as the call policy keeps them. False if it turns them into text, or if a call
    is not whole that has no marker, follows a backtick or is to be shown."""
    if (tentative.kind != IN_REASONING_TEXT or context.shows_cut_calls) and not context.calls[-1].whole:
        return False
    kept = tentative.decide(context.call_policy, context.calls, context.ledger)
    if kept is None:
        text.has_policy_text = True
        return False
    context.calls = kept
    context.speculation.end()
    context.tentative = None
    context.receiver = tentative.out
    if context.state.region == IN_REASONING:
        context.receiver.reasoning_end()
    tentative.emit(kept)
    context.state = context.program.states[context.program.content]
    return True
