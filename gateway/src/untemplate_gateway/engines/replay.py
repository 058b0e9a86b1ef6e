"""Recorded outputs, token by token: an engine without a model, for demos, tests and benchmarks.

* The same request always gets the same output, chosen by the tools, tool results and prompt of the request.
* A request that restricts its output to a choice of texts gets one of these.
* If no recording fits, the output is made up: a message that fits the request, written as the Format's models write.
* An output is cut into tokens on first use; streaming it again costs a loop over a list.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from untemplate.examples import examples, pieces
from untemplate.format import Format
from untemplate.formats import named
from untemplate.output_parser import OutputParser
from untemplate.templates import ChatTemplate
from untemplate.validation import Validator

from ..generation import Generation, TokenLogprob, Usage
from ..threads import in_thread
from .base import Engine, EngineChunk, EngineError, Health, Job, Takes
from .made_up import TEXTS, made_up, text_of

_BURST: Final = 4
"""Tokens sent at full speed between two turns of the event loop."""
_CACHED: Final = 64
"""Number of outputs that are kept cut into tokens."""
_LARGE: Final = 16 * 1024
"""Prompts of this many characters or more are handled in a thread."""
_CHARACTERS: Final = 4
"""Characters per token, for estimates."""

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


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One output, as a model wrote it."""

    output: str
    """Raw output, special tokens included."""
    prompt: str | None = None
    """The prompt that the output answers. A request with exactly this prompt gets this output."""
    calls: tuple[tuple[str, str], ...] = ()
    """The calls in the output: name, and arguments as JSON text."""
    finish_reason: str = "stop"
    """``stop`` or ``length``."""


def bundled() -> dict[str, tuple[Format, list[Recording]]]:
    """Return the bundled recordings: name of a format → the Format and its recordings."""
    found: dict[str, tuple[Format, list[Recording]]] = {}
    for example in examples():
        calls = tuple((call[0], json.dumps(call[1])) for call in example.expect.get("tool_calls", ()))
        recording = Recording(
            output=example.output, prompt=example.prompt, calls=calls, finish_reason=example.finish_reason
        )
        if example.format not in found:
            found[example.format] = (example.parser.format, [])
        found[example.format][1].append(recording)
    return found


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
    found: list[Recording] = []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    found.append(_recording(line, parser, f"{os.fspath(path)}, line {number}"))
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"{os.fspath(path)}: cannot be read: {error}", code="bad_recording") from None
    if not found:
        raise EngineError(f"{os.fspath(path)}: no recorded outputs in it", code="bad_recording")
    return found


def _recording(line: str, parser: OutputParser, where: str) -> Recording:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise EngineError(f"{where}: not JSON: {error}", code="bad_recording") from None
    output = data.get("output", data.get("raw")) if isinstance(data, dict) else None
    if not isinstance(output, str):
        raise EngineError(f"{where}: needs 'output', the raw output as a string", code="bad_recording")
    prompt = data.get("prompt")
    if prompt is not None and not isinstance(prompt, str):
        raise EngineError(f"{where}: 'prompt' must be a string", code="bad_recording")
    reason = "length" if data.get("finish_reason") == "length" else "stop"
    called = parser.parse(output, prompt=prompt).tool_calls
    calls = tuple((call.function.name, call.function.arguments) for call in called)
    return Recording(output=output, prompt=prompt, calls=calls, finish_reason=reason)


class ToyTokenizer:
    """A vocabulary made from given texts: special tokens, bytes, and pieces of the texts.

    Args:
        special: the special tokens; they have the first ids, one each.
        texts: texts to cut into pieces. Other pieces are written in bytes.
    """

    def __init__(self, special: Iterable[str], texts: Iterable[str] = ()) -> None:
        self._special = tuple(dict.fromkeys(special))
        vocab = {token: i for i, token in enumerate(self._special)}
        self._bytes = len(vocab)
        for byte in range(256):
            vocab[f"<0x{byte:02X}>"] = len(vocab)
        ids: dict[str, int] = {token: vocab[token] for token in self._special}
        for text in texts:
            for piece in pieces(text, self._special):
                token = piece.replace(" ", "▁")
                # A piece that SentencePiece could not write as one token stays bytes.
                if piece not in ids and token not in vocab and "▁" not in piece:
                    ids[piece] = vocab[token] = len(vocab)
        self._vocab = vocab
        self._ids = ids

    def get_vocab(self) -> dict[str, int]:
        """Return token → id, written as SentencePiece writes tokens."""
        return dict(self._vocab)

    def cut(self, text: str, *, special: bool = True) -> list[tuple[str, tuple[int, ...]]]:
        """Return the text in pieces, with the ids of each. Most pieces are one token; all are whole characters. With
        ``special``, special tokens in the text count as such.
        """
        ids = self._ids
        cut = pieces(text, self._special if special else ())
        return [(piece, (ids[piece],) if piece in ids else self._spelled(piece)) for piece in cut]

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the ids of a text."""
        return [i for _, ids in self.cut(text, special=special) for i in ids]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids; unknown ids become U+FFFD."""
        return b"".join(self._text_of.get(i, b"\xef\xbf\xbd") for i in token_ids).decode("utf-8", "replace")

    def _spelled(self, piece: str) -> tuple[int, ...]:
        return tuple(self._bytes + byte for byte in piece.encode("utf-8", "replace"))

    @cached_property
    def _text_of(self) -> dict[int, bytes]:
        texts = {i: piece.encode() for piece, i in self._ids.items()}
        return {**{self._bytes + byte: bytes([byte]) for byte in range(256)}, **texts}


class ReplayEngine(Engine):
    """Replays outputs of one Format.

    Args:
        format: the Format of the outputs, or its name in the catalogue. With a name, the reasoning markers of the
            bundled recordings are added: parse with ``engine.format``.
        recordings: outputs; ``None`` for the bundled ones of this format, and made-up ones if none of them fits.
        speed: tokens per second and request; 0 for as fast as they are read.

    Raises:
        ValueError: the name is unknown (the message lists the valid ones), or there are no recordings.
    """

    kind = "replay"
    format: Format
    takes = Takes(
        logprobs=True,
        token_ids=True,
        tool_choice=True,
        sampling=frozenset(("stop_token_ids",)),
        constraints=frozenset(("choice",)),
    )

    def __init__(
        self, format: Format | str, recordings: Sequence[Recording] | None = None, *, speed: float = 0.0
    ) -> None:
        if recordings is not None and not recordings:
            raise ValueError("recordings: must not be empty")
        self.speed = speed
        self._makes_up = recordings is None
        if isinstance(format, str):
            known = bundled().get(format) if recordings is None else None
            format, recordings = known if known is not None else (named(format), recordings)
        self.format = format
        recordings = recordings or ()
        self._open = _opener(self.format)
        self._recordings = [self._opened(recording) for recording in recordings]
        special = dict.fromkeys((*self.format.special_tokens, *_ends(self.format)))
        texts = [recording.output for recording in self._recordings]
        if self._makes_up:
            texts += TEXTS
        self.tokenizer = ToyTokenizer(special, texts)
        self._known: OrderedDict[bytes, tuple[list[EngineChunk], int]] = OrderedDict()
        self._lock = threading.Lock()
        """Held while ``_known`` is used: long prompts are handled in threads."""

    async def start(self) -> None:
        """Do nothing: there is nothing to load."""

    async def close(self) -> None:
        """Do nothing: there is nothing to free."""

    async def health(self) -> Health:
        return Health(ok=True, detail=f"{len(self._recordings)} recordings of {self.format.name}")

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
        start, end = _turn(self.format)
        opens = self._open if self.format.reasoning is not None and self.format.reasoning.start == "open" else ""
        constants = {"start": start, "end": end, "open": opens}
        return ChatTemplate(_TEMPLATE, name=f"replay/{self.format.name}", special_tokens=constants)

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        large = len(job.prompt) > _LARGE
        found, prompt_tokens = await in_thread(self._chunks, job) if large else self._chunks(job)
        if job.max_tokens is not None:
            found = _limited(found, job.max_tokens)
        if job.logprobs is not None:
            found = [self._likely(piece, job.logprobs) for piece in found]
        last = found[-1]
        usage = Usage(
            prompt_tokens=prompt_tokens,
            completion_tokens=sum(len(piece.token_ids) for piece in found),
        )
        last = EngineChunk(last.text, last.token_ids, last.finish_reason, last.logprobs, usage)
        if self.speed > 0:
            now = asyncio.get_running_loop().time
            due = now()
            for piece in found[:-1]:
                due += len(piece.token_ids) / self.speed
                await asyncio.sleep(max(0.0, due - now()))
                yield piece
            await asyncio.sleep(max(0.0, due + 1 / self.speed - now()))
        else:
            sleep = asyncio.sleep
            left = _BURST
            for piece in found[:-1]:
                yield piece
                left -= 1
                if not left:
                    left = _BURST
                    await sleep(0)
        yield last

    # -- Which output ------------------------------------------------------------------------------------------------

    def _chosen(self, request: Generation | None, prompt: str) -> Recording:
        for recording in self._recordings:
            if recording.prompt is not None and recording.prompt == prompt:
                return recording
        offered = _offered(request)
        messages = (request.messages or []) if request is not None else []
        forced = request is not None and request.tool_choice not in (None, "auto", "none")
        if not forced and messages and messages[-1].get("role") == "tool":
            offered = {}  # the tool's result is there; now the model answers
        if offered:
            validator = Validator([{"type": "function", "function": function} for function in offered.values()])
            fitting = [r for r in self._recordings if r.calls and _fits(r, offered, validator)]
        elif not messages:
            fitting = self._recordings
        else:
            fitting = [] if self._makes_up else [r for r in self._recordings if not r.calls]
        if not fitting and self._makes_up:
            said = text_of(messages[-1]) if messages else prompt
            return Recording(output=made_up(self.format, messages, offered, said) + _turn(self.format)[1])
        fitting = fitting or self._recordings
        return fitting[zlib.crc32(prompt.encode("utf-8", "replace")) % len(fitting)]

    def _opened(self, recording: Recording) -> Recording:
        """Return the recording with the opener of reasoning in its output, if its prompt had opened reasoning."""
        opener = self._open.strip()
        reasoning = self.format.reasoning
        if not opener or reasoning is None or recording.output.lstrip().startswith(opener):
            return recording
        if recording.prompt is None:
            opened = reasoning.start == "open" and reasoning.close.text.strip() in recording.output
        else:
            opened = recording.prompt.rstrip().endswith(opener)
        return msgspec.structs.replace(recording, output=self._open + recording.output) if opened else recording

    def _continued(self, output: str, prompt: str) -> str:
        """Return the output without the markers at the end of the prompt: reasoning opened, or opened and closed."""
        reasoning = self.format.reasoning
        if reasoning is None:
            return output
        tail = prompt.rstrip()
        close = reasoning.close.text.strip()
        if tail.endswith(close):
            _, found, rest = output.partition(close)
            return rest.lstrip("\n") if found else output
        opener = self._open.strip()
        if opener and tail.endswith(opener) and output.lstrip().startswith(opener):
            return output.lstrip()[len(opener) :].lstrip("\n")
        return output

    # -- Tokens ------------------------------------------------------------------------------------------------------

    def _chunks(self, job: Job) -> tuple[list[EngineChunk], int]:
        """Return the output for a job, and the number of tokens in its prompt."""
        request = job.request
        choices = job.constraint.value if job.constraint is not None else ()
        asked = (
            *(job.prompt, choices),
            *(request and request.messages, request and request.tools, request and request.tool_choice),
        )
        key = hashlib.blake2b(msgspec.json.encode(asked), digest_size=16).digest()
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        prompt = self.tokenizer.decode(job.prompt) if isinstance(job.prompt, list) else job.prompt
        recording = Recording(output=choices[0]) if choices else self._chosen(request, prompt)
        output = recording.output if choices else self._continued(recording.output, prompt)
        found = [EngineChunk(text, ids) for text, ids in self.tokenizer.cut(output)] or [EngineChunk()]
        found[-1].finish_reason = recording.finish_reason
        known = (found, self._count(prompt))
        with self._lock:
            self._known[key] = known
            if len(self._known) > _CACHED:
                self._known.popitem(last=False)
        return known

    def _count(self, prompt: str) -> int:
        """Return the number of tokens in a prompt; an estimate for a long one, whose tokens are not needed."""
        if len(prompt) > _LARGE:
            return len(prompt) // _CHARACTERS
        return len(self.tokenizer.encode(prompt))

    def _likely(self, piece: EngineChunk, top: int) -> EngineChunk:
        """Return the chunk with log probabilities, made up from its ids."""
        ids = piece.token_ids
        if not ids:
            return piece
        texts = [piece.text] if len(ids) == 1 else [""] * (len(ids) - 1) + [piece.text]
        found = []
        for text, token in zip(texts, ids, strict=True):
            logprob = -(token * 37 % 100) / 400
            rivals = [(text, logprob)] + [(f"alternative {i}", logprob - i) for i in range(1, top)]
            found.append(TokenLogprob(text, logprob, rivals[:top], token))
        return EngineChunk(piece.text, ids, piece.finish_reason, found)


def _limited(found: list[EngineChunk], most: int) -> list[EngineChunk]:
    """Return the first ``most`` tokens. A chunk that fits only in part is left out."""
    count = 0
    for number, piece in enumerate(found):
        count += len(piece.token_ids)
        if count > most:
            return [*found[:number], EngineChunk(finish_reason="length")]
    return found


def _turn(format: Format) -> tuple[str, str]:
    """Return the texts that open and end the assistant's turn."""
    turn = format.turn
    start = turn.start.text if turn.start is not None else "assistant: "
    return start, turn.end.text if turn.end is not None else ""


def _ends(format: Format) -> tuple[str, ...]:
    """Return the token that ends a turn, unless it contains a declared special token."""
    end = _turn(format)[1].strip()
    return () if not end or any(token in end for token in format.special_tokens) else (end,)


def _opener(format: Format) -> str:
    reasoning = format.reasoning
    return reasoning.open.text if reasoning is not None and reasoning.open is not None else ""


def _fits(recording: Recording, offered: dict[str, dict[str, Any]], validator: Validator) -> bool:
    """True if the recording calls only offered tools, with arguments that they accept."""
    whole = recording.finish_reason != "length"
    return all(name in offered and (not whole or not validator.check(name, text)) for name, text in recording.calls)


def _offered(request: Generation | None) -> dict[str, dict[str, Any]]:
    """Return the functions that may be called, by name."""
    if request is None or not request.tools or request.tool_choice == "none":
        return {}
    functions = [tool.get("function", tool) for tool in request.tools]
    offered = {function["name"]: function for function in functions}
    choice = request.tool_choice
    chosen = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(chosen, dict) and chosen.get("name") in offered:
        return {chosen["name"]: offered[chosen["name"]]}
    return offered
