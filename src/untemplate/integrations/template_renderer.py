"""A renderer for the ``renderers`` package, and so for verifiers, from a tokenizer's own chat template.

>>> path = "untemplate.integrations.template_renderer.TemplateRenderer"           # doctest: +SKIP
>>> create_renderer(tokenizer, CustomRendererConfig(import_path=path))            # doctest: +SKIP

In a configuration, ``format = "hermes"`` next to ``import_path`` names a Format of the catalogue. The package's default
renderer has no bridge and no mask of the sampled tokens; this one has both.

Source: ``renderers/base.py`` and ``renderers/custom.py`` of renderers 0.1.12.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..messages import ToolCall
from ._of_template import TemplateTurns
from ._partner import Theirs, partner

__all__ = ["TemplateRenderer", "TemplateRendererConfig"]

_LEAST: Final = "0.1.12"
_base: Final = partner("renderers.base", "renderers", _LEAST)
_configs: Final = partner("renderers.configs", "renderers", _LEAST)
_STATUSES: Final = {"ok": "OK", "incomplete": "UNCLOSED_BLOCK", "invalid_json": "INVALID_JSON"}
"""Their status for each of ours; calls with any other are malformed."""


if TYPE_CHECKING:
    _DefaultRendererConfig = Theirs
else:
    _DefaultRendererConfig = _configs.DefaultRendererConfig


class TemplateRendererConfig(_DefaultRendererConfig):
    """Other fields are variables of the template."""

    format: str | None = None
    """Name of a Format of the catalogue. Default: the one that certifies against the template."""

    _internal_fields = _configs.DefaultRendererConfig._internal_fields | {"format"}


class TemplateRenderer:
    """Writes conversations with the tokenizer's chat template, and reads answers in token ids."""

    config_class: ClassVar[type] = TemplateRendererConfig
    supports_tools: ClassVar[bool] = True
    effective_thinking_retention: ClassVar[str] = "template"

    def __init__(self, tokenizer: Any, config: Any = None) -> None:
        self.config: Any = TemplateRendererConfig() if config is None else config
        self._turns = TemplateTurns(tokenizer, self.config.format, self.config.model_extra)

    @property
    def is_prefix_stable(self) -> bool:
        """True if a conversation begins with what an earlier part of it was."""
        return self._turns.keeps_history

    def render(self, messages: list[Any], *, tools: Any = None, add_generation_prompt: bool = False) -> Any:
        """Return the ids of a conversation. Those that the model writes have the index of their message."""
        pieces = list(self._turns.pieces(messages, tools=tools))
        if add_generation_prompt:
            pieces = self._with_prompt(messages, tools, pieces)
        ids: list[int] = []
        indexes: list[int] = []
        for text, index in pieces:
            piece = self._turns.encode(text) if text else []
            ids += piece
            indexes += [-1 if index is None else index] * len(piece)
        sampled = [index >= 0 for index in indexes]
        return _base.RenderedTokens(
            token_ids=ids,
            message_indices=indexes,
            sampled_mask=sampled,
            is_content=sampled,
            message_roles=[one.get("role") or "" for one in messages],
            message_tool_names=_base.extract_message_tool_names(messages),
        )

    def _with_prompt(self, messages: list[Any], tools: Any, pieces: list[Any]) -> list[Any]:
        """Return the pieces of a prompt, where it begins with them; otherwise the prompt as one."""
        prompt = self._turns.text(messages, tools=tools, prompt=True)
        written = "".join(text for text, _ in pieces)
        if not prompt.startswith(written):
            return [(prompt, None)]
        return [*pieces[:-1], (pieces[-1][0] + prompt[len(written) :], None)]

    def render_ids(self, messages: list[Any], *, tools: Any = None, add_generation_prompt: bool = False) -> list[int]:
        """Return the ids of a conversation."""
        return list(self.render(messages, tools=tools, add_generation_prompt=add_generation_prompt).token_ids)

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: list[int] | None = None) -> Any:
        """Return the message of sampled ids."""
        parsed = self._turns.parse(token_ids, tools=tools, prompt=prompt_ids).output
        return _base.ParsedResponse(
            content=parsed.content or "",
            reasoning_content=parsed.reasoning or None,
            tool_calls=[_record(call) for call in parsed.tool_calls],
            reasoning_complete=True if parsed.content or parsed.tool_calls else None,
        )

    def get_stop_token_ids(self) -> list[int]:
        """Return the ids that end a turn."""
        return self._turns.stop_ids

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: list[int],
        previous_completion_ids: list[int],
        new_messages: list[Any],
        *,
        tools: Any = None,
    ) -> Any:
        """Return the prompt of the next turn, which begins with the ids so far; ``None`` if it depends on the turn."""
        if not self._turns.keeps_history or any(one.get("role") == "assistant" for one in new_messages):
            return None
        previous = [*previous_prompt_ids, *previous_completion_ids]
        added = self._turns.bridge(previous, new_messages, tools=tools)
        if added is None:
            return None
        ids = [*previous, *added]
        return _base.RenderedTokens(
            token_ids=ids,
            message_indices=[-1] * len(ids),
            sampled_mask=[False] * len(ids),
            is_content=[False] * len(ids),
            message_roles=[one.get("role") or "" for one in new_messages],
            message_tool_names=_base.extract_message_tool_names(new_messages),
        )


def _record(call: ToolCall) -> Any:
    arguments: Any = call.function.arguments
    if call.status not in ("incomplete", "invalid_json"):
        arguments = json.loads(arguments)
    return _base.ParsedToolCall(
        raw=call.function.arguments,
        name=call.function.name,
        arguments=arguments,
        status=_base.ToolCallParseStatus[_STATUSES.get(call.status, "MALFORMED_STRUCTURE")],
        id=call.id,
    )
