"""The interface between the gateway and its engines.

* An engine takes a prompt and returns an async stream of chunks. It parses nothing and knows no API dialect.
* Closing the iterator, or cancelling the task that reads it, aborts the output and frees the engine at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from untemplate.format import Format
from untemplate.grammar import Grammar
from untemplate.messages import DeltaMessage

from ..errors import EngineError
from ..generation import Constraint, Generation, Sampling, TokenLogprob, Usage

__all__ = ["Embeddings", "Engine", "EngineChunk", "EngineError", "Health", "Job", "Scores", "Takes"]


class Takes(msgspec.Struct, frozen=True, kw_only=True):
    """The abilities of an engine."""

    grammar: str | None = None
    """Dialect of the grammars that it accepts: ``gbnf``, ``lark``, ``structural_tag``; ``None`` if it accepts none."""
    logprobs: bool = False
    prompt_logprobs: bool = False
    """True if it repeats a prompt before the output, with log probabilities (``Job.echo``)."""
    token_ids: bool = False
    """True if chunks carry the ids of their tokens."""
    messages: bool = False
    """True if the engine renders the prompt itself: it needs the messages (``Job.request``), and passes unknown fields
    on."""
    tool_choice: bool = False
    """True if the engine applies ``tool_choice`` itself, from the request."""
    sampling: frozenset[str] = frozenset()
    """Those of ``stop_token_ids``, ``min_tokens`` and ``ignore_eos`` that it follows."""
    constraints: frozenset[str] = frozenset()
    """Kinds of `Constraint` that it follows."""
    images: str | None = None
    """Text of a prompt that stands for an image (``Job.images``), or ``""`` if the chat template writes it; ``None`` if
    the engine takes no images next to a prompt."""


class Job(msgspec.Struct, kw_only=True):
    """One output to generate."""

    id: str
    model: str
    prompt: str | list[int]
    """Text, in which special tokens count as such, or token ids. Empty if the engine takes messages."""
    max_tokens: int | None = None
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    logprobs: int | None = None
    echo: bool = False
    """True to repeat the prompt before the output, with its log probabilities."""
    grammar: Grammar | None = None
    constraint: Constraint | None = None
    in_reasoning: bool = False
    """True if the prompt has opened reasoning."""
    raw: bool = False
    """True if the prompt is text that no template rendered: the tokenizer adds its usual tokens (BOS)."""
    images: Sequence[bytes] = ()
    """The images of the prompt, in their order."""
    request: Generation | None = None
    """The request, for an engine that takes messages or applies ``tool_choice`` itself."""


class EngineChunk(msgspec.Struct, gc=False):
    """A part of the output: text, and the ids of its tokens. Ids may come before their text, never after it.

    The last chunk has a ``finish_reason`` (``stop``, ``length`` or ``content_filter``). It has the ``usage`` if the
    engine counts tokens.
    """

    text: str = ""
    token_ids: Sequence[int] = ()
    finish_reason: str | None = None
    logprobs: list[TokenLogprob] | None = None
    usage: Usage | None = None
    delta: DeltaMessage | None = None
    """A part of the message that the upstream has already parsed, instead of text. It is passed on unchanged."""


class Embeddings(msgspec.Struct):
    """Embeddings of texts, in their order."""

    vectors: list[list[float]]
    prompt_tokens: int


class Scores(msgspec.Struct):
    """Relevance of documents, in their order; the higher, the more relevant."""

    scores: list[float]
    prompt_tokens: int


class Health(msgspec.Struct):
    ok: bool
    detail: str = ""


class Engine(ABC):
    """One engine with one model."""

    kind: ClassVar[str]
    takes: Takes
    ended: str = ""
    """How the engine ended by itself; empty while it runs. `close` and `start` make it run again."""

    @abstractmethod
    async def start(self) -> None:
        """Load the model, or connect to the upstream.

        Raises:
            EngineError: the engine cannot start; the message has the remedy.
        """

    @abstractmethod
    async def close(self) -> None:
        """Free all resources. May be called twice."""

    @abstractmethod
    def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        """Generate one output. The stream ends after the chunk that has a finish reason.

        Raises:
            EngineError: the engine failed, before the output or in the middle of it.
        """

    @abstractmethod
    async def health(self) -> Health:
        """Return the health of the engine: healthy if it can take a job now."""

    def expect(self, format: Format) -> None:  # noqa: B027 - most have no use for it
        """Receive the model's Format, once, before the first job: some servers must be asked for special tokens."""

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Return the token ids of a text. With ``special``, special tokens in the text count as such.

        Raises:
            NotImplementedError: this engine does not offer its tokenizer.
        """
        raise NotImplementedError

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        """Return the text of tokens. Raises as `tokenize`."""
        raise NotImplementedError

    async def embed(self, inputs: Sequence[str | list[int]], dimensions: int | None = None) -> Embeddings:
        """Return the embeddings of texts or token ids.

        Raises:
            NotImplementedError: this engine or model gives none; the message has the remedy if there is one.
            ApiError: an input is refused, or the engine failed.
        """
        raise NotImplementedError

    async def rerank(self, query: str, documents: Sequence[str]) -> Scores:
        """Return the relevance of documents to a query. Raises as `embed`."""
        raise NotImplementedError

    def vocabulary(self) -> Any:
        """Return an object with ``get_vocab()``; ``None`` if the vocabulary is unknown: markers are then found by text
        alone."""
        return None

    def template(self) -> Any:
        """Return the model's own ``ChatTemplate``, if the engine knows it (a GGUF file contains one)."""
        return None


def parts_of(text: str, size: int) -> Iterator[str]:
    """Cut a text into parts of about ``size`` characters, before white space if there is some."""
    start = 0
    while len(text) - start > size:
        end = start + size
        cut = max(text.rfind(" ", start + size // 2, end), text.rfind("\n", start + size // 2, end))
        end = cut if cut > start else end
        yield text[start:end]
        start = end
    yield text[start:]
