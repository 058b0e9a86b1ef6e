"""The modes of the machine: which reader it runs, and which mode may follow which.

Readers of free text and of headers return the mode that comes next, or a signal. After the DONE of CallReader the
machine chooses the mode.
"""

from __future__ import annotations

from typing import Final

READ_TEXT: Final = 0
READ_CALL: Final = 1
READ_TURN_END: Final = 2
READ_HEADER_START: Final = 3
READ_HEADER: Final = 4
READ_AFTER_TENTATIVE_CALLS: Final = 5
READ_EMPTY_CALLS: Final = 6

MODES: Final[dict[int, tuple[str, str, str, tuple[int, ...]]]] = {
    READ_TEXT: (
        "text",
        "FreeText",
        "content or reasoning, up to a marker",
        (READ_CALL, READ_TURN_END, READ_HEADER_START, READ_HEADER),
    ),
    READ_CALL: (
        "calls",
        "CallReader",
        "calls, and their list or section",
        (READ_TEXT, READ_HEADER_START, READ_AFTER_TENTATIVE_CALLS, READ_EMPTY_CALLS),
    ),
    READ_TURN_END: (
        "turn end",
        "Runner",
        "what follows a special token that may end the output",
        (READ_TEXT,),
    ),
    READ_HEADER_START: (
        "header start",
        "HeaderReader",
        "white space before a message header",
        (READ_TEXT, READ_HEADER),
    ),
    READ_HEADER: (
        "header",
        "HeaderReader",
        "a message header",
        (READ_TEXT, READ_CALL),
    ),
    READ_AFTER_TENTATIVE_CALLS: (
        "after tentative calls",
        "read_after_calls",
        "what follows tentative calls",
        (READ_TEXT, READ_CALL, READ_HEADER_START),
    ),
    READ_EMPTY_CALLS: (
        "empty calls",
        "read_empty_calls",
        "markers of calls without a call",
        (READ_TEXT,),
    ),
}
"""Mode → (name, the class or function that reads, what it reads, modes that may follow)."""
