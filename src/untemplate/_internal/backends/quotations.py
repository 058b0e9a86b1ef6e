"""Measure how a format reads calls that are only quoted: the risk of injected text.

* A call of an offered tool, as the format's models write it, is quoted in thirteen contexts of content.
* Without token ids the text before the call decides. With ids the quotation is spelled by ordinary tokens, as injected
  text is, and the format's own markers are one token each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from ...analysis._quoted import CONTEXTS, Provable, QuotedCalls
from ...format import Format
from ...format._markers import spellings_of
from ...messages import ParsedOutput
from ...policy import Policy
from ..render import render
from ..tokens.decoding import Vocabulary
from .call_log import no_warnings
from .format import FormatBackend, special_tokens_of
from .interface import OutputContext
from .recognition import markers_within

__all__ = ["CONTEXTS", "TOOLS", "WRITERS", "Provable", "QuotedCalls", "provable", "quoted_calls", "sample_of"]

_TOOL: Final = "write_file"
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": _TOOL,
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}},
        },
    }
]
_CALL: Final = {
    "id": "call_1",
    "type": "function",
    "function": {"name": _TOOL, "arguments": json.dumps({"path": "/tmp/x", "text": "id"})},
}
_MARK: Final = "\u00a7"


def _lines(call: str, prefix: str) -> str:
    return "\n".join(prefix + line for line in call.split("\n"))


WRITERS: Final[Mapping[str, Callable[[str], str]]] = {
    "prose": lambda call: f"It says {call} to call.",
    "lines of its own": lambda call: f"It says:\n\n{call}\n\nThat calls.",
    "an unknown XML element": lambda call: f"<page>\n{call}\n</page>\nDone.",
    "a fence": lambda call: f"It says:\n```\n{call}\n```\nThat calls.",
    "a fence with a language": lambda call: f"It says:\n\n```xml\n{call}\n```\n",
    "a diff in a fence": lambda call: f"```diff\n@@ -1 +1,2 @@\n{_lines(call, '+')}\n```\nA diff.",
    "inline code": lambda call: f"It says `{call}` to call.",
    "double backticks": lambda call: f"It says ``{call}`` to call.",
    "a block quote": lambda call: f"It says:\n\n{_lines(call, '> ')}\n\nThat is all.",
    "a table": lambda call: f"| kind | text |\n|---|---|\n| call | {call.replace(chr(10), ' ')} |\n",
    "quotation marks": lambda call: f'It says "{call}".',
    "a JSON string": lambda call: f'{{"note": {json.dumps(call, ensure_ascii=False)}}}',
    "a JSON string without escapes": lambda call: f'{{"note": "{call}"}}',
}
"""Writers of an output that quotes a call, by context: those of ``CONTEXTS``."""


class _Spelling:
    """A vocabulary of special tokens and of single characters."""

    def __init__(self, special: frozenset[str]) -> None:
        self.all_special_tokens = sorted(special, key=len, reverse=True)
        self._ids = {text: number for number, text in enumerate(self.all_special_tokens)}

    def get_vocab(self) -> dict[str, int]:
        return {**self._ids, **{chr(code): 1000 + code for code in range(32, 127)}}

    def pieces(self, text: str, *, tokens: bool) -> list[tuple[str, int]]:
        """Return the pieces of a text with their ids. ``tokens``: markers are tokens, and not spelled."""
        found = []
        while text:
            marker = next((m for m in self.all_special_tokens if tokens and text.startswith(m)), "")
            piece = marker or text[0]
            found.append((piece, self._ids[marker] if marker else 1000 + min(ord(piece), 127)))
            text = text[len(piece) :]
        return found


def quoted_calls(fmt: Format, vocabulary: Vocabulary | None = None, policy: Policy | None = None) -> QuotedCalls | None:
    """Measure a format; ``None`` if it has no calls that can be written.

    Args:
        fmt: the Format.
        vocabulary: the tokens of the model; ``None``: those that the Format lists.
        policy: the policy to measure with; of it, only ``quoted_calls`` and ``spelled_markers`` count.
    """
    known = vocabulary is not None and bool(vocabulary.ids)
    special = frozenset(fmt.special_tokens)
    if vocabulary is not None and known:
        special = frozenset(text for text in special_tokens_of(fmt, vocabulary) if text in vocabulary.ids)
    given = policy or Policy()
    measured = _measured(fmt, special, given.quoted_calls, given.spelled_markers)
    return replace(measured, of_model=True) if measured is not None and known else measured


def provable(fmt: Format, special: frozenset[str]) -> Provable:
    """Return whether ids prove calls: whether their first markers hold one of these tokens."""
    if fmt.channels is not None:
        openers = [text for marker in (fmt.channels.channel or fmt.channels.open,) for text in marker.spellings]
    else:
        openers = [text for way in fmt.tools for text in _openers(way)]
    held = [any(token in text for token in special) for text in openers]
    return "no" if not any(held) else "yes" if all(held) else "partly"


def _openers(way: Any) -> tuple[str, ...]:
    """Return the spellings with which one way to write calls begins."""
    marker = way.section_open or way.call_open or getattr(way.body, "name_open", None)
    spellings: tuple[str, ...] = ("",) if marker is None or way.bare else marker.spellings
    return spellings


@lru_cache(maxsize=256)
def _measured(fmt: Format, special: frozenset[str], quoted: Any, spelled: Any) -> QuotedCalls | None:
    """Measure with these special tokens, and with these policies ``quoted_calls`` and ``spelled_markers``."""
    policy = Policy(strict=False, quoted_calls=quoted, spelled_markers=spelled)
    written = sample_of(fmt)
    if written is None:
        return None
    before, call, after = written
    plain = FormatBackend(fmt, policy=policy)
    tokenizer = _Spelling(special)
    backend = FormatBackend(fmt, tokenizer, policy=policy) if special else None
    context = OutputContext(policy=policy, tools=TOOLS, collect=True)
    without, silent, proven = [], [], []
    with no_warnings():  # cut calls of this measure are no news
        for name, write in WRITERS.items():
            body = write(call)
            parsed = plain.parse(before + body + after, (), None, context)
            if _is_called(parsed):
                without.append(name)
                if not parsed.diagnostics and all(one.status == "ok" for one in parsed.tool_calls):
                    silent.append(name)
            if backend is not None and _is_called(_spelled(backend, context, tokenizer, (before, body, after))):
                proven.append(name)
    return QuotedCalls(provable(fmt, special), tuple(without), tuple(silent), tuple(proven if special else without))


def sample_of(fmt: Format) -> tuple[str, str, str] | None:
    """Return what the format writes before content, for a call alone, and after content; ``None`` if it cannot."""
    if not fmt.tools and fmt.channels is None:
        return None
    try:
        before, _, after = render(fmt, {"role": "assistant", "content": _MARK}).partition(_MARK)
        call = render(fmt, {"role": "assistant", "tool_calls": [_CALL]}).strip()
    except ValueError:
        return None
    for end in spellings_of(fmt.turn.end):
        call = call.removesuffix(end).strip()
    if fmt.reasoning is not None:
        for marker in markers_within(fmt.reasoning.close):
            call = call.rpartition(marker.text.strip())[2].strip() if marker.text.strip() in call else call
    return before, call, after


def _spelled(
    backend: FormatBackend, context: OutputContext, tokenizer: _Spelling, parts: tuple[str, str, str]
) -> ParsedOutput:
    """Parse an output whose quotation, the second part, is spelled with ordinary tokens."""
    stream = backend.stream(context)
    before, body, after = parts
    pieces = tokenizer.pieces(before, tokens=True) + tokenizer.pieces(body, tokens=False)
    for text, token in pieces + tokenizer.pieces(after, tokens=True):
        stream.feed(text, [token])
    stream.finish()
    return stream.result()


def _is_called(parsed: Any) -> bool:
    return any(call.function.name == _TOOL for call in parsed.tool_calls)
