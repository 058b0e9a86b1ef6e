"""Ways to make a server's own model write a given text.

Each way is the fields of a request. A grammar names special tokens by id where the server shows its tokenizer,
because ordinary tokens could spell them as well.

Sources: the API references of vLLM (structured outputs, older: guided decoding), SGLang (structured outputs),
TensorRT-LLM (guided decoding) and llama.cpp (``tools/server/README.md``), November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..grammar import gbnf, structural_tag
from ..grammar.rules import Lit, Node, Rules, Token, seq

__all__ = ["WAYS", "forced"]

Build = Callable[[str, Rules], dict[str, Any]]


def _regex(text: str) -> str:
    """Return a regular expression for one text, with the escapes that every engine knows."""
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text).replace("\n", "\\n").replace("\r", "\\r")


WAYS: Final[dict[str, Build]] = {
    "structural_tag": lambda _, rules: {"response_format": structural_tag.write(rules)},
    "grammar": lambda _, rules: {"grammar": gbnf.write(rules)},
    "choice": lambda text, _: {"structured_outputs": {"choice": [text]}},
    "guided_choice": lambda text, _: {"guided_choice": [text]},
    "regex": lambda text, _: {"regex": _regex(text)},
    "ebnf": lambda _, rules: {"ebnf": gbnf.write(rules)},
    "response_format.regex": lambda text, _: {"response_format": {"type": "regex", "regex": _regex(text)}},
    "prefix": lambda text, _: {"prefix": text},
}
"""Way → the fields that it adds, in the order in which they are tried.

``prefix`` is an assistant message that the server continues and parses as a whole; `forced` puts it into the messages,
and a bias ends the output at once.
"""


def forced(
    way: str, body: Mapping[str, Any], text: str, tokens: Mapping[str, int], end: int | None = None
) -> dict[str, Any]:
    """Return a request that makes the model write a text.

    Args:
        tokens: special tokens with their ids, as far as they are known.
        end: id of the token that ends the turn, for ``prefix``.
    """
    fields = WAYS[way](text, Rules(_node(text, tokens)))
    prefix = fields.pop("prefix", None)
    found = {**body, **fields}
    if prefix is not None:
        found["messages"] = [*body["messages"], {"role": "assistant", "content": prefix}]
        found |= {"max_tokens": 1} if end is None else {"logit_bias": {str(end): 100}}
    return found


def _node(text: str, tokens: Mapping[str, int]) -> Node:
    if not tokens:
        return Lit(text)
    pattern = "|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))
    parts = re.split(f"({pattern})", text)
    return seq(*(Token(part, tokens[part]) if part in tokens else part for part in parts if part))
