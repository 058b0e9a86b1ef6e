"""Diagnostics of a parsed output: every code, and its message."""

from __future__ import annotations

from typing import Final, Literal

DiagnosticCode = Literal[
    "ambiguous_marker",
    "argument_without_value",
    "broken_arguments",
    "broken_header",
    "broken_json",
    "broken_key",
    "doubled_close",
    "dropped_call",
    "foreign_marker",
    "held_too_long",
    "incomplete_call",
    "incomplete_header",
    "invalid_json",
    "missing_close",
    "missing_open",
    "misspelled_close",
    "nested_too_deep",
    "stray_close",
    "stray_text",
    "text_between_arguments",
    "uncertified_arguments",
    "unclosed_object",
    "unclosed_reasoning",
    "unescaped_quote",
    "unquoted_value",
    "unused_member",
]
"""A stable name for one kind of problem. A code that is not in this list is a type error where it is reported."""

DIAGNOSTICS: Final[dict[DiagnosticCode, str]] = {
    "ambiguous_marker": "one stretch of text has more markers than token ids for them; all were taken as markers",
    "argument_without_value": "an argument's name came without a value",
    "broken_arguments": "the call was closed while its arguments were still open",
    "broken_header": "a message header began again before it had ended",
    "broken_json": "the arguments stop being valid JSON; the rest of the call is passed on as written",
    "broken_key": "an argument's name was not closed; it was dropped",
    "doubled_close": "a value's close came twice; the second one was dropped",
    "dropped_call": "a policy dropped a call",
    "foreign_marker": "content holds a marker of another format",
    "held_too_long": "text that could still become a call grew longer than max_held; it was passed on as text",
    "incomplete_call": "the output ended inside a call",
    "incomplete_header": "the output ended inside a message header",
    "invalid_json": "the arguments are not valid JSON",
    "missing_close": "a value was not closed; it ends where the next argument or the end of the call begins",
    "missing_open": "a value was not opened; the text up to its close is the value",
    "misspelled_close": "a value's close was misspelled",
    "nested_too_deep": "elements are nested too deep; those in the innermost one that is read are its text",
    "stray_close": "a closing marker with nothing to close was dropped",
    "stray_text": "punctuation between the arguments and the end of the call was dropped",
    "text_between_arguments": "text between arguments was dropped",
    "uncertified_arguments": "the call needs an ability that the certificate of the format denies",
    "unclosed_object": "the object that holds the call was not closed",
    "unclosed_reasoning": "reasoning began again after content, and the output ended in it",
    "unescaped_quote": "a quote inside a string was not escaped; it is part of the string",
    "unquoted_value": "a value without quotes is no literal; its text was taken as a string",
    "unused_member": "an object member next to the arguments was dropped",
}
