"""Messages with headers (gpt-oss, Functionary 3.2) → rules.

Rules of this module:

* A turn is [reasoning message] then a content message, calls, or a preamble and calls; the generation prompt has
  opened the first message, and the last one's close is the end of the turn.
* Headers are written in the one order that the renderer writes them in.
"""

from __future__ import annotations

from .._internal.machine.compiler import compile_format
from ..errors import GrammarError
from ..format import Channels, Format
from ..format._markers import text_of
from ._calls import ANY_OBJECT, Calls
from ._choose import Tool
from ._options import SPACES, Options, excluded
from ._rules import EMPTY, Json, Node, Ref, Rules, Scan, choice, maybe, seq, star
from ._spelling import Spelling

__all__ = ["build_channels"]


def build_channels(fmt: Format, channels: Channels, options: Options, spelling: Spelling) -> Rules:
    """Return the rules of one request for a Format with channels.

    Raises:
        GrammarError: a tool name that no header can hold; reasoning in a Format without it.
    """
    return _Build(fmt, channels, options, spelling).rules


class _Build:
    def __init__(self, fmt: Format, channels: Channels, options: Options, spelling: Spelling) -> None:
        self.fmt = fmt
        self.channels = channels
        self.options = options
        self.spelling = spelling
        program = compile_format(fmt)
        self.excludes = excluded(program, 0, spelling.tokens)
        self.rules = Rules(EMPTY)
        tools = options.selection.tools
        self.calls: Calls | None = None
        if fmt.tools and tools:
            # The first syntax is the one of arguments after a header.
            syntax = program.call_syntaxes[1]
            self.calls = Calls(fmt, fmt.tools[0], syntax, tools, False, spelling, self.rules)
        self.rules.budget.offer(len(tools), tools[-1].name if tools else "", "", "name")
        self.rules.rules["answer"] = self._answer()
        self.rules.root = self._root()

    def _root(self) -> Node:
        answer: Node = Ref("answer")
        channels = self.channels
        if not channels.has_reasoning or self.options.start == "off":
            return answer
        inside = self._message(answer)
        if self.options.start == "open":
            return inside
        return choice(seq(self._reasoning_header(), inside), answer)

    def _message(self, then: Node) -> Node:
        """Return the rules for the text of a message and the message after it."""
        channels = self.channels
        joint = self.spelling.node(channels.open.text + channels.role)
        if channels.close is None:
            return Scan(self.excludes, (self.spelling.stop(channels.open.text, seq(channels.role, then)),))
        return Scan(self.excludes, (self.spelling.stop(channels.close.text, seq(joint, then)),))

    def _answer(self) -> Node:
        channels = self.channels
        selection = self.options.selection
        response = self.options.response
        text: Node = (
            Scan(self.excludes, ends=True) if response is None else seq(SPACES, Json(response, excludes=self.excludes))
        )
        content = seq(self._header(channels.content[0] if channels.content else ""), text)
        if selection.mode == "none":
            return content
        self.rules.rules["calls"] = self._calls()
        calls = Ref("calls")
        if selection.mode == "required":
            return calls
        preamble = seq(self._header(channels.preamble or "".join(channels.content[:1])), self._message(calls))
        return choice(content, preamble, calls) if response is None else choice(content, calls)

    def _calls(self) -> Node:
        """Return the rules for the messages of calls, or for one message with all of them."""
        channels = self.channels
        self.rules.rules["call"] = choice(*(self._call(tool) for tool in self.options.selection.tools))
        close = text_of(channels.call_close or channels.close)
        calls: Node = Ref("call")
        if self.calls is not None and channels.calls_together:
            between = self.fmt.tools[0].separator
            more = star(EMPTY if between is None else self.spelling.node(between.text), Ref("call"))
            calls = seq(self._call_header(""), calls, more if self.options.parallel else EMPTY)
        elif self.options.parallel:
            again = self.spelling.node(close + channels.open.text + channels.role)
            calls = seq(calls, star(again, Ref("call")))
        return seq(calls, maybe(self.spelling.node(close)))

    def _reasoning_header(self) -> Node:
        body = self.channels.reasoning_body
        return self._header(self.channels.reasoning[0]) if body is None else self.spelling.node(body.text)

    def _header(self, channel: str) -> Node:
        channels = self.channels
        before = channels.channel or channels.recipient
        opened = "" if before is None or not channel else before.text
        return self.spelling.node(opened + channel + channels.body.text)

    def _call(self, tool: Tool) -> Node:
        channels = self.channels
        name = tool.name
        bad = any(c.isspace() or c in "<>{}()[]\"'`,;=\\" for c in name)
        by_name = channels.channel is None and channels.call_body is None
        if bad or (by_name and name in (*channels.content, *channels.reasoning)):
            raise GrammarError(f"tool {name!r}: the name cannot be written in format {self.fmt.name!r}")
        if self.calls is not None:
            call = self.calls.message(tool)
            return call if channels.calls_together else seq(self._call_header(name), call)
        return seq(self._call_header(name), Json(tool.schema if tool.strict else ANY_OBJECT, name))

    def _call_header(self, name: str) -> Node:
        channels = self.channels
        parts = ""
        if channels.channel is not None and channels.call_channel is not None:
            parts += channels.channel.text + channels.call_channel
        if channels.call_name:
            parts += text_of(channels.recipient) + channels.namespace + name
        if channels.constraint is not None and channels.call_constraint is not None:
            parts += channels.constraint.text + channels.call_constraint
        return self.spelling.node(parts + (channels.call_body or channels.body).text)
