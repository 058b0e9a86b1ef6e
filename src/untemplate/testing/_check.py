"""Test all laws on one case, and the fluent interface for writing a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._internal.output_parser import OutputParser
from ..format import Format
from ..messages import ParsedOutput
from ..policy import Policy
from ._message import expect, round_trip, sound
from ._prompts import start_states
from ._splits import no_tools, splits, truncations
from ._subject import Subject
from ._tokens import token_ids


def check(
    format: Format | str | OutputParser,
    raw: str,
    expected: ParsedOutput | Mapping[str, Any] | None = None,
    *,
    tools: Sequence[Any] | None = None,
    tool_choice: Any = None,
    prompt: str | None = None,
    prefill: str = "",
    messages: Sequence[Any] | None = None,
    reasoning: str | None = None,
    finish_reason: str = "stop",
    policy: Policy | None = None,
    tokenizer: Any = None,
    special_tokens: Sequence[str] | None = None,
    exhaustive: bool = False,
    cuts: int = 160,
    roundtrip: bool = True,
) -> ParsedOutput:
    """Parse ``raw``, compare the result with ``expected``, and test every law.

    Args:
        format: a Format, a name from the catalogue, or a parser (whose Format and policy count).
        raw: the output of the model, special tokens included.
        expected: the message, compared character by character. A mapping may have ``reasoning``, ``content`` (missing
            ones must be empty), ``tool_calls`` (``(name, arguments)`` or ``(name, arguments, status)``; arguments that
            are not a str are compared as JSON, the default status is ``ok``), ``finish_reason`` and ``diagnostics``
            (the codes, in order). ``None``: test the laws only.
        tools, tool_choice, prompt, prefill, messages, policy: as in :meth:`OutputParser.stream`.
        reasoning: as in :meth:`OutputParser.named`.
        finish_reason: the engine's.
        tokenizer: a tokenizer with ``get_vocab()`` and ``encode(text, add_special_tokens=False)`` for the laws about
            token ids; the default keeps special tokens whole and cuts everything else into small pieces.
        special_tokens: the markers that are one token (default: the Format's).
        exhaustive: try every split in two and every prefix, even of long outputs.
        cuts: most splits and prefixes to try otherwise.
        roundtrip: render the message again and parse that.

    Returns:
        The message of the whole output.

    Raises:
        LawBroken: (an AssertionError) the message differs, or a law is broken.
        ValueError: a name that the catalogue does not have, or an unknown key in ``expected``.
    """
    subject = Subject(
        format,
        raw,
        reasoning,
        special_tokens,
        {
            "tools": tools,
            "tool_choice": tool_choice,
            "prompt": prompt,
            "prefill": prefill,
            "messages": messages,
            "policy": policy,
        },
        finish_reason,
        None if exhaustive else cuts,
    )
    whole = subject.whole
    if expected is not None:
        expect(subject, expected)
    sound(subject, prefill + raw, whole, "whole")
    splits(subject)
    truncations(subject)
    no_tools(subject)
    token_ids(subject, tokenizer)
    start_states(subject)
    if roundtrip:
        round_trip(subject)
    assert whole.result is not None
    return whole.result


class Case:
    """A case, written step by step: :func:`case` begins it and :meth:`check` runs it.

    Parts of the message that are not given are expected to be empty.
    """

    def __init__(self, format: Format | str | OutputParser, reasoning: str | None = None) -> None:
        self._format = format
        self._raw = ""
        self._context: dict[str, Any] = {} if reasoning is None else {"reasoning": reasoning}
        self._expected: dict[str, Any] = {}
        self._calls: list[tuple[str, Any, str]] = []

    def raw(self, text: str) -> Case:
        """Set the output of the model."""
        self._raw = text
        return self

    def tools(self, tools: Sequence[Any] | None) -> Case:
        """Set the tools that were offered."""
        return self.with_(tools=tools)

    def prompt(self, prompt: str) -> Case:
        """Set the prompt."""
        return self.with_(prompt=prompt)

    def policy(self, **settings: Any) -> Case:
        """Set fields of :class:`~untemplate.policy.Policy`."""
        return self.with_(policy=Policy(**settings))

    def with_(self, **context: Any) -> Case:
        """Set any other argument of :func:`check`."""
        self._context.update(context)
        return self

    def reasoning(self, text: str) -> Case:
        """Expect this reasoning, compared character by character."""
        self._expected["reasoning"] = text
        return self

    def content(self, text: str) -> Case:
        """Expect this content, compared character by character."""
        self._expected["content"] = text
        return self

    def call(self, name: str, arguments: Any) -> Case:
        """Expect this call next. Arguments that are a str are compared character by character, others as JSON."""
        self._calls.append((name, arguments, "ok"))
        return self

    def status(self, status: str) -> Case:
        """Expect this status of the last call; the default is ``ok``.

        Raises:
            ValueError: there is no call yet.
        """
        if not self._calls:
            raise ValueError("status() needs a call() before it")
        self._calls[-1] = (*self._calls[-1][:2], status)
        return self

    def finish(self, reason: str, expected: str | None = None) -> Case:
        """Set the engine's finish reason and the expected one."""
        if expected is not None:
            self._expected["finish_reason"] = expected
        return self.with_(finish_reason=reason)

    def diagnostics(self, *codes: str) -> Case:
        """Expect these codes, in order."""
        self._expected["diagnostics"] = list(codes)
        return self

    def check(self, **settings: Any) -> ParsedOutput:
        """Run :func:`check` on the case; its other arguments may be given."""
        return check(
            self._format, self._raw, {**self._expected, "tool_calls": self._calls}, **{**self._context, **settings}
        )


def case(format: Format | str | OutputParser, reasoning: str | None = None) -> Case:
    """Begin a case for a Format, a name from the catalogue (``reasoning`` names another family's reasoning), or a
    parser."""
    return Case(format, reasoning)
