"""Run streams through untemplate's public interface, so that two versions can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import untemplate
from untemplate import OutputParser


class Vocabulary:
    """A tokenizer with the methods that untemplate needs."""

    def __init__(self, ids: dict[str, int]) -> None:
        self._ids = ids

    def get_vocab(self) -> dict[str, int]:
        return self._ids


@lru_cache(maxsize=64)
def text_parser(format: str, reasoning: str | None) -> OutputParser:
    return OutputParser.named(format, reasoning=reasoning)


def ids_parser(stream: dict[str, Any]) -> OutputParser:
    tokenizer = Vocabulary(stream["vocabulary"])
    return OutputParser.named(stream["format"], reasoning=stream["reasoning"], tokenizer=tokenizer)


class Reader:
    """One stream with untemplate's parser for its format."""

    name = "untemplate"
    kind = "untemplate"

    def __init__(self, stream: dict[str, Any]) -> None:
        self._deltas = [(text, ids) for text, ids in stream["deltas"]]
        self._tools = stream["tools"]
        self._whole = stream["way"].startswith("whole")
        self._ids = any(ids for _, ids in self._deltas)
        self._parser = ids_parser(stream) if self._ids else text_parser(stream["format"], stream["reasoning"])

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        if self._whole:
            return self._parse_whole
        opened = self._parser.stream(tools=self._tools)
        deltas, with_ids = self._deltas, self._ids

        def run(take: Callable[[Any], object] | None) -> None:
            feed = opened.feed
            if take is not None:
                for text, ids in deltas:
                    take(feed(text, ids))
                take(opened.finish())
                return
            if with_ids:
                for text, ids in deltas:
                    feed(text, ids)
            else:
                for text, _ in deltas:
                    feed(text)
            opened.finish()

        return run

    def _parse_whole(self, take: Callable[[Any], object] | None) -> None:
        text, ids = self._deltas[0]
        parsed = self._parser.parse(text, tools=self._tools, token_ids=ids)
        if take is not None:
            take(parsed)

    def message(self, results: list[Any]) -> dict[str, Any]:
        if self._whole:
            parsed = results[0]
            calls = [(call.function.name, call.function.arguments) for call in parsed.tool_calls]
            return {"reasoning": parsed.reasoning_content, "content": parsed.content, "calls": calls}
        reasoning, content = "", ""
        parts: dict[int, list[str]] = {}
        for delta in (delta for deltas in results for delta in deltas):
            reasoning += delta.reasoning or ""
            content += delta.content or ""
            for call in delta.tool_calls or ():
                part = parts.setdefault(call.index, ["", ""])
                part[0] += call.function.name or ""
                part[1] += call.function.arguments or ""
        return {"reasoning": reasoning, "content": content, "calls": [parts[index] for index in sorted(parts)]}


def version() -> dict[str, str]:
    compiled = ", compiled" if getattr(untemplate, "COMPILED", False) else ""  # older checkouts do not say
    return {"name": "untemplate", "version": untemplate.__version__ + compiled, "file": untemplate.__file__}


def candidates(stream: dict[str, Any]) -> Iterator[Reader]:
    yield Reader(stream)
