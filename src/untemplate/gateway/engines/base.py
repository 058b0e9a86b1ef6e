"""The interface between the gateway and its engines.

* An engine takes a prompt and returns an async stream of chunks. It parses nothing and knows no API dialect.
* Closing the iterator, or cancelling the task that reads it, aborts the output and frees the engine at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

import msgspec

from ...format import Format
from ...grammar import Grammar
from ...messages import DeltaMessage
from ...tokens import SpecialText
from ..errors import EngineError
from ..generation import Generation, Sampling, TokenLogprob, Usage

__all__ = ["Engine", "EngineChunk", "EngineError", "Health", "Job", "Takes"]


class Takes(msgspec.Struct, frozen=True, kw_only=True):
    """The abilities of an engine."""

    grammar: str | None = None
    """The dialect of grammars that it decodes under: ``gbnf``, ``lark``, ``structural_tag``; ``None``: none."""
    logprobs: bool = False
    token_ids: bool = False
    """True if pieces carry the ids of their tokens."""
    messages: bool = False
    """It renders the prompt itself: it wants the messages (``Job.request``), and passes on what it does not know."""
    tool_choice: bool = False
    """It sees to ``tool_choice`` by itself, from the request."""
    special_text: SpecialText = "kept"
    """``kept`` if its text contains special tokens, else ``stripped``."""


class Job(msgspec.Struct, kw_only=True):
    """One output that an engine is to write."""

    id: str
    model: str
    prompt: str | list[int]
    """Text, special tokens in it meant as such, or token ids. Empty where the engine takes messages."""
    max_tokens: int | None = None
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    logprobs: int | None = None
    grammar: Grammar | None = None
    in_reasoning: bool = False
    """True if the prompt has opened reasoning."""
    raw: bool = False
    """True if the prompt is a text that no template has rendered: the tokenizer adds what it adds to texts (BOS)."""
    request: Generation | None = None
    """The request, for an engine that takes messages, or sees to ``tool_choice`` by itself."""


class EngineChunk(msgspec.Struct, gc=False):
    """A part of the output: text, and the ids of the tokens that came with it (or before it, never after).

    The last piece has a ``finish_reason`` (``stop`` or ``length``; ``content_filter``) and, where the engine counts,
    ``usage``.
    """

    text: str = ""
    token_ids: Sequence[int] = ()
    finish_reason: str | None = None
    logprobs: list[TokenLogprob] | None = None
    usage: Usage | None = None
    delta: DeltaMessage | None = None
    """Instead of text: a part of the message that the upstream has parsed itself. It is passed on as it is."""


class Health(msgspec.Struct):
    ok: bool
    detail: str = ""


class Engine(ABC):
    """One engine with one model in it."""

    kind: ClassVar[str]
    takes: Takes

    @abstractmethod
    async def start(self) -> None:
        """Loads the model, or reaches the upstream. Raises `EngineError` with what to do about it."""

    @abstractmethod
    async def close(self) -> None:
        """Frees everything. May be called twice."""

    @abstractmethod
    def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        """Writes one output. Ends after the piece that has a finish reason.

        Raises:
            EngineError: it failed, before or in the middle of the output.
        """

    @abstractmethod
    async def health(self) -> Health:
        """True if it can take a job now."""

    def expect(self, format: Format) -> None:  # noqa: B027 - most have no use for it
        """Told once, before the first job, what its model writes: some servers have to be asked for special tokens."""

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids of a text; ``special``: special tokens in it are meant as such.

        Raises:
            NotImplementedError: this engine has no tokenizer that it could ask.
        """
        raise NotImplementedError

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        """The text of tokens. Raises as `tokenize`."""
        raise NotImplementedError

    def vocabulary(self) -> Any:
        """Anything with ``get_vocab()``, or ``None`` where it is not known: then markers are found by text alone."""
        return None

    def template(self) -> Any:
        """The model's own ``ChatTemplate``, where the engine knows it (a GGUF file has one)."""
        return None
