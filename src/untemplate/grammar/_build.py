"""Format + tools + options → Rules: what the output may be, in canonical spellings.

Rules of this module:

* Everything comes from the Format and from the Program that the parser runs: which literals would be markers in free
  text is read from the Program's edges, so text that the grammar allows is text to the parser.
* An output is [reasoning] then content, calls, or content and calls. Nothing follows the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from .._internal.machine import rules
from .._internal.machine.compiler import compile_format
from .._internal.machine.program import Program
from ..errors import GrammarError
from ..format import Content, Format, NamedBody
from ._calls import Calls
from ._channels import build_channels
from ._options import SPACES, Options, excluded, spaces_before
from ._rules import (
    EMPTY,
    WS,
    Json,
    Node,
    Ref,
    Rules,
    Scan,
    Token,
    choice,
    maybe,
    seq,
)
from ._spelling import Spelling, spaces

__all__ = ["build", "first_marker"]


def build(fmt: Format, options: Options, tokens: Mapping[str, int], *, spelled: bool = False) -> Rules:
    """Return the rules of one request.

    Args:
        tokens: the special tokens of the vocabulary, where it is known.
        spelled: write them as text, although their ids are known.

    Raises:
        GrammarError: a name or keyword that cannot be written; a choice that this Format cannot follow.
    """
    if fmt.channels is not None:
        return build_channels(fmt, fmt.channels, options, Spelling(tokens, spelled))
    return _Build(fmt, options, Spelling(tokens, spelled)).rules


def bare_heads(program: Program) -> str:
    """Return the first characters of calls that have no marker."""
    text = program.states[program.content]
    return "".join(
        sorted({t.strip(WS)[0] for t, i in text.literals.tags.items() if text.rules[i].kind == rules.OPEN_BARE_CALLS})
    )


@lru_cache(64)
def _compiled(fmt: Format) -> Program:
    return compile_format(fmt)


class _Build:
    def __init__(self, fmt: Format, options: Options, spelling: Spelling) -> None:
        self.fmt = fmt
        self.options = options
        self.spelling = spelling
        self.program = _compiled(fmt)
        self.rules = Rules(EMPTY)
        self.calls: Calls | None = None
        mode = options.selection.mode
        if mode != "none":
            if not fmt.tools:
                raise GrammarError(f"format {fmt.name!r} has no way to write calls")
            self.calls = Calls(
                fmt,
                fmt.tools[0],
                self.program.call_syntaxes[0],
                options.selection.tools,
                options.parallel,
                spelling,
                self.rules,
            )
        self.rules.root = self._lazy() if options.lazy else self._whole()

    def _lazy(self) -> Node:
        assert self.calls is not None
        opener = self.calls.opener()
        if opener is None:
            return self.calls.after_opener()
        return seq(self.spelling.node(opener.text.strip(WS)), self.calls.after_opener())

    def _whole(self) -> Node:
        reasoning = self.fmt.reasoning
        self.rules.rules["answer"] = self._answer()
        answer = Ref("answer")
        start = self.options.start
        if reasoning is None or start == "off":
            return answer
        close = reasoning.close.text
        core = close.strip(WS)
        tail = close[close.index(core) + len(core) :]
        stop, rest = self.spelling.stop(core)
        excludes = excluded(self.program, self.program.reasoning, self.spelling.tokens)
        inside = seq(Scan(excludes, ((stop, rest),)), spaces(tail), answer)
        if start == "open" or (start == "either" and reasoning.open is None):
            return inside
        if reasoning.open is None:
            return answer
        opened = reasoning.open.text
        bare = opened.strip(WS)
        after = opened[opened.index(bare) + len(bare) :]
        lead = spaces(opened[: opened.index(bare)])
        self.rules.rules["reasoning"] = inside
        inside = Ref("reasoning")
        opening = seq(lead, self.spelling.node(bare), spaces(after), inside)
        return choice(opening, inside if start == "either" else answer)

    # -- content and calls --------------------------------------------------------------------------------------

    def _answer(self) -> Node:
        """Return the rules for everything after the reasoning."""
        mode = self.options.selection.mode
        if mode == "none":
            return self._content(None)
        assert self.calls is not None
        opener = self.calls.opener()
        calls = self.calls.after_opener()
        self.rules.rules["calls"] = calls
        calls = Ref("calls")
        if mode == "required":
            if opener is None:
                return seq(SPACES, calls)
            return seq(spaces_before(opener.text), self.spelling.node(opener.text.strip(WS)), calls)
        if opener is None:
            return choice(seq(SPACES, calls), self._content(None))
        return self._content(self.spelling.stop(opener.text.strip(WS), calls), opener.text)

    def _names_of_lone_calls(self) -> tuple[str, ...]:
        """Return the beginnings of calls without a marker that begin with the name of a tool: ``get_weather(``."""
        if self.calls is None or self.program.states[self.program.content].lone_calls is None:
            return ()
        return tuple(f"{tool.name}(" for tool in self.options.selection.tools)

    def _content(self, calls: tuple[str | Token, Node] | None, opener: str = "") -> Node:
        """Return the rules for content, and for the calls after it, which have this opener."""
        wrap = self.fmt.content
        always = wrap is not None and wrap.written == "always"
        after = EMPTY if calls is None else seq(spaces_before(opener), calls[0], calls[1])
        ways: list[Node] = []
        if wrap is not None:
            ways.append(seq(self._wrapped(wrap), maybe(after)))
        if not always:
            stops = () if calls is None else (calls,)
            ways.append(self._text(stops, ends=True) if self.options.response is None else self._json())
        if calls is not None and (always or self.options.response is not None):
            ways.append(after)
        return choice(*ways)

    def _wrapped(self, wrap: Content) -> Node:
        """Return the rules for content between its markers."""
        opened, closed = wrap.open.text, wrap.close.text
        bare = closed.strip(WS)
        stop, rest = self.spelling.stop(bare)
        end = spaces(closed[closed.index(bare) + len(bare) :])
        text = self._text(((stop, rest),)) if self.options.response is None else seq(self._json(), SPACES, stop, rest)
        opening = self.spelling.node(opened.strip(WS))
        return seq(spaces_before(opened), opening, spaces(opened[len(opened.rstrip(WS)) :]), text, end)

    def _text(self, stops: tuple[tuple[str | Token, Node], ...], *, ends: bool = False) -> Node:
        """Return the rules for content that is any text."""
        heads, names = bare_heads(self.program), self._names_of_lone_calls()
        return Scan(self._markers(), stops, ends=ends, begins_not=heads, begins_not_with=names)

    def _json(self) -> Node:
        """Return the rules for content that follows the request's schema."""
        assert self.options.response is not None
        # A marker in one of its strings would be a marker.
        ends = () if self.fmt.content is None else self.fmt.content.close.spellings
        return seq(SPACES, Json(self.options.response, excludes=tuple(dict.fromkeys((*self._markers(), *ends)))))

    def _markers(self) -> tuple[str, ...]:
        return excluded(self.program, self.program.content, self.spelling.tokens)


def first_marker(fmt: Format) -> str | None:
    """Return the marker that calls begin with; ``None`` if they have no marker."""
    way = fmt.tools[0]
    body = way.body
    opener = way.section_open or way.call_open or (body.name_open if isinstance(body, NamedBody) else None)
    if opener is None:
        return None
    return opener.text.strip(WS)
