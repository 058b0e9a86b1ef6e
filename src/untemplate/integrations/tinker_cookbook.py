"""Renderers for tinker-cookbook: prompts, training weights and parsed answers for any model with a chat template.

>>> from untemplate.integrations.tinker_cookbook import register     # doctest: +SKIP
>>> register()                                                       # doctest: +SKIP
>>> renderer = get_renderer("untemplate", tokenizer)                 # doctest: +SKIP

``untemplate`` chooses the Format that certifies against the tokenizer's chat template; ``untemplate:NAME`` is a Format
of the catalogue.

Source: ``tinker_cookbook/renderers/base.py`` of tinker-cookbook 0.6.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..formats import names
from ..messages import ToolCall
from ._of_template import TemplateTurns
from ._partner import Theirs, partner

__all__ = ["TemplateRenderer", "register"]

_LEAST: Final = "0.6.1"
_theirs: Final = partner("tinker_cookbook.renderers.base", "tinker-cookbook", _LEAST)
_CUT: Final = ("incomplete", "invalid_json")
_TOOLS: Final = "tools"
"""Key of the message that carries the tools: a chat template gets them by themselves."""


if TYPE_CHECKING:
    _Renderer = Theirs
else:
    _Renderer = _theirs.Renderer


class TemplateRenderer(_Renderer):
    """Writes prompts and examples with the tokenizer's chat template, and reads answers in token ids."""

    def __init__(self, tokenizer: Any, format_name: str | None = None) -> None:
        super().__init__(tokenizer)
        self._turns = TemplateTurns(tokenizer, format_name)

    @property
    def has_extension_property(self) -> bool:
        return self._turns.keeps_history

    def get_stop_sequences(self) -> list[int]:
        return self._turns.stop_ids

    def render_message(self, message: Any, ctx: Any) -> Any:
        raise _theirs.RendererError("a chat template writes conversations: a single message cannot be rendered")

    def create_conversation_prefix_with_tools(self, tools: list[Any], system_prompt: str = "") -> list[Any]:
        """Return a system message that carries the tools."""
        offered = [one if "function" in one else {"type": "function", "function": one} for one in tools]
        return [{"role": "system", "content": system_prompt, _TOOLS: offered}]

    def to_openai_message(self, message: Any) -> dict[str, Any]:
        """Return a message with its thoughts apart from its text."""
        content = message["content"]
        if isinstance(content, str):
            return dict(super().to_openai_message(message))  # type: ignore[misc]
        texts = [part for part in content if part["type"] != "thinking"]
        thoughts = "".join(part["thinking"] for part in content if part["type"] == "thinking")
        found = dict(super().to_openai_message({**message, "content": texts}))  # type: ignore[misc]
        return {**found, "reasoning_content": thoughts} if thoughts else found

    def build_generation_prompt(self, messages: list[Any], role: str = "assistant", prefill: str | None = None) -> Any:
        if role != "assistant":
            raise _theirs.RendererError(f"role {role!r}: a chat template opens turns of the assistant only")
        written, tools = self._conversation(messages)
        ids = self._turns.encode(self._turns.text(written, tools=tools, prompt=True))
        return _theirs.tinker.ModelInput.from_ints([*ids, *(self._turns.encode(prefill) if prefill else [])])

    def build_supervised_example(self, messages: list[Any], train_on_what: Any = None) -> Any:
        """Return the ids of a conversation, and 1.0 for each token that the model would write and that is trained."""
        modes = _theirs.TrainOnWhat
        mode = modes.LAST_ASSISTANT_MESSAGE if train_on_what is None else modes(train_on_what)
        written, tools = self._conversation(messages)
        wanted = self._trained(messages, mode)
        dropped = len(messages) - len(written)
        ids: list[int] = []
        weights: list[float] = []
        left = set(wanted)
        for text, index in self._turns.pieces(written, tools=tools):
            piece = self._turns.encode(text) if text else []
            place = None if index is None else index + dropped
            left.discard(place)
            ids += piece
            weights += [float(mode == modes.ALL_TOKENS or place in wanted)] * len(piece)
        if left:
            shown = ", ".join(f"messages[{index}]" for index in sorted(left))
            raise _theirs.RendererError(
                f"{shown}: the chat template does not write this turn as the model does after its prompt"
            )
        return _theirs.tinker.ModelInput.from_ints(ids), _theirs.torch.tensor(weights)

    def parse_response(self, response: list[int]) -> tuple[Any, Any]:
        """Return the message of sampled ids, and how it ended."""
        ends = [at for at, token in enumerate(response) if token in self._turns.stop_ids]
        parsed = self._turns.parse(response[: ends[0] + 1] if ends else response).output
        text = parsed.content or ""
        thoughts = [{"type": "thinking", "thinking": parsed.reasoning}] if parsed.reasoning else []
        message: dict[str, Any] = {"role": "assistant", "content": [*thoughts, *_text(text)] if thoughts else text}
        for key, calls in _calls(parsed.tool_calls).items():
            message |= {key: calls} if calls else {}
        clean = ends == [len(response) - 1]
        return message, _theirs.ParseTermination.STOP_SEQUENCE if clean else _theirs.ParseTermination.MALFORMED

    def bridge(self, previous_ids: Sequence[int], new_messages: Sequence[Any]) -> list[int] | None:
        """Return the ids to append for results of calls or the next question; ``None`` if they depend on the turn."""
        return self._turns.bridge(previous_ids, [self.to_openai_message(one) for one in new_messages])

    def _conversation(self, messages: Sequence[Any]) -> tuple[list[dict[str, Any]], Any]:
        """Return the messages for the template, and the tools. A system message with nothing but tools is left out."""
        tools = next((one[_TOOLS] for one in messages if _TOOLS in one), None)
        shown = [one for one in messages if one.get("content") or _TOOLS not in one]
        return [self.to_openai_message(one) for one in shown], tools

    def _trained(self, messages: Sequence[Any], mode: Any) -> set[int]:
        """Return the indexes of the turns to train.

        Raises:
            RendererError: the mode trains parts that are not turns of the model.
        """
        turns = {index for index, one in enumerate(messages) if one["role"] == "assistant"}
        asked = max((index for index, one in enumerate(messages) if one["role"] == "user"), default=-1)
        chosen = {
            "all_tokens": set(),
            "last_assistant_message": {len(messages) - 1} & turns,
            "last_assistant_turn": {index for index in turns if index > asked},
            "all_assistant_messages": turns,
            "customized": {index for index, one in enumerate(messages) if one.get("trainable")},
        }.get(mode.value, {-1})
        if not chosen <= turns:
            raise _theirs.RendererError(f"{mode}: only turns of the assistant can be trained, or all tokens")
        return chosen


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}] if text else []


def _calls(calls: Sequence[ToolCall]) -> dict[str, list[Any]]:
    """Return the calls with whole arguments, and the others."""
    return {
        "tool_calls": [_call(call) for call in calls if call.status not in _CUT],
        "unparsed_tool_calls": [_unparsed(call) for call in calls if call.status in _CUT],
    }


def _call(call: ToolCall) -> Any:
    body = _theirs.ToolCall.FunctionBody(name=call.function.name, arguments=call.function.arguments)
    return _theirs.ToolCall(id=call.id, function=body)


def _unparsed(call: ToolCall) -> Any:
    return _theirs.UnparsedToolCall(raw_text=f"{call.function.name}: {call.function.arguments}", error=call.status)


def register() -> None:
    """Add the renderers to the package's registry, as ``untemplate`` and ``untemplate:NAME``."""
    package = partner("tinker_cookbook.renderers", "tinker-cookbook", _LEAST)

    def factory(format_name: str | None) -> Any:
        def make(tokenizer: Any, image_processor: Any = None) -> TemplateRenderer:
            return TemplateRenderer(tokenizer, format_name)

        return make

    named: Mapping[str, str | None] = {"untemplate": None} | {f"untemplate:{name}": name for name in names()}
    for name, format_name in named.items():
        package.register_renderer(name, factory(format_name))
