"""GGUF models: llama.cpp's server, from the package ``xllamacpp``, in a process of its own.

* The process is an upstream on loopback (`OpenAIEngine`); this module starts and ends it, and shares its context.
* Prompts are text with special tokens, or ids; llama.cpp's own templates are not used. Special tokens keep their text.
* Closing the connection aborts an output: llama.cpp frees the slot before it decodes the next token.
* llama.cpp prints nothing to the terminal. If a model does not load, its message becomes the error.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from importlib import metadata, util
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from untemplate._internal.installed import install_command
from untemplate.templates import ChatTemplate, TemplateError
from untemplate.templates._gguf_file import GgufError, read_gguf

from ..errors import ApiError, bad_request, unsupported
from ..generation import Usage
from ..settings import LlamaCpp
from .admission import Turns
from .base import Embeddings, EngineChunk, EngineError, Job, Scores, parts_of
from .llamacpp_server import LlamaCppServer
from .openai import OpenAIEngine
from .vocabulary import ModelTokenizer, gguf_vocabulary
from .wire import WireError

_T = TypeVar("_T")


class LlamaCppEngine(OpenAIEngine):
    """A GGUF model.

    Args:
        model: the file; of a split model its first part.
        options: the settings of this engine.
    """

    kind = "llamacpp"

    def __init__(self, model: str | os.PathLike[str], options: LlamaCpp | None = None) -> None:
        super().__init__("", read_timeout=0, retries=0)  # while it processes a long prompt, it sends nothing
        self.server = "llama.cpp"
        self.path = Path(model)
        self._options = options or LlamaCpp()
        self._n_parallel = self._options.n_parallel
        self._server: LlamaCppServer | None = None
        self._vocabulary: ModelTokenizer | None = None

    async def start(self) -> None:
        if self._server is not None:
            return
        self._check()
        self._vocabulary, self._ends = await asyncio.to_thread(_vocabulary, self.path)
        self._server = server = LlamaCppServer(str(self.path), self._parameters(), self._options.extra)
        try:
            await asyncio.to_thread(server.load)
            self.url = server.url
            await super().start()
        except BaseException:
            await self.close()
            raise
        self._turns = Turns(self._n_parallel, self._context)

    async def close(self) -> None:
        server, self._server = self._server, None
        try:
            await super().close()
        finally:
            if server is not None:
                await asyncio.to_thread(server.close)

    @property
    def _context(self) -> int:
        return self.context_length or 0

    def _check(self) -> None:
        """Raise `EngineError` if the package or the file is missing."""
        if util.find_spec("xllamacpp") is None:
            problem = f"GGUF models need the package xllamacpp: {install_command('untemplate-gateway', 'llamacpp')}"
            raise EngineError(problem, status=500, code="engine_missing")
        check_version(metadata.version("xllamacpp"))
        if not self.path.is_file():
            raise EngineError(f"{self.path}: no such file", status=500, code="model_not_loaded")

    def _parameters(self) -> dict[str, Any]:
        """Return llama.cpp's parameters by their names in xllamacpp."""
        parameters: dict[str, Any] = {
            # One more for an owner that has no running request (`Turns`); llama.cpp aborts with it on some embeddings.
            "n_parallel": self._n_parallel + (not self._options.extra.get("embedding")),
            "n_gpu_layers": self._options.gpu_layers,
            "special": True,
            "verbosity": -1,
            "endpoint_slots": True,
            "endpoint_metrics": False,
            "ui": False,
            # One cache for all slots: a request may use all the context that the others leave.
            "n_ctx": self._options.n_ctx,
            "kv_unified": True,
        }
        if threads := self._options.threads or default_threads(self.path):
            parameters |= {"cpuparams.n_threads": threads, "cpuparams_batch.n_threads": threads}
        if self._options.mmproj:
            parameters["mmproj.path"] = self._options.mmproj
        return parameters

    @property
    def ended(self) -> str:  # type: ignore[override]
        end = "" if self._server is None or self._client is None else self._server.end()
        return f"its process ended ({end})" if end else ""

    def _unreachable(self, error: WireError) -> EngineError:
        end = "" if self._server is None else self._server.end(0.2)  # it closes its connections a little earlier
        return EngineError(f"llama.cpp broke off: {f'its process ended ({end})' if end else error}")

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        if self._vocabulary is not None:
            size = self._vocabulary.size
            for i in token_ids:
                if not 0 <= i < size:
                    raise bad_request("tokens", f"{i} is not a token id: the vocabulary has {size} tokens")
        return await super().detokenize(token_ids)

    def vocabulary(self) -> Any:
        return self._vocabulary

    def template(self) -> ChatTemplate | None:
        """Return the file's template: llama.cpp makes one up for a file that has none."""
        try:
            return ChatTemplate.load(self.path)
        except TemplateError:
            return None

    async def embed(self, inputs: Sequence[str | list[int]], dimensions: int | None = None) -> Embeddings:
        if dimensions is not None:
            raise unsupported("dimensions", "llama.cpp does not shorten embeddings")
        found = Embeddings([], 0)
        for one in inputs:
            with await self._turns.reserve(await self._prompt_tokens(one)):
                part = await _with_remedy(super().embed([one]), _EMBEDS)
            found.vectors += part.vectors
            found.prompt_tokens += part.prompt_tokens
        return found

    async def rerank(self, query: str, documents: Sequence[str]) -> Scores:
        found = Scores([], 0)
        asked = await self._prompt_tokens(query)
        for one in documents:
            with await self._turns.reserve(asked + await self._prompt_tokens(one)):
                part = await _with_remedy(super().rerank(query, [one]), _RANKS)
            found.scores += part.scores
            found.prompt_tokens += part.prompt_tokens
        return found

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        """Generate one output. See `Engine.generate`.

        Running requests share the context. A request waits until the tokens that it may need are free. A long output is
        generated in parts: after each, the request frees its tokens and waits until those of the next part are free.
        """
        prompt_tokens = await self._prompt_tokens(job.prompt)
        room = max(0, self._context - prompt_tokens)
        part = room // self._n_parallel
        constrained = job.grammar is not None or job.constraint is not None
        if job.images:  # the number of their tokens is not known
            chunks = self._native(job, self._context)
        elif constrained or part < _LEAST_PART or "ctx_shift" in self._options.extra:
            # A grammar cannot be continued in the middle.
            most = room if job.max_tokens is None else job.max_tokens
            chunks = self._native(job, prompt_tokens + most)
        else:
            chunks = self._in_parts(job, prompt_tokens, part)
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk

    async def _in_parts(self, job: Job, prompt_tokens: int, part: int) -> AsyncGenerator[EngineChunk, None]:
        """Generate an output, ``part`` tokens at a time."""
        left = job.max_tokens
        first: Usage | None = None
        ids: list[int] = []
        while True:
            most = part if left is None else min(part, left)
            here = msgspec.structs.replace(job, max_tokens=most)
            last = EngineChunk()
            async with aclosing(self._native(here, prompt_tokens + most)) as chunks:
                async for chunk in chunks:
                    ids += chunk.token_ids
                    if chunk.finish_reason is None:
                        yield chunk
                    else:
                        last = chunk
            usage = last.usage or Usage()
            written, prompt_tokens = usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens
            if first is None:
                first = usage
            else:
                first.completion_tokens += written
                first.completion_ns += usage.completion_ns
            left = None if left is None else left - written
            if last.finish_reason != "length" or written < most or left == 0:
                yield msgspec.structs.replace(last, usage=first)
                return
            if last.text or last.token_ids:
                yield EngineChunk(last.text, last.token_ids, None, last.logprobs)
            if isinstance(job.prompt, str):
                tokens = await self._tokens(job.prompt.removeprefix(self._bos), add_special=True)
                job = msgspec.structs.replace(job, prompt=tokens)
            job = msgspec.structs.replace(job, prompt=[*job.prompt, *ids])
            ids = []

    async def _prompt_tokens(self, prompt: str | list[int]) -> int:
        """Return the number of tokens of a prompt, or an upper bound if that is small enough.

        Raises:
            ApiError: the prompt does not fit into the context. A long prompt is not tokenized to its end.
        """
        context = self._context
        if isinstance(prompt, list):
            count = len(prompt)
        elif 4 * len(prompt) <= self._turns.free // self._n_parallel:
            return len(prompt.encode())  # at most one token for each byte: counting is not needed
        else:
            count = 0
            for part in parts_of(prompt, _PART_CHARACTERS):
                count += len(await self.tokenize(part))
                if count >= context + _CUTS * (1 + len(prompt) // _PART_CHARACTERS):
                    break
        if count >= context and isinstance(prompt, str) and len(prompt) > _PART_CHARACTERS:
            problem = f"the prompt has more tokens than the context of {context}"
            raise ApiError(400, problem, param="messages", code="context_length_exceeded")
        return count


async def _with_remedy(answer: Awaitable[_T], remedy: str) -> _T:
    try:
        return await answer
    except NotImplementedError:
        raise NotImplementedError(remedy) from None


_EMBEDS: Final = (
    "the model is not loaded for embeddings: start the gateway with --llamacpp-arg embedding=true and, unless it is an "
    "embedding model, --llamacpp-arg pooling_type=1 (mean) or 3 (last token)"
)
_RANKS: Final = (
    "the model is not loaded for reranking: start the gateway with --llamacpp-arg embedding=true --llamacpp-arg "
    "pooling_type=4"
)
_LEAST_PART: Final = 256
"""Least tokens of a part of an output. In a smaller context, a request reserves all that it may need."""
_PART_CHARACTERS: Final = 32 * 1024
"""Characters of a prompt that are tokenized at a time."""
_CUTS: Final = 8
"""Most tokens that a cut between two parts may add."""


_OLDEST: Final = (2026, 7)
"""Oldest supported version. Older ones lack parameters of the server, or ignore the triggers of lazy grammars."""


def check_version(version: str) -> None:
    """Raise `EngineError` if xllamacpp is too old."""
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < _OLDEST:
        problem = (
            f"xllamacpp {version} is too old: this needs {'.'.join(map(str, _OLDEST))} or later: pip install --upgrade "
            "xllamacpp"
        )
        raise EngineError(problem, status=500, code="engine_missing")


_PART: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
"""Matches a part of a split model. Its size does not show the model's: the first part may have no weights."""
_SMALL: Final = 64 << 20
"""Bytes. A smaller model runs on one thread: on a busy machine, more threads would wait for each other for seconds."""
_ENDS: Final = (
    "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<end_of_turn>", "<end_of_utterance>",
    "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "</s>", "<eos>",
)  # fmt: skip
"""Texts of tokens at which llama.cpp ends any output, even if the file does not list them as ends. Tokens that a format
must see (``<|call|>``) are left out.
"""


def default_threads(path: Path) -> int:
    """Return the default number of threads for a model; 0: llama.cpp chooses."""
    return 1 if path.stat().st_size < _SMALL and not _PART.search(path.name) else 0


def _vocabulary(path: Path) -> tuple[ModelTokenizer | None, dict[int, str]]:
    """Return the vocabulary and the tokens that end an output. llama.cpp reports errors in the file."""
    try:
        file = read_gguf(path)
        vocabulary, tokens = gguf_vocabulary(file)
        ids = [file.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    except (GgufError, OSError):
        return None, {}
    ids += [vocabulary.get_vocab().get(text) for text in _ENDS]
    return vocabulary, {i: tokens[i] for i in ids if isinstance(i, int) and 0 <= i < len(tokens)}
