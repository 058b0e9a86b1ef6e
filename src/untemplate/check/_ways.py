"""Ways to make a server's own model write a given text.

Each way is the fields of a request.

Sources: the API references of vLLM (structured outputs, older: guided decoding), SGLang (structured outputs),
TensorRT-LLM (guided decoding) and llama.cpp (``tools/server/README.md``), November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..grammar import _gbnf as gbnf
from ..grammar import _structural_tag as structural_tag
from ..grammar._rules import Lit, Rules

Build = Callable[[str, Rules], dict[str, Any]]


_LIKELY: Final = 100
"""The strongest bias of a token that OpenAI's API allows."""


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


CONTINUED: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "continue_final_message": ({"continue_final_message": True, "add_generation_prompt": False}, {}),
    "prefix": ({}, {"prefix": True}),
    "assistant message": ({}, {}),
}
"""Way to make the model continue an assistant message → fields of the request, and of that message. Sources: the API
references of vLLM and SGLang, of DeepSeek and Mistral, and of llama.cpp."""


def forced(
    way: str, body: Mapping[str, Any], text: str, tokens: Mapping[str, int], end: int | None = None
) -> dict[str, Any]:
    """Return a request that makes the model write a text.

    Args:
        tokens: special tokens with their ids, as far as they are known. They are made likely, because a grammar allows
            ordinary tokens that spell them as well.
        end: id of the token that ends the turn, for ``prefix``.
    """
    fields = WAYS[way](text, Rules(Lit(text)))
    prefix = fields.pop("prefix", None)
    bias = {str(token): _LIKELY for marker, token in tokens.items() if marker in text}
    found = {**body, **fields}
    if prefix is not None:
        found["messages"] = [*body["messages"], {"role": "assistant", "content": prefix}]
        bias = {} if end is None else {str(end): _LIKELY}
        found |= {"max_tokens": 1} if end is None else {}
    return {**found, "logit_bias": bias} if bias else found
