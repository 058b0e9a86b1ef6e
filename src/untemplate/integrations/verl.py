"""A tool parser for verl's agent loop, in place of one per model family.

verl imports this module in all its processes and registers the parsers::

    export VERL_USE_EXTERNAL_MODULES=untemplate.integrations.verl

and ``actor_rollout_ref.rollout.multi_turn.format=untemplate`` chooses the Format that certifies against the chat
template of the model's tokenizer. ``untemplate:NAME`` is a Format of the catalogue: a name, two
names (``hermes+qwen3``) or a file.

Source: ``verl/experimental/agent_loop/tool_parser.py`` of verl 0.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from ..format._markers import spellings_of
from ..messages import ParsedOutput
from ..policy import WHOLE_CALLS
from ._of_tokenizer import parser_of
from ._partner import partner

__all__ = ["UntemplateToolParser"]

_theirs: Final = partner("verl.experimental.agent_loop.tool_parser", "verl", "0.9")
_PREFIX: Final = "untemplate:"
_POLICY: Final = replace(WHOLE_CALLS, malformed_arguments="content")
"""verl runs each call that it gets; the text of a call without whole arguments remains in the content."""


@_theirs.ToolParser.register("untemplate")
class UntemplateToolParser(_theirs.ToolParser):  # type: ignore[name-defined, misc]
    """Reads calls from the ids of a response; the ids are not encoded again."""

    format_name: ClassVar[str | None] = None

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        self._parser = parser_of(tokenizer, self.format_name, _POLICY)

    @property
    def stop_token_ids(self) -> list[int]:
        """The ids of tokens that end the turn. Some models write one after a call that is not the tokenizer's EOS."""
        fmt = self._parser.format
        spellings = spellings_of(fmt.turn.end, fmt.channels.call_close if fmt.channels is not None else None)
        found = (self._parser.token_id(text) for text in dict.fromkeys(spellings))
        return [token_id for token_id in found if token_id is not None]

    async def extract_tool_calls(
        self, responses_ids: Sequence[int], tools: Sequence[Any] | None = None
    ) -> tuple[str, list[Any]]:
        """Return the text outside the calls, and the calls. Reasoning is part of the text, between its markers."""
        loop = asyncio.get_running_loop()
        parsed = await loop.run_in_executor(None, self._parse, responses_ids, tools)
        calls = [
            _theirs.FunctionCall(name=call.function.name, arguments=call.function.arguments, tool_call_id=call.id)
            for call in parsed.tool_calls
        ]
        message = {"reasoning": parsed.reasoning, "content": parsed.content}
        text = self._parser.render(message) if parsed.reasoning else parsed.content or ""
        return text, calls

    def _parse(self, responses_ids: Sequence[int], tools: Sequence[Any] | None) -> ParsedOutput:
        return self._parser.parse_tokens(responses_ids, tools=tools).output


class _Parsers(dict[str, type[Any]]):
    """verl's table of parsers, in which every ``untemplate:NAME`` is found."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and name.startswith(_PREFIX))

    def __missing__(self, name: str) -> type[Any]:
        if not name.startswith(_PREFIX):
            raise KeyError(name)
        fields = {"format_name": name.removeprefix(_PREFIX), "__module__": __name__}
        return type("UntemplateToolParser", (UntemplateToolParser,), fields)


_theirs.ToolParser._registry = _Parsers(_theirs.ToolParser._registry)
