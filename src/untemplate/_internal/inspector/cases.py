"""A case: one raw output, and what the request of it knew. The pages send it, and links and files hold it."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ...policy import Policy
from ..output_parser import OutputParser
from ..stream import Stream

MAX_TEXT: Final = 500_000
"""Most characters of an output."""

Token = tuple[int, str]


class Case(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One raw output and its request; at most one of ``format``, ``template`` and ``model`` is given."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] = ""
    format: str = ""
    template: str = ""
    model: str = ""
    tools: list[Any] | None = None
    prompt: str | None = None
    finish_reason: str = "stop"
    policy: dict[str, Any] = {}
    tokens: list[Token] = []
    """Token ids of the output with their texts; empty if they are not known."""


def pieces(case: Case) -> list[tuple[str, list[int]]]:
    """Return the output as it came: by tokens where they are known, else by characters."""
    if case.tokens:
        return [(text, [token]) for token, text in case.tokens]
    return [(character, []) for character in case.text]


def parser_for_tokens(parser: OutputParser, case: Case, policy: Policy) -> OutputParser:
    """Return a parser of the same Format with this policy, which knows the special tokens of the case by their ids."""
    known = set(parser.format.special_tokens)
    special = {text: token for token, text in case.tokens if text in known}
    tokenizer = _Vocabulary(special) if special else None
    return OutputParser.from_format(parser.format, tokenizer=tokenizer, policy=policy)


class _Vocabulary:
    """A tokenizer that knows special tokens only."""

    def __init__(self, ids: dict[str, int]) -> None:
        self._ids = ids

    def get_vocab(self) -> dict[str, int]:
        return self._ids


def open_stream(parser: OutputParser, case: Case) -> Stream:
    """Return a stream for the output of a case. Calls have the same ids every time.

    Raises:
        ValueError: the tools are not tools.
    """
    return parser.stream(tools=case.tools, prompt=case.prompt, collect=True, spans=True, seed="untemplate")


def same_result(stream: Stream) -> tuple[Any, ...]:
    """Return what must be the same for every split of an output."""
    result = stream.result()
    statuses = [call.status for call in result.tool_calls]
    notes = [(d.code, d.start, d.end) for d in result.diagnostics]
    return result.message(), result.finish_reason, statuses, notes
