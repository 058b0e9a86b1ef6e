"""Headers of messages that reasoning quotes, in 16 contexts: with token ids none is called, without them a header ends
the reasoning only where it begins a line or a sentence, or has two parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from untemplate import OutputParser
from untemplate._internal.backends.quotations import TOOLS, WRITERS, sample_of
from untemplate.format import Format
from untemplate.formats import entries

from .test_tokens import spelled

CONTEXTS: Final[Mapping[str, Callable[[str], str]]] = {
    **WRITERS,
    "a list item": lambda call: f"I see:\n- {call}\n- that.",
    "after a colon": lambda call: f"It says: {call} and so on.",
    "brackets": lambda call: f"It says ({call}) there.",
}
BEGINS: Final = {"lines of its own", "an unknown XML element", "a fence", "a fence with a language", "after a colon"}
"""Contexts in which a line or a sentence begins before the header."""
TWO_PARTS: Final = BEGINS | {"prose", "a list item", "brackets"}
"""Contexts in which nothing but two parts show that a header is one."""
FORMATS: Final = {
    entry.name: entry.format
    for entry in entries()
    if entry.format.channels is not None and entry.format.channels.has_reasoning and sample_of(entry.format)
}


def outputs(fmt: Format, *, whole: bool) -> dict[str, tuple[str, str, str]]:
    """Return outputs whose reasoning quotes a call, by context: what comes before it, the quotation, and the rest.
    ``whole``: with the opener of the message, which the prompt ends in otherwise."""
    assert fmt.channels is not None
    parser = OutputParser.from_format(fmt)
    before, _, after = parser.render({"role": "assistant", "reasoning": "§", "content": "Done."}).partition("§")
    sample = sample_of(fmt)
    assert sample is not None
    call = sample[1]
    front = fmt.channels.open.text
    if whole and not call.startswith(front):
        call = front + fmt.channels.role + (" " if call.startswith("to=") else "") + call
    return {name: (before, write(call), after) for name, write in CONTEXTS.items()}


def test_the_formats() -> None:
    assert {"gpt-oss", "solar_open", "inkling", "muse"} <= set(FORMATS)
    assert len(CONTEXTS) == 16


@pytest.mark.parametrize("whole", [False, True], ids=["header", "with its opener"])
@pytest.mark.parametrize("name", FORMATS)
def test_without_ids(name: str, whole: bool) -> None:
    fmt = FORMATS[name]
    parser = OutputParser.from_format(fmt)
    called = set()
    for context, parts in outputs(fmt, whole=whole).items():
        parsed = parser.parse("".join(parts), tools=TOOLS)
        if parsed.tool_calls:
            called.add(context)
            assert parsed.diagnostics, context
    assert called <= (TWO_PARTS if whole else BEGINS)


@pytest.mark.parametrize("whole", [False, True], ids=["header", "with its opener"])
@pytest.mark.parametrize("name", FORMATS)
def test_with_ids(name: str, whole: bool) -> None:
    """The quotation is spelled by ordinary tokens, and stays reasoning to the letter."""
    fmt = FORMATS[name]
    for context, (before, quotation, after) in outputs(fmt, whole=whole).items():
        parser, pieces, ids = spelled(fmt, quotation)
        stream = parser.stream(collect=True, tools=TOOLS)
        for part, is_spelled in ((before, False), (quotation, True), (after, False)):
            if is_spelled:
                for piece, new in zip(pieces, ids, strict=True):
                    stream.feed(piece, new)
            else:
                stream.feed(part, [parser.token_id(text) or 0 for text in _tokens(fmt, part)])
        stream.finish()
        parsed = stream.result()
        assert (parsed.tool_calls, parsed.content) == ([], "Done."), context
        assert (parsed.reasoning or "").strip() == quotation.strip(), context


def _tokens(fmt: Format, text: str) -> list[str]:
    """Return the special tokens in a text, in their order."""
    found = []
    while text:
        token = next((one for one in sorted(fmt.special_tokens, key=len, reverse=True) if text.startswith(one)), "")
        found += [token] if token else []
        text = text[len(token) or 1 :]
    return found
