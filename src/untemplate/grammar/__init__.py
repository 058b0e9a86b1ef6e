"""Constrained decoding: a Format and the tools of a request → a grammar for the engine that decodes.

Rules of this package:

* Derived from the Format and the tools, by one path: ``build`` makes rules, a writer per dialect writes them.
* Sound: what the grammar accepts, the parser of that Format reads as calls that validate. What a dialect cannot
  express is an error that names it, or a weakening that :attr:`Grammar.notes` lists.
* No engine is imported: the texts are for engines elsewhere.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from ..errors import GrammarError
from ..format import Format
from . import gbnf, lark, structural_tag
from .build import build
from .choose import read_choice, read_tools
from .limits import check_size
from .options import Options, Start
from .result import SERVERS, Dialect, Grammar
from .rules import JsonSchema
from .schema import frozen
from .shape import check_shape
from .triggers import Trigger, triggers

__all__ = ["SERVERS", "Dialect", "Grammar", "GrammarError", "Trigger", "make_grammar"]

_CACHE: Final[OrderedDict[Any, Grammar]] = OrderedDict()
_CACHED: Final = 256
_LOCK: Final = threading.Lock()
"""Held while the cache is used: grammars are made in several threads."""


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
    special = {t: i for t, i in (tokens or {}).items() if t in fmt.special_tokens}
    key = (fmt, dialect, chosen, parallel_tool_calls, start, response, tuple(special.items()))
    known = _cached(key)
    if known is not None:
        return known
    for tool in chosen.tools:
        if tool.strict:
            check_shape(tool.schema, tool.name)
    if response is not None:
        check_shape(response, "")
    lazy = dialect == "gbnf" and chosen.mode == "auto" and start not in ("open", "either") and response is None
    switches = triggers(fmt, special, chosen.tools) if chosen.mode == "auto" else ()
    options = Options(chosen, parallel_tool_calls, start, response, lazy and bool(switches))
    schemas = {tool.name: tool.schema.key for tool in chosen.tools} | ({} if response is None else {"": response.key})
    written = _write(fmt, options, special, dialect)
    check_size(written.text, schemas)
    grammar = Grammar(
        dialect=dialect,  # type: ignore[arg-type]
        text=written.text,
        lazy=options.lazy,
        triggers=switches,
        preserved_tokens=tuple(t for t in fmt.special_tokens if tokens is None or t in tokens),
        by_id=written.by_id,
        notes=tuple(dict.fromkeys(written.notes)),
        json=written.json,
    )
    _keep(key, grammar)
    return grammar


def _cached(key: Any) -> Grammar | None:
    with _LOCK:
        found = _CACHE.get(key)
        if found is not None:
            _CACHE.move_to_end(key)
        return found


def _keep(key: Any, grammar: Grammar) -> None:
    with _LOCK:
        _CACHE[key] = grammar
        if len(_CACHE) > _CACHED:
            _CACHE.popitem(last=False)


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
    kind = _get(response_format, "type")
    if kind == "text":
        return None
    if kind == "json_object":
        return frozen({"type": "object"}, "")
    if kind == "json_schema":
        inner = _get(response_format, "json_schema")
        schema = _get(response_format, "schema")
        if inner is not None:
            schema = _get(inner, "schema")
        if isinstance(schema, Mapping):
            return frozen(schema, "")
        raise GrammarError("response_format: 'json_schema' has no schema")
    if isinstance(response_format, Mapping):
        return frozen(response_format, "")
    raise GrammarError(f"response_format: type {kind!r} is not 'text', 'json_object' or 'json_schema'")


def _get(part: Any, key: str) -> Any:
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)
