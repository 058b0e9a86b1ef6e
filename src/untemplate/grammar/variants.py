"""A schema as the plain alternatives it allows, for values whose writing depends on their type.

Rule of this module: ``anyOf``, ``oneOf``, type lists, references and ``nullable`` are taken apart; what comes out has
one ``type``, or ``enum`` or ``const``, or is ``True`` (anything goes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .reading import merged, resolve
from .rules import GrammarError, whose

__all__ = ["variants"]


def variants(schema: Any, root: Any, tool: str, depth: int = 0) -> list[Any]:
    """The alternatives of ``schema``.

    Raises:
        GrammarError: names the tool and the keyword.
    """
    if isinstance(schema, bool):
        return [schema]
    if not isinstance(schema, Mapping):
        raise GrammarError(f"{whose(tool)}: {type(schema).__name__} is not a schema")
    if depth > 32:
        raise GrammarError(f"{whose(tool)}: '$ref' points at itself")
    if "$ref" in schema:
        target = resolve(schema["$ref"], root, tool, "")
        rest = {k: v for k, v in schema.items() if k not in ("$ref", "description", "title", "default", "$defs")}
        whole = merged({**rest, "allOf": [target]}, root, tool, "") if rest and isinstance(target, Mapping) else target
        return variants(whole, root, tool, depth + 1)
    if "allOf" in schema:
        return variants(merged(schema, root, tool, ""), root, tool, depth + 1)
    for word in ("anyOf", "oneOf"):
        parts = schema.get(word)
        if isinstance(parts, Sequence) and parts:
            base = {k: v for k, v in schema.items() if k not in (word, "description", "title", "default", "$defs")}
            found: list[Any] = []
            for part in parts:
                whole = merged({**base, "allOf": [part]}, root, tool, "") if base else part
                found += variants(whole, root, tool, depth + 1)
            return found
    if "const" in schema:
        return [{"const": schema["const"]}]
    if "enum" in schema:
        return [{"enum": list(schema["enum"])}]
    types = schema.get("type")
    if types is None:
        types = "object" if "properties" in schema else "array" if "items" in schema else None
        if types is None:
            return [True]
    listed = [types] if isinstance(types, str) else list(types)
    if schema.get("nullable") is True and "null" not in listed:
        listed.append("null")
    return [{**schema, "type": kind} for kind in listed]
