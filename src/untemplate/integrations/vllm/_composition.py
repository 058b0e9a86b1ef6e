"""Gives vLLM one parser where it would compose two.

vLLM composes a reasoning parser and a tool parser by passing text from one to the other. What one of them knows is lost
on the way: the ids of a whole output, the tools while reasoning is open. If both are untemplate's, or the only one is,
the composed class parses in one pass instead. It keeps everything else of vLLM's class.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from vllm.parser.parser_manager import ParserManager

__all__ = ["compose"]


def compose() -> None:
    """Replace vLLM's parser of two untemplate halves by one parser. May be called repeatedly."""
    original = ParserManager.get_parser
    if getattr(original, "untemplate", False):
        return

    @wraps(original)
    def get_parser(*args: Any, **kwargs: Any) -> Any:
        return _composed(original(*args, **kwargs))

    get_parser.untemplate = True  # type: ignore[attr-defined]
    ParserManager.get_parser = staticmethod(get_parser)


def _composed(theirs: Any) -> Any:
    """Return the class that vLLM composed, or one that parses in one pass if all halves are untemplate's."""
    if theirs is None:
        return None
    from ._parsers import OnePass, UntemplateHalf

    halves = [half for half in (theirs.reasoning_parser_cls, theirs.tool_parser_cls) if half is not None]
    if not halves or not all(issubclass(half, UntemplateHalf) for half in halves):
        return theirs
    return type("UntemplateParser", (OnePass, theirs), {"__module__": __name__})
