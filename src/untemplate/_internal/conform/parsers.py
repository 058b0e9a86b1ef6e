"""Parsers to run: untemplate's own, and any program that reads and writes lines of JSON.

The first line that a program gets is ``{"formats": {NAME: FORMAT, ...}}``. Each further line is a request::

    {"id", "format", "tools", "prompt", "finish_reason", "pieces": ["text", ...]}

A vector with tokens has ``tokens`` as well: for each piece the tokens that it was made of, as ``["text", true]``; true
stands for a special token.

The program answers each with one line, in the same order: ``{"id", "message": {"reasoning", "content", "tool_calls":
[{"name", "arguments"}]}}``; or with the deltas of a stream, ``{"id", "deltas": [...]}``, whose calls have an ``index``;
or with ``{"id", "unsupported": "the reason"}``. A ``status`` of a call is compared where the program gives one. So are
the codes of ``diagnostics``, next to ``message`` or ``deltas``, which are counted apart.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from ...errors import UntemplateError
from ...format import Format
from ...messages import ParsedOutput
from ..output_parser import OutputParser

__all__ = ["CommandError", "Parser", "command", "own_parser"]

Parser = Callable[[Iterable[dict[str, Any]]], Generator[dict[str, Any], None, None]]
"""Yields an answer for each request, in order."""


class CommandError(UntemplateError, RuntimeError):
    """A program that has ended too early, or has answered with something else than the protocol allows."""


def own_parser(formats: Mapping[str, Any]) -> Parser:
    """Return untemplate's parser for formats in their JSON form, by name."""
    parsers: dict[str, OutputParser] = {}

    def answers(requests: Iterable[dict[str, Any]]) -> Generator[dict[str, Any], None, None]:
        for request in requests:
            name = request["format"]
            if name not in parsers:
                parsers[name] = OutputParser.from_format(Format.from_json(json.dumps(formats[name])))
            parser = parsers[name]
            tokens = request.get("tokens", ())
            vocabulary = _Vocabulary(tokens) if tokens else None
            if vocabulary is not None:
                parser = OutputParser.from_format(parser.format, tokenizer=vocabulary)
            stream = parser.stream(tools=request["tools"], prompt=request["prompt"], collect=True)
            for i, piece in enumerate(request["pieces"]):
                stream.feed(piece, () if vocabulary is None else vocabulary.ids(tokens[i]))
            stream.finish(request["finish_reason"])
            yield {"id": request["id"], **_own_answer(stream.result())}

    return answers


def _own_answer(parsed: ParsedOutput) -> dict[str, Any]:
    calls = [
        {"name": call.function.name, "arguments": call.function.arguments, "status": call.status}
        for call in parsed.tool_calls
    ]
    message = {"reasoning": parsed.reasoning or "", "content": parsed.content or "", "tool_calls": calls}
    return {"message": message, "diagnostics": [diagnostic.code for diagnostic in parsed.diagnostics]}


class _Vocabulary:
    """A tokenizer that knows the tokens of one output."""

    def __init__(self, pieces: Iterable[Iterable[tuple[str, bool]]]) -> None:
        self._known: dict[tuple[str, bool], int] = {}
        for piece in pieces:
            for text, special in piece:
                self._known.setdefault((text, special), len(self._known))

    def get_vocab(self) -> dict[str, int]:
        # A marker that ordinary tokens spell has no token of its own here.
        return {text: number for (text, _), number in self._known.items()}

    @property
    def all_special_tokens(self) -> list[str]:
        return [text for text, special in self._known if special]

    def ids(self, tokens: Iterable[tuple[str, bool]]) -> list[int]:
        return [self._known[text, special] for text, special in tokens]


def command(arguments: Sequence[str], formats: Mapping[str, Any]) -> Parser:
    """Return a parser that is a program.

    Args:
        arguments: the program and its arguments.
        formats: the JSON form of each format, by name.
    """

    def answers(requests: Iterable[dict[str, Any]]) -> Generator[dict[str, Any], None, None]:
        try:
            process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
        except OSError as error:
            raise CommandError(f"{arguments[0]}: cannot be started: {error.strerror or error}") from None
        asked: list[str] = []
        # A thread writes, since the program may answer before it has read all requests.
        writer = threading.Thread(target=_write, args=(process, formats, requests, asked), daemon=True)
        writer.start()
        try:
            assert process.stdout is not None
            for number, line in enumerate(process.stdout):
                yield _answer(arguments[0], line, asked[number] if number < len(asked) else "")
            raise CommandError(
                f"{arguments[0]}: ended with exit code {process.wait()} before it had answered all requests"
            )
        finally:
            process.kill()
            process.wait()
            writer.join()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None and not pipe.closed:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()

    return answers


def _write(
    process: subprocess.Popen[str], formats: Mapping[str, Any], requests: Iterable[dict[str, Any]], asked: list[str]
) -> None:
    """Write all requests. ``asked`` gets their ids."""
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps({"formats": formats}) + "\n")
        for request in requests:
            asked.append(request["id"])
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        process.stdin.close()
    except (BrokenPipeError, ValueError):  # the program has ended, which its missing answers show
        return


def _answer(program: str, line: str, asked: str) -> dict[str, Any]:
    """Read one answer.

    Raises:
        CommandError: it is not an answer to this request.
    """
    try:
        answer = json.loads(line)
    except ValueError as error:
        raise CommandError(
            f"{program}: answered {asked} with something else than JSON ({error}): {line[:200]!r}"
        ) from None
    if not isinstance(answer, dict) or answer.get("id") != asked:
        raise CommandError(f"{program}: expected an answer to {asked}, got {line[:200]!r}")
    if "deltas" in answer:
        answer["message"] = _merged(answer.pop("deltas"))
    if not isinstance(answer.get("message"), dict) and "unsupported" not in answer:
        raise CommandError(f"{program}: {asked}: an answer has message, deltas or unsupported, got {line[:200]!r}")
    return answer


def _merged(deltas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the message that deltas add up to."""
    message: dict[str, Any] = {"reasoning": "", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        for part in ("reasoning", "content"):
            message[part] += delta.get(part) or ""
        for call in delta.get("tool_calls") or ():
            found = calls.setdefault(call["index"], {"name": "", "arguments": ""})
            found["name"] = call.get("name") or found["name"]
            found["arguments"] += call.get("arguments") or ""
    return {**message, "tool_calls": [calls[index] for index in sorted(calls)]}
