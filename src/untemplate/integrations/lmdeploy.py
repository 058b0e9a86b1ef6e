"""Tool parsers for LMDeploy's server, one for each name of the catalogue whose calls have a marker at each end.

>>> from untemplate.integrations.lmdeploy import register     # doctest: +SKIP
>>> register()                                                # doctest: +SKIP

Then ``--tool-call-parser untemplate:hermes`` names one. LMDeploy finds the first marker itself, and reads reasoning
before that. A call is streamed as it is written; a tool that was not offered is left out, as by LMDeploy's own parsers.
Forced calls (``tool_choice="required"``) are decoded in the format, by a structural tag.

Source: ``lmdeploy/serve/parsers/tool_parser/`` of LMDeploy 0.18.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._internal.output_parser import OutputParser
from .._internal.stream import Stream
from ..formats import names
from ._markers import markers_around_calls
from ._partner import Theirs, partner

__all__ = ["UntemplateToolParser", "register"]

_MOST_CLOSES: Final = 64
"""Last markers at which the block is parsed again. No call is known with so many in its strings; with more of them the
block goes on to the end of the output."""
_theirs: Final = partner("lmdeploy.serve.parsers.tool_parser", "lmdeploy", "0.18")


if TYPE_CHECKING:
    _ToolParser = Theirs
else:
    _ToolParser = _theirs.ToolParser


class UntemplateToolParser(_ToolParser):
    """Reads the calls between two markers, which LMDeploy's response parser looks for."""

    parser: ClassVar[OutputParser]
    with_reasoning: ClassVar[OutputParser]
    """The same, with the reasoning of the name. It writes the grammar of answers that begin in reasoning."""
    markers: ClassVar[tuple[str, str]]

    _block: list[str]
    """The pieces of the block so far, its first marker included."""
    _closes: int
    """Last markers in it, of which all but the last are text inside a call."""
    _stream: Stream

    @classmethod
    def get_tool_open_tag(cls) -> str:
        return cls.markers[0]

    @classmethod
    def get_tool_close_tag(cls) -> str:
        return cls.markers[1]

    @classmethod
    def build_required_response_format(cls, tools: list[Any], *, reasoning: bool) -> dict[str, Any]:
        """Return the structural tag that forces a call of one of the tools."""
        offered = [tool.model_dump(exclude_none=True) for tool in tools]
        parser = cls.with_reasoning if reasoning and cls.with_reasoning.format.reasoning is not None else cls.parser
        begins = "open" if parser is cls.with_reasoning else "off"
        grammar = parser.grammar(offered, tool_choice="required", dialect="structural_tag", reasoning=begins)
        found: dict[str, Any] = json.loads(grammar.text)
        return found

    def begin_tool_block(self) -> None:
        super().begin_tool_block()  # type: ignore[misc]  # LMDeploy has it
        self._block = []
        self._closes = 0
        self._stream = self.parser.stream()
        self._take(self.markers[0], [])

    def feed_tool_block(self, text: str, deltas: list[Any], *, final: bool) -> int:
        """Read text after the first marker, add what it says of calls to ``deltas``, and return its length up to what
        has to be given again: the beginning of the last marker."""
        if self.block_closed:
            return 0
        close, at = self.markers[1], 0
        while (found := text.find(close, at)) >= 0:
            self._take(text[at : found + len(close)], deltas)
            at = found + len(close)
            self._closes += 1
            if self._closes < _MOST_CLOSES and self._is_whole():
                self._end(deltas)
                return at
        end = len(text) if final else self._without_beginning_of_close(text, at)
        self._take(text[at:end], deltas)
        if final:
            self._end(deltas)
        return end

    def _without_beginning_of_close(self, text: str, at: int) -> int:
        close = self.markers[1]
        longest = min(len(close) - 1, len(text) - at)
        return next((len(text) - n for n in range(longest, 0, -1) if text.endswith(close[:n])), len(text))

    def _is_whole(self) -> bool:
        """False if the last marker is text inside a call: in a string, for example."""
        calls = self.parser.parse("".join(self._block)).tool_calls
        return not calls or calls[-1].status != "incomplete"

    def _end(self, deltas: list[Any]) -> None:
        self._emit(self._stream.finish(), deltas)
        self._close_tool_block()

    def _take(self, text: str, deltas: list[Any]) -> None:
        self._block.append(text)
        self._emit(self._stream.feed(text), deltas)

    def _emit(self, found: list[Any], deltas: list[Any]) -> None:
        for delta in found:
            for call in delta.tool_calls or ():
                if call.id is not None:
                    self._begin_call(call.id)
                if call.function is not None:
                    self._emit_delta(deltas, name=call.function.name, arguments=call.function.arguments)


def register() -> list[str]:
    """Register the tool parsers, and return their names.

    Formats that mark content or messages are left out, since LMDeploy would not remove the marks. So are names with a
    dot: its registry takes what is before the dot for a package.
    """
    registered = []
    for name in names("tool"):
        named = OutputParser.named(name)
        if "." in name or named.format.content is not None or named.format.channels is not None:
            continue
        parser = OutputParser.from_format(named.format.extend(reasoning=None))
        try:
            markers = markers_around_calls(parser.format, "LMDeploy")
        except ValueError:
            continue
        own = {"parser": parser, "with_reasoning": named, "markers": markers}
        made = type("UntemplateToolParser", (UntemplateToolParser,), own)
        registered.append(f"untemplate:{name}")
        _theirs.ToolParserManager.register_module(registered[-1], force=True, module=made)
    return registered
