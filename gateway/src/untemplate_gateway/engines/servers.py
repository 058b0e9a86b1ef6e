"""The kinds of OpenAI-compatible servers, and what each takes beyond OpenAI's API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..generation import Constraint

_TOKENS: Final = {"skip_special_tokens": False, "return_token_ids": True}
"""Requests text with special tokens, and token ids."""


class Server(NamedTuple):
    """A kind of server. The defaults are those of an unknown one."""

    name: str = ""
    known_by: tuple[str, str] = ("", "")
    """A path, and a key of its answer, by which a server is known whose list of models does not name it."""
    fields: Mapping[str, Any] = _TOKENS
    """Fields of the gateway in each request."""
    chat_fields: Mapping[str, Any] = {"skip_special_tokens": False}
    """As ``fields``, in requests for chat completions."""
    grammar: str | None = None
    """Dialect of the grammars that it takes, and that in chat."""
    chat_grammar: str | None = None
    sampling: frozenset[str] = frozenset(("stop_token_ids", "min_tokens", "ignore_eos"))
    constraints: frozenset[str] = frozenset(("grammar", "regex", "choice"))
    text_key: str = ""
    """Name of the text in the answer to ``/detokenize``; empty if it does not detokenize."""
    echoes: bool = False
    """True if it repeats a prompt with log probabilities."""
    parsers_off: str = "turn its parsers off, or use --upstream, which reads its completions"


UNKNOWN: Final = Server()
SERVERS: Final = {
    one.name: one
    for one in (
        Server(
            name="vllm",
            known_by=("/version", "version"),
            fields={**_TOKENS, "spaces_between_special_tokens": False},
            chat_fields={**_TOKENS, "spaces_between_special_tokens": False},
            grammar="structural_tag",
            chat_grammar="structural_tag",
            text_key="prompt",
            echoes=True,
            parsers_off="start vLLM without --tool-call-parser and --reasoning-parser",
        ),
        Server(
            name="sglang",
            known_by=("/get_model_info", "model_path"),
            chat_fields={**_TOKENS, "separate_reasoning": False},
            grammar="structural_tag",
            text_key="text",
            echoes=True,
            parsers_off="start SGLang without --tool-call-parser and --reasoning-parser",
        ),
        Server(
            name="llama.cpp",
            known_by=("/props", "default_generation_settings"),
            fields={},
            chat_fields={"reasoning_format": "none", "parse_tool_calls": False},
            grammar="gbnf",
            sampling=frozenset(("stop_token_ids", "ignore_eos")),
            constraints=frozenset(("grammar", "choice")),
            text_key="content",
            parsers_off="start llama-server with --skip-chat-parsing --special",
        ),
    )
}


def constrained(constraint: Constraint | None, server: Server) -> dict[str, Any]:
    """Return the fields that carry a client's restriction to a server."""
    if constraint is None:
        return {}
    kind, value = constraint.kind, constraint.value
    choices = () if isinstance(value, str) else value
    if server.name == "llama.cpp":
        return {"grammar": f"root ::= {' | '.join(map(json.dumps, choices))}" if choices else value}
    if server.name == "sglang":
        if choices:
            return {"regex": "|".join(map(re.escape, choices))}
        return {"ebnf" if kind == "grammar" else kind: value}
    return {"structured_outputs": {kind: value}}
