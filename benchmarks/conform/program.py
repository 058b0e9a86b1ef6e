"""The protocol of `untemplate conform`, for adapters: requests on stdin, answers on stdout.

usage: python -m benchmarks.conform.ADAPTER [SETTING [MODE]]

An adapter answers in one of its *settings*, as a server is started and asked in one. An engine never cuts a token, so
all cuts are moved to the end of a token. In the mode *tokens* the output comes token by token. ``Unsupported`` says
why a vector cannot be asked of it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

WORD: Final = r" ?[A-Za-z]{1,6}|\d{1,3}| +(?= )|\s|[^\sA-Za-z\d]"
"""An ordinary token."""


class Unsupported(Exception):
    """The reason why the parser cannot be asked."""


def serve(settings: Sequence[Any], answer: Callable[[dict[str, Any], dict[str, Any], Any], dict[str, Any]]) -> None:
    """Answer all requests. ``answer`` gets a request, the JSON form of its Format and a setting, and returns a message
    with ``reasoning``, ``content`` and ``calls``, pairs of a name and its arguments."""
    logging.disable(logging.CRITICAL)
    setting = settings[int(sys.argv[1]) if len(sys.argv) > 1 else 0]
    out = sys.stdout
    formats = json.loads(sys.stdin.readline())["formats"]
    for line in sys.stdin:
        request = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):  # some parsers print
            given = _answer(request, formats[request["format"]], setting, answer)
        out.write(json.dumps({"id": request["id"], **given}) + "\n")
        out.flush()


def _answer(request: dict[str, Any], form: dict[str, Any], setting: Any, answer: Any) -> dict[str, Any]:
    try:
        if not request["tools"]:
            raise Unsupported("it is asked with tools only")
        if request["prompt"] is not None:
            raise Unsupported("it is asked without a prompt")
        message = answer(request, form, setting)
    except Unsupported as reason:
        return {"unsupported": str(reason)}
    except Exception as error:  # a parser that raises gives no message
        return {"message": {"content": f"raises {type(error).__name__}: {error}"}}
    calls = [{"name": name, "arguments": arguments or ""} for name, arguments in message["calls"]]
    return {
        "message": {"reasoning": message["reasoning"] or "", "content": message["content"] or "", "tool_calls": calls}
    }


def name_of(request: dict[str, Any]) -> str:
    """Return the name of the format without its reasoning."""
    return str(request["format"]).partition("+")[0]


def stream_of(request: dict[str, Any], form: dict[str, Any], *, ids: bool) -> dict[str, Any]:
    """Return the request as the adapters of ``benchmarks/peers`` take it. ``ids``: the parser gets token ids."""
    if "tokens" in request and not ids:
        raise Unsupported("it gets text only")
    special = list(dict.fromkeys(form.get("special_tokens", ()))) or ["<|endoftext|>"]
    if "tokens" in request:
        deltas = [list(piece) for piece in request["tokens"]]
        special += [text for piece in deltas for text, is_special in piece if is_special and text not in special]
    else:
        deltas = _tokens(without_end(request["pieces"], form), special)
    if by_token():
        deltas = [[token] for piece in deltas for token in piece] or [[]]
    words = dict.fromkeys(text for piece in deltas for text, is_special in piece if not is_special)
    numbers = {text: i for i, text in enumerate([*special, *(word for word in words if word not in special)])}
    texts = ["".join(text for text, _ in piece) for piece in deltas]
    made = [[numbers[text] for text, _ in piece] if ids else () for piece in deltas]
    whole = len(request["pieces"]) == 1 and not by_token()
    return {
        "format": name_of(request), "tools": request["tools"], "expected": {"reasoning": ""}, "special": special,
        "vocabulary": numbers, "way": "whole" if whole else "split", "deltas": list(zip(texts, made, strict=True)),
    }  # fmt: skip


def by_token() -> bool:
    return sys.argv[2:3] == ["tokens"]


def without_end(pieces: Sequence[str], form: dict[str, Any]) -> list[str]:
    """Return the pieces without the end of the turn: engines remove the token that ends an output."""
    end = form.get("turn", {}).get("end") or ""
    spellings = (end,) if isinstance(end, str) else (end["text"], *end.get("accepted", ()))
    text = "".join(pieces)
    while text.rstrip().endswith(found := tuple(filter(None, spellings))) and found:
        text = re.sub("|".join(rf"{re.escape(one)}\s*\Z" for one in found), "", text)
    rest = len(text)
    kept = []
    for piece in pieces:
        kept.append(piece[:rest])
        rest = max(rest - len(piece), 0)
    return [piece for piece in kept if piece] or [""]


def _tokens(pieces: Sequence[str], special: Sequence[str]) -> list[list[tuple[str, bool]]]:
    """Cut the pieces between tokens: each token belongs to the piece that it ends in."""
    by_length = sorted(map(re.escape, special), key=len, reverse=True)
    found = re.findall("|".join([*by_length, WORD]), "".join(pieces))
    deltas: list[list[tuple[str, bool]]] = []
    end, at, piece = 0, 0, []
    tokens = iter(found)
    for text in pieces:
        end += len(text)
        while at < end:
            token = next(tokens)
            at += len(token)
            piece.append((token, token in special))
        if piece:
            deltas.append(piece)
        piece = []
    return deltas or [[]]
