"""Advice about each diagnostic: if a call is lost, if it may be run, and what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...formats._registry import markers
from ..machine.call_state import RECOVERING, STATUS_DIAGNOSTICS

if TYPE_CHECKING:
    from ...messages import Diagnostic

__all__ = ["ADVICE", "LOST", "advice_for", "may_be_run"]

_WRONG_FORMAT: Final = "Check that the format is the model's own: guess it, or analyse the chat template."
_MODEL: Final = "The model slipped; the call may be right. If it happens often, constrain decoding with the grammar."
_RUN: Final = "Do not run a call with the status incomplete."
_CUT: Final = "If the finish reason is length, raise the limit of tokens, or ask the model for less. " + _RUN
_CLOSED: Final = (
    "The output ends with the close of a call, so it was not cut, and more tokens do not help: the model left a "
    "quotation mark, a bracket or a tag open. "
) + _RUN
_SURPLUS: Final = "Nothing is lost: the model wrote a close too many."
_PROMPT: Final = "If the prompt opens the reasoning, give it: --prompt FILE."
_TOKENS: Final = "Give the parser the token ids and the whole tokenizer."

ADVICE: Final[dict[str, str]] = {
    "ambiguous_marker": _TOKENS,
    "argument_without_value": _MODEL,
    "broken_arguments": _MODEL,
    "broken_header": "Nothing is lost. " + _MODEL,
    "broken_json": "The values after this place may be lost. " + _MODEL,
    "broken_key": _MODEL,
    "call_like_text": "If it should be a call, give the offered tools, and see if the format is the model's own, "
    "or one of the two that it writes: a Format takes both.",
    "doubled_close": _MODEL,
    "doubled_open": _MODEL,
    "dropped_call": "A policy of yours did this: change it if you want to see the call.",
    "empty_calls": "Nothing is lost.",
    "end_token": "Let the server stop at this token, or give the parser the token ids.",
    "fenced_call": "If the model only shows calls in fences, set quoted_calls=content.",
    "foreign_marker": _WRONG_FORMAT,
    "held_too_long": "Raise max_held if the output is not an attack.",
    "incomplete_call": _CUT,
    "incomplete_header": _CUT,
    "invalid_json": "Send the error back to the model, set the policy repair, or constrain decoding with the grammar.",
    "markup_in_value": "Look if the value is what the model meant. It is, if it is text about this markup.",
    "missing_close": _MODEL,
    "missing_open": _MODEL,
    "misspelled_close": _MODEL,
    "nested_too_deep": "The output is broken or made to break parsers.",
    "quoted_call": "If it should be a call, set quoted_calls=call, or give the parser the token ids.",
    "repeated_key": "Check which value was meant: your client takes the last. Do not train on it.",
    "stray_close": "Nothing is lost if it closes a call. " + _PROMPT,
    "stray_text": _MODEL,
    "text_between_arguments": _MODEL,
    "uncertified_arguments": "Check the arguments, or fix the chat template.",
    "unclosed_call": "Nothing is lost. A stop string may have ended the output; do not train on it otherwise.",
    "unclosed_message": "Nothing is lost.",
    "unclosed_object": _MODEL,
    "unclosed_reasoning": "The model may have run into the limit of tokens while it thought.",
    "unescaped_backslash": "Look at the path. " + _MODEL,
    "unescaped_quote": "Look at the value. " + _MODEL,
    "unproven_call": "Look if the text only quotes the call: token ids cannot prove calls of this format.",
    "unquoted_value": "Look at the value. " + _MODEL,
    "unknown_token": _WRONG_FORMAT,
    "unusual_name": "Pass the tools that were offered: then the status of the call says if it names one of them.",
    "unread_marker": "If it should be markup, the model misspelled it. " + _WRONG_FORMAT,
    "unused_member": "Look if the tool needs it, and tell the model the parameters of the tool.",
    "variant_spelling": "Nothing, unless the status of the call says more.",
}
"""Code → advice."""

_IF_REAL: Final = "if it was meant as one"
LOST: Final[dict[str, str]] = {
    "broken_json": "the next one, if it is inside a string that does not end",
    "call_like_text": _IF_REAL,
    "dropped_call": "yes",
    "foreign_marker": _IF_REAL,
    "held_too_long": _IF_REAL,
    "incomplete_call": "if it had no name yet",
    "incomplete_header": "if it had no name yet",
    "markup_in_value": "if the value took it in",
    "quoted_call": _IF_REAL,
    "unread_marker": _IF_REAL,
}
"""Code → when a call is missing in the message. The other codes lose none."""

_TO_CHECK: Final = frozenset({"fenced_call", "uncertified_arguments", "unproven_call", "unusual_name"})
"""Codes of calls that may be wrong although their status is ``ok``."""


def may_be_run(code: str) -> str:
    """Return if the call that a diagnostic is about may be run, in a few words."""
    if (status := next((status for status, own in STATUS_DIAGNOSTICS.items() if own == code), None)) is not None:
        return f"no: `{status}`"
    if code in RECOVERING:
        return "after a look: at best `recovered`"
    return "after a look" if code in _TO_CHECK else "if `ok`"


_TAIL: Final = 400
_LAST: Final = re.compile(r"(?:(?:<[^<>\n]{1,64}>|\[/[A-Z_]{2,64}\])\s*){1,4}\Z")
"""The tags that an output ends with: the close of a call, and special tokens after it."""
_TAG: Final = re.compile(r"<[^<>\n]+>|\[/[A-Z_]+\]")
_OPENERS: Final = (("/", ""), ("end", "begin"), ("end", "start"))
"""How the names of closing markers differ from those of opening ones."""


def advice_for(diagnostic: Diagnostic, output: str) -> str:
    """Return the advice about a diagnostic of an output."""
    code = diagnostic.code
    if code == "stray_close":
        return _PROMPT if "reasoning" in markers().get(diagnostic.text.strip(), "") else _SURPLUS
    return _CLOSED if code == "incomplete_call" and _ends_with_close(output) else ADVICE[code]


def _ends_with_close(output: str) -> bool:
    """True if an output ends with what closes calls: an opening marker of calls has the same name."""
    found = _LAST.search(output[-_TAIL:])
    tags = _TAG.findall(found.group()) if found else []
    openers = (tag.replace(close, opener, 1) for tag in tags for close, opener in _OPENERS if close in tag)
    return any("calls" in markers().get(opener, "") for opener in openers)
