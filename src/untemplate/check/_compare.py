"""Compares the message that came with the one that was expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._internal.jsontext.equality import equal_texts
from ._model import Call, Message, Observation, Verdict, json_of


def is_object(text: str) -> bool:
    """True if a text is a whole JSON object."""
    return isinstance(json_of(text), dict)


def compare(expected: Message, got: Message) -> tuple[Verdict, str]:
    """Return the verdict, and the first difference in one line.

    Arguments are equal if they are equal as JSON. Texts that differ in outer white space only are a soft difference.
    """
    for reason in _differences(expected, got):
        return "fail", reason
    for name in ("reasoning", "content"):
        if getattr(expected, name) != getattr(got, name):
            return "soft", f"{name} differs in outer white space"
    return "pass", ""


def _differences(expected: Message, got: Message) -> Iterator[str]:
    if len(expected.calls) != len(got.calls):
        yield f"{_calls(len(expected.calls))} expected, {_calls(len(got.calls))} came"
    for i, (wanted, found) in enumerate(zip(expected.calls, got.calls, strict=False)):
        if wanted.name != found.name:
            yield f"call {i} is named {found.name!r}, expected {wanted.name!r}"
        if not equal_texts(wanted.arguments, found.arguments):
            yield f"the arguments of call {i} differ: {_apart(wanted.arguments, found.arguments)}"
    for name in ("reasoning", "content"):
        wanted_text, found_text = getattr(expected, name).strip(), getattr(got, name).strip()
        if wanted_text != found_text:
            yield f"{name} differs: {_apart(wanted_text, found_text)}"
    if expected.finish_reason != got.finish_reason:
        yield f"finish_reason is {got.finish_reason!r}, expected {expected.finish_reason!r}"


def _calls(count: int) -> str:
    return f"{count or 'no'} call{'' if count == 1 else 's'}"


def _apart(wanted: str, found: str) -> str:
    """Show two texts from shortly before the place where they part."""
    at = next((i for i, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b), min(len(wanted), len(found)))
    start = max(0, at - 20)
    return f"{found[start : at + 40]!r} came, {wanted[start : at + 40]!r} expected"


def first_difference(expected: Message, observed: Observation) -> dict[str, Any] | None:
    """Return the first delta of a stream after which it can no longer become the expected message, with its index."""
    texts = {"reasoning": "", "content": ""}
    calls: list[list[str]] = []
    for index, delta in enumerate(observed.deltas):
        texts["reasoning"] += delta.get("reasoning_content") or delta.get("reasoning") or ""
        texts["content"] += delta.get("content") or ""
        for part in delta.get("tool_calls") or ():
            while len(calls) <= (part.get("index") or 0):
                calls.append(["", ""])
            function = part.get("function") or {}
            call = calls[part.get("index") or 0]
            call[0] += function.get("name") or ""
            call[1] += function.get("arguments") or ""
        if not _on_the_way(expected, texts, calls):
            return {"index": index, "delta": delta}
    return None


def _on_the_way(expected: Message, texts: dict[str, str], calls: list[list[str]]) -> bool:
    for name, text in texts.items():
        if not getattr(expected, name).strip().startswith(text.strip()):
            return False
    return len(calls) <= len(expected.calls) and all(
        wanted.name == name and _packed(wanted).startswith("".join(arguments.split()))
        for wanted, (name, arguments) in zip(expected.calls, calls, strict=False)
    )


def _packed(call: Call) -> str:
    return "".join(call.arguments.split())
