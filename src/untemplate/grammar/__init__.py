"""Constrained decoding: a Format and the tools of a request → a grammar for the engine that decodes.

Rules of this package:

* Derived from the Format and the tools, by one path: ``build`` makes rules, a writer per dialect writes them.
* Sound: what the grammar accepts, the parser of that Format reads as calls that validate. What a dialect cannot
  express is an error that names it, or a weakening that :attr:`Grammar.notes` lists.
* No engine is imported: the texts are for engines elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, get_args

from .._internal.backends.requests import get
from ..errors import GrammarError
from ..format import Format
from . import _gbnf as gbnf
from . import _lark as lark
from . import _structural_tag as structural_tag
from ._build import build
from ._choose import ToolSelection, read_choice, read_tools
from ._limits import check_size
from ._options import Options, Start
from ._result import SERVERS, Dialect, Grammar
from ._rules import JsonSchema
from ._schema import frozen
from ._shape import check_shape
from ._triggers import Trigger, triggers

__all__ = ["SERVERS", "Dialect", "Grammar", "GrammarError", "Trigger", "make_grammar"]

_CACHED: Final = 256
"""Grammars that are kept."""


def make_grammar(
    fmt: Format,
    tools: Iterable[Any] | None,
    tool_choice: Any = "auto",
    *,
    parallel_tool_calls: bool = True,
    strict: bool = False,
    dialect: str = "gbnf",
    reasoning: str | None = None,
    response_format: Any = None,
    tokens: Mapping[str, int] | None = None,
) -> Grammar:
    """The grammar of one request; see :meth:`untemplate.OutputParser.grammar`. ``tokens``: the vocabulary's special
    tokens, if it is known.

    Raises:
        GrammarError: what cannot be written, with the tool and the keyword or name that is the reason.
    """
    if dialect not in get_args(Dialect):
        raise GrammarError(f"dialect {dialect!r} is not one of: {', '.join(map(repr, get_args(Dialect)))}")
    if reasoning not in (None, "open", "closed", "off"):
        raise GrammarError(f"reasoning {reasoning!r} is not one of: 'open', 'closed', 'off'")
    chosen = read_choice(tool_choice, read_tools(tools, strict))
    response = _response(response_format)
    start = _start(fmt, reasoning)
    special = tuple((t, i) for t, i in (tokens or {}).items() if t in fmt.special_tokens)
    preserved = tuple(t for t in fmt.special_tokens if tokens is None or t in tokens)
    return _make(fmt, dialect, chosen, parallel_tool_calls, start, response, special, preserved)


@lru_cache(_CACHED)
def _make(
    fmt: Format,
    dialect: str,
    chosen: ToolSelection,
    parallel: bool,
    start: Start,
    response: JsonSchema | None,
    special: tuple[tuple[str, int], ...],
    preserved: tuple[str, ...],
) -> Grammar:
    """Make a grammar; requests often ask for the same one again."""
    for tool in chosen.tools:
        if tool.strict:
            check_shape(tool.schema, tool.name)
    if response is not None:
        check_shape(response, "")
    tokens = dict(special)
    lazy = dialect == "gbnf" and chosen.mode == "auto" and start not in ("open", "either") and response is None
    switches = triggers(fmt, tokens, chosen.tools) if chosen.mode == "auto" else ()
    options = Options(chosen, parallel, start, response, lazy and bool(switches))
    schemas = {tool.name: tool.schema.key for tool in chosen.tools} | ({} if response is None else {"": response.key})
    written = _write(fmt, options, tokens, dialect)
    check_size(written.text, schemas)
    return Grammar(
        dialect=dialect,  # type: ignore[arg-type]
        text=written.text,
        lazy=options.lazy,
        triggers=switches,
        preserved_tokens=preserved,
        by_id=written.by_id,
        notes=tuple(dict.fromkeys(written.notes)),
        json=written.json,
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """A grammar in a dialect."""

    text: str
    notes: list[str]
    by_id: bool
    """True if special tokens are written by id."""
    json: dict[str, Any] | None = None


def _write(fmt: Format, options: Options, special: Mapping[str, int], dialect: str) -> _Written:
    rules = build(fmt, options, special)
    if dialect == "gbnf":
        return _Written(gbnf.write(rules), rules.notes, bool(special))
    if dialect == "lark":
        return _Written(lark.write(rules), rules.notes, bool(special))
    by_id = bool(special)
    try:
        value = structural_tag.write(rules)
    except structural_tag.NeedsText:
        rules, by_id = build(fmt, options, special, spelled=True), False
        value = structural_tag.write(rules)
    return _Written(json.dumps(value, ensure_ascii=False), rules.notes, by_id, value)


def _start(fmt: Format, reasoning: str | None) -> Start:
    if reasoning is not None:
        if reasoning == "open" and fmt.reasoning is None and (fmt.channels is None or not fmt.channels.has_reasoning):
            raise GrammarError(f"reasoning 'open': format {fmt.name!r} has no reasoning")
        return reasoning  # type: ignore[return-value]
    if fmt.reasoning is None:
        return "closed"
    return "either" if fmt.reasoning.open is None or fmt.reasoning.start == "open" else "closed"


def _response(response_format: Any) -> JsonSchema | None:
    """The JSON schema that content must follow."""
    if response_format is None:
        return None
    kind = get(response_format, "type")
    if kind == "text":
        return None
    if kind == "json_object":
        return frozen({"type": "object"}, "")
    if kind == "json_schema":
        inner = get(response_format, "json_schema")
        schema = get(response_format, "schema")
        if inner is not None:
            schema = get(inner, "schema")
        if isinstance(schema, Mapping):
            return frozen(schema, "")
        raise GrammarError("response_format: 'json_schema' has no schema")
    if isinstance(response_format, Mapping):
        return frozen(response_format, "")
    raise GrammarError(f"response_format: type {kind!r} is not 'text', 'json_object' or 'json_schema'")
