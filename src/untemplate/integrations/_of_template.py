"""Conversations in token ids, by a tokenizer's own chat template: prompts, the model's turns, and what follows a turn.

Renderers of other projects rest on it. The text of a turn is encoded apart from the text before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from .._internal.output_parser import OutputParser
from .._internal.tokens.decoding import encode
from .._internal.tokens.spans import ParsedTokens
from ..errors import TemplateError
from ..templates import ChatTemplate
from ..templates._history import for_template, template_needs
from ._of_tokenizer import parser_of

__all__ = ["TemplateTurns"]

_QUESTION = ({"role": "user", "content": "Hello."},)


class TemplateTurns:
    """Writes and reads turns with a tokenizer's chat template.

    Args:
        tokenizer: of transformers, with a chat template.
        format: a name, as for `OutputParser.named`. Default: the Format that certifies against the template.
        variables: of the template, such as ``enable_thinking``.

    Raises:
        ValueError: the tokenizer has no chat template, or the name is unknown.
    """

    def __init__(self, tokenizer: Any, format: str | None = None, variables: Mapping[str, Any] | None = None) -> None:
        template = ChatTemplate.of_tokenizer(tokenizer, name=str(getattr(tokenizer, "name_or_path", "") or "tokenizer"))
        if template is None:
            raise ValueError("the tokenizer has no chat template, and prompts are written with it")
        self.parser: OutputParser = parser_of(tokenizer, format)
        self._tokenizer = tokenizer
        self._template = template
        self._variables = dict(variables or {})
        end = self.parser.format.turn.end
        spelled = () if end is None else (end.text.strip(), *end.accepted)
        self._ends = tuple(dict.fromkeys(text for text in (*spelled, template.eos_token) if text))

    @cached_property
    def stop_ids(self) -> list[int]:
        """Ids of the tokens that end a turn."""
        return [ids[0] for text in self._ends if len(ids := encode(self._tokenizer, text)) == 1]

    @cached_property
    def keeps_history(self) -> bool:
        """True if the template writes a conversation as its beginning and more, with thoughts in the turn."""
        turn = {"role": "assistant", "reasoning_content": "Think.", "content": "Yes."}
        short = self.text([*_QUESTION, turn])
        return self.text([*_QUESTION, turn, *_QUESTION], prompt=True).startswith(short)

    def text(self, messages: Sequence[Mapping[str, Any]], *, tools: Any = None, prompt: bool = False) -> str:
        """Return a conversation as text, with the opening of the next turn if it is a prompt."""
        written = for_template([dict(one) for one in messages], template_needs(self._template), self.parser.format)
        return self._template.render(written, tools=tools or None, add_generation_prompt=prompt, **self._variables)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text that may follow the end of a turn."""
        before = encode(self._tokenizer, self._ends[0]) if self._ends else []
        joined = encode(self._tokenizer, (self._ends[0] if self._ends else "") + text)
        return joined[len(before) :] if joined[: len(before)] == before else encode(self._tokenizer, text)

    def pieces(self, messages: Sequence[Mapping[str, Any]], *, tools: Any = None) -> Iterator[tuple[str, int | None]]:
        """Yield the text of a conversation in pieces: turns as the model writes them, each with the index of its
        message, and what the template writes around them, with ``None``.

        A turn that the template writes in another way than the model, or as history, is part of what is around it.
        """
        whole = self.text(messages, tools=tools)
        done = 0
        for index, message in enumerate(messages):
            if message.get("role") != "assistant":
                continue
            before = self.text(messages[:index], tools=tools, prompt=True)
            written = self.text(messages[: index + 1], tools=tools)
            if not written.startswith(before):
                continue
            turn = self._turn(written[len(before) :])
            if turn and len(before) >= done and whole.startswith(before + turn):
                yield whole[done : len(before)], None
                yield turn, index
                done = len(before) + len(turn)
        yield whole[done:], None

    def _turn(self, text: str) -> str:
        """Return a turn up to its end, which the model writes."""
        return text[: max((text.rfind(end) + len(end) for end in self._ends if end in text), default=len(text))]

    def parse(self, ids: Sequence[int], *, tools: Any = None, prompt: Sequence[int] | None = None) -> ParsedTokens:
        """Return the message of a sampled turn. Without a prompt, it is one that the template writes."""
        known = self.text(_QUESTION, prompt=True) if prompt is None else prompt
        return self.parser.parse_tokens(ids, tools=tools, prompt=known)

    def bridge(
        self, previous: Sequence[int], new: Sequence[Mapping[str, Any]], *, tools: Any = None
    ) -> list[int] | None:
        """Return the ids between a sampled turn and the next one; ``None`` if they may depend on the turn."""
        try:
            found = self.parser.bridge(previous, new, tools=tools, template=self._template, **self._variables)
        except TemplateError:
            return None
        return None if found.proof == "none" else list(found.ids)
