"""Parameters that several public methods share, each with its type.

A method takes them as ``**options: Unpack[…]``, which type checkers read. At run time its signature has them one by one
(`spelled_out`), so that ``help()`` and the documentation show them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar

from ..policy import Policy
from .machine.events import SemanticEvent
from .machine.ids import IdFactory
from .tokens.decoding import SpecialText, Tokenizer

__all__ = ["OutputOptions", "ParserOptions", "StreamOptions", "WholeOptions", "check_names", "spelled_out"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_DEFAULTS = {"prefill": "", "special_text": "kept", "collect": False, "spans": False}
"""Defaults other than ``None``."""


class ParserOptions(TypedDict, total=False):
    """Parameters of every way to make an `OutputParser`; its constructor explains them."""

    tokenizer: Tokenizer | None
    policy: Policy | None
    special_text: SpecialText
    make_id: IdFactory | None


class OutputOptions(TypedDict, total=False):
    """Facts about one output that are known before it begins; `OutputParser.stream` explains them."""

    tools: Sequence[Any] | None
    tool_choice: Any
    prompt: str | Sequence[int] | None
    prompt_token_ids: Sequence[int] | None
    prefill: str
    messages: Sequence[Any] | None
    policy: Policy | None
    seed: int | str | bytes | None


class WholeOptions(OutputOptions, total=False):
    """The same for a whole output, and what to record of it."""

    spans: bool
    on_event: Callable[[SemanticEvent], None] | None


class StreamOptions(WholeOptions, total=False):
    """The same for a stream."""

    request: Any
    collect: bool


def spelled_out(options: type[Any]) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator: the function's signature has these options in place of ``**options``."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        shared = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=kind.__forward_arg__
            )
            for name, kind in inspect.get_annotations(options).items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return function

    return decorate


def check_names(method: str, given: Iterable[str], options: type[Any]) -> None:
    """Check the names of a method's options.

    Raises:
        TypeError: a name that the method does not have.
    """
    known = options.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
