"""Made-up and recorded outputs, token by token: an engine without a model, for demos, tests and benchmarks.

* The same request always gets the same output: a short message, written as the Format's models write, which calls an
  offered tool or is a sentence.
* With recordings the outputs are theirs: the one with this prompt, or one that calls offered tools, or any.
"""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from untemplate._internal.examples import examples, pieces
from untemplate._internal.output_parser import OutputParser
from untemplate._internal.render import expressible, render
from untemplate._internal.tokens.decoding import TokenTable
from untemplate.format import Format
from untemplate.templates import ChatTemplate

from ..generation import Generation, TokenLogprob, Usage
from ..threads import in_thread
from .base import Engine, EngineChunk, EngineError, Health, Job, Takes, parts_of

_BURST: Final = 4
"""Tokens sent at full speed between two turns of the event loop."""
_LARGE: Final = 16 * 1024
"""Prompts of this many characters or more are handled in a thread, and their tokens are estimated."""
_SAID: Final = 400
"""Most characters of a tool's result that are repeated."""
_PLAIN: Final = "This is the replay engine: no model is at work, and the words are always the same."
_THOUGHT: Final = "A few words will do."
_VALUES: Final = {"city": "Lisbon", "location": "Lisbon", "date": "2026-01-31", "unit": "celsius"}
"""Example values by the name of the argument, for schemas that do not give one."""
_SIMPLE: Final = {"integer": 1, "number": 1, "boolean": True, "null": None}

_TEMPLATE: Final = """
{%- if tools %}{{ 'Tools: ' ~ tools | tojson ~ '\\n' }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{{- start }}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}{{ end ~ '\\n' }}
{%- else %}
{{- message.role ~ ': ' ~ (message.content if message.content is string else message.content | tojson) ~ '\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ start }}{{ open }}{% endif %}"""
"""The template of prompts: readable, with the Format's markers where the parser looks for them."""


def example_formats() -> dict[str, Format]:
    """Return the Formats of the bundled examples, by the names of the formats."""
    return {one.format: one.parser.format for one in examples()}


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One output, as a model wrote it."""

    output: str
    """Raw output, special tokens included."""
    prompt: str | None = None
    """The prompt that the output answers. A request with exactly this prompt gets this output."""
    calls: tuple[str, ...] = ()
    """The names of the tools that it calls."""
    finish_reason: str = "stop"
    """``stop`` or ``length``."""


class _Line(msgspec.Struct):
    output: str | None = None
    raw: str | None = None
    prompt: str | None = None
    finish_reason: Any = None


def load_recordings(path: str | os.PathLike[str], format: Format) -> list[Recording]:
    """Return recorded outputs from a file of JSON lines.

    Args:
        path: a file whose lines are objects with ``output`` (or ``raw``, as ``--log-raw`` writes it), and optionally
            ``prompt`` and ``finish_reason``.
        format: the Format of the outputs; it is used to find the calls in them.

    Raises:
        EngineError: the file cannot be read, or a line is invalid; the message names it.
    """
    parser = OutputParser.from_format(format)
    where, found = os.fspath(path), []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                where = f"{os.fspath(path)}, line {number}"
                one = msgspec.json.decode(line, type=_Line)
                output = one.raw if one.output is None else one.output
                if output is None:
                    raise EngineError(f"{where}: needs 'output', the raw output", code="bad_recording")
                calls = tuple(call.function.name for call in parser.parse(output, prompt=one.prompt).tool_calls)
                reason = "length" if one.finish_reason == "length" else "stop"
                found.append(Recording(output=output, prompt=one.prompt, calls=calls, finish_reason=reason))
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise EngineError(f"{where}: {error}", code="bad_recording") from None
    if not found:
        raise EngineError(f"{os.fspath(path)}: no recorded outputs in it", code="bad_recording")
    return found


class ToyTokenizer:
    """A vocabulary made from given texts: special tokens, bytes, and pieces of the texts.

    Args:
        special: the special tokens; they have the first ids, one each.
        texts: texts to cut into pieces. Other pieces are written in bytes.
    """

    def __init__(self, special: Iterable[str], texts: Iterable[str] = ()) -> None:
        self._special = tuple(dict.fromkeys(special))
        self._bytes = len(self._special)
        tokens = [*self._special, *(f"<0x{byte:02X}>" for byte in range(256))]
        self._vocab = {token: number for number, token in enumerate(tokens)}
        self._ids = {token: self._vocab[token] for token in self._special}
        for piece in (piece for text in texts for piece in pieces(text, self._special)):
            token = piece.replace(" ", "▁")
            if piece not in self._ids and token not in self._vocab and "▁" not in piece:
                self._ids[piece] = self._vocab[token] = len(self._vocab)
        self._table = TokenTable(self._vocab, {token: self._ids[token] for token in self._special})

    def get_vocab(self) -> dict[str, int]:
        """Return token → id, written as SentencePiece writes tokens."""
        return dict(self._vocab)

    def cut(self, text: str, *, special: bool = True) -> list[tuple[str, tuple[int, ...]]]:
        """Return the text in pieces of whole characters, with the ids of each. With ``special``, special tokens in the
        text count as such.
        """
        cut = pieces(text.encode("utf-8", "replace").decode(), self._special if special else ())
        return [
            (piece, (self._ids[piece],) if piece in self._ids else tuple(self._bytes + byte for byte in piece.encode()))
            for piece in cut
        ]

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the ids of a text."""
        # The search in one part keeps Python's lock.
        return [i for part in parts_of(text, _LARGE) for _, ids in self.cut(part, special=special) for i in ids]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids, without unknown ones."""
        return self._table.text_of(token_ids)


class ReplayEngine(Engine):
    """Replays outputs of one Format.

    Args:
        format: the Format of the outputs.
        recordings: outputs; ``None`` to make up messages.
        speed: tokens per second and request; 0 for as fast as they are read.

    Raises:
        ValueError: there are no recordings.
    """

    kind = "replay"
    takes = Takes(
        logprobs=True,
        token_ids=True,
        tool_choice=True,
        sampling=frozenset(("stop_token_ids",)),
        constraints=frozenset(("choice",)),
    )

    def __init__(self, format: Format, recordings: Sequence[Recording] | None = None, *, speed: float = 0.0) -> None:
        if recordings is not None and not recordings:
            raise ValueError("recordings: must not be empty")
        self.format = format
        self.speed = speed
        self._recordings = recordings or ()
        self._start = format.turn.start.text if format.turn.start is not None else "assistant: "
        self._end = format.turn.end.text if format.turn.end is not None else ""
        reasoning = format.reasoning
        self._open = reasoning.open.text if reasoning is not None and reasoning.open is not None else ""
        self._close = "" if reasoning is None else reasoning.close.text.strip()
        ends = [end] if (end := self._end.strip()) and not any(one in end for one in format.special_tokens) else []
        texts = [*(recording.output for recording in self._recordings), _PLAIN, _THOUGHT, json.dumps(_VALUES)]
        self.tokenizer = ToyTokenizer((*format.special_tokens, *ends), texts)
        self._cut = lru_cache(64)(self.tokenizer.cut)

    async def start(self) -> None:
        """Do nothing: there is nothing to load."""

    async def close(self) -> None:
        """Do nothing: there is nothing to free."""

    async def health(self) -> Health:
        return Health(ok=True)

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        if len(text) > _LARGE:
            return await in_thread(self.tokenizer.encode, text, special=special)
        return self.tokenizer.encode(text, special=special)

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        return self.tokenizer.decode(token_ids)

    def vocabulary(self) -> ToyTokenizer:
        return self.tokenizer

    def template(self) -> ChatTemplate:
        """Return a template that writes the conversation and opens the turn as the Format's models expect."""
        opens = self.format.reasoning is not None and self.format.reasoning.start == "open"
        constants = {"start": self._start, "end": self._end, "open": self._open if opens else ""}
        return ChatTemplate(_TEMPLATE, name=f"replay/{self.format.name}", special_tokens=constants)

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        found = await in_thread(self._chunks, job) if len(job.prompt) > _LARGE else self._chunks(job)
        now, due = asyncio.get_running_loop().time, asyncio.get_running_loop().time()
        for number, chunk in enumerate(found, 1):
            if self.speed > 0:
                due += max(1, len(chunk.token_ids)) / self.speed
                await asyncio.sleep(max(0.0, due - now()))
            elif number % _BURST == 1 and number > 1:
                await asyncio.sleep(0)
            yield chunk

    def _chunks(self, job: Job) -> list[EngineChunk]:
        prompt = self.tokenizer.decode(job.prompt) if isinstance(job.prompt, list) else job.prompt
        chosen = self._chosen(job.request, prompt)
        output, reason = self._continued(chosen.output, prompt), chosen.finish_reason
        if job.constraint is not None:
            output = job.constraint.value[0]
        found, left = [], 1 << 31 if job.max_tokens is None else job.max_tokens
        for text, ids in self._cut(output):
            left -= len(ids)
            if left < 0:
                found.append(EngineChunk())
                reason = "length"
                break
            likely = None if job.logprobs is None else _likely(text, ids, job.logprobs)
            found.append(EngineChunk(text, ids, None, likely))
        last = found[-1] if found else EngineChunk()
        count = len(prompt) // 4 if len(prompt) > _LARGE else len(self.tokenizer.encode(prompt))
        usage = Usage(prompt_tokens=count, completion_tokens=sum(len(chunk.token_ids) for chunk in found))
        return [*found[:-1], msgspec.structs.replace(last, finish_reason=reason, usage=usage)]

    def _chosen(self, request: Generation | None, prompt: str) -> Recording:
        """Return the recording that answers a request, or a message if there are no recordings."""
        offered = _offered(request)
        if not self._recordings:
            messages = [] if request is None else request.messages or []
            return Recording(output=self._message(messages, offered) + self._end)
        exact = [one for one in self._recordings if one.prompt == prompt]
        fitting = [
            one for one in self._recordings if bool(one.calls) == bool(offered) and offered.keys() >= {*one.calls}
        ]
        found = exact or fitting or self._recordings
        return found[0] if exact else found[zlib.crc32(prompt.encode("utf-8", "replace")) % len(found)]

    def _message(self, messages: list[dict[str, Any]], offered: dict[str, dict[str, Any]]) -> str:
        """Return a message as the Format's models write it, without the parts that it cannot express."""
        last = messages[-1] if messages else {}
        message: dict[str, Any] = {"content": _PLAIN}
        if offered:
            said = json.dumps(messages).lower()
            name = max(offered, key=lambda name: sum(word in said for word in name.lower().split("_")))
            function = {"name": name, "arguments": json.dumps(_example(offered[name].get("parameters")))}
            message = {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        elif last.get("role") == "tool":
            message = {"content": f"The tool returned: {last.get('content')}"[:_SAID]}
        tools = [{"type": "function", "function": function} for function in offered.values()] or None
        thought, said_first = {"reasoning_content": _THOUGHT}, {"content": "One moment."}
        for way in ({**thought, **said_first, **message}, {**thought, **message}, {**said_first, **message}, message):
            if expressible(self.format, way, tools) is None:
                return render(self.format, way)
        return str(message.get("content") or _PLAIN)

    def _continued(self, output: str, prompt: str) -> str:
        """Return the output without the markers at the end of the prompt: reasoning opened, or opened and closed."""
        tail, opener = prompt.rstrip(), self._open.strip()
        if self._close and tail.endswith(self._close):
            return (output.partition(self._close)[2] or output).lstrip("\n")
        if opener and tail.endswith(opener) and output.lstrip().startswith(opener):
            return output.lstrip()[len(opener) :].lstrip("\n")
        return output


def _likely(text: str, ids: tuple[int, ...], top: int) -> list[TokenLogprob]:
    """Return log probabilities made up from the ids; the text is that of the last one."""
    found = []
    for piece, token in zip([*[""] * (len(ids) - 1), text], ids, strict=True):
        value = -(token * 37 % 100) / 400
        rivals = [(piece, value), *((f"alternative {i}", value - i) for i in range(1, top))]
        found.append(TokenLogprob(piece, value, rivals[:top], token))
    return found


def _example(schema: Any, name: str = "", depth: int = 0) -> Any:
    """Return a value that the schema allows, as far as one is easy to find."""
    schema = schema if isinstance(schema, dict) and depth < 8 else {}
    given = [[schema[key]] for key in ("const", "default", "minimum") if key in schema]
    given += [schema[key] for key in ("enum", "examples") if isinstance(schema.get(key), list) and schema[key]]
    if given:
        return given[0][0]
    properties = schema.get("properties")
    kind = schema.get("type") or ("object" if properties or not name else "string")
    if kind == "object":
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        wanted = [key for key in required if key in properties] if isinstance(required, list) else []
        return {key: _example(properties[key], key, depth + 1) for key in wanted or properties}
    if kind == "array":
        return [_example(schema.get("items"), name, depth + 1)]
    return _SIMPLE[kind] if isinstance(kind, str) and kind in _SIMPLE else _VALUES.get(name, "example")


def _offered(request: Generation | None) -> dict[str, dict[str, Any]]:
    """Return the functions that may be called now, by name."""
    if request is None or not request.tools or request.tool_choice == "none":
        return {}
    functions = [tool.get("function", tool) for tool in request.tools]
    offered = {function["name"]: function for function in functions}
    choice = request.tool_choice
    chosen = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(chosen, dict) and chosen.get("name") in offered:
        return {chosen["name"]: offered[chosen["name"]]}
    answered = choice in (None, "auto") and request.messages and request.messages[-1].get("role") == "tool"
    return {} if answered else offered
