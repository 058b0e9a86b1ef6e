"""The text that a template writes from the end of one turn of the model to the beginning of the next.

A rollout appends to its token ids: the sampled turn, the results of its calls, the opening of the next turn. So the
text to append must not depend on the turn itself. It is found by rendering conversations that differ only in the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..errors import TemplateError
from ..format import Format
from ._history import for_template, template_needs
from ._template import ChatTemplate

__all__ = ["Between", "Proof", "between_turns"]

Proof = Literal["prefix", "turn", "none"]
"""``prefix``: the template renders the longer conversation as the shorter one and more. ``turn``: it changes earlier
text, but writes the same after any turn. ``none``: what it writes depends on the turn."""

_WORDS: Final = ("qzbridge", "qzcrossings")
"""Words that mark the end of the turn. They have different lengths."""


@dataclass(frozen=True, slots=True)
class Between:
    """The text between two turns.

    Attributes:
        ends: markers that may end a turn.
        end: the one that does; empty if none does, because the next turn's marker does.
        text: what follows it: the new messages, and the opening of the next turn.
        proof: how certain that is.
    """

    ends: tuple[str, ...]
    end: str
    text: str
    proof: Proof


def between_turns(
    template: ChatTemplate,
    format: Format,
    new_messages: Sequence[Mapping[str, Any]],
    *,
    messages: Sequence[Mapping[str, Any]] | None = None,
    tools: Sequence[Any] | None = None,
    **variables: Any,
) -> Between:
    """Return the text between a turn of the model and its next one.

    Args:
        template: the chat template.
        format: of the model's turns.
        new_messages: the messages between them, such as results of calls.
        messages: the conversation up to the turn, which is its last message. ``None``: any conversation.
        tools, variables: as for `ChatTemplate.render`.

    Raises:
        ValueError: ``messages`` does not end with a message of the assistant.
        TemplateError: the template cannot render this, or ends a turn in another way if messages follow it.
    """
    if messages is not None and (not messages or messages[-1].get("role") != "assistant"):
        last = f"role {messages[-1].get('role')!r}" if messages else "no message"
        raise ValueError(f"messages: must end with the sampled turn, of role 'assistant'; ends with {last}")
    needs = template_needs(template)
    end_of_turn = format.turn.end
    ends = (template.eos_token, *(() if end_of_turn is None else (end_of_turn.text.strip(), *end_of_turn.accepted)))
    before = [{"role": "user", "content": "qzasked"}] if messages is None else list(messages[:-1])

    def rendered(turn: Mapping[str, Any], new: Sequence[Mapping[str, Any]] = new_messages) -> tuple[str, str]:
        """Return the conversation up to the turn, and with the new messages."""
        texts = [
            template.render(
                for_template([dict(message) for message in conversation], needs, format),
                tools=tools,
                add_generation_prompt=len(conversation) > len(before) + 1,
                **variables,
            )
            for conversation in ([*before, turn], [*before, turn, *new])
        ]
        return texts[0], texts[1]

    found = [_after(word, new_messages, rendered) for word in _WORDS]
    if None in found:
        raise TemplateError("bridge: the template does not write the model's turn", name=template.name)
    (closing, after), other = found  # type: ignore[misc]
    cuts = [(closing.find(end), end) for end in ends if end and end in closing]
    at, end = min(cuts, default=(len(closing), ""))
    size = at + len(end)
    if after[:size] != closing[:size]:
        raise TemplateError("bridge: the template ends a turn in another way if messages follow", name=template.name)
    for i, message in enumerate(new_messages):
        changed = [*new_messages[:i], {**message, "content": "qzother"}, *new_messages[i + 1 :]]
        turn = _turn(_WORDS[0], new_messages, _WORDS[0])
        if message.get("content") and rendered(turn)[1] == rendered(turn, changed)[1]:
            raise TemplateError(f"bridge: the template does not write new_messages[{i}]", name=template.name)
    proof: Proof = "none" if other != found[0] else "turn"
    if proof == "turn":
        short, long = rendered(_turn(_WORDS[0], new_messages) if messages is None else messages[-1])
        if long.startswith(short) and long.endswith(after[size:]):
            proof = "prefix"
    return Between(ends, end, after[size:], proof)


def _after(
    word: str, new_messages: Sequence[Mapping[str, Any]], rendered: Callable[[Mapping[str, Any]], tuple[str, str]]
) -> tuple[str, str] | None:
    """Return what follows ``word`` in both conversations; ``None`` if it is not there."""
    for content in ("", word):  # some templates write no calls
        short, long = rendered(_turn(word, new_messages, content))
        if word in short and word in long:
            return short.rpartition(word)[2], long.rpartition(word)[2]
    return None


def _turn(word: str, new_messages: Sequence[Mapping[str, Any]], content: str = "") -> dict[str, Any]:
    """Return a turn of the model that ends with ``word``: with the calls that the new messages answer, if they do."""
    answers = [message for message in new_messages if message.get("role") == "tool"]
    if not answers:
        return {"role": "assistant", "content": word}
    calls = [
        {
            "id": answer.get("tool_call_id") or f"call{i:05}",
            "type": "function",
            "function": {"name": answer.get("name") or "qzcall", "arguments": {"qzkey": word}},
        }
        for i, answer in enumerate(answers)
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}
