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
    with _LOCK:
        found = _CACHE.get(key)
        if found is not None:
            _CACHE.move_to_end(key)
            return found
    for tool in chosen.tools:
        if tool.strict:
            check_shape(tool.schema, tool.name)
    if response is not None:
        check_shape(response, "")
    lazy = dialect == "gbnf" and chosen.mode == "auto" and start not in ("open", "either") and response is None
    switches = triggers(fmt, special, chosen.tools) if chosen.mode == "auto" else ()
    options = Options(chosen, parallel_tool_calls, start, response, lazy and bool(switches))
    schemas = {tool.name: tool.schema.key for tool in chosen.tools} | ({} if response is None else {"": response.key})
    rules = build(fmt, options, special)
    value = None
    if dialect == "gbnf":
        text = gbnf.write(rules)
    elif dialect == "lark":
        text = lark.write(rules)
    else:
        try:
            value = structural_tag.write(rules)
        except structural_tag.NeedsText:
            rules = build(fmt, options, special, spelled=True)
            special = {}
            value = structural_tag.write(rules)
        text = json.dumps(value, ensure_ascii=False)
    check_size(text, schemas)
    preserved = tuple(t for t in fmt.special_tokens if tokens is None or t in tokens)
    grammar = Grammar(
        dialect=dialect,  # type: ignore[arg-type]
        text=text,
        lazy=options.lazy,
        triggers=switches,
        preserved_tokens=preserved,
        by_id=bool(special),
        notes=tuple(dict.fromkeys(rules.notes)),
        json=value,
    )
    with _LOCK:
        _CACHE[key] = grammar
        if len(_CACHE) > _CACHED:
            _CACHE.popitem(last=False)
    return grammar


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
