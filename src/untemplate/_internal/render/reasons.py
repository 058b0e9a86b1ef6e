"""The closed list of reasons why a message cannot be written in a Format.

A reason names a property of the message that this Format cannot express, never a fault of the parser.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["REASONS", "Inexpressible"]


class Inexpressible(StrEnum):
    """A reason why a message cannot be written. The value is a stable code; :attr:`sentence` explains it."""

    NO_REASONING = "no_reasoning"
    NO_CALLS = "no_calls"
    UNKNOWN_TOOL = "unknown_tool"
    PARALLEL_CALLS = "parallel_calls"
    CONTENT_WITH_CALLS = "content_with_calls"
    OUTER_WHITE_SPACE = "outer_white_space"
    MARKER_IN_REASONING = "marker_in_reasoning"
    MARKER_IN_CONTENT = "marker_in_content"
    LOOKS_LIKE_A_CALL = "looks_like_a_call"
    NAME_CHARACTERS = "name_characters"
    ID_CHARACTERS = "id_characters"
    NOT_AN_OBJECT = "not_an_object"
    KEY_CHARACTERS = "key_characters"
    MARKER_IN_VALUE = "marker_in_value"
    VALUE_NEWLINES = "value_newlines"
    VALUE_TYPE = "value_type"
    UNCERTIFIED = "uncertified"

    @property
    def sentence(self) -> str:
        """Explanation in one sentence."""
        return REASONS[self]


REASONS: Final[dict[Inexpressible, str]] = {
    Inexpressible.NO_REASONING: "the format has no place for reasoning",
    Inexpressible.NO_CALLS: "the format has no calls, or no tools are offered",
    Inexpressible.UNKNOWN_TOOL: "this format has calls to offered tools only, and this tool is not offered",
    Inexpressible.PARALLEL_CALLS: "the format writes one call a turn",
    Inexpressible.CONTENT_WITH_CALLS: "calls without a marker cannot follow content",
    Inexpressible.OUTER_WHITE_SPACE: "white space at the edge of a text touches a marker and belongs to it",
    Inexpressible.MARKER_IN_REASONING: "the reasoning holds a marker that would be read as one",
    Inexpressible.MARKER_IN_CONTENT: "the content holds a marker that would be read as one",
    Inexpressible.LOOKS_LIKE_A_CALL: "the content begins like a call without a marker",
    Inexpressible.NAME_CHARACTERS: "the tool's name holds text that would end it or a character that no name may hold",
    Inexpressible.ID_CHARACTERS: "the call's id holds text that would end it",
    Inexpressible.NOT_AN_OBJECT: "the arguments are not a JSON object",
    Inexpressible.KEY_CHARACTERS: "an argument's name holds text that would end it, or a character not allowed there",
    Inexpressible.MARKER_IN_VALUE: "an argument's text holds text that would end it",
    Inexpressible.VALUE_NEWLINES: "newlines at the edge of an argument's text belong to its tags",
    Inexpressible.VALUE_TYPE: "an argument's text would be read as another type: without a schema it is a string",
    Inexpressible.UNCERTIFIED: "a call needs an ability that the certificate of the inferred format denies",
}
"""Every reason with its explanation."""
